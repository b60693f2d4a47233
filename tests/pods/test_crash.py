"""`kill -9` of grapnel at any moment: pods go on, none is lost, none is run twice, every exit code is right."""

import os
import pathlib
import random
import signal
import tempfile
import time

from .cluster import SOAK, container_status, pod

CRASHES = 100 if SOAK else 20
AT_ONCE = 20


def test_no_pod_is_lost_or_run_twice(own_cluster, tmp_path_factory):
    cluster = own_cluster
    seed = int(os.environ.get("GRAPNEL_SEED", time.time_ns() % 100000))
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="grapnel-crash-") as folder:
        os.chmod(folder, 0o777)
        marks = {"volumes": [{"name": "h", "hostPath": {"path": folder}}],
                 "volumeMounts": [{"name": "h", "mountPath": "/marks"}]}
        made, wanted = 0, {}
        open_pods = set()

        def create():
            nonlocal made
            name, code = f"crash-{made}", chance.randrange(0, 100)
            made += 1
            wanted[name] = code
            open_pods.add(name)
            seconds = chance.choice(["0", "0.2", "0.7", "1.5", "3"])
            cluster.create(pod(name, f"echo start >> /marks/{name}; sleep {seconds}; echo end; exit {code}", **marks))

        def look():
            for p in cluster.pods():
                if p["metadata"]["name"] in open_pods and p["status"].get("phase") in ("Succeeded", "Failed"):
                    check(p)

        def check(p):
            name = p["metadata"]["name"]
            state = container_status(p)["state"]["terminated"]
            assert state["exitCode"] == wanted[name], (seed, name, p["status"])
            assert pathlib.Path(folder, name).read_text() == "start\n", (seed, name)
            assert cluster.output(name) == "end\n", (seed, name)
            open_pods.discard(name)
            cluster.delete("Pod", name)

        for crash in range(CRASHES):
            while len(open_pods) < AT_ONCE:
                create()
            time.sleep(chance.uniform(0, 1.0))
            look()
            time.sleep(chance.uniform(0, 0.05))
            cluster.kill()
            time.sleep(chance.choice([0, 0, 0.3]))
            cluster.start()
        def states():
            return {p["metadata"]["name"]: p["status"] for p in cluster.pods()
                    if p["metadata"]["name"] in open_pods}
        try:
            cluster.wait(lambda: look() or not open_pods, f"all pods have ended (seed {seed})", 60)
        except AssertionError as error:
            raise AssertionError(f"{sorted(open_pods)} {states()}\n{error}") from None
        cluster.wait(lambda: not cluster.pods(), "all are gone")
        assert len(list(pathlib.Path(folder).iterdir())) == made


def test_names_asked_for_meanwhile_are_told_when_it_is_back(own_cluster):
    """The sockets of the cluster's DNS are not grapnel's: a question waits in them."""
    script = """
import pathlib, socket, time
while not pathlib.Path("/marks/down").exists():
    time.sleep(0.05)
begin = time.monotonic()
print(socket.gethostbyname("kubernetes.default.svc.cluster.local"), flush=True)
assert time.monotonic() - begin > 1
"""
    with tempfile.TemporaryDirectory(prefix="grapnel-crash-") as folder:
        os.chmod(folder, 0o777)
        thing = pod("asks", "", volumes=[{"name": "h", "hostPath": {"path": folder}}],
                    volumeMounts=[{"name": "h", "mountPath": "/marks"}])
        thing["spec"]["containers"][0]["command"] = ["/usr/bin/python3", "-c", script]
        own_cluster.create(thing)
        own_cluster.phase("asks", "Running")
        own_cluster.kill()
        pathlib.Path(folder, "down").touch()
        time.sleep(1.5)
        own_cluster.start()
        ended = own_cluster.ends("asks")
        said = own_cluster.output("asks")
    assert ended["status"]["phase"] == "Succeeded", said
    assert said == own_cluster.get("Service", "kubernetes")["spec"]["clusterIP"] + "\n"


def test_a_pod_whose_shim_died_has_failed(own_cluster):
    own_cluster.create(pod("never", "sleep 1000"), pod("always", "sleep 1000", restart="Always"))
    for name in ("never", "always"):
        uid = own_cluster.phase(name, "Running")["metadata"]["uid"]
        shim = own_cluster.folder / "node" / "node" / "pods" / uid / "shim.pid"
        os.kill(int(shim.read_text().split()[0]), signal.SIGKILL)
    assert own_cluster.ends("never")["status"]["phase"] == "Failed"
    own_cluster.wait_for_pod("always", lambda p: container_status(p)["restartCount"] == 1 and
                             "running" in container_status(p)["state"], "runs again")
