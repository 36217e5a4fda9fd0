"""The fixture server: what the official conformance suite asks for, then the tools of tests/cases/FIXTURES.md."""

import asyncio
import importlib
import json
import os
import sys
import warnings
from base64 import b64decode
from pathlib import Path
from typing import Any, TypedDict

from by_hand import add_by_hand
from extension import add_search
from handshake import PNG, add_features
from protected import add_protected, protection
from questions import add_questions
from tasks import add_tasks

from tricorn import (
    Annotations,
    Audio,
    Content,
    Context,
    EmbeddedResource,
    Image,
    ResourceContents,
    ResourceLink,
    RpcError,
    Server,
    Text,
    ToolError,
)

warnings.filterwarnings("ignore", ".*MCP .* deprecates", DeprecationWarning)  # it works on, and is tested

WAV = b64decode("UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA==")


def setting(name: str) -> dict[str, Any]:
    value = os.environ.get(f"EVERYTHING_{name.upper()}")
    return {} if value is None else {name: float(value) if "." in value else int(value)}


options: dict[str, Any] = {**setting("page_size"), **setting("max_in_flight")}
if "EVERYTHING_CACHE" in os.environ:
    options["cache"] = json.loads(os.environ["EVERYTHING_CACHE"])
of_slow: dict[str, Any] = {}
if "EVERYTHING_TASKS" in os.environ:
    options["tasks"] = {"max_task_ttl": setting("tasks")["tasks"]}
    of_slow["task_support"] = "optional"
if revision := os.environ.get("EVERYTHING_REVISION"):
    options["revision"] = revision
if key := os.environ.get("EVERYTHING_REQUEST_STATE_KEY"):
    options["request_state_keys"] = [key]
if given := os.environ.get("EVERYTHING_AUTH"):
    options["auth"] = protection(given)
if place := os.environ.get("EVERYTHING_DOCUMENTS"):
    sys.path.append(str(Path(__file__).parents[3] / "bindings-python" / "tests"))
    if place.startswith("postgresql:"):
        options["store"] = importlib.import_module("postgres_store").PostgresStore(place)
    else:
        options["store"] = importlib.import_module("sqlite_store").SqliteStore(place)
app = Server(
    "everything",
    "1.0.0",
    title="Everything",
    description="Every fixture of the contract suite",
    website_url="https://example.com/everything",
    icons=[{"src": "https://example.com/icon.png", "mimeType": "image/png", "sizes": ["48x48"], "theme": "light"}],
    instructions="Call any tool.",
    **options,
)

# -- the official suite


@app.tool
async def test_simple_text() -> str:
    """Return one text."""
    return "This is a simple text response for testing."


@app.tool
async def test_image_content() -> Image:
    """Return an image."""
    return Image(PNG)


@app.tool
async def test_audio_content() -> Audio:
    """Return a sound."""
    return Audio(WAV)


@app.tool
async def test_embedded_resource() -> EmbeddedResource:
    """Return a resource with its text."""
    text = "This is an embedded resource content."
    return EmbeddedResource(ResourceContents("test://embedded-resource", "text/plain", text=text))


@app.tool
async def test_multiple_content_types() -> list[Content]:
    """Return a text, an image and a resource."""
    return [
        Text("Multiple content types test:"),
        Image(PNG),
        EmbeddedResource(
            ResourceContents("test://mixed-content-resource", "application/json", text='{"test":"data","value":123}')
        ),
    ]


@app.tool
async def test_error_handling() -> str:
    """Fail."""
    raise ToolError("This tool intentionally returns an error for testing")


@app.tool
async def test_tool_with_progress(ctx: Context) -> str:
    """Report progress three times."""
    for progress in (0, 50, 100):
        ctx.progress(progress, 100)
        await asyncio.sleep(0.05)
    return "Tool with progress executed successfully"


@app.tool
async def test_tool_with_logging(ctx: Context) -> str:
    """Log three messages."""
    for message in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        ctx.log("info", message)
        await asyncio.sleep(0.05)
    return "Tool with logging executed successfully"


SCHEMA_2020_12: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


@app.tool(input_schema=SCHEMA_2020_12)
async def json_schema_2020_12_tool(**_arguments: Any) -> str:
    """Show that a schema arrives unchanged."""
    return "schema ok"


REGION = {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}


@app.tool(input_schema=REGION)
async def test_x_mcp_header(region: str = "none") -> str:
    """Return the region, which also travels as a header."""
    return f"region: {region}"


@app.tool
async def test_missing_capability(ctx: Context) -> str:
    """Need a client that can sample."""
    ctx.require("sampling")
    return "The client can sample"


class Name(TypedDict):
    name: str


@app.tool
async def test_streaming_elicitation(ctx: Context) -> str:
    """Ask the user, in a revision that has no requests of servers."""
    answer = await ctx.elicit("What is your name?", Name)
    return answer.action if answer.content is None else f"Hello, {answer.content['name']}!"


@app.tool
async def test_logging_tool(ctx: Context) -> str:
    """Log one message, which is only delivered when the client asked for it."""
    ctx.log("info", "This is a log message")
    return "Tried to log"


@app.tool
async def test_trigger_tool_change() -> str:
    """Add a tool and remove it again."""

    async def short_lived() -> str:
        """Exist for a moment."""
        return "still here"

    app.add_tool(short_lived)
    app.remove_tool("short_lived")
    return "The list of tools has changed"


@app.tool
async def test_trigger_prompt_change() -> str:
    """Add a prompt and remove it again."""

    async def short_lived() -> str:
        """Exist for a moment."""
        return "still here"

    app.add_prompt(short_lived)
    app.remove_prompt("short_lived")
    return "The list of prompts has changed"


add_features(app, "cache" in options)
add_by_hand(app)

# -- our own

add_questions(app)
if "tasks" in options:
    add_tasks(app)


@app.tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    if not -(2**63) <= a + b < 2**63:
        raise ToolError("the sum is too large")
    return a + b


@app.tool(
    definition={
        "name": "echo",
        "title": "Echo",
        "description": "Return the text unchanged",
        "inputSchema": {
            "type": "object",
            "properties": {"text": {"type": "string", "description": "What to say"}},
            "required": ["text"],
            "additionalProperties": False,
        },
        "annotations": {
            "title": "Echo (hint)",
            "readOnlyHint": True,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        },
        "icons": [
            {
                "src": "https://example.com/echo.png",
                "mimeType": "image/png",
                "sizes": ["48x48", "any"],
                "theme": "dark",
            }
        ],
        "_meta": {"com.example/color": "blue"},
    }
)
async def echo(text: str) -> str:
    return text


slow_calls = {"started": 0, "cancelled": 0, "finished": 0}


@app.tool(**of_slow)
async def slow(ms: int, ctx: Context) -> str:
    """Take some milliseconds."""
    slow_calls["started"] += 1
    try:
        ctx.progress(0, ms, "started")
        await asyncio.sleep(ms / 1000)
    except asyncio.CancelledError:
        slow_calls["cancelled"] += 1
        raise
    slow_calls["finished"] += 1
    ctx.progress(ms, ms, "done")
    return f"slept {ms} ms"


@app.tool
async def fail(kind: str) -> str:
    """Fail in the way asked for: tool, exception or protocol."""
    if kind == "tool":
        raise ToolError("the tool says no")
    if kind == "exception":
        raise ValueError("secret detail")
    if kind == "protocol":
        raise RpcError(4242, "custom refusal", {"hint": "try another kind"})
    return "no failure"


@app.tool
async def all_content() -> list[Content]:
    """Return a block of every type."""
    hints = Annotations(audience=["user"], priority=0.5, last_modified="2025-01-12T15:00:58Z")
    return [
        Text("one", annotations=hints, meta={"com.example/n": 1}),
        Image(PNG),
        Audio(WAV),
        ResourceLink("test://linked", "linked", "Linked", "A link", "text/plain", 3),
        EmbeddedResource(ResourceContents("test://text", "text/plain", text="abc")),
        EmbeddedResource(ResourceContents("test://blob", "application/octet-stream", blob=b"\x00\x01\x02")),
        Text("last"),
    ]


@app.tool(
    definition={
        "name": "structured",
        "description": "A weather report",
        "inputSchema": {
            "type": "object",
            "properties": {"city": {"type": "string", "minLength": 1}},
            "required": ["city"],
        },
        "outputSchema": {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "temperature": {"type": "number"},
                "conditions": {"type": "string"},
            },
            "required": ["city", "temperature", "conditions"],
        },
    }
)
async def structured(city: str) -> dict[str, Any]:
    return {"city": city, "temperature": 22.5, "conditions": "sunny"}


@app.tool(
    definition={
        "name": "structured_invalid",
        "description": "Breaks its own output schema",
        "inputSchema": {"type": "object"},
        "outputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
    }
)
async def structured_invalid() -> dict[str, Any]:
    return {"n": "not a number"}


@app.tool(
    definition={
        "name": "any_value",
        "description": "Return any JSON value",
        "inputSchema": {"type": "object", "properties": {"value": {}}, "required": ["value"]},
        "outputSchema": {"type": ["object", "array", "string", "number", "boolean", "null"]},
    }
)
async def any_value(value: Any) -> Any:
    return value


@app.tool
async def context(ctx: Context) -> dict[str, Any]:
    """Return what the engine knows about this request."""
    return ctx.request.raw


@app.tool(
    definition={
        "name": "draft7",
        "description": "Arguments described in draft-07",
        "inputSchema": {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "definitions": {"label": {"type": "string", "maxLength": 3}},
            "properties": {
                "pair": {
                    "type": "array",
                    "items": [{"$ref": "#/definitions/label"}, {"type": "integer"}],
                    "additionalItems": False,
                }
            },
            "required": ["pair"],
        },
    }
)
async def draft7(pair: list[Any]) -> str:
    return "draft7 ok"


@app.tool
async def empty() -> None:
    """Return nothing."""


@app.tool(name="print")
async def careless(text: str) -> str:
    """Print to standard output, which belongs to the protocol."""
    print(text)
    return "printed"


@app.tool
async def count(to: int, ctx: Context) -> str:
    """Report each number up to this one."""
    for n in range(1, to + 1):
        ctx.progress(n, to)
    return f"counted to {to}"


@app.tool
async def touch(uri: str) -> str:
    """Say that a resource has changed."""
    app.resource_updated(uri)
    return f"touched {uri}"


@app.tool
async def roots(ctx: Context) -> str:
    """Return the URIs of the client's roots."""
    return " ".join(root.uri for root in await ctx.list_roots())


@app.tool
async def test_metrics() -> dict[str, Any]:
    """Return the server's gauges."""
    running = slow_calls["started"] - slow_calls["finished"] - slow_calls["cancelled"]
    return {"server": app.metrics(), "slow": {**slow_calls, "running": running}}


http: dict[str, Any] = {**setting("max_sessions"), **setting("session_idle_timeout"), **setting("sse_retry")}
http |= setting("drain_timeout")
http |= setting("max_connections")
if "EVERYTHING_EXTENSION" in os.environ:
    add_search(app)
if "EVERYTHING_AUTH" in os.environ:
    add_protected(app)
if "EVERYTHING_ALLOWED_HOSTS" in os.environ:
    http["allowed_hosts"] = [os.environ["EVERYTHING_ALLOWED_HOSTS"]]
if "EVERYTHING_SSE" in os.environ:
    http["sse"] = True
if "EVERYTHING_CERT" in os.environ:
    http |= {"cert": os.environ["EVERYTHING_CERT"], "key": os.environ.get("EVERYTHING_KEY")}
if kind := os.environ.get("EVERYTHING_MOUNT"):
    # Frameworks take longer to import than all the rest.
    import mounted

    mounted.serve(app, kind, **http)
else:
    if "--http" not in sys.argv:
        http.clear()  # On standard input and output these options mean nothing, and are refused.
    app.run(**http)
