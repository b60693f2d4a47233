"""`grapnel run`: a manifest on a laptop cluster, with real processes."""

import json
import os
import pathlib
import re
import time

import pytest

from .grapnel import ROOT, Grapnel

EXAMPLE = ROOT / "examples" / "two-processes" / "manifest.yaml"


def manifest(tmp_path: pathlib.Path, command: str, operator="pytorch", extra="") -> pathlib.Path:
    path = tmp_path / "manifest.yaml"
    path.write_text(f"""kind: AIchorManifest
apiVersion: 0.2.3
spec:
  operator: {operator}
  command: {json.dumps(command)}
{extra}
  types:
    worker:
      count: 2
      resources: {{cpus: 0.1, ramRatio: 1}}
""")
    return path


def test_two_processes_find_each_other_by_name(grapnel):
    ran = grapnel("run", EXAMPLE, cwd=EXAMPLE.parent)
    assert ran.returncode == 0, ran.stdout + ran.stderr + grapnel.cluster_log()
    lines = sorted(ran.stdout.splitlines())
    assert [line.split(" on ")[0] for line in lines] == ["worker-0 | rank 0 of 2", "worker-1 | rank 1 of 2"]
    assert all(line.endswith("the ranks add up to 1") for line in lines)
    assert "Succeeded (all processes ended well)" in ran.stderr


def test_the_exit_code_is_that_of_the_process_that_failed(grapnel, tmp_path):
    ran = grapnel("run", manifest(tmp_path, "[ $RANK = 0 ] || exit 7; sleep 60"))
    assert ran.returncode == 7, ran.stdout + ran.stderr
    assert "Failed (worker 1 ended with code 7)" in ran.stderr


def test_each_process_is_told_its_role(grapnel, tmp_path):
    ran = grapnel("run", "--name", "roles",
                  manifest(tmp_path, "echo $RANK of $WORLD_SIZE at $MASTER_ADDR:$MASTER_PORT"))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    address = "roles-worker-0-0.roles:23456"
    assert sorted(ran.stdout.splitlines()) == [f"worker-0 | 0 of 2 at {address}",
                                               f"worker-1 | 1 of 2 at {address}"]


def test_programs_are_found_as_the_caller_finds_them(grapnel, tmp_path):
    """In the shell that calls, not in the one that started the cluster."""
    tool = ROOT / "build" / "caller" / "a-tool-of-mine"  # pods have a /tmp of their own
    tool.parent.mkdir(parents=True, exist_ok=True)
    tool.write_text("#!/bin/sh\necho found with $PYTHONPATH\n")
    tool.chmod(0o755)
    path = manifest(tmp_path, "a-tool-of-mine; echo $SECRET$VIRTUAL_ENV")
    ran = grapnel("run", path, PATH=f"{tool.parent}:{os.environ['PATH']}", VIRTUAL_ENV="mine",
                  PYTHONPATH="my $(HOME)", SECRET="hidden")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert sorted(ran.stdout.splitlines()) == [
        f"worker-{r} | {text}" for r in (0, 1) for text in ("found with my $(HOME)", "mine")]
    elsewhere = grapnel("run", path, VIRTUAL_ENV="")
    assert elsewhere.returncode == 0 and "a-tool-of-mine: not found" in elsewhere.stdout


def test_a_long_file_name_becomes_a_name_that_fits(grapnel, tmp_path):
    path = manifest(tmp_path, "echo $AICHOR_EXPERIMENT_ID")
    path = path.rename(tmp_path / "train-resnet50-imagenet-with-all-augmentations.yaml")
    ran = grapnel("run", path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert re.fullmatch("(worker-[01] [|] train-resnet50-image-[0-9a-f]{4}\n){2}", ran.stdout), ran.stdout


@pytest.mark.parametrize("command", ["validate", "render", "plan", "submit", "run"])
def test_what_can_never_run_is_refused_with_the_same_words(up, tmp_path, command):
    path = manifest(tmp_path, "true")
    long = up(command, path, "--name", "a-name-of-26-characters-xx")
    assert (long.returncode, long.stdout) == (2, "")
    assert long.stderr == ("'a-name-of-26-characters-xx' cannot be the name of an experiment: has 26 characters, "
                           "1 too many; with operator 'pytorch' it may have at most 25\n")
    other = up(command, manifest(tmp_path, "true", operator="elastic"))
    assert (other.returncode, other.stdout) == (2, "")
    assert other.stderr == (f"{path}:4:3: spec.operator: operator 'elastic' is not available in this version; "
                            "available: jax, pytorch, xgboost, jobset\n")


def test_admission_refuses_it_with_the_same_words(up, kubectl, tmp_path):
    def refused(operator, name):
        path = tmp_path / "experiment.json"
        path.write_text(json.dumps({
            "apiVersion": "grapnel.dev/v1alpha1", "kind": "Experiment", "metadata": {"name": name},
            "spec": {"operator": operator, "command": "true",
                     "types": {"worker": {"count": 1, "resources": {"cpus": 1, "ramRatio": 1}}}}}))
        applied = kubectl("apply", "-f", str(path))
        assert applied.returncode == 1, applied.stdout
        return applied.stderr

    assert ("spec.operator: operator 'elastic' is not available in this version; available: jax, pytorch, xgboost, "
            "jobset\n") in refused("elastic", "e")
    assert ("has 26 characters, 1 too many; with operator 'jax' it may have at most 25\n"
            in refused("jax", "a-name-of-26-characters-xx"))


@pytest.mark.parametrize("operator", ["jax", "pytorch", "jobset"])
def test_processes_start_when_their_address_resolves(grapnel, tmp_path, operator):
    command = 'printenv MASTER_ADDR JAXOPERATOR_COORDINATOR_HOST; echo "$0 ${grapnel_name-}"; exit 3'
    ran = grapnel("run", manifest(tmp_path, command, operator, extra="  waitForAddress: true"))
    assert ran.returncode == 3, ran.stdout + ran.stderr
    assert "| /bin/sh \n" in ran.stdout, ran.stdout


def test_a_time_out_ends_the_experiment(grapnel, tmp_path):
    ran = grapnel("run", manifest(tmp_path, "sleep 60", extra="  timeout: 2s"))
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "Failed (ran longer than its time-out of 2s)" in ran.stderr


def test_a_failed_experiment_is_tried_again_when_asked(grapnel, tmp_path):
    # The first try starts before this moment and fails at it; the second starts after it.
    moment = int(time.time()) + 5
    command = (f"if [ $RANK = 1 ] && [ $(date +%s) -lt {moment} ]; then "
               f"while [ $(date +%s) -lt {moment} ]; do sleep 0.1; done; exit 3; fi; echo done")
    ran = grapnel("run", manifest(tmp_path, command, extra="  backoffLimit: 1"))
    assert ran.returncode == 0, ran.stdout + ran.stderr + grapnel.cluster_log()


@pytest.mark.parametrize("change, expected", [
    (("worker:", "Worker:"), "spec.types.Worker: unknown type for operator 'pytorch'"),
    (("count: 2", "count: two"), "spec.types.worker.count: must be an integer"),
    (("kind: AIchorManifest", "kind: ["), "manifest.yaml:"),
])
def test_a_wrong_manifest_changes_nothing(grapnel, tmp_path, change, expected):
    path = manifest(tmp_path, "true")
    path.write_text(path.read_text().replace(*change))
    ran = grapnel("run", path)
    assert ran.returncode == 2
    assert expected in ran.stderr
    assert ran.stdout == ""


def test_kubectl_sees_the_experiment_and_what_it_became(grapnel, kubectl, tmp_path):
    ran = grapnel("run", "--name", "seen", manifest(tmp_path, "echo hello"))
    assert ran.returncode == 0, ran.stderr

    for kind in ("experiment", "jobset", "job"):
        names = kubectl("get", kind, "-o", "name").stdout
        assert "seen" in names, kind
    logs = kubectl("logs", "-l", "grapnel.dev/experiment=seen")
    assert logs.stdout == "hello\nhello\n", logs.stderr
    assert kubectl("delete", "experiment", "seen", "--timeout=30s").returncode == 0
    for kind in ("jobset", "job", "pod", "service"):
        gone = kubectl("wait", "--for=delete", kind, "-l", "jobset.sigs.k8s.io/jobset-name=seen",
                       "--timeout=30s")
        assert gone.returncode == 0, (kind, gone.stderr)


def test_down_leaves_no_process_and_no_mount(tmp_path):
    program = Grapnel(tmp_path)
    ran = program("run", "--cluster", "short", "--oversubscribe", "4", EXAMPLE, cwd=EXAMPLE.parent)
    assert ran.returncode == 0, ran.stderr
    assert "pods may ask for 4 times the CPUs and memory that this machine has" in ran.stderr
    assert program("status", "--name", "short").returncode == 0
    assert program("down", "--name", "short").returncode == 0
    assert program("status", "--name", "short").returncode == 1
    assert str(tmp_path) not in pathlib.Path("/proc/self/mountinfo").read_text()
    left = [p for p in pathlib.Path("/proc").glob("[0-9]*/cmdline")
            if str(tmp_path).encode() in _read(p)]
    assert left == []


def _read(path: pathlib.Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""  # it ended meanwhile
