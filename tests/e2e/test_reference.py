import json
import re

import yaml

from .grapnel import ROOT, Grapnel


def test_every_kind_has_a_current_reference_page(tmp_path):
    grapnel = Grapnel(tmp_path)
    kinds = [crd["spec"]["names"]["kind"].lower() for crd in yaml.safe_load_all(grapnel("crds").stdout)]
    pages = ROOT / "docs" / "reference"
    assert sorted(kinds) == sorted(page.stem for page in pages.glob("*.md"))
    for kind in kinds:
        assert grapnel("reference", kind).stdout == (pages / f"{kind}.md").read_text(), \
            f"grapnel reference {kind} > docs/reference/{kind}.md"


def test_the_page_on_adding_a_kind_shows_what_is_compiled():
    page = (ROOT / "docs" / "add-a-kind.md").read_text()
    blocks = re.findall(r"^```cpp (\S+)\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) > 5
    for file, block in blocks:
        assert block in (ROOT / file).read_text(), f"docs/add-a-kind.md and {file} differ:\n{block}"


def test_the_schema_offers_what_can_be_run(tmp_path):
    schema = json.loads(Grapnel(tmp_path)("schema").stdout)
    operator = schema["properties"]["spec"]["properties"]["operator"]
    assert operator["enum"] == ["jax", "pytorch", "xgboost", "jobset"]
    assert all(f"`{name}`" in operator["description"] for name in operator["enum"])
