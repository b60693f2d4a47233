"""How fast pods start, and what they cost besides themselves.

    $(tools/venv) bench/pods/start.py

Prints the median from `create` to the process running, and what 200 pods of one second, 20 at a time, leave of the CPUs
to themselves: once with pods that work for a second, once with pods that sleep.
"""

import os
import pathlib
import statistics
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
os.environ.setdefault("GRAPNEL", str(ROOT / "build" / "release" / "grapnel"))
sys.path.insert(0, str(ROOT / "tests"))

from pods.cluster import Cluster, pod  # noqa: E402

ONE_BY_ONE, MANY, AT_ONCE = 50, 200, 20


class KeptCluster(Cluster):
    """Asked over one connection, as clients do."""

    def start(self):
        super().start()
        self.connection = self.connect()

    def request(self, *what, **options):
        return self.ask(self.connection, *what, **options)


def start_times(cluster, folder):
    """Milliseconds from the request to the process's first act, one pod after the other."""
    marks = {"volumes": [{"name": "h", "hostPath": {"path": folder}}],
             "volumeMounts": [{"name": "h", "mountPath": "/marks"}]}
    took = []
    for i in range(ONE_BY_ONE):
        begin = time.time_ns()
        cluster.create(pod(f"one-{i}", f"date +%s%N > /marks/{i}", **marks))
        cluster.ends(f"one-{i}")
        took.append((int(pathlib.Path(folder, str(i)).read_text()) - begin) / 1e6)
        cluster.delete("Pod", f"one-{i}")
    return took


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run_many(cluster, script, **fields):
    """Seconds that it took."""
    begin = time.monotonic()
    waiting, running = [f"many-{i}" for i in range(MANY)], set()
    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            running.add(waiting[-1])
            cluster.create(pod(waiting.pop(), script, **fields))
        time.sleep(0.2)
        for p in cluster.pods():
            name = p["metadata"]["name"]
            if name in running and p["status"].get("phase") in ("Succeeded", "Failed"):
                running.discard(name)
                cluster.delete("Pod", name)
    return time.monotonic() - begin


def sleeping(cluster):
    """Seconds, and the share of all CPUs that grapnel's own process took."""
    used = cpu_seconds(cluster.process.pid)
    took = run_many(cluster, "sleep 1")
    return took, (cpu_seconds(cluster.process.pid) - used) / took / os.cpu_count()


WORK = """import os, time
while time.process_time() < 1: pass
open(f"/marks/{os.uname().nodename}", "w").write(str(time.process_time()))
"""


def busy_seconds():
    """Of all CPUs since the machine started, the kernel's own work included."""
    of_all = pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    user, nice, system, _, _, irq, softirq, *_ = map(int, of_all)
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def working(cluster, folder):
    """Seconds, and the share of the CPU time spent that neither the pods' programs took nor this one: grapnel, its
    shims, and the kernel on their behalf."""
    busy, own = busy_seconds(), time.process_time()
    took = run_many(cluster, f"exec python3 -c '{WORK}'",
                    volumes=[{"name": "h", "hostPath": {"path": folder}}],
                    volumeMounts=[{"name": "h", "mountPath": "/marks"}])
    busy, own = busy_seconds() - busy, time.process_time() - own
    pods = sum(float(mark.read_text()) for mark in pathlib.Path(folder).glob("many-*"))
    assert pods >= MANY
    return took, (busy - own - pods) / busy


def main():
    with tempfile.TemporaryDirectory() as folder, KeptCluster(options=["--oversubscribe", "8"]) as cluster:
        took = sorted(start_times(cluster, folder))
        print(f"create to running: median {statistics.median(took):.1f} ms, fastest {took[0]:.1f} ms, "
              f"9 of 10 within {took[len(took) * 9 // 10]:.1f} ms (load {os.getloadavg()[0]:.1f})")
        load = f"{MANY} pods of one second, {AT_ONCE} at a time"
        seconds, share = working(cluster, folder)
        print(f"{load}, working: {seconds:.1f} s, {share:.1%} of the CPU time spent was not the pods'")
        seconds, share = sleeping(cluster)
        print(f"{load}, sleeping: {seconds:.1f} s, grapnel's process took {share:.1%} of the CPUs")


if __name__ == "__main__":
    main()
