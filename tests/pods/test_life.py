"""From start to end: order, probes, hooks, grace, restarts, last words."""

import pathlib
import subprocess
import time

from .cluster import condition, container, container_status, is_ready, pod


def terminated(thing, name="main"):
    return container_status(thing, name)["state"]["terminated"]


def test_exit_codes_and_reasons(cluster, name):
    rows = {"zero": ("exit 0", "Succeeded", 0, "Completed"), "seven": ("exit 7", "Failed", 7, "Error"),
            "killed": ("sh -c 'kill -9 $$'; exit $?", "Failed", 137, "Error"),
            "segv": ("sh -c 'kill -SEGV $$'", "Failed", 139, "Error")}
    cluster.create(*(pod(f"{name}-{key}", row[0]) for key, row in rows.items()))
    for key, (_, phase, code, reason) in rows.items():
        ended = cluster.ends(f"{name}-{key}")
        state = terminated(ended)
        assert (ended["status"]["phase"], state["exitCode"], state["reason"]) == (phase, code, reason), key
        assert state["startedAt"] <= state["finishedAt"]
        assert condition(ended, "PodScheduled") == "True" and condition(ended, "Ready") == "False"


def test_init_containers_run_one_after_the_other(cluster, name):
    say = "date +%s%N >> /v/{0}; sleep 0.2; date +%s%N >> /v/{0}"
    mounts = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    thing = pod(name, "cat /v/first /v/second; date +%s%N", volumes=[{"name": "v", "emptyDir": {}}], **mounts)
    thing["spec"]["initContainers"] = [container(say.format(n), n, **mounts) for n in ("first", "second")]
    times = [int(line) for line in cluster.run(thing).split()]
    assert len(times) == 5 and times == sorted(times)
    ended = cluster.get("Pod", name)
    assert condition(ended, "Initialized") == "True"
    assert [s["state"]["terminated"]["exitCode"] for s in ended["status"]["initContainerStatuses"]] == [0, 0]


def test_an_init_container_that_fails_fails_the_pod(cluster, name):
    thing = pod(name, "echo never")
    thing["spec"]["initContainers"] = [container("exit 3", "first")]
    cluster.create(thing)
    ended = cluster.ends(name)
    assert ended["status"]["phase"] == "Failed"
    assert terminated(ended, "first")["exitCode"] == 3
    assert container_status(ended)["state"] == {"waiting": {"reason": "PodInitializing"}}


def test_a_sidecar_runs_beside_and_ends_after(cluster, name):
    mounts = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    thing = pod(name, "while [ ! -e /v/up ]; do sleep 0.05; done; echo main", volumes=[{"name": "v", "emptyDir": {}}],
                **mounts)
    thing["spec"]["initContainers"] = [container("trap 'echo bye; exit 0' TERM; touch /v/up; while :; do sleep 0.1; done",
                                                 "side", restartPolicy="Always", **mounts)]
    thing["spec"]["terminationGracePeriodSeconds"] = 10
    assert cluster.run(thing) == "main\n"
    assert "bye\n" in cluster.output(name, "side")
    assert terminated(cluster.get("Pod", name), "side")["exitCode"] == 0


def test_probes_decide_who_is_ready_and_who_lives(cluster, name):
    fast = {"periodSeconds": 1, "failureThreshold": 1, "timeoutSeconds": 1}
    cluster.create(pod(f"{name}-ready", "sleep 1; touch /tmp/ok; sleep 60",
                       readinessProbe={"exec": {"command": ["test", "-e", "/tmp/ok"]}, **fast}),
                   pod(f"{name}-live", "touch /tmp/ok; sleep 1.5; rm /tmp/ok; sleep 60", restart="Always",
                       livenessProbe={"exec": {"command": ["test", "-e", "/tmp/ok"]}, "initialDelaySeconds": 1, **fast}),
                   pod(f"{name}-http", "mkdir /srv/w; cd /srv/w; sleep 0.5; exec /usr/bin/python3 -m http.server 8000",
                       startupProbe={"httpGet": {"path": "/", "port": 8000}, **fast, "failureThreshold": 30},
                       readinessProbe={"tcpSocket": {"port": 8000}, **fast}))
    running = cluster.phase(f"{name}-ready", "Running")
    assert not is_ready(running) and container_status(running)["started"] is True
    cluster.ready(f"{name}-ready")
    cluster.ready(f"{name}-http")
    again = cluster.wait_for_pod(f"{name}-live", lambda p: (container_status(p) or {}).get("restartCount", 0) == 1,
                                 "is restarted")
    # Its shell ignores TERM, but what it waits for does not.
    assert container_status(again)["lastState"]["terminated"]["exitCode"] in (137, 143)
    assert any("Liveness probe failed" in (e.get("message") or e.get("note") or "")
               for e in cluster.events(f"{name}-live"))
    for kind in ("ready", "live", "http"):
        cluster.delete("Pod", f"{name}-{kind}")


def test_hooks(cluster, name):
    cluster.create(pod(name, "trap 'echo term; exit 0' TERM; while :; do sleep 0.1; done",
                       lifecycle={"postStart": {"exec": {"command": ["sh", "-c", "echo started > /proc/1/fd/1"]}},
                                  "preStop": {"exec": {"command": ["sh", "-c", "echo stopping > /proc/1/fd/1"]}}},
                       spec={"terminationGracePeriodSeconds": 10}))
    cluster.wait(lambda: cluster.get("Pod", name)["status"].get("phase") == "Running" and
                 cluster.output(name) == "started\n", "the first hook runs")
    with following(cluster, name) as follow:
        assert follow.stdout.readline() == "started\n"
        cluster.delete("Pod", name)
        out, _ = follow.communicate(timeout=30)
    assert [line for line in out.splitlines() if line != "Terminated"] == ["stopping", "term"]
    cluster.gone(name)


def following(cluster, name, *arguments):
    return subprocess.Popen(cluster.kubectl_command("logs", "-f", name, *arguments), stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)


def test_grace_then_kill_and_no_orphan(cluster, name):
    mark = f"{300000 + int(cluster.is_root)}"
    cluster.create(pod(name, f"trap '' TERM; setsid sleep {mark} & sleep {mark} & echo up; wait",
                       spec={"terminationGracePeriodSeconds": 2}))
    cluster.wait(lambda: cluster.get("Pod", name)["status"].get("phase") == "Running" and cluster.output(name) == "up\n",
                 "it runs")
    assert processes(f"sleep\0{mark}")
    begin = time.monotonic()
    cluster.delete("Pod", name)
    cluster.gone(name)
    took = time.monotonic() - begin
    assert 1.5 < took < 15
    assert not processes(f"sleep\0{mark}")


def processes(command):
    """Pids of the machine's processes with this command line."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cmdline").read_text().rstrip("\0") == command:
                found.append(int(entry.name))
        except OSError:
            pass
    return found


def test_term_is_heard(cluster, name):
    cluster.create(pod(name, "trap 'exit 5' TERM; echo up; while :; do sleep 0.05; done",
                       spec={"terminationGracePeriodSeconds": 30, "activeDeadlineSeconds": 1}))
    ended = cluster.ends(name)
    assert ended["status"]["reason"] == "DeadlineExceeded"
    assert terminated(ended)["exitCode"] == 5


def test_restarts_back_off(cluster, name):
    cluster.create(pod(name, "echo run; exit 1", restart="Always"))
    waiting = cluster.wait_for_pod(
        name, lambda p: (container_status(p) or {}).get("state", {}).get("waiting", {}).get("reason") == "CrashLoopBackOff",
        "backs off")
    status = container_status(waiting)
    assert status["restartCount"] == 1 and status["lastState"]["terminated"]["exitCode"] == 1
    assert status["state"]["waiting"]["message"].startswith("back-off 10s restarting failed container=main")
    assert waiting["status"]["phase"] == "Running"
    third = cluster.wait_for_pod(name, lambda p: container_status(p)["restartCount"] == 2, "is started a third time",
                                 timeout=25)
    begun = [container_status(waiting)["lastState"]["terminated"]["finishedAt"],
             container_status(third)["lastState"]["terminated"]["startedAt"]]
    assert begun[0] <= begun[1]
    cluster.delete("Pod", name)


def test_last_words(cluster, name):
    cluster.create(pod(f"{name}-file", "echo -n farewell > /dev/termination-log; exit 1"),
                   pod(f"{name}-path", "echo -n elsewhere > /opt/words", terminationMessagePath="/opt/words"),
                   pod(f"{name}-log", "echo it was the log; exit 1", terminationMessagePolicy="FallbackToLogsOnError"),
                   pod(f"{name}-none", "echo it was the log", terminationMessagePolicy="FallbackToLogsOnError"))
    said = {n: terminated(cluster.ends(f"{name}-{n}")).get("message") for n in ("file", "path", "log", "none")}
    assert said == {"file": "farewell", "path": "elsewhere", "log": "it was the log\n", "none": None}


def test_force_deletion_ends_at_once(cluster, name):
    cluster.create(pod(name, "trap '' TERM; echo up; sleep 1000", spec={"terminationGracePeriodSeconds": 600}))
    cluster.phase(name, "Running")
    begin = time.monotonic()
    cluster.delete("Pod", name, gracePeriodSeconds=0)
    cluster.gone(name)
    assert time.monotonic() - begin < 10


def test_a_failed_start_hook_ends_the_container(cluster, name):
    cluster.create(pod(name, "sleep 60", lifecycle={"postStart": {"exec": {"command": ["false"]}}}))
    ended = cluster.ends(name)
    assert ended["status"]["phase"] == "Failed"
