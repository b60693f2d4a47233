"""How tools/test reads what programs print, and what it tries a second time."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from testrun import folders, lanes, processes, programs, results, unsteady  # noqa: E402
from testrun.results import Result  # noqa: E402
from testrun.suites import ROOT, Suite, all_suites  # noqa: E402

REAL = Suite("made_up", "programs", "", real=True)
# A GoogleTest program: says what it would, by the filter that it is given.
PROGRAM = """#!/usr/bin/env python3
import os, pathlib, sys
chosen = sys.argv[1].removeprefix("--gtest_filter=")
again = pathlib.Path(__file__).with_suffix(".again")
for test in ("A.Passes", "A.Crashes", "A.IsUnsteady", "A.Leaks"):
    if test in chosen.removeprefix("-") .split(":") if chosen.startswith("-") else chosen not in ("*", test):
        continue
    print(f"[ RUN      ] {test}", flush=True)
    if test == "A.Crashes":
        os.abort()
    bad = test == "A.Leaks" or test == "A.IsUnsteady" and not again.exists()
    if test == "A.IsUnsteady":
        again.touch()
    if test == "A.Leaks":
        print("ERROR: LeakSanitizer: detected memory leaks")
    print(f"[  FAILED  ] {test} (1500 ms)" if bad else f"[       OK ] {test} (20 ms)")
"""


@pytest.fixture
def program(tmp_path, monkeypatch):
    path = tmp_path / "made_up_test"
    path.write_text(PROGRAM)
    path.chmod(0o755)
    monkeypatch.setattr(processes, "LOGS", tmp_path)
    monkeypatch.setattr(programs, "commands_of", lambda suite: [("made_up", [path])])
    return path


def test_a_crash_costs_one_test(program):
    found = {r.test: r for r in programs.run_programs(REAL)}
    assert {name: r.outcome for name, r in found.items()} == {
        "made_up: A.Passes": "passed", "made_up: A.Crashes": "failed", "made_up: A.IsUnsteady": "failed",
        "made_up: A.Leaks": "failed"}
    assert found["made_up: A.IsUnsteady"].seconds == 1.5
    assert "ended the program" in found["made_up: A.Crashes"].text
    assert not found["made_up: A.Leaks"].may_repeat, "a defect, however often it does not show"


def test_one_test_alone(program):
    for outcome in ("failed", "passed"):
        found = programs.run_program(REAL, "made_up", [program], only="A.IsUnsteady")
        assert [(r.test, r.outcome) for r in found] == [("made_up: A.IsUnsteady", outcome)]


def test_a_program_that_says_nothing_has_failed(program):
    program.write_text("#!/bin/sh\nexit 0\n")
    assert [r.outcome for r in programs.run_programs(REAL)] == ["failed"]


def failed(name, **options):
    return Result("made_up", name, "failed", 1.0, "because", **options)


@pytest.mark.parametrize("first, again, outcomes", [
    ([failed("a")], "passed", ["passed"]),
    ([failed("a")], "failed", ["failed"]),
    ([failed("a"), failed("b", may_repeat=False)], "passed", ["failed", "failed"]),
    ([failed(n) for n in "abcd"], "passed", ["failed"] * 4),
])
def test_what_is_tried_again(monkeypatch, first, again, outcomes):
    monkeypatch.setattr(programs, "run_programs", lambda suite: first)
    monkeypatch.setattr(programs, "repeat", lambda suite, r: Result("made_up", r.test, again))
    found = lanes.run_real(REAL)
    assert [r.outcome for r in found] == outcomes
    assert [r.first for r in found] == ["because" if r.outcome == "passed" else "" for r in found]


def test_only_real_processes_are_tried_again():
    may = {name for name, suite in all_suites().items() if suite.real}
    assert not may & {"unit", "simulation", "fuzz", "includes", "format", "headers", "release", "tools"}
    assert {"local_node", "kubelet_e2e", "pods", "e2e"} <= may


def report(test, when, outcome, text=""):
    return {"test": f"tests/made_up/{test}", "when": when, "outcome": outcome, "seconds": 0.5, "text": text}


def test_reports_become_results():
    told = [report("test_a.py::a", "setup", "passed"), report("test_a.py::a", "call", "passed"),
            report("test_a.py::b", "setup", "passed"), report("test_a.py::b", "teardown", "failed", "left"),
            report("test_a.py::c", "setup", "skipped", "Skipped: no root")]
    a, b, c = folders.results_of(REAL, told)
    assert (a.outcome, a.seconds) == ("passed", 1.0)
    assert (b.outcome, b.may_repeat) == ("failed", False), "the end of a fixture looks back on others"
    assert (c.outcome, c.text) == ("skipped", "no root")


def test_a_test_seen_twice_is_to_be_listed(monkeypatch, tmp_path):
    monkeypatch.setenv("GRAPNEL_CACHE", str(tmp_path))
    again = [Result("made_up", f"test_a.py::a[{who}]", "passed", first="it was late") for who in ("root", "user")]

    def run():
        return unsteady.table(again, unsteady.remember(again))

    once = run()
    assert "it was late" in once and "tests/unsteady.md" not in once
    assert "made_up: test_a.py::a has needed a second try in 2 runs" in run()
    monkeypatch.setattr(unsteady, "LIST", tmp_path / "unsteady.md")
    (tmp_path / "unsteady.md").write_text("| `made_up: test_a.py::a` | nothing yet |\n")
    assert "tests/unsteady.md" not in run()


def test_what_is_listed_as_unsteady_is_there():
    for name in unsteady.listed():
        suite, rest = name.split(": ", 1)
        assert suite in all_suites(), name
        if "::" in rest:
            file, test = rest.split("::", 1)
            assert f"def {test.rsplit('::', 1)[-1]}(" in (ROOT / "tests" / suite / file).read_text(), name


def test_the_closing_line():
    assert results.closing_line([failed("a"), Result("b", "b", "passed"), Result("c", "c", "skipped")]) == (
        "1 passed, 1 failed, 1 skipped")


def test_lanes_take_the_longest_first(monkeypatch, tmp_path):
    monkeypatch.setenv("GRAPNEL_CACHE", str(tmp_path))
    monkeypatch.setattr(lanes, "LANES", 1)
    monkeypatch.setattr(lanes, "run_real", lambda suite, repeat: [Result(suite.name, "a", "passed")])
    lanes.remember_durations({"b": 100})
    run = lanes.Run()
    suites = [Suite(name, "folder", "", real=True, seconds=seconds) for name, seconds in (("a", 5), ("b", 1), ("c", 50))]
    aside = []
    run.lanes(lambda: suites, lambda: aside.append("done"))
    assert ([r.suite for r in run.results], aside) == (["b", "c", "a"], ["done"])
