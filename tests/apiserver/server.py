"""Our API server alone, as a process of its own."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("GRAPNEL_APISERVER", str(ROOT / "build" / "asan" / "apiserver_tool"))


class Ours:
    """Started on entry, stopped on exit; `kill()` ends it as a crash would."""

    def __init__(self, *flags):
        self.flags = [str(flag) for flag in flags]

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(timeout=20)
        finally:
            self.process.kill()

    def start(self):
        self.process = subprocess.Popen([PROGRAM, *self.flags], stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()
        assert self.url, f"{PROGRAM} did not start"

    def kill(self):
        self.process.kill()
        self.process.wait()
