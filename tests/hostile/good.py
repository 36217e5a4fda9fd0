"""A good client of a server: one keep-alive connection from 127.0.0.1 that calls a simple tool every 50 ms.

good.py HOST PORT clear|tls [TOKEN]. A byte on standard input starts a measurement, the next one ends it; then one line of JSON
says how often the tool was called, the longest wait, and how many calls failed. A call that has no answer within
`LIMIT` seconds is one that failed, and waited that long.
"""

import json
import os
import select
import socket
import sys
import time

LIMIT = 10.0
PAUSE = 0.05
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "good", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def request(host: str, port: int, token: str) -> bytes:
    params = {"name": "echo", "arguments": {"text": "x"}, "_meta": META}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    auth = f"Authorization: Bearer {token}\r\n" if token else ""
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\n"
        "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n"
        f"Mcp-Method: tools/call\r\nMcp-Name: echo\r\n{auth}Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def secured(plain: socket.socket) -> socket.socket:
    """A context of TLS that takes any certificate."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context.wrap_socket(plain)


class Good:
    def __init__(self, host: str, port: int, tls: bool, token: str) -> None:
        self.there, self.tls = (host, port), tls
        self.request = request(host, port, token)
        self.socket: socket.socket | None = None
        self.answered = False

    def call(self) -> bool:
        again, self.answered = self.socket is not None, False
        try:
            if self.socket is None:
                self.socket = socket.create_connection(self.there, LIMIT)
                self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if self.tls:
                    self.socket = secured(self.socket)
            self.socket.sendall(self.request)
            said = b""
            while b"\r\n\r\n" not in said:
                piece = self.socket.recv(65536)
                if not piece:
                    raise ConnectionError
                said += piece
            head, _, body = said.partition(b"\r\n\r\n")
            lines = head.lower().split(b"\r\n")
            length = next((int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length:")), None)
            while length is not None and len(body) < length:
                body += self.socket.recv(65536) or b"\0" * length
            self.answered = True
            return b" 200 " in lines[0] and b'"x"' in body
        except OSError:
            self.close()
            # A connection that was idle may be closed by the server at any time: clients ask again.
            return self.call() if again else False

    def close(self) -> None:
        if self.socket is not None:
            self.socket.close()
            self.socket = None


def main() -> None:
    good = Good(sys.argv[1], int(sys.argv[2]), sys.argv[3] == "tls", sys.argv[4] if len(sys.argv) > 4 else "")
    while os.read(0, 1):
        count, wait, failed = 0, 0.0, 0
        while True:
            start = time.monotonic()
            ok = good.call()
            took = time.monotonic() - start
            count, wait, failed = count + 1, max(wait, took), failed + (not ok)
            if select.select([0], [], [], max(0.0, PAUSE - took))[0]:
                break
        os.read(0, 1)
        print(json.dumps({"count": count, "wait": wait, "failed": failed}), flush=True)
        good.close()


if __name__ == "__main__":
    main()
