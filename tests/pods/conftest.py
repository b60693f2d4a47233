import os

import pytest

from kube.needs import build_or_skip
from kube.nodes import RealNodes

from .cluster import NOBODY, SOAK, Cluster
from .kubelet import Kubelet


@pytest.fixture(scope="session")
def kubectl_program():
    build_or_skip("control-plane")


def cluster_of(who, **options):
    """A laptop cluster of root's, or of an ordinary user's."""
    is_root = os.geteuid() == 0
    if who == "root" and not is_root:
        pytest.skip("needs root")
    cluster = Cluster(user=NOBODY if who == "user" and is_root else None, **options)
    cluster.is_root = who == "root"
    return cluster


@pytest.fixture(scope="session", params=["root", "user"] + ["kubelet"] * SOAK)
def cluster(request, kubectl_program):
    """One for all suites of pods; in `make soak` a real Kubernetes too."""
    if request.param == "kubelet":
        build_or_skip("node")
        with RealNodes(1) as nodes:
            yield Kubelet(nodes)
        return
    with cluster_of(request.param) as running:
        yield running


@pytest.fixture(params=["root", "user"])
def own_cluster(request, kubectl_program):
    """One for a test that is hard on it."""
    with cluster_of(request.param, options=["--oversubscribe", "16"]) as running:
        yield running


@pytest.fixture
def name(request):
    """A name for what a test makes: its own, as Kubernetes wants names."""
    text = request.node.originalname.removeprefix("test_").replace("_", "-")
    return text[:40].strip("-")
