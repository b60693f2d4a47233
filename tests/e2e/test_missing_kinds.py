"""`grapnel operator` on a kube-apiserver that does not have all of our kinds, or not yet."""

import pathlib
import tempfile

import pytest
import yaml

from kube.control_plane import ControlPlane

from .grapnel import Grapnel
from .test_operator import Operator, experiment, get, wait_for

JOBSETS = "jobsets.jobset.x-k8s.io"
EXPERIMENTS = "experiments.grapnel.dev"


@pytest.fixture(scope="module")
def cluster(kube_programs):
    with ControlPlane() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def definitions():
    """Our CustomResourceDefinitions by name, as YAML."""
    with tempfile.TemporaryDirectory() as folder:
        printed = Grapnel(pathlib.Path(folder))("crds")
    assert printed.returncode == 0, printed.stderr
    return {o["metadata"]["name"]: yaml.safe_dump(o) for o in yaml.safe_load_all(printed.stdout)}


def jobset(name):
    template = {"spec": {"template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "c", "image": "none"}]}}}}
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": name},
            "spec": {"replicatedJobs": [{"name": "w", "replicas": 1, "template": template}]}}


def state(operator):
    """(status of /readyz, {controller: 1 where it works}, {controller: what it waits for})."""
    status, _ = get(operator.address("health"), "/readyz")
    _, text = get(operator.address("metrics"), "/metrics")
    ready, waits = {}, {}
    for line in text.splitlines():
        if line.startswith("grapnel_controller_ready{"):
            ready[line.split('"')[1]] = int(line.split()[-1])
        elif line.startswith("grapnel_controller_waits{"):
            _, controller, _, kind, _, reason, _ = line.split('"')
            waits.setdefault(controller, set()).add((kind, reason))
    return status, ready, waits


def test_each_controller_begins_when_its_kinds_are_defined(cluster, definitions, tmp_path):
    def define(name):
        cluster.kubectl("apply", "--server-side", "-f", "-", input=definitions[name])
        cluster.kubectl("wait", "--for=condition=Established", f"crd/{name}", "--timeout=30s")

    def job(name):
        path = f"/apis/batch/v1/namespaces/default/jobs/{name}"
        return cluster.request("GET", path)[0] == 200

    with Operator(cluster.kubeconfig, tmp_path, "default") as operator:
        none = {("JobSet", "NotDefined")}
        wait_for(lambda: state(operator) == (
            200, {"jobset": 0, "experiment": 0},
            {"jobset": none, "experiment": none | {("Experiment", "NotDefined")}}))
        _, text = get(operator.address("health"), "/readyz?verbose")
        assert "[+]jobset rests: not defined in this cluster: JobSet (jobset.x-k8s.io/v1alpha2)" \
            in text.splitlines()

        define(JOBSETS)
        assert cluster.request("POST", "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets",
                               jobset("alone"))[0] == 201
        wait_for(lambda: job("alone-w-0"))
        wait_for(lambda: state(operator) == (200, {"jobset": 1, "experiment": 0},
                                             {"experiment": {("Experiment", "NotDefined")}}))

        define(EXPERIMENTS)
        made = experiment("whole", "default")
        assert cluster.request("POST", "/apis/grapnel.dev/v1alpha1/namespaces/default/experiments",
                               made)[0] == 201
        wait_for(lambda: job("whole-worker-0"))
        assert state(operator) == (200, {"jobset": 1, "experiment": 1}, {})

        cluster.kubectl("delete", "crd", EXPERIMENTS)
        wait_for(lambda: state(operator)[1] == {"jobset": 1, "experiment": 0})
        assert operator.running()
        path = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets/whole"
        assert "deletionTimestamp" not in cluster.request("GET", path)[1]["metadata"]
        assert cluster.request("POST", "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets",
                               jobset("later"))[0] == 201
        wait_for(lambda: job("later-w-0"))
        assert cluster.request("GET", path)[0] == 200, "nothing was deleted by a controller at rest"
