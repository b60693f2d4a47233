"""Informers and controllers of our runtime on a real kube-apiserver, whatever happens to it.

While an operator keeps Echoes and a cache follows its ConfigMaps, a fault strikes and users go on.
Afterwards the world is as asked for, the cache equals a fresh list, what the handlers were told adds
up to it, and the audit log shows that nothing was done twice.
"""

import collections
import os
import pathlib

import pytest

from conformance.echoes import AuditedCluster, Echoes, wait_for
from conformance.probe import CONFIG_MAP, Probe
from kube.fault_proxy import FaultProxy, error_event


@pytest.fixture(scope="module")
def cluster(kube_programs, tmp_path_factory):
    with AuditedCluster(tmp_path_factory.mktemp("audited")) as cluster:
        yield cluster


@pytest.fixture
def proxy(cluster):
    with FaultProxy(cluster.url, cluster.ca_file, cluster.token) as proxy:
        yield proxy


@pytest.fixture
def world(cluster, proxy):
    world = World(cluster, proxy)
    world.start()
    yield world
    world.stop()


@pytest.fixture
def direct(cluster):
    """Without a proxy, which speaks HTTP/1.1."""
    world = World(cluster, cluster)
    world.start()
    yield world
    world.stop()


class World:
    """An operator and a cache behind a proxy, and three Echoes that are as asked for."""

    def __init__(self, cluster, proxy, user="admin", groups=("system:masters",)):
        self._cluster = cluster
        _, created = cluster.request("POST", "/api/v1/namespaces",
                                     {"metadata": {"generateName": "runtime-"}})
        self.namespace = created["metadata"]["name"]
        self.echoes = Echoes(cluster, self.namespace)
        self._told = []
        self._kubeconfig = cluster.kubeconfig_for(user, list(groups), server=proxy.url)

    def start(self):
        self._probe = Probe(self._kubeconfig)
        self._probe.__enter__()
        self._operator = self._probe.start("operate")
        self._follow = self._probe.start("follow", kind=CONFIG_MAP, namespace=self.namespace)
        for name, replicas in (("a", 3), ("b", 2), ("c", 1)):
            self.echoes.create(name, replicas)
        self.echoes.settle()
        wait_for(self._cache_is_right, what="a right cache")

    def stop(self):
        self._probe.stop(target=self._operator.number)
        self._operator.result()
        self._follow.cancel()
        self._probe.close()
        for name in list(self.echoes.wanted):  # no operator is left to take the finalizers off
            self._cluster.kubectl("patch", "-n", self.namespace, "echo", name, "--type=merge",
                                  "-p", '{"metadata":{"finalizers":null}}')

    def connections(self):
        process = pathlib.Path(f"/proc/{self._probe.pid}")
        rows = (process / "net/tcp").read_text().splitlines()[1:]
        of_tcp = {f"socket:[{row.split()[9]}]" for row in rows}
        return sum(os.readlink(file) in of_tcp for file in (process / "fd").iterdir())

    def disturb(self):
        """What users do meanwhile: one more, one less, one that changes."""
        self.echoes.create("d", 2)
        self.echoes.change("a", 4, "w")
        self.echoes.delete("c")

    def check(self, seconds=90, answers_lost=False):
        self.echoes.settle(seconds)
        wait_for(self._cache_is_right, seconds, what="a right cache")
        self._check_told()
        self._check_writes(answers_lost)

    def _fresh(self):
        _, found = self._cluster.request("GET",
                                         f"/api/v1/namespaces/{self.namespace}/configmaps")
        return {i["metadata"]["name"]: (i["metadata"]["uid"], i["metadata"]["resourceVersion"])
                for i in found["items"]}

    def _cache_is_right(self):
        held = self._probe.dump(target=self._follow.number)["items"]
        return {i["name"]: (i["uid"], i["version"]) for i in held} == self._fresh()

    def _check_told(self):
        """Each object came once, changed from the state told last, and went once."""
        self._told += [e for e in self._follow.events() if "synced" not in e]
        known = {}
        for event in self._told:
            before, after = event["before"], event["after"]
            name = (before or after)["name"]
            assert known.get(name) == (before and before["uid"]), event
            if after:
                known[name] = after["uid"]
            else:
                del known[name]
        assert known == {name: uid for name, (uid, _) in self._fresh().items()}

    def _check_writes(self, answers_lost):
        """Each thing is done, and done once.

        Of a request whose connection was lost the server may say that it failed though it was
        done, and an apply may be sent again, which changes nothing more. That everything was
        made, and once, is then known from the objects alone (`settle`, `_check_told`)."""
        writes = self._cluster.writes(self.namespace)
        done = collections.Counter((w.verb, w.name) for w in writes if w.resource == "configmaps")
        made = {("create", f"{e}-{i}") for e, n in (("a", 4), ("b", 2), ("c", 1), ("d", 2))
                for i in range(n)}
        changed = {("patch", f"a-{i}") for i in range(3)}
        wanted = collections.Counter(made | changed | {("delete", "c-0")})
        if answers_lost:
            assert done <= wanted + collections.Counter(changed), writes
        else:
            assert done == wanted, writes


def test_an_api_server_that_is_killed(world, cluster):
    cluster.kill_apiserver()
    cluster.start_apiserver()
    world.disturb()
    world.check()


def test_a_burst_of_writes_when_the_api_server_is_killed(direct, cluster):
    """So many at once share connections of HTTP/2; those that are lost with them are made later, once."""
    direct.echoes.create("burst", 400)
    wait_for(lambda: len(direct.echoes.children()) > 60, what="a burst")
    assert 1 < direct.connections() < 40, "each has a connection of its own"
    cluster.kill_apiserver()
    cluster.start_apiserver()
    direct.echoes.settle(120)
    made = collections.Counter(w.name for w in cluster.writes(direct.namespace)
                               if (w.verb, w.resource) == ("create", "configmaps"))
    assert max(made.values()) == 1, made


@pytest.fixture
def crowded(cluster):
    """As somebody whose requests have little room on the server, beside those that wait."""
    flow_control = "/apis/flowcontrol.apiserver.k8s.io/v1"
    everything = [{"subjects": [{"kind": "User", "user": {"name": "crowded"}}], "resourceRules": [
        {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"],
         "clusterScope": True}]}]
    queue = {"queues": 1, "handSize": 1, "queueLengthLimit": 40}
    for path, body in (
            ("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
             {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                          "name": "cluster-admin"},
              "subjects": [{"kind": "User", "name": "crowded"}]}),
            (f"{flow_control}/prioritylevelconfigurations",
             {"spec": {"type": "Limited", "limited": {
                 "nominalConcurrencyShares": 1, "borrowingLimitPercent": 0,
                 "limitResponse": {"type": "Queue", "queuing": queue}}}}),
            (f"{flow_control}/flowschemas",
             {"spec": {"matchingPrecedence": 100, "rules": everything,
                       "priorityLevelConfiguration": {"name": "crowded"}}})):
        status, answer = cluster.request("POST", path, {"metadata": {"name": "crowded"}} | body)
        assert status == 201, answer
    wait_for(lambda: "crowded" in cluster.request("GET", "/metrics")[1], what="the priority level")
    world = World(cluster, cluster, user="crowded", groups=())
    world.start()
    yield world
    world.stop()


def test_bursts_that_the_server_has_no_room_for(crowded, cluster):
    """What is put off is made later, and soon a burst is no larger than the server takes: after one,
    or two where the operator is slow, and so many of the first are served while others are sent."""
    put_off = []
    for name in ("first", "second", "third"):
        before = cluster.put_off(crowded.namespace)
        crowded.echoes.create(name, 300)
        crowded.echoes.settle(120)
        put_off.append(cluster.put_off(crowded.namespace) - before)
    assert put_off[0] > 20
    assert put_off[2] < put_off[0] / 4, put_off
    made = collections.Counter(w.name for w in cluster.writes(crowded.namespace)
                               if (w.verb, w.resource) == ("create", "configmaps"))
    assert max(made.values()) == 1, made


def test_an_api_server_that_stops_in_order(world, cluster):
    world.disturb()
    cluster.restart_apiserver()
    world.check()


def test_an_etcd_restart(world, cluster):
    cluster.restart_etcd()
    world.disturb()
    world.check()


def test_a_frozen_connection(world, proxy):
    proxy.freeze(new=False)
    world.disturb()
    world.check(seconds=240)


@pytest.mark.parametrize("reset", [False, True])
def test_lost_connections(world, proxy, reset):
    world.disturb()
    proxy.cut(reset=reset)
    world.check(answers_lost=True)


def test_streams_cut_within_a_line(world, proxy):
    proxy.truncate(150, watch=True, times=4)
    proxy.cut()
    world.disturb()
    world.check()


@pytest.mark.parametrize("as_event", [False, True])
def test_a_version_that_is_gone(world, proxy, as_event):
    if as_event:
        proxy.answer(200, error_event(410), watch=True, times=3)
    else:
        proxy.answer(410, watch=True, times=3)
    proxy.cut()
    world.disturb()
    world.check()


def test_a_real_410(world, cluster, proxy):
    """The server has forgotten what happened while we could not watch."""
    proxy.answer(503, watch=True, times=None)
    proxy.cut()
    world.disturb()
    cluster.compact_etcd()
    cluster.restart_apiserver()
    proxy.clear()
    world.check()


def test_too_many_requests(world, proxy):
    proxy.answer(429, retry_after=2, method="POST", times=3)
    proxy.answer(429, retry_after=2, method="PATCH", times=3)
    world.disturb()
    world.check()
    refused = [r.at for r in proxy.requests(status=429)]
    assert len(refused) == 6, "a refused request is not repeated before its time"
    first = min(refused)
    tried_again = [r.at for r in proxy.requests(method="POST") if r.at > first + 0.5]
    assert tried_again and min(tried_again) >= first + 1.9


def test_answers_that_get_lost(world, proxy):
    """The write took effect, and nobody told us."""
    proxy.drop_response(method="POST", path="*/configmaps", times=2)
    proxy.drop_response(method="DELETE", path="*/configmaps/*", times=1)
    world.disturb()
    world.check()
