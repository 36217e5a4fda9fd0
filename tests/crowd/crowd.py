"""Many clients of a server that call it now and then: one process of them, with one event loop of its own.

crowd.py JSON, with the members of `Plan`. It opens its sockets, says `{"open": N}`, and calls from then on. A line on
standard input is the name of a phase, which begins with it; the name `end` ends it, and all figures are printed as one
line of JSON.
"""

import contextlib
import errno
import json
import os
import resource
import select
import socket
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "soak"))

from link import outgoing
from mix import MODERN, meta

LIMIT = 10.0
"""Seconds after which a call has no answer."""
OPENING = 8.0
"""Seconds that a server may have for its first answer to each socket."""


@dataclass
class Plan:
    host: str
    port: int
    first: int
    """The number of the first client of this process."""
    clients: int
    sockets: int
    """Sockets of each client."""
    pause: float
    """Seconds between two calls of a client."""
    opens: float
    """Sockets that are opened in a second."""


@dataclass
class Phase:
    """A part of the time, with what was seen in it."""

    name: str
    begin: float
    used: float
    """Seconds of CPU of this process before it, and from its end on those in it."""
    seconds: float = 0.0
    waits: list[float] = field(default_factory=list)
    """Seconds from a request to its answer."""
    lags: list[float] = field(default_factory=list)
    """Seconds that a request went out late."""
    errors: dict[str, int] = field(default_factory=dict)

    def fail(self, why: str) -> None:
        self.errors[why] = self.errors.get(why, 0) + 1

    def end(self) -> None:
        self.seconds = time.monotonic() - self.begin
        self.used = used() - self.used


class Line:
    """One socket of a client."""

    __slots__ = ("asked", "buffer", "number", "since", "socket", "source")

    def __init__(self, number: int, source: str) -> None:
        self.number, self.source = number, source
        self.socket: socket.socket | None = None
        self.asked = 0
        self.since = 0.0
        """The time when the call went out whose answer has not come; 0 when it waits for none."""
        self.buffer = b""


def used() -> float:
    spent = resource.getrusage(resource.RUSAGE_SELF)
    return spent.ru_utime + spent.ru_stime


class Crowd:
    """All clients of this process. Their calls go out one after the other at a steady pace, client by client."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.there = (plan.host, plan.port)
        self.poll = select.epoll()
        self.lines = [
            Line(client * plan.sockets + n, source_of(plan.first + client))
            for n in range(plan.sockets)
            for client in range(plan.clients)
        ]
        self.by_handle: dict[int, Line] = {}
        self.phase = Phase("opening", time.monotonic(), used())
        self.phases = [self.phase]
        self.waiting: dict[int, Line] = {}
        """By their numbers, the longest first."""
        self.step = plan.pause / plan.clients
        params = {"_meta": meta(), "name": "echo", "arguments": {"text": "@@@@@@@@@@@@@@@@"}}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
        head = (
            f"POST /mcp HTTP/1.1\r\nHost: {plan.host}:{plan.port}\r\nContent-Type: application/json\r\n"
            f"Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: {MODERN}\r\n"
            f"Mcp-Method: tools/call\r\nMcp-Name: echo\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self.before, _, self.after = (head.encode() + body).partition(b"@" * 16)

    # -- one socket

    def text(self, line: Line) -> bytes:
        """The text of a line's call, which no other call has: sixteen characters."""
        return b"%04x%06x%06x" % (self.plan.first & 0xFFFF, line.number & 0xFFFFFF, line.asked & 0xFFFFFF)

    def connect(self, line: Line) -> None:
        line.socket = outgoing(line.source)
        line.buffer = b""
        error = line.socket.connect_ex(self.there)
        if error not in (0, errno.EINPROGRESS):
            self.lose(line, errno.errorcode.get(error, str(error)))
            return
        self.by_handle[line.socket.fileno()] = line
        self.poll.register(line.socket, select.EPOLLOUT)

    def call(self, line: Line, now: float) -> None:
        if line.since:
            self.phase.fail("the call before is not answered")
            return
        line.since = now
        self.waiting[line.number] = line
        if line.socket is None:
            # It is connected first, which counts.
            self.connect(line)
            return
        self.send(line)

    def send(self, line: Line) -> None:
        assert line.socket is not None
        line.asked += 1
        try:
            line.socket.send(self.before + self.text(line) + self.after)
        except OSError as error:
            self.lose(line, errno.errorcode.get(error.errno or 0, str(error)))

    def lose(self, line: Line, why: str) -> None:
        """The socket has ended. It is opened anew for its next call."""
        if line.socket is not None:
            self.by_handle.pop(line.socket.fileno(), None)
            with contextlib.suppress(OSError, ValueError):
                self.poll.unregister(line.socket)
            line.socket.close()
            line.socket = None
        if line.since:
            line.since = 0.0
            self.waiting.pop(line.number, None)
            self.phase.fail(f"no answer: {why}")
        else:
            self.phase.fail(f"closed while idle: {why}")

    def hear(self, line: Line, what: int) -> None:
        assert line.socket is not None
        if what & select.EPOLLOUT:
            error = line.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if error:
                self.lose(line, errno.errorcode.get(error, str(error)))
                return
            self.poll.modify(line.socket, select.EPOLLIN)
            self.send(line)
            return
        try:
            data = line.socket.recv(65536)
        except BlockingIOError:
            return
        except OSError as error:
            self.lose(line, errno.errorcode.get(error.errno or 0, str(error)))
            return
        if not data:
            self.lose(line, "end")
            return
        line.buffer += data
        head, mark, body = line.buffer.partition(b"\r\n\r\n")
        if not mark:
            return
        at = head.lower().find(b"content-length:")
        length = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
        if len(body) < length:
            return
        if not line.since:
            self.lose(line, "an answer that nobody waits for")
            return
        self.waiting.pop(line.number, None)
        took, line.since, line.buffer = time.monotonic() - line.since, 0.0, b""
        if len(body) > length:
            self.phase.fail("more than an answer")
        elif not head.startswith(b"HTTP/1.1 200"):
            self.phase.fail(head[9:12].decode("latin-1"))
        elif b'"' + self.text(line) + b'"' not in body:
            self.phase.fail("the answer of another call")
        else:
            self.phase.waits.append(took)

    # -- all of them

    def turn(self, until: float) -> bool:
        """Takes what has come, until this time. True if something was said on standard input."""
        said = False
        while True:
            left = until - time.monotonic()
            events = self.poll.poll(max(0.0, left), 256)
            for handle, what in events:
                if handle == 0:
                    said = True
                elif (line := self.by_handle.get(handle)) is not None:
                    self.hear(line, what)
            if said or not events or left <= 0:
                return said

    def give_up(self, now: float) -> None:
        while self.waiting:
            line = next(iter(self.waiting.values()))
            if now - line.since < LIMIT:
                return
            self.lose(line, f"over {LIMIT:.0f} s")

    def open(self) -> int:
        """Opens all sockets, each with a first call: a server does not wait long for one."""
        begin = time.monotonic()
        for n, line in enumerate(self.lines):
            now = time.monotonic()
            if (due := begin + n / self.plan.opens) > now:
                self.turn(due)
                now = time.monotonic()
            self.call(line, now)
            self.give_up(now)
        end = time.monotonic() + OPENING
        while self.waiting and time.monotonic() < end:
            self.turn(min(end, time.monotonic() + 0.2))
            self.give_up(time.monotonic())
        return sum(line.socket is not None for line in self.lines)

    def run(self) -> None:
        print(json.dumps({"open": self.open(), "errors": self.phase.errors}), flush=True)
        self.poll.register(0, select.EPOLLIN)
        n, due = 0, time.monotonic()
        while True:
            due += self.step
            if self.turn(due):
                name = os.read(0, 4096).decode().strip()
                self.phase.end()
                if not name or name == "end":
                    break
                due = time.monotonic()
                self.phase = Phase(name, due, used())
                self.phases.append(self.phase)
                continue
            now = time.monotonic()
            self.phase.lags.append(now - due)
            self.call(self.lines[n % len(self.lines)], now)
            self.give_up(now)
            n += 1
        print(json.dumps({"phases": [asdict(phase) for phase in self.phases]}), flush=True)


def source_of(client: int) -> str:
    """An address for each client."""
    return f"127.{100 + client // 62_500}.{client // 250 % 250}.{client % 250 + 1}"


def main() -> None:
    plan = Plan(**json.loads(sys.argv[1]))
    Crowd(plan).run()


if __name__ == "__main__":
    main()
