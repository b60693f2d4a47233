"""Wrong manifests, each with what `grapnel validate` says about it: place, what was found, what is allowed.

A case is a heading, the lines of the base manifest (`wrong/NAME.yaml`) that are replaced, those that replace them,
and the answer. Cases without a base are whole manifests.
"""

import pathlib
import re

import pytest

from e2e.grapnel import Grapnel

FOLDER = pathlib.Path(__file__).parent / "wrong"


def cases():
    for path in sorted(FOLDER.glob("*.txt")):
        base = path.with_suffix(".yaml")
        for block in re.split(r"^=== ", path.read_text(), flags=re.M)[1:]:
            name, *lines = block.rstrip("\n").split("\n")
            parts = {mark: [line[2:] for line in lines if line[:1] == mark] for mark in "-+"}
            said = [line for line in lines if line[:1] not in ("-", "+")]
            yield pytest.param(base.read_text() if base.exists() else None, parts["-"], parts["+"], said,
                               id=f"{path.stem}: {name}")


def manifest(base, old, new):
    if base is None:
        return "".join(line + "\n" for line in new)
    before = "\n".join(old) + ("" if new else "\n")
    assert before in base
    return base.replace(before, "\n".join(new), 1)


@pytest.mark.parametrize("base, old, new, said", list(cases()))
def test_each_fault_is_told_with_its_place(tmp_path, base, old, new, said):
    (tmp_path / "manifest.yaml").write_text(manifest(base, old, new))
    ended = Grapnel(tmp_path)("validate", "manifest.yaml", cwd=tmp_path)
    assert ended.stderr.splitlines() == said
    assert (ended.returncode, ended.stdout) == (2, "")
    assert all(re.match(r"manifest\.yaml:\d+:\d+: |  (found|allowed)  ", line) for line in said)


def test_there_are_enough():
    assert len(list(cases())) >= 100
