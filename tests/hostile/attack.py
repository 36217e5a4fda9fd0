"""The hands of a row: sockets, requests and messages for a server, a scripted server for a client. All waits end."""

import contextlib
import functools
import json
import os
import queue
import select
import socket
import ssl
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from measure import Stopwatch, alive
from programs import ALL, REVISION, Client, HttpServer, StdioServer

HERE = Path(__file__).resolve().parent
MODERN = "2026-07-28"
META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "h", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
SOURCE = "127.0.0.2"
"""The attacker's address, another than the good client's."""
WAIT = 8.0
"""Seconds for an answer."""
WHOLE = 25.0
"""Seconds for a row."""
TRACE = "HOSTILE_TRACE" in os.environ
"""Tells what the victims answer."""
Json = dict[str, Any]


def text(value: Any) -> bytes:
    return value if isinstance(value, bytes) else json.dumps(value, separators=(",", ":")).encode()


class Said:
    """An HTTP answer."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self) -> Any:
        with contextlib.suppress(ValueError):
            return json.loads(self.body)
        return None


@functools.cache
def context(alpn: str) -> ssl.SSLContext:
    """TLS of an attacker, who takes any certificate."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    made.set_alpn_protocols([alpn])
    return made


class Sock:
    """A connection of the attacker. Nothing that it does raises: a peer that hangs up is what rows are for."""

    def __init__(self, attack: "ServerAttack", there: tuple[str, int], alpn: str | None = None) -> None:
        self.attack = attack
        self.buffer = b""
        self.ended = False
        """The peer has hung up."""
        self.socket: socket.socket | None = None
        with contextlib.suppress(OSError):
            made = socket.create_connection(there, attack.left(3.0), source_address=(SOURCE, 0))
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            # Closed by itself where the handshake fails.
            self.socket = context(alpn).wrap_socket(made) if alpn else made

    @property
    def open(self) -> bool:
        return self.socket is not None

    def send(self, data: bytes, limit: float = WAIT) -> bool:
        if self.socket is None:
            return False
        end = Stopwatch(self.attack.left(limit))
        view = memoryview(data)
        self.socket.settimeout(0)
        try:
            while view:
                if not select.select([], [self.socket], [], end.left)[1]:
                    return False
                with contextlib.suppress(BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                    count = self.socket.send(view[: 1 << 18])
                    self.attack.sent += count
                    view = view[count:]
        except (OSError, ValueError):
            return False
        return True

    def fill(self, limit: float) -> bool:
        """Reads a piece into the buffer; false at the end, and when nothing came in time."""
        if self.socket is None:
            return False
        try:
            self.socket.settimeout(max(0.001, self.attack.left(limit)))
            piece = self.socket.recv(1 << 18)
        except TimeoutError:
            return False
        except (OSError, ValueError):
            self.ended = True
            return False
        self.buffer += piece
        self.ended = not piece
        return bool(piece)

    def until(self, mark: bytes, limit: float = WAIT) -> bytes | None:
        """Reads up to this mark, which is taken away; None when it does not come in time."""
        end = Stopwatch(limit)
        while mark not in self.buffer:
            if end.over or not self.fill(end.left):
                return None
        found, _, self.buffer = self.buffer.partition(mark)
        return found

    def head(self, limit: float = WAIT) -> Said | None:
        """The head of an answer alone; that of a stream goes on."""
        said = self.until(b"\r\n\r\n", limit)
        if said is None:
            return None
        first, *lines = said.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        return Said(int(first.split()[1]) if len(first.split()) > 1 else 0, headers, b"")

    def answer(self, limit: float = WAIT) -> Said | None:
        """A whole answer. Of an event stream the data up to a response."""
        end = Stopwatch(limit)
        said = self.head(limit)
        if said is None:
            return None
        if "text/event-stream" in said.headers.get("content-type", ""):
            while True:
                event = self.until(b"\n\n", end.left)
                if event is None:
                    return said
                for line in event.split(b"\n"):
                    if line.startswith(b"data: ") and (b'"result"' in line or b'"error"' in line):
                        said.body = line[6:]
                        return said
        if said.headers.get("transfer-encoding") == "chunked":
            while (size := self.until(b"\r\n", end.left)) is not None:
                count = int(size.split(b";")[0] or b"0", 16)
                while len(self.buffer) < count + 2 and self.fill(end.left):
                    pass
                said.body += self.buffer[:count]
                self.buffer = self.buffer[count + 2 :]
                if count == 0:
                    return said
            return said
        length = int(said.headers.get("content-length", "0") or "0")
        while len(self.buffer) < length and not end.over and self.fill(end.left):
            pass
        said.body, self.buffer = self.buffer[:length], self.buffer[length:]
        return said

    def gone(self, limit: float) -> bool:
        """True if the peer hangs up within this time."""
        end = Stopwatch(limit)
        while not end.over:
            if self.socket is None:
                return True
            try:
                self.socket.settimeout(max(0.001, end.left))
                if not self.socket.recv(1 << 16):
                    return True
            except TimeoutError:
                return False
            except OSError:
                return True
        return False

    def half_close(self) -> None:
        if self.socket is not None:
            with contextlib.suppress(OSError):
                self.socket.shutdown(socket.SHUT_WR)

    def close(self, reset: bool = False) -> None:
        if self.socket is not None:
            with contextlib.suppress(OSError):
                if reset:
                    self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                self.socket.close()
            self.socket = None


class ServerAttack:
    """State and actions of a row that attacks a server."""

    def __init__(self, victim: HttpServer | StdioServer, transport: str) -> None:
        self.victim, self.transport = victim, transport
        self.http = transport == "http"
        self.sent = 0
        self.end = Stopwatch(WHOLE)
        self.sockets: list[Sock] = []
        self.number = 0
        self.note = ""

    def left(self, limit: float) -> float:
        return min(limit, self.end.left)

    @property
    def server(self) -> HttpServer:
        assert isinstance(self.victim, HttpServer)
        return self.victim

    @property
    def pipe(self) -> StdioServer:
        assert isinstance(self.victim, StdioServer)
        return self.victim

    # -- HTTP

    def connect(self, alpn: str = "http/1.1", clear: bool = False) -> Sock:
        """Over TLS where the server speaks it, unless it is to be in clear text."""
        tls = self.server.tls and not clear
        sock = Sock(self, (self.server.host, self.server.port), alpn if tls else None)
        self.sockets.append(sock)
        return sock

    @property
    def host(self) -> str:
        return f"{self.server.host}:{self.server.port}"

    def head(
        self,
        length: int | None,
        headers: dict[str, str | None] | None = None,
        verb: str = "POST",
        target: str = "/mcp",
        extra: bytes = b"",
    ) -> bytes:
        """The head of a request; a header that is None is left out, `extra` are lines as they stand."""
        have: dict[str, str | None] = {
            "Host": self.host,
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        if self.server.token:
            have["Authorization"] = f"Bearer {self.server.token}"
        if length is not None:
            have["Content-Length"] = str(length)
        have.update(headers or {})
        lines = [f"{verb} {target} HTTP/1.1", *(f"{k}: {v}" for k, v in have.items() if v is not None)]
        return "\r\n".join(lines).encode("latin-1") + b"\r\n" + extra + b"\r\n"

    def modern(self, method: str, name: str | None = None) -> dict[str, str | None]:
        """The headers of a request of the modern revision."""
        return {"MCP-Protocol-Version": MODERN, "Mcp-Method": method, "Mcp-Name": name}

    def post(
        self,
        body: bytes,
        headers: dict[str, str | None] | None = None,
        limit: float = WAIT,
        sock: Sock | None = None,
        **more: Any,
    ) -> Said | None:
        sock = sock or self.connect()
        whole = sock.send(self.head(len(body), headers, **more) + body)
        said = sock.answer(limit)
        if TRACE:
            told = f"{said.status} {said.body[:150]!r}" if said else None
            print(f"    sent {'all' if whole else 'a part'}: {told}", file=sys.stderr)
        return said

    def session(
        self, revision: str = REVISION, capabilities: Json | None = None, sock: Sock | None = None
    ) -> "Session":
        params = {
            "protocolVersion": revision,
            "capabilities": ALL if capabilities is None else capabilities,
            "clientInfo": {"name": "h", "version": "1"},
        }
        body = text({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
        sock = sock or self.connect()
        said = self.post(body, sock=sock)
        key = said.headers.get("mcp-session-id") if said else None
        session = Session(self, key, revision, sock)
        session.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return session

    def hold(self, seconds: float) -> None:
        """Goes on with what is open for so long: the attack, not a wait for something."""
        time.sleep(self.left(seconds))

    # -- over both transports

    def request(self, method: str, params: bytes | Json = b"{}", number: Any = None) -> bytes:
        """A request as text. Over HTTP it is one of the modern revision, whose `_meta` comes first."""
        if number is None:
            self.number += 1
            number = self.number
        inside = text(params)
        if self.http and b'"_meta"' not in inside[:10]:
            inside = b'{"_meta":' + text(META) + (b"," if len(inside) > 2 else b"") + inside[1:]
        return b'{"jsonrpc":"2.0","id":%s,"method":%s,"params":%s}' % (text(number), text(method), inside)

    def call(self, tool: str, arguments: bytes | Json) -> bytes:
        return self.request("tools/call", b'{"name":"%s","arguments":%s}' % (tool.encode(), text(arguments)))

    def say(self, message: bytes, method: str = "tools/call", name: str | None = None, limit: float = WAIT) -> None:
        """Sends one message, and waits until it was dealt with: its answer, or that of a ping behind it."""
        if self.http:
            self.post(message, self.modern(method, name), limit)
            return
        self.line(message)
        self.settle(limit)

    def line(self, message: bytes) -> bool:
        self.sent += len(message) + 1
        return self.pipe.write(message + b"\n", self.left(WAIT))

    def raw(self, data: bytes) -> bool:
        self.sent += len(data)
        return self.pipe.write(data, self.left(WAIT))

    def settle(self, limit: float = WAIT) -> bool:
        """Waits until all that was written was read."""
        return self.pipe.ask("ping", {}, self.left(limit)) is not None

    def tell(self, method: str, params: bytes | Json = b"{}", name: str | None = None, limit: float = WAIT) -> None:
        self.say(self.request(method, params), method, name, limit)

    def close(self) -> None:
        for sock in self.sockets:
            sock.close()
        if not self.http:
            while True:
                try:
                    self.pipe.asked.get_nowait()
                except queue.Empty:
                    break


class Session:
    """A session of a handshake revision over HTTP, one connection."""

    def __init__(self, attack: ServerAttack, key: str | None, revision: str, sock: Sock) -> None:
        self.attack, self.key, self.revision, self.sock = attack, key, revision, sock

    def headers(self, **more: str | None) -> dict[str, str | None]:
        return {"Mcp-Session-Id": self.key, "MCP-Protocol-Version": self.revision, **more}

    def post(self, message: bytes | Json, limit: float = WAIT, sock: Sock | None = None) -> Said | None:
        return self.attack.post(text(message), self.headers(), limit, sock or self.sock)

    def start(self, message: bytes | Json) -> Sock:
        """Posts on a connection of its own and does not wait."""
        sock = self.attack.connect()
        body = text(message)
        sock.send(self.attack.head(len(body), self.headers()) + body)
        return sock

    def stream(self, **more: str | None) -> Sock:
        """Opens the standalone stream."""
        sock = self.attack.connect()
        headers = self.headers(Accept="text/event-stream", **more)
        sock.send(self.attack.head(None, headers, verb="GET"))
        return sock

    def delete(self) -> None:
        sock = self.attack.connect()
        sock.send(self.attack.head(None, self.headers(), verb="DELETE"))
        sock.answer(2.0)


# -- a hostile server


class Exchange:
    """One message of the client, and how the hostile server answers it."""

    def __init__(self, attack: "ClientAttack", message: Json, wire: "Wire", head: bytes = b"") -> None:
        self.attack, self.message, self.wire, self.head = attack, message, wire, head
        self.began = False
        self.over = False

    @property
    def id(self) -> Any:
        return self.message.get("id")

    def raw(self, data: bytes) -> bool:
        """Bytes as they stand, and no more is said by others in this exchange."""
        self.over = True
        return self.wire.send(data)

    def begin(self, kind: str = "text/event-stream", extra: str = "") -> None:
        """HTTP: the head of an event stream that ends with the connection."""
        if self.attack.http and not self.began:
            self.began = True
            self.wire.send(f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n{extra}Connection: close\r\n\r\n".encode())

    def say(self, message: bytes | Json) -> bool:
        """A message before the answer."""
        if not self.attack.http:
            return self.wire.send(text(message) + b"\n")
        self.begin()
        return self.wire.send(b"data: " + text(message) + b"\n\n")

    def many(self, messages: list[bytes]) -> bool:
        """Many messages in one write."""
        if not self.attack.http:
            return self.wire.send(b"\n".join(messages) + b"\n")
        self.begin()
        return self.wire.send(b"".join(b"data: " + message + b"\n\n" for message in messages))

    def done(self, result: bytes | Json, key: bytes = b"result", headers: str = "") -> None:
        """The answer."""
        whole = b'{"jsonrpc":"2.0","id":%s,"%s":%s}' % (text(self.id), key, text(result))
        self.over = True
        if not self.attack.http or self.began:
            self.say(whole)
            if self.began:
                self.wire.close()
            return
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{headers}Content-Length: {len(whole)}\r\n\r\n"
        self.wire.send(head.encode() + whole)

    def accepted(self) -> None:
        self.over = True
        if self.attack.http:
            self.wire.send(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")

    def status(self, line: str, headers: str = "", body: bytes = b"") -> None:
        self.over = True
        self.wire.send(f"HTTP/1.1 {line}\r\n{headers}Content-Length: {len(body)}\r\n\r\n".encode() + body)


class Wire:
    """A connection of the client, or its pipes."""

    def __init__(self, attack: "ClientAttack", read: int, write: int, close: Callable[[], None]) -> None:
        self.attack, self.read_end, self.write_end, self.shut = attack, read, write, close
        self.buffer = b""
        self.closed = False
        self.lock = threading.Lock()
        os.set_blocking(write, False)
        os.set_blocking(read, False)

    def send(self, data: bytes, limit: float = WAIT) -> bool:
        end = Stopwatch(self.attack.left(limit))
        view = memoryview(data)
        with self.lock:
            try:
                while view:
                    if self.closed or not select.select([], [self.write_end], [], end.left)[1]:
                        return False
                    with contextlib.suppress(BlockingIOError):
                        count = os.write(self.write_end, view[: 1 << 18])
                        self.attack.sent += count
                        view = view[count:]
            except (OSError, ValueError):
                return False
        return True

    def fill(self) -> bool:
        try:
            while not self.closed and not self.attack.over.is_set():
                if select.select([self.read_end], [], [], 0.2)[0]:
                    piece = os.read(self.read_end, 1 << 18)
                    self.buffer += piece
                    return bool(piece)
        except (OSError, ValueError):
            pass
        return False

    def take(self, mark: bytes) -> bytes | None:
        while mark not in self.buffer:
            if not self.fill():
                return None
        found, _, self.buffer = self.buffer.partition(mark)
        return found

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self.shut()


Answer = Any
"""A result, the text of one, or a function of the exchange."""


class ClientAttack:
    """State and actions of a row that attacks a client: a server that does as the row's script says."""

    def __init__(self, victim: Client, transport: str) -> None:
        self.victim, self.transport = victim, transport
        self.http = transport == "http"
        self.sent = 0
        self.end = Stopwatch(WHOLE)
        self.over = threading.Event()
        self.script: dict[str, Answer] = {}
        self.wires: list[Wire] = []
        self.stubs: list[int] = []
        self.links: list[socket.socket] = []
        self.note = ""
        self.met: list[str] = []
        self.errors_of: list[int] = []
        self.folder = tempfile.TemporaryDirectory(prefix="hostile")
        if self.http:
            self.listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
            self.port = self.listener.getsockname()[1]
            self.url = f"http://127.0.0.1:{self.port}/mcp"
        else:
            path = f"{self.folder.name}/s"
            self.listener = socket.socket(socket.AF_UNIX)
            self.listener.bind(path)
            self.listener.listen(64)
            self.path = path
        self.listener.settimeout(0.2)
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()

    def left(self, limit: float) -> float:
        return min(limit, self.end.left)

    # -- the server's side

    def accept(self) -> None:
        while not self.over.is_set():
            try:
                there, _ = self.listener.accept()
            except TimeoutError:
                continue
            except OSError:
                return
            threading.Thread(
                target=self.serve_http if self.http else self.serve_stub, args=(there,), daemon=True
            ).start()

    def serve_stub(self, there: socket.socket) -> None:
        there.settimeout(5.0)
        try:
            number, streams, _, _ = socket.recv_fds(there, 100, 3)
        except OSError:
            return
        self.stubs.append(int(number))
        self.links.append(there)
        self.errors_of.append(streams[2])

        def close() -> None:
            for stream in streams[:2]:
                with contextlib.suppress(OSError):
                    os.close(stream)

        wire = Wire(self, streams[0], streams[1], close)
        self.wires.append(wire)
        if "start" in self.script:
            self.script["start"](wire)
        while (line := wire.take(b"\n")) is not None:
            with contextlib.suppress(ValueError):
                self.meet(json.loads(line), wire)
        wire.close()
        there.close()

    def serve_http(self, there: socket.socket) -> None:
        there.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        handle = there.detach()

        def close() -> None:
            with contextlib.suppress(OSError):
                os.close(handle)

        wire = Wire(self, handle, handle, close)
        self.wires.append(wire)
        if "start" in self.script:
            self.script["start"](wire)
        while (head := wire.take(b"\r\n\r\n")) is not None:
            lowered = head.lower()
            length = 0
            for line in lowered.split(b"\r\n"):
                if line.startswith(b"content-length:"):
                    length = int(line.partition(b":")[2])
            while len(wire.buffer) < length and wire.fill():
                pass
            body, wire.buffer = wire.buffer[:length], wire.buffer[length:]
            verb, _, rest = head.partition(b" ")
            target = rest.partition(b" ")[0].decode("latin-1")
            message: Any = {}
            with contextlib.suppress(ValueError):
                message = json.loads(body) if body else {}
            exchange = Exchange(self, message if isinstance(message, dict) else {}, wire, head)
            path = f"{verb.decode()} {target}"
            if path in self.script or verb != b"POST" or not target.startswith("/mcp"):
                found = self.script.get(path, self.script.get(verb.decode()))
                if callable(found):
                    found(exchange)
                elif isinstance(found, (dict, bytes)):
                    exchange.status("200 OK", "Content-Type: application/json\r\n", text(found))
                else:
                    exchange.status("405 Method Not Allowed" if target.startswith("/mcp") else "404 Not Found")
            else:
                self.meet(exchange.message, wire, exchange)
            if wire.closed:
                break
        wire.close()

    def meet(self, message: Json, wire: Wire, exchange: Exchange | None = None) -> None:
        exchange = exchange or Exchange(self, message, wire)
        method = message.get("method")
        self.met.append(str(method))
        del self.met[:-1000]
        found = self.script.get(str(method))
        if found is None and method is not None and "*" in self.script and not str(method).startswith("notif"):
            found = self.script["*"]
        if callable(found):
            found(exchange)
            return
        if "id" not in message or method is None:
            exchange.accepted()
            return
        if found is None:
            found = self.usual(message)
        if isinstance(found, dict) and "error!" in found:
            exchange.done(found["error!"], b"error")
            return
        exchange.done(found)

    def usual(self, message: Json) -> Json:
        """Returns the answer of a polite server."""
        method = message["method"]
        facts = {"name": "hostile", "version": "1"}
        able = {
            "tools": {"listChanged": True},
            "resources": {"subscribe": True},
            "prompts": {},
            "completions": {},
            "logging": {},
        }
        if method == "initialize":
            return {"protocolVersion": message["params"]["protocolVersion"], "capabilities": able, "serverInfo": facts}
        result: Json = {}
        if method == "server/discover":
            result = {"supportedVersions": [MODERN], "capabilities": able, "ttlMs": 0, "cacheScope": "private"}
            result["_meta"] = {"io.modelcontextprotocol/serverInfo": facts}
        elif method == "tools/list":
            result = {"tools": [{"name": "t", "inputSchema": {"type": "object"}}], "ttlMs": 0, "cacheScope": "private"}
        elif method == "tools/call":
            result = {"content": [{"type": "text", "text": "ok"}]}
        elif method == "resources/list":
            result = {"resources": []}
        elif method == "prompts/list":
            result = {"prompts": []}
        if "_meta" in message.get("params", {}):
            result["resultType"] = "complete"
        return result

    # -- the client's side

    @property
    def target(self) -> Json:
        if self.http:
            return {"url": self.url}
        return {"command": sys.executable, "args": ["-S", "-E", str(HERE / "stub.py"), self.path]}

    def do(self, step: str, limit: float = WAIT, /, **command: Any) -> Json:
        """A step of the client under attack; nothing within its time is an error of its own."""
        answer = self.victim.do(self.left(limit), do=step, client=1, **command)
        if answer is None:
            self.note = self.note or f"{step} took over {limit:.0f} s"
            return {"error": {"kind": "late"}}
        if TRACE:
            print(f"    {step}: {str(answer.get('error') or answer.get('result'))[:200]}", file=sys.stderr)
        return answer

    def connect(
        self, limit: float = WAIT, answers: Json | None = None, target: Json | None = None, **options: Any
    ) -> Json:
        have = {"revision": REVISION, "request_timeout": 3, **options}
        have = {name: value for name, value in have.items() if value is not None}
        return self.do("connect", limit, target=target or self.target, options=have, answers=answers or {})

    def play(self, script: dict[str, Answer] | None = None, **options: Any) -> Json:
        """Connects to a server that does as the script says."""
        self.script.update(script or {})
        return self.connect(**options)

    def wait_for(self, done: Callable[[], bool], limit: float = WAIT) -> bool:
        end = Stopwatch(self.left(limit))
        while not done() and not end.over and self.victim.alive:
            time.sleep(0.01)
        return done()

    def check_output(self, schema: bytes | Json, value: bytes | Json, timeout: float = 3) -> Json:
        """Lists a tool with this output schema, and calls it."""
        tool = b'{"name":"t","inputSchema":{"type":"object"},"outputSchema":%s}' % text(schema)
        self.play(
            {
                "tools/list": b'{"tools":[%s]}' % tool,
                "tools/call": b'{"content":[],"structuredContent":%s}' % text(value),
            }
        )
        self.do("list_tools")
        return self.do("call_tool", name="t", arguments={}, timeout=timeout)

    def list_tools(self, tools: bytes) -> Json:
        self.play({"tools/list": b'{"tools":%s}' % tools})
        return self.do("list_tools")

    def answer_call(self, found: Answer, limit: float = WAIT, **options: Any) -> Json:
        """Calls a tool, whose answer is hostile."""
        self.play({"tools/call": found}, **options)
        return self.do("call_tool", limit, name="t", arguments={}, timeout=3)

    def close(self) -> None:
        """Ends the client under attack, and then the server."""
        answer = self.victim.do(10.0, do="close", client=1)
        if answer is None and self.victim.alive:
            self.note = self.note or "close took over 10 s"

    def end_server(self) -> None:
        self.over.set()
        with contextlib.suppress(OSError):
            self.listener.close()
        for wire in self.wires:
            wire.close()
        for handle in self.errors_of:
            with contextlib.suppress(OSError):
                os.close(handle)
        for link in self.links:
            link.close()
        self.folder.cleanup()

    def left_over(self, limit: float = 3.0) -> list[int]:
        """The servers that the client started and did not end."""
        end = Stopwatch(limit)
        while not end.over and any(alive(pid) for pid in self.stubs):
            time.sleep(0.02)
        return [pid for pid in self.stubs if alive(pid)]
