"""Pods reach the world as the machine does, and the world does not reach them.

The machine is a network namespace of the test's own, with an address that is not the loopback's.
"""

import contextlib
import os
import subprocess

import pytest

from .cluster import NOBODY, Cluster

ADDRESS = "198.51.100.7"


@pytest.fixture
def machine():
    """The pid of a process in a network of its own."""
    if os.geteuid() != 0:
        pytest.skip("needs root to make a network")
    script = f"ip link set lo up && ip address add {ADDRESS}/32 dev lo && echo ready && exec sleep 1000"
    process = subprocess.Popen(["unshare", "--net", "sh", "-c", script], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        yield process.pid
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def inside(machine):
    """What runs a command there."""
    return ["nsenter", "-t", str(machine), "-n"]


@contextlib.contextmanager
def server(inside, *command, **options):
    process = subprocess.Popen([*inside, "/usr/bin/python3", *command], stderr=subprocess.DEVNULL, **options)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def output_of(cluster, script):
    """What a pod printed that ran this Python."""
    made = cluster.kubectl("run", "out", "--image=host", "--restart=Never", "--command", "--",
                           "/usr/bin/python3", "-c", script)
    assert made.returncode == 0, made.stderr

    def ended():
        phase = cluster.kubectl("get", "pod", "out", "-o", "jsonpath={.status.phase}").stdout
        return phase if phase in ("Succeeded", "Failed") else None

    phase, printed = cluster.wait(ended, "its end", 60), cluster.kubectl("logs", "out").stdout
    assert phase == "Succeeded", printed
    return printed


as_root_and_user = pytest.mark.parametrize("user", [None, NOBODY], ids=["root", "user"])


@as_root_and_user
def test_a_pod_reaches_a_server_outside(inside, user, tmp_path, kubectl_program):
    (tmp_path / "index.html").write_text("hello from outside\n" * 10000)
    serving = server(inside, "-m", "http.server", "--bind", ADDRESS, "8000", cwd=tmp_path, stdout=subprocess.DEVNULL)
    with serving, Cluster(user=user, prefix=inside) as cluster:
        assert output_of(cluster, f"""
import urllib.request
for turn in range(20):
    text = urllib.request.urlopen("http://{ADDRESS}:8000/", timeout=10).read()
    assert text == b"hello from outside\\n" * 10000
try:
    urllib.request.urlopen("http://{ADDRESS}:8001/", timeout=10)
except OSError as error:
    print("refused", flush=True)
""") == "refused\n"


ECHO = """
import select, socket, sys
served = []

def serve(port):
    served.append(socket.socket(type=socket.SOCK_DGRAM))
    served[-1].bind((sys.argv[1], int(port)))

for port in sys.argv[2:]:
    serve(port)
print("ready", flush=True)
while True:
    for one in select.select(served, [], [])[0]:
        data, sender = one.recvfrom(65536)
        if data.startswith(b"serve "):
            serve(data.split()[1])
        one.sendto(b"%d %s" % (one.getsockname()[1], data), sender)
"""


@as_root_and_user
def test_a_pod_sends_datagrams_outside(inside, user, kubectl_program):
    """From one socket to several addresses, large ones, and from more sockets than are kept."""
    with server(inside, "-c", ECHO, ADDRESS, "9000", "9001", stdout=subprocess.PIPE, text=True) as echo:
        assert echo.stdout.readline() == "ready\n"
        with Cluster(user=user, prefix=inside) as cluster:
            assert output_of(cluster, f"""
import resource, socket, time
resource.setrlimit(resource.RLIMIT_NOFILE, (2048, 2048))

def ask(one, port, text):
    one.settimeout(10)
    one.sendto(text, ("{ADDRESS}", port))
    while one.recvfrom(65536) != (b"%d %s" % (port, text), ("{ADDRESS}", port)):
        pass  # what was sent to nobody, if its way was made only after somebody came

one = socket.socket(type=socket.SOCK_DGRAM)
for turn in range(20):
    ask(one, 9000 + turn % 2, b"turn %d" % turn)
ask(one, 9000, b"")
ask(one, 9001, b"x" * 60000)
many = [socket.socket(type=socket.SOCK_DGRAM) for i in range(1200)]
for i, other in enumerate(many):
    ask(other, 9000, b"%d" % i)
ask(many[0], 9000, b"again")
one.sendto(b"to many", ("239.1.2.3", 9000))
one.sendto(b"to nobody", ("{ADDRESS}", 9002))
time.sleep(0.5)
ask(one, 9000, b"serve 9002")
ask(one, 9002, b"who comes late")
print("all answered", flush=True)
""") == "all answered\n"
