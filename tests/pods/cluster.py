"""A laptop cluster of its own for a suite, as root or as an ordinary user, and ways to ask it."""

import base64
import contextlib
import http.client
import json
import os
import pathlib
import shutil
import signal
import ssl
import subprocess
import tempfile
import time
import urllib.parse


from kube.programs import Programs

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.path.abspath(os.environ.get("GRAPNEL", ROOT / "build" / "asan" / "grapnel"))
NOBODY = 65534
SOAK = bool(os.environ.get("GRAPNEL_SOAK"))  # longer, as `make soak` has it
PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"


class Api:
    """What can be asked of any cluster that has `request`, `kubectl_command`, `log` and `check`."""

    def create(self, *objects, ns="default"):
        for thing in objects:
            status, answer = self.request("POST", collection(thing, ns), thing)
            assert status == 201, answer
        return answer

    def get(self, kind, name, ns="default"):
        status, answer = self.request("GET", f"{collection({'kind': kind}, ns)}/{name}")
        return answer if status == 200 else None

    def pods(self, ns="default"):
        status, answer = self.request("GET", f"/api/v1/namespaces/{ns}/pods")
        assert status == 200, answer
        return answer["items"]

    def patch(self, kind, name, change, ns="default"):
        status, answer = self.request("PATCH", f"{collection({'kind': kind}, ns)}/{name}", change,
                                      "application/merge-patch+json")
        assert status == 200, answer

    def delete(self, kind, name, ns="default", **options):
        status, answer = self.request("DELETE", f"{collection({'kind': kind}, ns)}/{name}", options or None)
        assert status in (200, 202), answer

    def events(self, name, ns="default"):
        _, answer = self.request("GET", f"/api/v1/namespaces/{ns}/events")
        return [e for e in answer["items"]
                if (e.get("involvedObject") or e.get("regarding") or {}).get("name") == name]

    def wait(self, condition, what, timeout=30):
        """What `condition` gives, once it is true."""
        deadline = time.monotonic() + timeout
        while not (found := condition()):
            assert time.monotonic() < deadline, f"{what}: not within {timeout} s\n{self.log()[-3000:]}"
            self.check()
            time.sleep(0.05)
        return found

    def wait_for_pod(self, name, condition, what, ns="default", timeout=30):
        last = None

        def look():
            nonlocal last
            last = self.get("Pod", name, ns)
            return last if last and condition(last) else None

        try:
            return self.wait(look, f"pod {name} {what}", timeout)
        except AssertionError as failure:
            raise AssertionError(f"{failure}\n{json.dumps((last or {}).get('status'), indent=1)}") from None

    def phase(self, name, *phases, ns="default", timeout=30):
        return self.wait_for_pod(name, lambda p: p["status"].get("phase") in phases, f"is {phases}", ns, timeout)

    def ready(self, name, ns="default", timeout=30):
        return self.wait_for_pod(name, is_ready, "is ready", ns, timeout)

    def ends(self, name, ns="default", timeout=30):
        """The Pod, once it has succeeded or failed."""
        return self.phase(name, "Succeeded", "Failed", ns=ns, timeout=timeout)

    def gone(self, name, ns="default", timeout=40):
        self.wait(lambda: self.get("Pod", name, ns) is None, f"pod {name} is gone", timeout)

    def output(self, name, container="main", ns="default", **options):
        query = urllib.parse.urlencode({"container": container, **options})
        status, text = self.request("GET", f"/api/v1/namespaces/{ns}/pods/{name}/log?{query}", as_text=True)
        assert status == 200, text
        return text

    def run(self, thing, timeout=30):
        """Creates a pod, and gives what it printed when it has ended well."""
        self.create(thing)
        name = thing["metadata"]["name"]
        ended = self.ends(name, timeout=timeout)
        output = self.output(name)
        assert ended["status"]["phase"] == "Succeeded", f"{output}\n{json.dumps(ended['status'], indent=1)}"
        return output

    def kubectl(self, *arguments, timeout=60, **options):
        options = {"capture_output": True, "text": True, **options}
        return subprocess.run(self.kubectl_command(*arguments), timeout=timeout, **options)


class Cluster(Api):
    """`grapnel up`, with a state directory that goes with it.

    user: None for whoever runs the tests, else the number of the user that grapnel runs as.
    prefix: a command that grapnel and kubectl are run by.
    """

    node = "laptop"
    dns = "10.96.0.10"

    def __init__(self, *, user=None, options=(), environment=None, prefix=()):
        self.user = user
        self.prefix = list(prefix)
        self.options = list(options)
        self.state = pathlib.Path(tempfile.mkdtemp(prefix="grapnel-pods-"))
        if user is not None:
            os.chown(self.state, user, user)
        self.environment = {"PATH": PATH, "HOME": str(self.state), "LANG": "C.UTF-8",
                            "XDG_STATE_HOME": str(self.state), **(environment or {})}
        self.folder = self.state / "grapnel" / "default"
        self.kubeconfig = self.folder / "kubeconfig"
        self.process = None
        self.logs = []

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        try:
            self.down()
        finally:
            if self.process and self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            self.end_pods()
            shutil.rmtree(self.state, ignore_errors=True)

    # The program.

    def _command(self, *arguments):
        command = [PROGRAM, *map(str, arguments)]
        if self.user is not None:
            command = ["setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--clear-groups", *command]
        return [*self.prefix, *command]

    def start(self):
        with contextlib.suppress(FileNotFoundError):
            self.kubeconfig.unlink()
        log = self.state / f"log-{len(self.logs)}"
        self.logs.append(log)
        with log.open("w") as out:
            self.process = subprocess.Popen(self._command("up", *self.options), cwd="/", env=self.environment,
                                            stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + 60
        while not self.kubeconfig.exists():
            assert self.process.poll() is None and time.monotonic() < deadline, self.log()
            time.sleep(0.01)
        config = json.loads(self.kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        self.token = config["users"][0]["user"]["token"]
        self.server = urllib.parse.urlparse(cluster["server"])
        self.tls = ssl.create_default_context(
            cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())

    def kill(self):
        """As a crash or the OOM killer does."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        """TERM; the exit code."""
        self.process.terminate()
        return self.process.wait(60)

    def down(self):
        if self.process.poll() is None:
            self.process.terminate()
            code = self.process.wait(90)
            assert code == 0, self.log()
        log = self.log()
        assert "ERROR: AddressSanitizer" not in log and "runtime error:" not in log, log[-5000:]
        assert "LeakSanitizer" not in log, log[-5000:]

    def end_pods(self):
        """As a power cut does: with its shim, which stands in the pod's directory, a pod ends."""
        for entry in pathlib.Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and str(self.state) in os.readlink(entry / "cwd"):
                    os.kill(int(entry.name), signal.SIGKILL)

    def log(self):
        return "".join(path.read_text(errors="replace") for path in self.logs if path.exists())

    def check(self):
        assert self.process.poll() is None, self.log()[-5000:]

    # The API.

    def connect(self):
        return http.client.HTTPSConnection(self.server.hostname, self.server.port, context=self.tls, timeout=30)

    def ask(self, connection, method, path, body=None, content_type="application/json", as_text=False):
        connection.request(method, path, body=json.dumps(body) if body is not None else None,
                           headers={"Authorization": f"Bearer {self.token}", "Content-Type": content_type})
        answer = connection.getresponse()
        text = answer.read().decode()
        if as_text:
            return answer.status, text
        try:
            return answer.status, json.loads(text)
        except ValueError:
            return answer.status, text

    def request(self, *what, **options):
        with contextlib.closing(self.connect()) as connection:
            return self.ask(connection, *what, **options)

    # kubectl.

    def kubectl_command(self, *arguments):
        return [*self.prefix, Programs().path("kubectl"), "--kubeconfig", str(self.kubeconfig),
                "--cache-dir", str(self.state / "kubectl-cache"), *map(str, arguments)]


def collection(thing, ns):
    kind = thing["kind"]
    group = {"Job": "/apis/batch/v1", "PriorityClass": "/apis/scheduling.k8s.io/v1"}.get(kind, "/api/v1")
    plural = kind.lower() + ("es" if kind.endswith("s") else "s")
    if kind in ("Node", "Namespace", "PersistentVolume", "PriorityClass"):
        return f"{group}/{plural}"
    return f"{group}/namespaces/{ns}/{plural}"


def is_ready(pod):
    return condition(pod, "Ready") == "True"


def condition(pod, kind):
    for c in pod["status"].get("conditions", []):
        if c["type"] == kind:
            return c["status"]
    return None


def container_status(pod, name="main"):
    for field in ("containerStatuses", "initContainerStatuses"):
        for status in pod["status"].get(field, []):
            if status["name"] == name:
                return status
    return None


def container(script, name="main", **fields):
    # In a command Kubernetes reads $$ as one $.
    return {"name": name, "image": "host", "command": ["sh", "-c", script.replace("$$", "$$$$")], **fields}


def pod(name, script, *, restart="Never", labels=None, annotations=None, volumes=None, spec=None, **fields):
    """A pod of one container `main` that runs a shell script."""
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "labels": labels or {}, "annotations": annotations or {}},
            "spec": {"restartPolicy": restart, "volumes": volumes or [],
                     "terminationGracePeriodSeconds": 1,
                     "containers": [container(script, **fields)], **(spec or {})}}


def service(name, selector, port=80, target=None, headless=False, **spec):
    ports = [{"port": port, **({"targetPort": target} if target else {})}]
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"selector": selector, "ports": ports,
                     **({"clusterIP": "None"} if headless else {}), **spec}}


def config_map(name, data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def secret(name, data):
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data}
