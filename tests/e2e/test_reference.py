import json

import pytest

from .grapnel import ROOT, Grapnel


@pytest.mark.parametrize("kind", ["experiment", "jobset"])
def test_reference_pages_are_current(tmp_path, kind):
    printed = Grapnel(tmp_path)("reference", kind)
    page = ROOT / "docs" / "reference" / f"{kind}.md"
    assert printed.stdout == page.read_text(), f"grapnel reference {kind} > docs/reference/{kind}.md"


def test_the_schema_offers_what_can_be_run(tmp_path):
    schema = json.loads(Grapnel(tmp_path)("schema").stdout)
    operator = schema["properties"]["spec"]["properties"]["operator"]
    assert operator["enum"] == ["jax", "pytorch", "xgboost", "jobset"]
    assert all(f"`{name}`" in operator["description"] for name in operator["enum"])
