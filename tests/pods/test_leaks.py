"""Nothing is left of pods that are gone, and nothing at all of a cluster that is down."""

import pathlib
import time

from . import machine
from .cluster import SOAK, pod

COUNT = 1000 if SOAK else 100
AT_ONCE = 20


def run_pods(cluster, count):
    waiting = [f"leak-{i}" for i in range(count)]
    running = set()
    volumes = {"volumes": [{"name": "v", "emptyDir": {}}, {"name": "m", "emptyDir": {"medium": "Memory"}}],
               "volumeMounts": [{"name": "v", "mountPath": "/v"}, {"name": "m", "mountPath": "/m"}]}
    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            name = waiting.pop()
            cluster.create(pod(name, "echo $$ > /v/x; cp /v/x /m/x; sleep 0.1 & exit 0", **volumes))
            running.add(name)
        ended = [p["metadata"]["name"] for p in cluster.pods() if p["status"].get("phase") in ("Succeeded", "Failed")]
        for name in ended:
            if name in running:
                cluster.delete("Pod", name)
                running.discard(name)
        time.sleep(0.05)
    cluster.wait(lambda: [p["metadata"]["name"] for p in cluster.pods()] == ["stays"], "all other pods are gone")


def test_nothing_is_left_of_many_pods(own_cluster):
    own_cluster.create(pod("stays", "sleep 1000"))
    own_cluster.phase("stays", "Running")
    run_pods(own_cluster, AT_ONCE)  # what is kept for good is there after the first ones
    before = machine.of_cluster(own_cluster)
    run_pods(own_cluster, COUNT)
    after = {}

    def is_settled():
        nonlocal after
        after = machine.of_cluster(own_cluster)
        # A connection that is kept open is no leak; one for each pod would be.
        return all(after[k] <= before[k] + (8 if k == "open files" else 0) for k in before)

    try:
        own_cluster.wait(is_settled, "the machine is as before", 20)
    except AssertionError:
        assert after == before


def test_nothing_is_left_of_a_cluster(own_cluster):
    shims = own_cluster.folder / "node" / "node"
    own_cluster.create(*(pod(f"stay-{i}", "sleep 1000") for i in range(5)))
    for i in range(5):
        own_cluster.phase(f"stay-{i}", "Running")
    mark = str(own_cluster.state)
    assert sum(machine._processes(mark).values()) >= 10
    own_cluster.down()
    assert machine._processes(mark) == {}
    assert not any(mark in line for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines())
    assert list((shims / "pods").iterdir()) == []


def test_what_a_power_cut_left_is_cleaned(own_cluster):
    """All processes die at once; the next start knows what is gone and starts afresh."""
    own_cluster.create(pod("lost", "sleep 1000"), pod("again", "echo here; sleep 1000", restart="Always"))
    for name in ("lost", "again"):
        own_cluster.phase(name, "Running")
    own_cluster.kill()
    own_cluster.end_pods()
    own_cluster.start()
    lost = own_cluster.ends("lost")
    assert lost["status"]["phase"] == "Failed"
    again = own_cluster.wait_for_pod("again", lambda p: p["status"]["containerStatuses"][0]["restartCount"] == 1 and
                                     "running" in p["status"]["containerStatuses"][0]["state"], "runs again")
    assert again["status"]["phase"] == "Running"
