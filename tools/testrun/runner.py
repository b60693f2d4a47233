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


class KubePrograms:
    """What suites need of other people's programs, built while the compiler works."""

    def __init__(self, suites):
        self._targets = list(dict.fromkeys(target for suite in suites for target in suite.kube))
        self._log = processes.log_of("kube-build")
        self._process = None
        if self._targets:
            with self._log.open("w") as out:
                self._process = subprocess.Popen(["nice", ROOT / "tools/kube/build", *self._targets],
                                                 stdout=out, stderr=subprocess.STDOUT)

    def ready(self):
        """([what failed], why suites that need them are skipped, or None)"""
        code = self._process.wait() if self._process else 0
        if code == MISSING_PROGRAM:
            return [], processes.tail(self._log, 1)
        failed = [Result("kube", "tools/kube/build", "failed", 0, processes.tail(self._log))] if code else []
        return failed, None


def checks(run, chosen):
    if "includes" in chosen:
        run.suite("includes", lambda: command("includes", "includes", ["python3", "tools/check_includes.py", "src"]))
    if "format" in chosen:
        run.suite("format", lambda: command("format", "format", ["tools/check_format"]))
    if "tools" in chosen:
        run.suite("tools", lambda: folders.run_folder(chosen["tools"]))


def build(run, chosen):
    """The sanitizers' build of what the chosen suites need."""
    targets = sorted({target for suite in chosen.values() for target in suite.targets if suite.name != "headers"})
    return not targets or run.suite(
        "build", lambda: command("build", "build", *build_steps("asan", *targets)))


def beside(run, chosen, nice):
    """What keeps the CPUs busy while the others wait."""
    def step(name, work):
        if name in chosen:
            run.suite(name, work)

    step("unit", lambda: programs.run_programs(chosen["unit"], nice=nice))
    step("headers", lambda: command("headers", "headers", *build_steps("asan", "headers"), nice=nice))
    step("release", lambda: command("release", "release", *build_steps("release"), nice=nice))
    if "simulation" in chosen:
        built = run.suite("build-sim", lambda: command(
            "build-sim", "build-sim", *build_steps("release", "grapnel-sim"), nice=nice))
        step("simulation", lambda: programs.run_commands(chosen["simulation"], nice=nice) if built else [])
    step("fuzz", lambda: programs.run_commands(chosen["fuzz"], nice=nice))


def test(chosen, *, repeat=True):
    """Runs the chosen suites: lanes.Run with what came of them."""
    run = lanes.Run()
    kube = KubePrograms(chosen.values())
    if any(suite.kind == "folder" for suite in chosen.values()):
        folders.python()
    checks(run, chosen)
    built = build(run, chosen)
    failed, reason = kube.ready()
    run.results += failed
    real = [suite for suite in chosen.values() if suite.real]
    if reason:
        run.results += [Result(suite.name, "all", "skipped", 0, reason) for suite in real if suite.kube]
    if reason or failed:
        real = [suite for suite in real if not suite.kube]
    if built:
        run.lanes(real, lambda: beside(run, chosen, nice=bool(real)), repeat=repeat)
        lanes.remember_durations({name: run.walls[name] for name in chosen if name in run.walls})
    return run
