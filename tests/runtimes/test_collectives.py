"""JAX, PyTorch and XGBoost in plain pods: an indexed Job whose processes find each other by name."""

import pathlib

import pytest

from pods.cluster import service

SIZE = 2
# Mounted: of a checkout below /tmp a pod sees nothing, for its /tmp is its own.
PROGRAMS = {"name": "programs", "hostPath": {"path": str(pathlib.Path(__file__).parent / "programs")}}


def job(name, python, program):
    variables = {"MASTER_ADDR": f"{name}-0.{name}", "MASTER_PORT": "23456", "WORLD_SIZE": str(SIZE)}
    env = [{"name": k, "value": v} for k, v in variables.items()]
    env.append({"name": "RANK", "valueFrom": {"fieldRef": {
        "fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}})
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
            "spec": {"completions": SIZE, "parallelism": SIZE, "completionMode": "Indexed", "backoffLimit": 0,
                     "template": {"metadata": {"labels": {"group": name}},
                                  "spec": {"restartPolicy": "Never", "subdomain": name, "volumes": [PROGRAMS],
                                           "containers": [{"name": "main", "image": "host", "env": env,
                                                           "volumeMounts": [{"name": "programs", "mountPath": "/programs"}],
                                                           "command": [python, f"/programs/{program}"]}]}}}}


def outputs(cluster, name, timeout=240):
    """What each process of a Job printed, once it is complete."""
    def has_ended():
        conditions = cluster.get("Job", name).get("status", {}).get("conditions", [])
        return next((c["type"] for c in conditions if c["type"] in ("Complete", "Failed") and c["status"] == "True"), None)

    ended = cluster.wait(has_ended, f"job {name} ends", timeout)
    pods = [p["metadata"]["name"] for p in cluster.pods() if p["metadata"].get("labels", {}).get("group") == name]
    said = [cluster.output(p) for p in pods]
    assert ended == "Complete", said
    return said


@pytest.mark.parametrize("runtime", ["jax", "xgboost", "torch"])
def test_processes_of_a_job_work_together(cluster, request, runtime):
    python = request.getfixturevalue("system_python" if runtime == "torch" else "python")
    cluster.create(service(runtime, {"group": runtime}, headless=True, publishNotReadyAddresses=True),
                   job(runtime, python, f"{runtime}_sum.py"))
    said = outputs(cluster, runtime)
    assert len(said) == SIZE
    for text in said:
        assert f"{runtime}: 3 from 2 processes" in text
