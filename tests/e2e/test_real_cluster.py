"""The commands that reach into processes on a real kube-apiserver, where kwok stands for kubelets."""

import os
import signal
import socket
import subprocess

import pytest

from .grapnel import Grapnel, Target
from .test_operator import installed, wait_for  # noqa: F401 (a fixture)
from .test_run import manifest


@pytest.fixture
def target(control_plane, namespace, installed, tmp_path):  # noqa: F811
    return Target(Grapnel(tmp_path), control_plane.kubeconfig, namespace)


@pytest.fixture
def train(control_plane, namespace, target):
    """An experiment whose one process runs, as far as anybody can tell; no operator is at work."""
    control_plane.request("POST", f"/apis/grapnel.dev/v1alpha1/namespaces/{namespace}/experiments", {
        "apiVersion": "grapnel.dev/v1alpha1", "kind": "Experiment", "metadata": {"name": "train"},
        "spec": {"operator": "jax", "image": "none", "command": "true",
                 "types": {"worker": {"count": 1, "resources": {"cpus": 1, "ramRatio": 1}}}}})
    status, answer = control_plane.request("POST", f"/api/v1/namespaces/{namespace}/pods", {
        "metadata": {"name": "train-worker-0-0", "labels": {
            "grapnel.dev/experiment": "train", "grapnel.dev/component": "worker",
            "batch.kubernetes.io/job-completion-index": "0"}},
        "spec": {"containers": [{"name": "worker", "image": "none"}]}})
    assert status == 201, answer

    def running():
        _, pod = control_plane.request("GET", f"/api/v1/namespaces/{namespace}/pods/train-worker-0-0")
        return pod["status"].get("phase") == "Running"

    wait_for(running)
    return "train"


def test_exec(target, train):
    # kwok does not tell its commands that their input has ended: these know it themselves.
    done = target("exec", train, "-i", "--", "sh", "-c", "head -n 1; echo oops >&2", input="hello\n")
    assert (done.stdout, done.stderr, done.returncode) == ("hello\n", "oops\n", 0)
    # Nor does it tell exit codes apart from other troubles.
    failed = target("exec", train, "--", "sh", "-c", "exit 9")
    assert failed.returncode == 1 and "exit status 9" in failed.stderr
    data = os.urandom(1 << 20).hex()
    assert target("exec", train, "-i", "--", "head", "-c", len(data), input=data).stdout == data


def test_cp(target, train, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "data").write_bytes(os.urandom(500_000))
    there = target("cp", tmp_path / "in", f"{train}:{tmp_path}/there")
    assert there.returncode == 0, there.stderr
    back = target("cp", f"{train}:{tmp_path}/there/data", tmp_path / "back")
    assert back.returncode == 0, back.stderr
    assert (tmp_path / "back").read_bytes() == (tmp_path / "in" / "data").read_bytes()


def test_port_forward(target, train):
    forwarding = subprocess.Popen(target.command("port-forward", train, ":80"), text=True,
                                  env=target.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        line = forwarding.stdout.readline()
        assert line.endswith(" leads to port 80 of worker-0\n"), forwarding.stderr.read()
        address = ("127.0.0.1", int(line.split()[0].split(":")[1]))
        for size in (10, 300_000):
            data = os.urandom(size)
            with socket.create_connection(address, timeout=20) as connection:
                connection.sendall(data)
                got = b""
                while len(got) < size:
                    piece = connection.recv(65536)
                    assert piece, (len(got), size)
                    got += piece
                assert got == data
    finally:
        forwarding.send_signal(signal.SIGINT)
        out, errors = forwarding.communicate(timeout=20)
    assert forwarding.returncode == 0, errors


def test_plan(target, train, tmp_path, namespace):
    planned = target("plan", manifest(tmp_path, "true"), "--name", "later")
    assert planned.returncode == 0, planned.stderr
    assert planned.stdout.startswith("On context ") and f", namespace {namespace}:\n" in planned.stdout
    assert planned.stdout.endswith("The cluster would accept it.\n")
    again = target("plan", manifest(tmp_path, "true"), "--name", train)
    assert again.returncode == 1 and "exists already (Pending) and differs:" in again.stdout


def test_top_says_what_is_missing(target, train):
    shown = target("top", train)
    assert shown.returncode == 1 and "metrics.k8s.io is absent" in shown.stderr


def test_submit_with_code(control_plane, namespace, target, tmp_path):
    code = tmp_path / "code"
    code.mkdir()
    (code / "main.py").write_text("print(1)\n")
    submitted = target("submit", "--with-code", manifest(tmp_path, "python3 main.py"), "--name", "coded", cwd=code)
    assert submitted.returncode == 0, submitted.stderr
    _, stored = control_plane.request("GET", f"/api/v1/namespaces/{namespace}/configmaps/coded-code")
    assert [owner["name"] for owner in stored["metadata"]["ownerReferences"]] == ["coded"]
    assert "code.tar.gz" in stored["binaryData"]
    # One that cannot be made leaves no code behind, and does not take that of the other.
    again = target("submit", "--with-code", manifest(tmp_path, "true"), "--name", "coded", cwd=code)
    assert again.returncode == 1 and "already exists" in again.stderr
    status, _ = control_plane.request("GET", f"/api/v1/namespaces/{namespace}/configmaps/coded-code")
    assert status == 200
