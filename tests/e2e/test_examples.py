"""The examples, on a laptop cluster, with the real frameworks."""

import os
import pathlib
import re
import subprocess

import pytest
import yaml

from .grapnel import ROOT

SYSTEM_PYTHON = "/usr/bin/python3"


@pytest.fixture(scope="module")
def torch():
    """Where the programs of the machine's own PyTorch are."""
    if subprocess.run([SYSTEM_PYTHON, "-c", "import torch"], capture_output=True).returncode != 0:
        pytest.skip("python3-torch is not installed")
    return pathlib.Path(SYSTEM_PYTHON).parent


def run(grapnel, folder, name, programs=None, manifest="manifest.yaml"):
    """What an example printed, as (process, line), in order. It is run as the README says."""
    path = os.environ["PATH"] if programs is None else f"{programs}:{os.environ['PATH']}"
    ran = grapnel("run", "--name", name, manifest, cwd=ROOT / "examples" / folder, PATH=path)
    assert ran.returncode == 0, ran.stdout + ran.stderr + grapnel.cluster_log()
    assert ran.stderr.endswith(f"{name}: Succeeded (all processes ended well)\n")
    return [tuple(re.split(r" *\| ", line, maxsplit=1)) for line in ran.stdout.splitlines()]


def of(lines, process, pattern):
    """The one line of a process that matches; the match."""
    found = [m for p, line in lines if p == process and (m := re.fullmatch(pattern, line))]
    assert len(found) == 1, (process, pattern, lines)
    return found[0]


def test_jax_fits_one_model_on_two_processes(grapnel, runtimes):
    lines = run(grapnel, "jax", "jax", runtimes)
    for rank in (0, 1):
        of(lines, f"worker-{rank}", f"process {rank} of 2, 1 of 2 devices")
        of(lines, f"worker-{rank}", rf"\[Gloo\] Rank {rank} is connected to 1 peer ranks.*")
        of(lines, f"worker-{rank}",
           rf"process {rank}: y = 3.000 x \+ -1.000 from 1024 points, loss \S+")


def test_pytorch_averages_gradients_over_gloo(grapnel, torch):
    lines = run(grapnel, "pytorch", "torch", torch)
    for rank in (0, 1):
        of(lines, f"worker-{rank}", f"rank {rank} of 2 at torch-worker-0-0.torch:23456")
        of(lines, f"worker-{rank}",
           rf"rank {rank}: y = 3.000 x \+ -1.000 from 1024 points, loss \S+")


def test_torchrun_starts_four_ranks_in_two_pods(grapnel, torch):
    lines = run(grapnel, "pytorch", "torchrun", torch, manifest="torchrun.yaml")
    for pod in (0, 1):
        for process in (0, 1):
            rank, mark = 2 * pod + process, rf"\[default{process}\]:"
            of(lines, f"worker-{pod}", f"{mark}rank {rank} of 4 at torchrun-worker-0-0.torchrun:23456")
            of(lines, f"worker-{pod}",
               rf"{mark}rank {rank}: y = 3.000 x \+ -1.000 from 2048 points, loss \S+")


def test_xgboost_has_one_model_on_both_ranks(grapnel, runtimes):
    lines = run(grapnel, "xgboost", "xgb", runtimes)
    models = set()
    for rank in (0, 1):
        of(lines, f"worker-{rank}", rf"\[.*\] Task {rank} got rank {rank}")
        of(lines, f"worker-{rank}", f"rank {rank} of 2 at xgb-worker-0-0.xgb:9999")
        models.add(of(lines, f"worker-{rank}",
                      rf"rank {rank}: model ([0-9a-f]{{8}}) from 1000 rows, error \S+")[1])
    assert len(models) == 1


def test_jobset_is_a_two_dimensional_array(grapnel):
    lines = run(grapnel, "jobset", "array")
    expected = {"master-0-0": "master-0-0, job 0 of 7: 24 slices add up to 3.14159"}
    for job in range(5):
        for pod in range(4):
            name = f"worker-{job}-{pod}"
            expected[name] = f"{name}, job {1 + job} of 7: slice {4 * job + pod}"
    for pod in range(4):
        name = f"worker-2-0-{pod}"
        expected[name] = f"{name}, job 6 of 7: slice {20 + pod}"
    assert len(lines) == 25
    assert dict(lines) == expected


def test_the_documented_array_has_the_documented_variables(grapnel, tmp_path):
    """AIchor's own example, without its GPUs: 7 Jobs, 25 pods, and what each of them is told."""
    document = yaml.safe_load((ROOT / "tests" / "manifests" / "seeds" / "jobset.yaml").read_text())
    for component in document["spec"]["types"].values():
        component["resources"] = {"cpus": 0.1, "ramRatio": 1}
    document["spec"]["command"] = "env | grep -E '^(JOB|GLOBAL|REPLICATED)_' | sort | paste -sd ' '"
    document["spec"]["tensorboard"]["enabled"] = False
    path = tmp_path / "jobset.yaml"
    path.write_text(yaml.safe_dump(document))
    ran = grapnel("run", "--name", "seed", path)
    assert ran.returncode == 0, ran.stdout + ran.stderr

    expected, first = {}, 0
    for name, jobs, pods in (("master", 1, 1), ("worker", 5, 4), ("worker-2", 1, 4)):
        for job in range(jobs):
            for pod in range(pods):
                expected[f"{name}-{job}-{pod}"] = (
                    f"GLOBAL_REPLICAS=7 JOB_COMPLETION_INDEX={pod} JOB_GLOBAL_INDEX={first + job} "
                    f"JOB_INDEX={job} REPLICATED_JOB_NAME={name} REPLICATED_JOB_REPLICAS={jobs}")
        first += jobs
    lines = [re.split(r" *\| ", line, maxsplit=1) for line in ran.stdout.splitlines()]
    assert len(lines) == len(expected) == 25
    assert dict(lines) == expected
    tree = grapnel("status", "seed").stdout.splitlines()
    assert [line[6:] for line in tree if " succeeded of " in line] == [
        "master  1 succeeded of 1", "worker  20 succeeded of 20", "worker-2  4 succeeded of 4"]
    assert [re.search(r"─ (\S+)", line)[1] for line in tree if "  (pod " in line] == list(expected)
    # A rank is one process; a role counts from its own first one.
    assert grapnel("logs", "seed", "--rank", "6").stdout.startswith("worker-1-1 | ")
    assert grapnel("logs", "seed", "--role", "worker-2", "--rank", "3").stdout.startswith("worker-2-0-3 | ")
