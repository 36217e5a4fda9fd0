"""A hostile client of a server, one process: floods it with requests, and opens as many sockets as it can.

flood.py HOST PORT SOURCE SOCKETS KINDS. It goes on until something comes on its standard input, and says what it did in
a line of JSON.
"""

import contextlib
import errno
import json
import select
import socket
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "soak"))

from link import LINGER_NOT, outgoing
from mix import MODERN, meta

WANTED = {"turns": 32, "piped": 32, "stalled": 64, "half": sys.maxsize}
"""Sockets with a request after each answer; with requests that wait for no answer, as fast as they are taken; with
requests whose long answers are not read; with half a head, and of these as many as there can be."""
BATCH = 64
"""Requests in one write."""
AT_ONCE = 100
"""Sockets that are opened before what has come is looked at."""
IN_THE_MAKING = 1000
"""Sockets that are being connected, at most."""


def request(host: str, method: str, params: dict[str, object]) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": meta(), **params}}).encode()
    name = f"Mcp-Name: {params['name']}\r\n" if "name" in params else ""
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        f"Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: {MODERN}\r\n"
        f"Mcp-Method: {method}\r\n{name}Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class Socket:
    """One of the hostile client's sockets."""

    def __init__(self, sock: socket.socket, kind: str, data: bytes) -> None:
        self.socket, self.kind, self.data = sock, kind, data
        self.connected = False
        self.rest = memoryview(data)


class Flood:
    """All of them."""

    def __init__(self, host: str, port: int, source: str, most: int, kinds: str) -> None:
        self.wanted = {kind: count for kind, count in WANTED.items() if kinds in ("all", kind)}
        self.there, self.source, self.most = (host, port), source, most
        self.poll = select.epoll()
        self.poll.register(0, select.EPOLLIN | select.EPOLLHUP)
        self.open: dict[int, Socket] = {}
        self.kinds = dict.fromkeys(WANTED, 0)
        self.making = 0
        self.counts = {"opened": 0, "refused": 0, "closed": 0, "sent": 0, "answers": 0, "answers_200": 0, "most": 0}
        name = f"{host}:{port}"
        call = request(name, "tools/call", {"name": "echo", "arguments": {"text": "flood"}})
        self.data = {
            "turns": call,
            "piped": call * BATCH,
            "stalled": request(name, "tools/list", {}) * BATCH,
            "half": call[: call.index(b"Accept")],
        }

    def connect(self) -> bool:
        """One more socket; false if this process can have no more."""
        kind = next((kind for kind, count in self.wanted.items() if self.kinds[kind] < count), None)
        if kind is None:
            return False
        try:
            sock = outgoing(self.source, 4096 if kind == "stalled" else None)
        except OSError:
            return False
        error = sock.connect_ex(self.there)
        if error not in (0, errno.EINPROGRESS):
            self.counts["refused"] += 1
            sock.close()
            return False
        self.open[sock.fileno()] = Socket(sock, kind, self.data[kind])
        self.kinds[kind] += 1
        self.making += 1
        self.poll.register(sock, select.EPOLLOUT)
        self.counts["most"] = max(self.counts["most"], len(self.open))
        return True

    def close(self, one: Socket) -> None:
        self.open.pop(one.socket.fileno(), None)
        self.kinds[one.kind] -= 1
        if one.connected:
            self.counts["closed"] += 1
        else:
            self.making -= 1
            self.counts["refused"] += 1
        with contextlib.suppress(OSError):
            self.poll.unregister(one.socket)
            one.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NOT)
        one.socket.close()

    def act(self, one: Socket, what: int) -> None:
        try:
            if what & select.EPOLLIN:
                said = one.socket.recv(1 << 18)
                if not said:
                    self.close(one)
                    return
                answers = said.count(b"HTTP/1.1 ")
                self.counts["answers"] += answers
                self.counts["answers_200"] += said.count(b"HTTP/1.1 200")
                if one.kind == "turns" and answers:
                    one.rest = memoryview(one.data)
                    self.poll.modify(one.socket, select.EPOLLIN | select.EPOLLOUT)
            if what & (select.EPOLLERR | select.EPOLLHUP):
                self.close(one)
                return
            if what & select.EPOLLOUT:
                if not one.connected:
                    one.connected = True
                    self.making -= 1
                    self.counts["opened"] += 1
                while one.rest:
                    sent = one.socket.send(one.rest)
                    self.counts["sent"] += sent
                    one.rest = one.rest[sent:]
                if one.kind == "piped":
                    one.rest = memoryview(one.data)
                    self.poll.modify(one.socket, select.EPOLLIN | select.EPOLLOUT)
                else:
                    # What a stalled one has asked for stays where it is.
                    self.poll.modify(one.socket, select.EPOLLRDHUP if one.kind == "stalled" else select.EPOLLIN)
        except BlockingIOError:
            pass
        except OSError:
            self.close(one)

    def run(self) -> None:
        begin = time.monotonic()
        while True:
            for _ in range(AT_ONCE):
                if len(self.open) >= self.most or self.making >= IN_THE_MAKING or not self.connect():
                    break
            for handle, what in self.poll.poll(0.05, 512):
                if handle == 0:
                    print(json.dumps({**self.counts, "seconds": time.monotonic() - begin}), flush=True)
                    return
                if (one := self.open.get(handle)) is not None:
                    self.act(one, what)


if __name__ == "__main__":
    Flood(sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), sys.argv[5]).run()
