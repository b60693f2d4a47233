"""A real Kubernetes of one node, asked in the same way as a laptop cluster."""

import json
import ssl
import urllib.parse

from kube.nodes import RealNodes
from kube.programs import Programs

from .cluster import Api


class Kubelet(Api):
    """kubelet and containerd, where the image `host` finds this machine's own programs."""

    is_root = True
    node = "node-1"

    def __init__(self, nodes: RealNodes):
        self._nodes = nodes
        self.dns = nodes.dns
        self.token = nodes.token
        self.server = urllib.parse.urlparse(nodes.url)
        self.tls = ssl.create_default_context(cafile=nodes.ca_file)

    def check(self):
        assert self._nodes.ready(), self.log()

    def log(self):
        return self._nodes.logs("node-1-kubelet")[-5000:]

    def request(self, method, path, body=None, content_type="application/json", as_text=False):
        status, answer = self._nodes.request(method, path, body, content_type=content_type, timeout=30)
        return status, json.dumps(answer) if as_text and not isinstance(answer, str) else answer

    def create(self, *objects, ns="default"):
        """There is no storage provisioner: a claim finds a volume of its own, a folder of the node's."""
        claims = [thing for thing in objects if thing["kind"] == "PersistentVolumeClaim"]
        for claim in [thing for thing in claims if "storageClassName" not in thing["spec"]]:
            claim["spec"]["storageClassName"] = ""
            name = claim["metadata"]["name"]
            volume = {"metadata": {"name": f"{ns}-{name}"},
                      "spec": {"capacity": claim["spec"]["resources"]["requests"],
                               "accessModes": claim["spec"]["accessModes"],
                               "claimRef": {"namespace": ns, "name": name},
                               "hostPath": {"path": f"/var/lib/volumes/{ns}-{name}", "type": "DirectoryOrCreate"}}}
            status, answer = self.request("POST", "/api/v1/persistentvolumes", volume)
            assert status == 201, answer
        return super().create(*objects, ns=ns)

    def kubectl_command(self, *arguments):
        return [Programs().path("kubectl"), "--kubeconfig", str(self._nodes.kubeconfig),
                "--cache-dir", str(self._nodes.directory / "kubectl-cache"), *map(str, arguments)]
