import pathlib
import subprocess
import tempfile

import pytest

from kube.programs import Programs

from .grapnel import ROOT, Grapnel


@pytest.fixture(scope="module")
def grapnel():
    """The program with a laptop cluster that is taken down afterwards."""
    with tempfile.TemporaryDirectory(prefix="grapnel-e2e-") as folder:
        program = Grapnel(pathlib.Path(folder))
        yield program
        down = program("down")
        assert down.returncode == 0, down.stderr + program.cluster_log()
        log = program.cluster_log()
        assert "ERROR: AddressSanitizer" not in log and "runtime error:" not in log, log[-5000:]


@pytest.fixture
def up(grapnel):
    """The same, with the cluster running."""
    started = grapnel("up", "-d")
    assert started.returncode == 0, started.stderr + grapnel.cluster_log()
    return grapnel


@pytest.fixture
def kubectl(up, kube_programs):
    """Calls it for the laptop cluster."""
    env = up("env").stdout.split("=", 1)[1].strip()

    def call(*arguments):
        return subprocess.run([Programs().path("kubectl"), "--kubeconfig", env, *arguments],
                              capture_output=True, text=True, timeout=60)

    return call


@pytest.fixture(scope="session")
def runtimes():
    """Where the programs of an environment with JAX, XGBoost, TensorBoard and Jupyter are."""
    made = subprocess.run([ROOT / "tools" / "runtimes"], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return pathlib.Path(made.stdout.strip()).parent
