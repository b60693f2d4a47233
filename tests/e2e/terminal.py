"""A real terminal (tmux) of a given size, and what stands on it."""

import re
import shlex
import subprocess
import time
import uuid


class Terminal:
    """Runs a command in it until the end of the `with`."""

    def __init__(self, command, environment, columns, rows=24):
        self._socket = f"grapnel-{uuid.uuid4().hex[:12]}"
        # The shell outlives a Ctrl-C that is meant for the command.
        line = "trap : INT; " + " ".join(map(shlex.quote, command)) + "; echo \"ended with $?\"; sleep 600"
        subprocess.run([*self._tmux(), "-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows),
                        "sh", "-c", line], env={**environment, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"},
                       check=True, timeout=20)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run([*self._tmux(), "kill-server"], check=False, timeout=20)

    def _tmux(self):
        return ["tmux", "-u", "-L", self._socket]

    def screen(self, colours=False) -> str:
        """All its lines, without those that are empty at the end."""
        shown = subprocess.run([*self._tmux(), "capture-pane", "-p", "-t", ":", *(["-e"] if colours else [])],
                               check=True, capture_output=True, text=True, timeout=20).stdout
        return shown.rstrip("\n") + "\n"

    def press(self, *keys):
        subprocess.run([*self._tmux(), "send-keys", "-t", ":", *keys], check=True, timeout=20)

    def until(self, text, seconds=60) -> str:
        deadline = time.monotonic() + seconds
        while text not in (shown := self.screen()):
            assert time.monotonic() < deadline, shown
            time.sleep(0.05)
        return self.screen()


def settled(text: str) -> str:
    """Without what differs from run to run: endings of names, and ages."""
    text = re.sub(r"(-worker-\d+-\d+)-[a-z0-9]{5}\b", r"\1-xxxxx", text)
    return re.sub(r"\b\d+s$", "Ns", text, flags=re.M)
