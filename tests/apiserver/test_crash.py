"""`kill -9` under load: nothing that was acknowledged is lost, and no watcher is lied to.

Writers create, change and delete objects over the whole test and remember what was acknowledged.
Watchers follow the versions they see, start again where they were cut off, and keep the state that
the events add up to. The server is killed at random moments and started on the same folder.

20 times in a test, 200 times in `make soak`.
"""

import http.client
import json
import os
import random
import socket
import threading
import time

from apiserver.server import Ours

KILLS = 200 if "GRAPNEL_SOAK" in os.environ else 20
WRITERS = 6
PATH = "/api/v1/namespaces/default/configmaps"
GONE = (OSError, http.client.HTTPException, ValueError)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Client:
    """One kept connection, made again when it breaks."""

    def __init__(self, port):
        self.port, self.connection = port, None

    def ask(self, method, path, body=None, content_type="application/json"):
        """(code, answer); raises one of GONE when no whole answer came."""
        try:
            if self.connection is None:
                self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
            self.connection.request(method, path, body and json.dumps(body), {"Content-Type": content_type})
            response = self.connection.getresponse()
            return response.status, json.loads(response.read())
        except GONE:
            self.close()
            raise

    def close(self):
        if self.connection is not None:
            self.connection.close()
        self.connection = None


class Writer(threading.Thread):
    """Writes objects of its own, one at a time. What it does not know the fate of it does not judge."""

    def __init__(self, number, port, stop):
        super().__init__(daemon=True)
        self.number, self.client, self.stop = number, Client(port), stop
        self.acknowledged = {}  # name: (version, value), or None when deleted
        self.unsure = {}  # name: what else it may be
        self.count = 0

    def run(self):
        rng = random.Random(self.number)
        serial = 0
        while not self.stop.is_set():
            known = [name for name in self.acknowledged
                     if self.acknowledged[name] and name not in self.unsure]
            choice = rng.random()
            if not known or choice < 0.5:
                serial += 1
                name, value = f"w{self.number}-{serial}", str(serial)
                self.write(name, value, "POST", PATH, {"metadata": {"name": name}, "data": {"k": value}})
            elif choice < 0.85:
                name, value = rng.choice(known), f"changed-{self.count}"
                self.write(name, value, "PATCH", f"{PATH}/{name}", {"data": {"k": value}},
                           "application/merge-patch+json")
            else:
                name = rng.choice(known)
                self.write(name, None, "DELETE", f"{PATH}/{name}")

    def write(self, name, value, *request):
        try:
            code, answer = self.client.ask(*request)
        except GONE:
            self.unsure[name] = value
            time.sleep(0.01)
            return
        assert code in (200, 201), (code, answer)
        self.count += 1
        version = int(answer["metadata"]["resourceVersion"]) if value is not None else 0
        self.acknowledged[name] = None if value is None else (version, value)


class Watcher(threading.Thread):
    """An informer in small: list, then watch from there, again and again."""

    def __init__(self, port, stop):
        super().__init__(daemon=True)
        self.port, self.stop = port, stop
        self.state, self.version, self.listed = {}, 0, False
        self.problems, self.relists, self.events = [], 0, 0

    def run(self):
        while not self.stop.is_set():
            try:
                self.follow()
            except GONE:
                time.sleep(0.01)

    def follow(self):
        client = Client(self.port)
        if not self.listed:
            code, answer = client.ask("GET", PATH)
            assert code == 200
            version = int(answer["metadata"]["resourceVersion"])
            if version < self.version:
                self.problems.append(f"a list at {version} after having seen {self.version}")
            self.version = version
            self.state = {one["metadata"]["name"]: one["data"]["k"]
                          for one in answer["items"] if "data" in one}
            self.listed, self.relists = True, self.relists + 1
        client.close()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", f"{PATH}?watch=true&resourceVersion={self.version}"
                                      "&allowWatchBookmarks=true&timeoutSeconds=4")
            response = connection.getresponse()
            if response.status != 200:
                self.listed = response.status == 504 or response.status >= 500
                if response.status == 504:  # "too large": what we saw is not there
                    self.problems.append(f"version {self.version} was seen and is unknown now")
                    self.listed = False
                return
            for line in response:
                self.event(json.loads(line))
                if not self.listed:
                    return
        finally:
            connection.close()

    def event(self, event):
        kind, item = event["type"], event["object"]
        if kind == "ERROR":
            if item.get("code") != 410:
                self.problems.append(f"an error that is no 410: {item}")
            self.listed = False
            return
        version = int(item["metadata"]["resourceVersion"])
        if version < self.version or (version == self.version and kind != "BOOKMARK"):
            self.problems.append(f"{kind} of version {version} after {self.version}")
        self.version = version
        self.events += 1
        if kind in ("ADDED", "MODIFIED"):
            name = item["metadata"]["name"]
            if (kind == "ADDED") == (name in self.state):
                self.problems.append(f"{kind} of {name}, which was{'' if kind == 'ADDED' else ' not'} there")
            self.state[name] = item.get("data", {}).get("k")
        elif kind == "DELETED":
            if self.state.pop(item["metadata"]["name"], None) is None:
                self.problems.append(f"DELETED of {item['metadata']['name']}, which was not there")


def check_writers(writers, present):
    """Every acknowledged write is there, and nothing else than what was sent."""
    for writer in writers:
        for name, known in writer.acknowledged.items():
            allowed = {known[1] if known else None}
            if name in writer.unsure:
                allowed.add(writer.unsure[name])
            assert present.get(name) in allowed, f"{name}: {present.get(name)!r} is not of {allowed}"


def test_nothing_acknowledged_is_lost(tmp_path):
    port, stop = free_port(), threading.Event()
    rng = random.Random(7)
    with Ours("--data", tmp_path, "--port", port) as server:
        writers = [Writer(number, port, stop) for number in range(WRITERS)]
        watchers = [Watcher(port, stop) for _ in range(3)]
        for thread in writers + watchers:
            thread.start()
        for _ in range(KILLS):
            time.sleep(rng.uniform(0.02, 0.4))
            server.kill()
            server.start()
        time.sleep(0.3)
        for writer in writers:
            writer.stop = threading.Event()
            writer.stop.set()
        for writer in writers:
            writer.join(timeout=30)
        items = Client(port).ask("GET", PATH)[1]["items"]
        present = {one["metadata"]["name"]: one["data"]["k"] for one in items if "data" in one}
        check_writers(writers, present)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and any(w.state != present for w in watchers):
            time.sleep(0.1)
        stop.set()
        for watcher in watchers:
            watcher.join(timeout=30)
            assert watcher.problems == []
            assert watcher.state == present
    written = sum(writer.count for writer in writers)
    print(f"{KILLS} kills, {written} acknowledged writes, "
          f"{sum(w.events for w in watchers)} events, {sum(w.relists for w in watchers)} lists")
    assert written > KILLS  # there was a load
