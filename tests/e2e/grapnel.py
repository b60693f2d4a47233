"""The program under test, called as a user calls it."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("GRAPNEL", str(ROOT / "build" / "asan" / "grapnel"))


class Grapnel:
    """Runs commands with a state directory of their own, so that nothing of the user's is touched."""

    def __init__(self, state: pathlib.Path):
        self.state = state
        self.environment = {**os.environ, "XDG_STATE_HOME": str(state)}

    def __call__(self, *arguments, timeout=120, cwd=ROOT, input=None, **environment):
        """The finished process, with its output as text."""
        return subprocess.run([PROGRAM, *map(str, arguments)], cwd=cwd, input=input, timeout=timeout,
                              env={**self.environment, **environment}, capture_output=True, text=True)

    def start(self, *arguments, log: pathlib.Path):
        """A process that goes on; the caller ends it."""
        return subprocess.Popen([PROGRAM, *map(str, arguments)], cwd=ROOT, env=self.environment,
                                stdout=log.open("w"), stderr=subprocess.STDOUT)

    def command(self, *arguments):
        return [PROGRAM, *map(str, arguments)]

    def cluster_log(self, name="default") -> str:
        path = self.state / "grapnel" / name / "log"
        return path.read_text() if path.exists() else ""


class Target:
    """`grapnel` with a namespace of the real cluster."""

    def __init__(self, program, kubeconfig, namespace):
        self._program = program
        self._where = ["--kubeconfig", str(kubeconfig), "-n", namespace]
        self.environment = program.environment

    def command(self, command, *arguments):
        return self._program.command(command, *self._where, *arguments)

    def __call__(self, command, *arguments, **options):
        return self._program(command, *self._where, *arguments, **options)
