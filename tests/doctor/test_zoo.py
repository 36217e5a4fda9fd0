"""Tests of the zoo: everything works in `good`, and each fault is there by its name, and not in `good`."""

import asyncio
import contextlib
import http.client
import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import zoo

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # a dependency of pytest there

from tricorn import (
    AsyncClient,
    AuthError,
    ClientAuth,
    ClosedError,
    PeerMisbehavedError,
    ResourceNotFoundError,
    ResourceUpdated,
    RpcError,
    TransportError,
    connect,
)

Json = dict[str, Any]

ZOO = Path(__file__).with_name("zoo.py")
REVISIONS = [*zoo.LEGACY, zoo.MODERN]
LIMIT = 20.0
"""Seconds for what has to come."""
SILENT = 1.5
"""Seconds after which nothing comes any more, of a server that is silent by its fault."""
ENVELOPE = {zoo.VERSION: zoo.MODERN, zoo.CAPABILITIES: {}, "io.modelcontextprotocol/clientInfo": {"name": "t"}}
TRANSPORTS = {
    name: ["stdio"] if name in zoo.STDIO else ["http"] if name in zoo.HTTP else ["stdio", "http"] for name in zoo.FAULTS
}


class EndedError(Exception):
    """The server has ended, or the connection."""


class Wire:
    """A server, and raw frames to and from it."""

    revision = zoo.LEGACY[-1]

    def __init__(self, *words: str, stderr: bool = True) -> None:
        self.began = time.monotonic()
        self.is_good = words[0] == "good"
        # A good server answers, however busy the machine is.
        self.silent = LIMIT if self.is_good else SILENT
        self.process: Any = subprocess.Popen(
            [sys.executable, str(ZOO), *words], stdin=-1, stdout=-1, stderr=subprocess.PIPE, bufsize=0
        )
        self.heard: list[Json] = []
        self.next = 0
        self.said: queue.Queue[bytes | None] = queue.Queue()
        self.threads: list[threading.Thread] = []
        if stderr:
            self.follow(self.process.stderr, self.said)

    def follow(self, pipe: Any, lines: "queue.Queue[bytes | None]") -> None:
        def read() -> None:
            for line in iter(pipe.readline, b""):
                lines.put(line)
            lines.put(None)

        self.threads.append(threading.Thread(target=read, daemon=True))
        self.threads[-1].start()

    def close(self) -> None:
        self.process.kill()
        self.process.wait(LIMIT)
        for thread in self.threads:
            thread.join(LIMIT)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()

    def ends(self, seconds: float = LIMIT) -> bool:
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def call(self, method: str, params: Json | None = None, **options: Any) -> Json | None:
        raise NotImplementedError

    def tell(self, method: str, params: Json | None = None) -> None:
        raise NotImplementedError

    def name(self) -> int:
        self.next += 1
        return self.next

    def open(self, revision: str = zoo.LEGACY[-1]) -> Json:
        given = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        answer = self.call("initialize", given)
        assert answer is not None
        self.revision = revision
        self.tell("notifications/initialized")
        result: Json = answer["result"]
        return result

    def modern(self, method: str, **params: Any) -> Json:
        answer = self.call(method, {**params, "_meta": ENVELOPE})
        assert answer is not None
        return answer

    def result(self, method: str, **params: Any) -> Json:
        answer = self.call(method, params)
        assert answer is not None
        result: Json = answer["result"]
        return result

    def error(self, method: str, **params: Any) -> int | None:
        """The code of the error of an older revision; None: there is none."""
        answer = self.call(method, params)
        return None if answer is None or "error" not in answer else answer["error"]["code"]

    def tools(self) -> list[Json]:
        self.open()
        found: list[Json] = []
        cursor: Json = {}
        for _ in range(200):
            page = self.result("tools/list", **cursor)
            found += page["tools"]
            if "nextCursor" not in page:
                return found
            cursor = {"cursor": page["nextCursor"]}
        raise AssertionError("the list does not end")

    def schema(self) -> Json:
        """The input schema of the tool that a fault adds."""
        return next((tool["inputSchema"] for tool in self.tools() if tool["name"] == "extra"), {})


class StdioWire(Wire):
    def __init__(self, *words: str, stderr: bool = True) -> None:
        super().__init__(*words, stderr=stderr)
        self.lines: queue.Queue[bytes | None] = queue.Queue()
        self.follow(self.process.stdout, self.lines)

    def send(self, body: bytes) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(body + b"\n")
        except OSError:
            raise EndedError from None

    def line(self, limit: float = LIMIT) -> bytes | None:
        """The next line; None: nothing came."""
        try:
            line = self.lines.get(timeout=limit)
        except queue.Empty:
            return None
        if line is None:
            raise EndedError
        return line

    def call(self, method: str, params: Json | None = None, **options: Any) -> Json | None:
        name = options.get("id", self.name())
        message = {"jsonrpc": "2.0", "id": name, "method": method, "params": params or {}}
        self.send(json.dumps(message).encode())
        return None if options.get("leaves") else self.answer(name, options.get("limit", LIMIT))

    def answer(self, name: object, limit: float = LIMIT) -> Json | None:
        until = time.monotonic() + limit
        while (line := self.line(max(0.0, until - time.monotonic()))) is not None:
            message = json.loads(line)
            if "method" not in message and str(message.get("id")) == str(name):
                return message
            self.heard.append(message)
        return None

    def tell(self, method: str, params: Json | None = None) -> None:
        self.send(json.dumps({"jsonrpc": "2.0", "method": method, "params": params or {}}).encode())


class HttpWire(Wire):
    def __init__(self, *words: str) -> None:
        super().__init__(*words, "--http", "0")
        self.session: str | None = None
        self.url = ""
        try:
            while not self.url:
                line = self.said.get(timeout=LIMIT)
                if line is None:
                    raise EndedError
                if line.startswith(b"ready "):
                    self.url = line[6:].decode().strip()
                else:
                    self.heard.append({"stderr": line.decode()})
        except BaseException:
            self.close()
            raise
        self.host = urllib.parse.urlsplit(self.url).netloc

    def http(self, method: str, body: bytes = b"", limit: float = LIMIT, **headers: str) -> tuple[int, Any, bytes]:
        """Status, headers and body of an answer; a stream is read to its end."""
        link = http.client.HTTPConnection(self.host, timeout=limit)
        given = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        given.update({name.replace("_", "-"): value for name, value in headers.items()})
        try:
            link.request(method, "/mcp", body, given)
            answer = link.getresponse()
            return answer.status, answer.headers, answer.read()
        except TimeoutError:
            raise
        except (OSError, http.client.HTTPException):
            raise EndedError from None
        finally:
            link.close()

    def headers_of(self, message: Json) -> dict[str, str]:
        given = message.get("params", {})
        version = given.get("_meta", {}).get(zoo.VERSION)
        if version is not None:
            found = {"MCP_Protocol_Version": version, "Mcp_Method": message["method"]}
            if message["method"] in ("tools/call", "prompts/get", "resources/read"):
                found["Mcp_Name"] = given.get("name", given.get("uri", ""))
            return found
        return {} if self.session is None else {"Mcp_Session_Id": self.session}

    def call(self, method: str, params: Json | None = None, **options: Any) -> Json | None:
        name = options.get("id", self.name())
        message = {"jsonrpc": "2.0", "id": name, "method": method, "params": params or {}}
        given = {**self.headers_of(message), **options.get("headers", {})}
        try:
            _, headers, body = self.http("POST", json.dumps(message).encode(), options.get("limit", LIMIT), **given)
        except TimeoutError:
            return None
        if method == "initialize":
            self.session = headers.get("Mcp-Session-Id")
        if headers.get_content_type() == "text/event-stream":
            found = [json.loads(line[6:]) for line in body.split(b"\n") if line.startswith(b"data: ")]
            self.heard += [message for message in found if "method" in message]
            return next((message for message in found if "method" not in message), None)
        answer: Json = json.loads(body)
        return answer

    def tell(self, method: str, params: Json | None = None) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params or {}}
        self.http("POST", json.dumps(message).encode(), **self.headers_of(message))

    def stream(self, method: str, message: Json | None = None) -> Iterator[Json]:
        """The messages of a stream, as they come."""
        link = http.client.HTTPConnection(self.host, timeout=LIMIT)
        given = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        try:
            body = None if message is None else json.dumps(message).encode()
            link.request(method, "/mcp", body, {**given, "Mcp-Session-Id": self.session or ""})
            answer = link.getresponse()
            yield {"status": answer.status}
            while line := answer.readline():
                if line.startswith(b"data: "):
                    yield json.loads(line[6:])
        finally:
            link.close()


Probe = Callable[[Any], bool]
PROBES: dict[str, Probe] = {}
"""Functions that say whether a fault is there; of a wire, or of the words of a command where `STARTS` has it."""
STARTS: set[str] = set()
"""Faults whose probes start the server themselves: they take the class of the wire and the words."""


def probe(name: str, *, starts: bool = False) -> Callable[[Probe], Probe]:
    def keep(function: Probe) -> Probe:
        PROBES[name] = function
        if starts:
            STARTS.add(name)
        return function

    return keep


# -- process


def first_status(start: Callable[[], Wire]) -> tuple[int | None, bytes]:
    """The exit status of a server that ends before its first answer, and its last line on stderr."""
    try:
        wire = start()
    except EndedError:  # over HTTP it never was ready
        return -1, b""
    try:
        wire.call("ping")
    except EndedError:
        wire.ends()
        last = b""
        while (line := wire.said.get(timeout=LIMIT)) is not None:
            last = line
        return wire.process.returncode, last
    finally:
        wire.close()
    return None, b""


@probe("no-start", starts=True)
def no_start(start: Callable[[], Wire]) -> bool:
    return first_status(start)[0] in (127, -1)


@probe("dies-early", starts=True)
def dies_early(start: Callable[[], Wire]) -> bool:
    status, line = first_status(start)
    return status == -1 or (status == 1 and b"ImportError" in line)


@probe("dies")
def dies(wire: Wire) -> bool:
    wire.open()
    try:
        wire.call("prompts/list")
    except EndedError:
        return wire.ends() and wire.process.returncode == 3
    return False


@probe("slow-start", starts=True)
def slow_start(start: Callable[[], Wire]) -> bool:
    def one() -> float:
        wire = start()
        try:
            wire.open()
            return time.monotonic() - wire.began
        finally:
            wire.close()

    # Slowness of a single start may be the machine's affair.
    return all(one() > 2.5 for _ in range(3))


@probe("noise")
def noise(wire: StdioWire) -> bool:
    wire.call("ping", leaves=True)
    return b"jsonrpc" not in (wire.line() or b"")


@probe("multi-line")
def multi_line(wire: StdioWire) -> bool:
    wire.call("ping", leaves=True)
    line = wire.line() or b""
    try:
        json.loads(line)
    except ValueError:
        return line == b"{\n"
    return False


@probe("not-utf8")
def not_utf8(wire: Wire) -> bool:
    try:
        assert "café" in wire.open()["instructions"]
    except UnicodeDecodeError:
        return True
    return False


@probe("ignores-eof")
def ignores_eof(wire: StdioWire) -> bool:
    wire.open()
    wire.process.stdin.close()
    return not wire.ends(wire.silent)


@probe("ignores-term")
def ignores_term(wire: Wire) -> bool:
    wire.open()
    wire.process.send_signal(signal.SIGTERM)
    return not wire.ends(wire.silent)


@probe("orphan")
def orphan(wire: Wire) -> bool:
    wire.open()
    said = [str(heard["stderr"]) for heard in wire.heard if "stderr" in heard]
    wire.process.terminate()
    wire.ends()
    while (line := wire.said.get(timeout=LIMIT)) is not None:
        said.append(line.decode())
    for child in re.findall(r"child (\d+)", "".join(said)):
        os.kill(int(child), signal.SIGKILL)
        return True
    return False


@probe("spins-after-eof")
def spins_after_eof(wire: StdioWire) -> bool:
    wire.open()
    wire.process.stdin.close()
    until = time.monotonic() + LIMIT
    # CPU time adds up, however little of a busy machine it gets; no event tells of it.
    while time.monotonic() < until and not wire.ends(0.1):
        fields = Path(f"/proc/{wire.process.pid}/stat").read_text().rpartition(")")[2].split()
        if (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") > 0.5:
            return True
    return False


@probe("blocks-on-stderr", starts=True)
def blocks_on_stderr(start: Callable[..., StdioWire]) -> bool:
    wire = start(stderr=False)
    try:
        wire.open()
        return any(
            wire.call("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}}, limit=wire.silent) is None
            for _ in range(10)
        )
    finally:
        wire.close()


# -- opening


@probe("probe-hangs")
def probe_hangs(wire: Wire) -> bool:
    hangs = wire.call("server/discover", {"_meta": ENVELOPE}, limit=wire.silent) is None
    wire.open()
    return hangs


@probe("probe-kills")
def probe_kills(wire: Wire) -> bool:
    try:
        wire.call("server/discover", {"_meta": ENVELOPE})
    except EndedError:
        return wire.ends() and wire.process.returncode == 1
    return False


@probe("wrong-revision")
def wrong_revision(wire: Wire) -> bool:
    return wire.open("1999-01-01")["protocolVersion"] not in zoo.LEGACY


@probe("no-info")
def no_info(wire: Wire) -> bool:
    modern = wire.modern("server/discover")["result"]["_meta"][zoo.SERVER_INFO]
    return not wire.open()["serverInfo"].get("name") and not modern.get("name")


@probe("id-retyped")
def id_retyped(wire: Wire) -> bool:
    wire.open()
    return [wire.call("ping", id=name)["id"] for name in (70, "70", "a")] != [70, "70", "a"]  # type: ignore[index]


@probe("result-and-error")
def result_and_error(wire: Wire) -> bool:
    wire.open()
    answers = [wire.call("ping"), wire.call("x/none")]
    return any(("result" in answer) == ("error" in answer) for answer in answers if answer is not None)


@probe("unknown-not-32601")
def unknown_not_32601(wire: Wire) -> bool:
    wire.open()
    return wire.error("x/none") != -32601 and wire.modern("x/none").get("error", {}).get("code") != -32601


@probe("garbage-kills")
def garbage_kills(wire: Wire) -> bool:
    wire.open()
    try:
        if isinstance(wire, StdioWire):
            wire.send(b"{bad")
            assert json.loads(wire.line() or b"")["error"]["code"] == -32700
        else:
            assert wire.http("POST", b"{bad")[0] == 400  # type: ignore[attr-defined]
        wire.call("ping")
    except EndedError:
        return wire.ends()
    return False


@probe("ping-silent")
def ping_silent(wire: Wire) -> bool:
    wire.open()
    return wire.call("ping", limit=wire.silent) is None


@probe("no-resultType")
def no_result_type(wire: Wire) -> bool:
    answers = [wire.modern(method) for method in ("server/discover", "tools/list", "prompts/list")]
    return all("resultType" not in answer["result"] for answer in answers)


@probe("no-ttl")
def no_ttl(wire: Wire) -> bool:
    answers = [wire.modern(method)["result"] for method in ("server/discover", "tools/list", "prompts/list")]
    answers.append(wire.modern("resources/read", uri="note://one")["result"])
    return all("ttlMs" not in answer and "cacheScope" not in answer for answer in answers)


@probe("takes-no-meta")
def takes_no_meta(wire: Wire) -> bool:
    answer = wire.call("tools/list", headers={"MCP_Protocol_Version": zoo.MODERN, "Mcp_Method": "tools/list"})
    assert answer is not None
    return "result" in answer


# -- capabilities


@probe("tools-lie")
def tools_lie(wire: Wire) -> bool:
    return "tools" in wire.open()["capabilities"] and wire.error("tools/list") == -32601


@probe("lists-lie")
def lists_lie(wire: Wire) -> bool:
    return "resources" in wire.open()["capabilities"] and wire.error("resources/list") == -32601


@probe("undeclared")
def undeclared(wire: Wire) -> bool:
    assert wire.modern("tools/list")["result"]["tools"]
    modern = wire.modern("server/discover")["result"]["capabilities"]
    return "tools" not in wire.open()["capabilities"] and "tools" not in modern


@probe("subscribe-lies")
def subscribe_lies(wire: Wire) -> bool:
    declared = wire.open()["capabilities"]["resources"].get("subscribe")
    return bool(declared) and wire.error("resources/subscribe", uri="note://one") == -32601


@probe("complete-lies")
def complete_lies(wire: Wire) -> bool:
    declared = "completions" in wire.open()["capabilities"]
    ref = {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "name", "value": ""}}
    return declared and wire.error("completion/complete", **ref) == -32601


@probe("loglevel-lies")
def loglevel_lies(wire: Wire) -> bool:
    return "logging" in wire.open()["capabilities"] and wire.error("logging/setLevel", level="info") == -32601


@probe("asks-undeclared")
def asks_undeclared(wire: Wire) -> bool:
    wire.open()
    if isinstance(wire, HttpWire):
        stream = wire.stream("GET")
        assert next(stream) == {"status": 200}
        # Its stream ends with the session.
        assert wire.http("DELETE", Mcp_Session_Id=wire.session or "")[0] == 204
        wire.heard += stream
    else:
        wire.call("ping")
    return any("method" in message and "id" in message for message in wire.heard)


# -- schemas


@probe("no-description")
def no_description(wire: Wire) -> bool:
    return not all(tool.get("description") for tool in wire.tools())


@probe("odd-name")
def odd_name(wire: Wire) -> bool:
    return not all(re.fullmatch(r"[A-Za-z0-9_.-]{1,128}", tool["name"]) for tool in wire.tools())


@probe("host-name")
def host_name(wire: Wire) -> bool:
    names = [tool["name"] for tool in wire.tools()]
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]{1,128}", name) for name in names)
    return not all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in names)


@probe("twin-names")
def twin_names(wire: Wire) -> bool:
    names = [tool["name"] for tool in wire.tools()]
    return len(names) > len({*names})


@probe("no-properties")
def no_properties(wire: Wire) -> bool:
    return not all("properties" in tool["inputSchema"] for tool in wire.tools())


@probe("not-strict")
def not_strict(wire: Wire) -> bool:
    schemas = [tool["inputSchema"] for tool in wire.tools()]
    return any([*schema["properties"]] != schema["required"] for schema in schemas)


@probe("array-no-items")
def array_no_items(wire: Wire) -> bool:
    given = wire.schema().get("properties", {}).values()
    return any(schema.get("type") == "array" and "items" not in schema for schema in given)


@probe("top-anyOf")
def top_any_of(wire: Wire) -> bool:
    return any({"oneOf", "anyOf", "allOf"} & {*tool["inputSchema"]} for tool in wire.tools())


@probe("odd-key")
def odd_key(wire: Wire) -> bool:
    keys = [key for tool in wire.tools() for key in tool["inputSchema"]["properties"]]
    return not all(re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", key) for key in keys)


@probe("gemini-keyword")
def gemini_keyword(wire: Wire) -> bool:
    written = json.dumps(wire.tools())
    return any(f'"{keyword}"' in written for keyword in ("$ref", "$defs", "exclusiveMinimum"))


@probe("bad-schema")
def bad_schema(wire: Wire) -> bool:
    types = re.findall(r'"type": "(\w+)"', json.dumps([tool["inputSchema"] for tool in wire.tools()]))
    return not {*types} <= {"object", "array", "string", "number", "integer", "boolean", "null"}


@probe("deep-ref")
def deep_ref(wire: Wire) -> bool:
    schema, levels = wire.schema(), 0
    at = next(iter(schema.get("properties", {}).values()), {})
    while "$ref" in at:
        at, levels = schema["$defs"][at["$ref"].rpartition("/")[2]], levels + 1
        at = next(iter(at.get("properties", {}).values()), {})
    return levels > 16


@probe("circular-ref")
def circular_ref(wire: Wire) -> bool:
    definitions = wire.schema().get("$defs", {})
    return any(f'"#/$defs/{name}"' in json.dumps(definition) for name, definition in definitions.items())


@probe("remote-ref")
def remote_ref(wire: Wire) -> bool:
    return '"$ref": "http' in json.dumps(wire.tools())


@probe("output-no-object")
def output_no_object(wire: Wire) -> bool:
    schemas = [tool["outputSchema"] for tool in wire.tools() if "outputSchema" in tool]
    assert schemas
    return not all(schema.get("type") == "object" for schema in schemas)


@probe("too-big")
def too_big(wire: Wire) -> bool:
    return len(wire.tools()) > 128


@probe("hints-contradict")
def hints_contradict(wire: Wire) -> bool:
    hints = [tool["annotations"] for tool in wire.tools()]
    return any(hint.get("readOnlyHint") and hint.get("destructiveHint") for hint in hints)


# -- paging


@probe("cursor-loop")
def cursor_loop(wire: Wire) -> bool:
    wire.open()
    seen: list[str] = []
    page = wire.result("tools/list")
    while "nextCursor" in page and page["nextCursor"] not in seen:
        seen.append(page["nextCursor"])
        page = wire.result("tools/list", cursor=seen[-1])
    return "nextCursor" in page


@probe("bad-cursor-ok")
def bad_cursor_ok(wire: Wire) -> bool:
    wire.open()
    return wire.error("tools/list", cursor="x") != -32602


@probe("order-shifts")
def order_shifts(wire: Wire) -> bool:
    return [tool["name"] for tool in wire.tools()] != [tool["name"] for tool in wire.tools()]


# -- calls


@probe("unknown-tool-ok")
def unknown_tool_ok(wire: Wire) -> bool:
    wire.open()
    return wire.error("tools/call", name="no-such-tool", arguments={}) is None


@probe("bad-args-crash")
def bad_args_crash(wire: Wire) -> bool:
    wire.open()
    return wire.error("tools/call", name="add", arguments={}) == -32603


@probe("cancel-ignored")
def cancel_ignored(wire: Wire) -> bool:
    wire.open()
    given = {"name": "slow", "arguments": {"steps": 12}, "_meta": {"progressToken": "p"}}
    if isinstance(wire, StdioWire):
        wire.call("tools/call", given, id="slow", leaves=True)
        assert b"progress" in (wire.line() or b"")
        wire.tell("notifications/cancelled", {"requestId": "slow"})
        return wire.answer("slow", SILENT if wire.is_good else LIMIT) is not None
    stream = wire.stream("POST", {"jsonrpc": "2.0", "id": "slow", "method": "tools/call", "params": given})
    assert next(stream) == {"status": 200}
    assert next(stream)["method"] == "notifications/progress"
    wire.tell("notifications/cancelled", {"requestId": "slow"})
    return any(message.get("id") == "slow" for message in stream)


@probe("progress-back")
def progress_back(wire: Wire) -> bool:
    wire.open()
    wire.result("tools/call", name="slow", arguments={"steps": 3}, _meta={"progressToken": "p"})
    told = [message for message in wire.heard if message.get("method") == "notifications/progress"]
    values = [message["params"]["progress"] for message in told]
    assert len(values) == 3
    return values != sorted(values)


@probe("trace-leaks")
def trace_leaks(wire: Wire) -> bool:
    wire.open()
    result = wire.result("tools/call", name="fail", arguments={})
    assert result["isError"]
    return "Traceback" in result["content"][0]["text"]


@probe("output-unfit")
def output_unfit(wire: Wire) -> bool:
    wire.open()
    result = wire.result("tools/call", name="add", arguments={"a": 1, "b": 2})
    return result["structuredContent"] != {"sum": 3}


@probe("bad-base64")
def bad_base64(wire: Wire) -> bool:
    wire.open()
    data = wire.result("tools/call", name="image")["content"][0]["data"]
    return re.fullmatch(r"(?:[A-Za-z0-9+/]{4})+(?:[A-Za-z0-9+/]{2,3}=+)?", data) is None


# -- HTTP

PING = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {}}).encode()
DISCOVER = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": ENVELOPE}}).encode()
OF_DISCOVER = {"MCP_Protocol_Version": zoo.MODERN, "Mcp_Method": "server/discover"}


@probe("any-host")
def any_host(wire: HttpWire) -> bool:
    assert wire.http("POST", DISCOVER, Host=wire.host, **OF_DISCOVER)[0] == 200
    return wire.http("POST", DISCOVER, Host="evil.example", **OF_DISCOVER)[0] != 403


@probe("any-origin")
def any_origin(wire: HttpWire) -> bool:
    assert wire.http("POST", DISCOVER, Origin="http://localhost:5173", **OF_DISCOVER)[0] == 200
    return wire.http("POST", DISCOVER, Origin="https://evil.example", **OF_DISCOVER)[0] != 403


@probe("cors-bad")
def cors_bad(wire: HttpWire) -> bool:
    asked = {"Origin": "http://localhost:5173", "Access_Control_Request_Method": "POST"}
    status, headers, _ = wire.http("OPTIONS", **asked)
    assert status == 204
    star = headers["Access-Control-Allow-Origin"] == "*" and headers["Access-Control-Allow-Credentials"] == "true"
    return star and "Mcp-Session-Id" not in headers.get("Access-Control-Expose-Headers", "")


@probe("session-unchecked")
def session_unchecked(wire: HttpWire) -> bool:
    wire.open()
    statuses = [wire.http("POST", PING)[0], wire.http("POST", PING, Mcp_Session_Id="made-up")[0]]
    assert statuses in ([200, 200], [400, 404])
    return statuses == [200, 200]


@probe("session-guessable")
def session_guessable(wire: HttpWire) -> bool:
    names: list[str] = []
    for _ in range(8):
        wire.open()
        names.append(wire.session or "")
    assert len({*names}) == 8
    return min(map(len, names)) < 22 or len({name[:8] for name in names}) < 8


@probe("restart-not-404")
def restart_not_404(wire: HttpWire) -> bool:
    return wire.http("POST", PING, Mcp_Session_Id="of-the-former-process")[0] != 404


@probe("sessions-leak")
def sessions_leak(wire: HttpWire) -> bool:
    def resident() -> int:
        return int(re.findall(r"VmRSS:\s+(\d+)", Path(f"/proc/{wire.process.pid}/status").read_text())[0])

    def visit() -> None:
        wire.open()
        assert wire.http("DELETE", Mcp_Session_Id=wire.session or "")[0] == 204
        assert wire.http("POST", PING, Mcp_Session_Id=wire.session or "")[0] == 404

    visit()
    before = resident()
    for _ in range(20):
        visit()
    return resident() - before > 20 * 128


@probe("header-mismatch-ok")
def header_mismatch_ok(wire: HttpWire) -> bool:
    status, _, body = wire.http("POST", DISCOVER, **{**OF_DISCOVER, "Mcp_Method": "tools/list"})
    if status == 400:
        assert json.loads(body)["error"]["code"] == -32020
    return status != 400


# -- authorization


def fetch(url: str, form: dict[str, str] | None = None) -> Json:
    body = None if form is None else urllib.parse.urlencode(form).encode()
    with urllib.request.urlopen(url, body, timeout=LIMIT) as answer:
        found: Json = json.loads(answer.read())
        return found


def resource_metadata(wire: HttpWire) -> Json:
    return fetch(wire.url.replace("/mcp", zoo.METADATA))


def document(wire: HttpWire) -> tuple[str, Json]:
    issuer = resource_metadata(wire)["authorization_servers"][0]
    return issuer, fetch(f"{issuer}/.well-known/oauth-authorization-server")


@probe("no-challenge")
def no_challenge(wire: HttpWire) -> bool:
    status, headers, _ = wire.http("POST", DISCOVER, **OF_DISCOVER)
    assert status == 401
    return "resource_metadata=" not in headers.get("WWW-Authenticate", "")


@probe("no-metadata")
def no_metadata(wire: HttpWire) -> bool:
    return not resource_metadata(wire)["authorization_servers"]


@probe("resource-differs")
def resource_differs(wire: HttpWire) -> bool:
    return bool(resource_metadata(wire)["resource"] != wire.url)


@probe("issuer-differs")
def issuer_differs(wire: HttpWire) -> bool:
    issuer, found = document(wire)
    return bool(found["issuer"] != issuer)


@probe("no-S256")
def no_s256(wire: HttpWire) -> bool:
    return "S256" not in document(wire)[1]["code_challenge_methods_supported"]


@probe("foreign-audience-ok")
def foreign_audience_ok(wire: HttpWire) -> bool:
    statuses = []
    for resource in (wire.url, "https://other.example/mcp"):
        client = {"grant_type": "client_credentials", "client_id": "zoo", "client_secret": "zoo-secret"}
        token = fetch(document(wire)[1]["token_endpoint"], {**client, "resource": resource})["access_token"]
        statuses.append(wire.http("POST", DISCOVER, **OF_DISCOVER, Authorization=f"Bearer {token}")[0])
    assert statuses[0] == 200
    return statuses[1] == 200


# -- tests


def started(fault: str, name: str, transport: str) -> bool:
    """Starts the server `name`, and says whether `fault` is there."""
    words = [name, *(["--auth"] if fault in zoo.AUTH else [])]
    kind = StdioWire if transport == "stdio" else HttpWire
    if fault in STARTS:
        return PROBES[fault](lambda **options: kind(*words, **options))
    wire = kind(*words)
    try:
        return PROBES[fault](wire)
    finally:
        wire.close()


CASES = [(fault, transport) for fault in zoo.FAULTS for transport in TRANSPORTS[fault]]


@pytest.mark.parametrize(("fault", "transport"), CASES)
def test_the_fault_is_there_and_nowhere_else(fault: str, transport: str) -> None:
    assert started(fault, fault, transport)
    assert not started(fault, "good", transport)


def test_each_fault_is_described() -> None:
    described = tomllib.loads(ZOO.with_name("faults.toml").read_text(encoding="utf-8"))["fault"]
    assert [fault["name"] for fault in described] == [*zoo.FAULTS] == [*PROBES]
    for fault in described:
        assert fault["severity"] in ("error", "warning")
        transports = TRANSPORTS[fault["name"]]
        assert fault["transport"] == ("both" if len(transports) == 2 else transports[0])
        assert all(fault[member] for member in ("wrong", "evidence", "fix", "source"))


def test_the_list_of_names() -> None:
    listed = subprocess.run([sys.executable, ZOO, "--list"], capture_output=True, text=True, timeout=LIMIT, check=True)
    assert [line.partition(":")[0] for line in listed.stdout.splitlines()] == [*zoo.FAULTS]


@pytest.mark.parametrize("name", ["good"])
def test_it_ends_at_once(name: str) -> None:
    wire = StdioWire(name)
    wire.open()
    wire.process.stdin.close()
    assert wire.ends()
    assert wire.process.returncode == 0
    wire.close()
    for kind in (StdioWire, HttpWire):
        wire = kind(name)
        wire.open()
        wire.process.terminate()
        assert wire.ends()
        assert wire.process.returncode == -signal.SIGTERM
        wire.close()


def test_nothing_but_messages_on_stdout() -> None:
    wire = StdioWire("good")
    wire.send(b"[]")
    wire.send(b"1")
    wire.send(b'{"jsonrpc": "2.0", "id": null, "method": "ping"}')
    wire.send(b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}')
    wire.send(b"{" * 100_000)
    codes = [json.loads(wire.line() or b"")["error"]["code"] for _ in range(5)]
    assert codes == [-32600, -32600, -32600, -32602, -32700]
    wire.open()
    wire.close()


def test_batches_of_2025_03_26() -> None:
    batch = [{"jsonrpc": "2.0", "id": name, "method": "ping", "params": {}} for name in ("a", "b")]
    wire = StdioWire("good")
    wire.open("2025-03-26")
    wire.send(json.dumps(batch).encode())
    assert [answer["id"] for answer in json.loads(wire.line() or b"")] == ["a", "b"]
    wire.close()
    web = HttpWire("good")
    web.open("2025-03-26")
    status, _, body = web.http("POST", json.dumps(batch).encode(), Mcp_Session_Id=web.session or "")
    assert (status, [answer["id"] for answer in json.loads(body)]) == (200, ["a", "b"])
    web.open("2025-06-18")
    assert web.http("POST", json.dumps(batch).encode(), Mcp_Session_Id=web.session or "")[0] == 400
    web.close()


def test_statuses_of_2026_07_28() -> None:
    web = HttpWire("good")

    def post(method: str, meta: Json, **headers: str) -> tuple[int, int]:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": meta}}
        given = {"MCP_Protocol_Version": zoo.MODERN, "Mcp_Method": method, **headers}
        status, _, body = web.http("POST", json.dumps(message).encode(), **given)
        return status, json.loads(body)["error"]["code"]

    assert post("tools/list", {}) == (400, -32602)
    assert post("tools/list", ENVELOPE, MCP_Protocol_Version="2025-11-25") == (400, -32020)
    assert post("tools/list", {**ENVELOPE, zoo.VERSION: "v9"}, MCP_Protocol_Version="v9") == (400, -32022)
    assert post("tools/list", ENVELOPE, Mcp_Method="prompts/list") == (400, -32020)
    assert post("initialize", ENVELOPE) == (404, -32601)
    assert web.http("GET", Accept="text/event-stream")[0] == 405
    web.close()


@contextlib.contextmanager
def target(name: str, transport: str, *words: str) -> Iterator[list[str] | str]:
    if transport == "stdio":
        yield [sys.executable, str(ZOO), name, *words]
        return
    web = HttpWire(name, *words)
    try:
        yield web.url
    finally:
        web.close()


@pytest.fixture(params=["stdio", "http"])
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@contextlib.asynccontextmanager
async def connected(name: str, transport: str, **options: Any) -> AsyncIterator[AsyncClient]:
    with target(name, transport) as place:
        async with connect(place, **options) as client:
            yield client


@pytest.mark.parametrize("revision", REVISIONS)
async def test_everything_works(revision: str, transport: str) -> None:
    logs: asyncio.Queue[Any] = asyncio.Queue()
    structured = revision >= "2025-06-18"
    options: Json = {"revision": revision, "on_log": lambda *log: logs.put_nowait(log)}
    async with connected("good", transport, elicitation=lambda message, schema: {"name": "Ada"}, **options) as client:
        assert client.protocol_version == revision
        assert client.server_info is not None
        assert client.server_info.name == "zoo"
        assert [tool.name for tool in await client.list_tools()] == [*zoo.RUN]
        total = await client.call_tool("add", {"a": 1, "b": 2})
        assert total.structured == ({"sum": 3} if structured else None)
        with pytest.raises(RpcError) if revision < "2025-11-25" else contextlib.nullcontext():
            assert (await client.call_tool("add", {"a": 1})).is_error
        assert (await client.call_tool("image")).content[0].mime_type == "image/png"
        assert (await client.call_tool("fail")).is_error
        assert (await client.call_tool("ask")).is_error is not structured
        assert len(await client.list_resources()) == 3
        assert [template.uri_template for template in await client.list_resource_templates()] == [zoo.TEMPLATE]
        assert (await client.read_resource("greeting://Ada")).contents[0].text == "Hello, Ada!"
        with pytest.raises(ResourceNotFoundError):
            await client.read_resource("note://none")
        assert [prompt.name for prompt in await client.list_prompts()] == ["greet"]
        message = (await client.get_prompt("greet", {"name": "Ada"})).messages[0]
        assert "Ada" in message.content.text
        assert (await client.complete("greet", "name", "a")).values == ["ada", "alan"]
        assert (await client.complete(zoo.TEMPLATE, "name", "g")).values == ["grace"]
        await client.set_log_level("info")
        steps: list[float] = []
        await client.call_tool("slow", {"steps": 3}, on_progress=lambda told: steps.append(told.progress))
        assert steps == [1, 2, 3]
        assert (await asyncio.wait_for(logs.get(), LIMIT))[0] == "info"
        async with client.listen(uris=["note://one"]) as changes:
            await client.call_tool("touch", {"uri": "note://one"})
            async for change in changes:
                assert change == ResourceUpdated("note://one")
                break


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_call_is_cancelled(revision: str, transport: str) -> None:
    async with connected("good", transport, revision=revision) as client:
        began = asyncio.Event()
        call = client.call_tool("slow", {"steps": 1000}, on_progress=lambda *_: began.set())
        task = asyncio.create_task(call)
        await asyncio.wait_for(began.wait(), LIMIT)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await client.call_tool("add", {"a": 1, "b": 2})).content


def browse(url: str) -> None:
    urllib.request.urlopen(url, timeout=LIMIT).close()


@pytest.mark.parametrize("revision", ["2025-11-25", zoo.MODERN])
async def test_a_client_logs_in(revision: str) -> None:
    with target("good", "http", "--auth") as url:
        auth = ClientAuth(browser=browse, store="memory")
        async with connect(url, auth=auth, revision=revision) as client:
            assert len(await client.list_tools()) == len(zoo.TOOLS)


HEARD: dict[str, tuple[type[Exception], str]] = {
    "no-start": (ClosedError, "127.*no-such-server: not found"),
    "dies-early": (ClosedError, "No module named 'nowhere'"),
    "probe-kills": (TransportError, '"server/discover" failed'),
    "result-and-error": (PeerMisbehavedError, '"result" and "error": expected one'),
    "tools-lie": (RpcError, "-32601"),
    "cursor-loop": (PeerMisbehavedError, "came twice"),
    "output-unfit": (PeerMisbehavedError, "does not fit its outputSchema"),
    "bad-base64": (PeerMisbehavedError, "base64"),
    "no-metadata": (AuthError, '"authorization_servers": missing'),
    "resource-differs": (AuthError, "has to name itself"),
    "issuer-differs": (AuthError, "must be the same text"),
    "no-S256": (AuthError, "without S256"),
}
"""Our client's words about faults, which otherwise it puts up with."""
PUTS_UP_WITH = {("probe-kills", "stdio")}
UNREACHABLE = {("no-start", "http"), ("dies-early", "http")}
LEAVES_A_PROCESS = {("orphan", "stdio"), ("orphan", "http")}


@pytest.mark.parametrize(("fault", "transport"), [case for case in CASES if case not in UNREACHABLE | LEAVES_A_PROCESS])
async def test_our_client_knows_its_way(fault: str, transport: str) -> None:
    options: Json = {"probe_timeout": 1, "request_timeout": 10, "on_stderr": lambda line: None}
    if fault in zoo.AUTH:
        options["auth"] = ClientAuth(browser=browse, store="memory")

    async def visit() -> None:
        async with connected(fault, transport, **options) as client:
            assert len(await client.list_tools()) >= len(zoo.TOOLS)
            assert (await client.call_tool("add", {"a": 1, "b": 2})).structured == {"sum": 3}
            assert (await client.call_tool("image")).content
            steps: list[float] = []
            await client.call_tool("slow", {"steps": 2}, on_progress=lambda told: steps.append(told.progress))
            assert steps == sorted(steps)

    if fault in HEARD and (fault, transport) not in PUTS_UP_WITH:
        kind, words = HEARD[fault]
        with pytest.raises(kind, match=f"(?s){words}"):
            await asyncio.wait_for(visit(), LIMIT)
    else:
        await asyncio.wait_for(visit(), LIMIT)
