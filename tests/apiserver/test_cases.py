"""The text cases, against our server and against the kube-apiserver whose answers they hold."""

import contextlib

import pytest

from apiserver import cases
from apiserver.server import Ours

ALL = [(path.stem, case) for path in sorted(cases.FOLDER.glob("*.txt")) for case in cases.read_cases(path)[1]]
NAMES = [f"{stem}: {case.title}" for stem, case in ALL]


@contextlib.contextmanager
def kube_apiserver():
    with cases.real_server() as cluster:
        yield cases.Server(cluster.url, cluster.token, cluster.ca_file)


@contextlib.contextmanager
def our_apiserver():
    with Ours() as server:
        yield cases.Server(server.url)


@pytest.fixture(scope="session")
def answers(kube_programs):
    """{server: the answers of each case}; all cases of a server run at once, before the first test."""
    found = {}
    for name, start in (("ours", our_apiserver), ("kubernetes", kube_apiserver)):
        with start() as server:
            found[name] = cases.run_all(server, [case for _, case in ALL])
    return found


@pytest.mark.parametrize("index", range(len(ALL)), ids=NAMES)
@pytest.mark.parametrize("server", ["ours", "kubernetes"])
def test_case(answers, server, index):
    found = cases.differences(ALL[index][1], answers[server][index], ours=server == "ours")
    assert not found, "\n" + found


def test_there_are_many():
    assert len(ALL) >= 300


def test_every_case_has_an_answer():
    empty = [case.title for _, case in ALL for step in case.steps
             if step.method != "WAIT" and not step.expected]
    assert not empty
