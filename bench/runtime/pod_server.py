#!/usr/bin/env python3
"""An API server with nothing but pods, for measuring clients.

    pod_server.py --pods 100000

Prints its URL. It answers lists (paged, or whole) and watches (also with initial events) of
/api/v1/pods, and keeps nothing but a template.
POST /events?rate=R&count=N sends N changes of different pods to all watches, R a second, and
answers with the moment (CLOCK_MONOTONIC, ns) at which each version was handed to the network.
"""

import argparse
import asyncio
import json
import pathlib
import time
import urllib.parse

HERE = pathlib.Path(__file__).resolve().parent
PAGE = 500


class Pods:
    def __init__(self, count):
        self.count = count
        text = json.dumps(json.loads((HERE / "pod.json").read_text()), separators=(",", ":"))
        self.template = text
        self.version = count + 1

    def pod(self, index, version, phase="Running"):
        uid = f"5d1c9b0e-0000-4000-8000-{index:012d}"
        return (self.template.replace("@NAME@", f"train-workers-{index}").replace("@UID@", uid)
                .replace("@VERSION@", str(version)).replace("@PHASE@", phase))

    def page(self, begin, end):
        return ",".join(self.pod(i, i + 1) for i in range(begin, end))


class Server:
    def __init__(self, pods):
        self.pods = pods
        self.watches = set()

    async def serve(self, reader, writer):
        writer.get_extra_info("socket").setsockopt(6, 1, 1)  # TCP_NODELAY
        try:
            while await self.one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.watches.discard(writer)
            writer.close()

    async def one(self, reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        method, target, _ = head.split(b"\r\n", 1)[0].decode().split(" ", 2)
        url = urllib.parse.urlsplit(target)
        query = dict(urllib.parse.parse_qsl(url.query))
        if url.path == "/events" and method == "POST":
            await self.answer(writer, await self.events(float(query["rate"]), int(query["count"])))
        elif url.path not in ("/api/v1/pods", "/api/v1/namespaces/default/pods"):
            await self.answer(writer, {"kind": "Status", "apiVersion": "v1", "status": "Failure",
                                       "reason": "NotFound", "code": 404}, "404 Not Found")
        elif query.get("watch") in ("true", "1"):
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                         b"Transfer-Encoding: chunked\r\n\r\n")
            if query.get("sendInitialEvents") == "true":
                await self.initial_events(writer)
            self.watches.add(writer)
            await reader.read()  # until the client goes
            return False
        else:
            await self.list(writer, query)
        return True

    async def list(self, writer, query):
        begin = int(query.get("continue") or 0)
        limit = int(query.get("limit") or 0) or self.pods.count
        end = min(self.pods.count, begin + limit)
        rest = f',"continue":"{end}"' if end < self.pods.count else ""
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                     b"Transfer-Encoding: chunked\r\n\r\n")
        await chunk(writer, '{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"'
                            f'{self.pods.version}"{rest}}},"items":[')
        for first in range(begin, end, PAGE):
            comma = "," if first > begin else ""
            await chunk(writer, comma + self.pods.page(first, min(end, first + PAGE)))
        await chunk(writer, "]}\n")
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    async def initial_events(self, writer):
        for index in range(self.pods.count):
            await chunk(writer, event("ADDED", self.pods.pod(index, index + 1)))
        await chunk(writer, event("BOOKMARK", json.dumps({"metadata": {
            "resourceVersion": str(self.pods.version),
            "annotations": {"k8s.io/initial-events-end": "true"}}})))

    async def events(self, rate, count):
        sent = {}
        start = time.monotonic()
        for n in range(count):
            await asyncio.sleep(max(0.0, start + n / rate - time.monotonic()))
            self.pods.version += 1
            index = n % self.pods.count
            phase = "Pending" if (n // self.pods.count) % 2 == 0 else "Running"
            line = event("MODIFIED", self.pods.pod(index, self.pods.version, phase)).encode()
            frame = f"{len(line):x}\r\n".encode() + line + b"\r\n"
            sent[self.pods.version] = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            for watch in list(self.watches):
                watch.write(frame)
        return sent

    async def answer(self, writer, value, status="200 OK"):
        body = json.dumps(value).encode()
        writer.write(f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n"
                     f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()


def event(kind, pod):
    return f'{{"type":"{kind}","object":{{"kind":"Pod","apiVersion":"v1",{pod[1:]}}}\n'


async def chunk(writer, text):
    data = text.encode()
    writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
    await writer.drain()


async def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pods", type=int, default=10000)
    options = parser.parse_args()
    server = await asyncio.start_server(Server(Pods(options.pods)).serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    print(f"http://{host}:{port}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        pass
