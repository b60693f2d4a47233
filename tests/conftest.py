"""Fixtures that every suite may use."""

import json
import os

import pytest

from kube.control_plane import ControlPlane
from kube.fault_proxy import FaultProxy
from kube.needs import build_or_skip


def pytest_configure(config):
    config.addinivalue_line("markers", "only(parameter, ...): of the places a test could run, these; "
                                       "in the others there is nothing it could show")


def pytest_collection_modifyitems(config, items):
    def fits(item):
        marker = item.get_closest_marker("only")
        return marker is None or any(value in marker.args for value in item.callspec.params.values())
    config.hook.pytest_deselected(items=[item for item in items if not fits(item)])
    items[:] = [item for item in items if fits(item)]


def tell_result(test, when, outcome, seconds, text):
    """A line for tools/test, written at once: it also knows of tests that ran before a crash."""
    if path := os.environ.get("GRAPNEL_TEST_RESULTS"):
        with open(path, "a") as results:
            results.write(json.dumps({"test": test, "when": when, "outcome": outcome, "seconds": seconds,
                                      "text": text}) + "\n")


def pytest_runtest_logreport(report):
    skipped = report.longrepr[2] if report.skipped and isinstance(report.longrepr, tuple) else None
    tell_result(report.nodeid, report.when, report.outcome, report.duration, skipped or report.longreprtext)


def pytest_collectreport(report):
    if report.failed:
        tell_result(report.nodeid, "collect", "failed", 0, report.longreprtext)


def pytest_sessionfinish(session, exitstatus):
    """In CI a test that was left out is one that failed."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if "CI" in os.environ and exitstatus == 0 and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="session")
def kube_programs():
    """Has the control plane's programs built; skips, saying why, where that is impossible."""
    build_or_skip("control-plane", "kwok")


@pytest.fixture(scope="session")
def control_plane(kube_programs):
    """One cluster with controllers, scheduler and two fake nodes, shared by the whole session.

    A test works in a namespace of its own, and leaves the cluster ready if it disturbs it.
    """
    with ControlPlane(controllers=True, kwok_nodes=2, users={"alice": ["team-a"]}) as cluster:
        yield cluster


@pytest.fixture
def namespace(control_plane):
    """The name of a fresh namespace, deleted (without waiting) after the test."""
    _, created = control_plane.request("POST", "/api/v1/namespaces",
                                       {"metadata": {"generateName": "test-"}})
    name = created["metadata"]["name"]
    yield name
    control_plane.request("DELETE", f"/api/v1/namespaces/{name}")


@pytest.fixture
def fault_proxy(control_plane):
    """A proxy in front of the shared cluster, where requests without a token are the admin's."""
    with FaultProxy(control_plane.url, control_plane.ca_file, control_plane.token) as proxy:
        yield proxy
