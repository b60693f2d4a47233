"""`grapnel exec`, `cp`, `port-forward`: into the processes of an experiment and out of them."""

import fcntl
import os
import pty
import select
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import termios
import threading
import time
import uuid

import pytest

from .test_experiments import phase, submit, wait_for
from .test_run import manifest


@pytest.fixture
def long(up, tmp_path):
    """An experiment of two processes that run until the end of the test; its name."""
    name = "long"
    submit(up, manifest(tmp_path, "trap 'exit 0' TERM; while :; do sleep 0.2; done"), name)
    wait_for("its start", lambda: phase(up, name) == "Running")
    yield name
    assert up("delete", name).returncode == 0
    wait_for("deletion", lambda: up("list").stdout == "")


# ---- exec


def test_exec_passes_streams_and_the_exit_code(up, long):
    done = up("exec", long, "-i", "--", "sh", "-c", "cat; echo oops >&2; exit 9", input="hello\n")
    assert (done.stdout, done.stderr, done.returncode) == ("hello\n", "oops\n", 9)


def test_exec_finds_the_process_that_is_meant(up, long):
    for chosen, rank in (([], "0"), (["--rank", "1"], "1"), (["--role", "worker", "--rank", "0"], "0")):
        assert up("exec", long, *chosen, "--", "printenv", "RANK").stdout == rank + "\n"
    for wrong, message in ((["--rank", "2"], "'long' has no such process; there are worker-0, worker-1"),
                           (["--role", "head"], "'long' has no such process")):
        ended = up("exec", long, *wrong, "--", "true")
        assert ended.returncode == 1 and message in ended.stderr, ended.stderr
    missing = up("exec", "nothing", "--", "true")
    assert "there is no experiment 'nothing'" in missing.stderr and missing.returncode == 1


def test_exec_of_what_is_not_there(up, long):
    ended = up("exec", long, "--", "no-such-program")
    assert ended.returncode == 1 and "no-such-program" in ended.stderr


def test_exec_without_a_command_is_a_shell(up, long):
    assert up("exec", long, input="echo rank $RANK; exit 3\n").stdout == "rank 0\n"


def test_exec_reads_files_and_megabytes(up, long, tmp_path):
    data = os.urandom(3 << 20)
    (tmp_path / "data").write_bytes(data)
    with (tmp_path / "data").open("rb") as file:
        done = subprocess.run(up.command("exec", "-i", long, "--", "cat"), stdin=file,
                              env=up.environment, capture_output=True, timeout=60)
    assert done.stdout == data, done.stderr


def read_until(fd, text, timeout=20):
    out = b""
    deadline = time.monotonic() + timeout
    while text not in out:
        assert time.monotonic() < deadline, out
        if select.select([fd], [], [], 0.1)[0]:
            out += os.read(fd, 4096)
    return out


def resize(fd, rows, columns):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def test_exec_with_a_terminal(up, long):
    ours, theirs = pty.openpty()
    resize(theirs, 33, 99)
    before = termios.tcgetattr(theirs)
    shell = subprocess.Popen(up.command("exec", "-it", long), stdin=theirs, stdout=theirs,
                             stderr=theirs, env=up.environment, start_new_session=True)
    try:
        os.write(ours, b"tty; stty size\n")
        assert b"/dev/pts/" in read_until(ours, b"33 99")
        resize(theirs, 40, 120)
        shell.send_signal(signal.SIGWINCH)  # as the terminal's owner would be sent it
        os.write(ours, b"sleep 0.3; stty size\n")
        read_until(ours, b"40 120")
        os.write(ours, b"sleep 100\n")
        time.sleep(0.5)
        os.write(ours, b"\x03")  # ends the sleep, not the shell, and not grapnel
        os.write(ours, b"echo after-$((1+1))\n")
        read_until(ours, b"after-2")
        os.write(ours, b"exit 4\n")
        assert shell.wait(15) == 4
        assert termios.tcgetattr(theirs) == before, "the terminal is as it was"
        assert not fcntl.fcntl(theirs, fcntl.F_GETFL) & os.O_NONBLOCK, "so is what others have of it"
    finally:
        shell.kill()
        shell.wait()
        os.close(ours)
        os.close(theirs)


# ---- cp


def test_folders_there_and_back(up, long, tmp_path):
    source = tmp_path / "in"
    (source / "deep").mkdir(parents=True)
    (source / "a b").write_bytes(os.urandom(3_000_000))
    (source / "deep" / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (source / "deep" / "run.sh").chmod(0o755)
    there = up("cp", source, f"{long}:/tmp/there")
    assert (there.returncode, there.stdout, there.stderr) == (0, "", "")
    assert up("exec", long, "--", "/tmp/there/deep/run.sh").stdout == "ran\n"

    back = up("cp", f"{long}:/tmp/there", tmp_path / "out")
    assert back.returncode == 0, back.stderr
    assert (tmp_path / "out" / "a b").read_bytes() == (source / "a b").read_bytes()
    assert os.access(tmp_path / "out" / "deep" / "run.sh", os.X_OK)

    # A destination that is a folder gets the source inside.
    assert up("cp", source, f"{long}:/tmp/there").returncode == 0
    assert up("exec", long, "--", "ls", "/tmp/there").stdout == "a b\ndeep\nin\n"
    assert up("cp", f"{long}:/tmp/there/deep", tmp_path / "out").returncode == 0
    assert (tmp_path / "out" / "deep" / "run.sh").exists()


def test_files_there_and_back(up, long, tmp_path):
    (tmp_path / "one").write_text("first")
    (tmp_path / "one").chmod(0o640)
    assert up("cp", "one", f"{long}:/tmp/new/two", cwd=tmp_path).returncode == 0
    assert up("exec", long, "--", "sh", "-c", "cat /tmp/new/two; stat -c %a /tmp/new/two").stdout == \
        "first640\n"
    assert up("cp", "one", f"{long}:/tmp/new", "--rank", "1", cwd=tmp_path).returncode == 0
    assert up("exec", long, "--rank", "1", "--", "cat", "/tmp/new").stdout == "first"
    (tmp_path / "folder").mkdir()
    assert up("cp", f"{long}:/tmp/new/two", "folder", cwd=tmp_path).returncode == 0
    assert up("cp", f"{long}:/tmp/new/two", "named", cwd=tmp_path).returncode == 0
    assert (tmp_path / "folder" / "two").read_text() == "first"
    assert (tmp_path / "named").read_text() == "first"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["folder", "manifest.yaml", "named", "one"]


@pytest.mark.parametrize("code", [0, 3])
def test_the_program_that_packs_may_end_after_the_one_that_unpacks(up, long, tmp_path, code):
    (tmp_path / "one").write_text("first")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "tar").write_text(f'#!/bin/sh\n{shutil.which("tar")} "$@"; exec >&-; sleep 1; exit {code}\n')
    (tmp_path / "bin" / "tar").chmod(0o755)
    copied = up("cp", tmp_path / "one", f"{long}:/tmp/late", PATH=f"{tmp_path}/bin:{os.environ['PATH']}")
    assert (copied.returncode, "not everything could be read" in copied.stderr) == ((0, False) if code == 0 else (1, True))


def test_what_cannot_be_copied_is_named(up, long, tmp_path):
    for arguments, code, message in [
        ((f"{long}:/no/such", tmp_path / "x"), 1, "there is no file or folder /no/such"),
        ((tmp_path / "no-such", f"{long}:/tmp/x"), 1, "there is no file or folder"),
        ((tmp_path, tmp_path), 2, "one of the two is NAME:PATH"),
        ((tmp_path, f"{long}:/proc/x"), 1, "/proc/x"),
    ]:
        ended = up("cp", *arguments)
        assert ended.returncode == code and message in ended.stderr, (arguments, ended.stderr)
    assert not (tmp_path / "x").exists()


# ---- port-forward


SERVER = """
import http.server, os
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers['Content-Length']))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(os.environ['RANK'].encode() + body[::-1])
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer(('', 8000), Handler).serve_forever()
"""


@pytest.fixture
def serving(up, tmp_path):
    # A name of its own: a server that does not heed TERM outlives its experiment for a while.
    name = f"serving-{uuid.uuid4().hex[:6]}"
    submit(up, manifest(tmp_path, "exec python3 -c " + shlex.quote(SERVER)), name)
    wait_for("its start", lambda: phase(up, name) == "Running")
    yield name
    assert up("delete", name).returncode == 0
    wait_for("deletion", lambda: up("list").stdout == "")


class Forwarding:
    """`grapnel port-forward` until the end of the `with`, where Ctrl-C ends it."""

    def __init__(self, program, *arguments):
        self._process = subprocess.Popen(program.command("port-forward", *arguments), text=True,
                                         env=program.environment, stdout=subprocess.PIPE,
                                         stderr=subprocess.PIPE)
        self.line = self._process.stdout.readline()
        assert self.line, self._process.stderr.read()
        self.port = int(self.line.split()[0].split(":")[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.send_signal(signal.SIGINT)
        try:
            _, self.errors = self._process.communicate(timeout=20)
        finally:
            self._process.kill()
        assert self._process.returncode == 0, self.errors


def post(port, body):
    import http.client
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("POST", "/", body=body)
        return connection.getresponse().read()
    finally:
        connection.close()


def test_ports_lead_to_the_process_that_is_meant(up, serving):
    with Forwarding(up, serving, ":8000", "--rank", "1") as forwarding:
        assert forwarding.line.endswith(" leads to port 8000 of worker-1\n")
        wait_for("the server", lambda: _answers(forwarding.port))
        answers = {}
        bodies = {i: os.urandom(200_000 + i) for i in range(8)}
        threads = [threading.Thread(target=lambda i=i: answers.update({i: post(forwarding.port, bodies[i])}))
                   for i in bodies]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert answers == {i: b"1" + body[::-1] for i, body in bodies.items()}


def _answers(port):
    try:
        return post(port, b"") == b"1"
    except OSError:
        return False


def test_a_port_that_nobody_listens_on(up, serving):
    with Forwarding(up, serving, ":9") as forwarding:
        with socket.create_connection(("127.0.0.1", forwarding.port), timeout=20) as connection:
            assert connection.recv(1) == b""
    assert "port 9" in forwarding.errors, forwarding.errors


def test_ports_that_make_no_sense(up, serving):
    ended = up("port-forward", serving, "http")
    assert ended.returncode == 2 and "'http' is not LOCAL:REMOTE" in ended.stderr
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = up("port-forward", serving, f"{port}:8000")
    assert ended.returncode == 1 and f"cannot listen on 127.0.0.1:{port}" in ended.stderr
