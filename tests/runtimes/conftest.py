import subprocess

import pytest

from pods.cluster import ROOT, Cluster
from pods.conftest import kubectl_program  # noqa: F401  (a fixture)

SYSTEM_PYTHON = "/usr/bin/python3"


@pytest.fixture(scope="session")
def python():
    """Of an environment with Ray, JAX and XGBoost."""
    done = subprocess.run([ROOT / "tools" / "runtimes"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="session")
def system_python():
    """The machine's own, with PyTorch."""
    if subprocess.run([SYSTEM_PYTHON, "-c", "import torch"], capture_output=True).returncode != 0:
        pytest.skip("python3-torch is not installed")
    return SYSTEM_PYTHON


@pytest.fixture(scope="module")
def cluster(kubectl_program):  # noqa: F811
    with Cluster(options=["--oversubscribe", "8"]) as running:
        yield running
