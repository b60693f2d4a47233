"""What a suite needs to run at all."""

import subprocess

import pytest

from kube.programs import BUILD, MISSING_PROGRAM


def build_or_skip(*targets):
    """Has these programs built; the test is skipped, with the reason, where that is impossible."""
    done = subprocess.run([BUILD, *targets], stderr=subprocess.PIPE, text=True)
    if done.returncode == MISSING_PROGRAM:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
