"""Tests that failed and passed at the second try.

The cache keeps each case (unsteady.jsonl in $GRAPNEL_CACHE). A test seen there twice belongs into
tests/unsteady.md, where a row says what is known of it.
"""

import json
import os
import pathlib
import re
import time

from .suites import ROOT

LIST = ROOT / "tests" / "unsteady.md"


def cache_folder():
    if named := os.environ.get("GRAPNEL_CACHE"):
        return pathlib.Path(named)
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "grapnel"


def listed():
    """The tests that tests/unsteady.md names: the first cells of its table, in backquotes."""
    return set(re.findall(r"^\| `([^`]+)` \|", LIST.read_text(), re.MULTILINE)) if LIST.exists() else set()


def plain(result):
    """A test's name without its parameters: it is unsteady for all of them."""
    return str(result).split("[")[0]


def remember(results):
    """Notes those that passed at the second try; {name: in how many runs, with this one}."""
    notes = cache_folder() / "unsteady.jsonl"
    notes.parent.mkdir(parents=True, exist_ok=True)
    lines = notes.read_text().splitlines() if notes.exists() else []
    before = [json.loads(line)["test"] for line in lines]
    now = {plain(result): result.first for result in results if result.first}
    with notes.open("a") as file:
        for name, text in now.items():
            file.write(json.dumps({"test": name, "when": time.strftime("%Y-%m-%d %H:%M"),
                                   "text": text[-4000:]}) + "\n")
    return {name: before.count(name) + 1 for name in now}


def table(results, counts):
    again = [r for r in results if r.first]
    if not again:
        return ""
    lines = ["", "Passed at the second try:"]
    for result in again:
        lines += [f"  {result}", *(f"    {line}" for line in result.first.splitlines()[-25:])]
    lines += [f"{name} has needed a second try in {count} runs: say so in tests/unsteady.md, or mend it"
              for name, count in counts.items() if count > 1 and name not in listed()]
    return "\n".join(lines)
