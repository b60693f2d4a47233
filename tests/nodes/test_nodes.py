"""The fixture keeps its promises: pods run on two nodes, find each other, and nothing outlives it."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

from kube import nodes as module
from kube.machines import Place
from kube.programs import Programs

from .conftest import what_is_there_of, what_the_machine_has

SPREAD = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
    {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "meet"}}}]}}
MEET = """
import os, socket, time, urllib.request
me, other = int(os.environ["JOB_COMPLETION_INDEX"]), 1 - int(os.environ["JOB_COMPLETION_INDEX"])
server = socket.create_server(("", 7000))

def reach(host):
    while True:
        try:
            return socket.create_connection((host, 7000), timeout=2)
        except OSError:
            time.sleep(0.1)

# By the pod's name, and by the service's address: both pods are behind it, and one of them is this one.
links = [reach(f"meet-{other}.meet"), *(reach("front") for _ in range(8))]
for link in links:
    link.sendall(b"%d" % me)
    link.close()
server.settimeout(60)
print(f"{me} on {os.environ['NODE']} heard", server.accept()[0].recv(10).decode(), flush=True)
time.sleep(2)
"""


def service(name, **spec):
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"selector": {"app": "meet"}, "ports": [{"port": 7000}],
                     "publishNotReadyAddresses": True, **spec}}


def test_pods_on_two_nodes_meet(real_nodes, place):
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "meet"}, "spec": {
        "completions": 2, "parallelism": 2, "completionMode": "Indexed", "backoffLimit": 0,
        "template": {"metadata": {"labels": {"app": "meet"}}, "spec": {
            "restartPolicy": "Never", "subdomain": "meet", "affinity": SPREAD,
            "containers": [{"name": "main", "image": "host", "command": ["python3", "-c", MEET],
                            "env": [{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]}]}}}}
    objects = {"apiVersion": "v1", "kind": "List", "items": [service("meet", clusterIP="None"), service("front"), job]}
    real_nodes.kubectl("-n", place, "create", "-f", "-", input=json.dumps(objects))
    real_nodes.kubectl("-n", place, "wait", "--for=condition=complete", "job/meet", "--timeout=60s", timeout=90)
    said = [real_nodes.kubectl("-n", place, "logs", f"-lbatch.kubernetes.io/job-completion-index={i}").split()
            for i in (0, 1)]
    assert [line[0] for line in said] == ["0", "1"]
    assert {line[2] for line in said} == {"node-1", "node-2"}


def test_an_image_that_nobody_has(real_nodes, place):
    real_nodes.kubectl("-n", place, "run", "none", "--image=nobody/none:1")
    deadline = time.monotonic() + 30
    while True:
        pod = json.loads(real_nodes.kubectl("-n", place, "get", "pod", "none", "-o", "json"))
        statuses = pod["status"].get("containerStatuses", [])
        if statuses and statuses[0]["state"].get("waiting", {}).get("reason") in ("ErrImagePull", "ImagePullBackOff"):
            break
        assert time.monotonic() < deadline, pod["status"]
        time.sleep(0.2)


def test_a_killed_cluster_is_cleared_by_the_next(node_programs, tmp_path):
    before = what_the_machine_has()
    seconds = str(424242 + os.getpid())  # what no other run of this test has
    sleeping = f"sleep\0{seconds}\0".encode()
    command = subprocess.Popen([sys.executable, module.__file__], stdout=subprocess.PIPE, text=True)
    try:
        kubeconfig = command.stdout.readline().strip().partition("=")[2]
        folder = pathlib.Path(kubeconfig).parents[1]
        kubectl = [Programs().path("kubectl"), "--kubeconfig", kubeconfig, "--cache-dir", tmp_path]
        subprocess.run([*kubectl, "run", "here", "--image=host", "--", "sleep", seconds], check=True,
                       stdout=subprocess.DEVNULL)
        subprocess.run([*kubectl, "wait", "--for=condition=ready", "pod/here", "--timeout=60s"], check=True,
                       stdout=subprocess.DEVNULL)
        assert processes_of(sleeping)
    finally:
        command.send_signal(signal.SIGKILL)
        command.wait()
    # The kernel ends every process, and with them go mounts, links and namespaces.
    deadline = time.monotonic() + 20
    while processes_of(sleeping) or processes_of(os.fsencode(folder)):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    again = Place()
    try:
        assert again.folder == folder and not list(folder.iterdir())
        while what_the_machine_has() != before or any(what_is_there_of(again)[k] for k in ("links", "mounts", "cgroups")):
            assert time.monotonic() < deadline, (what_the_machine_has(), what_is_there_of(again))
            time.sleep(0.1)
    finally:
        again.release()
    assert not folder.exists()


def processes_of(text):
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and text in (entry / "cmdline").read_bytes():
                found.append(entry.name)
        except OSError:
            pass
    return found
