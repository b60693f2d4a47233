"""The manifests of AIchor's documentation: they are valid, and become exactly what `golden/` says."""

import os
import pathlib

import pytest

from e2e.grapnel import Grapnel

FOLDER = pathlib.Path(__file__).parent
SEEDS = sorted((FOLDER / "seeds").glob("*.yaml"))


@pytest.mark.parametrize("path", SEEDS, ids=lambda path: path.stem)
def test_a_documented_manifest_becomes_what_it_always_became(tmp_path, path):
    grapnel = Grapnel(tmp_path)
    checked = grapnel("validate", path)
    assert (checked.returncode, checked.stderr) == (0, "")
    rendered = grapnel("render", path, "--name", "experiment-6f4a", "-n", "lab")
    golden = FOLDER / "golden" / path.name
    if os.environ.get("UPDATE_GOLDEN"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(rendered.stdout + rendered.stderr)
    assert rendered.stdout + rendered.stderr == golden.read_text()
