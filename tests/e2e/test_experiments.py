"""`grapnel submit`, `list`, `status`, `logs`, `cancel`, `retry`, `delete` on a laptop cluster."""

import json
import time

import yaml

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


def lines_by_time(up, experiment):
    """What `logs` is to print, from the files that the kubelet wrote: the lines of all ranks by their stamps."""
    folder = up.state / "grapnel" / "default" / "node" / "pods"
    stamped = []
    for path in folder.glob(f"default_{experiment}-*/**/*.log"):
        lines = [line.split(" ", 3) for line in path.read_text().splitlines()]
        rank = lines[0][3].split()[-1]
        stamped += [(stamp, f"worker-{rank} | {text}") for stamp, _, _, text in lines]
    return [text for _, text in sorted(stamped, key=lambda line: line[0])]


def test_an_experiment_from_submit_to_delete(up, tmp_path):
    submit(up, manifest(tmp_path, "echo from $RANK; echo again; sleep 2; echo last of $RANK"),
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
    assert tree[2] == "   └─ worker  2 succeeded of 2"
    assert tree[3].startswith("      ├─ worker-0  Succeeded  on ") and "  (pod train-worker-0-0-" in tree[3]
    assert tree[4].startswith("      └─ worker-1  Succeeded  on ") and "  (pod train-worker-0-1-" in tree[4]

    everything = up("logs", "train").stdout.splitlines()
    assert sorted(everything) == sorted(f"worker-{r} | {text}" for r in (0, 1)
                                        for text in (f"from {r}", "again", f"last of {r}"))
    assert everything == lines_by_time(up, "train")
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


def test_logs_outlive_the_pods_until_the_experiment_is_deleted(up, tmp_path):
    submit(up, manifest(tmp_path, "echo said by $RANK; exec sleep 600"), "brief")
    wait_for("its words", lambda: len(up("logs", "brief").stdout.splitlines()) == 2)
    assert up("cancel", "brief").returncode == 0
    wait_for("its end", lambda: phase(up, "brief") == "Cancelled")
    wait_for("the pods' end", lambda: "(pod " not in up("status", "brief").stdout)
    said = [f"worker-{r} | said by {r}" for r in (0, 1)]
    assert sorted(up("logs", "brief").stdout.splitlines()) == said
    assert up("logs", "brief", "--rank", "1").stdout == said[1] + "\n"
    assert sorted(up("logs", "-f", "brief").stdout.splitlines()) == said

    folder = up.state / "grapnel" / "default" / "node" / "pods"
    assert len(list(folder.glob("default_brief-*"))) == 2
    assert up("delete", "brief").returncode == 0
    wait_for("their deletion", lambda: not list(folder.glob("default_brief-*")))


def test_logs_of_every_try_are_there(up, tmp_path):
    submit(up, manifest(tmp_path, "echo try; sleep 1; exit 1", extra="  backoffLimit: 1"), "tries")
    wait_for("its end", lambda: phase(up, "tries") == "Failed")
    # Whoever ends second may be ended by the first one's failure, and its shell say so.
    said = [line for line in up("logs", "tries").stdout.splitlines() if not line.endswith(" | Terminated")]
    assert sorted(said) == [f"worker-{r} | try" for r in (0, 0, 1, 1)], up("status", "tries").stdout
    assert up("delete", "tries").returncode == 0


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


def test_what_is_listed_comes_in_every_form(up, tmp_path):
    submit(up, manifest(tmp_path, "true"), "formed")
    wait_for("its end", lambda: phase(up, "formed") == "Succeeded")
    for command, name in ((["list"], "formed"), (["status", "formed"], "formed"), (["status"], "default")):
        assert name in json.dumps(json.loads(up(*command, "-o", "json").stdout))
        assert name in json.dumps(yaml.safe_load(up(*command, "-o", "yaml").stdout))
        assert name in up(*command, "-o", "name").stdout.splitlines()
    wide = [line for line in up("list", "-o", "wide").stdout.splitlines() if line.startswith("formed ")]
    assert wide[0].endswith("   all processes ended well")
    wrong = up("list", "-o", "xml")
    assert wrong.returncode == 2 and "xml" in wrong.stderr
    assert up("delete", "formed").returncode == 0


def test_an_empty_list_says_so(up):
    listed = up("list", "-n", "kube-system")
    assert (listed.returncode, listed.stdout) == (0, "")
    assert listed.stderr == "there are no experiments in namespace kube-system\n"


def test_a_quota_without_room_is_named_and_the_experiment_goes_on_without_it(up, kubectl, tmp_path):
    assert kubectl("create", "quota", "none", "--hard=pods=1").returncode == 0
    log = tmp_path / "log"
    run = up.start("run", "--name", "crowded", manifest(tmp_path, "echo hello; sleep 3"), log=log)
    why = "exceeded quota: none, requested: pods=1, used: pods=1, limited: pods=1"
    try:
        wait_for("the reason", lambda: why in log.read_text())
        assert f" of 2 processes are up; pods are refused: {why})" in up("status", "crowded").stdout
    finally:
        kubectl("delete", "quota", "none")
        code = run.wait(timeout=120)
    said = log.read_text()
    assert code == 0 and "worker-0 | hello" in said and "worker-1 | hello" in said, said
