"""Machines within this machine: namespaces of their own, that end with all that is in them."""

import contextlib
import fcntl
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

from kube.processes import Spawner, StartFailed

# A shell that waits for its child also reaps the orphans of the namespace, as its first process must.
INIT = "while :; do sleep 3600; done"
CGROUPS = pathlib.Path("/sys/fs/cgroup")


def ip(*arguments, within=None):
    """Runs `ip`, in a machine's network namespace if one is given."""
    enter = ["nsenter", f"--net=/proc/{within.pid}/ns/net", "--"] if within else []
    done = subprocess.run([*enter, "ip", *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        raise StartFailed(f"ip {' '.join(map(str, arguments))}: {done.stderr.strip()}")


class Machine:
    """A network namespace and, unless `only_network`, also processes, mounts and a host name of its
    own. The kernel ends it, with every process and mount in it, when this Python process ends.

    setup  a shell script that its first process runs within
    """

    def __init__(self, name, spawner: Spawner, log, *, only_network=False, setup=""):
        self._only_network = only_network
        kinds = ["--net", "--pid", "--fork", "--kill-child"]
        if not only_network:
            kinds += ["--mount", "--uts", "--mount-proc"]
            setup = f"hostname {name}\n{setup}"
        # The last line tells that the setup is done.
        self._done = pathlib.Path(f"{log}.up")
        self._done.unlink(missing_ok=True)
        script = f"set -e\nip link set lo up\n{setup}\ntouch {self._done}\n{INIT}"
        self._process = spawner.start(["unshare", *kinds, "--", "sh", "-c", script], log)
        deadline = time.monotonic() + 20
        while not self._done.exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise StartFailed(f"machine {name}: {pathlib.Path(log).read_text()}")
            time.sleep(0.01)
        self._done.unlink()
        unshare = self._process.pid
        self.pid = int(pathlib.Path(f"/proc/{unshare}/task/{unshare}/children").read_text().split()[0])

    @property
    def enter(self):
        """A command's prefix that has it run within. Killed from outside, the command ends too."""
        if self._only_network:
            return ["nsenter", f"--net=/proc/{self.pid}/ns/net", "--"]
        return ["nsenter", "-t", str(self.pid), "--net", "--mount", "--pid", "--uts", "--",
                "setpriv", "--pdeathsig", "KILL", "--"]

    def stop(self):
        """Ends it with all its processes; returns when they are gone."""
        self._process.kill()
        self._process.wait()


class Place:
    """A number that no other test on this machine has now, and what is named by it: a folder, a
    cgroup, a link and a network of addresses. What a killed owner of the number left is removed."""

    def __init__(self):
        base = pathlib.Path(tempfile.gettempdir()) / "grapnel-nodes"
        base.mkdir(mode=0o755, exist_ok=True)
        for number in range(100):
            self._lock = open(base / f"{number}.lock", "w")
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            self._lock.close()
        else:
            raise StartFailed("a hundred clusters of nodes run already")
        self.number = number
        self.folder = base / str(number)
        self.cgroup = f"grapnel-nodes-{number}"
        self.link = f"gnodes{number}"
        self.clear()
        self.folder.mkdir()

    def address(self, host):
        return f"10.88.{self.number}.{host}"

    def make_cgroups(self, *names):
        """A cgroup for each node, in every hierarchy that the machine has."""
        for root in _hierarchies():
            for path in (root / self.cgroup, *(root / self.cgroup / name for name in names)):
                path.mkdir(exist_ok=True)
                for file in ("cpuset.cpus", "cpuset.mems"):  # the first version's start empty
                    if (path / file).exists() and not (path / file).read_text().strip():
                        (path / file).write_text((path.parent / file).read_text())
                if (path / "cgroup.subtree_control").exists():
                    for controller in (path / "cgroup.controllers").read_text().split():
                        (path / "cgroup.subtree_control").write_text(f"+{controller}")

    def clear(self):
        """Removes link, folder and cgroups. The processes that had them have ended already."""
        if os.path.exists(f"/sys/class/net/{self.link}"):  # the kernel can be slow to take it away
            subprocess.run(["ip", "link", "delete", self.link], capture_output=True)
        for root in _hierarchies():
            top = root / self.cgroup
            for path in sorted(top.glob("**/"), key=lambda p: len(p.parts), reverse=True):
                _remove_cgroup(path)
        shutil.rmtree(self.folder, ignore_errors=True)

    def release(self):
        self.clear()
        self._lock.close()


def _hierarchies():
    if (CGROUPS / "cgroup.controllers").exists():
        return [CGROUPS]
    return [path for path in CGROUPS.iterdir() if not path.is_symlink() and (path / "cgroup.procs").exists()]


def _remove_cgroup(path):
    """A cgroup whose last process has been killed is busy for a moment longer."""
    deadline = time.monotonic() + 10
    while path.exists():
        try:
            os.rmdir(path)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
