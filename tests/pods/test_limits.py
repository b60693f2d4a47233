"""CPU, memory and processes: held where the machine allows it."""

import pytest

from .cluster import container_status, pod


def limited(cluster, what):
    node = cluster.get("Node", cluster.node)
    said = next(c["message"] for c in node["status"]["conditions"] if c["type"] == "Ready")
    if f"limits on {what} are not enforced" in said:
        pytest.skip(f"the node says that limits on {what} are not enforced")


@pytest.mark.only("root", "kubelet")
def test_too_much_memory_ends_as_oom_killed(cluster, name):
    limited(cluster, "memory")
    cluster.create(pod(name, "exec /usr/bin/python3 -c 'x = bytearray(300 << 20)'", resources={"limits": {"memory": "64Mi"}}))
    ended = cluster.ends(name)
    state = container_status(ended)["state"]["terminated"]
    assert (ended["status"]["phase"], state["reason"], state["exitCode"]) == ("Failed", "OOMKilled", 137)


@pytest.mark.only("root")
def test_processes_and_threads_are_counted(cluster, name):
    limited(cluster, "pids")
    out = cluster.run(pod(name, """exec /usr/bin/python3 -c '
import os, threading
stop = threading.Event()
threading.stack_size(64 << 10)
try:
    for i in range(10000):
        threading.Thread(target=stop.wait, daemon=True).start()
except RuntimeError:
    pass
print(threading.active_count(), flush=True)
os._exit(0)'"""))
    assert 4000 < int(out) <= 4096


@pytest.mark.only("root")
def test_a_fork_bomb_is_held(cluster, name):
    limited(cluster, "pids")
    cluster.create(pod(name, "bomb() { bomb | bomb & }; bomb; sleep 3; echo alive; exit 0"))
    cluster.phase(name, "Running", "Failed", "Succeeded")
    assert cluster.run(pod(f"{name}-other", "echo fine"), timeout=40) == "fine\n"
    cluster.delete("Pod", name, gracePeriodSeconds=1)
    cluster.gone(name, timeout=60)


@pytest.mark.only("root", "kubelet")
def test_cpu_is_held(cluster, name):
    limited(cluster, "cpu")
    out = cluster.run(pod(name, """/usr/bin/python3 -c '
import time
end = time.monotonic() + 2
while time.monotonic() < end: pass
print(time.process_time())'""", resources={"limits": {"cpu": "200m"}}))
    assert float(out) < 0.8


@pytest.mark.only("root", "user")
def test_what_is_not_enforced_is_said(cluster):
    node = cluster.get("Node", cluster.node)
    ready = next(c for c in node["status"]["conditions"] if c["type"] == "Ready")
    assert ready["status"] == "True"
    if cluster.is_root:
        assert "not enforced" not in ready["message"]
