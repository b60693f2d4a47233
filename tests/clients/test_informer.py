"""client-go's informer, with and without watch-list."""

import os
import subprocess

import pytest

from kube.programs import BUILD, Programs

from .kubectl import eventually
from .objects import config_map


@pytest.mark.parametrize("watch_list", ["true", "false"])
def test_informer_sees_all(kubectl, kubeconfig, tmp_path, watch_list):
    built = subprocess.run([BUILD, "informer"], stderr=subprocess.PIPE, text=True)
    assert built.returncode == 0, built.stderr
    kubectl.apply(config_map("a"), config_map("b"))
    log = tmp_path / "informer"
    with log.open("w") as output:
        informer = subprocess.Popen(
            [Programs().path("informer"), kubeconfig, kubectl.namespace], stdin=subprocess.PIPE,
            stdout=output, stderr=subprocess.STDOUT,
            env={**os.environ, "KUBE_FEATURE_WatchListClient": watch_list})

    def lines():
        return [line for line in log.read_text().splitlines() if "kube-root-ca.crt" not in line]

    try:
        eventually(lambda: "synced" in lines())
        eventually(lambda: len(lines()) == 3)
        kubectl("patch", "cm", "a", "-p", '{"data":{"x":"1"}}')
        kubectl("delete", "cm", "b")
        kubectl("create", "cm", "c")
        eventually(lambda: "added c" in lines())
    finally:
        informer.stdin.close()
        assert informer.wait(10) == 0
    assert sorted(lines()[:3]) == ["added a", "added b", "synced"]
    assert lines()[3:] == ["updated a", "deleted b", "added c"]
