import os
import subprocess

import pytest

from kube.programs import BUILD, MISSING_PROGRAM

from .cluster import NOBODY, Cluster


@pytest.fixture(scope="session")
def kubectl_program():
    done = subprocess.run([BUILD, "control-plane"], stderr=subprocess.PIPE, text=True)
    if done.returncode == MISSING_PROGRAM:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session", params=["root", "user"])
def cluster(request, kubectl_program):
    """One laptop cluster for all suites of pods: of root's, and of an ordinary user's."""
    is_root = os.geteuid() == 0
    if request.param == "root" and not is_root:
        pytest.skip("needs root")
    with Cluster(user=NOBODY if request.param == "user" and is_root else None) as running:
        running.is_root = request.param == "root"
        yield running


@pytest.fixture
def name(request):
    """A name for what a test makes: its own, as Kubernetes wants names."""
    text = request.node.originalname.removeprefix("test_").replace("_", "-")
    return text[:40].strip("-")
