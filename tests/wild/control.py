"""The control: the tools of the checks on PyPI `mcp` before 2.0. What fails here, too, is no fault of ours."""

import asyncio
import os
import socket
import sys
from typing import Any

import uvicorn
from mcp.server.fastmcp import Context, FastMCP
from mcp.server.fastmcp.exceptions import ToolError
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import SamplingMessage, TextContent
from pydantic import BaseModel

# Several processes share no sessions, as with ours.
app = FastMCP(
    "control",
    stateless_http="WILD_STATELESS" in os.environ,
    transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
)
slow_calls = {"started": 0, "cancelled": 0, "finished": 0}


@app.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@app.tool()
def echo(text: str) -> str:
    """Return the text."""
    return text


@app.tool()
def fail(kind: str) -> str:
    """Fail."""
    raise ToolError(f"the tool says no: {kind}")


@app.tool()
async def slow(ms: int) -> str:
    """Take some milliseconds."""
    slow_calls["started"] += 1
    try:
        await asyncio.sleep(ms / 1000)
    except asyncio.CancelledError:
        slow_calls["cancelled"] += 1
        raise
    slow_calls["finished"] += 1
    return f"slept {ms} ms"


@app.tool()
async def count(to: int, ctx: Context[Any, Any]) -> str:
    """Report each number up to this one."""
    for n in range(1, to + 1):
        await ctx.report_progress(n, to)
    return f"counted to {to}"


@app.tool()
def test_metrics() -> dict[str, Any]:
    """Return what became of the slow calls."""
    running = slow_calls["started"] - slow_calls["finished"] - slow_calls["cancelled"]
    return {"slow": {**slow_calls, "running": running}}


class Who(BaseModel):
    username: str
    email: str


@app.tool()
async def test_elicitation(message: str, ctx: Context[Any, Any]) -> str:
    """Ask the user."""
    answer = await ctx.elicit(message, Who)
    data = getattr(answer, "data", None)
    return f"User response: action={answer.action}, content={data.model_dump_json() if data else {}}"


@app.tool()
async def test_sampling(prompt: str, ctx: Context[Any, Any]) -> str:
    """Ask the client's model."""
    question = SamplingMessage(role="user", content=TextContent(type="text", text=prompt))
    # Without the call that it belongs to, it goes out on a stream that not all clients open.
    answer = await ctx.session.create_message([question], max_tokens=100, related_request_id=ctx.request_id)
    return f"LLM response: {getattr(answer.content, 'text', answer.content)}"


@app.resource("test://static-text")
def static_text() -> str:
    """Return a static text."""
    return "This is the static text of the control."


@app.prompt()
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """Say both."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@app.tool()
def draft7(pair: list[Any]) -> str:
    """Take arguments described in draft-07."""
    return "draft7 ok"


schema = app._tool_manager.get_tool("draft7")
assert schema
schema.parameters = {
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
}


if "--http" in sys.argv:
    host, port = sys.argv[sys.argv.index("--http") + 1].split(":")
    with socket.create_server((host, int(port))) as listening:
        print(f"ready http://{host}:{listening.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
        config = uvicorn.Config(app.streamable_http_app(), log_level="warning", timeout_graceful_shutdown=2)
        uvicorn.Server(config).run(sockets=[listening])
else:
    app.run()
