"""What kubectl reaches in a pod: logs, exec, attach, cp."""

import os
import pathlib
import pty
import select
import subprocess
import time

import pytest

from .cluster import config_map, container, container_status, pod


@pytest.fixture(scope="module")
def sleeper(cluster):
    """A pod that does nothing, for others to reach into."""
    thing = pod("sleeper", "trap 'exit 0' TERM; while :; do sleep 0.2; done")
    thing["spec"]["containers"].append(container("trap 'exit 0' TERM; while :; do sleep 0.2; done", "second"))
    cluster.create(thing)
    cluster.ready("sleeper")
    yield "sleeper"
    cluster.delete("Pod", "sleeper")
    cluster.gone("sleeper")


def test_exec_passes_everything_through(cluster, sleeper):
    done = cluster.kubectl("exec", "-i", sleeper, "-c", "main", "--", "sh", "-c", "cat; echo oops >&2; exit 9",
                           input="hello\n")
    assert (done.stdout, done.returncode) == ("hello\n", 9)
    assert done.stderr.startswith("oops\n")


def test_exec_of_megabytes(cluster, sleeper):
    data = os.urandom(1 << 20).hex()
    done = cluster.kubectl("exec", "-i", sleeper, "-c", "main", "--", "sh", "-c", "cat | tee /tmp/copy | md5sum; cat /tmp/copy",
                           input=data)
    assert done.stdout.split("\n", 1)[1] == data


def test_exec_names_the_container(cluster, sleeper):
    assert cluster.kubectl("exec", sleeper, "-c", "second", "--", "hostname").stdout == "sleeper\n"
    missing = cluster.kubectl("exec", sleeper, "-c", "third", "--", "true")
    assert missing.returncode != 0 and "third" in missing.stderr


def test_exec_sees_the_variables_that_the_container_was_started_with(cluster, name):
    cluster.create(config_map(name, {"key": "old"}),
                   pod(name, "sleep 1000", env=[{"name": "VALUE", "valueFrom": {
                       "configMapKeyRef": {"name": name, "key": "key"}}}]))
    cluster.phase(name, "Running")
    cluster.delete("ConfigMap", name)
    ran = cluster.kubectl("exec", name, "--", "sh", "-c", "echo $VALUE")
    assert ran.stdout == "old\n", ran.stderr


def test_exec_of_what_is_not_there(cluster, sleeper):
    done = cluster.kubectl("exec", sleeper, "-c", "main", "--", "no-such-program")
    assert done.returncode != 0 and "no-such-program" in done.stderr


def read_until(fd, text, timeout=15):
    out = b""
    deadline = time.monotonic() + timeout
    while text not in out:
        assert time.monotonic() < deadline, out
        if select.select([fd], [], [], 0.1)[0]:
            try:
                out += os.read(fd, 4096)
            except OSError:
                break
    return out


def test_exec_with_a_terminal(cluster, sleeper):
    import fcntl
    import struct
    import termios
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 99, 0, 0))
    shell = subprocess.Popen(cluster.kubectl_command("exec", "-it", sleeper, "-c", "main", "--", "sh"), stdin=theirs,
                             stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    try:
        os.write(ours, b"tty; stty size\n")
        out = read_until(ours, b"33 99")
        assert b"/dev/pts/" in out
        os.write(ours, b"sleep 100\n")
        time.sleep(0.5)
        os.write(ours, b"\x03echo after-$((1+1))\n")  # ^C ends the sleep, not the shell
        read_until(ours, b"after-2")
        os.write(ours, b"exit 4\n")
        assert shell.wait(15) == 4
    finally:
        shell.kill()
        shell.wait()
        os.close(ours)


def test_copy_there_and_back(cluster, sleeper, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_bytes(os.urandom(300_000))
    (tmp_path / "in" / "deep").mkdir()
    (tmp_path / "in" / "deep" / "b").write_text("b")
    there = cluster.kubectl("cp", tmp_path / "in", f"{sleeper}:/tmp/there", "-c", "main")
    assert there.returncode == 0, there.stderr
    back = cluster.kubectl("cp", f"{sleeper}:/tmp/there", tmp_path / "out", "-c", "main")
    assert back.returncode == 0, back.stderr
    assert (tmp_path / "out" / "a").read_bytes() == (tmp_path / "in" / "a").read_bytes()
    assert (tmp_path / "out" / "deep" / "b").read_text() == "b"


def test_attach_shows_what_is_printed_from_now_on(cluster, name):
    cluster.create(pod(name, "echo before; i=0; while [ ! -e /tmp/stop ]; do sleep 0.1; done; echo after; exit 0"))
    cluster.ready(name)
    attached = subprocess.Popen(cluster.kubectl_command("attach", name), stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)
    time.sleep(1)
    cluster.kubectl("exec", name, "--", "touch", "/tmp/stop")
    out, error = attached.communicate(timeout=20)
    assert out == "after\n", error


def test_attach_gives_input(cluster, name):
    """`stdinOnce`: the end of the first one's input is the end of the container's."""
    cluster.create(pod(name, "while read line; do echo got $line; echo error $line >&2; done; exit 7",
                       stdin=True, stdinOnce=True))
    cluster.ready(name)
    done = cluster.kubectl("attach", "-i", name, input="one\ntwo\n", timeout=20)
    assert done.stdout == "got one\ngot two\n", done.stderr
    assert "error one\nerror two\n" in done.stderr
    assert container_status(cluster.ends(name))["state"]["terminated"]["exitCode"] == 7
    assert cluster.output(name).count("got") == 2


def test_attach_leaves_input_open_for_the_next(cluster, name):
    cluster.create(pod(name, "while read line; do echo got $line; [ $line = stop ] && exit 0; done", stdin=True))
    cluster.ready(name)
    first = subprocess.Popen(cluster.kubectl_command("attach", "-i", name), stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True)
    first.stdin.write("one\n")
    first.stdin.flush()
    assert first.stdout.readline() == "got one\n"
    first.kill()
    first.wait()
    cluster.kubectl("attach", "-i", name, input="stop\n", timeout=20)
    assert cluster.ends(name)["status"]["phase"] == "Succeeded"
    assert cluster.output(name) == "got one\ngot stop\n"  # what is said last, containerd does not always pass on


def test_attach_to_a_terminal(cluster, name):
    """As `kubectl run -it` does: a prompt is seen before its line ends."""
    cluster.create(pod(name, "stty -echo; printf 'name? '; read line; echo hello $line; stty size", stdin=True,
                       stdinOnce=True, tty=True))
    cluster.ready(name)
    ours, theirs = pty.openpty()
    attached = subprocess.Popen(cluster.kubectl_command("attach", "-it", name), stdin=theirs, stdout=theirs,
                                stderr=theirs, start_new_session=True)
    os.close(theirs)
    time.sleep(1)
    os.write(ours, b"you\n")
    seen = b""
    while b"hello you" not in seen and select.select([ours], [], [], 20)[0]:
        seen += os.read(ours, 1000)
    assert b"hello you" in seen
    attached.wait(20)
    os.close(ours)
    assert cluster.ends(name)["status"]["phase"] == "Succeeded"


def test_run_with_input(cluster, name):
    done = cluster.kubectl("run", name, "--image=host", "-i", "--rm", "--restart=Never", "--quiet", "--command", "--",
                           "sh", "-c", "sort; exit 3", input="b\na\n", timeout=60)
    assert done.stdout.startswith("a\nb\n") and done.returncode == 3, (done.stdout, done.stderr)
    assert cluster.get("Pod", name) is None


def test_logs_as_asked(cluster, name):
    cluster.run(pod(name, "for i in 1 2 3 4 5; do echo line $i; echo error $i >&2; done"))
    lines = cluster.output(name).splitlines()
    assert [l for l in lines if l.startswith("line")] == [f"line {i}" for i in range(1, 6)]
    assert [l for l in lines if l.startswith("error")] == [f"error {i}" for i in range(1, 6)]
    assert len(cluster.output(name, tailLines=3).splitlines()) == 3
    assert len(cluster.output(name, limitBytes=5)) == 5
    stamped = cluster.output(name, timestamps="true", tailLines=1)
    assert stamped[:2] == "20" and "T" in stamped.split(" ")[0]
    assert cluster.output(name, sinceSeconds=1000) == "\n".join(lines) + "\n"


def test_logs_are_followed_across_rotation(cluster, name):
    """12 MB: the file of 10 MB is rotated under the reader."""
    line = "x" * 995
    cluster.create(pod(name, f"/usr/bin/python3 -c 'for i in range(12000): print(f\"{{i:04d}}\", \"{line}\")'; sleep 1"))
    cluster.phase(name, "Running", "Succeeded")
    done = cluster.kubectl("logs", "-f", name, timeout=60)
    numbers = [int(text.split(" ", 1)[0]) for text in done.stdout.splitlines()]
    assert numbers == list(range(12000)), (len(numbers), done.stderr)


def test_logs_of_the_attempt_before(cluster, name):
    mounts = {"volumes": [{"name": "v", "emptyDir": {}}], "volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    cluster.create(pod(name, "echo x >> /v/n; n=$(wc -l < /v/n); echo attempt $n; [ $n = 2 ] || exit 1; sleep 60",
                       restart="Always", **mounts))
    cluster.wait_for_pod(name, lambda p: (container_status(p) or {}).get("restartCount") == 1 and
                         "running" in container_status(p)["state"], "is restarted")
    cluster.wait(lambda: cluster.output(name) == "attempt 2\n", "it prints")
    assert cluster.output(name, previous="true") == "attempt 1\n"
    cluster.delete("Pod", name)


def test_logs_follow_to_the_end_of_an_attempt(cluster, name):
    cluster.create(pod(name, "for i in 1 2 3; do echo $i; sleep 0.3; done; exit 1", restart="OnFailure"))
    cluster.phase(name, "Running")
    assert cluster.kubectl("logs", "-f", name).stdout == "1\n2\n3\n"
    cluster.delete("Pod", name)


def test_lines_without_end_and_binary(cluster, name):
    out = cluster.run(pod(name, "/usr/bin/python3 -c 'import sys; sys.stdout.write(\"y\" * 100000 + \"\\n\" + \"no newline\")'"))
    assert out == "y" * 100000 + "\n" + "no newline"
