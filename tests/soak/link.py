"""A connection to a server, as cheap as Python has it: HTTP/1.1 with keep-alive and event streams, over asyncio."""

import asyncio
import contextlib
import json
import socket
import time
from typing import Any

WAIT = 30.0
"""Seconds for the next piece of an answer."""
IP_BIND_ADDRESS_NO_PORT = 24
"""Linux: a source address alone, so that as many ports are left as to each destination."""
LINGER_NOT = b"\1\0\0\0\0\0\0\0"
Json = dict[str, Any]


class BrokenError(Exception):
    """The server hung up, is late, or says something that nobody asked for."""


def outgoing(source: str, buffer: int | None = None) -> socket.socket:
    """A socket that is not connected yet; `buffer` bytes are what the system takes of what nobody reads."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if buffer is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
    sock.bind((source, 0))
    return sock


class Reply:
    """An answer whose head has come."""

    __slots__ = ("chunked", "events", "left", "link", "rest", "session", "status")

    def __init__(self, link: "Link", head: bytes) -> None:
        if not head.startswith(b"HTTP/1.1 "):
            raise BrokenError(f"no HTTP: {head[:80]!r}")
        self.link = link
        self.status = int(head[9:12])
        self.left: int | None = None
        self.chunked = self.events = False
        self.session = ""
        self.rest = b""
        for line in head.split(b"\r\n")[1:]:
            name, _, value = line.partition(b":")
            match name.lower():
                case b"content-length":
                    self.left = int(value)
                case b"transfer-encoding":
                    self.chunked = b"chunked" in value
                case b"content-type":
                    self.events = b"event-stream" in value
                case b"mcp-session-id":
                    self.session = value.strip().decode()
        if self.left is None and not self.chunked:
            self.left = 0

    async def piece(self) -> bytes:
        """The next part of the body; nothing at its end."""
        link = self.link
        if not self.chunked:
            size = self.left or 0
            self.left = 0
            return await link.take(size) if size else b""
        if self.left == -1:
            return b""
        size = int((await link.until(b"\r\n")).partition(b";")[0], 16)
        data = await link.take(size + 2)
        if size == 0:
            self.left = -1
        return data[:-2]

    async def whole(self) -> bytes:
        body = await self.piece()
        if self.chunked:
            pieces = [body]
            while pieces[-1]:
                pieces.append(await self.piece())
            body = b"".join(pieces)
        return body

    async def messages(self) -> list[Json]:
        """All messages of the body, when it has ended."""
        body = await self.whole()
        if not body:
            return []
        if not self.events:
            return [json.loads(body)]
        found = (data_of(event) for event in body.split(b"\n\n"))
        return [json.loads(data) for data in found if data]

    async def message(self) -> Json | None:
        """The next message of an event stream; `None` at its end."""
        while True:
            event, mark, rest = self.rest.partition(b"\n\n")
            if mark:
                self.rest = rest
                if data := data_of(event):
                    return json.loads(data)
            else:
                piece = await self.piece()
                if not piece:
                    return None
                self.rest += piece


def data_of(event: bytes) -> bytes:
    return b"\n".join(line[5:].strip() for line in event.split(b"\n") if line.startswith(b"data:"))


class Link(asyncio.Protocol):
    """One connection. It has one exchange at a time."""

    all: "set[Link]" = set()  # noqa: RUF012 - of the process
    """Those that are open."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.buffer = bytearray()
        self.waiter: asyncio.Future[None] | None = None
        self.transport: Any = None
        self.ended = False
        self.deadline = 0.0
        self.used = time.monotonic()

    @classmethod
    async def open(cls, there: tuple[str, int], source: str) -> "Link":
        loop = asyncio.get_running_loop()
        sock = outgoing(source)
        try:
            await loop.sock_connect(sock, there)
        except OSError as error:
            sock.close()
            raise BrokenError(f"no connection: {error}") from error
        _, link = await loop.create_connection(lambda: cls(loop), sock=sock)
        return link

    # -- what asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.all.add(self)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        self.wake()

    def eof_received(self) -> None:
        self.ended = True
        self.wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended = True
        self.all.discard(self)
        self.wake()

    def wake(self) -> None:
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)

    # -- reading

    async def more(self) -> None:
        if self.ended:
            raise BrokenError("the server hung up")
        self.waiter = self.loop.create_future()
        try:
            await self.waiter
        finally:
            self.waiter = None

    async def until(self, mark: bytes) -> bytes:
        while (at := self.buffer.find(mark)) < 0:
            await self.more()
        found = bytes(self.buffer[:at])
        del self.buffer[: at + len(mark)]
        return found

    async def take(self, size: int) -> bytes:
        while len(self.buffer) < size:
            await self.more()
        found = bytes(self.buffer[:size])
        del self.buffer[:size]
        return found

    async def reply(self) -> Reply:
        return Reply(self, await self.until(b"\r\n\r\n"))

    # -- writing

    def send(self, data: bytes) -> None:
        if self.ended:
            raise BrokenError("the server had hung up")
        if self.buffer:
            raise BrokenError(f"more than was asked for: {bytes(self.buffer[:80])!r}")
        self.deadline = self.used = time.monotonic()
        self.deadline += WAIT
        self.transport.write(data)

    def close(self, reset: bool = False) -> None:
        if self.transport is None:
            return
        if reset:
            with contextlib.suppress(OSError):
                self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NOT)
            self.transport.abort()
        else:
            self.transport.close()


async def watch() -> None:
    """Ends the waits that are over."""
    while True:
        await asyncio.sleep(0.5)
        now = time.monotonic()
        for link in Link.all:
            if link.waiter is not None and link.deadline < now and not link.waiter.done():
                link.waiter.set_exception(BrokenError(f"no answer within {WAIT:.0f} s"))
