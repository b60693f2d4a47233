"""One run of suites: what is built, what is checked, what runs beside what."""

import subprocess

from . import folders, lanes, processes, programs
from .results import Result
from .suites import ROOT

MISSING_PROGRAM = 3  # exit code of tools/kube/build


def command(suite, name, *steps, nice=False):
    """A Result of commands that are one test together: each must end well."""
    log = processes.log_of(name)
    total, code = 0, 0
    for number, step in enumerate(steps):
        code, seconds = processes.run(step, log, nice=nice, append=number > 0)
        total += seconds
        if code:
            break
    return [Result(suite, name, "failed" if code else "passed", total, processes.tail(log) if code else "")]


def build_steps(preset, *targets):
    if not (ROOT / "build" / preset / "build.ninja").exists():
        yield ["cmake", "--preset", preset]
    yield ["cmake", "--build", "--preset", preset, *(["--target", *targets] if targets else []), "--", "--quiet"]


class Others:
    """Other people's programs that suites need, got ready while the compiler works."""

    def __init__(self, suites):
        targets = list(dict.fromkeys(target for suite in suites for target in suite.kube))
        self._log = processes.log_of("kube-build")
        self._kube = self._start(self._log, "tools/kube/build", *targets) if targets else None
        # A test that needs this environment makes it itself, and tells if that is impossible.
        self._runtimes = None
        if any(suite.runtimes for suite in suites):
            self._runtimes = self._start(processes.log_of("runtimes"), "tools/runtimes")

    @staticmethod
    def _start(log, *program):
        with log.open("w") as out:
            return subprocess.Popen(["nice", *program], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=out,
                                    stderr=subprocess.STDOUT)

    def wait(self):
        """([what failed], why suites that need Kubernetes are skipped, or None)"""
        if self._runtimes:
            self._runtimes.wait()
        code = self._kube.wait() if self._kube else 0
        if code == MISSING_PROGRAM:
            return [], processes.tail(self._log, 1)
        failed = [Result("others", "tools/kube/build", "failed", 0, processes.tail(self._log))] if code else []
        return failed, None


def python_environment():
    """[what failed]"""
    try:
        folders.python()
        return []
    except subprocess.CalledProcessError as error:
        return [Result("others", "tools/venv", "failed", 0, str(error), may_repeat=False)]


def checks(run, chosen, has_python):
    if "includes" in chosen:
        run.suite("includes", lambda: command("includes", "includes", ["python3", "tools/check_includes.py", "src"]))
    if "format" in chosen:
        run.suite("format", lambda: command("format", "format", ["tools/check_format"]))
    if "tools" in chosen and has_python:
        run.suite("tools", lambda: folders.run_folder(chosen["tools"]))


def build(run, chosen):
    """The sanitizers' build of what the chosen suites need."""
    targets = sorted({target for suite in chosen.values() for target in suite.targets})
    return not targets or run.suite(
        "build", lambda: command("build", "build", *build_steps("asan", *targets)))


def simulate(suite, nice):
    """Thousands of schedules want the optimised build."""
    built = command("simulation", "its build", *build_steps("release", "grapnel-sim"), nice=nice)
    return built + (programs.run_commands(suite, nice=nice) if built[0].outcome == "passed" else [])


def beside(run, chosen, nice):
    """What keeps the CPUs busy while the others wait."""
    def step(name, work):
        if name in chosen:
            run.suite(name, work)

    step("headers", lambda: command("headers", "headers", *build_steps("asan", "headers"), nice=nice))
    step("release", lambda: command("release", "release", *build_steps("release"), nice=nice))
    step("simulation", lambda: simulate(chosen["simulation"], nice))
    step("fuzz", lambda: programs.run_commands(chosen["fuzz"], nice=nice))


def test(chosen, *, repeat=True):
    """Runs the chosen suites: lanes.Run with what came of them."""
    run = lanes.Run()
    others = Others(chosen.values())
    no_python = python_environment() if any(suite.kind == "folder" for suite in chosen.values()) else []
    run.results += no_python
    checks(run, chosen, has_python=not no_python)
    real = [suite for suite in chosen.values() if suite.real and not (no_python and suite.kind == "folder")]

    def ready():
        failed, reason = others.wait()
        run.results += failed
        if reason:
            run.results += [Result(suite.name, "all", "skipped", 0, reason) for suite in real if suite.kube]
        return [suite for suite in real if not suite.kube] if reason or failed else real

    if build(run, chosen):
        if "unit" in chosen:  # before all else: some have short deadlines, and they are soon done
            run.suite("unit", lambda: programs.run_programs(chosen["unit"]))
        run.lanes(ready, lambda: beside(run, chosen, nice=bool(real)), repeat=repeat)
        lanes.remember_durations({name: run.walls[name] for name in chosen if name in run.walls})
    else:
        others.wait()
    return run
