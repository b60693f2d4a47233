"""Every verb of our client on a real kube-apiserver."""

import json
import time

import pytest

from conformance.probe import (CONFIG_MAP, DEPLOYMENT, JOB, NAMESPACE, POD, SERVICE, Probe,
                               ProbeError)


def config_map(namespace, name, labels=None, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"namespace": namespace, "name": name, "labels": labels or {}},
            "data": data}


def deployment(namespace, name, replicas=0):
    labels = {"app": name}
    return {"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"namespace": namespace, "name": name},
            "spec": {"replicas": replicas, "selector": {"matchLabels": labels},
                     "template": {"metadata": {"labels": labels},
                                  "spec": {"containers": [
                                      {"name": "main", "image": "a"},
                                      {"name": "side", "image": "b"}]}}}}


def job(namespace, name, **spec):
    return {"apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"namespace": namespace, "name": name},
            "spec": {"suspend": True, "template": {"spec": {
                "restartPolicy": "Never", "containers": [{"name": "main", "image": "a"}]}}} | spec}


def names(listed):
    return [item["metadata"]["name"] for item in listed["items"]]


# ---- reading and writing

def test_create_get_update_delete(probe, namespace):
    created = probe.create(kind=CONFIG_MAP, object=config_map(namespace, "a", text="öne\n\t\"x\""))
    assert created["data"] == {"text": "öne\n\t\"x\""}
    assert created["metadata"]["managedFields"][0]["manager"] == "grapnel"

    created["data"]["text"] = "two"
    updated = probe.update(kind=CONFIG_MAP, object=created)
    assert int(updated["metadata"]["resourceVersion"]) > int(created["metadata"]["resourceVersion"])

    found = probe.get(kind=CONFIG_MAP, namespace=namespace, name="a")
    assert found["data"] == {"text": "two"}

    gone = probe.delete(kind=CONFIG_MAP, namespace=namespace, name="a")
    assert gone["kind"] == "Status" and gone["status"] == "Success"
    with pytest.raises(ProbeError) as refused:
        probe.get(kind=CONFIG_MAP, namespace=namespace, name="a")
    assert (refused.value.reason, refused.value.code) == ("NotFound", 404)
    assert not refused.value.transient


def test_kinds_without_a_namespace(probe, namespace):
    found = probe.get(kind=NAMESPACE, name=namespace)
    assert found["metadata"]["name"] == namespace
    assert namespace in names(probe.list(kind=NAMESPACE))


def test_names_that_must_be_encoded(probe, namespace):
    role = ["rbac.authorization.k8s.io", "v1", "Role", "roles", True]
    name = "system:a b?c&d#e+f=g"
    probe.create(kind=role, object={"metadata": {"namespace": namespace, "name": name}})
    assert probe.get(kind=role, namespace=namespace, name=name)["metadata"]["name"] == name
    probe.delete(kind=role, namespace=namespace, name=name)


def test_large_numbers_survive(probe, namespace):
    lease = ["coordination.k8s.io", "v1", "Lease", "leases", True]
    created = probe.create(kind=lease, object={
        "metadata": {"namespace": namespace, "name": "a"},
        "spec": {"renewTime": "2026-11-15T08:26:26.123456Z", "leaseTransitions": 2147483647}})
    assert created["spec"]["renewTime"] == "2026-11-15T08:26:26.123456Z"
    assert created["spec"]["leaseTransitions"] == 2147483647


def test_a_large_object_goes_both_ways(probe, namespace):
    text = "abcdefghij" * 90_000  # 900 kB, near the limit of the API server
    probe.create(kind=CONFIG_MAP, object=config_map(namespace, "large", text=text))
    assert probe.get(kind=CONFIG_MAP, namespace=namespace, name="large")["data"]["text"] == text


def test_dry_run_changes_nothing(probe, namespace):
    probe.create(kind=CONFIG_MAP, object=config_map(namespace, "a", x="1"), dry_run=True)
    with pytest.raises(ProbeError, match="NotFound"):
        probe.get(kind=CONFIG_MAP, namespace=namespace, name="a")
    probe.create(kind=CONFIG_MAP, object=config_map(namespace, "a", x="1"))
    patched = probe.patch(kind=CONFIG_MAP, namespace=namespace, name="a", type="merge",
                          patch={"data": {"x": "2"}}, dry_run=True)
    assert patched["data"]["x"] == "2"
    probe.delete(kind=CONFIG_MAP, namespace=namespace, name="a", dry_run=True)
    assert probe.get(kind=CONFIG_MAP, namespace=namespace, name="a")["data"]["x"] == "1"


def test_field_validation(probe, namespace):
    odd = config_map(namespace, "odd") | {"unheard": 1}
    with pytest.raises(ProbeError, match="unknown field") as refused:
        probe.create(kind=CONFIG_MAP, object=odd, field_validation="Strict")
    assert refused.value.reason == "BadRequest"
    assert "unheard" not in probe.create(kind=CONFIG_MAP, object=odd, field_validation="Ignore")


# ---- patches

def test_merge_patch(probe, namespace):
    probe.create(kind=CONFIG_MAP, object=config_map(namespace, "a", x="1", y="1"))
    patched = probe.patch(kind=CONFIG_MAP, namespace=namespace, name="a", type="merge",
                          patch={"data": {"x": None, "z": "3"}}, field_manager="tester")
    assert patched["data"] == {"y": "1", "z": "3"}
    assert "tester" in [m["manager"] for m in patched["metadata"]["managedFields"]]


def test_merge_patch_with_a_stale_version_conflicts(probe, namespace):
    created = probe.create(kind=CONFIG_MAP, object=config_map(namespace, "a", x="1"))
    version = created["metadata"]["resourceVersion"]
    probe.patch(kind=CONFIG_MAP, namespace=namespace, name="a", patch={"data": {"x": "2"}})
    with pytest.raises(ProbeError) as refused:
        probe.patch(kind=CONFIG_MAP, namespace=namespace, name="a",
                    patch={"metadata": {"resourceVersion": version}, "data": {"x": "3"}})
    assert refused.value.reason == "Conflict"


def test_json_patch(probe, namespace):
    probe.create(kind=CONFIG_MAP, object=config_map(namespace, "a", x="1"))
    test_x = {"op": "test", "path": "/data/x", "value": "1"}
    set_x = {"op": "replace", "path": "/data/x", "value": "2"}
    where = {"kind": CONFIG_MAP, "namespace": namespace, "name": "a", "type": "json"}
    assert probe.patch(**where, patch=[test_x, set_x])["data"]["x"] == "2"
    with pytest.raises(ProbeError) as refused:
        probe.patch(**where, patch=[test_x, set_x])
    assert refused.value.reason == "Invalid"
    assert not refused.value.ambiguous


def test_strategic_merge_patch(probe, namespace):
    probe.create(kind=DEPLOYMENT, object=deployment(namespace, "a"))
    patched = probe.patch(
        kind=DEPLOYMENT, namespace=namespace, name="a", type="strategic",
        patch={"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "c"}]}}}})
    containers = patched["spec"]["template"]["spec"]["containers"]
    assert {c["name"]: c["image"] for c in containers} == {"main": "a", "side": "c"}


def test_apply(probe, namespace):
    where = {"kind": CONFIG_MAP, "namespace": namespace, "name": "a", "type": "apply"}
    wanted = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"},
              "data": {"x": "1", "y": "1"}}
    created = probe.patch(**where, patch=wanted, field_manager="one")
    assert created["metadata"]["managedFields"][0]["operation"] == "Apply"

    wanted["data"] = {"x": "2"}
    with pytest.raises(ProbeError) as refused:
        probe.patch(**where, patch=wanted, field_manager="two")
    assert refused.value.reason == "Conflict"
    assert [(c["reason"], c["field"]) for c in refused.value.causes] == [
        ("FieldManagerConflict", ".data.x")]

    taken = probe.patch(**where, patch=wanted, field_manager="two", force=True)
    assert taken["data"] == {"x": "2", "y": "1"}

    # What is no longer applied goes away.
    wanted["data"] = {}
    assert probe.patch(**where, patch=wanted, field_manager="one")["data"] == {"x": "2"}


def test_apply_with_a_uid_never_brings_an_object_back(probe, namespace):
    created = probe.create(kind=CONFIG_MAP, object=config_map(namespace, "a"))
    probe.delete(kind=CONFIG_MAP, namespace=namespace, name="a")
    with pytest.raises(ProbeError) as refused:
        probe.patch(kind=CONFIG_MAP, namespace=namespace, name="a", type="apply",
                    patch={"apiVersion": "v1", "kind": "ConfigMap",
                           "metadata": {"name": "a", "uid": created["metadata"]["uid"]}})
    assert refused.value.reason == "Conflict"


# ---- deletion

def test_delete_means_one_object(probe, namespace):
    first = probe.create(kind=CONFIG_MAP, object=config_map(namespace, "a", x="1"))
    where = {"kind": CONFIG_MAP, "namespace": namespace, "name": "a"}
    version = first["metadata"]["resourceVersion"]
    with pytest.raises(ProbeError) as refused:
        probe.delete(**where, uid="11111111-2222-3333-4444-555555555555")
    assert refused.value.reason == "Conflict"
    probe.patch(**where, patch={"data": {"x": "2"}})
    with pytest.raises(ProbeError, match="Conflict"):
        probe.delete(**where, uid=first["metadata"]["uid"], resource_version=version)
    probe.delete(**where, uid=first["metadata"]["uid"])


def test_propagation(probe, namespace):
    created = probe.create(kind=JOB, object=job(namespace, "a"))
    gone = probe.delete(kind=JOB, namespace=namespace, name="a", propagation="Orphan",
                        uid=created["metadata"]["uid"])
    assert gone["metadata"]["finalizers"] == ["orphan"]
    created = probe.create(kind=JOB, object=job(namespace, "b"))
    gone = probe.delete(kind=JOB, namespace=namespace, name="b", propagation="Foreground")
    assert "foregroundDeletion" in gone["metadata"]["finalizers"]


def test_grace_period(probe, namespace):
    pod = {"metadata": {"namespace": namespace, "name": "a"},
           "spec": {"containers": [{"name": "main", "image": "a"}], "nodeName": "nowhere"}}
    probe.create(kind=POD, object=pod)
    going = probe.delete(kind=POD, namespace=namespace, name="a", grace_seconds=600)
    assert going["metadata"]["deletionGracePeriodSeconds"] == 600
    probe.delete(kind=POD, namespace=namespace, name="a", grace_seconds=0)
    with pytest.raises(ProbeError, match="NotFound"):
        probe.get(kind=POD, namespace=namespace, name="a")


def test_delete_collection(probe, namespace):
    for i in range(4):
        probe.create(kind=CONFIG_MAP,
                     object=config_map(namespace, f"m-{i}", labels={"half": str(i % 2)}))
    probe.delete_collection(kind=CONFIG_MAP, namespace=namespace, label_selector="half=1")
    left = names(probe.list(kind=CONFIG_MAP, namespace=namespace, label_selector="half"))
    assert left == ["m-0", "m-2"]


# ---- lists

@pytest.fixture(scope="module")
def many(control_plane):
    """A namespace with 25 config maps."""
    _, created = control_plane.request("POST", "/api/v1/namespaces",
                                       {"metadata": {"generateName": "many-"}})
    namespace = created["metadata"]["name"]
    for i in range(25):
        status, _ = control_plane.request(
            "POST", f"/api/v1/namespaces/{namespace}/configmaps",
            config_map(namespace, f"m-{i:02}", labels={"third": str(i % 3)}))
        assert status == 201
    yield namespace
    control_plane.request("DELETE", f"/api/v1/namespaces/{namespace}")


def test_list_by_selectors(probe, many):
    def listed(**options):
        found = names(probe.list(kind=CONFIG_MAP, namespace=many, **options))
        return [name for name in found if name.startswith("m-")]
    assert len(listed()) == 25
    assert len(listed(label_selector="third in (0,1)")) == 17
    assert len(listed(label_selector="third,third!=0")) == 16
    assert listed(field_selector="metadata.name=m-03") == ["m-03"]
    assert listed(label_selector="third=0", field_selector="metadata.name!=m-00") == [
        f"m-{i:02}" for i in range(3, 25, 3)]


def test_list_over_all_namespaces(probe, many):
    everywhere = probe.list(kind=CONFIG_MAP, label_selector="third=2")
    assert {item["metadata"]["namespace"] for item in everywhere["items"]} == {many}


def test_list_in_pages(probe, many):
    pages, token = [], ""
    while True:
        page = probe.list(kind=CONFIG_MAP, namespace=many, label_selector="third", limit=10,
                          **{"continue": token})
        pages.append(names(page))
        token = page["metadata"].get("continue", "")
        if not token:
            break
    assert [len(page) for page in pages] == [10, 10, 5]
    assert sorted(sum(pages, [])) == [f"m-{i:02}" for i in range(25)]


def test_list_from_what_the_server_has_at_hand(probe, many):
    newest = probe.list(kind=CONFIG_MAP, namespace=many, label_selector="third")
    version = newest["metadata"]["resourceVersion"]
    for options in ({"resource_version": "0"},
                    {"resource_version": version, "resource_version_match": "NotOlderThan"},
                    {"resource_version": version, "resource_version_match": "Exact"}):
        again = probe.list(kind=CONFIG_MAP, namespace=many, label_selector="third", **options)
        assert names(again) == names(newest)


def test_list_as_a_stream(probe, many):
    text = probe.start("open_list", kind=CONFIG_MAP, namespace=many, label_selector="third").text()
    listed = json.loads(text)
    assert listed["kind"] == "ConfigMapList"
    assert names(listed) == names(probe.list(kind=CONFIG_MAP, namespace=many, label_selector="third"))


# ---- subresources

def test_status(probe, namespace):
    created = probe.create(kind=JOB, object=job(namespace, "a"))
    where = {"kind": JOB, "namespace": namespace, "name": "a", "subresource": "status"}
    condition = {"type": "Ours", "status": "True"}
    patched = probe.patch(**where, patch={"status": {"conditions": [condition]},
                                          "spec": {"parallelism": 7}})
    assert "Ours" in [c["type"] for c in patched["status"]["conditions"]]
    assert patched["spec"]["parallelism"] == 1, "a patch of the status leaves the spec alone"
    patched["status"]["conditions"] = []
    assert not probe.update(kind=JOB, object=patched,
                            subresource="status")["status"].get("conditions")
    assert probe.get(**where)["metadata"]["uid"] == created["metadata"]["uid"]


def test_scale(probe, namespace):
    probe.create(kind=DEPLOYMENT, object=deployment(namespace, "a"))
    where = {"kind": DEPLOYMENT, "namespace": namespace, "name": "a", "subresource": "scale"}
    scale = probe.get(**where)
    assert (scale["kind"], scale["spec"]) == ("Scale", {})
    assert probe.patch(**where, patch={"spec": {"replicas": 3}})["spec"]["replicas"] == 3
    scale = probe.get(**where)
    scale["spec"]["replicas"] = 2
    del scale["metadata"]["resourceVersion"]  # its controller writes as well
    assert probe.update(kind=DEPLOYMENT, object=scale, subresource="scale")["spec"]["replicas"] == 2
    assert probe.get(kind=DEPLOYMENT, namespace=namespace, name="a")["spec"]["replicas"] == 2


# ---- logs, exec and proxies

@pytest.fixture
def pod(control_plane, namespace):
    """A pod that runs, as pods on fake nodes do."""
    control_plane.request("POST", f"/api/v1/namespaces/{namespace}/pods", {
        "metadata": {"name": "a"}, "spec": {"containers": [{"name": "main", "image": "a"}]}})
    control_plane.kubectl("wait", "-n", namespace, "pod/a", "--for=condition=Ready",
                          "--timeout=60s")
    return "a"


def test_logs(probe, control_plane, namespace, pod):
    control_plane.log_from_pods("the first line")
    control_plane.log_from_pods(f"the last line of {namespace}")
    where = {"namespace": namespace, "name": pod}
    assert probe.start("logs", **where, container="main", tail_lines=1).text() == (
        f"the last line of {namespace}\n")
    stamped = probe.start("logs", **where, tail_lines=1, timestamps=True).text()
    assert stamped.endswith(f"Z the last line of {namespace}\n")


def test_following_logs(probe, control_plane, namespace, pod):
    control_plane.log_from_pods(f"{namespace} line 0")
    follow = probe.start("logs", namespace=namespace, name=pod, follow=True, tail_lines=1)
    text = ""
    for i in range(4):
        while f"{namespace} line {i}\n" not in text:
            text += follow.event().get("data", "")
        control_plane.log_from_pods(f"{namespace} line {i + 1}")
    follow.cancel()


def test_errors_of_logs(probe, namespace, pod):
    def refusal(**options):
        with pytest.raises(ProbeError) as refused:
            probe.start("logs", **({"namespace": namespace, "name": pod} | options)).text()
        return refused.value
    assert refusal(name="none").reason == "NotFound"
    wrong = refusal(container="none")
    assert wrong.reason == "BadRequest"
    assert "container none is not valid for pod a" in wrong.message


def test_exec(probe, namespace, pod):
    run = probe.start("exec", namespace=namespace, name=pod,
                      command=["sh", "-c", "echo out; echo err >&2; exit 3"])
    streams = {1: "", 2: "", 3: ""}
    while True:
        kind, value = run.next()
        if kind == "ok":
            break
        streams[value["channel"]] += value["data"]
    assert (streams[1], streams[2]) == ("out\n", "err\n")
    status = json.loads(streams[3])
    assert status["status"] == "Failure"
    assert "exit status 3" in status["message"]  # a kubelet would say NonZeroExitCode, kwok does not


def test_exec_in_a_pod_that_is_not(probe, namespace):
    with pytest.raises(ProbeError) as refused:
        probe.exec(namespace=namespace, name="none", command=["true"])
    assert (refused.value.reason, refused.value.code) == ("NotFound", 404)


def test_raw_paths(probe, namespace):
    assert json.loads(probe.raw(method="GET", path="/version")["body"])["minor"] == "33"
    assert probe.raw(method="GET", path="/readyz")["body"] == "ok"
    assert probe.raw(method="GET", path="/no/such/path")["status"] == 404


def test_service_proxy(probe, namespace):
    probe.create(kind=SERVICE, object={"metadata": {"namespace": namespace, "name": "s"},
                                       "spec": {"ports": [{"port": 80}],
                                                "selector": {"app": "none"}}})
    path = f"/api/v1/namespaces/{namespace}/services/http:s:80/proxy/api"
    deadline = time.monotonic() + 30
    while (answer := probe.raw(method="GET", path=path))["status"] == 404:
        assert time.monotonic() < deadline, "no controller made the endpoints of the service"
        time.sleep(0.1)
    assert answer["status"] == 503
    assert "no endpoints available" in json.loads(answer["body"])["message"]
