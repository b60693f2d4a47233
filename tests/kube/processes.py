"""Child processes that never outlive the tests, and ports that nobody else can take."""

import concurrent.futures
import os
import pathlib
import signal
import socket
import subprocess


class StartFailed(Exception):
    """A component did not come up; the message ends with the tail of its log."""


class ReservedPort:
    """A free loopback port that stays ours until `release`.

    The socket is bound but never listens. Linux then lets another socket that also sets
    SO_REUSEADDR (as every Go server does) bind and listen, while the kernel gives the port to
    nobody who asks for any free one. So a server can be stopped and started again on its port.
    """

    def __init__(self):
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", 0))
        self.number = self._socket.getsockname()[1]

    def release(self):
        self._socket.close()


class Spawner:
    """Starts children that the kernel kills when this Python process ends, however it ends.

    The kernel's death signal is tied to the thread that started the child, so all are started
    from one thread, which lives as long as the spawner.
    """

    def __init__(self):
        self._thread = concurrent.futures.ThreadPoolExecutor(1, "spawner")

    def start(self, command, log, env=None):
        # A session of its own: Ctrl-C in a terminal must reach us first, to stop in order.
        with open(log, "ab") as output:
            return self._thread.submit(
                subprocess.Popen, ["setpriv", "--pdeathsig", "KILL", "--", *map(str, command)],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=env,
                start_new_session=True).result()

    def close(self):
        self._thread.shutdown()


class Component:
    """One program of the control plane: what to run, its log, and its process while it runs."""

    def __init__(self, name, command, log: pathlib.Path, spawner: Spawner):
        self.name = name
        self.command = command
        self.log = log
        self._spawner = spawner
        self._process = None
        self._stopping = False

    @property
    def pid(self):
        return self._process.pid if self.running else None

    @property
    def running(self):
        return self._process is not None and self._process.poll() is None

    @property
    def has_ended(self):
        """Ended without having been asked to."""
        return self._process is not None and not self.running and not self._stopping

    def start(self):
        if self.running:
            raise RuntimeError(f"{self.name} runs already")
        self._stopping = False
        self._process = self._spawner.start(self.command, self.log)

    def failure(self, what):
        return StartFailed(f"{self.name} {what}\n{self.tail()}")

    def tail(self, lines=30):
        """The last lines of the log, under a headline, for error messages."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join([f"{self.log.name} ends with:"]
                         + ["    " + line for line in text.splitlines()[-lines:]])

    def signal(self, number):
        if not self.running:
            raise RuntimeError(f"{self.name} is not running")
        self._process.send_signal(number)

    def pause(self):
        """Stops the process (SIGSTOP) and waits for it: threads that run go on for a while."""
        self.signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def stop(self, graceful=False, timeout=20):
        """Ends the process and reaps it. A stopped (SIGSTOP) process is ended too."""
        if not self.running:
            return
        self._stopping = True
        if graceful:
            self._process.send_signal(signal.SIGCONT)
            self._process.terminate()
            try:
                self._process.wait(timeout)
                return
            except subprocess.TimeoutExpired:
                pass
        self._process.kill()
        self._process.wait()
