"""What a machine has of the things that pods are made of, to see whether any is left behind."""

import collections
import os
import pathlib
import subprocess


def _processes(mark):
    """Command lines of processes that name `mark` anywhere, in arguments or environment."""
    found = collections.Counter()
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            command = (entry / "cmdline").read_bytes()
            directory = os.readlink(entry / "cwd")
            if mark.encode() in command or mark in directory or mark.encode() in (entry / "environ").read_bytes():
                found[command.replace(b"\0", b" ").decode(errors="replace").strip()[:80]] += 1
        except OSError:
            pass
    return found


def of_cluster(cluster):
    """What belongs to a cluster: comparable before and after. Namespaces are counted through its processes."""
    mark = str(cluster.state)
    pid = cluster.process.pid
    namespaces = set()
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark in os.readlink(entry / "cwd"):
                namespaces.update(os.readlink(entry / "ns" / kind) for kind in ("mnt", "net", "pid"))
        except OSError:
            pass
    pods = cluster.folder / "node" / "node" / "pods"
    return {
        "processes": sum(_processes(mark).values()),
        "namespaces": len(namespaces),
        "mounts": sum(mark in line for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()),
        "links": len(links_of(cluster)),
        "open files": len(os.listdir(f"/proc/{pid}/fd")),
        "cgroups": len(_cgroups_of(cluster)),
        "pod directories": len(list(pods.iterdir())) if pods.exists() else 0,
        "trash": len(list((cluster.folder / "node" / "node" / "trash").iterdir())),
    }


def _anchor(cluster):
    text = (cluster.folder / "node" / "node" / "anchor" / "shim.pid")
    return int(text.read_text().split()[0]) if text.exists() else None


def links_of(cluster):
    """Of the cluster's own network."""
    anchor = _anchor(cluster)
    if anchor is None:
        return []
    done = subprocess.run(["nsenter", "-t", str(anchor), "-U", "--preserve-credentials", "-n", "ip", "-o", "link"]
                          if not cluster.is_root else ["nsenter", "-t", str(anchor), "-n", "ip", "-o", "link"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def _cgroups_of(cluster):
    """What lies beside the cgroups of its pods, and is of none of them. Other clusters have cgroups of their own."""
    uids = {p["metadata"]["uid"] for p in cluster.pods()}
    top = pathlib.Path("/sys/fs/cgroup")
    own = {path.parent for uid in uids for path in top.glob(f"**/grapnel-*/{uid}")}
    assert own or not cluster.is_root, "no pod is there to find its cgroups by"
    return [path for one in own for path in one.glob("**/") if path != one and uids.isdisjoint(path.parts)]
