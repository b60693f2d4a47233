"""Runs the Python suites: each folder of tests/ in a pytest of its own."""

import json
import subprocess

from . import processes
from .programs import NEVER_AGAIN
from .results import Result
from .suites import ROOT


def python():
    """The interpreter of the tests' environment, which is made if need be."""
    return subprocess.run([ROOT / "tools" / "venv"], check=True, text=True, stdout=subprocess.PIPE).stdout.strip()


def _pytest(suite, what, log):
    """(exit code, what tests/conftest.py wrote down)"""
    told = log.with_suffix(".jsonl")
    told.unlink(missing_ok=True)
    code, _ = processes.run([python(), "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={ROOT}", what], log,
                            env={"GRAPNEL_TEST_RESULTS": str(told)})
    return code, [json.loads(line) for line in told.read_text().splitlines()] if told.exists() else []


def results_of(suite, told):
    """One Result for each test, of the reports on its set-up, call and end."""
    found = {}
    for report in told:
        name = report["test"].removeprefix(f"tests/{suite.name}/")
        result = found.setdefault(name, Result(suite.name, name, "passed"))
        result.seconds += report["seconds"]
        if report["outcome"] == "failed":
            result.outcome = "failed"
            result.text = f"{result.text}\n{report['text']}".strip()
            # What ends a fixture looks back on other tests too: alone it would have nothing to see.
            result.may_repeat &= report["when"] in ("setup", "call") and not NEVER_AGAIN.search(report["text"])
        elif report["outcome"] == "skipped" and result.outcome != "failed":
            result.outcome, result.text = "skipped", report["text"].removeprefix("Skipped: ")
    return list(found.values())


def run_folder(suite):
    log = processes.log_of(suite.name)
    code, told = _pytest(suite, f"tests/{suite.name}", log)
    results = results_of(suite, told)
    is_explained = code == 0 or code == 1 and any(r.outcome in ("failed", "skipped") for r in results)
    if not is_explained:
        results.append(Result(suite.name, "pytest", "failed", 0, f"it ended with {code}\n{processes.tail(log)}",
                              may_repeat=False))
    return results


def repeat(suite, result):
    """One failed test once more, alone."""
    name = result.test if result.test.endswith(".py") or "::" in result.test else ""
    _, told = _pytest(suite, f"tests/{suite.name}/{name}", processes.log_of(f"{suite.name}-again"))
    found = [again for again in results_of(suite, told) if again.test == result.test]
    return found[0] if found else result
