"""A good small MCP server with one fault that is switched on by its name; `zoo.py good` has none.

    zoo.py NAME                  serves stdio
    zoo.py NAME --http PORT      serves Streamable HTTP on 127.0.0.1, says `ready URL` on stderr; 0 takes any port
    zoo.py NAME --http 0 --auth  wants a bearer token of its own authorization server, which is on another port
    zoo.py --list                prints all names with a sentence each

It speaks 2024-11-05 to 2025-11-25 after `initialize`, and 2026-07-28 without. Each fault changes one behaviour: tools
in `TOOLS_OF`, answers in `ANSWER_OF`, start and end in `START_OF` and `END_OF`, the rest where `has("its-name")` is.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import copy
import hashlib
import hmac
import json
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
import urllib.parse
import urllib.request
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Empty, SimpleQueue
from typing import Any

Json = dict[str, Any]

LEGACY = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN = "2026-07-28"
VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
LOG_LEVEL = "io.modelcontextprotocol/logLevel"
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"

MAX_BYTES = 4 << 20
MAX_CALLS = 64
MAX_SESSIONS = 2_000
MAX_BACKLOG = 1_000
PAGE = 2
STEP = 0.05
"""Seconds of each step of the tool `slow`."""
SECONDS_OF_LIFE = int(os.environ.get("ZOO_SECONDS", "0"))
"""Seconds after which a server ends whatever it does, as one with a fault may outlive who has started it; 0: never."""

FAULTS: dict[str, str] = {
    # Process
    "no-start": "ends with 127 before it has said anything, as a command that does not exist",
    "dies-early": "raises while it imports, before the first answer",
    "dies": "ends at `prompts/list`",
    "slow-start": "takes three seconds until its first answer",
    "noise": "prints a banner on stdout",
    "multi-line": "writes each message over several lines",
    "not-utf8": "writes Latin-1",
    "ignores-eof": "waits for ever after the end of stdin",
    "ignores-term": "ignores SIGTERM",
    "orphan": "starts `sleep 600` in a session of its own and leaves it behind",
    "spins-after-eof": "reads the ended stdin in a loop, and burns a core",
    "blocks-on-stderr": "writes 64 KiB to stderr in each call",
    # Opening
    "probe-hangs": "never answers `server/discover`; speaks the older revisions only",
    "probe-kills": "ends at `server/discover`; speaks the older revisions only",
    "wrong-revision": "echoes whichever revision `initialize` names",
    "no-info": "gives neither name nor version",
    "id-retyped": "answers with the id as a string",
    "result-and-error": "answers with both a result and an error",
    "unknown-not-32601": "answers an unknown method with an empty result",
    "garbage-kills": "ends at a line that is no JSON",
    "ping-silent": "never answers `ping`",
    "no-resultType": "leaves resultType out of results of 2026-07-28",
    "no-ttl": "leaves ttlMs and cacheScope out of results of 2026-07-28",
    "takes-no-meta": "serves 2026-07-28 without the envelope",
    # Capabilities
    "tools-lie": "declares tools, and does not know tools/list",
    "lists-lie": "declares resources, and does not know resources/list",
    "undeclared": "lists tools, and does not declare them",
    "subscribe-lies": "declares subscriptions to resources, and refuses them",
    "complete-lies": "declares completions, and does not know completion/complete",
    "loglevel-lies": "declares logging, and refuses logging/setLevel",
    "asks-undeclared": "asks for roots, sampling and a form whatever the client has declared",
    # Schemas
    "no-description": "has a tool without a description",
    "odd-name": "has a tool `my tool!`",
    "host-name": "has a tool `notes.read`, which hosts refuse",
    "twin-names": "has two tools of one name, on different pages",
    "no-properties": "has a tool whose input schema has no properties",
    "not-strict": "has a tool with an optional argument",
    "array-no-items": "has an argument that is an array without items",
    "top-anyOf": "has anyOf at the top of an input schema",
    "odd-key": "has an argument `$filter`",
    "gemini-keyword": "has an argument with exclusiveMinimum",
    "bad-schema": "has an argument of the type `strng`",
    "deep-ref": "has a schema of twenty levels by $ref",
    "circular-ref": "has a schema that refers to itself",
    "remote-ref": "has a schema that refers to another host",
    "output-no-object": "has an output schema that is no object",
    "too-big": "has 200 tools more",
    "hints-contradict": "has a tool that both only reads and destroys",
    # Paging
    "cursor-loop": "gives one cursor for ever",
    "bad-cursor-ok": "takes any cursor for the first page",
    "order-shifts": "lists tools in another order each time",
    # Calls
    "unknown-tool-ok": "calls tools that do not exist, with success",
    "bad-args-crash": "looks up arguments without looking",
    "cancel-ignored": "goes on with cancelled calls, and answers them",
    "progress-back": "reports progress that falls",
    "trace-leaks": "gives tracebacks to the client",
    "output-unfit": "gives structured content that does not fit its output schema",
    "bad-base64": "gives an image that is not base64",
    # HTTP
    "any-host": "answers whatever the Host is",
    "any-origin": "answers whatever the Origin is",
    "cors-bad": "allows all origins with credentials, and does not expose Mcp-Session-Id",
    "session-unchecked": "serves requests without a session, or with a made-up one",
    "session-guessable": "counts its sessions",
    "restart-not-404": "answers an unknown session with 400",
    "sessions-leak": "keeps a quarter of a megabyte of each session that has ended",
    "header-mismatch-ok": "does not compare Mcp-Method and Mcp-Name with the body",
    # Auth
    "no-challenge": "answers 401 without WWW-Authenticate",
    "no-metadata": "names no authorization server in its metadata",
    "resource-differs": "names another resource in its metadata",
    "issuer-differs": "has an authorization server whose document names another issuer",
    "no-S256": "has an authorization server that knows the PKCE method plain only",
    "foreign-audience-ok": "takes tokens that are for another resource",
}
AUTH = ("no-challenge", "no-metadata", "resource-differs", "issuer-differs", "no-S256", "foreign-audience-ok")
"""Faults that need `--auth`, and switch it on."""
STDIO = ("multi-line", "noise", "ignores-eof", "spins-after-eof", "blocks-on-stderr")
"""Faults that are there over stdio only."""
HTTP = (
    "any-host",
    "any-origin",
    "cors-bad",
    "session-unchecked",
    "session-guessable",
    "restart-not-404",
    "sessions-leak",
    "header-mismatch-ok",
    *AUTH,
)
"""Faults that are there over HTTP only."""

fault = "good"


def has(name: str) -> bool:
    """Returns True when that fault is switched on."""
    return fault == name


# -- process ----------------------------------------------------------------------------------------------------------


def _no_start() -> None:
    print("sh: 1: no-such-server: not found", file=sys.stderr)
    sys.exit(127)


def _dies_early() -> None:
    raise ImportError("No module named 'nowhere'")


def _orphan() -> None:
    nothing = subprocess.DEVNULL
    child = subprocess.Popen(
        ["sleep", str(SECONDS_OF_LIFE or 600)], stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True
    )
    print(f"child {child.pid}", file=sys.stderr, flush=True)


def _spin() -> None:
    while True:
        sys.stdin.buffer.readline()


START_OF: dict[str, Callable[[], object]] = {
    "no-start": _no_start,
    "dies-early": _dies_early,
    "slow-start": lambda: time.sleep(3),
    "noise": lambda: print("Zoo 1.0 is open!", flush=True),
    "ignores-term": lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN),
    "orphan": _orphan,
}
"""Faults at the start."""

END_OF: dict[str, Callable[[], object]] = {
    "ignores-eof": lambda: threading.Event().wait(),
    "spins-after-eof": _spin,
}
"""Faults after the end of stdin."""

# -- tools ------------------------------------------------------------------------------------------------------------

NUMBER: Json = {"type": "number", "description": "A number."}
TEXT: Json = {"type": "string", "description": "A text."}


def takes(**properties: Json) -> Json:
    """The input schema of a tool that needs all of these and takes nothing else."""
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


TREE = takes(label=TEXT, below={"type": "array", "items": {"$ref": "#/$defs/Tree"}, "description": "Trees."})
READS: Json = {"readOnlyHint": True, "openWorldHint": False}
TOOLS: list[Json] = [
    {
        "name": "add",
        "title": "Add",
        "description": "Adds two numbers.",
        "inputSchema": takes(a=NUMBER, b=NUMBER),
        "outputSchema": takes(sum=NUMBER),
        "annotations": READS,
    },
    {
        "name": "slow",
        "title": "Slow",
        "description": "Takes its time, and reports each step.",
        "inputSchema": takes(
            steps={"type": "integer", "minimum": 1, "maximum": 1000, "description": "Steps, of 50 ms each."}
        ),
        "annotations": READS,
    },
    {
        "name": "image",
        "title": "Image",
        "description": "Gives an image of one pixel.",
        "inputSchema": takes(),
        "annotations": READS,
    },
    {
        "name": "fail",
        "title": "Fail",
        "description": "Fails always, which is a result.",
        "inputSchema": takes(),
        "annotations": READS,
    },
    {
        "name": "ask",
        "title": "Ask",
        "description": "Asks the user for a name.",
        "inputSchema": takes(),
        "annotations": READS,
    },
    {
        "name": "touch",
        "title": "Touch",
        "description": "Changes the text of a note.",
        "inputSchema": takes(uri={"type": "string", "description": "The URI of the note."}),
        "annotations": {"readOnlyHint": False, "destructiveHint": False, "openWorldHint": False},
    },
]


def one_more(name: str, schema: Json, **more: Any) -> Callable[[list[Json]], list[Json]]:
    """Returns what adds one tool at the end of a list."""
    tool = {"name": name, "title": name, "description": "Does nothing.", "inputSchema": schema, **more}
    return lambda tools: [*tools, {"annotations": READS, **tool}]


def _chain(levels: int) -> Json:
    """A schema that goes as deep as that, each level by a reference."""
    defs: Json = {f"L{at}": takes(next={"$ref": f"#/$defs/L{at + 1}"}) for at in range(levels)}
    defs[f"L{levels}"] = TEXT
    return {**takes(top={"$ref": "#/$defs/L0"}), "$defs": defs}


def _undescribed(tools: list[Json]) -> list[Json]:
    del tools[0]["description"]
    return tools


_turns = 0


def _turned(tools: list[Json]) -> list[Json]:
    at = _turns % len(tools)
    return tools[at:] + tools[:at]


TOOLS_OF: dict[str, Callable[[list[Json]], list[Json]]] = {
    "no-description": _undescribed,
    "odd-name": one_more("my tool!", takes()),
    "host-name": one_more("notes.read", takes()),
    "twin-names": one_more("add", takes()),
    "no-properties": one_more("extra", {"type": "object", "additionalProperties": False}),
    "not-strict": one_more("extra", {**takes(a=TEXT, b=TEXT), "required": ["a"]}),
    "array-no-items": one_more("extra", takes(list={"type": "array", "description": "A list."})),
    "top-anyOf": one_more("extra", {**takes(a=TEXT, b=TEXT), "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
    "odd-key": one_more("extra", takes(**{"$filter": TEXT})),
    "gemini-keyword": one_more("extra", takes(above={**NUMBER, "exclusiveMinimum": 0})),
    "bad-schema": one_more("extra", takes(a={"type": "strng", "description": "A text."})),
    "deep-ref": one_more("extra", _chain(20)),
    "circular-ref": one_more("extra", {**takes(tree={"$ref": "#/$defs/Tree"}), "$defs": {"Tree": TREE}}),
    "remote-ref": one_more("extra", takes(a={"$ref": "https://schemas.example/text.json"})),
    "output-no-object": one_more("extra", takes(), outputSchema={"properties": {"text": TEXT}}),
    "too-big": lambda tools: [*tools, *({**tools[2], "name": f"image_{at}"} for at in range(200))],
    "hints-contradict": one_more("extra", takes(), annotations={"readOnlyHint": True, "destructiveHint": True}),
    "order-shifts": _turned,
}
"""Faults of the list of tools."""

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="  # one pixel
NOTES: OrderedDict[str, str] = OrderedDict(
    {"note://one": "The first note.", "note://two": "The second note.", "note://three": "The third note."}
)
TEMPLATE = "greeting://{name}"
NAMES = ("ada", "alan", "barbara", "edsger", "grace")
STYLES = ("formal", "plain")
FORM: Json = {
    "type": "object",
    "properties": {"name": {"type": "string", "title": "Name", "description": "Your name.", "maxLength": 100}},
    "required": ["name"],
}
SEAL = secrets.token_bytes(32)
"""The key of request states."""


class RefusedError(Exception):
    """A request that is answered with an error."""

    def __init__(self, code: int, message: str, data: Any = None, status: int = 200) -> None:
        super().__init__(message)
        self.error: Json = {"code": code, "message": message, **({} if data is None else {"data": data})}
        self.status = status


class SilentError(Exception):
    """A request that is not answered: it was cancelled, or a fault leaves it."""


# -- peers and calls --------------------------------------------------------------------------------------------------


class Peer:
    """A client of the older revisions: the one of this process, or one session over HTTP."""

    def __init__(self, send: Callable[[Json], None]) -> None:
        self.send = send
        self.revision: str | None = None
        self.capabilities: Json = {}
        self.level = "info"
        self.subscribed: set[str] = set()
        self.calls: dict[str | int, Call] = {}
        self.asked: dict[str, SimpleQueue[Json | None]] = {}
        self.asked_ever = 0


class Call:
    """One request, and all that is known of who has sent it."""

    def __init__(self, message: Json, revision: str, emit: Callable[[Json], None], peer: Peer) -> None:
        self.id: str | int = message["id"]
        self.method: str = message["method"]
        self.params: Json = message.get("params", {})
        self.meta: Json = self.params.get("_meta") or {}
        self.revision = revision
        self.modern = revision == MODERN
        self.peer = peer
        self.emit = emit
        self.cancelled = threading.Event()
        self.woken: SimpleQueue[Json | None] = SimpleQueue()
        self.capabilities: Json = (self.meta.get(CAPABILITIES) or {}) if self.modern else peer.capabilities

    def cancel(self) -> None:
        """Ends it without an answer."""
        self.cancelled.set()
        self.woken.put(None)

    def progress(self, done: int, total: int, text: str) -> None:
        """Reports progress to who wants it."""
        token = self.meta.get("progressToken")
        if token is not None:
            said: Json = {"progressToken": token, "progress": done, "total": total}
            if self.revision >= "2025-03-26":
                said["message"] = text
            self.emit({"jsonrpc": "2.0", "method": "notifications/progress", "params": said})

    def log(self, level: str, data: Any) -> None:
        """Logs to who wants it."""
        wanted = self.meta.get(LOG_LEVEL) if self.modern else self.peer.level
        if wanted is not None and LEVELS.index(level) >= LEVELS.index(wanted):
            said = {"level": level, "logger": "zoo", "data": data}
            self.emit({"jsonrpc": "2.0", "method": "notifications/message", "params": said})

    def ask(self, method: str, params: Json) -> Json:
        """Asks the client, in the older revisions, and waits for what it says."""
        self.peer.asked_ever += 1
        name = f"zoo-{self.peer.asked_ever}"
        self.peer.asked[name] = self.woken
        try:
            self.emit({"jsonrpc": "2.0", "id": name, "method": method, "params": params})
            answer = self.woken.get(timeout=60)
        except Empty:
            raise RefusedError(-32603, "the client gave no answer in 60 s") from None
        finally:
            self.peer.asked.pop(name, None)
        if answer is None:
            raise SilentError
        if "error" in answer:
            raise RefusedError(-32603, f"the client refused: {answer['error'].get('message')}")
        result: Json = answer["result"]
        return result


LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
peers: list[Peer] = []
listenings: list[tuple[Call, set[str]]] = []
"""Calls of subscriptions/listen with the URIs they want to hear of."""
lock = threading.Lock()


def changed(uri: str) -> None:
    """Tells of a note that has changed."""
    said: Json = {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri}}
    with lock:
        told = [peer for peer in peers if uri in peer.subscribed]
        heard = [call for call, uris in listenings if uri in uris]
    for peer in told:
        peer.send(said)
    for call in heard:
        call.emit({**said, "params": {"uri": uri, "_meta": {SUBSCRIPTION: call.id}}})


# -- methods ----------------------------------------------------------------------------------------------------------


def server_info(revision: str) -> Json:
    """Name and version of this server."""
    if has("no-info"):
        return {}
    return {"name": "zoo", "version": "1.0", **({"title": "Zoo"} if revision >= "2025-06-18" else {})}


def capabilities(revision: str) -> Json:
    """Capabilities of this server."""
    found: Json = {"logging": {}, "prompts": {}, "resources": {"subscribe": True}, "tools": {}}
    if revision >= "2025-03-26":
        found["completions"] = {}
    if has("undeclared"):
        del found["tools"]
    return found


INSTRUCTIONS = "Tools of a small zoo. Its café is closed."


def initialize(call: Call) -> Json:
    """Opens a session of an older revision."""
    wanted = text(call, "protocolVersion")
    agreed = wanted if wanted in LEGACY or has("wrong-revision") else LEGACY[-1]
    call.peer.revision = agreed
    given = call.params.get("capabilities")
    call.peer.capabilities = given if isinstance(given, dict) else {}
    return {
        "protocolVersion": agreed,
        "capabilities": capabilities(agreed),
        "serverInfo": server_info(agreed),
        "instructions": INSTRUCTIONS,
    }


def discover(call: Call) -> Json:
    """Tells of this server in 2026-07-28."""
    return {"supportedVersions": [MODERN], "capabilities": capabilities(MODERN), "instructions": INSTRUCTIONS}


def ping(call: Call) -> Json:
    """Gives a sign of life."""
    if has("ping-silent"):
        raise SilentError
    return {}


def text(call: Call, name: str) -> str:
    """A parameter that has to be a text."""
    value = call.params.get(name)
    if not isinstance(value, str):
        raise RefusedError(-32602, f"params.{name}: expected a string")
    return value


def page(call: Call, member: str, items: list[Json]) -> Json:
    """One page of a list."""
    cursor = call.params.get("cursor")
    at = 0
    if cursor is not None:
        known = {base64.b64encode(f"{member}:{at}".encode()).decode(): at for at in range(PAGE, len(items), PAGE)}
        if cursor in known:
            at = known[cursor]
        elif not has("bad-cursor-ok"):
            raise RefusedError(-32602, "params.cursor: not one of this list")
    found: Json = {member: items[at : at + PAGE]}
    following = PAGE if has("cursor-loop") else at + PAGE
    if following < len(items):
        found["nextCursor"] = base64.b64encode(f"{member}:{following}".encode()).decode()
    return found


def all_tools(revision: str) -> list[Json]:
    """The tools as that revision has them."""
    tools = TOOLS_OF.get(fault, list)(copy.deepcopy(TOOLS))
    unknown = {"2024-11-05": ("annotations", "title", "outputSchema"), "2025-03-26": ("title", "outputSchema")}
    return [{key: tool[key] for key in tool if key not in unknown.get(revision, ())} for tool in tools]


def list_tools(call: Call) -> Json:
    """A page of the tools."""
    if has("tools-lie"):
        raise unknown_method(call)
    if call.params.get("cursor") is None:
        global _turns
        _turns += 1
    return page(call, "tools", all_tools(call.revision))


def list_resources(call: Call) -> Json:
    """A page of the notes."""
    if has("lists-lie"):
        raise unknown_method(call)
    note: Json = {"mimeType": "text/plain", "description": "A note."}
    return page(call, "resources", [{"uri": uri, "name": uri[7:], **note} for uri in NOTES])


def list_templates(call: Call) -> Json:
    """The one template."""
    template = {"uriTemplate": TEMPLATE, "name": "greeting", "description": "A greeting.", "mimeType": "text/plain"}
    return page(call, "resourceTemplates", [template])


def read(call: Call) -> Json:
    """Reads a note or a greeting."""
    uri = text(call, "uri")
    found = NOTES.get(uri)
    if found is None and uri.startswith("greeting://") and len(uri) > 11:
        found = f"Hello, {urllib.parse.unquote(uri[11:])}!"
    if found is None:
        raise no_resource(call, uri)
    return {"contents": [{"uri": uri, "mimeType": "text/plain", "text": found}]}


def no_resource(call: Call, uri: str) -> RefusedError:
    """The refusal of a URI that is not there."""
    return RefusedError(-32602 if call.modern else -32002, "Resource not found", {"uri": uri})


def subscribe(call: Call) -> Json:
    """Wants to hear of a note, or no longer."""
    uri = text(call, "uri")
    if has("subscribe-lies"):
        raise unknown_method(call)
    if uri not in NOTES:
        raise no_resource(call, uri)
    if call.method == "resources/subscribe":
        call.peer.subscribed.add(uri)
    else:
        call.peer.subscribed.discard(uri)
    return {}


def listen(call: Call) -> Json:
    """Tells of changes until the client goes, in 2026-07-28."""
    if has("subscribe-lies"):
        raise unknown_method(call)
    wanted = call.params.get("notifications")
    if not isinstance(wanted, dict):
        raise RefusedError(-32602, "params.notifications: expected an object")
    given = wanted.get("resourceSubscriptions")
    uris = [uri for uri in given if uri in NOTES] if isinstance(given, list) else []
    honoured = {"resourceSubscriptions": uris} if given is not None else {}
    said: Json = {"_meta": {SUBSCRIPTION: call.id}, "notifications": honoured}
    entry = (call, set(uris))
    with lock:
        listenings.append(entry)
    try:
        call.emit({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": said})
        call.cancelled.wait()
    finally:
        with lock:
            listenings.remove(entry)
    raise SilentError


PROMPTS: list[Json] = [
    {
        "name": "greet",
        "description": "Writes a greeting.",
        "arguments": [
            {"name": "name", "description": "The name of who is greeted.", "required": True},
            {"name": "style", "description": "The style: formal or plain.", "required": False},
        ],
    }
]


def list_prompts(call: Call) -> Json:
    """The one prompt."""
    if has("dies"):
        os._exit(3)
    return page(call, "prompts", PROMPTS)


def get_prompt(call: Call) -> Json:
    """Fills in the prompt."""
    if text(call, "name") != "greet":
        raise RefusedError(-32602, "Unknown prompt")
    given = call.params.get("arguments") or {}
    if not isinstance(given, dict) or not isinstance(given.get("name"), str):
        raise RefusedError(-32602, "arguments.name: expected a string")
    words = f"Write a {given.get('style', 'plain')} greeting for {given['name']}."
    return {
        "description": "A greeting.",
        "messages": [{"role": "user", "content": {"type": "text", "text": words}}],
    }


def complete(call: Call) -> Json:
    """Suggests names and styles."""
    if has("complete-lies"):
        raise unknown_method(call)
    ref, argument = call.params.get("ref"), call.params.get("argument")
    if not isinstance(ref, dict) or not isinstance(argument, dict):
        raise RefusedError(-32602, "params: expected ref and argument")
    place = (ref.get("type"), ref.get("name", ref.get("uri")), argument.get("name"))
    known = {
        ("ref/prompt", "greet", "name"): NAMES,
        ("ref/prompt", "greet", "style"): STYLES,
        ("ref/resource", TEMPLATE, "name"): NAMES,
    }.get(place)  # type: ignore[arg-type]
    if known is None or not isinstance(argument.get("value"), str):
        raise RefusedError(-32602, "params.ref: nothing here is completed")
    values = [name for name in known if name.startswith(argument["value"])]
    return {"completion": {"values": values, "total": len(values), "hasMore": False}}


def set_level(call: Call) -> Json:
    """Chooses which messages of the log come."""
    level = text(call, "level")
    if has("loglevel-lies"):
        raise unknown_method(call)
    if level not in LEVELS:
        raise RefusedError(-32602, f"params.level: expected one of {', '.join(LEVELS)}")
    call.peer.level = level
    return {}


def unknown_method(call: Call) -> RefusedError:
    """The refusal of a method that is not known."""
    return RefusedError(-32601, f"Method not found: {call.method}", status=404 if call.modern else 200)


# -- calls of tools ---------------------------------------------------------------------------------------------------


def said(words: str, **more: Any) -> Json:
    """The result of a tool that is a text."""
    return {"content": [{"type": "text", "text": words}], **more}


def unfit(call: Call, words: str) -> Json:
    """The answer to arguments that do not fit: the model hears of it since 2025-11-25."""
    if call.revision >= "2025-11-25":
        return said(words, isError=True)
    raise RefusedError(-32602, words)


def is_number(value: object, whole: bool = False) -> bool:
    """Returns True for a JSON number."""
    return isinstance(value, int if whole else (int, float)) and not isinstance(value, bool)


def add(call: Call, given: Json) -> Json:
    """Adds two numbers."""
    if not has("bad-args-crash") and not (is_number(given.get("a")) and is_number(given.get("b"))):
        return unfit(call, "a and b: expected two numbers")
    total = given["a"] + given["b"]
    if call.revision < "2025-06-18":
        return said(str(total))
    structured = {"sum": str(total) if has("output-unfit") else total}
    return said(json.dumps(structured), structuredContent=structured)


def slow(call: Call, given: Json) -> Json:
    """Takes its time."""
    steps: Any = given.get("steps")
    if not is_number(steps, whole=True) or not 1 <= steps <= 1000:
        return unfit(call, "steps: expected a whole number from 1 to 1000")
    pause = threading.Event() if has("cancel-ignored") else call.cancelled
    for step in range(1, steps + 1):
        if pause.wait(STEP):
            raise SilentError
        call.progress(steps - step if has("progress-back") else step, steps, f"step {step}")
        call.log("info", f"step {step}")
    return said(f"{steps} steps")


def image(call: Call, given: Json) -> Json:
    """Gives a pixel."""
    data = "this is not base64!" if has("bad-base64") else PIXEL
    return {"content": [{"type": "image", "data": data, "mimeType": "image/png"}]}


def fail(call: Call, given: Json) -> Json:
    """Fails."""
    try:
        raise ValueError("it fails always")
    except ValueError as error:
        return said(traceback.format_exc() if has("trace-leaks") else str(error), isError=True)


def ask(call: Call, given: Json) -> Json:
    """Asks for a name: by a request in the older revisions, by a result that is taken up again in 2026-07-28."""
    asked: Json = {"message": "Who are you?", "requestedSchema": FORM}
    can = isinstance(call.capabilities.get("elicitation"), dict)
    if not call.modern:
        if call.revision < "2025-06-18" or not can:
            return said("this client takes no questions", isError=True)
        answer = call.ask("elicitation/create", asked)
    else:
        if not can:
            needed: Json = {"requiredCapabilities": {"elicitation": {}}}
            raise RefusedError(-32021, "This tool asks the user", needed, status=400)
        state = hmac.new(SEAL, b"ask", hashlib.sha256).hexdigest()
        answers = call.params.get("inputResponses")
        if not isinstance(answers, dict) or not isinstance(answers.get("name"), dict):
            question = {"method": "elicitation/create", "params": {"mode": "form", **asked}}
            return {"resultType": "input_required", "inputRequests": {"name": question}, "requestState": state}
        if not hmac.compare_digest(str(call.params.get("requestState")), state):
            raise RefusedError(-32602, "params.requestState: not one of this server")
        answer = answers["name"]
    if answer.get("action") != "accept" or not isinstance(answer.get("content"), dict):
        return said("no name was given")
    return said(f"Hello, {answer['content'].get('name')}!")


def touch(call: Call, given: Json) -> Json:
    """Changes a note."""
    uri: Any = given.get("uri")
    if uri not in NOTES:
        return unfit(call, "uri: expected the URI of a note")
    NOTES[uri] = NOTES[uri].rstrip("!") + "!"
    changed(uri)
    return said("touched")


RUN: dict[str, Callable[[Call, Json], Json]] = {
    "add": add,
    "slow": slow,
    "image": image,
    "fail": fail,
    "ask": ask,
    "touch": touch,
}


def call_tool(call: Call) -> Json:
    """Calls a tool."""
    name, given = text(call, "name"), call.params.get("arguments", {})
    if not isinstance(given, dict):
        raise RefusedError(-32602, "params.arguments: expected an object")
    if has("blocks-on-stderr"):
        os.write(2, b"." * 65536)
    if name in RUN:
        return RUN[name](call, given)
    if has("unknown-tool-ok") or any(tool["name"] == name for tool in all_tools(call.revision)):
        return said("done", structuredContent={"text": "done"}) if has("output-no-object") else said("done")
    raise RefusedError(-32602, f"Unknown tool: {name}")


# -- answers ----------------------------------------------------------------------------------------------------------

SHARED: dict[str, Callable[[Call], Json]] = {
    "tools/list": list_tools,
    "tools/call": call_tool,
    "resources/list": list_resources,
    "resources/templates/list": list_templates,
    "resources/read": read,
    "prompts/list": list_prompts,
    "prompts/get": get_prompt,
    "completion/complete": complete,
}
METHODS: dict[bool, dict[str, Callable[[Call], Json]]] = {
    False: {
        **SHARED,
        "initialize": initialize,
        "ping": ping,
        "resources/subscribe": subscribe,
        "resources/unsubscribe": subscribe,
        "logging/setLevel": set_level,
    },
    True: {**SHARED, "server/discover": discover, "subscriptions/listen": listen},
}
"""Methods of the older revisions, and of 2026-07-28."""
CACHED = ("server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list")
"""Results that are good for a minute. Those of resources/read are not: `touch` changes them."""


def finished(call: Call, result: Json) -> Json:
    """A result as 2026-07-28 has it."""
    found = {"resultType": "complete", **result, "_meta": {SERVER_INFO: server_info(MODERN)}}
    if call.method in CACHED or call.method == "resources/read":
        found.update(ttlMs=60_000 if call.method in CACHED else 0, cacheScope="public")
    return found


def _without(*names: str) -> Callable[[Json], Json]:
    def leave(answer: Json) -> Json:
        if "result" in answer:
            answer["result"] = {key: value for key, value in answer["result"].items() if key not in names}
        return answer

    return leave


ANSWER_OF: dict[str, Callable[[Json], Json]] = {
    "id-retyped": lambda answer: {**answer, "id": str(answer["id"])},
    "result-and-error": lambda answer: {"result": {}, "error": {"code": 0, "message": "no error"}, **answer},
    "no-resultType": _without("resultType"),
    "no-ttl": _without("ttlMs", "cacheScope"),
}
"""Faults of answers to requests."""


def answered(call: Call) -> tuple[Json, int]:
    """Answers a request; the second is the HTTP status."""
    status = 200
    answer: Json = {"jsonrpc": "2.0", "id": call.id}
    try:
        method = METHODS[call.modern].get(call.method)
        if method is not None:
            result = method(call)
        elif has("unknown-not-32601"):
            result = {}
        else:
            raise unknown_method(call)
        answer["result"] = finished(call, result) if call.modern else result
    except RefusedError as error:
        answer["error"], status = error.error, error.status
    except SilentError:
        raise
    except Exception as error:  # noqa: BLE001 - a server goes on
        answer["error"] = {"code": -32603, "message": f"{type(error).__name__}: {error}"}
    if call.cancelled.is_set() and not has("cancel-ignored"):
        raise SilentError
    return ANSWER_OF.get(fault, dict)(answer), status


def refusal(message: object, error: RefusedError, revision: str | None) -> Json:
    """The answer to a message that is refused before it is a call; without an id if there is none that is readable."""
    name = message.get("id") if isinstance(message, dict) else None
    answer: Json = {"jsonrpc": "2.0", "error": error.error}
    if is_id(name):
        answer["id"] = name
    elif revision is not None and revision < "2025-11-25":
        answer["id"] = None
    return answer


def is_id(value: object) -> bool:
    """Returns True for what may be an id."""
    return isinstance(value, str) or is_number(value, whole=True)


def kind(message: object) -> str:
    """The kind of a message: request, notification or response."""
    if isinstance(message, dict) and message.get("jsonrpc") == "2.0":
        if isinstance(message.get("method"), str):
            if not isinstance(message.get("params", {}), dict):
                raise RefusedError(-32602, "params: expected an object", status=400)
            if "id" not in message:
                return "notification"
            if is_id(message["id"]):
                return "request"
        elif is_id(message.get("id")) and ("result" in message) != ("error" in message):
            return "response"
    raise RefusedError(-32600, "Invalid Request", status=400)


def envelope(message: Json) -> Json:
    """The `_meta` of a message."""
    meta = message.get("params", {}).get("_meta")
    return meta if isinstance(meta, dict) else {}


def speaks_modern() -> bool:
    """Returns True unless a fault makes this a server of the older revisions."""
    return not has("probe-hangs") and not has("probe-kills")


def check_envelope(meta: Json) -> None:
    """Refuses what is not the envelope of 2026-07-28."""
    if has("takes-no-meta") and VERSION not in meta:
        return
    if not isinstance(meta.get(VERSION), str) or not isinstance(meta.get(CAPABILITIES), dict):
        raise RefusedError(-32602, f"params._meta: expected {VERSION} and {CAPABILITIES}", status=400)
    if meta[VERSION] != MODERN:
        data = {"supported": [MODERN], "requested": meta[VERSION]}
        raise RefusedError(-32022, "Unsupported protocol version", data, status=400)
    if meta.get(LOG_LEVEL) is not None and meta[LOG_LEVEL] not in LEVELS:
        raise RefusedError(-32602, f"params._meta.{LOG_LEVEL}: expected one of {', '.join(LEVELS)}")


def is_long(call: Call) -> bool:
    """Returns True for calls that take time, which others do not wait for."""
    name = call.params.get("name")
    return call.method == "subscriptions/listen" or (call.method == "tools/call" and name in ("slow", "ask"))


def told(peer: Peer, message: Json) -> None:
    """Takes a notification."""
    given = message.get("params", {})
    if message["method"] == "notifications/cancelled":
        call = peer.calls.get(given["requestId"]) if is_id(given.get("requestId")) else None
        if call is not None and call.method != "initialize":
            call.cancel()
    elif message["method"] == "notifications/initialized" and has("asks-undeclared"):
        sampling = {"messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}], "maxTokens": 10}
        for name, method, params in (
            ("zoo-roots", "roots/list", {}),
            ("zoo-sampling", "sampling/createMessage", sampling),
            ("zoo-form", "elicitation/create", {"message": "Who are you?", "requestedSchema": FORM}),
        ):
            peer.send({"jsonrpc": "2.0", "id": name, "method": method, "params": params})


def replied(peer: Peer, message: Json) -> None:
    """Takes a response to a question of this server."""
    waiting = peer.asked.get(message["id"]) if isinstance(message["id"], str) else None
    if waiting is not None:
        waiting.put(message)


def started(peer: Peer, call: Call) -> None:
    """Refuses calls beyond what is held at once, and those with an id that is in use."""
    if call.id in peer.calls:
        raise RefusedError(-32600, "id: in use", status=400)
    if len(peer.calls) >= MAX_CALLS:
        raise RefusedError(-32603, "too many calls at once")
    peer.calls[call.id] = call


def encoded(message: Json | list[Json]) -> bytes:
    """A message as it is sent."""
    written = json.dumps(message, ensure_ascii=False, indent=2 if has("multi-line") else None)
    return written.encode("latin-1" if has("not-utf8") else "utf-8", "replace")


def decoded(body: bytes) -> Any:
    """A message as it was meant."""
    try:
        return json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError):
        if has("garbage-kills"):
            os._exit(1)
        raise RefusedError(-32700, "Parse error", status=400) from None


# -- stdio ------------------------------------------------------------------------------------------------------------


class Stdio:
    """A client at stdin and stdout."""

    def __init__(self) -> None:
        self.peer = Peer(self.write)
        self.writing = threading.Lock()
        peers.append(self.peer)

    def write(self, message: Json | list[Json]) -> None:
        """Writes a message in a line."""
        try:
            with self.writing:
                sys.stdout.buffer.write(encoded(message) + b"\n")
                sys.stdout.buffer.flush()
        except OSError:
            os._exit(0)

    def serve(self) -> None:
        """Serves until the end of stdin."""
        for line in self.lines():
            if line.strip():
                self.take(line)
        END_OF.get(fault, lambda: None)()
        os._exit(0)

    def lines(self) -> Iterator[bytes]:
        """Reads lines; one that is too long is no JSON."""
        while line := sys.stdin.buffer.readline(MAX_BYTES):
            while not line.endswith(b"\n") and len(line) >= MAX_BYTES:
                line = b"{" + sys.stdin.buffer.readline(MAX_BYTES)
            yield line

    def take(self, line: bytes) -> None:
        """Takes a line."""
        message: object = None
        try:
            message = decoded(line)
            if isinstance(message, list) and message and self.peer.revision == "2025-03-26":
                threading.Thread(target=self.batch, args=(message,), daemon=True).start()
                return
            self.one(message, self.write)
        except RefusedError as error:
            self.write(refusal(message, error, self.peer.revision))

    def batch(self, messages: list[Any]) -> None:
        """Answers several messages together (2025-03-26)."""
        answers: list[Json] = []
        for message in messages:
            try:
                self.one(message, answers.append, inline=True)
            except RefusedError as error:
                answers.append(refusal(message, error, self.peer.revision))
        if answers:
            self.write(answers)

    def one(self, message: Any, reply: Callable[[Json], None], inline: bool = False) -> None:
        """Takes one message."""
        what = kind(message)
        if what == "notification":
            told(self.peer, message)
            return
        if what == "response":
            replied(self.peer, message)
            return
        if message["method"] == "server/discover" and not speaks_modern():
            if has("probe-kills"):
                raise KeyError(message["method"])
            return
        call = Call(message, self.revision(message), self.write, self.peer)
        started(self.peer, call)
        if is_long(call) and not inline:
            threading.Thread(target=self.run, args=(call, reply), daemon=True).start()
        else:
            self.run(call, reply)

    def revision(self, message: Json) -> str:
        """The revision that a request is of."""
        meta, agreed = envelope(message), self.peer.revision
        if VERSION in meta and speaks_modern():
            check_envelope(meta)
            return MODERN
        if message["method"] in ("initialize", "ping"):
            return agreed or LEGACY[-1]
        if agreed is None and speaks_modern():
            check_envelope(meta)
            return MODERN
        if agreed is None:
            raise RefusedError(-32600, "initialize comes first")
        return agreed

    def run(self, call: Call, reply: Callable[[Json], None]) -> None:
        """Answers a request, unless it was cancelled."""
        with contextlib.suppress(SilentError):
            reply(self.done(call))
        self.peer.calls.pop(call.id, None)

    def done(self, call: Call) -> Json:
        """Answers a request."""
        try:
            return answered(call)[0]
        finally:
            self.peer.calls.pop(call.id, None)


# -- HTTP -------------------------------------------------------------------------------------------------------------


class Outbox:
    """Messages on their way to a client, for a thread that also watches for that client's going away."""

    def __init__(self, waiting: Iterator[Json] | None = None) -> None:
        self.messages: deque[Json | None] = deque(waiting or (), MAX_BACKLOG)
        self.reader, self.writer = socket.socketpair()
        self.writer.setblocking(False)

    def put(self, message: Json | None) -> None:
        """Sends a message; None is the end."""
        self.messages.append(message)
        with contextlib.suppress(OSError):  # awake already
            self.writer.send(b".")

    def close(self) -> None:
        """Ends it."""
        self.reader.close()
        self.writer.close()


class Session(Peer):
    """A session over HTTP."""

    def __init__(self) -> None:
        super().__init__(self.push)
        self.waiting: deque[Json] = deque(maxlen=MAX_BACKLOG)
        self.outbox: Outbox | None = None

    def push(self, message: Json) -> None:
        """Sends a message on the stream of the session, or keeps it until there is one."""
        if self.outbox is not None:
            self.outbox.put(message)
        else:
            self.waiting.append(message)


sessions: OrderedDict[str, Session] = OrderedDict()
kept: list[bytes] = []
"""Bytes that the fault `sessions-leak` keeps."""


def new_session() -> tuple[str, Session]:
    """Opens a session; the oldest of too many ends."""
    session = Session()
    with lock:
        name = f"session-{len(sessions) + 1:04}" if has("session-guessable") else secrets.token_urlsafe(32)
        sessions[name] = session
        peers.append(session)
        oldest = next(iter(sessions)) if len(sessions) > MAX_SESSIONS else None
    if oldest is not None:
        end_session(oldest)
    return name, session


def end_session(name: str) -> None:
    """Ends a session, and its calls."""
    with lock:
        session = sessions.pop(name)
        peers.remove(session)
    for call in [*session.calls.values()]:
        call.cancel()
    if session.outbox is not None:
        session.outbox.put(None)
    if has("sessions-leak"):
        kept.append(os.urandom(1 << 18))


def is_loopback(url: str) -> bool:
    """Returns True for a URL on this machine."""
    try:
        return urllib.parse.urlsplit(url).hostname in ("127.0.0.1", "localhost", "::1")
    except ValueError:
        return False


class Handler(BaseHTTPRequestHandler):
    """Streamable HTTP, in all revisions that have it."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 600
    server: Server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
        """Says nothing."""

    # - answers

    def headers_of_all(self) -> None:
        """Sends the headers that every answer has."""
        origin = self.headers.get("Origin")
        if origin is None:
            return
        if has("cors-bad"):
            self.send_header("Access-Control-Allow-Origin", "*")
            self.send_header("Access-Control-Allow-Credentials", "true")
            return
        self.send_header("Access-Control-Allow-Origin", origin)
        self.send_header("Access-Control-Expose-Headers", "Mcp-Session-Id, WWW-Authenticate")
        self.send_header("Vary", "Origin")

    def reply(self, status: int, body: Json | list[Json] | None = None, **headers: str) -> None:
        """Sends a whole answer."""
        content = b"" if body is None else encoded(body)
        self.send_response(status)
        self.headers_of_all()
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if body is not None:
            self.send_header("Content-Type", "application/json")
        if status != 204:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def refuse(self, message: object, error: RefusedError, revision: str | None = None) -> None:
        """Sends a refusal."""
        self.reply(error.status, refusal(message, error, revision))

    def stream(self, outbox: Outbox, *, at_once: bool = False) -> bool:
        """Sends what comes as an event stream. False: the client has gone."""
        watched: list[Any] = [self.connection, outbox.reader]
        opened = False
        try:
            if at_once:
                opened = self.open_stream()
            while True:
                while outbox.messages:
                    message = outbox.messages.popleft()
                    opened = opened or self.open_stream()
                    if message is None:
                        self.wfile.write(b"0\r\n\r\n")
                        return True
                    event = b"event: message\ndata: " + encoded(message).replace(b"\n", b"\ndata: ") + b"\n\n"
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
                ready = select.select(watched, [], [])[0]
                if outbox.reader in ready:
                    outbox.reader.recv(4096)
                if self.connection in ready:
                    if not self.connection.recv(1, socket.MSG_PEEK):
                        break
                    watched.remove(self.connection)
        except OSError:
            pass
        self.close_connection = True
        return False

    def open_stream(self) -> bool:
        """Sends the head of an event stream."""
        self.send_response(200)
        self.headers_of_all()
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Accel-Buffering", "no")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        return True

    # - checks

    def admitted(self, *, token: bool = True) -> bool:
        """Checks where a request comes from and what it is for; answers what is refused."""
        if not is_loopback(f"//{self.headers.get('Host', '')}") and not has("any-host"):
            self.refuse(None, RefusedError(-32600, "Host: not of this server", status=403))
            return False
        origin = self.headers.get("Origin")
        if origin is not None and not is_loopback(origin) and not has("any-origin"):
            self.refuse(None, RefusedError(-32600, "Origin: not allowed", status=403))
            return False
        if urllib.parse.urlsplit(self.path).path != "/mcp":
            self.refuse(None, RefusedError(-32600, "not found", status=404))
            return False
        if token and self.server.guard is not None and not self.server.guard.admits(self.headers.get("Authorization")):
            challenge = f'Bearer resource_metadata="{self.server.origin}{METADATA}", scope="zoo"'
            headers = {} if has("no-challenge") else {"WWW_Authenticate": challenge}
            self.reply(401, refusal(None, RefusedError(-32600, "a token is needed"), None), **headers)
            return False
        return True

    def session(self) -> tuple[str, Session]:
        """The session that a request names."""
        name = self.headers.get("Mcp-Session-Id")
        with lock:
            found = sessions.get(name) if name is not None else None
        if found is not None and name is not None:
            return name, found
        if has("session-unchecked"):
            anyone = Session()
            anyone.revision = LEGACY[-1]
            return "", anyone
        if name is None:
            raise RefusedError(-32600, "Mcp-Session-Id: missing", status=400)
        raise RefusedError(-32001, "Session not found", status=400 if has("restart-not-404") else 404)

    def check_headers(self, message: Json) -> None:
        """Compares the headers of 2026-07-28 with the message."""
        meta = envelope(message)
        if VERSION in meta and self.headers.get("MCP-Protocol-Version") != meta[VERSION]:
            raise RefusedError(-32020, "MCP-Protocol-Version: not that of the body", status=400)
        check_envelope(meta)
        if has("header-mismatch-ok"):
            return
        method, given = message["method"], message.get("params", {})
        if self.headers.get("Mcp-Method") != method:
            raise RefusedError(-32020, "Mcp-Method: not that of the body", status=400)
        named = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}.get(method)
        if named is not None and plain(self.headers.get("Mcp-Name")) != given.get(named):
            raise RefusedError(-32020, "Mcp-Name: not that of the body", status=400)

    # - methods

    def do_POST(self) -> None:
        """Takes a message."""
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > MAX_BYTES:
            self.close_connection = True
            self.refuse(None, RefusedError(-32600, "Content-Length: missing or too much", status=413))
            return
        body = self.rfile.read(int(length))
        if not self.admitted():
            return
        message: Any = None
        try:
            if self.headers.get("Content-Type", "").split(";")[0].strip().lower() != "application/json":
                raise RefusedError(-32600, "Content-Type: expected application/json", status=415)
            message = decoded(body)
            if isinstance(message, list):
                self.batch(message)
                return
            what = kind(message)
            version = self.headers.get("MCP-Protocol-Version")
            if speaks_modern() and (VERSION in envelope(message) or version == MODERN):
                self.modern(what, message)
            else:
                self.legacy(what, message, version)
        except RefusedError as error:
            self.refuse(message, error)

    def modern(self, what: str, message: Json) -> None:
        """Takes a message of 2026-07-28."""
        if what == "response":
            raise RefusedError(-32600, "nothing was asked", status=400)
        if what == "notification":
            self.reply(202)
            return
        self.check_headers(message)
        self.run(message, MODERN, Session(), None)

    def legacy(self, what: str, message: Json, version: str | None) -> None:
        """Takes a message of an older revision."""
        if message.get("method") == "server/discover" and not speaks_modern():
            if has("probe-kills"):
                os._exit(1)
            self.stream(Outbox())
            return
        if version is not None and version not in LEGACY:
            raise RefusedError(-32600, f"MCP-Protocol-Version: expected one of {', '.join(LEGACY)}", status=400)
        if what == "request" and message["method"] == "initialize":
            name, session = new_session()
            self.run(message, LEGACY[-1], session, name)
            return
        _, session = self.session()
        if what == "notification":
            told(session, message)
            self.reply(202)
        elif what == "response":
            replied(session, message)
            self.reply(202)
        else:
            self.run(message, session.revision or LEGACY[-1], session, None)

    def batch(self, messages: list[Any]) -> None:
        """Answers several messages together (2025-03-26)."""
        session = self.session()[1] if self.headers.get("Mcp-Session-Id") else None
        if session is None or session.revision != "2025-03-26" or not messages:
            raise RefusedError(-32600, "batches: of 2025-03-26 only", status=400)
        answers: list[Json] = []
        for message in messages:
            try:
                what = kind(message)
                if what == "notification":
                    told(session, message)
                elif what == "response":
                    replied(session, message)
                else:
                    with contextlib.suppress(SilentError):
                        answers.append(answered(Call(message, session.revision, session.push, session))[0])
            except RefusedError as error:
                answers.append(refusal(message, error, session.revision))
        if answers:
            self.reply(200, answers)
        else:
            self.reply(202)

    def run(self, message: Json, revision: str, session: Session, opened: str | None) -> None:
        """Answers a request: at once, or by a stream if it takes time."""
        outbox = Outbox()
        call = Call(message, revision, outbox.put, session)
        headers = {} if opened is None else {"Mcp_Session_Id": opened}
        try:
            started(session, call)
            if is_long(call):
                threading.Thread(target=self.work, args=(call, outbox), daemon=True).start()
                if not self.stream(outbox) and call.modern:
                    call.cancel()
                return
            try:
                answer, status = answered(call)
            except SilentError:
                self.stream(outbox)
                return
            if opened is not None and "result" not in answer:
                end_session(opened)
                headers = {}
            self.reply(status, answer, **headers)
        finally:
            if not is_long(call):
                session.calls.pop(call.id, None)
                outbox.close()

    def work(self, call: Call, outbox: Outbox) -> None:
        """Answers a request on its stream, in a thread of its own."""
        with contextlib.suppress(SilentError):
            outbox.put(answered(call)[0])
        call.peer.calls.pop(call.id, None)
        outbox.put(None)

    def do_GET(self) -> None:
        """Opens the stream of a session, or shows the metadata of this resource."""
        if self.server.guard is not None and urllib.parse.urlsplit(self.path).path == METADATA:
            self.reply(200, self.server.guard.metadata())
            return
        if not self.admitted():
            return
        try:
            if self.headers.get("Mcp-Session-Id") is None:
                raise RefusedError(-32600, "a stream is of a session", status=405)
            _, session = self.session()
            if "text/event-stream" not in self.headers.get("Accept", ""):
                raise RefusedError(-32600, "Accept: expected text/event-stream", status=406)
        except RefusedError as error:
            self.refuse(None, error)
            return
        outbox = Outbox(iter(session.waiting))
        session.waiting.clear()
        if session.outbox is not None:
            session.outbox.put(None)
        session.outbox = outbox
        self.stream(outbox, at_once=True)
        if session.outbox is outbox:
            session.outbox = None

    def do_DELETE(self) -> None:
        """Ends a session."""
        if not self.admitted():
            return
        try:
            name, _ = self.session()
        except RefusedError as error:
            self.refuse(None, error)
            return
        if name:
            end_session(name)
        self.reply(204)

    def do_OPTIONS(self) -> None:
        """Answers what browsers ask first."""
        if self.admitted(token=False):
            allowed = (
                "Authorization, Content-Type, Last-Event-ID, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Session-Id"
            )
            self.reply(
                204, Access_Control_Allow_Methods="GET, POST, DELETE, OPTIONS", Access_Control_Allow_Headers=allowed
            )


def plain(value: str | None) -> str | None:
    """The value of a header, out of base64 if it is in that."""
    if value is not None and value.startswith("=?base64?") and value.endswith("?="):
        try:
            return base64.b64decode(value[9:-2], validate=True).decode()
        except ValueError:
            return None
    return value


class Server(ThreadingHTTPServer):
    """An HTTP server on the loopback interface."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", port), handler)
        self.origin = f"http://127.0.0.1:{self.server_address[1]}"
        self.guard: Guard | None = None
        self.authority: Authority | None = None

    def handle_error(self, request: object, client_address: object) -> None:
        """Says nothing of clients that go away."""


# -- authorization ----------------------------------------------------------------------------------------------------

METADATA = "/.well-known/oauth-protected-resource/mcp"
SECONDS = 600
"""How long tokens are good."""


class Authority:
    """An authorization server in which everybody is ada, who agrees to everything."""

    def __init__(self) -> None:
        self.server = Server(0, AuthorityHandler)
        self.server.authority = self
        self.issuer = self.server.origin
        self.clients: dict[str, list[str]] = {"zoo": []}
        self.codes: dict[str, Json] = {}
        self.tokens: dict[str, tuple[str | None, float]] = {}
        self.refreshes: dict[str, str | None] = {}
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def document(self) -> Json:
        """The metadata of RFC 8414."""
        return {
            "issuer": f"{self.issuer}/other" if has("issuer-differs") else self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "registration_endpoint": f"{self.issuer}/register",
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token", "client_credentials"],
            "code_challenge_methods_supported": ["plain"] if has("no-S256") else ["S256"],
            "token_endpoint_auth_methods_supported": ["none", "client_secret_basic", "client_secret_post"],
            "authorization_response_iss_parameter_supported": True,
            "scopes_supported": ["zoo"],
        }

    def audience(self, token: str) -> tuple[str | None, float] | None:
        """The resource that a token is for, and when it ends."""
        return self.tokens.get(token)

    def tokened(self, resource: str | None, *, refresh: bool) -> Json:
        """Gives a token for a resource."""
        token = secrets.token_urlsafe(32)
        with lock:
            while len(self.tokens) >= MAX_SESSIONS:
                self.tokens.pop(next(iter(self.tokens)))
            self.tokens[token] = (resource, time.time() + SECONDS)
            given: Json = {"access_token": token, "token_type": "Bearer", "expires_in": SECONDS, "scope": "zoo"}
            if refresh:
                while len(self.refreshes) >= MAX_SESSIONS:
                    self.refreshes.pop(next(iter(self.refreshes)))
                given["refresh_token"] = secrets.token_urlsafe(32)
                self.refreshes[given["refresh_token"]] = resource
        return given

    def registered(self, wanted: Json) -> Json:
        """Registers a client (RFC 7591)."""
        uris = wanted.get("redirect_uris")
        if not isinstance(uris, list) or not uris or not all(isinstance(uri, str) for uri in uris):
            raise RefusedError(0, "invalid_redirect_uri", status=400)
        name = secrets.token_urlsafe(16)
        with lock:
            while len(self.clients) >= MAX_SESSIONS:
                self.clients.pop([*self.clients][1])
            self.clients[name] = uris
        return {**wanted, "client_id": name, "token_endpoint_auth_method": "none"}

    def authorized(self, query: dict[str, str]) -> str:
        """Agrees, and says where the browser goes."""
        uris = self.clients.get(query.get("client_id", ""), [])
        back = query.get("redirect_uri", "")
        if not any(back == uri or same_but_port(back, uri) for uri in uris):
            raise RefusedError(0, "invalid_request", status=400)
        if query.get("code_challenge_method") != "S256" or not query.get("code_challenge"):
            raise RefusedError(0, "invalid_request", status=400)
        code = secrets.token_urlsafe(32)
        with lock:
            while len(self.codes) >= MAX_SESSIONS:
                self.codes.pop(next(iter(self.codes)))
            self.codes[code] = query
        answer = {"code": code, "iss": self.issuer, **({"state": query["state"]} if "state" in query else {})}
        return f"{back}{'&' if '?' in back else '?'}{urllib.parse.urlencode(answer)}"

    def granted(self, form: dict[str, str], basic: str | None) -> Json:
        """Answers the token endpoint."""
        grant = form.get("grant_type")
        if grant == "client_credentials":
            proof = basic or f"{form.get('client_id')}:{form.get('client_secret')}"
            if not hmac.compare_digest(proof.encode(), b"zoo:zoo-secret"):
                raise RefusedError(0, "invalid_client", status=401)
            return self.tokened(form.get("resource"), refresh=False)
        if grant == "refresh_token":
            with lock:
                known = form.get("refresh_token", "") in self.refreshes
                resource = self.refreshes.pop(form.get("refresh_token", ""), None)
            if not known:
                raise RefusedError(0, "invalid_grant", status=400)
            return self.tokened(resource, refresh=True)
        if grant != "authorization_code":
            raise RefusedError(0, "unsupported_grant_type", status=400)
        with lock:
            query = self.codes.pop(form.get("code", ""), {})
        proof_of = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(proof_of).decode().rstrip("=")
        if not query or any(query.get(name) != form.get(name) for name in ("client_id", "redirect_uri")):
            raise RefusedError(0, "invalid_grant", status=400)
        if not hmac.compare_digest(query["code_challenge"], challenge):
            raise RefusedError(0, "invalid_grant", status=400)
        return self.tokened(query.get("resource"), refresh=True)


def same_but_port(uri: str, other: str) -> bool:
    """Returns True for loopback addresses that differ in their ports (RFC 8252)."""
    one, two = urllib.parse.urlsplit(uri), urllib.parse.urlsplit(other)
    return is_loopback(uri) and (one.scheme, one.hostname, one.path) == (two.scheme, two.hostname, two.path)


class AuthorityHandler(BaseHTTPRequestHandler):
    """The endpoints of the authorization server."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 60
    server: Server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
        """Says nothing."""

    def reply(self, status: int, body: Json, **headers: str) -> None:
        """Sends an answer."""
        content = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content_Type": "application/json", "Cache_Control": "no-store", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self) -> None:
        """Shows the document, or agrees to a login."""
        authority, asked = self.server.authority, urllib.parse.urlsplit(self.path)
        if authority is not None and asked.path == "/.well-known/oauth-authorization-server":
            self.reply(200, authority.document())
        elif authority is not None and asked.path == "/authorize":
            try:
                place = authority.authorized(dict(urllib.parse.parse_qsl(asked.query)))
                self.reply(302, {}, Location=place)
            except RefusedError as error:
                self.reply(error.status, {"error": str(error)})
        else:
            self.reply(404, {"error": "not_found"})

    def do_POST(self) -> None:
        """Registers a client, or gives a token."""
        authority, length = self.server.authority, self.headers.get("Content-Length", "")
        if authority is None or not length.isdigit() or int(length) > MAX_BYTES:
            self.close_connection = True
            self.reply(413, {"error": "invalid_request"})
            return
        body = self.rfile.read(int(length))
        scheme, _, proof = self.headers.get("Authorization", "").partition(" ")
        try:
            if self.path == "/register":
                self.reply(201, authority.registered(json.loads(body)))
            elif self.path == "/token":
                basic = base64.b64decode(proof).decode() if scheme.lower() == "basic" else None
                self.reply(200, authority.granted(dict(urllib.parse.parse_qsl(body.decode())), basic))
            else:
                self.reply(404, {"error": "not_found"})
        except RefusedError as error:
            self.reply(error.status, {"error": str(error)})
        except (ValueError, AttributeError):
            self.reply(400, {"error": "invalid_request"})


class Provider:
    """An authorization server of somebody else, whose tokens are JWTs with RS256."""

    def __init__(self, issuer: str) -> None:
        self.issuer = issuer
        self.keys: dict[str, tuple[int, int]] = {}

    def audience(self, token: str) -> tuple[str | None, float] | None:
        """The resource that a token is for, and when it ends."""
        try:
            head, claims, signature = token.split(".")
            named, said_of = json.loads(unbase64(head)), json.loads(unbase64(claims))
            if named.get("alg") != "RS256" or said_of.get("iss") != self.issuer:
                return None
            if named.get("kid") not in self.keys:
                self.keys = self.published()
            if not signed(f"{head}.{claims}".encode(), unbase64(signature), self.keys[named["kid"]]):
                return None
            aud = said_of.get("aud")
            return (aud[0] if isinstance(aud, list) and len(aud) == 1 else aud), float(said_of["exp"])
        except (ValueError, KeyError, TypeError, OSError):
            return None

    def published(self) -> dict[str, tuple[int, int]]:
        """Fetches the keys of the issuer."""
        document = fetched(f"{self.issuer}/.well-known/openid-configuration")
        keys = fetched(document["jwks_uri"])["keys"]
        return {key["kid"]: (whole(key["n"]), whole(key["e"])) for key in keys if key.get("kty") == "RSA"}


def fetched(url: str) -> Json:
    """Fetches a JSON document."""
    with urllib.request.urlopen(url, timeout=5) as answer:
        found: Json = json.loads(answer.read(MAX_BYTES))
        return found


def unbase64(value: str) -> bytes:
    """Bytes out of base64url without padding."""
    return base64.urlsafe_b64decode(value + "=" * (-len(value) % 4))


def whole(value: str) -> int:
    """A number out of base64url."""
    return int.from_bytes(unbase64(value), "big")


def signed(message: bytes, signature: bytes, key: tuple[int, int]) -> bool:
    """Checks an RS256 signature: RSASSA-PKCS1-v1_5 of RFC 8017."""
    modulus, exponent = key
    size = (modulus.bit_length() + 7) // 8
    found = pow(int.from_bytes(signature, "big"), exponent, modulus).to_bytes(size, "big")
    digest = bytes.fromhex("3031300d060960864801650304020105000420") + hashlib.sha256(message).digest()
    return hmac.compare_digest(found, b"\x00\x01" + b"\xff" * (size - len(digest) - 3) + b"\x00" + digest)


class Guard:
    """Admits who has a token for this server."""

    def __init__(self, resource: str, by: Authority | Provider) -> None:
        self.resource = resource
        self.by = by

    def admits(self, header: str | None) -> bool:
        """Returns True for a good token."""
        scheme, _, token = (header or "").partition(" ")
        known = self.by.audience(token.strip()) if scheme.lower() == "bearer" else None
        if known is None or known[1] < time.time():
            return False
        return known[0] == self.resource or has("foreign-audience-ok")

    def metadata(self) -> Json:
        """The metadata of RFC 9728."""
        return {
            "resource": self.resource.replace("/mcp", "/other") if has("resource-differs") else self.resource,
            "authorization_servers": [] if has("no-metadata") else [self.by.issuer],
            "scopes_supported": ["zoo"],
            "bearer_methods_supported": ["header"],
        }


def serve_http(port: int, *, auth: bool, provider: str | None) -> None:
    """Serves HTTP until the process is ended."""
    server = Server(port, Handler)
    url = f"{server.origin}/mcp"
    if auth or provider is not None:
        server.guard = Guard(url, Authority() if provider is None else Provider(provider))
    print(f"ready {url}", file=sys.stderr, flush=True)
    server.serve_forever()


def main() -> None:
    """Reads the command line, and serves."""
    global fault
    if hasattr(sys.stderr, "reconfigure"):
        sys.stderr.reconfigure(line_buffering=True)
    parser = argparse.ArgumentParser(description="A good small MCP server with one fault that is switched on by name.")
    parser.add_argument("name", nargs="?", choices=["good", *FAULTS], metavar="NAME", help="the fault, or `good`")
    parser.add_argument("--http", type=int, metavar="PORT", help="serve HTTP there; 0 takes any port")
    parser.add_argument("--auth", action="store_true", help="want a bearer token, over HTTP")
    parser.add_argument("--provider", metavar="URL", help="the issuer whose tokens are wanted, not one of its own")
    parser.add_argument("--list", action="store_true", help="print all names")
    given = parser.parse_args()
    if given.list:
        for name, sentence in FAULTS.items():
            print(f"{name}: {sentence}")
        return
    if given.name is None:
        parser.error("a NAME is needed, or --list")
    fault = given.name
    if SECONDS_OF_LIFE and hasattr(signal, "alarm"):
        signal.alarm(SECONDS_OF_LIFE)
    START_OF.get(fault, lambda: None)()
    if given.http is None:
        Stdio().serve()
    else:
        serve_http(given.http, auth=given.auth or fault in AUTH, provider=given.provider)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
