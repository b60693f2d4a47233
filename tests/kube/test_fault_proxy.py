"""Each fault of the proxy, as a raw client sees it."""

import contextlib
import http.client
import json
import socket
import time

import pytest

from kube.fault_proxy import FaultProxy, error_event


@pytest.fixture
def proxy(fault_proxy):
    return fault_proxy


@pytest.fixture
def secrets(namespace):
    """The path of the secrets in the test's own namespace; nobody else makes any there."""
    return f"/api/v1/namespaces/{namespace}/secrets"


@contextlib.contextmanager
def client(proxy, timeout=5):
    connection = http.client.HTTPConnection(proxy.url.removeprefix("http://"), timeout=timeout)
    yield connection
    connection.close()


def send(connection, method, path, body=None):
    connection.request(method, path, body and json.dumps(body),
                       {"Content-Type": "application/json"})
    response = connection.getresponse()
    return response, response.read()


def secret(name, size=1):
    return {"metadata": {"name": name}, "stringData": {"value": "x" * size}}


class Watch:
    """A watch on a bare socket: nothing between the test and the bytes."""

    def __init__(self, proxy, path):
        host, port = proxy.url.removeprefix("http://").split(":")
        self._socket = socket.create_connection((host, int(port)), 5)
        self._socket.sendall(f"GET {path}?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        self.received = b""
        self.read_until(b"\r\n\r\n")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()

    def read_until(self, text):
        while text not in self.received:
            data = self._socket.recv(1 << 16)
            assert data, "the watch has ended"
            self.received += data

    def read_to_end(self):
        while data := self._socket.recv(1 << 16):
            self.received += data
        return self.received

    def assert_silent(self, seconds=0.5):
        self._socket.settimeout(seconds)
        with pytest.raises(TimeoutError):
            self._socket.recv(1)
        self._socket.settimeout(5)


def names(control_plane, path):
    _, found = control_plane.request("GET", path)
    return [item["metadata"]["name"] for item in found["items"]]


def test_passes_requests_on_over_one_connection(proxy, secrets):
    with client(proxy) as connection:
        assert send(connection, "POST", secrets, secret("a", size=300_000))[0].status == 201
        first_socket = connection.sock
        response, body = send(connection, "GET", f"{secrets}/a")
        assert len(json.loads(body)["data"]["value"]) == 400_000  # base64
        assert send(connection, "DELETE", f"{secrets}/a")[0].status == 200
        assert send(connection, "GET", f"{secrets}/a?pretty=1")[0].status == 404
        assert connection.sock is first_socket and len(proxy.connections) == 1
    assert [(r.method, r.status) for r in proxy.requests()] == [
        ("POST", 201), ("GET", 200), ("DELETE", 200), ("GET", 404)]
    assert proxy.requests(status=404)[0].query == {"pretty": "1"}
    assert [r.method for r in proxy.requests(path="*/secrets")] == ["POST"]


def test_streams_a_watch_event_by_event(proxy, control_plane, secrets):
    with Watch(proxy, secrets) as events:
        for name in ("a", "b"):
            control_plane.request("POST", secrets, secret(name))
            events.read_until(f'"name":"{name}"'.encode())
        assert [r.status for r in proxy.requests(watch=True)] == [200]
    deadline = time.monotonic() + 5
    while proxy.connections:  # the client has left; so must the connection to the server
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_works_with_kubectl_and_passes_upgraded_connections_on(proxy, control_plane, namespace):
    kubeconfig = control_plane.kubeconfig_for("admin", ["system:masters"], server=proxy.url)

    def kubectl(*arguments):
        return control_plane.kubectl("--kubeconfig", kubeconfig, "-n", namespace, *arguments)

    kubectl("run", "pod", "--image=none")
    kubectl("wait", "--for=condition=ready", "pod/pod")
    assert kubectl("exec", "pod", "--", "echo", "hello") == "hello\n"
    assert proxy.requests(path="*/pods/pod/exec", status=101)


def test_answers_in_place_of_the_server(proxy, secrets):
    proxy.answer(429, retry_after=7, method="GET", times=2)
    proxy.answer(410, watch=True)
    proxy.answer(200, error_event(410), path="*/events", watch=True)
    with client(proxy) as connection:
        for _ in range(2):
            response, body = send(connection, "GET", secrets)
            assert (response.status, response.headers["Retry-After"]) == (429, "7")
            assert json.loads(body)["reason"] == "TooManyRequests"
        assert send(connection, "GET", secrets)[0].status == 200
        assert send(connection, "GET", secrets + "?watch=true")[0].status == 410
        _, body = send(connection, "GET", "/api/v1/events?watch=true")
        assert json.loads(body)["object"]["code"] == 410
    assert [(r.status, r.fault) for r in proxy.requests(path=secrets)] == [
        (429, "answer"), (429, "answer"), (200, None), (410, "answer")]


def test_truncates_a_body_at_the_byte(proxy, control_plane, secrets):
    control_plane.request("POST", secrets, secret("a", size=1000))
    proxy.truncate(10, path=f"{secrets}/a")
    with client(proxy) as connection, pytest.raises(http.client.IncompleteRead) as read:
        send(connection, "GET", f"{secrets}/a")
    assert len(read.value.partial) == 10


def test_truncates_a_watch_inside_a_chunk(proxy, control_plane, secrets):
    control_plane.request("POST", secrets, secret("a", size=1000))
    proxy.truncate(100, watch=True)
    with Watch(proxy, secrets) as events:
        head, _, body = events.read_to_end().partition(b"\r\n\r\n")
    size, _, content = body.partition(b"\r\n")
    assert b"chunked" in head
    assert len(content) == 100 < int(size, 16)


def test_drops_the_response_of_a_write_that_took_effect(proxy, control_plane, secrets):
    proxy.drop_response(method="POST")
    with client(proxy) as connection, pytest.raises(http.client.RemoteDisconnected):
        send(connection, "POST", secrets, secret("a"))
    assert names(control_plane, secrets) == ["a"]
    assert proxy.requests(method="POST")[0].status == 201


def test_delays(proxy, secrets):
    proxy.delay(0.4, path=secrets)
    proxy.answer(503, path=secrets)
    began = time.monotonic()
    with client(proxy) as connection:
        assert send(connection, "GET", secrets)[0].status == 503
        assert time.monotonic() - began >= 0.4


def test_freezes_what_is_open_and_what_is_new(proxy, control_plane, secrets):
    with Watch(proxy, secrets) as events, client(proxy, timeout=0.5) as late:
        proxy.freeze()
        control_plane.request("POST", secrets, secret("a"))
        events.assert_silent()
        with pytest.raises(TimeoutError):
            send(late, "POST", secrets, secret("b"))
        assert names(control_plane, secrets) == ["a"]
        proxy.thaw()
        events.read_until(b'"name":"a"')


def test_freezes_only_what_is_open(proxy, secrets):
    with Watch(proxy, secrets) as events, client(proxy) as fresh:
        proxy.freeze(new=False)
        assert send(fresh, "POST", secrets, secret("a"))[0].status == 201
        events.assert_silent()


def test_a_frozen_connection_hides_that_the_server_has_gone(proxy, control_plane, secrets):
    with Watch(proxy, secrets) as events:
        proxy.freeze()
        control_plane.kill_apiserver()
        try:
            assert not control_plane.ready()
            events.assert_silent()
        finally:
            control_plane.start_apiserver()
        proxy.thaw()
        events.read_to_end()  # now the end is passed on


@pytest.mark.parametrize("reset", [False, True])
def test_cuts_every_connection(proxy, secrets, reset):
    with Watch(proxy, secrets) as events:
        proxy.cut(reset)
        if reset:
            with pytest.raises(ConnectionResetError):
                events.read_to_end()
        else:
            assert not events.read_to_end().endswith(b"0\r\n\r\n")
    with client(proxy) as connection:
        assert send(connection, "GET", secrets)[0].status == 200


def test_clear_takes_faults_back(proxy, secrets):
    proxy.answer(500, times=None)
    proxy.freeze()
    proxy.clear()
    with client(proxy) as connection:
        assert send(connection, "GET", secrets)[0].status == 200


def test_stop_closes_the_port(control_plane):
    with FaultProxy(control_plane.url, control_plane.ca_file) as proxy, client(proxy) as connection:
        assert send(connection, "GET", "/readyz")[0].status == 200  # open to the anonymous
    host, port = proxy.url.removeprefix("http://").split(":")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)), 1)
