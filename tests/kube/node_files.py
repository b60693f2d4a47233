"""What the programs of a node read: containerd, its network plugins, kubelet and kube-proxy."""

import json
import subprocess

from kube import images
from kube.processes import StartFailed

CLUSTER_NETWORK = "10.244.0.0/16"
# kubelet insists on these, for the whole machine. It is shown files of ours that say so already.
SYSCTLS = {"vm/overcommit_memory": 1, "vm/panic_on_oom": 0, "kernel/panic": 10, "kernel/panic_on_oops": 1,
           "kernel/keys/root_maxkeys": 1000000, "kernel/keys/root_maxbytes": 25000000}
PAUSE = "pause:1"


def setup(folder):
    """The shell script that makes a machine a node: places of its own where programs keep state."""
    lines = []
    for place in ("run", "var/lib", "var/log"):
        (folder / place).mkdir(parents=True)
        lines.append(f"mount --bind {folder / place} /{place}")
    for name, value in SYSCTLS.items():
        file = folder / "sysctl" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{value}\n")
        lines.append(f"[ ! -e /proc/sys/{name} ] || mount --bind {file} /proc/sys/{name}")
    lines.append("echo 1 > /proc/sys/net/ipv4/ip_forward")
    return "\n".join(lines)


def containerd(folder, registry_url, host_folders):
    """Writes its files and gives the path of its configuration."""
    done = subprocess.run(["ctr", "oci", "spec"], capture_output=True, text=True)
    if done.returncode:
        raise StartFailed(f"ctr oci spec: {done.stderr}")
    spec = json.loads(done.stdout)
    spec["mounts"] += images.mounts(host_folders)
    (folder / "base-spec.json").write_text(json.dumps(spec))
    hosts = folder / "registries" / "_default"
    hosts.mkdir(parents=True)
    (hosts / "hosts.toml").write_text(
        f'server = "{registry_url}"\n[host."{registry_url}"]\n  capabilities = ["pull", "resolve"]\n')
    path = folder / "containerd.toml"
    path.write_text(f"""
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  restrict_oom_score_adj = true  # where the machine does not let root lower it, no container would start
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{folder / 'cni'}"
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "{hosts.parent}"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    base_runtime_spec = "{folder / 'base-spec.json'}"
""")
    return path


def network_plugins(folder, pod_network):
    """Each pod on a link of its own to its node: all packets are routed, so services work for all."""
    (folder / "cni").mkdir()
    ipam = {"type": "host-local", "ranges": [[{"subnet": pod_network}]], "routes": [{"dst": "0.0.0.0/0"}]}
    (folder / "cni" / "10-pods.conflist").write_text(json.dumps({
        "cniVersion": "0.4.0", "name": "pods",
        "plugins": [{"type": "ptp", "ipMasq": False, "ipam": ipam},
                    {"type": "portmap", "capabilities": {"portMappings": True}}]}))


def kubelet(folder, address, dns, cgroup, ca_file, reserved):
    (folder / "resolv.conf").write_text("")
    path = folder / "kubelet.json"
    path.write_text(json.dumps({
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
        "address": address, "healthzPort": 0,
        "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": False},
                           "x509": {"clientCAFile": str(ca_file)}},
        "authorization": {"mode": "AlwaysAllow"},
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "cgroupDriver": "cgroupfs", "cgroupRoot": cgroup, "failCgroupV1": False, "failSwapOn": False,
        "systemReserved": reserved,
        "clusterDNS": [dns], "clusterDomain": "cluster.local", "resolvConf": str(folder / "resolv.conf"),
        "imageGCHighThresholdPercent": 100, "imageGCLowThresholdPercent": 99,
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        # Mounted files follow their source in seconds, not in a minute; no request waits for its turn.
        "syncFrequency": "2s", "serializeImagePulls": False, "registryPullQPS": 0, "eventRecordQPS": 0,
        "kubeAPIQPS": 1000, "kubeAPIBurst": 2000}))
    return path


def kube_proxy(folder, name, address, kubeconfig):
    path = folder / "kube-proxy.json"
    path.write_text(json.dumps({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration",
        "mode": "iptables", "bindAddress": address, "hostnameOverride": name, "clusterCIDR": CLUSTER_NETWORK,
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "healthzBindAddress": "127.0.0.1:10256", "metricsBindAddress": "127.0.0.1:10249",
        "iptables": {"minSyncPeriod": "100ms"},
        # Those are the whole machine's: left as they are.
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"}}))
    return path
