"""Admission webhooks: every test runs against our server and against kube-apiserver."""

import base64
import http.server
import json
import ssl
import subprocess
import threading
import time
import uuid

import pytest

from apiserver import cases
from apiserver.server import Ours


class Hook:
    """A webhook server: `paths` says what to answer to a review; `seen` keeps what was asked."""

    def __init__(self, folder):
        self.paths, self.seen = {}, []
        config = folder / "names.cnf"
        config.write_text("[v3]\nsubjectAltName=IP:127.0.0.1,DNS:hook.default.svc\nbasicConstraints=CA:TRUE\n")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=hook",
                        "-keyout", folder / "key.pem", "-out", folder / "cert.pem", "-extensions", "v3",
                        "-config", "/dev/stdin"], check=True, capture_output=True,
                       input=b"[req]\ndistinguished_name=dn\n[dn]\n" + config.read_bytes())
        self.ca = base64.b64encode((folder / "cert.pem").read_bytes()).decode()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
        hook = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                path = self.path.partition("?")[0]
                hook.seen.append((path, review["request"]))
                answer = hook.paths[path](review["request"])
                body = answer if isinstance(answer, bytes) else json.dumps({
                    "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
                    "response": {"uid": review["request"]["uid"]} | answer}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture(scope="module")
def hook(tmp_path_factory):
    hook = Hook(tmp_path_factory.mktemp("hook"))
    yield hook
    hook.server.shutdown()


@pytest.fixture(scope="module", params=["ours", "kubernetes"])
def server(request, kube_programs):
    if request.param == "ours":
        with Ours() as one:
            yield cases.Server(one.url)
    else:
        with cases.real_server() as cluster:
            yield cases.Server(cluster.url, cluster.token, cluster.ca_file)


class Cluster:
    """A namespace of its own, and webhook configurations that end with the test."""

    def __init__(self, server, hook):
        self.server, self.hook, self.made = server, hook, []
        self.ns = "hooked-" + uuid.uuid4().hex[:8]
        self.ask("POST", "/api/v1/namespaces", {"metadata": {"name": self.ns, "labels": {"hooked": self.ns}}})
        self.configmaps = f"/api/v1/namespaces/{self.ns}/configmaps"

    def ask(self, method, path, body=None, **headers):
        return self.server.ask(method, path, {k.replace("_", "-"): v for k, v in headers.items()},
                               body and json.dumps(body))

    def configure(self, kind, *webhooks):
        """Webhooks that see only this namespace's config maps, unless they say otherwise."""
        path = f"/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations"
        name = f"{self.ns}-{len(self.made)}"
        items = []
        for index, webhook in enumerate(webhooks):
            defaults = {"name": f"h{index}.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
                        "timeoutSeconds": 5, "namespaceSelector": {"matchLabels": {"hooked": self.ns}},
                        "rules": [{"operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["v1"],
                                   "resources": ["configmaps"]}]}
            answer = webhook.pop("answer", None)
            url = f"/{name}/{index}"
            if answer:
                self.hook.paths[url] = answer
            defaults["clientConfig"] = {"url": f"https://127.0.0.1:{self.hook.port}{url}", "caBundle": self.hook.ca}
            items.append(defaults | webhook)
        answer = self.ask("POST", path, {"metadata": {"name": name}, "webhooks": items})
        assert answer.code == 201, answer.text
        self.made.append(f"{path}/{name}")

    def wait(self, condition):
        """kube-apiserver takes a moment to know a configuration."""
        deadline = time.monotonic() + 10
        while not condition():
            assert time.monotonic() < deadline
            time.sleep(0.1)

    def create(self, name, **fields):
        return self.ask("POST", self.configmaps, {"metadata": {"name": name}} | fields)

    def create_until(self, code):
        """The first answer with that code, of objects with new names."""
        answers = []

        def done():
            answers.append(self.create("try-" + uuid.uuid4().hex[:8], data={"k": "v"}))
            return answers[-1].code == code
        self.wait(done)
        return answers[-1]


@pytest.fixture
def cluster(server, hook):
    one = Cluster(server, hook)
    yield one
    for path in one.made:
        one.ask("DELETE", path)


def patch(*operations):
    return {"allowed": True, "patchType": "JSONPatch",
            "patch": base64.b64encode(json.dumps(operations).encode()).decode()}


def test_a_denial(cluster):
    cluster.configure("validating", {"answer": lambda _: {
        "allowed": False, "status": {"code": 403, "reason": "Forbidden", "message": "not on Sundays"}}})
    status = cluster.create_until(403).documents[0]
    assert status["message"] == 'admission webhook "h0.example.com" denied the request: not on Sundays'
    assert status["reason"] == "Forbidden"


def test_a_denial_with_causes(cluster):
    causes = [{"reason": "FieldValueInvalid", "message": "too many", "field": "data.k"}]
    details = {"name": "n", "group": "g", "kind": "K", "causes": causes}
    cluster.configure("validating", {"answer": lambda _: {"allowed": False, "status": {
        "code": 422, "reason": "Invalid", "message": "no", "details": details}}})
    assert cluster.create_until(422).documents[0]["details"] == details


def test_a_denial_without_words(cluster):
    cluster.configure("validating", {"answer": lambda _: {"allowed": False}})
    status = cluster.create_until(400).documents[0]
    assert status["message"] == 'admission webhook "h0.example.com" denied the request without explanation'


def test_a_mutation_and_a_warning(cluster):
    cluster.configure("mutating", {"answer": lambda _: patch(
        {"op": "add", "path": "/metadata/labels", "value": {"mutated": "yes"}}) | {"warnings": ["take care"]}})
    cluster.wait(lambda: cluster.create("a" + uuid.uuid4().hex[:5]).documents[0]["metadata"].get("labels"))
    answer = cluster.create("b")
    assert answer.documents[0]["metadata"]["labels"] == {"mutated": "yes"}
    assert answer.warnings == ['299 - "take care"']


def test_what_a_review_says(cluster):
    cluster.configure("validating", {"answer": lambda _: {"allowed": True}, "rules": [
        {"operations": ["*"], "apiGroups": [""], "apiVersions": ["*"], "resources": ["configmaps"]}]})
    cluster.wait(lambda: cluster.create_until(201) and cluster.hook.seen)
    cluster.create("a", data={"k": "1"})
    cluster.ask("PATCH", cluster.configmaps + "/a?dryRun=All", {"data": {"k": "2"}},
                Content_Type="application/merge-patch+json")
    cluster.ask("DELETE", cluster.configmaps + "/a")
    create, update, delete = [request for _, request in cluster.hook.seen
                              if request["namespace"] == cluster.ns and request["name"] == "a"]
    assert [r["operation"] for r in (create, update, delete)] == ["CREATE", "UPDATE", "DELETE"]
    assert create["kind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}
    assert create["resource"] == {"group": "", "version": "v1", "resource": "configmaps"}
    assert (create["oldObject"], create["object"]["data"]) == (None, {"k": "1"})
    assert (update["oldObject"]["data"], update["object"]["data"]) == ({"k": "1"}, {"k": "2"})
    assert (update["dryRun"], create["dryRun"]) == (True, False)
    assert (delete["object"], delete["oldObject"]["data"]) == (None, {"k": "1"})
    assert [r["options"]["kind"] for r in (create, update, delete)] == [
        "CreateOptions", "UpdateOptions", "DeleteOptions"]


def test_a_webhook_sees_a_pods_priority(cluster):
    cluster.configure("mutating", {"answer": lambda _: {"allowed": True}, "rules": [
        {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]})

    def seen():
        name = "p" + uuid.uuid4().hex[:5]
        made = cluster.ask("POST", f"/api/v1/namespaces/{cluster.ns}/pods?dryRun=All", {
            "metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
        assert made.code == 201, made.text
        return [r["object"]["spec"] for _, r in cluster.hook.seen if r["name"] == name]
    cluster.wait(seen)
    [spec] = seen()
    assert (spec["priority"], spec["preemptionPolicy"]) == (0, "PreemptLowerPriority")


@pytest.mark.parametrize("operation, resources, scaled", [
    ("CONNECT", ["pods/exec", "deployments/scale"], "deployments"), ("*", ["*/*"], "*")])
def test_what_is_not_asked_is_warned_of(operation, resources, scaled):
    with Ours() as one:
        rule = {"operations": [operation], "apiGroups": ["*"], "apiVersions": ["*"],
                "resources": resources}
        answer = cases.Server(one.url).ask(
            "POST", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", {},
            json.dumps({"metadata": {"name": "h"}, "webhooks": [
                {"name": "h.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
                 "clientConfig": {"url": "https://127.0.0.1:1/x"}, "rules": [rule]}]}))
    assert answer.code == 201, answer.text
    assert answer.warnings == ['299 - "webhooks[0]: this server asks no webhook about CONNECT"',
                               '299 - "webhooks[0]: this server asks no webhook about ' + scaled + '/scale"']


def test_nobody_listens(cluster):
    cluster.configure("validating", {"clientConfig": {"url": "https://127.0.0.1:1/x"}})
    status = cluster.create_until(500).documents[0]
    assert status["reason"] == "InternalError"
    assert 'failed calling webhook "h0.example.com": failed to call webhook:' in status["message"]


def test_a_failure_that_is_ignored(cluster):
    cluster.configure("validating",
                      {"clientConfig": {"url": "https://127.0.0.1:1/x"}, "failurePolicy": "Ignore"},
                      {"answer": lambda _: {"allowed": False, "status": {"message": "second"}}})
    assert "second" in cluster.create_until(400).documents[0]["message"]


def test_an_answer_that_is_none(cluster):
    cluster.configure("validating", {"answer": lambda _: b"nonsense"})
    assert cluster.create_until(500).documents[0]["reason"] == "InternalError"


def test_a_slow_one(cluster):
    def slow(_):
        time.sleep(3)
        return {"allowed": True}
    cluster.configure("validating", {"answer": slow, "timeoutSeconds": 1})
    begin = time.monotonic()
    assert cluster.create_until(500).documents[0]["reason"] == "InternalError"
    assert time.monotonic() - begin < 8


def test_a_certificate_of_a_stranger(cluster):
    cluster.configure("validating", {"clientConfig": {
        "url": f"https://127.0.0.1:{cluster.hook.port}/x", "caBundle": ""}})
    assert cluster.create_until(500).documents[0]["reason"] == "InternalError"


def test_objects_that_are_selected(cluster):
    cluster.configure("validating", {"answer": lambda _: {"allowed": False},
                                     "objectSelector": {"matchLabels": {"strict": "yes"}}})
    cluster.wait(lambda: cluster.ask("POST", cluster.configmaps, {
        "metadata": {"name": "x" + uuid.uuid4().hex[:5], "labels": {"strict": "yes"}}}).code == 400)
    assert cluster.create("free").code == 201


def test_other_resources_are_not_asked_about(cluster):
    cluster.configure("validating", {"answer": lambda _: {"allowed": False}})
    cluster.create_until(400)
    assert cluster.ask("POST", f"/api/v1/namespaces/{cluster.ns}/secrets", {"metadata": {"name": "s"}}).code == 201


def test_a_subresource_has_its_own_rule(cluster):
    pods = f"/api/v1/namespaces/{cluster.ns}/pods"
    cluster.configure("validating", {"answer": lambda _: {"allowed": False, "status": {"message": "no status"}},
                                     "rules": [{"operations": ["UPDATE"], "apiGroups": [""], "apiVersions": ["v1"],
                                                "resources": ["pods/status"]}]})
    created = cluster.ask("POST", pods, {"metadata": {"name": "p"}, "spec": {"containers": [
        {"name": "c", "image": "i"}]}})
    assert created.code == 201
    change = {"status": {"message": "x"}}
    cluster.wait(lambda: cluster.ask("PATCH", pods + "/p/status", change,
                                     Content_Type="application/merge-patch+json").code == 400)
    assert cluster.ask("PATCH", pods + "/p", {"metadata": {"labels": {"a": "b"}}},
                       Content_Type="application/merge-patch+json").code == 200


def test_a_later_change_asks_again(cluster):
    counts = {"first": 0}

    def first(request):
        counts["first"] += 1
        labels = request["object"]["metadata"].get("labels", {})
        return patch({"op": "add", "path": "/metadata/annotations", "value": {"saw": ",".join(sorted(labels))}})
    cluster.configure("mutating", {"answer": first, "reinvocationPolicy": "IfNeeded"},
                      {"answer": lambda _: patch({"op": "add", "path": "/metadata/labels", "value": {"late": "1"}})})
    cluster.wait(lambda: cluster.create("t" + uuid.uuid4().hex[:5]).documents[0]["metadata"].get("labels"))
    meta = cluster.create("again").documents[0]["metadata"]
    assert (meta["annotations"], meta["labels"]) == ({"saw": "late"}, {"late": "1"})


def test_a_mutation_is_validated(cluster):
    cluster.configure("mutating", {"answer": lambda _: patch(
        {"op": "add", "path": "/metadata/labels", "value": {"not a label": "x"}})})
    assert cluster.create_until(422).documents[0]["reason"] == "Invalid"


@pytest.mark.only("ours")  # kube-apiserver reaches services through a network that is not there
def test_a_service(cluster, server):
    """Found by its endpoints; the certificate is the service's."""
    name = {"metadata": {"name": "hook"}}
    cluster.ask("POST", "/api/v1/namespaces/default/services", name | {"spec": {"ports": [{"port": 443}]}})
    cluster.ask("POST", "/api/v1/namespaces/default/endpoints", name | {"subsets": [
        {"addresses": [{"ip": "127.0.0.1"}], "ports": [{"port": cluster.hook.port}]}]})
    cluster.hook.paths["/svc"] = lambda _: {"allowed": False, "status": {"message": "from the service"}}
    cluster.configure("validating", {"clientConfig": {
        "service": {"namespace": "default", "name": "hook", "path": "/svc"}, "caBundle": cluster.hook.ca}})
    assert "from the service" in cluster.create_until(400).documents[0]["message"]


def test_a_configuration_that_asks_too_much(cluster, server):
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    webhook = {"name": "h.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
               "clientConfig": {"url": "http://127.0.0.1/x"}}
    answer = cluster.ask("POST", path, {"metadata": {"name": cluster.ns + "-bad"}, "webhooks": [webhook]})
    assert answer.code == 422 and "clientConfig.url" in answer.text
    if not server.token:
        webhook = webhook | {"clientConfig": {"url": "https://127.0.0.1/x"},
                             "matchConditions": [{"name": "x", "expression": "true"}]}
        answer = cluster.ask("POST", path, {"metadata": {"name": cluster.ns + "-bad"}, "webhooks": [webhook]})
        assert answer.code == 422 and "CEL" in answer.text
