"""Watches of our client on a real kube-apiserver: the lines, and the ways in which they end."""

import time

import pytest

from conformance.probe import CONFIG_MAP, ProbeError
from conformance.test_verbs import config_map


@pytest.fixture
def version(probe, namespace):
    """A resource version to watch from."""
    return probe.list(kind=CONFIG_MAP, namespace=namespace)["metadata"]["resourceVersion"]


def short(event):
    return event["type"], event["object"]["metadata"]["name"]


def test_events_in_order(probe, namespace, version):
    watch = probe.start("watch", kind=CONFIG_MAP, namespace=namespace, resource_version=version,
                        label_selector="mine")
    assert watch.event() == {"open": True}
    probe.create(kind=CONFIG_MAP, object=config_map(namespace, "a", {"mine": "yes"}, x="1"))
    probe.create(kind=CONFIG_MAP, object=config_map(namespace, "b"))
    probe.patch(kind=CONFIG_MAP, namespace=namespace, name="a", patch={"data": {"x": "2"}})
    probe.patch(kind=CONFIG_MAP, namespace=namespace, name="b",
                patch={"metadata": {"labels": {"mine": "yes"}}})
    probe.delete(kind=CONFIG_MAP, namespace=namespace, name="a")
    lines = watch.lines()
    assert [short(next(lines)) for _ in range(4)] == [
        ("ADDED", "a"), ("MODIFIED", "a"), ("ADDED", "b"), ("DELETED", "a")]
    watch.cancel()


def test_resuming_misses_nothing(probe, namespace, version):
    for i in range(3):
        probe.create(kind=CONFIG_MAP, object=config_map(namespace, f"m-{i}", {"mine": "yes"}))
    watch = probe.start("watch", kind=CONFIG_MAP, namespace=namespace, resource_version=version,
                        label_selector="mine", timeout=5)
    lines = watch.lines()
    first = next(lines)
    watch.cancel()
    rest = probe.start("watch", kind=CONFIG_MAP, namespace=namespace, label_selector="mine",
                       resource_version=first["object"]["metadata"]["resourceVersion"], timeout=5)
    lines = rest.lines()
    assert [short(first), short(next(lines)), short(next(lines))] == [
        ("ADDED", "m-0"), ("ADDED", "m-1"), ("ADDED", "m-2")]
    rest.cancel()


def test_the_server_ends_it_after_the_time_asked_for(probe, namespace, version):
    probe.create(kind=CONFIG_MAP, object=config_map(namespace, "a", {"mine": "yes"}))
    begin = time.monotonic()
    watch = probe.start("watch", kind=CONFIG_MAP, namespace=namespace, resource_version=version,
                        label_selector="mine", timeout=1)
    events = [event for event in watch.lines() if event["type"] != "BOOKMARK"]
    assert [short(event) for event in events] == [("ADDED", "a")]
    assert 0.9 < time.monotonic() - begin < 30


def test_a_bookmark_comes_before_the_end(probe, namespace, version):
    probe.create(kind=CONFIG_MAP, object=config_map(namespace, "a"))
    bookmarks = []
    for _ in range(5):  # the server plans it for two seconds before the end; a busy one can miss that
        watch = probe.start("watch", kind=CONFIG_MAP, namespace=namespace, resource_version=version,
                            field_selector="metadata.name=none", timeout=4)
        if bookmarks := list(watch.lines()):
            break
    assert bookmarks and bookmarks[-1]["type"] == "BOOKMARK"
    assert int(bookmarks[-1]["object"]["metadata"]["resourceVersion"]) > int(version)


def test_a_refused_watch(probe, namespace):
    with pytest.raises(ProbeError) as refused:
        probe.watch(kind=CONFIG_MAP, namespace=namespace, label_selector="a in (")
    assert refused.value.reason == "BadRequest"
    unknown = ["example.com", "v1", "Thing", "things", True]
    with pytest.raises(ProbeError) as refused:
        probe.watch(kind=unknown, namespace=namespace)
    assert refused.value.reason == "NotFound"


def test_initial_events_are_sent_or_refused(probe, namespace):
    """Servers that have watch-list off say Invalid at once; none may leave us hanging."""
    probe.create(kind=CONFIG_MAP, object=config_map(namespace, "a"))
    watch = probe.start("watch", kind=CONFIG_MAP, namespace=namespace, send_initial_events=True,
                        timeout=5)
    try:
        for event in watch.lines():
            annotations = event["object"]["metadata"].get("annotations", {})
            if annotations.get("k8s.io/initial-events-end") == "true":
                break
        else:
            pytest.fail("the end of the initial events was not marked")
        watch.cancel()
    except ProbeError as refused:
        assert refused.reason == "Invalid"
        assert "sendInitialEvents" in refused.message


def test_gone_inside_the_stream(proxied, fault_proxy, namespace):
    fault_proxy.answer(200, '{"type":"ERROR","object":{"kind":"Status","code":410}}\n', watch=True)
    watch = proxied.start("watch", kind=CONFIG_MAP, namespace=namespace, resource_version="1")
    assert [event["object"]["code"] for event in watch.lines()] == [410]


def test_gone_as_an_answer(proxied, fault_proxy, namespace):
    fault_proxy.answer(410, watch=True)
    with pytest.raises(ProbeError) as refused:
        proxied.watch(kind=CONFIG_MAP, namespace=namespace, resource_version="1")
    assert (refused.value.reason, refused.value.code) == ("Expired", 410)


def test_a_stream_cut_short_is_an_error(proxied, fault_proxy, namespace):
    fault_proxy.truncate(100, watch=True)
    watch = proxied.start("watch", kind=CONFIG_MAP, namespace=namespace, timeout=20)
    proxied.create(kind=CONFIG_MAP, object=config_map(namespace, "a", text="x" * 1000))
    with pytest.raises(ProbeError) as broken:
        list(watch.lines())
    assert broken.value.reason == "Transport"
    assert broken.value.transient


@pytest.mark.parametrize("reset", [False, True])
def test_a_lost_connection_is_an_error(proxied, fault_proxy, namespace, reset):
    watch = proxied.start("watch", kind=CONFIG_MAP, namespace=namespace, timeout=20)
    assert watch.event() == {"open": True}
    fault_proxy.cut(reset=reset)
    with pytest.raises(ProbeError, match="Transport"):
        list(watch.lines())


def test_a_silent_connection_counts_as_dead(proxied, fault_proxy, namespace):
    watch = proxied.start("watch", kind=CONFIG_MAP, namespace=namespace, timeout=300,
                          idle_timeout=2)
    assert watch.event() == {"open": True}
    fault_proxy.freeze()
    with pytest.raises(ProbeError) as dead:
        watch.result(timeout=30)
    assert dead.value.transient
    fault_proxy.thaw()
