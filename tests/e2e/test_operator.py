"""`grapnel operator` on a real kube-apiserver: the real Job controller, and nodes that pretend."""

import json
import pathlib
import tempfile
import time

import pytest
import yaml

from .grapnel import Grapnel

NAMESPACE = "grapnel-system"


def experiment(name: str, namespace: str) -> dict:
    return {
        "apiVersion": "grapnel.dev/v1alpha1",
        "kind": "Experiment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "operator": "jax",
            "image": "none",
            "command": "true",
            "types": {"worker": {"count": 2, "resources": {"cpus": 1, "ramRatio": 1}}},
        },
    }


@pytest.fixture(scope="module")
def operator(control_plane):
    """Our operator at work on the shared cluster, with what `grapnel install` gives it and no more."""
    with tempfile.TemporaryDirectory() as folder:
        program = Grapnel(pathlib.Path(folder))
        printed = program("install", "--print", "--no-webhooks", "--namespace", NAMESPACE)
        assert printed.returncode == 0, printed.stderr
        # There is no kubelet: the operator runs beside the cluster.
        objects = [o for o in yaml.safe_load_all(printed.stdout) if o["kind"] != "Deployment"]
        control_plane.kubectl("apply", "--server-side", "-f", "-", input=yaml.safe_dump_all(objects))
        for name in ("experiments.grapnel.dev", "jobsets.jobset.x-k8s.io"):
            control_plane.kubectl("wait", "--for=condition=Established", f"crd/{name}", "--timeout=30s")
        log = pathlib.Path(folder) / "operator.log"
        account = control_plane.kubeconfig_for(f"system:serviceaccount:{NAMESPACE}:grapnel",
                                               ["system:serviceaccounts"])
        process = program.start("operator", "--kubeconfig", account,
                                "--leader-elect-namespace", NAMESPACE,
                                "--metrics-addr", "127.0.0.1:0", "--health-addr", "127.0.0.1:0",
                                log=log)
        yield process
        process.terminate()
        try:
            code = process.wait(timeout=60)
        finally:
            process.kill()
        assert code == 0, log.read_text()[-5000:]


def wait_for(check, seconds=60):
    deadline = time.monotonic() + seconds
    while True:
        found = check()
        if found:
            return found
        assert time.monotonic() < deadline, "not within %d s" % seconds
        time.sleep(0.1)


def test_an_experiment_becomes_jobs_and_succeeds(control_plane, namespace, operator):
    control_plane.request("POST", f"/apis/grapnel.dev/v1alpha1/namespaces/{namespace}/experiments",
                          experiment("first", namespace))
    path = f"/apis/grapnel.dev/v1alpha1/namespaces/{namespace}/experiments/first"

    def ended():
        assert operator.poll() is None, "the operator ended"
        _, found = control_plane.request("GET", path)
        return found.get("status", {}).get("endTime") and found

    done = wait_for(ended)
    assert done["status"]["phase"] == "Succeeded", json.dumps(done["status"])
    _, jobset = control_plane.request(
        "GET", f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{namespace}/jobsets/first")
    assert jobset["status"]["terminalState"] == "Completed"
    _, job = control_plane.request("GET", f"/apis/batch/v1/namespaces/{namespace}/jobs/first-worker-0")
    assert job["status"]["succeeded"] == 2


def test_an_invalid_experiment_fails_with_the_reason(control_plane, namespace, operator):
    wrong = experiment("wrong", namespace)
    wrong["spec"]["types"] = {"Worker": wrong["spec"]["types"]["worker"]}
    control_plane.request("POST", f"/apis/grapnel.dev/v1alpha1/namespaces/{namespace}/experiments", wrong)

    def ended():
        _, found = control_plane.request(
            "GET", f"/apis/grapnel.dev/v1alpha1/namespaces/{namespace}/experiments/wrong")
        return found.get("status", {}).get("endTime") and found

    status = wait_for(ended)["status"]
    assert status["phase"] == "Failed"
    assert status["reason"] == "InvalidSpec"
    assert "spec.types.Worker: unknown type for operator 'jax'" in status["message"]
