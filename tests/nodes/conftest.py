import os
import pathlib
import subprocess

import pytest

from e2e.grapnel import PROGRAM, ROOT
from kube.images import DEFAULT_PATH
from kube.needs import build_or_skip
from kube.node_files import SYSCTLS
from kube.nodes import RealNodes


def what_the_machine_has():
    """What a cluster of nodes could change, and does not."""
    def lines(*command):
        return sorted(subprocess.run(command, capture_output=True, text=True).stdout.splitlines())

    return {"iptables": [line.split(" [")[0] for line in lines("iptables-save") if not line.startswith("#")],
            "sysctls": {name: pathlib.Path("/proc/sys", name).read_text() for name in SYSCTLS
                        if os.path.exists(f"/proc/sys/{name}")}}


def what_is_there_of(place):
    """What a cluster of nodes could leave behind; others may be up beside it."""
    return {"links": [place.link] * os.path.exists(f"/sys/class/net/{place.link}"),
            "mounts": [line for line in pathlib.Path("/proc/mounts").read_text().splitlines()
                       if f"{place.folder}/" in line],
            "cgroups": [str(path) for path in pathlib.Path("/sys/fs/cgroup").glob(f"**/{place.cgroup}")],
            "folder": [str(place.folder)] * place.folder.exists()}


@pytest.fixture(scope="session")
def node_programs():
    if os.geteuid() != 0:
        pytest.skip("real nodes need root")
    build_or_skip("control-plane", "node")


@pytest.fixture(scope="session")
def runtimes():
    """The folder of an environment with JAX."""
    made = subprocess.run([ROOT / "tools" / "runtimes"], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return pathlib.Path(made.stdout.strip()).parents[1]


@pytest.fixture(scope="session")
def real_nodes(node_programs, runtimes):
    """A Kubernetes of two nodes; a test works in a namespace of its own. Nothing of it is left."""
    before = what_the_machine_has()
    python = pathlib.Path(os.path.realpath(runtimes / "bin" / "python3")).parents[1]
    folders = {runtimes, python, pathlib.Path(PROGRAM).parent} - {pathlib.Path("/usr")}
    # Of two processes that want half a CPU each, a node has room for one.
    with RealNodes(2, folders=sorted(folders), cpus=0.9) as cluster:
        cluster.registry.add("python:3.11", path=f"{runtimes}/bin:{DEFAULT_PATH}")
        cluster.registry.add("pytorch/pytorch")
        cluster.registry.add("grapnel:latest", entrypoint=[PROGRAM])
        left = cluster.place
        found = what_is_there_of(left)
        assert found["links"] and found["cgroups"] and found["folder"], "what is looked for would be seen"
        yield cluster
    assert what_the_machine_has() == before
    assert not any(what_is_there_of(left).values())


@pytest.fixture
def place(real_nodes):
    """The name of a fresh namespace on the real nodes, deleted (without waiting) after the test."""
    _, created = real_nodes.request("POST", "/api/v1/namespaces", {"metadata": {"generateName": "test-"}})
    name = created["metadata"]["name"]
    real_nodes.wait_for_account(name)
    yield name
    real_nodes.request("DELETE", f"/api/v1/namespaces/{name}")
