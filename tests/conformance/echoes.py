"""A cluster that writes down every write, and Echoes for the probe's operator to keep.

The operator is the one that the simulator runs (tests/simulation/echo.h): for each Echo it keeps so
many ConfigMaps, its status and its finalizer.
"""

import json
import time

from kube.audit import audit_flags
from kube.control_plane import ControlPlane

ECHO = ["example.com", "v1", "Echo", "echoes", True]
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "echoes.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"kind": "Echo", "plural": "echoes"},
        "scope": "Namespaced",
        "versions": [{
            "name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        }],
    },
}
WRITES = {
    "verbs": ["create", "update", "patch", "delete"],
    "resources": [{"group": "", "resources": ["configmaps"]},
                  {"group": "example.com", "resources": ["echoes", "echoes/status"]},
                  {"group": "coordination.k8s.io", "resources": ["leases"]}],
}


def wait_for(check, seconds=60, what="it"):
    """What `check` returns as soon as that is true; what it raises counts as not yet."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            found, why = check(), ""
        except (OSError, AssertionError) as e:
            found, why = None, repr(e)
        if found:
            return found
        assert time.monotonic() < deadline, f"{what} was not there within {seconds} s {why}"
        time.sleep(0.1)


class AuditedCluster(ControlPlane):
    """A control plane of API server and etcd, with our kind and an audit log."""

    def __init__(self, folder):
        flags, self._audit_log = audit_flags(folder, WRITES)
        super().__init__(apiserver_args=[*flags, "--audit-log-mode=blocking-strict"])

    def start(self):
        super().start()
        self.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD)
        wait_for(lambda: self.request("GET", "/apis/example.com/v1/echoes")[0] == 200)
        return self

    def writes(self, namespace, user_agent="grapnel"):
        """Those that succeeded, of operators, in the order in which they were made."""
        found = []
        for entry in self._answers(namespace, user_agent):
            if entry["responseStatus"]["code"] < 300:
                ref = entry["objectRef"]
                found.append(Write(entry["verb"], ref["resource"], ref.get("subresource", ""),
                                   ref.get("name", ""), entry["user"]["username"],
                                   entry["requestReceivedTimestamp"], entry["stageTimestamp"]))
        return sorted(found, key=lambda w: w.ended)

    def put_off(self, namespace, user_agent="grapnel"):
        """How many the server had no room for."""
        return sum(entry["responseStatus"]["code"] == 429
                   for entry in self._answers(namespace, user_agent))

    def _answers(self, namespace, user_agent):
        for line in self._audit_log.read_text().splitlines():
            try:
                entry = json.loads(line)
            except json.JSONDecodeError:  # the server was killed while it wrote this
                continue
            if (entry["objectRef"].get("namespace") == namespace
                    and entry.get("userAgent", "") == user_agent):
                yield entry


class Write:
    def __init__(self, verb, resource, subresource, name, user, began, ended):
        self.verb, self.resource, self.subresource = verb, resource, subresource
        self.name, self.user, self.began, self.ended = name, user, began, ended

    def __repr__(self):
        return f"{self.ended} {self.user} {self.verb} {self.resource} {self.name}"


class Echoes:
    """What a user does to Echoes of one namespace, and whether the operator has answered."""

    def __init__(self, cluster, namespace):
        self._cluster = cluster
        self.namespace = namespace
        self.wanted = {}  # name: (replicas, value)

    def path(self, name=""):
        return f"/apis/example.com/v1/namespaces/{self.namespace}/echoes/{name}".rstrip("/")

    def create(self, name, replicas, value="v"):
        self._must("POST", self.path(), {
            "apiVersion": "example.com/v1", "kind": "Echo", "metadata": {"name": name},
            "spec": {"replicas": replicas, "value": value}})
        self.wanted[name] = (replicas, value)

    def delete(self, name):
        self._must("DELETE", self.path(name))
        del self.wanted[name]

    def change(self, name, replicas, value):
        def done():
            _, echo = self._cluster.request("GET", self.path(name), timeout=5)
            echo["spec"] = {"replicas": replicas, "value": value}
            return self._cluster.request("PUT", self.path(name), echo, timeout=5)[0] == 200
        wait_for(done, what=f"the change of {name}")
        self.wanted[name] = (replicas, value)

    def _must(self, method, path, body=None):
        """Also while the server is being restarted."""
        def done():
            status, answer = self._cluster.request(method, path, body, timeout=5)
            assert status < 300 or (method, status) in (("POST", 409), ("DELETE", 404)), answer
            return True
        wait_for(done, what=f"{method} {path}")

    def children(self):
        status, found = self._cluster.request(
            "GET", f"/api/v1/namespaces/{self.namespace}/configmaps")
        assert status == 200, found
        return {item["metadata"]["name"]: item["data"]["value"] for item in found["items"]
                if item["metadata"].get("ownerReferences")}

    def settled(self):
        status, found = self._cluster.request("GET", self.path())
        assert status == 200, found
        echoes = {e["metadata"]["name"]: e for e in found["items"]}
        return (echoes.keys() == self.wanted.keys()
                and self.children() == {f"{name}-{i}": value
                                        for name, (replicas, value) in self.wanted.items()
                                        for i in range(replicas)}
                and all(e.get("status", {}).get("ready") == self.wanted[name][0]
                        and e["status"]["observedGeneration"] == e["metadata"]["generation"]
                        for name, e in echoes.items()))

    def settle(self, seconds=90):
        wait_for(self.settled, seconds, what="the state asked for")
