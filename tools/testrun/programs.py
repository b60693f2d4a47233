"""Runs GoogleTest programs, and commands that are a test each, as CTest knows them.

A program's own output says what came of each test, so that a crash costs that one test only: the
others are run without it.
"""

import concurrent.futures
import json
import os
import re
import subprocess

from . import processes
from .results import Result
from .suites import ASAN, ROOT

CRASHES = 3  # of one program; then it is not worth going on
LINE = re.compile(r"\[ +(RUN|OK|FAILED|SKIPPED) +\] ([\w/]+\.[\w/]+)(?:, where .*)?(?: \((\d+) ms\))?")
# What a sanitizer reports is a defect, however often it does not happen.
NEVER_AGAIN = re.compile(r"AddressSanitizer|LeakSanitizer|UndefinedBehaviorSanitizer|runtime error:")


def known_to_ctest():
    """[(name, command, labels)]"""
    said = subprocess.run(["ctest", "--test-dir", ASAN, "--show-only=json-v1"], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    for test in json.loads(said)["tests"]:
        properties = {p["name"]: p["value"] for p in test.get("properties", [])}
        yield test["name"], test.get("command", []), properties.get("LABELS", [])


def commands_of(suite):
    """[(name, command)] of a suite of C++ programs."""
    found = []
    for name, command, labels in known_to_ctest():
        is_google = bool(command) and command[0].endswith("_test")
        own = ("fuzz" if "fuzz" in labels else name if "processes" in labels
               else "unit" if is_google else "simulation")
        if own == suite.name:
            found.append((name, command))
    if suite.name == "simulation":
        found.append(("simulation, 10,000 schedules of each subject",
                      [ROOT / "tests/simulation/run", "10000", str(os.cpu_count())]))
    return found


def texts_of(output):
    """{test: (outcome, seconds, what it printed)}; a test without an end has none of the first."""
    found, current, begin = {}, None, 0
    for match in LINE.finditer(output):
        word, test, millis = match.groups()
        if word == "RUN":
            current, begin = test, match.end()
            found[test] = (None, 0.0, output[begin:])
        elif test == current:
            outcome = {"OK": "passed", "FAILED": "failed", "SKIPPED": "skipped"}[word]
            found[test] = (outcome, int(millis or 0) / 1000, output[begin:match.start()].strip())
            current = None
    return found


def run_program(suite, name, command, *, only=None):
    """The results of one GoogleTest program, or of one test of it."""
    results, left_out = [], []
    log = processes.log_of(f"{suite.name}-{name}")
    for _ in range(CRASHES):
        chosen = only or ("-" + ":".join(left_out) if left_out else "*")
        code, seconds = processes.run([*command, f"--gtest_filter={chosen}"], log)
        crashed = None
        for test, (outcome, took, text) in texts_of(log.read_text(errors="replace")).items():
            if outcome is None:
                crashed, outcome, text = test, "failed", f"{text[-4000:]}\nit ended the program (exit code {code})"
            results.append(Result(suite.name, f"{name}: {test}", outcome, took, text[-8000:],
                                  may_repeat=not NEVER_AGAIN.search(text)))
            left_out.append(test)
        if not crashed or only:
            break
    if code and not any(r.outcome == "failed" for r in results):
        results.append(Result(suite.name, name, "failed", seconds, processes.tail(log), may_repeat=False))
    if not results:
        results.append(Result(suite.name, name, "failed", seconds, f"{name} has no such test", may_repeat=False))
    return results


def run_programs(suite):
    """All programs of a suite, as many at a time as there are CPUs."""
    with concurrent.futures.ThreadPoolExecutor(1 if suite.real else os.cpu_count()) as pool:
        waiting = [pool.submit(run_program, suite, name, command) for name, command in commands_of(suite)]
        return [result for one in waiting for result in one.result()]


def repeat(suite, result):
    """One failed test of a program once more, alone."""
    name, test = result.test.split(": ", 1)
    command = dict(commands_of(suite))[name]
    return run_program(suite, name, command, only=test)[0]


def run_commands(suite, *, nice=False):
    def one(name, command):
        log = processes.log_of(f"{suite.name}-{name}")
        code, seconds = processes.run(command, log, nice=nice)
        return Result(suite.name, name, "failed" if code else "passed", seconds, processes.tail(log))

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda pair: one(*pair), commands_of(suite)))
