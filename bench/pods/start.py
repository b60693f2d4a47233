"""How fast pods start, and what they cost besides themselves.

    GRAPNEL=build/release/grapnel $(tools/venv) bench/pods/start.py

Prints the median from `create` to the process running, and grapnel's share of the CPU time while one-second pods run
20 at a time.
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


def share_of_cpu(cluster):
    waiting, running = [f"many-{i}" for i in range(MANY)], set()
    begin, used = time.monotonic(), cpu_seconds(cluster.process.pid)
    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            running.add(waiting[-1])
            cluster.create(pod(waiting.pop(), "sleep 1"))
        time.sleep(0.2)
        for p in cluster.pods():
            name = p["metadata"]["name"]
            if name in running and p["status"].get("phase") in ("Succeeded", "Failed"):
                running.discard(name)
                cluster.delete("Pod", name)
    took = time.monotonic() - begin
    return took, (cpu_seconds(cluster.process.pid) - used) / took / os.cpu_count()


def main():
    with tempfile.TemporaryDirectory() as folder, Cluster(options=["--oversubscribe", "8"]) as cluster:
        took = sorted(start_times(cluster, folder))
        print(f"create to running: median {statistics.median(took):.1f} ms, fastest {took[0]:.1f} ms, "
              f"9 of 10 within {took[len(took) * 9 // 10]:.1f} ms (load {os.getloadavg()[0]:.1f})")
        seconds, share = share_of_cpu(cluster)
        print(f"{MANY} pods of one second, {AT_ONCE} at a time: {seconds:.1f} s, "
              f"grapnel's share of the CPUs {share:.1%} (load {os.getloadavg()[0]:.1f})")


if __name__ == "__main__":
    main()
