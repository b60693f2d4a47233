"""The flags each program of the control plane is started with, and why."""

import json
import pathlib

import yaml

# Nodes and pods are ready at once; pods of Jobs then complete; node leases are kept alive.
KWOK_STAGES = ("node/fast", "node/heartbeat-with-lease", "pod/fast")


def etcd(host, client_port, peer_port, data: pathlib.Path):
    client, peer = f"http://{host}:{client_port}", f"http://{host}:{peer_port}"
    # Without fsync it is several times faster and still loses nothing when only processes die.
    return [f"--data-dir={data}", "--unsafe-no-fsync",
            f"--listen-client-urls={client}", f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}"]


def apiserver(host, port, etcd_port, identities):
    return [f"--etcd-servers=http://{host}:{etcd_port}",
            f"--bind-address={host}", f"--secure-port={port}",
            # Without these it looks for an outward network interface, which a sandbox may lack.
            f"--advertise-address={host}", "--endpoint-reconciler-type=none",
            f"--tls-cert-file={identities.server_cert}",
            f"--tls-private-key-file={identities.server_key}",
            f"--client-ca-file={identities.ca_file}",
            f"--token-auth-file={identities.tokens_file}",
            f"--service-account-key-file={identities.service_account_key}",
            f"--service-account-signing-key-file={identities.service_account_key}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.96.0.0/16", "--allow-privileged",
            "--authorization-mode=RBAC", "--kubelet-preferred-address-types=InternalIP",
            # A planned stop ends the watches; by default it would wait a minute for them to end.
            "--shutdown-watch-termination-grace-period=1s"]


def apiserver_for_nodes(identities):
    """What it needs besides where kubelets run: their rights, and its own to ask them for logs."""
    client = identities.credentials("kube-apiserver", ["system:masters"])
    return ["--authorization-mode=Node", "--endpoint-reconciler-type=lease",
            # No kube-proxy beside it: to a webhook's service it goes by the addresses of its pods.
            "--enable-aggregator-routing",
            f"--kubelet-client-certificate={client['client-certificate']}",
            f"--kubelet-client-key={client['client-key']}"]


def controller_manager(host, port, folder: pathlib.Path, kubeconfig, identities):
    return [*_controller(host, port, folder, kubeconfig), f"--root-ca-file={identities.ca_file}",
            # Each of its controllers has an account and rights of its own.
            "--use-service-account-credentials",
            f"--service-account-private-key-file={identities.service_account_key}"]


def scheduler(host, port, folder: pathlib.Path, kubeconfig):
    return _controller(host, port, folder, kubeconfig)


def _controller(host, port, folder, kubeconfig):
    # Their own limits of 20 to 50 requests a second would be what a test measures.
    return [f"--kubeconfig={kubeconfig}", "--leader-elect=false",
            "--kube-api-qps=1000", "--kube-api-burst=2000",
            f"--bind-address={host}", f"--secure-port={port}", f"--cert-dir={folder}"]


def kwok(port, kubeconfig, config: pathlib.Path, identities):
    return [f"--kubeconfig={kubeconfig}", "--manage-all-nodes=true", f"--config={config}",
            "--cidr=10.128.0.0/9",  # its own range of pod addresses ends at 254 pods
            # It stands for every kubelet: the API server asks it for logs and to run commands.
            f"--server-address=127.0.0.1:{port}", "--node-ip=127.0.0.1", f"--node-port={port}",
            f"--tls-cert-file={identities.server_cert}",
            f"--tls-private-key-file={identities.server_key}"]


def write_kwok_config(path: pathlib.Path, module: pathlib.Path, pod_log: pathlib.Path, stages=""):
    """The stages that kwok's module ships but for those that `stages` has of the same name, one log
    for all pods, and exec on this machine."""
    own = {stage["metadata"]["name"] for stage in yaml.safe_load_all(stages) if stage}
    folder = module / "kustomize" / "stage"
    files = [file for stage in KWOK_STAGES for file in sorted((folder / stage).glob("*.yaml"))
             if file.name != "kustomization.yaml" and file.stem not in own]
    kubelet = [
        {"kind": "ClusterLogs", "spec": {"logs": [{"logsFile": str(pod_log), "follow": True}]}},
        {"kind": "ClusterExec", "spec": {"execs": [{"local": {"workDir": str(path.parent)}}]}},
        # Whoever connects to a port is sent back what he sends.
        {"kind": "ClusterPortForward", "spec": {"forwards": [{"command": ["cat"]}]}}]
    documents = [file.read_text() for file in files] + ([stages] if stages else [])
    documents += [json.dumps({"apiVersion": "kwok.x-k8s.io/v1alpha1",
                              "metadata": {"name": "all-pods"}} | kind) for kind in kubelet]
    path.write_text("\n---\n".join(documents))
    return path
