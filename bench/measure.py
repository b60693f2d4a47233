"""What a controller costs: its CPU time and memory, and its requests to the API."""

import collections
import datetime
import json
import os
import re
import time

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


class AuditLog:
    """The requests of that user, as far as they are answered."""

    def __init__(self, path):
        self._path = path
        self._place = 0
        self._rest = b""
        self._unread = []
        self.requests = 0
        self._creates = collections.defaultdict(list)

    def count(self):
        """How many there are. Quickly: the machine is busy with what is measured."""
        if self._path.exists():
            with self._path.open("rb") as log:
                log.seek(self._place)
                *lines, self._rest = (self._rest + log.read()).split(b"\n")
                self._place = log.tell()
            self._unread += lines
            self.requests += len(lines)
        return self.requests

    def read(self):
        self.count()
        lines, self._unread = self._unread, []
        for entry in map(json.loads, lines):
            if entry["verb"] == "create" and entry.get("responseStatus", {}).get("code") == 201:
                answered = datetime.datetime.fromisoformat(entry["stageTimestamp"]).timestamp()
                self._creates[entry["objectRef"]["resource"]].append(answered)

    def created(self, resource):
        """When those made so far were. Neither a list nor a watch tells it as soon, and both would
        take the API server's time."""
        self.read()
        return self._creates[resource]


class Meter:
    """Measures one phase after the other of a controller's work."""

    def __init__(self, controller, others, audit_log):
        """`others`: the processes that have work from it, such as the API server."""
        self._process = controller.process
        self.pid = controller.process.pid
        self._others = list(others)
        self._log = AuditLog(audit_log)

    def start(self):
        self._log.count()
        self._cpu = cpu_seconds(self.pid)
        self._cpu_of_others = self._count_others()
        self._requests = self._log.requests
        self._began = time.time()

    def stop(self, at=None):
        """`at`: when the phase was over, if not now."""
        wall = (at or time.time()) - self._began
        cpu = cpu_seconds(self.pid) - self._cpu
        others = self._count_others() - self._cpu_of_others
        self._log.count()
        return {"wall_s": wall, "cpu_s": cpu, "others_cpu_s": others,
                "peak_rss_mb": peak_rss_mb(self.pid),
                "requests": self._log.requests - self._requests}

    def check(self):
        """True while the controller runs: nobody waits for one that has ended."""
        if self._process.has_ended:
            raise self._process.failure("ended while it was measured")
        return True

    def _count_others(self):
        return sum(map(cpu_seconds, self._others))

    def requests(self):
        """How many there were since start()."""
        return self._log.count() - self._requests

    def created(self, resource):
        return self._log.created(resource)

