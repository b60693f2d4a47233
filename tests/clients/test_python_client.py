"""The official Python client, typed and dynamic, as programs use it."""

import threading

import pytest
from kubernetes import client, config, dynamic, watch
from kubernetes.client.rest import ApiException

from .kubectl import eventually
from .objects import config_map, definition, job, pod


@pytest.fixture
def api(kubeconfig):
    with config.new_client_from_config(kubeconfig) as connection:
        yield connection


@pytest.fixture
def core(api):
    return client.CoreV1Api(api)


def test_objects_come_back_as_they_went(core, namespace):
    made = core.create_namespaced_config_map(namespace, config_map("c", {"a": "1"}))
    assert made.metadata.uid and made.data == {"a": "1"}
    made.data["b"] = "2"
    changed = core.replace_namespaced_config_map("c", namespace, made)
    assert changed.data == {"a": "1", "b": "2"}
    with pytest.raises(ApiException) as refused:  # the version is old by now
        core.replace_namespaced_config_map("c", namespace, made)
    assert refused.value.status == 409
    patched = core.patch_namespaced_config_map("c", namespace, {"data": {"a": None}})
    assert patched.data == {"b": "2"}
    core.delete_namespaced_config_map("c", namespace)
    with pytest.raises(ApiException) as gone:
        core.read_namespaced_config_map("c", namespace)
    assert (gone.value.status, gone.value.reason) == (404, "Not Found")


def test_lists_page_by_page(core, namespace):
    for i in range(7):
        core.create_namespaced_config_map(namespace, config_map(f"c{i}", labels={"t": "1"}))
    names, token = [], None
    while True:
        page = core.list_namespaced_config_map(namespace, label_selector="t=1", limit=3,
                                               _continue=token)
        names += [item.metadata.name for item in page.items]
        token = page.metadata._continue
        if not token:
            break
    assert names == [f"c{i}" for i in range(7)]


def test_watch_from_a_list_on(core, namespace):
    version = core.list_namespaced_config_map(namespace).metadata.resource_version
    core.create_namespaced_config_map(namespace, config_map("a"))
    core.patch_namespaced_config_map("a", namespace, {"data": {"x": "1"}})
    core.delete_namespaced_config_map("a", namespace)
    seen = []
    stream = watch.Watch()
    for event in stream.stream(core.list_namespaced_config_map, namespace,
                               resource_version=version, timeout_seconds=20):
        if event["object"].metadata.name != "a":
            continue
        seen.append(event["type"])
        if event["type"] == "DELETED":
            stream.stop()
    assert seen == ["ADDED", "MODIFIED", "DELETED"]


def test_job_runs_and_its_log_can_be_read(api, core, namespace):
    batch = client.BatchV1Api(api)
    batch.create_namespaced_job(namespace, job("j", "echo hello; sleep 0.2"))
    eventually(lambda: batch.read_namespaced_job_status("j", namespace).status.succeeded == 1)
    pods = core.list_namespaced_pod(namespace, label_selector="job-name=j").items
    assert len(pods) == 1 and pods[0].status.phase == "Succeeded"
    assert core.read_namespaced_pod_log(pods[0].metadata.name, namespace) == "hello\n"
    batch.delete_namespaced_job("j", namespace, propagation_policy="Background")
    eventually(lambda: not core.list_namespaced_pod(namespace).items)


def test_deployment_is_scaled(api, namespace):
    apps = client.AppsV1Api(api)
    apps.create_namespaced_deployment(namespace, {
        "metadata": {"name": "d"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "d"}},
                 "template": {"metadata": {"labels": {"app": "d"}}, "spec": pod("p")["spec"] | {
                     "restartPolicy": "Always"}}}})
    apps.patch_namespaced_deployment_scale("d", namespace, {"spec": {"replicas": 2}})
    eventually(lambda: apps.read_namespaced_deployment_status(
        "d", namespace).status.available_replicas == 2)


def test_access_reviews(api):
    review = client.AuthorizationV1Api(api).create_self_subject_access_review(
        {"spec": {"resourceAttributes": {"verb": "create", "resource": "pods"}}})
    assert review.status.allowed


def test_dynamic_client_and_custom_resources(api, namespace):
    kind, plural = "Thing", f"things{namespace[5:]}"
    extensions = client.ApiextensionsV1Api(api)
    crd = definition(plural, kind, group=f"{namespace}.example.org")
    extensions.create_custom_resource_definition(crd)
    try:
        things = eventually(lambda: find_resource(api, f"{namespace}.example.org/v1", kind))
        made = things.create(namespace=namespace, body={
            "apiVersion": f"{namespace}.example.org/v1", "kind": kind, "metadata": {"name": "t"},
            "spec": {"color": "red"}})
        assert made.spec.size == 3
        applied = things.server_side_apply(namespace=namespace, field_manager="py", body={
            "apiVersion": f"{namespace}.example.org/v1", "kind": kind, "metadata": {"name": "t"},
            "spec": {"size": 5}}, force_conflicts=True)
        assert (applied.spec.size, applied.spec.color) == (5, "red")
        assert [item.metadata.name for item in things.get(namespace=namespace).items] == ["t"]
    finally:
        extensions.delete_custom_resource_definition(crd["metadata"]["name"])
    eventually(lambda: crd["metadata"]["name"] not in [
        one.metadata.name for one in extensions.list_custom_resource_definition().items])


def find_resource(api, version, kind):
    try:
        return dynamic.DynamicClient(api).resources.get(api_version=version, kind=kind)
    except dynamic.exceptions.ResourceNotFoundError:
        return None


def test_many_writers_none_is_lost(core, namespace):
    core.create_namespaced_config_map(namespace, config_map("counter", {"n": "0"}))

    def add_ten():
        for _ in range(10):
            while True:
                now = core.read_namespaced_config_map("counter", namespace)
                now.data["n"] = str(int(now.data["n"]) + 1)
                try:
                    core.replace_namespaced_config_map("counter", namespace, now)
                    break
                except ApiException as refused:
                    assert refused.status == 409

    writers = [threading.Thread(target=add_ten) for _ in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert core.read_namespaced_config_map("counter", namespace).data == {"n": "40"}
