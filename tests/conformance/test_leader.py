"""Two operators and one Lease on a real kube-apiserver: never two writers, and soon a new one.

Both work as users of their own, so the API server's audit log says who wrote what and when.
"""

import itertools
import os
import signal
import threading
import time

import pytest

from conformance.echoes import AuditedCluster, Echoes, wait_for
from conformance.probe import Probe, ProbeError

LEASE_MS, RENEW_MS, RETRY_MS = 4000, 2500, 500
SLACK = 6  # seconds: machines that compile are slow


@pytest.fixture(scope="module")
def cluster(kube_programs, tmp_path_factory):
    with AuditedCluster(tmp_path_factory.mktemp("audited")) as cluster:
        yield cluster


class Candidate:
    """An operator in a process of its own."""

    def __init__(self, cluster, namespace, name):
        self.name = name
        self._probe = Probe(cluster.kubeconfig_for(name, ["system:masters"]))
        self._probe.__enter__()
        self._operator = self._probe.start("operate", lease={
            "namespace": namespace, "name": "operator", "identity": name,
            "lease_ms": LEASE_MS, "renew_ms": RENEW_MS, "retry_ms": RETRY_MS})

    def working(self):
        try:
            return self._probe.status(target=self._operator.number)["working"]
        except ProbeError:  # it has ended
            return False

    def signal(self, number):
        os.kill(self._probe.pid, number)

    def ended_with(self):
        with pytest.raises(ProbeError) as ended:
            self._operator.result(timeout=30)
        return ended.value.message

    def stop(self):
        self._probe.stop(target=self._operator.number)
        self._operator.result()

    def kill(self):
        self._probe.kill()


class Election:
    """Two candidates, and a user who never rests."""

    def __init__(self, cluster):
        self._cluster = cluster
        _, created = cluster.request("POST", "/api/v1/namespaces",
                                     {"metadata": {"generateName": "leader-"}})
        self.namespace = created["metadata"]["name"]
        self.echoes = Echoes(cluster, self.namespace)
        self._over = threading.Event()
        self._user = threading.Thread(target=self._change_all_the_time)
        self.first = Candidate(cluster, self.namespace, "first")
        wait_for(self.first.working)
        self.second = Candidate(cluster, self.namespace, "second")
        self._user.start()
        wait_for(lambda: self.writers() == ["first"])

    def _change_all_the_time(self):
        self.echoes.create("a", 3, "0")
        for i in itertools.count(1):
            if self._over.wait(0.1):
                return
            self.echoes.change("a", 2 + i % 3, str(i))

    def writes(self):
        return [w for w in self._cluster.writes(self.namespace) if w.resource != "leases"]

    def writers(self):
        """In turn: one name for each time that somebody took over."""
        return [user for user, _ in itertools.groupby(w.user for w in self.writes())]

    def holder(self):
        _, lease = self._cluster.request(
            "GET", f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases/operator")
        return lease["spec"]["holderIdentity"]

    def steal(self):
        self._cluster.kubectl("patch", "-n", self.namespace, "lease", "operator", "--type=merge",
                              "-p", '{"spec":{"holderIdentity":"a thief"}}')

    def taken_over_after(self, began):
        """Seconds from then until the second one's first write."""
        wait_for(lambda: "second" in self.writers(), seconds=60, what="the second one's writing")
        return time.monotonic() - began

    def end(self):
        self._over.set()
        self._user.join()
        self.echoes.settle()
        writers = self.writers()
        for candidate in (self.first, self.second):
            candidate.kill()
        self._cluster.kubectl("patch", "-n", self.namespace, "echo", "a", "--type=merge",
                              "-p", '{"metadata":{"finalizers":null}}')
        return writers


@pytest.fixture
def election(cluster):
    election = Election(cluster)
    yield election
    election._over.set()
    election._user.join()
    for candidate in (election.first, election.second):
        candidate.kill()


def test_a_leader_that_is_killed(election):
    began = time.monotonic()
    election.first.signal(signal.SIGKILL)
    assert election.taken_over_after(began) < (LEASE_MS + RETRY_MS * 1.2) / 1000 + SLACK
    assert election.end() == ["first", "second"]


def test_a_leader_that_is_frozen_and_comes_back(election):
    began = time.monotonic()
    election.first.signal(signal.SIGSTOP)
    assert election.taken_over_after(began) < (LEASE_MS + RETRY_MS * 1.2) / 1000 + SLACK
    election.first.signal(signal.SIGCONT)
    assert "lease was lost" in election.first.ended_with()
    time.sleep(1)
    assert election.end() == ["first", "second"], "what was frozen does not write again"


def test_a_lease_that_is_stolen(election):
    """The leader stops by itself; when the thief lets it expire, the other takes over."""
    began = time.monotonic()
    election.steal()
    assert "lease was lost" in election.first.ended_with()
    stopped = time.monotonic()
    assert stopped - began < RENEW_MS / 1000 + SLACK
    assert election.holder() == "a thief"
    assert election.taken_over_after(began) < (LEASE_MS + RETRY_MS * 1.2) / 1000 + SLACK
    assert election.end() == ["first", "second"]


def test_a_leader_that_stops_in_order(election):
    """It gives the lease back, so that the other need not wait for it to expire."""
    election.first.stop()
    began = time.monotonic()
    assert election.taken_over_after(began) < LEASE_MS / 1000 + SLACK
    assert election.end() == ["first", "second"]
