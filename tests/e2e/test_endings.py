"""How experiments end that do not end well: what the status says, which code `grapnel run` exits with."""

import json
import signal
import time

import pytest

from .test_experiments import phase, wait_for
from .test_run import manifest


def run(grapnel, path, name, **environment):
    began = time.monotonic()
    ran = grapnel("run", "--name", name, path, **environment)
    status = json.loads(grapnel("status", name, "-o", "json").stdout)["status"]
    return ran, status, time.monotonic() - began


@pytest.mark.parametrize("name, command, code, message, said", [
    ("missing", "no-such-program --fast", 127, "ended with code 127",
     "no-such-program: not found"),
    ("forbidden", "/etc/hostname", 126, "ended with code 126", "Permission denied"),
    ("no-script", "python3 no-such-file.py", 2, "ended with code 2", "No such file or directory"),
    ("killed", "sh -c 'kill -9 $$'; exit $?", 137, "ended with code 137", None),
    ("unparsable", "if then", 2, "ended with code 2", "yntax error"),
])
def test_a_command_that_cannot_do_its_work(grapnel, tmp_path, name, command, code, message, said):
    ran, status, took = run(grapnel, manifest(tmp_path, command), name)
    assert ran.returncode == code, ran.stdout + ran.stderr
    assert status["phase"] == "Failed" and status["reason"] == "ProcessFailed"
    assert status["exitCode"] == code
    assert message in status["message"] and message in ran.stderr
    assert said is None or said in ran.stdout
    assert took < 20


def test_one_rank_that_crashes_ends_the_others(grapnel, tmp_path):
    """The others would wait for it for ever, as in a collective operation."""
    command = "echo up $RANK; [ $RANK = 1 ] && sleep 1 && exit 42; exec sleep 600"
    ran, status, took = run(grapnel, manifest(tmp_path, command), "crash")
    assert ran.returncode == 42, ran.stdout + ran.stderr
    assert status["message"] == "worker 1 ended with code 42"
    assert sorted(ran.stdout.splitlines())[0] == "worker-0 | up 0"
    assert took < 45
    tree = grapnel("status", "crash").stdout
    assert "Running" not in tree, tree


def test_the_time_out_counts_for_all_tries(grapnel, tmp_path):
    ran, status, took = run(
        grapnel, manifest(tmp_path, "exec sleep 600", extra="  timeout: 3s\n  backoffLimit: 5"), "late")
    assert ran.returncode == 1
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
    assert status["message"] == "ran longer than its time-out of 3s"
    assert status.get("restarts", 0) == 0
    assert 3 <= took < 40


def test_the_time_out_wins_over_the_deadline(grapnel, tmp_path):
    both = "  activeDeadlineSeconds: 1\n  timeout: 1m"
    ran, status, _ = run(grapnel, manifest(tmp_path, "sleep 2", extra=both), "both")
    assert ran.returncode == 0, ran.stderr
    assert status["phase"] == "Succeeded"


def test_every_try_is_counted(grapnel, tmp_path):
    ran, status, _ = run(grapnel, manifest(tmp_path, "exit 5", extra="  backoffLimit: 2"), "tries")
    assert ran.returncode == 5
    assert (status["phase"], status["restarts"]) == ("Failed", 2)


def test_ctrl_c_cancels_and_a_second_one_leaves(grapnel, tmp_path):
    path, log = manifest(tmp_path, "trap 'echo asked to stop; exit' TERM; while :; do sleep 0.1; done"), \
        tmp_path / "log"
    running = grapnel.start("run", "--name", "stopped", path, log=log)
    wait_for("its start", lambda: "Running" in log.read_text())
    running.send_signal(signal.SIGINT)
    assert running.wait(timeout=60) == 130
    text = log.read_text()
    assert "stopped: cancelling; press Ctrl-C again not to wait for its end" in text
    assert text.count("asked to stop") == 2, text
    assert text.endswith("stopped: Cancelled (cancelled on request)\n")

    log.write_text("")
    running = grapnel.start("run", "--name", "left", manifest(tmp_path, "trap '' TERM; sleep 600"), log=log)
    wait_for("its start", lambda: "Running" in log.read_text())
    running.send_signal(signal.SIGINT)
    wait_for("the word", lambda: "press Ctrl-C again" in log.read_text())
    running.send_signal(signal.SIGINT)
    assert running.wait(timeout=20) == 130
    assert "not waiting for left; `grapnel status left` shows how it ends" in log.read_text()
    assert grapnel("delete", "left").returncode == 0


def test_a_retry_starts_where_the_first_try_did(grapnel, tmp_path):
    """In the same folder, with the same programs, whoever asks for it from where."""
    path = manifest(tmp_path, "echo $PWD $VIRTUAL_ENV; exit 3")
    ran, _, _ = run(grapnel, path, "first", cwd=tmp_path, VIRTUAL_ENV="/my/env")
    assert ran.returncode == 3
    assert ran.stdout.splitlines()[0].endswith(f"| {tmp_path} /my/env")
    name = grapnel("retry", "first").stdout.strip()
    wait_for("its end", lambda: phase(grapnel, name) == "Failed")
    assert f"{tmp_path} /my/env\n" in grapnel("logs", name).stdout
