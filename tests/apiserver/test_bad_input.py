"""What no well-behaved client sends: it is refused in clear words, and memory stays bounded."""

import http.client
import json
import os
import resource
import socket
import threading
import time
from urllib.parse import quote, urlsplit

import pytest

from apiserver.cases import Server
from apiserver.server import Ours

CM = "/api/v1/namespaces/default/configmaps"
MAGIC = b"k8s\x00"


@pytest.fixture(scope="module")
def ours():
    with Ours() as server:
        yield server


@pytest.fixture
def ask(ours):
    address = urlsplit(ours.url)

    def ask(method, path, body=b"", content_type="application/json"):
        connection = http.client.HTTPConnection(address.hostname, address.port, timeout=30)
        try:
            connection.request(method, path, body, {"Content-Type": content_type})
            response = connection.getresponse()
            text = response.read()
            return response.status, json.loads(text) if text.startswith(b"{") else text.decode()
        finally:
            connection.close()
    return ask


def rss_mb(process):
    with open(f"/proc/{process.pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024


def connect(ours):
    address = urlsplit(ours.url)
    return socket.create_connection((address.hostname, address.port), timeout=30)


def test_a_body_beyond_all_measure(ask):
    body = b'{"metadata":{"name":"a"},"data":{"k":"' + b"x" * (8 << 20) + b'"}}'
    try:
        code, _ = ask("POST", CM, body)
    except OSError:
        return  # the connection was cut while we still sent
    assert code == 413


def test_data_beyond_a_mebibyte(ask):
    code, answer = ask("POST", CM, json.dumps({"metadata": {"name": "a"}, "data": {"k": "x" * (1 << 20)}}))
    assert (code, answer["reason"]) == (422, "Invalid")


@pytest.mark.parametrize("body", [
    b"", b"{", b"nonsense", b"\xff\xfe", b'{"a":1}}', b'{"metadata":{"name":"a\x00"}}',
    b"[" * 100_000, b'{"a":' * 50_000 + b"1" + b"}" * 50_000, b'{"metadata":{"name":"\\ud800"}}',
])
def test_json_that_is_none(ask, body):
    code, answer = ask("POST", CM, body)
    assert code in (400, 422) and answer["kind"] == "Status"


@pytest.mark.parametrize("body", [
    b"", MAGIC, MAGIC + b"\xff" * 20, b"k9s\x00abc", MAGIC + b"\x0a\xff\xff\xff\xff\x0f",
    MAGIC + b"\x0a\x0c\x0a\x02v1\x12\x06Secret\x12\x02\x0a\x00",
    MAGIC + b"\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x80\x80\x80\x80\x08",
    MAGIC + b"\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x05\x0a\x03\x0a\x01\xf1",  # a name of no UTF-8
    MAGIC + os.urandom(4096), b"\x00" * 100,
])
def test_protobuf_that_is_none(ask, body):
    code, answer = ask("POST", CM, body, "application/vnd.kubernetes.protobuf")
    assert code in (400, 422) and answer["kind"] == "Status"


@pytest.mark.parametrize("media", ["text/html", "application/cbor", "application/x-www-form-urlencoded",
                                   "multipart/form-data; boundary=x", "nonsense"])
def test_content_types_we_do_not_read(ask, media):
    assert ask("POST", CM, b'{"metadata":{"name":"a"}}', media)[0] == 415


@pytest.mark.parametrize("selector", [
    "a in (" + ",".join(f"v{i}" for i in range(5000)) + ")", ",".join(f"k{i}=v" for i in range(2000)),
    "(" * 10_000, "!" * 10_000, "a" * 20_000 + "=b", "\x00", "a=\ud7ff",
])
def test_selectors_beyond_reason(ask, selector):
    code, _ = ask("GET", f"{CM}?labelSelector={quote(selector, errors='replace')}")
    assert code in (200, 400)
    assert ask("GET", f"{CM}?fieldSelector={quote(selector, errors='replace')}")[0] in (200, 400)


@pytest.mark.parametrize("path", [
    CM + "/" + "a" * 5000, CM + "/..%2f..%2f", "/api/v1/namespaces/%00/configmaps", "//api//v1//pods",
    CM + "?limit=99999999999999999999", CM + "?resourceVersion=18446744073709551615",
    CM + "?continue=" + "A" * 10_000, CM + "?watch=true&resourceVersion=99999999&timeoutSeconds=1",
    CM + "?timeoutSeconds=-1&limit=-5",
])
def test_paths_beyond_reason(ask, path):
    assert ask("GET", path)[0] in (200, 400, 404, 504)


def test_patches_that_explode(ask):
    ask("POST", CM, b'{"metadata":{"name":"bomb"},"data":{"k":"v"}}')
    copies = [{"op": "add", "path": "/data/a", "value": "x" * 1000}]
    copies += [{"op": "copy", "from": "/data", "path": f"/data/b{i}"} for i in range(40)]
    code, answer = ask("PATCH", f"{CM}/bomb", json.dumps(copies), "application/json-patch+json")
    assert code in (400, 413, 422), answer
    assert ask("GET", f"{CM}/bomb")[0] == 200


def test_bytes_that_are_no_http(ours):
    for noise in (b"\x16\x03\x01\x02\x00", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x00" * 1000,
                  b"GET / HTTP/1.1\r\n" + b"A: " + b"x" * 200_000 + b"\r\n\r\n",
                  b"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n"):
        with connect(ours) as one:
            try:
                one.sendall(noise)
                one.shutdown(socket.SHUT_WR)
                while one.recv(65536):
                    pass
            except OSError:
                pass
    assert Server(ours.url).ask("GET", "/readyz").code == 200


def test_idle_connections(ours, ask):
    """10,000 at once, or as many as the system lets us have: they cost little and hinder nobody."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    count = min(10_000, hard - 500)
    before = rss_mb(ours.process)
    idle = []
    try:
        idle += (connect(ours) for _ in range(count))
        began = time.monotonic()
        assert ask("GET", "/readyz") == (200, "ok")
        assert time.monotonic() - began < 5
        grown = rss_mb(ours.process) - before
        assert grown < 60 + count * 0.05, f"{grown:.0f} MB for {count} connections"
    finally:
        for one in idle:
            one.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert ask("GET", "/readyz") == (200, "ok")


def test_a_watcher_that_does_not_read(ours, ask):
    """It is cut off, or waits; it does not grow in the server's memory."""
    ask("POST", CM, b'{"metadata":{"name":"slow"}}')
    slow = [connect(ours) for _ in range(20)]
    for one in slow:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.sendall(f"GET {CM}?watch=true HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    before = rss_mb(ours.process)
    server = Server(ours.url)

    def write(thread):
        for i in range(60):
            server.ask("PATCH", f"{CM}/slow", {"Content-Type": "application/merge-patch+json"},
                       json.dumps({"data": {f"k{thread}": str(i) + "x" * 50_000}}))
    threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # 240 changes of 200 KB to 20 watchers would be a gigabyte; the history alone is 16 MB.
    assert rss_mb(ours.process) - before < 250
    for one in slow:
        one.close()
    assert ask("GET", f"{CM}/slow")[0] == 200
