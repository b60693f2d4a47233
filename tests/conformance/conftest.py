"""Fixtures of the conformance suite."""

import pytest

from conformance.probe import Probe


@pytest.fixture
def probe(control_plane):
    """Our client, as administrator of the shared cluster."""
    with Probe(control_plane.kubeconfig) as probe:
        yield probe


@pytest.fixture
def proxied(control_plane, fault_proxy):
    """Our client behind the fault proxy."""
    kubeconfig = control_plane.kubeconfig_for("admin", ["system:masters"], server=fault_proxy.url)
    with Probe(kubeconfig) as probe:
        yield probe
