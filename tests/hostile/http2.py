"""A connection of an attacker over HTTP/2 that takes what comes, and what its rows expect of a server. All waits end."""

import collections
import contextlib
import re
import select
import ssl
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from frames import (
    ACK,
    DATA,
    ENABLE_PUSH,
    END_STREAM,
    GOAWAY,
    HEADER_TABLE_SIZE,
    HEADERS,
    INITIAL_WINDOW_SIZE,
    LARGEST,
    PING,
    PREFACE,
    RST_STREAM,
    SETTINGS,
    STREAMS,
    WIDEST,
    WINDOW_UPDATE,
    Fields,
    body,
    frame,
    head,
    settings,
    status,
    window,
)
from measure import Stopwatch
from registry import server

PEM = Path(__file__).resolve().parent.parent / "tls"
TLS = {"EVERYTHING_CERT": str(PEM / "cert.pem"), "EVERYTHING_KEY": str(PEM / "key.pem")}
PIECE = 1 << 14
"""As much is offered to a socket at once."""


def over_tls(name: str, source: str, *args: Any, **more: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """An input for a server with a certificate."""
    return server(f"http2-{name}", source, *args, on="http", env=TLS, **more)


class Stream:
    """Outcome of an answer."""

    def __init__(self) -> None:
        self.status = 0
        self.body = b""
        self.ended = False
        self.reset: int | None = None
        self.room = 0
        """Bytes that the server has asked for beyond what it asks for at first, without those that it has."""

    @property
    def done(self) -> bool:
        return self.ended or self.reset is not None

    @property
    def answered(self) -> bool:
        """A call's result."""
        return self.status == 200 and b'"result"' in self.body

    @property
    def refused(self) -> bool:
        return self.reset is not None or self.status >= 400

    def __str__(self) -> str:
        if self.reset is not None:
            return f"reset with {self.reset}"
        return f"{self.status}{'' if self.ended else ' without an end'}" if self.status else "nothing"


class Http2:
    """A connection of the attacker. Nothing of it raises, and all that comes is read unless a row is `deaf`."""

    def __init__(
        self, attack: Any, values: dict[int, int] | None = None, wide: bool = True, start: bool = True
    ) -> None:
        """`values` are settings besides those of a client that takes everything; `wide` opens the connection's window."""
        self.attack = attack
        self.sock = attack.connect(alpn="h2")
        self.streams: dict[int, Stream] = {}
        self.goaway: int | None = None
        self.acks = self.pongs = 0
        """Acknowledgements of our settings and our pings."""
        self.room, self.first = 65535, 65535
        """Bytes of a body that the server takes of all streams, and of each at first."""
        self.heard = False
        """The server's settings have come."""
        self.polite = start
        """Acknowledges settings and pings, but not in the middle of a client's first frames."""
        self.queue: collections.deque[memoryview] = collections.deque()
        """Bytes that are still to be sent."""
        self.number = -1
        """The number of the last stream."""
        if self.sock.socket is not None:
            chosen = getattr(self.sock.socket, "selected_alpn_protocol", lambda: "no TLS")()
            if chosen != "h2":
                attack.note = attack.note or f"the server does not speak HTTP/2: {chosen}"
                self.sock.close()
        if start:
            self.send(self.opening(values, wide))
            # Acknowledged later, its settings would be so in the middle of a head.
            end = Stopwatch(1.0)
            while not self.heard and not self.over and not end.over:
                self.take(end.left)

    @staticmethod
    def opening(values: dict[int, int] | None = None, wide: bool = True) -> bytes:
        """First frames of a client. Without a table the answers can be read by `status`."""
        usual = {HEADER_TABLE_SIZE: 0, ENABLE_PUSH: 0, INITIAL_WINDOW_SIZE: WIDEST}
        return PREFACE + settings(usual | (values or {})) + (window(0, WIDEST - 65535) if wide else b"")

    @property
    def over(self) -> bool:
        """The server has hung up, or will."""
        return self.goaway is not None or self.sock.ended or self.sock.socket is None

    def next(self) -> int:
        self.number += 2
        return self.number

    def send(self, data: bytes, limit: float = 8.0, deaf: bool = False) -> bool:
        """Sends all of it; false when the server does not take it in time, or has hung up."""
        self.queue.extend(memoryview(data)[n : n + PIECE] for n in range(0, len(data), PIECE))
        return self.flush(limit, deaf)

    def flush(self, limit: float, deaf: bool = False) -> bool:
        """Queue of all that is sent: TLS wants bytes that it did not take offered again as they were."""
        end = Stopwatch(self.attack.left(limit))
        while self.queue and self.sock.socket is not None and not self.sock.ended:
            try:
                self.sock.socket.settimeout(0)
                count = self.sock.socket.send(self.queue[0])
                self.attack.sent += count
                self.queue[0] = self.queue[0][count:]
                if not self.queue[0]:
                    self.queue.popleft()
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                if end.over:
                    break
                with contextlib.suppress(OSError, ValueError):
                    hear = [] if deaf else [self.sock.socket]
                    select.select(hear, [self.sock.socket], [], min(0.5, end.left))
            except (OSError, ValueError):
                # It may have said why.
                while self.read(0.2):
                    pass
                self.sock.ended = True
            while not deaf and self.read(0):
                pass
        return not self.queue

    def take(self, limit: float) -> bool:
        """Reads what has come, and waits so long for it; false when nothing has."""
        came = self.read(limit)
        self.flush(0)
        return came

    def read(self, limit: float) -> bool:
        there = self.sock.socket
        if there is None or self.sock.ended:
            return False
        try:
            pending = isinstance(there, ssl.SSLSocket) and there.pending() > 0
            if not pending and not select.select([there], [], [], self.attack.left(limit))[0]:
                return False
        except (OSError, ValueError):
            return False
        came = self.sock.fill(0.05)
        self.hear()
        return came

    def hear(self) -> None:
        data, at = self.sock.buffer, 0
        while len(data) - at >= 9:
            size, kind, flags = int.from_bytes(data[at : at + 3], "big"), data[at + 3], data[at + 4]
            number = struct.unpack_from(">I", data, at + 5)[0] & WIDEST
            if len(data) - at < 9 + size:
                break
            payload = data[at + 9 : at + 9 + size]
            at += 9 + size
            if kind == SETTINGS:
                self.heard = True
                for name, value in struct.iter_unpack(">HI", payload):
                    self.first = value if name == INITIAL_WINDOW_SIZE else self.first
                self.acks += flags & ACK
                self.reply(flags, frame(SETTINGS, ACK))
            elif kind == PING:
                self.pongs += flags & ACK
                self.reply(flags, frame(PING, ACK, 0, payload))
            elif kind == GOAWAY:
                self.goaway = max(self.goaway or 0, int.from_bytes(payload[4:8], "big"))
            elif kind == WINDOW_UPDATE and number == 0:
                self.room += int.from_bytes(payload, "big")
            elif number in self.streams:
                stream = self.streams[number]
                if kind == HEADERS:
                    # One that only informs is followed by another.
                    stream.status = status(payload) if stream.status < 200 else stream.status
                elif kind == DATA:
                    stream.body += payload
                elif kind == WINDOW_UPDATE:
                    stream.room += int.from_bytes(payload, "big")
                elif kind == RST_STREAM:
                    stream.reset = int.from_bytes(payload, "big")
                stream.ended |= kind in (HEADERS, DATA) and bool(flags & END_STREAM)
        self.sock.buffer = data[at:]

    def reply(self, flags: int, ack: bytes) -> None:
        if self.polite and not flags & ACK:
            self.queue.append(memoryview(ack))

    def follow(self, number: int) -> Stream:
        """Keeps the frames of this stream from now on."""
        return self.streams.setdefault(number, Stream())

    def fields(
        self,
        headers: dict[str, str | None],
        length: int | None = None,
        method: bytes = b"POST",
        path: bytes = b"/mcp",
        authority: bytes | None = None,
    ) -> Fields:
        """Those of a good request."""
        there = self.attack.host.encode() if authority is None else authority
        first: Fields = [(b":method", method), (b":scheme", b"https"), (b":authority", there), (b":path", path)]
        more = {"content-type": "application/json", "accept": "application/json, text/event-stream", **headers}
        if length is not None:
            more["content-length"] = str(length)
        return first + [(name.lower().encode(), value.encode()) for name, value in more.items() if value is not None]

    def call(self, tool: str = "echo", arguments: bytes = b'{"text":"x"}', number: int | None = None) -> bytes:
        """The frames of a good call."""
        number = self.next() if number is None else number
        self.follow(number)
        text = self.attack.call(tool, arguments)
        return head(number, self.fields(self.attack.modern("tools/call", tool), len(text))) + body(number, text)

    def call_large(self, text: bytes, limit: float = 8.0) -> None:
        """A good call whose body is sent as the server takes it; other bodies here are sent at once."""
        data = self.attack.call("echo", b'{"text":"%s"}' % text)
        self.send(head(self.next(), self.fields(self.attack.modern("tools/call", "echo"), len(data))))
        stream, at, end = self.follow(self.number), 0, Stopwatch(self.attack.left(limit))
        while at < len(data) and not self.over and not stream.done and not end.over:
            size = min(LARGEST, self.room, self.first + stream.room, len(data) - at)
            if size <= 0:
                self.take(min(0.2, end.left))
                continue
            self.send(frame(DATA, END_STREAM if at + size == len(data) else 0, self.number, data[at : at + size]))
            at, self.room, stream.room = at + size, self.room - size, stream.room - size

    def list_tools(self) -> bytes:
        number = self.next()
        self.follow(number)
        text = self.attack.request("tools/list")
        return head(number, self.fields(self.attack.modern("tools/list"), len(text))) + body(number, text)

    def wait(self, *numbers: int, limit: float = 5.0) -> None:
        """Until these streams are over, or the connection is."""
        end = Stopwatch(self.attack.left(limit))
        while not self.over and not end.over and not all(self.follow(number).done for number in numbers):
            self.take(min(0.2, end.left))

    def ends(self, limit: float = 3.0) -> bool:
        """True if the server ends the connection."""
        end = Stopwatch(self.attack.left(limit))
        while not self.over and not end.over:
            self.take(min(0.2, end.left))
        return self.over

    def answers(self, limit: float = 5.0) -> bool:
        """True if a good call of this connection is answered."""
        self.send(self.call(), limit)
        self.wait(self.number, limit=limit)
        return self.streams[self.number].answered

    def call_head(self, length: int = 30_000) -> bytes:
        """The head of a call whose body comes later."""
        return head(self.next(), self.fields(self.attack.modern("tools/call", "echo"), length))


def expect(attack: Any, fine: bool, otherwise: str) -> None:
    """Deviations, of which the first is told in the row's line."""
    attack.note = attack.note or ("" if fine else otherwise)


def ended(attack: Any, conn: Http2, what: str = "it", limit: float = 3.0) -> None:
    """The server has to end the connection."""
    expect(attack, conn.ends(limit), f"{what}: the connection goes on")


def answered(attack: Any, conn: Http2, what: str = "it") -> None:
    """The connection has to be good for another call."""
    expect(attack, conn.answers(), f"{what}: a call of the connection was not answered")


def sound(attack: Any, conn: Http2, what: str = "it") -> None:
    """A server may end the connection, or bear it; it may not leave it open and answer nothing."""
    if not conn.ends(0.3):
        expect(attack, conn.answers() or conn.ends(2.0), f"{what}: neither ended nor answered")


def bounded(attack: Any, most: int = STREAMS) -> None:
    """So many calls go on at most, whatever became of their streams."""
    end, running = Stopwatch(3.0), -1
    while not end.over:
        said = attack.post(attack.call("test_metrics", b"{}"), attack.modern("tools/call", "test_metrics"))
        found = re.search(rb'"running":\s*(-?\d+)', said.body) if said else None
        running = int(found[1]) if found else -1
        if 0 <= running <= most:
            return
        attack.hold(0.1)
    expect(attack, False, "test_metrics: no figures" if running < 0 else f"{running} calls go on")
