"""The two clusters on which the same lifecycles are played.

RealWorld    kube-apiserver with the real Job controller and scheduler, kwok's nodes, and our operator
             as a process of its own: with the roles that `grapnel install` gives it and no more, its
             webhooks called by the API server.
LaptopWorld  `grapnel up`: our API server, and pods that are processes.
"""

import base64
import http.client
import json
import os
import pathlib
import ssl
import subprocess
import tempfile
import time

import yaml

from jobset.behaviour import stages
from jobset.controllers import GROUP, Ours, program
from kube.audit import audit_flags
from kube.control_plane import ControlPlane

PATHS = {"jobsets": GROUP, "jobs": "/apis/batch/v1", "events": "/apis/events.k8s.io/v1",
         "experiments": "/apis/grapnel.dev/v1alpha1",
         "podgroups": "/apis/scheduling.volcano.sh/v1beta1"}
JOBSET_NAME = "jobset.sigs.k8s.io/jobset-name"
# What the cluster is told of Volcano: enough to store its objects.
POD_GROUP_CRD = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "podgroups.scheduling.volcano.sh"},
    "spec": {"group": "scheduling.volcano.sh", "scope": "Namespaced",
             "names": {"kind": "PodGroup", "listKind": "PodGroupList", "plural": "podgroups",
                       "singular": "podgroup"},
             "versions": [{"name": "v1beta1", "served": True, "storage": True, "schema": {
                 "openAPIV3Schema": {"type": "object",
                                     "x-kubernetes-preserve-unknown-fields": True}}}]}}


class World:
    """What scenarios do with a cluster. Each works in a namespace of its own."""

    def request(self, method, path, body=None, content_type="application/json"):
        raise NotImplementedError

    def path(self, kind, namespace, name=""):
        base = f"{PATHS.get(kind, '/api/v1')}/namespaces/{namespace}/{kind}"
        return f"{base}/{name}" if name else base

    def create(self, kind, namespace, body):
        status, answer = self.request("POST", self.path(kind, namespace), body)
        assert status == 201, answer
        return answer

    def get(self, kind, namespace, name):
        """The object, or None."""
        status, answer = self.request("GET", self.path(kind, namespace, name))
        assert status in (200, 404), answer
        return answer if status == 200 else None

    def list(self, kind, namespace, labels=""):
        query = f"?labelSelector={labels}" if labels else ""
        status, answer = self.request("GET", self.path(kind, namespace) + query)
        assert status == 200, answer
        return answer["items"]

    def patch(self, kind, namespace, name, body):
        status, answer = self.request("PATCH", self.path(kind, namespace, name), body,
                                      "application/merge-patch+json")
        assert status == 200, answer
        return answer

    def delete(self, kind, namespace, name):
        status, answer = self.request("DELETE", self.path(kind, namespace, name))
        assert status in (200, 202), answer

    def wait(self, check, what, seconds=60):
        """What `check` returns, once it is something."""
        end = time.monotonic() + seconds
        while not (found := check()):
            assert time.monotonic() < end, f"not within {seconds} s: {what() if callable(what) else what}"
            self.check_alive()
            time.sleep(0.1)
        return found

    def check_alive(self):
        pass


class RealWorld(World):
    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="grapnel-lifecycle-")
        folder = pathlib.Path(self._folder.name)
        flags, self.audit_log = audit_flags(folder, {"users": list(Ours.user())})
        self.cluster = ControlPlane(controllers=True, kwok_stages=stages(), kwok_nodes=1,
                                    apiserver_args=flags)
        self.ours = Ours(self.cluster)
        try:
            self.cluster.start()
            for rack in ("red", "blue"):
                self.cluster.add_nodes(2, prefix=rack, labels={"rack": rack})
            self.cluster.kubectl("apply", "-f", "-", input=yaml.safe_dump(POD_GROUP_CRD))
            self.ours.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        try:
            self.ours.stop()
        finally:
            self.cluster.stop()
            self._folder.cleanup()

    def request(self, method, path, body=None, content_type="application/json"):
        return self.cluster.request(method, path, body, timeout=60, content_type=content_type)

    @property
    def operator(self):
        return self.ours.process

    def check_alive(self):
        assert not self.operator.has_ended, self.operator.tail(40)

    def requests_of_operator(self):
        """{(verb, group, resource with subresource, whether RBAC forbade it)} so far."""
        done = set()
        for line in self.audit_log.read_text().splitlines():
            event = json.loads(line)
            at = event.get("objectRef")
            if at:
                resource = "/".join(filter(None, (at["resource"], at.get("subresource"))))
                decision = event.get("annotations", {}).get("authorization.k8s.io/decision")
                done.add((event["verb"], at.get("apiGroup", ""), resource, decision == "forbid"))
        return done


class LaptopWorld(World):
    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="grapnel-laptop-")
        self.environment = os.environ | {"XDG_STATE_HOME": self._folder.name}
        try:
            self._grapnel("up", "--detach", "--oversubscribe", "8")
            path = self._grapnel("env").split("=", 1)[1].strip()
            config = yaml.safe_load(pathlib.Path(path).read_text())
            cluster = config["clusters"][0]["cluster"]
            self._address = cluster["server"].removeprefix("https://")
            self._token = config["users"][0]["user"]["token"]
            self._tls = ssl.create_default_context(
                cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
            status, answer = self.request(
                "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", POD_GROUP_CRD)
            assert status == 201, answer
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        try:
            self._grapnel("down")
        finally:
            self._folder.cleanup()

    def _grapnel(self, *arguments):
        done = subprocess.run([program("grapnel"), *arguments], env=self.environment, text=True,
                              capture_output=True, timeout=180)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def request(self, method, path, body=None, content_type="application/json"):
        connection = http.client.HTTPSConnection(self._address, timeout=60, context=self._tls)
        try:
            connection.request(method, path, None if body is None else json.dumps(body),
                               {"Authorization": f"Bearer {self._token}",
                                "Content-Type": content_type})
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()
