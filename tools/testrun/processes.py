"""Runs commands whose output goes to a file."""

import os
import resource
import subprocess
import time

from .suites import ROOT

LOGS = ROOT / "build" / "test"


def log_of(name):
    LOGS.mkdir(parents=True, exist_ok=True)
    return LOGS / f"{name.replace('/', '-')}.log"


def run(command, log, *, nice=False, env=None, append=False):
    """(exit code, seconds); what it printed is in the file `log`."""
    begin = time.monotonic()
    with open(log, "a" if append else "w") as out:
        done = subprocess.run([*(["nice"] if nice else []), *map(str, command)], cwd=ROOT, stdin=subprocess.DEVNULL,
                              stdout=out, stderr=subprocess.STDOUT, env=os.environ | (env or {}))
    return done.returncode, time.monotonic() - begin


def cpu_seconds():
    """What the processes that have ended so far have used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def tail(log, lines=60):
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
