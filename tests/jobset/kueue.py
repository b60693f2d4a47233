"""Kueue, installed as its own manifests have it, on a ControlPlane."""

import base64
import subprocess
import time

import yaml

from jobset.controllers import Controller, install_crds, wait_until
from kube.programs import Programs

API = "/apis/kueue.x-k8s.io/v1beta2"
SERVICE = "kueue-webhook-service"
SECRET = "/api/v1/namespaces/kueue-system/secrets/kueue-webhook-server-cert"


class Kueue(Controller):
    name = "kueue"
    namespace, account = "kueue-system", "kueue-controller-manager"

    def start(self):
        self._install()
        folder = self.cluster.directory / "kueue"
        folder.mkdir()
        config = folder / "config.yaml"
        config.write_text(yaml.safe_dump({
            "apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration",
            "namespace": self.namespace,
            "leaderElection": {"leaderElect": False},
            "metrics": {"bindAddress": "0"}, "health": {"healthProbeBindAddress": "0"},
            "webhook": {"host": "127.0.0.1", "port": self._port.number, "certDir": str(folder)},
            "internalCertManagement": {"enable": True, "webhookServiceName": SERVICE,
                                       "webhookSecretName": SECRET.rsplit("/", 1)[-1]},
            "featureGates": {"VisibilityOnDemand": False},
            "integrations": {"frameworks": ["batch/job", "jobset.x-k8s.io/jobset"]}}))
        self._run(["env", f"KUBECONFIG={self._kubeconfig()}", Programs().path("kueue"),
                   "--config", str(config)])
        self._mount_certificate(folder)
        self._wait_until_it_answers()
        return self

    def _install(self):
        """All of it but the Deployment. Its webhooks' Service leads to this machine."""
        made = subprocess.check_output([Programs().path("kubectl"), "kustomize",
                                        self.cluster.module("kueue") / "config" / "default"])
        crds, others = [], []
        for document in yaml.safe_load_all(made):
            if document["kind"] == "CustomResourceDefinition":
                client = document["spec"].get("conversion", {}).get("webhook", {}).get("clientConfig")
                if client:
                    client["service"]["port"] = self._port.number
                crds.append(document)
            elif document["kind"].endswith("WebhookConfiguration"):
                # Of those that it serves, the ones of kinds that this cluster has and the test uses.
                document["webhooks"] = [hook for hook in document["webhooks"] if {
                    group for rule in hook["rules"] for group in rule["apiGroups"]} <= {
                    "batch", "jobset.x-k8s.io", "kueue.x-k8s.io"}]
                for hook in document["webhooks"]:
                    hook["clientConfig"]["service"]["port"] = self._port.number
                others.append(document)
            elif document["metadata"]["name"] == SERVICE:
                document["spec"] = {"type": "ExternalName", "externalName": "localhost"}
                others.append(document)
            elif document["kind"] not in ("Deployment", "APIService"):
                others.append(document)
        self._apply([d for d in others if d["kind"] == "Namespace"])
        install_crds(self.cluster, *crds)
        self._apply(others)

    def _mount_certificate(self, folder):
        """As the kubelet would: it makes one for itself, stores it, and waits to find it."""
        def made():
            data = self.cluster.request("GET", SECRET)[1].get("data") or {}
            return data.get("tls.crt") and data
        wait_until(made, f"Kueue has no certificate\n{self.process.tail(20)}")
        for name, content in made().items():
            (folder / name).write_bytes(base64.b64decode(content))

    def _wait_until_it_answers(self):
        flavour = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor",
                   "metadata": {"name": "probe"}}
        path = f"{API}/resourceflavors?dryRun=All"
        wait_until(lambda: self.cluster.request("POST", path, flavour, timeout=60)[0] == 201,
                   f"Kueue does not answer\n{self.process.tail(20)}")
