"""`logs -f`, `run`, `status -w` and what reaches into processes: whole logs, and what they do when their
cluster goes away or they are told to end."""

import os
import pathlib
import re
import signal
import socket
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from .grapnel import ROOT, Grapnel
from .test_experiments import phase, submit, wait_for
from .test_run import manifest

TICKS = "i=0; while [ ! -e $AICHOR_INPUT_PATH/go ]; do echo line $i; i=$((i+1)); sleep 0.1; done; echo all of $i"


class Cluster(Grapnel):
    """A laptop cluster of one test alone, which may kill it."""

    def __init__(self, state):
        super().__init__(state)
        self.folder = state / "grapnel" / "default"
        self.followers = []

    def pid(self):
        return int((self.folder / "pid").read_text())

    def kill(self):
        pid = self.pid()
        os.kill(pid, signal.SIGKILL)
        wait_for("its end", lambda: self("status").returncode == 1)

    def follow(self, *arguments, log: pathlib.Path):
        self.followers.append(self.start(*arguments, log=log))
        return self.followers[-1]

    def inputs(self, name):
        return next((self.folder / "experiments").glob(f"**/*{name}*/**/inputs"))


@pytest.fixture
def cluster(tmp_path):
    program = Cluster(tmp_path / "state")
    try:
        started = program("up", "-d")
        assert started.returncode == 0, started.stderr + program.cluster_log()
        yield program
    finally:
        for follower in program.followers:
            if follower.poll() is None:
                follower.kill()
            follower.wait()
        program("up", "-d")  # what was killed left its pods
        assert program("down").returncode == 0


def test_following_what_has_ended_prints_what_logs_prints(up, tmp_path):
    fails = "echo one $RANK; [ $RANK = 1 ] && { sleep 0.5; echo boom >&2; exit 7; }; exec sleep 600"
    submit(up, manifest(tmp_path, fails), "failed")
    wait_for("its end", lambda: phase(up, "failed") == "Failed")
    wait_for("the pods' end", lambda: " Running " not in up("status", "failed").stdout)
    plain = up("logs", "failed")
    assert sorted(line for line in plain.stdout.splitlines() if "Terminated" not in line) == [
        "worker-0 | one 0", "worker-1 | boom", "worker-1 | one 1"]
    for _ in range(6):
        followed = up("logs", "-f", "failed")
        assert (followed.stdout, followed.returncode) == (plain.stdout, 0), followed.stderr


def test_following_a_short_experiment_from_its_start_loses_nothing(up, tmp_path):
    for i in range(3):
        name = submit(up, manifest(tmp_path, "echo one $RANK; echo two $RANK"), f"short-{i}")
        followed = up("logs", "-f", name)
        assert sorted(followed.stdout.splitlines()) == [
            "worker-0 | one 0", "worker-0 | two 0", "worker-1 | one 1", "worker-1 | two 1"], followed.stderr


def stop(cluster, how):
    if how == "down":
        assert cluster("down").returncode == 0
    else:
        cluster.kill()


@pytest.mark.parametrize("how", ["down", "kill"])
def test_who_follows_ends_when_the_cluster_has_stopped(cluster, tmp_path, how):
    path = manifest(tmp_path, TICKS)
    logs = {what: tmp_path / f"{what}.log" for what in ("run", "logs", "status", "forward", "exec")}
    running = {"run": cluster.follow("run", "--name", "train", path, log=logs["run"])}
    wait_for("its words", lambda: "line 2" in logs["run"].read_text())
    running["logs"] = cluster.follow("logs", "-f", "train", log=logs["logs"])
    running["status"] = cluster.follow("status", "-w", "train", log=logs["status"])
    running["forward"] = cluster.follow("port-forward", "train", ":80", log=logs["forward"])
    running["exec"] = cluster.follow("exec", "train", "--", "sh", "-c", "echo in; exec sleep 600", log=logs["exec"])
    for what, word in (("logs", "line"), ("status", "Running"), ("forward", "leads to"), ("exec", "in")):
        wait_for(f"{what} to begin", lambda: word in logs[what].read_text())
    stop(cluster, how)
    for what, process in running.items():
        code, text = process.wait(timeout=60), logs[what].read_text()
        assert code == 1, (what, text)
        assert text.splitlines()[-1] == "the cluster 'default' has stopped", (what, text)


def test_followers_find_a_cluster_that_is_restarted(cluster, tmp_path):
    path, log, other = manifest(tmp_path, TICKS), tmp_path / "log", tmp_path / "other"
    run = cluster.follow("run", "--name", "train", path, log=log)
    wait_for("its words", lambda: "line 2" in log.read_text())
    follow = cluster.follow("logs", "-f", "train", log=other)
    wait_for("the same words", lambda: "line 5" in other.read_text())
    before = (cluster.folder / "kubeconfig").read_text()
    cluster.kill()
    assert cluster("up", "-d").returncode == 0, cluster.cluster_log()
    assert (cluster.folder / "kubeconfig").read_text() == before
    (cluster.inputs("train") / "go").touch()
    assert run.wait(timeout=90) == 0, log.read_text()
    assert follow.wait(timeout=90) == 0, other.read_text()
    for text in (log.read_text(), other.read_text()):
        for rank in (0, 1):
            lines = re.findall(rf"^worker-{rank} +\| (.*)$", text, re.M)
            count = int(lines[-1].removeprefix("all of "))
            assert lines[:-1] == [f"line {i}" for i in range(count)], text


def test_the_port_stays_unless_it_is_taken(cluster):
    def port():
        return int(re.search(r"https://127.0.0.1:(\d+)", (cluster.folder / "kubeconfig").read_text())[1])
    first = port()
    assert cluster("down").returncode == 0
    assert cluster("up", "-d").returncode == 0
    assert port() == first
    assert cluster("down").returncode == 0
    with socket.create_server(("127.0.0.1", first)):
        started = cluster("up", "-d")
        assert started.returncode == 0, started.stderr
        assert port() != first
        assert f"port {first} is taken: the cluster's API is at port {port()} from now on" in started.stderr


def test_a_first_ctrl_c_ends_run_when_the_cluster_is_gone(cluster, tmp_path):
    log = tmp_path / "log"
    run = cluster.follow("run", "--name", "train", manifest(tmp_path, TICKS), log=log)
    wait_for("its words", lambda: "line 2" in log.read_text())
    os.kill(cluster.pid(), signal.SIGKILL)
    run.send_signal(signal.SIGINT)
    assert run.wait(timeout=30) == 1
    assert log.read_text().endswith("the cluster 'default' has stopped\n")


def test_terminated_run_ends_when_the_cluster_does_not_answer(cluster, tmp_path):
    log = tmp_path / "log"
    run = cluster.follow("run", "--name", "train", manifest(tmp_path, TICKS), log=log)
    wait_for("its words", lambda: "line 2" in log.read_text())
    os.kill(cluster.pid(), signal.SIGSTOP)
    try:
        run.send_signal(signal.SIGTERM)
        assert run.wait(timeout=60) == 1
        assert "lost the connection to the laptop cluster 'default': no answer within 5 s" in log.read_text()
    finally:
        os.kill(cluster.pid(), signal.SIGCONT)


def test_terminated_followers_end_soon(cluster, tmp_path):
    """Also where the processes do not: a shell that is the first process of its pod gets no SIGTERM."""
    deaf = manifest(tmp_path, "trap '' TERM; echo up; while :; do sleep 0.1; done")
    log = tmp_path / "log"
    run = cluster.follow("run", "--name", "deaf", deaf, log=log)
    wait_for("its words", lambda: "worker-1 | up" in log.read_text())
    others = [cluster.follow(*command, "deaf", log=tmp_path / command[0])
              for command in (("logs", "-f"), ("status", "-w"))]
    wait_for("their words", lambda: all((tmp_path / name).read_text() for name in ("logs", "status")))
    for process in others:
        process.terminate()
        assert process.wait(timeout=20) == -signal.SIGTERM
    run.terminate()
    assert run.wait(timeout=25) == 130
    assert "not waiting for deaf; `grapnel status deaf` shows how it ends" in log.read_text()


def test_down_says_what_it_stops_and_the_experiment_says_so_later(cluster, tmp_path):
    submit(cluster, manifest(tmp_path, "echo up; exec sleep 600"), "train")
    wait_for("its start", lambda: phase(cluster, "train") == "Running")
    assert cluster("down").stdout == ("cluster 'default' stops with what runs on it: 1 experiment (train)\n"
                                      "cluster 'default' is down\n")
    assert cluster("up", "-d").returncode == 0
    wait_for("its end", lambda: phase(cluster, "train") == "Failed")
    assert "Failed (the cluster was stopped)" in cluster("status", "train").stdout


def test_a_cluster_in_the_foreground_ends_quietly(tmp_path):
    program, log = Cluster(tmp_path / "state"), tmp_path / "log"
    up = program.start("up", log=log)
    try:
        wait_for("its start", lambda: (program.folder / "kubeconfig").exists())
        submit(program, manifest(tmp_path, "echo up; exec sleep 600"), "train")
        followers = [program.start(*command, "train", log=tmp_path / command[0])
                     for command in (("logs", "-f"), ("status", "-w"))]
        wait_for("its words", lambda: all((tmp_path / name).read_text() for name in ("logs", "status")))
        up.send_signal(signal.SIGINT)
        assert up.wait(timeout=60) == 0
        for follower in followers:
            assert follower.wait(timeout=60) == 1
    finally:
        up.kill()
        up.wait()
    assert '"level":"error"' not in log.read_text() and "exception" not in log.read_text(), log.read_text()


def test_a_cluster_that_cannot_start_says_why(tmp_path):
    program = Cluster(tmp_path / "state")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        started = program("up", "-d", "--port", taken.getsockname()[1])
    assert started.returncode == 1
    assert "the cluster did not start: the API server: cannot listen on 127.0.0.1:" in started.stderr


def test_a_folder_that_was_deleted_is_named(tmp_path):
    program = Cluster(tmp_path / "state")
    path = manifest(tmp_path, "true")
    for command in (["run", path], ["up"], ["up", "-d"]):
        gone = tmp_path / "gone"
        gone.mkdir()
        ended = subprocess.run(["sh", "-c", 'rmdir "$PWD"; exec "$@"', "sh", *program.command(*command)], cwd=gone,
                               env=program.environment, capture_output=True, text=True, timeout=60)
        assert ended.returncode in (1, 2), ended.stderr
        assert ended.stderr == "the current directory cannot be used: No such file or directory\n"


class Nonsense(BaseHTTPRequestHandler):
    """A server that is no Kubernetes."""
    protocol_version = "HTTP/1.1"
    bodies = {}

    def do_GET(self):
        kind = "watch" if "watch=" in self.path else next(
            (word for word in ("/log", "/experiments/", "/experiments", "/pods", "/podlogs") if word in self.path), "")
        body = self.bodies.get(kind, b"{}")
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body) + (100 if kind in self.bodies.get("cut", ()) else 0)))
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    def log_message(self, *arguments):
        pass


EXPERIMENT = b'{"apiVersion":"grapnel.dev/v1alpha1","kind":"Experiment","metadata":{"name":"x","namespace":"default"}}'
POD = (b'{"metadata":{"name":"p","namespace":"default","uid":"u","labels":{"grapnel.dev/component":7}},'
       b'"status":{"phase":"Running","containerStatuses":{}}}')


@pytest.mark.parametrize("bodies", [
    {},
    {"/experiments/": b"[]", "/pods": b"[]"},
    {"/experiments/": EXPERIMENT, "/pods": b'{"items": 7}', "/experiments": b'{"items": "x"}'},
    {"/experiments/": EXPERIMENT, "/pods": b'{"items": [7, null, {}, {"metadata": []}, ' + POD + b']}',
     "/podlogs": b'{"items": {}}', "/log": b"no time here\n2026-05-04T10:00:01Z half a li",
     "/experiments": b'{"items": [null, {"spec": 7}]}', "cut": ("/log", "/pods")},
    {"/experiments/": EXPERIMENT, "/pods": b'{"items": null}', "/experiments": b'{"items": null}',
     "watch": b'{"type": 7, "object": []}\n[]\n{"type":"ADDED","object":null}\n{"type":"ADDED","object":{"metadata":7',
     "cut": ("watch",)},
    {"/experiments/": b'{"metadata": 7, "spec": [], "status": "x"}', "watch": b"\xff\xfe\0\n\n"},
], ids=range(6))
def test_a_server_that_answers_nonsense_crashes_nobody(tmp_path, bodies):
    program = Cluster(tmp_path / "state")
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Nonsense,), {"bodies": bodies}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    config = tmp_path / "config"
    config.write_text(f"""apiVersion: v1
kind: Config
current-context: x
clusters: [{{name: x, cluster: {{server: "http://127.0.0.1:{server.server_port}"}}}}]
contexts: [{{name: x, context: {{cluster: x, user: x}}}}]
users: [{{name: x, user: {{}}}}]
""")
    try:
        for command in (["logs", "x"], ["logs", "-f", "x"], ["status", "x"], ["status", "-w", "x"], ["list"],
                        ["list", "-A"], ["top", "x"], ["cancel", "x"], ["exec", "x", "--", "true"],
                        ["port-forward", "x", ":80"]):
            # What follows goes on asking such a server: it is told to end, and ends by that.
            ended = subprocess.run(["timeout", "2", *program.command(*command, "--kubeconfig", config)],
                                   env=program.environment, cwd=ROOT, capture_output=True, text=True, timeout=60)
            assert ended.returncode in (0, 1, 2, 124), (command, ended.returncode, ended.stderr)
            assert "terminate called" not in ended.stderr and "Sanitizer" not in ended.stderr, (command, ended.stderr)
    finally:
        server.shutdown()
        server.server_close()
