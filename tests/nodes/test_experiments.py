"""Experiments on two real nodes, by an operator that `grapnel install` has put into the cluster."""

import json
import os
import re
import subprocess
import time

import pytest

from e2e.grapnel import ROOT, Grapnel, Target
from kube.control_plane import KubectlFailed

SYSTEM_PYTHON = "/usr/bin/python3"
WAITING = """
kind: AIchorManifest
apiVersion: 0.2.3
spec:
  operator: jax
  image: python:3.11
  command: "trap 'echo told to end; exit 3' TERM; echo up; while :; do sleep 0.1; done"
  types: {worker: {count: 2, resources: {cpus: 0.5, ramRatio: 1}}}
"""


@pytest.fixture(scope="module")
def installed(real_nodes, tmp_path_factory):
    """The operator in a pod of its own, as anybody installs it: its account, its rights, its webhooks."""
    grapnel = Grapnel(tmp_path_factory.mktemp("state"))
    done = grapnel("install", "--kubeconfig", real_nodes.kubeconfig)
    assert done.returncode == 0, done.stderr
    real_nodes.kubectl("-n", "grapnel-system", "rollout", "status", "deployment/grapnel", "--timeout=90s",
                       timeout=100)
    return grapnel


@pytest.fixture
def target(real_nodes, place, installed):
    return Target(installed, real_nodes.kubeconfig, place)


def nodes_of(real_nodes, place):
    """{rank: node} of the processes of the one experiment there is."""
    pods = json.loads(real_nodes.kubectl("-n", place, "get", "pods", "-o", "json"))["items"]
    return {pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]: pod["spec"]["nodeName"]
            for pod in pods}


def run(target, folder, name):
    """What an example of ours printed, as {process: lines}."""
    submitted = target("submit", "--with-code", "--name", name, "manifest.yaml", cwd=ROOT / "examples" / folder)
    assert submitted.returncode == 0, submitted.stderr
    assert submitted.stdout.split()[-1] == name
    followed = target("logs", "-f", name)
    assert followed.returncode == 0, followed.stdout + followed.stderr + target("status", name).stdout
    lines = {}
    for line in followed.stdout.splitlines():
        process, text = re.split(r" *\| ", line, maxsplit=1)
        lines.setdefault(process, []).append(text)
    return lines


def test_jax_on_two_nodes(real_nodes, place, target):
    lines = run(target, "jax", "jax")
    for rank in (0, 1):
        told = lines[f"worker-{rank}"]
        assert f"process {rank} of 2, 1 of 2 devices" in told
        assert any(re.fullmatch(rf"\[Gloo\] Rank {rank} is connected to 1 peer ranks.*", line) for line in told)
        assert any(re.fullmatch(rf"process {rank}: y = 3.000 x \+ -1.000 from 1024 points, loss \S+", line)
                   for line in told)
    assert sorted(nodes_of(real_nodes, place).values()) == ["node-1", "node-2"]
    status = json.loads(target("status", "jax", "-o", "json").stdout)
    assert status["status"]["phase"] == "Succeeded"


@pytest.mark.skipif(subprocess.run([SYSTEM_PYTHON, "-c", "import torch"], capture_output=True).returncode != 0,
                    reason="python3-torch is not installed")
def test_pytorch_on_two_nodes(real_nodes, place, target):
    lines = run(target, "pytorch", "torch")
    for rank in (0, 1):
        told = lines[f"worker-{rank}"]
        assert f"rank {rank} of 2 at torch-worker-0-0.torch:23456" in told
        assert any(re.fullmatch(rf"rank {rank}: y = 3.000 x \+ -1.000 from 1024 points, loss \S+", line)
                   for line in told)
    assert sorted(nodes_of(real_nodes, place).values()) == ["node-1", "node-2"]


@pytest.fixture
def waiting(target, tmp_path):
    """An experiment whose two processes run until they are told to end."""
    (tmp_path / "manifest.yaml").write_text(WAITING)
    submitted = target("submit", "--name", "wait", tmp_path / "manifest.yaml")
    assert submitted.returncode == 0, submitted.stderr
    deadline = time.monotonic() + 60
    while target("logs", "wait").stdout.count("up\n") != 2:
        assert time.monotonic() < deadline, target("status", "wait").stdout
        time.sleep(0.3)
    return "wait"


def test_one_can_look_at_it_reach_into_it_and_cancel_it(real_nodes, place, target, waiting, tmp_path):
    shown = target("status", waiting).stdout
    assert "Running" in shown
    for rank in (0, 1):
        assert re.search(rf"worker-{rank} +Running .*pod {waiting}-worker-0-{rank}-", shown), shown

    node = nodes_of(real_nodes, place)
    for rank in (0, 1):
        done = target("exec", waiting, "--rank", rank, "-i", "--", "sh", "-c",
                      "cat; echo $JAXOPERATOR_PROCESS_ID; echo oops >&2; exit 9", input="hello\n")
        assert (done.stdout, done.returncode) == (f"hello\n{rank}\n", 9)
        assert done.stderr.startswith("oops\n")
    assert node["0"] != node["1"]

    data = os.urandom(300_000)
    (tmp_path / "data").write_bytes(data)
    there = target("cp", tmp_path / "data", f"{waiting}:/tmp/data")
    assert there.returncode == 0, there.stderr
    back = target("cp", f"{waiting}:/tmp/data", tmp_path / "back")
    assert back.returncode == 0 and (tmp_path / "back").read_bytes() == data, back.stderr

    following = subprocess.Popen(target.command("logs", "-f", waiting), env=target.environment, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert {following.stdout.readline() for _ in range(2)} == {f"worker-{rank} | up\n" for rank in (0, 1)}
    cancelled = target("cancel", waiting)
    assert cancelled.returncode == 0, cancelled.stderr
    rest, _ = following.communicate(timeout=60)
    assert {f"worker-{rank} | told to end" for rank in (0, 1)} <= set(rest.splitlines())
    status = json.loads(target("status", waiting, "-o", "json").stdout)["status"]
    assert status["phase"] == "Cancelled"

    assert target("delete", waiting).returncode == 0
    assert waiting not in target("list").stdout


def test_the_operator_has_the_rights_it_needs_and_no_others(real_nodes, place, installed, target):
    """After all that: it runs under its own account, was refused nothing, and has not been restarted."""
    pods = json.loads(real_nodes.kubectl("-n", "grapnel-system", "get", "pods", "-o", "json"))["items"]
    assert [pod["spec"]["serviceAccountName"] for pod in pods] == ["grapnel"]
    assert pods[0]["status"]["containerStatuses"][0]["restartCount"] == 0
    log = real_nodes.kubectl("-n", "grapnel-system", "logs", "deployment/grapnel")
    assert "orbidden" not in log and "AddressSanitizer" not in log and "runtime error:" not in log, log[-5000:]
    account = "--as=system:serviceaccount:grapnel-system:grapnel"
    assert real_nodes.kubectl("auth", "can-i", "create", "jobs.batch", "-n", place, account) == "yes\n"
    for verb, what in (("get", "secrets"), ("create", "clusterroles.rbac.authorization.k8s.io"), ("*", "*")):
        with pytest.raises(KubectlFailed):
            real_nodes.kubectl("auth", "can-i", verb, what, "-n", place, account)


def test_the_webhook_refuses_what_is_wrong(real_nodes, place, installed):
    wrong = {"apiVersion": "grapnel.dev/v1alpha1", "kind": "Experiment", "metadata": {"name": "wrong"},
             "spec": {"operator": "jax", "image": "python:3.11", "command": "true",
                      "types": {"Worker": {"count": 1, "resources": {"cpus": 1, "ramRatio": 1}}}}}
    status, answer = real_nodes.request(
        "POST", f"/apis/grapnel.dev/v1alpha1/namespaces/{place}/experiments", wrong)
    assert status in (400, 403, 422) and "unknown type for operator 'jax'" in answer["message"], answer
