"""`grapnel submit`, `list`, `status`, `logs`, `cancel`, `retry`, `delete` on a laptop cluster."""

import json
import time

from .grapnel import ROOT
from .test_run import manifest


def wait_for(what, condition, seconds=60):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.1)
    raise AssertionError(f"{what} did not come about within {seconds} s")


def phase(grapnel, name):
    shown = grapnel("status", name, "-o", "json")
    assert shown.returncode == 0, shown.stderr
    return json.loads(shown.stdout).get("status", {}).get("phase")


def submit(grapnel, path, name):
    submitted = grapnel("submit", path, "--name", name)
    assert submitted.returncode == 0, submitted.stderr + grapnel.cluster_log()
    assert submitted.stdout == name + "\n"
    return name


def test_an_experiment_from_submit_to_delete(up, tmp_path):
    submit(up, manifest(tmp_path, "echo from $RANK; echo again; sleep 0.2; echo last of $RANK"),
           "train")
    wait_for("success", lambda: phase(up, "train") == "Succeeded")

    listed = up("list")
    assert [line.split()[:4] for line in listed.stdout.splitlines()] == [
        ["NAME", "OPERATOR", "PHASE", "PROCESSES"], ["train", "pytorch", "Succeeded", "2/2"]]
    assert up("list", "-o", "name").stdout == "train\n"
    assert json.loads(up("list", "-o", "json").stdout)["items"][0]["metadata"]["name"] == "train"

    tree = up("status", "train").stdout.splitlines()
    assert tree[0].startswith("Experiment train  Succeeded (all processes ended well)  pytorch  ")
    assert tree[1] == "└─ JobSet train  2/2 processes"
    assert tree[2] == "   └─ Job train-worker-0  Complete"
    assert tree[3].startswith("      ├─ Pod train-worker-0-0-") and "  Succeeded  on " in tree[3]
    assert tree[4].startswith("      └─ Pod train-worker-0-1-")

    everything = up("logs", "train").stdout.splitlines()
    assert sorted(everything) == sorted(f"worker-{r} | {text}" for r in (0, 1)
                                        for text in (f"from {r}", "again", f"last of {r}"))
    assert {line.split("last of")[0] for line in everything[-2:]} == {"worker-0 | ", "worker-1 | "}
    assert up("logs", "train", "--rank", "1", "--grep", "^from").stdout == "worker-1 | from 1\n"
    assert up("logs", "train", "--role", "worker", "--tail", "1", "--rank", "0").stdout == \
        "worker-0 | last of 0\n"
    assert up("logs", "train", "--role", "nobody").stderr == "none of its processes has started\n"

    assert up("delete", "train").stdout == "train deleted\n"
    wait_for("deletion", lambda: up("list").stdout == "")
    gone = up("status", "train")
    assert gone.returncode == 1
    assert gone.stderr == \
        "there is no experiment 'train'; `grapnel list` shows those there are\n"


def test_a_cancelled_experiment_stays_and_can_be_retried(up, tmp_path):
    only_the_first_is_long = "case $(hostname) in long-worker-*) sleep 600;; esac"
    submit(up, manifest(tmp_path, only_the_first_is_long), "long")
    wait_for("its start", lambda: phase(up, "long") == "Running")
    assert up("cancel", "long").stdout == "long is being cancelled\n"
    wait_for("its end", lambda: phase(up, "long") == "Cancelled")
    assert up("cancel", "long").stdout == "long has ended already: Cancelled\n"

    again = up("retry", "long")
    assert again.returncode == 0, again.stderr
    name = again.stdout.strip()
    assert name.startswith("long-") and name != "long"
    wait_for("the retry's end", lambda: phase(up, name) == "Succeeded")
    assert phase(up, "long") == "Cancelled"


def test_following_ends_with_the_experiment(up, tmp_path):
    submit(up, manifest(tmp_path, "for i in 1 2 3; do echo line $i; sleep 0.3; done"), "steps")
    followed = up("logs", "-f", "steps", "--rank", "0")
    assert followed.returncode == 0
    assert followed.stdout.splitlines() == [f"worker-0 | line {i}" for i in (1, 2, 3)]
    watched = up("status", "-w", "steps")
    assert watched.returncode == 0 and "Experiment steps  Succeeded" in watched.stdout


def test_mistakes_are_named(up):
    for arguments, message in [
        (["logs", "nothing"], "nothing"),
        (["cancel", "nothing"], "there is no experiment 'nothing'"),
        (["logs", "x", "--since", "soon"], "--since: 'soon' is no length of time"),
        (["logs", "x", "--grep", "("], "--grep: "),
        (["list", "--cluster", "other"], "cluster 'other' is not up"),
        (["list", "--kubeconfig", ROOT / "no-such-file"], "no-such-file"),
    ]:
        ended = up(*arguments)
        assert ended.returncode in (1, 2) and message in ended.stderr, (arguments, ended.stderr)
        assert ended.stdout == ""


def test_an_empty_list_says_so(up):
    listed = up("list", "-n", "kube-system")
    assert (listed.returncode, listed.stdout) == (0, "")
    assert listed.stderr == "there are no experiments in namespace kube-system\n"
