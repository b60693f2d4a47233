"""Drives `conformance_probe`, the program through which tests use our own C++ client.

    with Probe(cluster.kubeconfig) as probe:
        pod = probe.get(POD, namespace="a", name="b")       # or raises ProbeError
        watch = probe.start("watch", kind=POD, namespace="a")
        event = watch.event()
        watch.cancel()

Every command of the probe is a method; `start` runs one in the background.
"""

import json
import os
import pathlib
import queue
import subprocess
import threading

TIMEOUT = 60  # seconds; generous, as machines that compile are slow

NAMESPACE = ["", "v1", "Namespace", "namespaces", False]
POD = ["", "v1", "Pod", "pods", True]
CONFIG_MAP = ["", "v1", "ConfigMap", "configmaps", True]
SERVICE = ["", "v1", "Service", "services", True]
JOB = ["batch", "v1", "Job", "jobs", True]
DEPLOYMENT = ["apps", "v1", "Deployment", "deployments", True]
LEASE = ["coordination.k8s.io", "v1", "Lease", "leases", True]


class ProbeError(Exception):
    """The client answered with an Error, whose fields these are."""

    def __init__(self, error):
        super().__init__(f"{error['reason']}: {error['message']}")
        self.reason = error["reason"]
        self.message = error["message"]
        self.code = error["code"]
        self.causes = error["causes"]
        self.ambiguous = error["ambiguous"]
        self.transient = error["transient"]
        self.retry_after = error.get("retry_after")


def program():
    """The probe that was built last, or the one named by GRAPNEL_PROBE."""
    if named := os.environ.get("GRAPNEL_PROBE"):
        return pathlib.Path(named)
    root = pathlib.Path(__file__).resolve().parents[2]
    built = sorted(root.glob("build/*/conformance_probe"), key=lambda p: p.stat().st_mtime)
    if not built:
        raise RuntimeError("conformance_probe is not built: "
                           "cmake --preset asan && ninja -C build/asan conformance_probe")
    return built[-1]


class Command:
    """One command under way."""

    def __init__(self, probe, number):
        self._probe = probe
        self._number = number
        self._answers = queue.Queue()
        self._ended = None

    def _take(self, answer):
        self._answers.put(answer)

    def next(self, timeout=TIMEOUT):
        """("event", value) or at the end ("ok", value); an Error is raised."""
        if self._ended is None:
            try:
                answer = self._answers.get(timeout=timeout)
            except queue.Empty:
                raise TimeoutError("the probe is silent") from None
            if "event" in answer:
                return "event", answer["event"]
            self._ended = answer
        if "error" in self._ended:
            raise ProbeError(self._ended["error"])
        return "ok", self._ended["ok"]

    def event(self, timeout=TIMEOUT):
        kind, value = self.next(timeout)
        assert kind == "event", f"it has ended: {value}"
        return value

    def result(self, timeout=TIMEOUT):
        """Waits for the end, passing over events."""
        while True:
            kind, value = self.next(timeout)
            if kind == "ok":
                return value

    def text(self, timeout=TIMEOUT):
        """All data of a stream up to its end."""
        pieces = []
        while True:
            kind, value = self.next(timeout)
            if kind == "ok":
                return "".join(pieces)
            pieces.append(value.get("data", ""))

    def lines(self, timeout=TIMEOUT):
        """The JSON lines of a stream, as they come."""
        rest = ""
        while True:
            kind, value = self.next(timeout)
            if kind == "ok":
                assert not rest, f"a line was cut off: {rest!r}"
                return
            rest += value.get("data", "")
            while "\n" in rest:
                line, rest = rest.split("\n", 1)
                yield json.loads(line)

    @property
    def number(self):
        """What later commands call this one by."""
        return self._number

    def events(self):
        """Those that have come by now."""
        found = []
        while self._ended is None:
            try:
                answer = self._answers.get_nowait()
            except queue.Empty:
                break
            if "event" in answer:
                found.append(answer["event"])
            else:
                self._ended = answer
        return found

    def cancel(self):
        self._probe.start("cancel", target=self._number).result()


class Probe:
    def __init__(self, kubeconfig, env=None, timeout=30):
        """`timeout`: how many seconds the client waits for an answer."""
        self._process = subprocess.Popen(
            [program(), str(kubeconfig), str(timeout)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=os.environ | (env or {}))
        self._commands = {0: Command(self, 0)}
        self._count = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self):
        return self._process.pid

    def __enter__(self):
        try:
            self._commands[0].result()
        except BaseException:  # it has refused its kubeconfig
            self._process.kill()
            self._process.communicate()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Ends the probe, which must leave in good order: a sanitizer's complaint is a failure."""
        self._process.stdin.close()
        try:
            code = self._process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise
        self._reader.join()
        self._process.stdout.close()
        assert code == 0, f"the probe ended with code {code}"

    def kill(self):
        """Ends it without asking. May be repeated."""
        self._process.kill()
        self._process.wait()
        self._reader.join()

    @property
    def pid(self):
        return self._process.pid

    def start(self, do, **fields):
        self._count += 1
        command = self._commands[self._count] = Command(self, self._count)
        line = json.dumps({"id": self._count, "do": do} | fields)
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return command

    def __getattr__(self, do):
        if do.startswith("_"):
            raise AttributeError(do)
        return lambda **fields: self.start(do, **fields).result()

    def _read(self):
        for line in self._process.stdout:
            answer = json.loads(line)
            self._commands[answer["id"]]._take(answer)
        for command in list(self._commands.values()):
            command._take({"error": {"reason": "Cancelled", "message": "the probe has ended",
                                     "code": 0, "causes": [], "ambiguous": False,
                                     "transient": False}})
