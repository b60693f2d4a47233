"""The two controllers under comparison, each started on a ControlPlane and stopped by the test.

Both have the account and the rights that they are installed with, and their webhooks, which the API
server calls by their address: there is no kubelet to run them.
"""

import base64
import json
import os
import pathlib
import subprocess
import time

import yaml

from kube.processes import Component, ReservedPort, Spawner
from kube.programs import Programs

GROUP = "/apis/jobset.x-k8s.io/v1alpha2"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
HOOKS = "/apis/admissionregistration.k8s.io/v1"


def program(name):
    """A program of ours: of the build that GRAPNEL_BUILD names, or the one built last."""
    root = pathlib.Path(__file__).resolve().parents[2]
    folders = [pathlib.Path(os.environ["GRAPNEL_BUILD"])] if "GRAPNEL_BUILD" in os.environ else \
        sorted(root.glob("build/*"))
    places = [folder / inner / name for folder in folders for inner in (".", "tests/jobset")]
    built = sorted((p for p in places if p.is_file()), key=lambda p: p.stat().st_mtime)
    if not built:
        raise RuntimeError(f"{name} is not built: cmake --preset asan && ninja -C build/asan {name}")
    return built[-1]


def wait_until(condition, what, seconds=90):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(0.05)


def is_established(crd):
    return any(c["type"] == "Established" and c["status"] == "True"
               for c in crd.get("status", {}).get("conditions") or [])


def install_crds(cluster, *crds):
    """Puts the CRDs in place of whatever stands there, and waits until they are served."""
    for crd in crds:
        name = crd["metadata"]["name"]
        status, found = cluster.request("GET", f"{CRDS}/{name}")
        if status == 200:
            crd["metadata"]["resourceVersion"] = found["metadata"]["resourceVersion"]
            status, answer = cluster.request("PUT", f"{CRDS}/{name}", crd, timeout=60)
        else:
            status, answer = cluster.request("POST", CRDS, crd, timeout=60)
        assert status in (200, 201), answer
        wait_until(lambda: is_established(cluster.request("GET", f"{CRDS}/{name}")[1]),
                   f"{name} is not served")
    # The server picks a new schema up after the fact; a second is what it takes at most.
    time.sleep(2)


def our_crd():
    documents = yaml.safe_load_all(subprocess.check_output([program("grapnel"), "crds"]))
    return next(d for d in documents if d["metadata"]["name"] == "jobsets.jobset.x-k8s.io")


class Controller:
    """A controller with the rights of its service account, until stop()."""

    name = namespace = account = ""

    def __init__(self, cluster, strict=False):
        self.cluster = cluster
        self.strict = strict
        self._spawner = Spawner()
        self._port = ReservedPort()
        self.process = None

    @classmethod
    def user(cls):
        """{name: groups} of its service account."""
        return {f"system:serviceaccount:{cls.namespace}:{cls.account}":
                ["system:serviceaccounts", f"system:serviceaccounts:{cls.namespace}"]}

    @property
    def webhook_url(self):
        return f"https://127.0.0.1:{self._port.number}"

    def _run(self, command):
        log = self.cluster.directory / "logs" / f"{self.name}.log"
        self.process = Component(self.name, command, log, self._spawner)
        self.process.start()

    def _kubeconfig(self):
        [(name, groups)] = self.user().items()
        return self.cluster.kubeconfig_for(name, groups)

    def _apply(self, documents):
        self.cluster.kubectl("apply", "--server-side", "-f", "-",
                             input=yaml.safe_dump_all(documents), timeout=120)

    def _wait_for_webhook(self):
        probe = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
                 "metadata": {"name": "probe"}, "spec": {"replicatedJobs": []}}
        path = f"{GROUP}/namespaces/default/jobsets?dryRun=All"
        wait_until(lambda: self.cluster.request("POST", path, probe, timeout=60)[0] == 201,
                   f"the webhook of {self.name} does not answer\n{self.process.tail(20)}")

    def stop(self):
        if self.process:
            for kind in ("mutating", "validating"):
                self.cluster.request("DELETE", f"{HOOKS}/{kind}webhookconfigurations/{self.name}")
            self.process.stop()
        self._spawner.close()
        self._port.release()

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *_):
        self.stop()


class Original(Controller):
    """sigs.k8s.io/jobset with its own CRD; strict: its feature gates as they are by default."""

    name = "original"
    namespace, account = "jobset-system", "jobset-controller-manager"

    def start(self):
        bases = self.cluster.module("jobset") / "config" / "components"
        crd = yaml.safe_load((bases / "crd/bases/jobset.x-k8s.io_jobsets.yaml").read_text())
        install_crds(self.cluster, crd)
        self._grant(yaml.safe_load((bases / "rbac/role.yaml").read_text()))
        folder = self.cluster.directory / "original"
        folder.mkdir(exist_ok=True)
        certificate = self._make_certificate(folder)
        config = folder / "config.yaml"
        config.write_text(yaml.safe_dump({
            "apiVersion": "config.jobset.x-k8s.io/v1alpha1", "kind": "Configuration",
            "leaderElection": {"leaderElect": False},
            "internalCertManagement": {"enable": False},
            "webhook": {"host": "127.0.0.1", "port": self._port.number, "certDir": str(folder)},
            "metrics": {"bindAddress": "0"}, "health": {"healthProbeBindAddress": "0"},
            "featureGates": {} if self.strict else {"RestartJob": True, "ElasticJobSet": True}}))
        self._run(["env", f"KUBECONFIG={self._kubeconfig()}", Programs().path("jobset"),
                   "--config", str(config), "--zap-log-level=2"])
        self._register_webhooks(bases / "webhook/manifests.yaml", certificate)
        return self


    def _grant(self, role):
        subject = {"kind": "ServiceAccount", "namespace": self.namespace, "name": self.account}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": role["kind"],
                     "name": role["metadata"]["name"]}
        self._apply([role, {"apiVersion": role["apiVersion"], "kind": "ClusterRoleBinding",
                            "metadata": {"name": self.account}, "roleRef": reference,
                            "subjects": [subject]}])

    def _make_certificate(self, folder):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                        "-subj", "/CN=original", "-addext", "subjectAltName=IP:127.0.0.1",
                        "-keyout", folder / "tls.key", "-out", folder / "tls.crt"],
                       check=True, capture_output=True)
        return base64.b64encode((folder / "tls.crt").read_bytes()).decode()

    def _register_webhooks(self, manifests, certificate):
        for document in yaml.safe_load_all(manifests.read_text()):
            document["metadata"] = {"name": "original"}
            for hook in document["webhooks"]:
                path = hook["clientConfig"].pop("service")["path"]
                hook["clientConfig"] = {"url": self.webhook_url + path, "caBundle": certificate}
                if "pod" in hook["name"]:
                    # As its installation has it: of pods, those of JobSets.
                    hook["objectSelector"] = {"matchExpressions": [
                        {"key": "jobset.sigs.k8s.io/jobset-name", "operator": "Exists"}]}
            kind = document["kind"].removesuffix("Configuration").lower() + "configurations"
            status, answer = self.cluster.request("POST", f"{HOOKS}/{kind}", document)
            assert status == 201, answer
        self._wait_for_webhook()


class Ours(Controller):
    """`grapnel operator` with what `grapnel install` puts into a cluster; strict: as strictly
    compatible, and with the original's CRD, which must be there."""

    name = "grapnel"
    namespace, account = "grapnel-system", "grapnel"

    def start(self):
        self._install()
        self.run()
        return self

    def run(self):
        """Also after process.stop(), to go on."""
        self._run([program("grapnel"), "operator", "--kubeconfig", self._kubeconfig(),
                   "--leader-elect-namespace", self.namespace,
                   "--metrics-addr", "0", "--health-addr", "0",
                   "--webhook-addr", f"127.0.0.1:{self._port.number}",
                   *(["--strict-compatibility"] if self.strict else [])])
        self._wait_for_webhook()

    def install_objects(self):
        """What `grapnel install` would apply."""
        text = subprocess.check_output([program("grapnel"), "install", "--print",
                                        "--namespace", self.namespace])
        return list(yaml.safe_load_all(text))

    def _install(self):
        """All of it but the Deployment."""
        crds, others, self._webhooks = [], [], []
        for document in self.install_objects():
            if document["kind"] == "CustomResourceDefinition":
                if not (self.strict and document["spec"]["names"]["kind"] == "JobSet"):
                    crds.append(document)
            elif document["kind"].endswith("WebhookConfiguration"):
                for hook in document["webhooks"]:
                    path = hook["clientConfig"].pop("service")["path"]
                    hook["clientConfig"]["url"] = self.webhook_url + path
                self._webhooks.append(document)
            elif document["kind"] != "Deployment":
                others.append(document)
        install_crds(self.cluster, *crds)
        self._apply([*others, *self._webhooks])

    def remove_webhooks(self):
        for document in self._webhooks:
            where = [document["kind"], document["metadata"]["name"]]
            found = json.loads(self.cluster.kubectl("get", *where, "-o", "json"))
            # The operator looks after them once a minute only: what it filled in is kept for it.
            for hook, filled in zip(document["webhooks"], found["webhooks"], strict=True):
                hook["clientConfig"]["caBundle"] = filled["clientConfig"]["caBundle"]
            self.cluster.kubectl("delete", *where)

    def restore_webhooks(self):
        self._apply(self._webhooks)
