"""Refusals and failures as typed errors, on a real kube-apiserver and through the fault proxy."""

import pytest

from conformance.probe import CONFIG_MAP, JOB, POD, Probe, ProbeError
from conformance.test_verbs import config_map, job


def refusal(call, **arguments):
    with pytest.raises(ProbeError) as refused:
        call(**arguments)
    return refused.value


# ---- by the API server itself

def test_not_found(probe, namespace):
    error = refusal(probe.get, kind=POD, namespace=namespace, name="none")
    assert (error.reason, error.code) == ("NotFound", 404)
    assert error.message == 'pods "none" not found'
    assert refusal(probe.list, kind=["example.com", "v1", "Thing", "things", True]).code == 404


def test_already_exists(probe, namespace):
    probe.create(kind=CONFIG_MAP, object=config_map(namespace, "a"))
    error = refusal(probe.create, kind=CONFIG_MAP, object=config_map(namespace, "a"))
    assert (error.reason, error.code, error.ambiguous) == ("AlreadyExists", 409, False)


def test_conflict(probe, namespace):
    stale = probe.create(kind=CONFIG_MAP, object=config_map(namespace, "a"))
    probe.patch(kind=CONFIG_MAP, namespace=namespace, name="a", patch={"data": {"x": "1"}})
    error = refusal(probe.update, kind=CONFIG_MAP, object=stale)
    assert (error.reason, error.code, error.transient) == ("Conflict", 409, False)


def test_invalid_names_every_field(probe, namespace):
    error = refusal(probe.create, kind=JOB,
                    object=job(namespace, "a", parallelism=-1, completions=-2))
    assert (error.reason, error.code) == ("Invalid", 422)
    causes = {cause["field"]: cause for cause in error.causes}
    assert {"spec.parallelism", "spec.completions"} <= causes.keys()
    assert causes["spec.parallelism"]["reason"] == "FieldValueInvalid"
    assert "must be greater than or equal to 0" in causes["spec.parallelism"]["message"]


def test_forbidden(control_plane, namespace):
    with Probe(control_plane.kubeconfig_for("alice")) as alice:
        error = refusal(alice.list, kind=POD, namespace=namespace)
    assert (error.reason, error.code) == ("Forbidden", 403)
    assert 'User "alice" cannot list resource "pods"' in error.message


def test_a_client_certificate_is_an_identity(control_plane, namespace):
    control_plane.request("POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/"
                          f"{namespace}/rolebindings", {
                              "metadata": {"name": "readers"},
                              "roleRef": {"apiGroup": "rbac.authorization.k8s.io",
                                          "kind": "ClusterRole", "name": "view"},
                              "subjects": [{"kind": "Group", "name": "readers",
                                            "apiGroup": "rbac.authorization.k8s.io"}]})
    with Probe(control_plane.kubeconfig_for("carol", ["readers"])) as carol:
        assert carol.list(kind=POD, namespace=namespace)["items"] == []
        error = refusal(carol.create, kind=CONFIG_MAP, object=config_map(namespace, "a"))
    assert error.reason == "Forbidden"
    assert 'User "carol" cannot create' in error.message


def test_a_wrong_token(control_plane, tmp_path):
    wrong = tmp_path / "config"
    wrong.write_text(f"""
current-context: c
clusters: [{{name: k, cluster: {{server: "{control_plane.url}",
                                certificate-authority: "{control_plane.ca_file}"}}}}]
users: [{{name: u, user: {{token: wrong}}}}]
contexts: [{{name: c, context: {{cluster: k, user: u}}}}]
""")
    with Probe(wrong) as stranger:
        error = refusal(stranger.list, kind=POD)
    assert (error.reason, error.code) == ("Unauthorized", 401)


def test_a_server_that_is_not_trusted(control_plane, tmp_path):
    text = control_plane.kubeconfig.read_text()
    without_authority = "\n".join(line for line in text.splitlines()
                                  if "certificate-authority" not in line)
    config = tmp_path / "config"
    config.write_text(without_authority)
    with Probe(config) as probe:
        error = refusal(probe.list, kind=POD)
    assert error.reason == "Transport"
    assert "certificate" in error.message.lower()


def test_a_method_that_is_not_allowed(probe, namespace):
    error = refusal(probe.delete_collection, kind=["", "v1", "Namespace", "namespaces", False])
    assert (error.reason, error.code) == ("MethodNotAllowed", 405)


def test_a_patch_type_the_kind_does_not_take(probe, control_plane, namespace):
    control_plane.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
        "metadata": {"name": "things.conformance.example.com"},
        "spec": {"group": "conformance.example.com", "scope": "Namespaced",
                 "names": {"plural": "things", "kind": "Thing"},
                 "versions": [{"name": "v1", "served": True, "storage": True, "schema": {
                     "openAPIV3Schema": {"type": "object",
                                         "x-kubernetes-preserve-unknown-fields": True}}}]}})
    control_plane.kubectl("wait", "crd/things.conformance.example.com",
                          "--for=condition=Established", "--timeout=60s")
    thing = ["conformance.example.com", "v1", "Thing", "things", True]
    probe.create(kind=thing, object={"apiVersion": "conformance.example.com/v1", "kind": "Thing",
                                     "metadata": {"namespace": namespace, "name": "a"}})
    error = refusal(probe.patch, kind=thing, namespace=namespace, name="a", type="strategic",
                    patch={"spec": {}})
    assert (error.reason, error.code) == ("UnsupportedMediaType", 415)


def test_too_large(probe, namespace):
    error = refusal(probe.create, kind=CONFIG_MAP,
                    object=config_map(namespace, "a", text="x" * 4_000_000))
    assert (error.reason, error.code) == ("RequestEntityTooLarge", 413)
    assert not error.transient


def test_a_continue_token_that_has_expired(probe, control_plane, namespace):
    for i in range(3):
        probe.create(kind=CONFIG_MAP, object=config_map(namespace, f"m-{i}"))
    page = probe.list(kind=CONFIG_MAP, namespace=namespace, limit=1)
    probe.create(kind=CONFIG_MAP, object=config_map(namespace, "later"))
    control_plane.compact_etcd()
    error = refusal(probe.list, kind=CONFIG_MAP, namespace=namespace, limit=1,
                    **{"continue": page["metadata"]["continue"]})
    assert (error.reason, error.code) == ("Expired", 410)


def test_a_resource_version_of_the_future(probe, namespace):
    error = refusal(probe.list, kind=CONFIG_MAP, namespace=namespace,
                    resource_version="999999999", resource_version_match="NotOlderThan")
    assert (error.reason, error.code, error.transient) == ("Timeout", 504, True)
    assert error.retry_after == 1
    assert [cause["reason"] for cause in error.causes] == ["ResourceVersionTooLarge"]
    assert not error.ambiguous, "a read changes nothing"


# ---- through the fault proxy

def test_too_many_requests(proxied, fault_proxy, namespace):
    fault_proxy.answer(429, retry_after=7, method="POST")
    error = refusal(proxied.create, kind=CONFIG_MAP, object=config_map(namespace, "a"))
    assert (error.reason, error.code, error.retry_after) == ("TooManyRequests", 429, 7)
    assert error.transient and not error.ambiguous
    assert len(fault_proxy.requests(method="POST")) == 1, "the client itself repeats nothing"


@pytest.mark.parametrize("code, reason", [(500, "InternalError"), (503, "ServiceUnavailable"),
                                          (504, "Timeout")])
def test_failures_of_the_server(proxied, fault_proxy, namespace, code, reason):
    fault_proxy.answer(code, times=2)
    write = refusal(proxied.create, kind=CONFIG_MAP, object=config_map(namespace, "a"))
    assert (write.reason, write.code, write.transient, write.ambiguous) == (
        reason, code, True, True)
    read = refusal(proxied.get, kind=CONFIG_MAP, namespace=namespace, name="a")
    assert (read.reason, read.ambiguous) == (reason, False)


def test_the_page_of_a_gateway(proxied, fault_proxy, namespace):
    fault_proxy.answer(502, "<html><h1>Bad Gateway</h1></html>",
                       headers={"Content-Type": "text/html"})
    error = refusal(proxied.get, kind=CONFIG_MAP, namespace=namespace, name="a")
    assert (error.reason, error.transient) == ("ServiceUnavailable", True)
    assert "Bad Gateway" in error.message


def test_an_answer_that_is_not_json(proxied, fault_proxy, namespace):
    fault_proxy.answer(200, "<html>log in</html>", times=2)
    assert refusal(proxied.get, kind=CONFIG_MAP, namespace=namespace, name="a").reason == "Decode"
    write = refusal(proxied.create, kind=CONFIG_MAP, object=config_map(namespace, "a"))
    assert (write.reason, write.ambiguous) == ("Decode", True)


def test_a_write_whose_answer_is_lost(proxied, probe, fault_proxy, namespace):
    fault_proxy.drop_response(method="POST")
    error = refusal(proxied.create, kind=CONFIG_MAP, object=config_map(namespace, "a"))
    assert (error.reason, error.ambiguous) == ("Transport", True)
    assert probe.get(kind=CONFIG_MAP, namespace=namespace, name="a"), "it has taken effect"
    assert len(fault_proxy.requests(method="POST")) == 1


def test_a_write_whose_answer_is_cut_short(proxied, probe, fault_proxy, namespace):
    fault_proxy.truncate(20, method="POST")
    error = refusal(proxied.create, kind=CONFIG_MAP, object=config_map(namespace, "a"))
    assert (error.reason, error.ambiguous) == ("Transport", True)
    assert probe.get(kind=CONFIG_MAP, namespace=namespace, name="a")


def test_a_list_cut_short(proxied, probe, fault_proxy, namespace):
    for i in range(5):
        probe.create(kind=CONFIG_MAP, object=config_map(namespace, f"m-{i}", text="x" * 1000))
    for after in (1, 500, 2500):
        fault_proxy.truncate(after, times=2, method="GET")
        error = refusal(proxied.list, kind=CONFIG_MAP, namespace=namespace)
        assert (error.reason, error.ambiguous) == ("Transport", False)
        with pytest.raises(ProbeError, match="Transport"):
            proxied.start("open_list", kind=CONFIG_MAP, namespace=namespace).text()


def test_no_answer_in_time(control_plane, fault_proxy, namespace):
    config = control_plane.kubeconfig_for("admin", ["system:masters"], server=fault_proxy.url)
    with Probe(config, timeout=3) as probe:
        fault_proxy.delay(30, times=2)
        read = refusal(probe.get, kind=CONFIG_MAP, namespace=namespace, name="a")
        assert (read.reason, read.transient, read.ambiguous) == ("Transport", True, False)
        write = refusal(probe.create, kind=CONFIG_MAP, object=config_map(namespace, "a"))
        assert (write.reason, write.transient, write.ambiguous) == ("Transport", True, True)
        assert refusal(probe.get, kind=POD, namespace=namespace, name="a").reason == "NotFound"


def test_nobody_listens(control_plane):
    config = control_plane.kubeconfig_for("admin", ["system:masters"],
                                          server="http://127.0.0.1:1")
    with Probe(config) as probe:
        error = refusal(probe.create, kind=CONFIG_MAP, object=config_map("default", "a"))
    assert (error.reason, error.transient) == ("Transport", True)
    assert not error.ambiguous, "nothing has been sent"


def test_a_cancelled_request_is_gone(proxied, fault_proxy, namespace):
    fault_proxy.delay(30)
    slow = proxied.start("get", kind=CONFIG_MAP, namespace=namespace, name="a")
    fault_proxy.wait_for(method="GET")
    slow.cancel()
    error = refusal(proxied.get, kind=CONFIG_MAP, namespace=namespace, name="a")
    assert error.reason == "NotFound", "others go on"


def test_many_at_once(probe, namespace):
    commands = [probe.start("create", kind=CONFIG_MAP, object=config_map(namespace, f"m-{i}"))
                for i in range(200)]
    assert len({c.result()["metadata"]["uid"] for c in commands}) == 200
    watches = [probe.start("watch", kind=CONFIG_MAP, namespace=namespace) for _ in range(50)]
    for watch in watches:
        assert watch.event() == {"open": True}
    listed = probe.list(kind=CONFIG_MAP, namespace=namespace)
    assert len([i for i in listed["items"] if i["metadata"]["name"].startswith("m-")]) == 200
