"""Other people's controllers do their work on the laptop cluster, unchanged."""

import json
import shutil
import uuid

import pytest
import yaml

from kube.command_lines import write_kwok_config
from kube.identities import Identities
from kube.needs import build_or_skip
from kube.processes import Component, ReservedPort, Spawner
from kube.programs import Programs

from .conftest import running_cluster
from .kubectl import Kubectl, eventually
from .objects import pod_spec


@pytest.fixture(scope="module")
def bare_cluster():
    """A laptop cluster without our own kinds."""
    with running_cluster("--no-operator", "--oversubscribe", "100") as program:
        yield program


@pytest.fixture
def kubectl(bare_cluster, kube_programs):
    """kubectl in a fresh namespace of it."""
    config = str(bare_cluster.state / "grapnel" / "default" / "kubeconfig")
    name = f"test-{uuid.uuid4().hex[:8]}"
    kubectl = Kubectl(Programs().path("kubectl"), config, name)
    kubectl("create", "namespace", name)
    yield kubectl
    kubectl("delete", "namespace", name, "--timeout=60s")


@pytest.fixture
def start(tmp_path, kubectl):
    """Starts a program of tools/kube/build; it is ended after the test, and shown if that fails."""
    spawner, running = Spawner(), []

    def start_one(target, name, *arguments):
        build_or_skip(target)
        command = [Programs().path(name), *arguments]
        component = Component(name, command, tmp_path / f"{name}.log", spawner)
        component.start()
        running.append(component)
        return component

    yield start_one
    for component in running:
        print(component.tail(15))
        assert component.running, component.tail()
        component.stop(graceful=True)
    spawner.close()


def install(kubectl, target, folder):
    """Definitions as the project ships them; too long for the annotation of a plain apply."""
    build_or_skip(target)
    for path in sorted((Programs().module(target) / folder).glob("*.yaml")):
        crd = yaml.safe_load(path.read_text())
        if crd.get("kind") != "CustomResourceDefinition":
            continue
        kubectl("apply", "--server-side", "-f", path)
        kubectl("wait", "--for=condition=Established", f"crd/{crd['metadata']['name']}",
                "--timeout=20s")


def address():
    port = ReservedPort()
    port.release()
    return f"127.0.0.1:{port.number}"


def test_jobset_controller(kubectl, start, tmp_path):
    install(kubectl, "jobset", "config/components/crd/bases")
    identities = Identities(tmp_path / "identities", {})
    certificates = tmp_path / "certificates"
    certificates.mkdir()
    shutil.copy(identities.server_cert, certificates / "tls.crt")
    shutil.copy(identities.server_key, certificates / "tls.key")
    config = tmp_path / "jobset.json"
    config.write_text(json.dumps({
        "apiVersion": "config.jobset.x-k8s.io/v1alpha1", "kind": "Configuration",
        "internalCertManagement": {"enable": False}, "leaderElection": {"leaderElect": False},
        "metrics": {"bindAddress": "0"}, "health": {"healthProbeBindAddress": address()},
        "webhook": {"host": "127.0.0.1", "port": int(address().split(":")[1]),
                    "certDir": str(certificates)}}))
    start("jobset", "jobset", "--config", config, "--kubeconfig", kubectl.kubeconfig)
    # The defaults that its webhook would set.
    kubectl.apply({
        "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "js"},
        "spec": {"successPolicy": {"operator": "All"}, "startupPolicy": {"startupPolicyOrder": "AnyOrder"},
                 "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
                 "replicatedJobs": [{"name": "w", "replicas": 2, "template": {"spec": {
                     "completionMode": "Indexed", "completions": 2, "parallelism": 2,
                     "template": {"spec": pod_spec("true")}}}}]}})
    kubectl("wait", "jobset/js", "--for=condition=Completed", "--timeout=120s", timeout=130)
    assert kubectl.names("job") == ["job.batch/js-w-0", "job.batch/js-w-1"]
    assert kubectl.get("service", "js")["spec"]["clusterIP"] == "None"
    kubectl("delete", "jobset", "js", "--timeout=30s")
    eventually(lambda: kubectl.names("job") == [] and kubectl.names("pod") == [])


def test_kuberay_operator(kubectl, start, tmp_path):
    install(kubectl, "kuberay", "config/crd/bases")
    start("kuberay", "ray-operator", "--metrics-addr", "0",
          "--health-probe-bind-address", address(), "--enable-leader-election=false",
          "--watch-namespace", kubectl.namespace, "--kubeconfig", kubectl.kubeconfig)

    def group(**more):
        spec = pod_spec("sleep 1000", restart_policy="Always")
        spec["containers"][0]["name"] = "ray"
        return {"rayStartParams": {}, **more, "template": {
            "metadata": {"annotations": {"ray.io/overwrite-container-cmd": "true"}},
            "spec": spec}}

    kubectl.apply({
        "apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "ray"},
        "spec": {"rayVersion": "2.46.0", "headGroupSpec": group(),
                 "workerGroupSpecs": [group(groupName="small", replicas=2, minReplicas=0,
                                            maxReplicas=4)]}})

    def pods(kind):
        return kubectl.names("pod", "-l", f"ray.io/cluster=ray,ray.io/node-type={kind}")

    eventually(lambda: len(pods("head")) == 1 and len(pods("worker")) == 2, timeout=90)
    service = kubectl.get("service", "ray-head-svc")
    assert {"gcs-server", "dashboard"} <= {port["name"] for port in service["spec"]["ports"]}
    eventually(lambda: kubectl.get("endpoints", "ray-head-svc").get("subsets"), timeout=60)
    kubectl("patch", "raycluster", "ray", "--type=json", "-p", json.dumps(
        [{"op": "replace", "path": "/spec/workerGroupSpecs/0/replicas", "value": 1}]))
    eventually(lambda: len(pods("worker")) == 1, timeout=60)
    kubectl("delete", "raycluster", "ray", "--timeout=60s", timeout=70)
    eventually(lambda: kubectl.names("pod") == [], timeout=60)


def test_kwok_nodes_run_pods(kubectl, start, tmp_path):
    (tmp_path / "pod.log").write_text("a line\n")
    config = write_kwok_config(tmp_path / "kwok.yaml", Programs().module("kwok"),
                               tmp_path / "pod.log")
    start("kwok", "kwok", "--kubeconfig", kubectl.kubeconfig, "--config", config,
          "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
          "--cidr=10.128.0.0/9", "--server-address", address(), "--node-ip=127.0.0.1")
    node = f"fake-{kubectl.namespace}"
    kubectl.apply({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": node, "annotations": {"kwok.x-k8s.io/node": "fake"},
                     "labels": {"type": "kwok", "kubernetes.io/hostname": node}},
        "status": {"allocatable": {"cpu": "32", "memory": "256Gi", "pods": "110"},
                   "capacity": {"cpu": "32", "memory": "256Gi", "pods": "110"}}})
    try:
        kubectl("wait", f"node/{node}", "--for=condition=Ready", "--timeout=60s", timeout=70)
        kubectl.apply({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
            "spec": {"replicas": 5, "selector": {"matchLabels": {"app": "d"}}, "template": {
                "metadata": {"labels": {"app": "d"}},
                "spec": pod_spec("never run", restart_policy="Always") | {
                    "nodeSelector": {"type": "kwok"}}}}})
        kubectl("rollout", "status", "deployment/d", "--timeout=60s", timeout=70)
        placed = kubectl.get("pod", "-l", "app=d")["items"]
        assert {one["spec"]["nodeName"] for one in placed} == {node}
        kubectl.apply({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"},
                       "spec": {"completions": 3, "parallelism": 3, "template": {
                           "spec": pod_spec("never run") | {"nodeSelector": {"type": "kwok"}}}}})
        kubectl("wait", "job/j", "--for=condition=Complete", "--timeout=60s", timeout=70)
    finally:
        kubectl("delete", "deployment/d", "job/j", "--ignore-not-found", "--timeout=60s", timeout=70)
        eventually(lambda: kubectl.names("pod") == [], timeout=60)
        kubectl("delete", "node", node)
