"""A laptop cluster, and other people's clients connected to it."""

import contextlib
import pathlib
import tempfile
import uuid

import pytest

from e2e.grapnel import Grapnel
from kube.programs import Programs

from .kubectl import Kubectl


@contextlib.contextmanager
def running_cluster(*options):
    """The program with a laptop cluster that is up, and taken down afterwards."""
    with tempfile.TemporaryDirectory(prefix="grapnel-clients-") as folder:
        program = Grapnel(pathlib.Path(folder))
        up = program("up", "-d", *options)
        assert up.returncode == 0, up.stdout + up.stderr + program.cluster_log()
        yield program
        down = program("down")
        log = program.cluster_log()
        assert down.returncode == 0, down.stderr + log[-5000:]
        assert "ERROR: AddressSanitizer" not in log and "runtime error:" not in log, log[-5000:]


@pytest.fixture(scope="session")
def cluster():
    with running_cluster() as program:
        yield program


@pytest.fixture(scope="session")
def kubeconfig(cluster):
    return str(cluster.state / "grapnel" / "default" / "kubeconfig")


@pytest.fixture
def namespace(cluster, kubeconfig, kube_programs):
    """The name of a fresh namespace, deleted (without waiting) after the test."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    kubectl = Kubectl(Programs().path("kubectl"), kubeconfig, "default")
    kubectl("create", "namespace", name)
    yield name
    kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def kubectl(kubeconfig, namespace):
    """The real kubectl, in a namespace of its own."""
    return Kubectl(Programs().path("kubectl"), kubeconfig, namespace)
