"""What a controller costs: its CPU time and memory, and its requests to the API."""

import os
import re
import time

import yaml

# Who the controller under measurement is to the API server.
USER = "bench"
TICKS = os.sysconf("SC_CLK_TCK")


def descendants(pid):
    """The process and all below it: controllers may be started through another program."""
    found = [pid]
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children") as children:
            for child in children.read().split():
                found += descendants(int(child))
    return found


def cpu_seconds(pid):
    total = 0
    for process in descendants(pid):
        with open(f"/proc/{process}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICKS


def peak_rss_mb(pid):
    total = 0
    for process in descendants(pid):
        with open(f"/proc/{process}/status") as status:
            total += int(re.search(r"VmHWM:\s+(\d+)", status.read()).group(1))
    return total / 1024


def audit_flags(folder):
    """Flags of kube-apiserver by which it notes each request of USER, and where."""
    policy, log = folder / "audit.yaml", folder / "audit.log"
    policy.write_text(yaml.safe_dump({
        "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
        "rules": [{"level": "Metadata", "users": [USER]}, {"level": "None"}]}))
    return [f"--audit-policy-file={policy}", f"--audit-log-path={log}"], log


class Meter:
    """Measures one phase after the other of a controller's work."""

    def __init__(self, controller, audit_log):
        self.pid = controller.pid
        self._audit_log = audit_log

    def start(self):
        self._cpu = cpu_seconds(self.pid)
        self._requests = self._count_requests()
        self._began = time.monotonic()

    def stop(self):
        wall = time.monotonic() - self._began
        return {"wall_s": wall, "cpu_s": cpu_seconds(self.pid) - self._cpu,
                "peak_rss_mb": peak_rss_mb(self.pid),
                "requests": self._count_requests() - self._requests}

    def _count_requests(self):
        if not self._audit_log.exists():
            return 0
        with self._audit_log.open("rb") as log:
            return sum(1 for _ in log)
