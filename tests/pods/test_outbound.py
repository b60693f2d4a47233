"""Pods reach the world as the machine does, and the world does not reach them.

The machine is a network namespace of the test's own, with an address that is not the loopback's.
"""

import os
import subprocess
import time

import pytest

from .cluster import NOBODY, Cluster, pod

ADDRESS = "198.51.100.7"


@pytest.fixture
def machine():
    """The pid of a process in a network of its own."""
    if os.geteuid() != 0:
        pytest.skip("needs root to make a network")
    script = f"ip link set lo up && ip address add {ADDRESS}/32 dev lo && echo ready && exec sleep 1000"
    process = subprocess.Popen(["unshare", "--net", "sh", "-c", script], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        yield process.pid
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("user", [None, NOBODY], ids=["root", "user"])
def test_a_pod_reaches_a_server_outside(machine, user, tmp_path, kubectl_program):
    inside = ["nsenter", "-t", str(machine), "-n"]
    (tmp_path / "index.html").write_text("hello from outside\n" * 10000)
    server = subprocess.Popen([*inside, "/usr/bin/python3", "-m", "http.server", "--bind", ADDRESS, "8000"],
                              cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with Cluster(user=user, prefix=inside) as cluster:
            def kubectl(*arguments, **options):
                return cluster.kubectl(*arguments, **options)

            script = f"""
import urllib.request
for turn in range(20):
    text = urllib.request.urlopen("http://{ADDRESS}:8000/", timeout=10).read()
    assert text == b"hello from outside\\n" * 10000
try:
    urllib.request.urlopen("http://{ADDRESS}:8001/", timeout=10)
except OSError as error:
    print("refused", flush=True)
"""
            made = kubectl("run", "out", "--image=host", "--restart=Never", "--command", "--", "/usr/bin/python3", "-c", script)
            assert made.returncode == 0, made.stderr
            deadline = time.monotonic() + 40
            while (phase := kubectl("get", "pod", "out", "-o", "jsonpath={.status.phase}").stdout) not in ("Succeeded", "Failed"):
                assert time.monotonic() < deadline, cluster.log()[-3000:]
            assert (phase, kubectl("logs", "out").stdout) == ("Succeeded", "refused\n")
    finally:
        server.kill()
        server.wait()
