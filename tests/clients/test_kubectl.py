"""What a user does with kubectl, and what the answer looks like on any Kubernetes."""

import json
import re
import stat
import time

import pytest
import yaml

from .kubectl import eventually
from .objects import config_map, definition, deployment, job, owned, pod


@pytest.fixture
def widgets(kubectl):
    """A definition with columns and subresources; its plural name."""
    plural = f"widgets{kubectl.namespace[5:]}"
    group = f"{kubectl.namespace}.example.com"
    kubectl.apply(definition(plural, "Widget", group=group,
                             subresources={"status": {}, "scale": {
                                 "specReplicasPath": ".spec.size",
                                 "statusReplicasPath": ".status.size"}},
                             additionalPrinterColumns=[
                                 {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                                 {"name": "Color", "type": "string", "jsonPath": ".spec.color",
                                  "priority": 1}]))
    kubectl("wait", "--for=condition=Established", f"crd/{plural}.{group}", "--timeout=10s")
    yield f"{plural}.{group}"
    kubectl("delete", "crd", f"{plural}.{group}", "--timeout=20s")


def widget(widgets, name, **spec):
    return {"apiVersion": widgets.split(".", 1)[1] + "/v1", "kind": "Widget",
            "metadata": {"name": name}, "spec": spec}


class TestCreate:
    def test_typed_commands(self, kubectl):
        """These send protobuf bodies."""
        kubectl("create", "configmap", "c", "--from-literal=a=1")
        kubectl("create", "secret", "generic", "s", "--from-literal=password=x")
        kubectl("create", "serviceaccount", "robot")
        kubectl("create", "service", "clusterip", "web", "--tcp=80:8080")
        kubectl("create", "quota", "q", "--hard=configmaps=100")
        kubectl("create", "role", "reader", "--verb=get", "--resource=pods")
        kubectl("create", "rolebinding", "robots", "--role=reader", "--serviceaccount=default:robot")
        kubectl("create", "priorityclass", f"p-{kubectl.namespace}", "--value=10")
        kubectl("create", "job", "j", "--image=host", "--", "true")
        kubectl("create", "cronjob", "cj", "--image=host", "--schedule=0 0 1 1 *", "--", "true")
        kubectl("create", "deployment", "d", "--image=host", "--replicas=0", "--", "true")
        assert kubectl.get("configmap", "c")["data"] == {"a": "1"}
        assert kubectl.get("secret", "s")["data"] == {"password": "eA=="}
        assert kubectl.get("service", "web")["spec"]["ports"][0]["targetPort"] == 8080
        assert kubectl.get("deployment", "d")["spec"]["replicas"] == 0
        kubectl("delete", "priorityclass", f"p-{kubectl.namespace}")

    def test_namespace_has_an_account_and_the_root_certificate(self, kubectl):
        eventually(lambda: kubectl.names("serviceaccount") == ["serviceaccount/default"])
        ca = eventually(lambda: kubectl("get", "configmap", "--ignore-not-found",
                                        "kube-root-ca.crt", "-o", "jsonpath={.data.ca\\.crt}"))
        assert ca.startswith("-----BEGIN CERTIFICATE-----")

    def test_twice_is_refused(self, kubectl):
        kubectl("create", "configmap", "c")
        assert kubectl.refusal("create", "configmap", "c") == (
            'error: failed to create configmap: configmaps "c" already exists\n')

    def test_from_a_file_with_an_unknown_field(self, kubectl):
        bad = json.dumps({**config_map("c"), "dataa": {}})
        assert 'strict decoding error: unknown field "dataa"' in kubectl.refusal(
            "create", "-f", "-", input=bad)
        kubectl("create", "--validate=false", "-f", "-", input=bad)

    def test_run_and_expose(self, kubectl):
        kubectl("run", "p", "--image=host", "--restart=Never", "--port=80", "--", "true")
        kubectl("expose", "pod", "p", "--port=80")
        assert kubectl.get("service", "p")["spec"]["selector"] == {"run": "p"}


class TestApply:
    def test_three_way(self, kubectl):
        assert kubectl.apply(config_map("c", {"a": "1", "b": "2"})) == "configmap/c created\n"
        assert kubectl.apply(config_map("c", {"a": "1", "b": "2"})) == "configmap/c unchanged\n"
        kubectl("patch", "configmap", "c", "--type=merge", "-p", '{"data":{"mine":"x"}}')
        assert kubectl.apply(config_map("c", {"a": "2"})) == "configmap/c configured\n"
        assert kubectl.get("configmap", "c")["data"] == {"a": "2", "mine": "x"}

    def test_lists_merge_by_key(self, kubectl):
        first = deployment("d", replicas=0)
        kubectl.apply(first)
        kubectl("patch", "deployment", "d", "-p", json.dumps({"spec": {"template": {"spec": {
            "containers": [{"name": "side", "image": "x"}]}}}}))
        first["spec"]["template"]["spec"]["containers"][0]["image"] = "other"
        kubectl.apply(first)
        containers = kubectl.get("deployment", "d")["spec"]["template"]["spec"]["containers"]
        assert {c["name"]: c["image"] for c in containers} == {"main": "other", "side": "x"}

    def test_server_side(self, kubectl):
        flags = ["--server-side", "--field-manager=one"]
        assert kubectl.apply(config_map("c", {"a": "1"}), flags=flags) == (
            "configmap/c serverside-applied\n")
        other = kubectl.run("apply", "--server-side", "--field-manager=two", "-f", "-",
                            input=json.dumps(config_map("c", {"a": "2"})))
        assert other.returncode == 1
        assert 'Apply failed with 1 conflict: conflict with "one": .data.a' in other.stderr
        kubectl.apply(config_map("c", {"a": "2"}),
                      flags=["--server-side", "--field-manager=two", "--force-conflicts"])
        kubectl.apply(config_map("c"), flags=flags)
        assert kubectl.get("configmap", "c")["data"] == {"a": "2"}
        managers = kubectl.get("configmap", "c", "--show-managed-fields")["metadata"]["managedFields"]
        assert ("two", "Apply") in {(m["manager"], m["operation"]) for m in managers}

    def test_server_side_after_client_side(self, kubectl):
        kubectl.apply(config_map("c", {"a": "1", "b": "1"}))
        kubectl.apply(config_map("c", {"a": "2"}), flags=["--server-side"])
        assert kubectl.get("configmap", "c")["data"] == {"a": "2"}

    def test_prune(self, kubectl):
        labels = {"set": "one"}
        kubectl.apply(config_map("a", labels=labels), config_map("b", labels=labels))
        kubectl.apply(config_map("a", labels=labels),
                      flags=["--prune", "-l", "set=one", "--prune-allowlist=core/v1/ConfigMap"])
        assert kubectl.names("configmap", "-l", "set=one") == ["configmap/a"]

    def test_custom_resource(self, kubectl, widgets):
        kubectl.apply(widget(widgets, "w", color="red"))
        assert kubectl.get(widgets, "w")["spec"] == {"color": "red", "size": 3}
        kubectl.apply(widget(widgets, "w", size=4))
        assert kubectl.get(widgets, "w")["spec"] == {"size": 4}
        kubectl.apply(widget(widgets, "w", size=5), flags=["--server-side"])
        assert kubectl.get(widgets, "w")["metadata"]["generation"] == 3

    def test_diff(self, kubectl):
        kubectl.apply(config_map("c", {"a": "1"}))
        same = kubectl.run("diff", "-f", "-", input=json.dumps(config_map("c", {"a": "1"})))
        assert (same.returncode, same.stdout) == (0, "")
        other = kubectl.run("diff", "-f", "-", input=json.dumps(config_map("c", {"a": "2"})))
        assert other.returncode == 1, other.stderr
        assert '-  a: "1"' in other.stdout and '+  a: "2"' in other.stdout
        assert kubectl.get("configmap", "c")["data"] == {"a": "1"}
        server = kubectl.run("diff", "--server-side", "-f", "-",
                             input=json.dumps(config_map("new", {"a": "2"})))
        assert server.returncode == 1, server.stderr


class TestGet:
    def test_columns(self, kubectl):
        kubectl.apply(pod("p"), deployment("d", replicas=1), job("j", "true"))
        kubectl("wait", "pod/p", "--for=condition=Ready", "--timeout=30s")
        head, row = kubectl("get", "pod", "p").splitlines()
        assert head.split() == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
        assert row.split()[:4] == ["p", "1/1", "Running", "0"]
        head, row = kubectl("get", "pod", "p", "-o", "wide").splitlines()
        assert head.split()[5:] == ["IP", "NODE", "NOMINATED", "NODE", "READINESS", "GATES"]
        assert re.fullmatch(r"\d+\.\d+\.\d+\.\d+", row.split()[5])
        assert kubectl("get", "deployment").splitlines()[0].split() == [
            "NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]
        assert kubectl("get", "job").splitlines()[0].split() == [
            "NAME", "STATUS", "COMPLETIONS", "DURATION", "AGE"]
        assert "pod/p" in kubectl("get", "all")

    def test_outputs(self, kubectl):
        kubectl.apply(config_map("a", {"x": "1"}, labels={"app": "one"}), config_map("b"))
        assert yaml.safe_load(kubectl("get", "cm", "a", "-o", "yaml"))["data"] == {"x": "1"}
        assert kubectl("get", "cm", "a", "b", "-o", "jsonpath={.items[*].metadata.name}") == "a b"
        assert kubectl("get", "cm", "a", "-o", "go-template={{.data.x}}") == "1"
        assert kubectl("get", "cm", "a", "-o", "custom-columns=N:.metadata.name") == "N\na\n"
        assert kubectl("get", "cm", "a", "--show-labels", "--no-headers").split()[-1] == "app=one"
        assert kubectl("get", "cm", "a", "-L", "app", "--no-headers").split()[-1] == "one"
        assert kubectl.names("cm", "--field-selector=metadata.name=b") == ["configmap/b"]
        assert kubectl.names("cm", "-l", "app in (one,two)") == ["configmap/a"]
        assert kubectl("get", "--raw", "/readyz") == "ok"

    def test_sorted_and_in_chunks(self, kubectl):
        kubectl.apply(*[config_map(f"c{i}", {"rank": str(9 - i)}, labels={"t": "1"})
                        for i in range(10)])
        names = kubectl("get", "cm", "-l", "t=1", "--chunk-size=3", "--sort-by=.data.rank",
                        "--no-headers", "-o", "custom-columns=N:.metadata.name").split()
        assert names == [f"c{i}" for i in reversed(range(10))]

    def test_what_is_not_there(self, kubectl):
        assert kubectl.refusal("get", "cm", "c") == (
            'Error from server (NotFound): configmaps "c" not found\n')
        assert "the server doesn't have a resource type \"nonsense\"" in kubectl.refusal(
            "get", "nonsense")
        assert kubectl.run("get", "pods").stderr == (
            f"No resources found in {kubectl.namespace} namespace.\n")

    def test_watch(self, kubectl, tmp_path):
        log = tmp_path / "watch"
        kubectl.apply(config_map("a", labels={"t": "1"}))
        with log.open("w") as output:
            watch = kubectl.start("get", "cm", "-w", "--output-watch-events", "-l", "t=1",
                                  output=output)
        try:
            eventually(lambda: "ADDED" in log.read_text())
            kubectl("patch", "cm", "a", "-p", '{"data":{"x":"1"}}')
            kubectl.apply(config_map("b", labels={"t": "1"}))
            kubectl("label", "cm", "b", "t-")
            kubectl("delete", "cm", "a")
            eventually(lambda: log.read_text().count("DELETED") == 2)
        finally:
            watch.kill()
            watch.wait()
        rows = [line.split()[:3] for line in log.read_text().splitlines()]
        assert rows == [["EVENT", "NAME", "DATA"], ["ADDED", "a", "0"], ["MODIFIED", "a", "1"],
                        ["ADDED", "b", "0"], ["DELETED", "b", "0"], ["DELETED", "a", "1"]]

    def test_custom_columns_of_a_definition(self, kubectl, widgets):
        kubectl.apply(widget(widgets, "w", size=2, color="red"))
        head, row = kubectl("get", widgets).splitlines()
        assert (head.split(), row.split()) == (["NAME", "SIZE"], ["w", "2"])
        assert kubectl("get", widgets, "-o", "wide").splitlines()[1].split() == ["w", "2", "red"]


class TestDescribe:
    def test_pod_with_its_events(self, kubectl):
        kubectl.apply(pod("p"))
        kubectl("wait", "pod/p", "--for=condition=Ready", "--timeout=30s")
        text = kubectl("describe", "pod", "p")
        assert re.search(r"^Status: +Running$", text, re.MULTILINE)
        assert re.search(r"^ +Ready +True", text, re.MULTILINE)
        events = eventually(lambda: kubectl("events", "--for=pod/p").count("\n") > 1 and
                            kubectl("describe", "pod", "p").split("Events:")[1])
        assert "Scheduled" in events and "Started" in events

    def test_every_kind(self, kubectl, widgets):
        kubectl.apply(deployment("d", replicas=1), job("j", "true"), config_map("c"),
                      widget(widgets, "w"),
                      {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
                       "spec": {"selector": {"app": "d"}, "ports": [{"port": 80}]}})
        kubectl("create", "quota", "q", "--hard=pods=10")
        eventually(lambda: kubectl.get("deployment", "d")["status"].get("availableReplicas") == 1)
        assert "1 desired | 1 updated | 1 total | 1 available" in kubectl("describe", "deployment", "d")
        assert "1 current / 1 desired" in kubectl("describe", "rs")
        address = kubectl("get", "pod", "-l", "app=d", "-o", "jsonpath={.items[0].status.podIP}")
        assert re.search(rf"Endpoints: +{re.escape(address)}:80", kubectl("describe", "service", "s"))
        assert "Kind:         Widget" in kubectl("describe", widgets, "w")
        assert re.search(r"pods +\d+ +10", kubectl("describe", "quota", "q"))
        assert "Allocated resources" in kubectl("describe", "node")
        kubectl("describe", "job", "j")
        kubectl("describe", "namespace", kubectl.namespace)


class TestChange:
    def test_edit(self, kubectl, tmp_path):
        kubectl.apply(config_map("c", {"a": "before"}))
        editor = tmp_path / "editor"
        editor.write_text('#!/bin/sh\nsed -i s/before/after/ "$1"\n')
        editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
        assert kubectl("edit", "cm", "c", env={"EDITOR": str(editor)}) == "configmap/c edited\n"
        assert kubectl.get("cm", "c")["data"] == {"a": "after"}

    def test_edit_of_a_custom_resource(self, kubectl, widgets, tmp_path):
        kubectl.apply(widget(widgets, "w", size=2))
        editor = tmp_path / "editor"
        editor.write_text('#!/bin/sh\nsed -i "s/size: 2/size: 7/" "$1"\n')
        editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
        kubectl("edit", widgets, "w", env={"EDITOR": str(editor)})
        assert kubectl.get(widgets, "w")["spec"]["size"] == 7

    @pytest.mark.parametrize("kind, body", [
        ("merge", {"data": {"a": None, "b": "2"}}),
        ("json", [{"op": "remove", "path": "/data/a"}, {"op": "add", "path": "/data/b", "value": "2"}]),
        ("strategic", {"data": {"$patch": "replace", "b": "2"}}),
    ])
    def test_patch(self, kubectl, kind, body):
        kubectl.apply(config_map("c", {"a": "1"}))
        kubectl("patch", "cm", "c", f"--type={kind}", "-p", json.dumps(body))
        assert kubectl.get("cm", "c")["data"] == {"b": "2"}

    def test_patch_of_the_status(self, kubectl, widgets):
        kubectl.apply(widget(widgets, "w"))
        kubectl("patch", widgets, "w", "--subresource=status", "--type=merge", "-p",
                '{"status":{"size":1},"spec":{"size":9}}')
        after = kubectl.get(widgets, "w")
        assert (after["status"], after["spec"]) == ({"size": 1}, {"size": 3})

    def test_label_and_annotate(self, kubectl):
        kubectl("create", "cm", "c")
        kubectl("label", "cm", "c", "a=1")
        assert "already has a value (1), and --overwrite is false" in kubectl.refusal(
            "label", "cm", "c", "a=2")
        kubectl("label", "cm", "c", "a=2", "--overwrite")
        kubectl("annotate", "cm", "c", "note=x")
        metadata = kubectl.get("cm", "c")["metadata"]
        assert (metadata["labels"], metadata["annotations"]) == ({"a": "2"}, {"note": "x"})
        kubectl("label", "cm", "c", "a-")
        assert "labels" not in kubectl.get("cm", "c")["metadata"]

    def test_replace(self, kubectl):
        kubectl.apply(config_map("c", {"a": "1"}))
        kubectl("replace", "-f", "-", input=json.dumps(config_map("c", {"b": "1"})))
        assert kubectl.get("cm", "c")["data"] == {"b": "1"}
        kubectl("replace", "--force", "-f", "-", input=json.dumps(config_map("c", {"c": "1"})))
        assert kubectl.get("cm", "c")["data"] == {"c": "1"}

    def test_scale(self, kubectl, widgets):
        kubectl.apply(deployment("d", replicas=1), widget(widgets, "w", size=1))
        kubectl("scale", "deployment/d", "--replicas=3", "--timeout=30s")
        kubectl("wait", "deployment/d", "--for=jsonpath={.status.readyReplicas}=3", "--timeout=30s")
        kubectl("scale", widgets, "w", "--replicas=5")
        assert kubectl.get(widgets, "w")["spec"]["size"] == 5
        assert "Expected replicas to be 9" in kubectl.refusal(
            "scale", "deployment/d", "--replicas=1", "--current-replicas=9")

    def test_set_image_and_rollout(self, kubectl):
        kubectl.apply(deployment("d", replicas=2))
        kubectl("rollout", "status", "deployment/d", "--timeout=60s")
        kubectl("set", "image", "deployment/d", "main=other")
        assert 'successfully rolled out' in kubectl("rollout", "status", "deployment/d",
                                                    "--timeout=60s")
        assert kubectl("rollout", "history", "deployment/d").split()[-4:] == ["1", "<none>", "2",
                                                                             "<none>"]
        kubectl("rollout", "undo", "deployment/d")
        kubectl("rollout", "status", "deployment/d", "--timeout=60s")
        template = kubectl.get("deployment", "d")["spec"]["template"]
        assert template["spec"]["containers"][0]["image"] == "host"
        kubectl("rollout", "restart", "deployment/d")
        kubectl("rollout", "status", "deployment/d", "--timeout=60s")

    def test_taint_and_cordon(self, kubectl):
        node = kubectl("get", "node", "-o", "jsonpath={.items[0].metadata.name}")
        kubectl("cordon", node)
        assert kubectl.get("node", node)["spec"]["unschedulable"]
        kubectl("uncordon", node)
        assert "unschedulable" not in kubectl.get("node", node)["spec"]


class TestWait:
    def test_for_a_job(self, kubectl):
        kubectl.apply(job("j", "true"))
        assert kubectl("wait", "job/j", "--for=condition=Complete", "--timeout=60s") == (
            "job.batch/j condition met\n")

    def test_for_creation_and_deletion(self, kubectl, tmp_path):
        with (tmp_path / "out").open("w") as output:
            waiting = kubectl.start("wait", "--for=create", "cm/c", "--timeout=20s", output=output)
        time.sleep(0.5)
        kubectl("create", "cm", "c")
        assert waiting.wait(20) == 0
        with (tmp_path / "out").open("w") as output:
            waiting = kubectl.start("wait", "--for=delete", "cm/c", "--timeout=20s", output=output)
        time.sleep(0.5)
        kubectl("delete", "cm", "c")
        assert waiting.wait(20) == 0

    def test_in_vain(self, kubectl):
        kubectl("create", "cm", "c")
        assert "timed out waiting for the condition" in kubectl.refusal(
            "wait", "--for=jsonpath={.data.x}=1", "cm/c", "--timeout=1s")


class TestDelete:
    def owner_and_child(self, kubectl, **reference):
        kubectl("create", "cm", "owner")
        kubectl.apply(owned(config_map("child"), kubectl.get("cm", "owner"), **reference))

    def names(self, kubectl):
        return [n for n in kubectl.names("cm") if n != "configmap/kube-root-ca.crt"]

    def test_background(self, kubectl):
        self.owner_and_child(kubectl)
        kubectl("delete", "cm", "owner", "--cascade=background")
        eventually(lambda: self.names(kubectl) == [])

    def test_foreground(self, kubectl):
        self.owner_and_child(kubectl, blockOwnerDeletion=True)
        kubectl("delete", "cm", "owner", "--cascade=foreground", "--timeout=20s")
        assert self.names(kubectl) == []

    def test_foreground_waits_for_a_child_that_holds_on(self, kubectl):
        self.owner_and_child(kubectl, blockOwnerDeletion=True)
        kubectl("patch", "cm", "child", "-p", '{"metadata":{"finalizers":["example.com/hold"]}}')
        kubectl("delete", "cm", "owner", "--cascade=foreground", "--wait=false")
        eventually(lambda: "deletionTimestamp" in kubectl.get("cm", "child")["metadata"])
        time.sleep(0.5)
        assert kubectl.get("cm", "owner")["metadata"]["finalizers"] == ["foregroundDeletion"]
        kubectl("patch", "cm", "child", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
        eventually(lambda: self.names(kubectl) == [])

    def test_orphan(self, kubectl):
        self.owner_and_child(kubectl)
        kubectl("delete", "cm", "owner", "--cascade=orphan", "--timeout=20s")
        assert "ownerReferences" not in kubectl.get("cm", "child")["metadata"]

    def test_custom_resources_own_and_are_owned(self, kubectl, widgets):
        kubectl.apply(widget(widgets, "w"))
        kubectl.apply(owned(widget(widgets, "small"), kubectl.get(widgets, "w")),
                      owned(config_map("c"), kubectl.get(widgets, "w")))
        kubectl("delete", widgets, "w")
        eventually(lambda: self.names(kubectl) == [] and kubectl.names(widgets) == [])

    def test_job_with_its_pods(self, kubectl):
        kubectl.apply(job("j", "sleep 1000"))
        eventually(lambda: kubectl.names("pod"))
        kubectl("delete", "job", "j", "--timeout=30s")
        eventually(lambda: kubectl.names("pod") == [])

    def test_pod_gracefully_and_by_force(self, kubectl):
        kubectl.apply(pod("a"), pod("b"))
        kubectl("wait", "pod", "--all", "--for=condition=Ready", "--timeout=30s")
        kubectl("delete", "pod", "a", "--timeout=30s")
        kubectl("delete", "pod", "b", "--force", "--grace-period=0", "--timeout=30s")
        assert kubectl.names("pod") == []

    def test_by_label_and_all(self, kubectl):
        kubectl.apply(config_map("a", labels={"x": "1"}), config_map("b"))
        kubectl("delete", "cm", "-l", "x=1")
        assert self.names(kubectl) == ["configmap/b"]
        kubectl("delete", "cm", "--all", "--timeout=20s")
        eventually(lambda: self.names(kubectl) == [])

    def test_namespace_goes_with_all_in_it(self, kubectl):
        name = kubectl.namespace + "-b"
        kubectl("create", "namespace", name)
        kubectl("create", "cm", "c", "-n", name)
        kubectl("create", "deployment", "d", "--image=host", "-n", name, "--",
                "sh", "-c", "trap exit TERM; sleep 100 & wait")
        kubectl("delete", "namespace", name, "--timeout=40s")
        assert "not found" in kubectl.refusal("get", "namespace", name)
        assert kubectl.names("cm", "-n", name) == []

    def test_definition_takes_its_objects_along(self, kubectl):
        plural = f"gadgets{kubectl.namespace[5:]}"
        gadgets = f"{plural}.stable.example.com"
        gadget = {"apiVersion": "stable.example.com/v1", "kind": "Gadget", "metadata": {"name": "g"}}
        for _ in range(2):
            kubectl.apply(definition(plural, "Gadget"))
            eventually(lambda: kubectl.run("get", gadgets).returncode == 0)
            assert kubectl.names(gadgets) == []
            kubectl.apply(gadget)
            kubectl("delete", "crd", gadgets, "--timeout=20s")


class TestAsk:
    def test_explain(self, kubectl, widgets):
        text = kubectl("explain", "pod.spec.containers.image")
        assert "FIELD: image <string>" in text
        assert "KIND:       Job" in kubectl("explain", "job.spec")
        text = kubectl("explain", widgets.split(".")[0] + ".spec")
        assert "What is wanted." in text and "size\t<integer>" in text
        assert "template" in kubectl("explain", "deployment", "--recursive")

    def test_api_resources(self, kubectl, widgets):
        # The first of each name: metrics.k8s.io has `pods`, too.
        rows = {row.split()[0]: row.split()
                for row in reversed(kubectl("api-resources", "--no-headers").splitlines())}
        assert rows["pods"] == ["pods", "po", "v1", "true", "Pod"]
        assert rows["deployments"] == ["deployments", "deploy", "apps/v1", "true", "Deployment"]
        assert widgets.split(".")[0] in rows
        assert "jobs.batch" in kubectl("api-resources", "-o", "name", "--verbs=list,watch").split()
        assert {"v1", "apps/v1", "batch/v1"} <= set(kubectl("api-versions").split())

    def test_cluster_info_and_version(self, kubectl):
        assert "is running at" in kubectl("cluster-info")
        assert "Server Version: v1." in kubectl("version")

    def test_auth(self, kubectl):
        assert "Username" in kubectl("auth", "whoami")
        assert kubectl("auth", "can-i", "create", "pods") == "yes\n"
        assert "*.*" in kubectl("auth", "can-i", "--list")

    def test_top_of_pods_is_served_that_of_nodes_is_refused(self, kubectl):
        kubectl("top", "pods", "--all-namespaces")
        assert "nodes.metrics.k8s.io" in kubectl.refusal("top", "nodes")
