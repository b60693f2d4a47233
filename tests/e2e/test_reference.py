import pytest

from .grapnel import ROOT, Grapnel


@pytest.mark.parametrize("kind", ["experiment", "jobset"])
def test_reference_pages_are_current(tmp_path, kind):
    printed = Grapnel(tmp_path)("reference", kind)
    page = ROOT / "docs" / "reference" / f"{kind}.md"
    assert printed.stdout == page.read_text(), f"grapnel reference {kind} > docs/reference/{kind}.md"
