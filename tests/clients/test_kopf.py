"""A kopf operator does its work: peering off, finalizers, annotations, status and events."""

import os
import pathlib
import signal
import subprocess
import sys

import pytest

from .kubectl import eventually
from .objects import definition

OPERATOR = pathlib.Path(__file__).with_name("kopf_operator.py")


@pytest.fixture
def bowls(kubectl, kubeconfig, tmp_path):
    group = f"{kubectl.namespace}.example.net"
    kubectl.apply(definition("bowls", "Bowl", group=group, subresources={"status": {}}))
    kubectl("wait", "--for=condition=Established", f"crd/bowls.{group}", "--timeout=10s")
    log = tmp_path / "kopf.log"
    with log.open("w") as output:
        operator = subprocess.Popen(
            [sys.executable, "-m", "kopf", "run", "--standalone", "-n", kubectl.namespace,
             str(OPERATOR)], stdout=output, stderr=subprocess.STDOUT,
            env={**os.environ, "KUBECONFIG": kubeconfig, "BOWL_GROUP": group})
    yield f"bowls.{group}", log
    operator.send_signal(signal.SIGTERM)
    try:
        operator.wait(20)
    finally:
        operator.kill()
        operator.wait()
    kubectl("delete", "crd", f"bowls.{group}", "--timeout=20s")
    assert "Traceback" not in log.read_text()


def test_an_operator_reconciles(kubectl, bowls):
    resource, log = bowls
    kubectl.apply({"apiVersion": f"{resource.split('.', 1)[1]}/v1", "kind": "Bowl",
                   "metadata": {"name": "b"}, "spec": {"size": 2}})
    content = ["get", "cm", "b-content", "--ignore-not-found", "-o", "jsonpath={.data.size}"]
    eventually(lambda: kubectl(*content) == "2")
    eventually(lambda: kubectl.get(resource, "b").get("status", {}).get("phase") == "Full")
    assert kubectl.get(resource, "b")["metadata"]["finalizers"]
    eventually(lambda: "b is full" in kubectl("get", "events"))
    kubectl("patch", resource, "b", "--type=merge", "-p", '{"spec":{"size":7}}')
    eventually(lambda: kubectl(*content) == "7")
    kubectl("delete", resource, "b", "--timeout=20s")
    assert kubectl.names("cm", "--field-selector=metadata.name=b-is-gone")
    eventually(lambda: kubectl(*content) == "")
