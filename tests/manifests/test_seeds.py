"""The manifests of AIchor's documentation become exactly what `golden/` says: resources, or a refusal of those
whose operator this version does not have."""

import os
import pathlib

import pytest

from e2e.grapnel import Grapnel

FOLDER = pathlib.Path(__file__).parent
SEEDS = sorted((FOLDER / "seeds").glob("*.yaml"))


@pytest.mark.parametrize("path", SEEDS, ids=lambda path: path.stem)
def test_a_documented_manifest_becomes_what_it_always_became(tmp_path, path):
    grapnel = Grapnel(tmp_path)
    rendered = grapnel("render", path.name, "--name", "experiment-6f4a", "-n", "lab", cwd=path.parent)
    checked = grapnel("validate", path.name, cwd=path.parent)
    assert (checked.returncode, checked.stderr) == (rendered.returncode, rendered.stderr)
    golden = FOLDER / "golden" / path.name
    if os.environ.get("UPDATE_GOLDEN"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(rendered.stdout + rendered.stderr)
    assert rendered.stdout + rendered.stderr == golden.read_text()
