"""A proxy in front of an API server that fails on command, in ways a real network and server do.

It listens on plain HTTP on loopback, forwards over TLS, and passes on every byte as it comes, so
watches stream through it. A client's connection is bound to one connection to the server: when one
end goes, so does the other.

    with FaultProxy(cluster.url, cluster.ca_file) as proxy:
        proxy.answer(429, retry_after=1, method="PATCH", times=2)
        proxy.truncate(100, watch=True)
        proxy.freeze()
        ...
        assert proxy.requests(method="PATCH", status=200)

Faults on requests take the same keywords to say which they are for: `method`, `path` (a pattern
such as "/api/v1/*/pods"), `watch`, and `when` (a function of the Request); none means any request.
They hit the next `times` matching requests, or all of them if `times` is None; the first fault set
is the first used. All methods may be called from any thread, and have taken effect on return.
"""

import asyncio
import contextlib
import dataclasses
import fnmatch
import json
import socket
import ssl
import struct
import threading
import time
import urllib.parse

from kube.http_wire import (HEAD_LIMIT, Head, read_body, read_head, response_has_body,
                            split_target)

REASONS = {400: "BadRequest", 401: "Unauthorized", 403: "Forbidden", 404: "NotFound",
           409: "Conflict", 410: "Expired", 422: "Invalid", 429: "TooManyRequests",
           500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout"}


def status_object(code, message="a fault set by the test"):
    """The Status an API server would answer this code with."""
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "code": code, "reason": REASONS.get(code, ""), "message": message}


def error_event(code):
    """The line that ends a watch which has begun well, as with 410 in most real cases."""
    return json.dumps({"type": "ERROR", "object": status_object(code)}) + "\n"


@dataclasses.dataclass
class Request:
    """A request that came through, and what became of it."""

    method: str
    path: str
    query: dict
    headers: dict
    status: int | None = None  # none as yet, or none at all
    fault: str | None = None  # the fault that hit it
    at: float = dataclasses.field(default_factory=time.monotonic)

    @property
    def watch(self):
        return self.query.get("watch", "") in ("1", "true")


@dataclasses.dataclass
class Match:
    """Which requests are meant."""

    method: str | None = None
    path: str | None = None
    watch: bool | None = None
    status: int | None = None
    when: object = None

    def __call__(self, request):
        return ((self.method is None or self.method == request.method)
                and (self.path is None or fnmatch.fnmatchcase(request.path, self.path))
                and (self.watch is None or self.watch == request.watch)
                and (self.status is None or self.status == request.status)
                and (self.when is None or self.when(request)))


@dataclasses.dataclass
class Fault:
    name: str
    match: Match
    times: int | None
    seconds: float = 0  # delay
    after: int = 0  # truncate
    response: bytes = b""  # answer


class FaultProxy:
    def __init__(self, upstream, ca_file, token=None):
        """`token` is given to requests that bring none: client-go sends none over plain HTTP."""
        parts = urllib.parse.urlsplit(upstream)
        self.upstream = (parts.hostname, parts.port)
        self.token = token
        self.tls = ssl.create_default_context(cafile=ca_file)
        self.log = []
        self.connections = set()
        self._faults = []
        self._freeze_new = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def start(self):
        self._thread.start()
        self._server = self._on_loop(asyncio.start_server(self._serve, "127.0.0.1", 0,
                                                          limit=HEAD_LIMIT))
        self.url = "http://127.0.0.1:%d" % self._server.sockets[0].getsockname()[1]
        return self

    def stop(self):
        async def close():
            self._server.close()
            for connection in list(self.connections):
                connection.cut(reset=False)
            await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()},
                                 return_exceptions=True)
            await asyncio.sleep(0)  # sockets are closed in the loop's next round
        self._on_loop(close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    # ---- faults on requests

    def answer(self, status, body=None, *, headers=None, retry_after=None, times=1, **match):
        """Answers without asking the server; the body is a Status unless given."""
        if body is None:
            body = status_object(status)
        if isinstance(body, dict):
            body = json.dumps(body)
        if isinstance(body, str):
            body = body.encode()
        fields = {"Content-Type": "application/json", "Content-Length": len(body)} | (headers or {})
        if retry_after is not None:
            fields["Retry-After"] = retry_after
        head = [f"HTTP/1.1 {status} {REASONS.get(status, 'Fault')}"]
        head += [f"{name}: {value}" for name, value in fields.items()]
        response = "\r\n".join(head).encode() + b"\r\n\r\n" + body
        self._add(Fault("answer", Match(**match), times, response=response))

    def truncate(self, after, *, times=1, **match):
        """Closes the connection after this many bytes of the response's body (chunk heads not
        counted), so also inside a chunk."""
        self._add(Fault("truncate", Match(**match), times, after=after))

    def drop_response(self, *, times=1, **match):
        """Lets the server do what was asked, then closes the connection in place of its answer."""
        self._add(Fault("drop_response", Match(**match), times))

    def delay(self, seconds, *, times=1, **match):
        """Holds the request back; other faults then hit it all the same."""
        self._add(Fault("delay", Match(**match), times, seconds=seconds))

    # ---- faults on connections

    def freeze(self, existing=True, new=True):
        """Passes on no byte any more, nor the end of a connection: all of them seem open. New
        connections are accepted, and frozen too if `new`."""
        def act():
            self._freeze_new = self._freeze_new or new
            for connection in self.connections if existing else ():
                connection.flowing.clear()
        self._do(act)

    def thaw(self):
        def act():
            self._freeze_new = False
            for connection in self.connections:
                connection.flowing.set()
        self._do(act)

    def cut(self, reset=False):
        """Ends every connection that is open now; `reset` with RST instead of FIN."""
        def act():
            for connection in list(self.connections):
                connection.cut(reset)
        self._do(act)

    def clear(self):
        """Takes back every fault that is still set."""
        self._do(self._faults.clear)
        self.thaw()

    # ---- what was seen

    def requests(self, **match):
        """The requests so far, in the order they came; `status` also selects."""
        return list(filter(Match(**match), list(self.log)))

    def wait_for(self, count=1, *, timeout=10, **match):
        """Waits until that many such requests have come, and returns them."""
        deadline = time.monotonic() + timeout
        while len(found := self.requests(**match)) < count:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(found)} of {count} requests came: {Match(**match)}")
            time.sleep(0.01)
        return found

    # ---- inside

    def take_faults(self, request):
        """The seconds of all delays meant for the request, and the first other fault, if any."""
        seconds, first = 0, None
        for fault in list(self._faults):
            if not fault.match(request) or (first and fault.name != "delay"):
                continue
            seconds += fault.seconds
            if fault.name != "delay":
                first = fault
            if fault.times is not None:
                fault.times -= 1
                if fault.times == 0:
                    self._faults.remove(fault)
        request.fault = first.name if first else "delay" if seconds else None
        return seconds, first

    async def _serve(self, reader, writer):
        connection = Connection(self, reader, writer)
        if self._freeze_new:
            connection.flowing.clear()
        self.connections.add(connection)
        try:
            with contextlib.suppress(OSError, EOFError):  # one end has gone, …
                await connection.run()
            await connection.flowing.wait()  # … which the other may not learn while frozen
        except asyncio.CancelledError:
            pass
        finally:
            self.connections.discard(connection)
            connection.close()

    def _add(self, fault):
        self._do(lambda: self._faults.append(fault))

    def _do(self, act):
        async def run():
            act()
        self._on_loop(run())

    def _on_loop(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(10)


class Connection:
    """One client's connection and, from its first forwarded request on, one to the server."""

    def __init__(self, proxy, reader, writer):
        self.flowing = asyncio.Event()
        self.flowing.set()
        self._proxy = proxy
        self._reader, self._writer = reader, writer
        self._server_reader = self._server_writer = None
        self._task = asyncio.current_task()
        # Always waiting for the next head is also how each end's closing is noticed.
        self._next_request = self._next_response = None

    async def run(self):
        self._next_request = start(read_head(self._reader))
        while True:
            await first_of(self._next_request, self._next_response)
            if not self._next_request.done():  # the server has closed an idle connection
                return
            head = await self._next_request
            if "expect" in head.headers:
                self._writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                head = head.without_header("expect")
            body = b"".join([piece async for piece, _ in read_body(self._reader, head)])
            # After an upgrade what comes is no request.
            self._next_request = None if head.upgrades else start(read_head(self._reader))
            if not await self._unless_client_goes(start(self._exchange(head, body))):
                return

    async def _unless_client_goes(self, exchange):
        try:
            await first_of(exchange, self._next_request)
            if not exchange.done() and self._next_request.exception():
                return False
            return await exchange
        finally:
            exchange.cancel()

    async def _exchange(self, head: Head, body: bytes):
        """One request and its answer; says whether the connection may be used for another."""
        method, target, _ = head.first_line
        path, query = split_target(target)
        request = Request(method, path, query, head.headers)
        seconds, fault = self._proxy.take_faults(request)
        self._proxy.log.append(request)
        await asyncio.sleep(seconds)
        if fault and fault.name == "answer":
            request.status = int(fault.response.split(b" ", 2)[1])
            await self._send(self._writer, fault.response)
            return not head.closes
        response = await self._forward(head, body)
        request.status = int(response.first_line[1])
        if fault and fault.name == "drop_response":
            return False
        await self._send(self._writer, response.raw)
        if request.status == 101:
            return await self._relay_both_ways()
        left = fault.after if fault and fault.name == "truncate" else None
        if response_has_body(method, request.status):
            async for data, is_content in read_body(self._server_reader, response,
                                                    until_close=True):
                if left is not None and is_content:
                    if len(data) >= left:
                        await self._send(self._writer, data[:left])
                        return False
                    left -= len(data)
                await self._send(self._writer, data)
        self._next_response = start(read_head(self._server_reader))
        return not (head.closes or response.closes)

    async def _forward(self, head, body):
        if not self._server_writer:
            self._server_reader, self._server_writer = await asyncio.open_connection(
                *self._proxy.upstream, ssl=self._proxy.tls, limit=HEAD_LIMIT)
            self._next_response = start(read_head(self._server_reader))
        raw = head.raw
        if self._proxy.token:
            raw = head.with_header("Authorization", f"Bearer {self._proxy.token}")
        await self._send(self._server_writer, raw + body)
        return await self._next_response

    async def _send(self, writer, data):
        """The only way a byte goes out, so the only place to freeze."""
        await self.flowing.wait()
        writer.write(data)
        await writer.drain()

    async def _relay_both_ways(self):
        async def relay(reader, writer):
            while data := await reader.read(1 << 16):
                await self._send(writer, data)
        await first_of(start(relay(self._reader, self._server_writer)),
                       start(relay(self._server_reader, self._writer)))
        return False

    def cut(self, reset):
        if reset:
            linger = struct.pack("ii", 1, 0)
            self._writer.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self._writer.transport.abort()
        self._task.cancel()

    def close(self):
        for task in (self._next_request, self._next_response):
            if task:
                task.cancel()
        self._writer.close()
        if self._server_writer:
            self._server_writer.transport.abort()  # an orderly end of TLS would outlast the test


def start(coroutine):
    """A task whose failure may go unseen: a connection that ends is no error here."""
    task = asyncio.ensure_future(coroutine)
    task.add_done_callback(lambda t: t.cancelled() or t.exception())
    return task


async def first_of(*tasks):
    await asyncio.wait([t for t in tasks if t], return_when=asyncio.FIRST_COMPLETED)
