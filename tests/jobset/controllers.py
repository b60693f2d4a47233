"""The two controllers under comparison, each started on a ControlPlane and stopped by the test."""

import base64
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


def install_crd(cluster, crd):
    """Puts the CRD in place of whatever stands there, and waits until it is served."""
    name = crd["metadata"]["name"]
    status, found = cluster.request("GET", f"{CRDS}/{name}")
    if status == 200:
        crd["metadata"]["resourceVersion"] = found["metadata"]["resourceVersion"]
        status, answer = cluster.request("PUT", f"{CRDS}/{name}", crd, timeout=60)
    else:
        status, answer = cluster.request("POST", CRDS, crd, timeout=60)
    assert status in (200, 201), answer
    # The server picks a new schema up after the fact; a second is what it takes at most.
    wait_until(lambda: cluster.request("GET", f"{GROUP}/jobsets")[0] == 200, "the CRD is not served")
    time.sleep(2)


def our_crd():
    documents = yaml.safe_load_all(subprocess.check_output([program("grapnel"), "crds"]))
    return next(d for d in documents if d["metadata"]["name"] == "jobsets.jobset.x-k8s.io")


class Controller:
    def __init__(self, cluster, kubeconfig=None):
        self.cluster = cluster
        self.kubeconfig = kubeconfig or cluster.kubeconfig
        self._spawner = Spawner()
        self._component = None

    def _start(self, command):
        log = self.cluster.directory / "logs" / f"{self.name}.log"
        self._component = Component(self.name, command, log, self._spawner)
        self._component.start()

    @property
    def pid(self):
        return self._component.pid

    def log(self):
        return self._component.log.read_text(errors="replace")

    def stop(self):
        if self._component:
            self._component.stop()
        self._spawner.close()

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *_):
        self.stop()


class Original(Controller):
    """sigs.k8s.io/jobset with its own CRD and, by their address, its webhooks."""

    name = "original"

    def start(self):
        module = self.cluster.module("jobset")
        bases = module / "config" / "components"
        crd = yaml.safe_load((bases / "crd/bases/jobset.x-k8s.io_jobsets.yaml").read_text())
        install_crd(self.cluster, crd)
        self._port = ReservedPort()
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
            "featureGates": {"RestartJob": True, "ElasticJobSet": True}}))
        self._start(["env", f"KUBECONFIG={self.kubeconfig}", Programs().path("jobset"),
                     "--config", str(config), "--zap-log-level=2"])
        self._register_webhooks(bases / "webhook/manifests.yaml", certificate)
        return self

    def stop(self):
        for kind in ("mutating", "validating"):
            self.cluster.request("DELETE", f"{HOOKS}/{kind}webhookconfigurations/original")
        super().stop()
        self._port.release()

    def _make_certificate(self, folder):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                        "-subj", "/CN=original", "-addext", "subjectAltName=IP:127.0.0.1",
                        "-keyout", folder / "tls.key", "-out", folder / "tls.crt"],
                       check=True, capture_output=True)
        return base64.b64encode((folder / "tls.crt").read_bytes()).decode()

    def _register_webhooks(self, manifests, certificate):
        url = f"https://127.0.0.1:{self._port.number}"
        for document in yaml.safe_load_all(manifests.read_text()):
            document["metadata"] = {"name": "original"}
            for hook in document["webhooks"]:
                path = hook["clientConfig"].pop("service")["path"]
                hook["clientConfig"] = {"url": url + path, "caBundle": certificate}
                if "pod" in hook["name"]:
                    # As its installation has it: of pods, those of JobSets.
                    hook["objectSelector"] = {"matchExpressions": [
                        {"key": "jobset.sigs.k8s.io/jobset-name", "operator": "Exists"}]}
            kind = document["kind"].removesuffix("Configuration").lower() + "configurations"
            status, answer = self.cluster.request("POST", f"{HOOKS}/{kind}", document)
            assert status == 201, answer
        wait_until(self._webhook_answers, f"the original's webhook does not answer\n{self.log()}")

    def _webhook_answers(self):
        probe = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
                 "metadata": {"name": "probe"}, "spec": {"replicatedJobs": []}}
        path = f"{GROUP}/namespaces/default/jobsets?dryRun=All"
        return self.cluster.request("POST", path, probe, timeout=30)[0] == 201


class Ours(Controller):
    name = "grapnel"

    def start(self):
        install_crd(self.cluster, our_crd())
        self._start([program("grapnel"), "operator", "--kubeconfig", self.kubeconfig,
                     "--controllers", "jobset", "--leader-elect=false",
                     "--metrics-addr", "0", "--health-addr", "0"])
        return self
