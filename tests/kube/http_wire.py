"""Reads HTTP/1.1 messages off a stream without changing a byte of them.

A relay must know where a message ends, and a fault must be put at an exact byte of the body; both
need the framing, which ordinary HTTP libraries hide.
"""

import dataclasses
import urllib.parse

HEAD_LIMIT = 1 << 20
PIECE = 1 << 16


@dataclasses.dataclass
class Head:
    """The first line and the headers of a message, and the bytes they came as."""

    raw: bytes
    first_line: list[str]
    headers: dict[str, str]  # names in lower case

    @property
    def closes(self):
        return "close" in self.headers.get("connection", "").lower()

    @property
    def upgrades(self):
        return "upgrade" in self.headers.get("connection", "").lower()

    def with_header(self, name, value):
        """The bytes with one more header, unless it is there."""
        if name.lower() in self.headers:
            return self.raw
        return self.raw[:-2] + f"{name}: {value}\r\n\r\n".encode()

    def without_header(self, name):
        prefix = name.lower().encode() + b":"
        lines = self.raw.split(b"\r\n")
        raw = b"\r\n".join(line for line in lines if not line.lower().startswith(prefix))
        return dataclasses.replace(self, raw=raw)


async def read_head(reader):
    """Takes nothing off the stream until the head is complete."""
    raw = await reader.readuntil(b"\r\n\r\n")
    first, *lines = raw.decode("latin-1").rstrip("\r\n").split("\r\n")
    pairs = (line.split(":", 1) for line in lines)
    return Head(raw, first.split(" ", 2), {k.strip().lower(): v.strip() for k, v in pairs})


async def read_body(reader, head, *, until_close=False):
    """Yields (bytes, whether they are content) as they come: the rest is the chunks' framing."""
    if "chunked" in head.headers.get("transfer-encoding", "").lower():
        async for piece in _read_chunks(reader):
            yield piece
    elif "content-length" in head.headers:
        async for piece in _read_exactly(reader, int(head.headers["content-length"])):
            yield piece
    elif until_close:
        while data := await reader.read(PIECE):
            yield data, True


async def _read_chunks(reader):
    while True:
        line = await reader.readuntil(b"\r\n")
        yield line, False
        size = int(line.split(b";")[0], 16)
        if size == 0:
            break
        async for piece in _read_exactly(reader, size):
            yield piece
        yield await reader.readexactly(2), False
    while line != b"\r\n":  # trailers
        line = await reader.readuntil(b"\r\n")
        yield line, False


async def _read_exactly(reader, size):
    while size:
        data = await reader.read(min(size, PIECE))
        if not data:
            raise ConnectionResetError("the stream ended inside a body")
        size -= len(data)
        yield data, True


def response_has_body(method, status):
    return method != "HEAD" and status >= 200 and status not in (204, 304)


def split_target(target):
    """('/api/v1/pods', {'watch': '1'}) of a request line's second word."""
    path, _, query = target.partition("?")
    return urllib.parse.unquote(path), dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
