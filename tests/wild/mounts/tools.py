"""The tools of the checks, for what mounts a server."""

import asyncio
import json
import os
import socket
import sys
from contextvars import ContextVar
from typing import Any, TypedDict

from tricorn import Context, Server, ToolError

# State between two rounds of questions: sealed by one process, opened by another.
app = Server("mounted", "1.0.0", request_state_keys=["a secret of the tests of 32 bytes or more"])
slow_calls = {"started": 0, "cancelled": 0, "finished": 0}
carried: ContextVar[str] = ContextVar("carried")
"""The context of a request, where the web framework carries one: `echo` fails without it."""
frameworks_that_carry: list[str] = []


@app.tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@app.tool
def echo(text: str) -> str:
    """Return the text."""
    if frameworks_that_carry and not carried.get(""):
        raise ToolError("the request's context is lost")
    return text


@app.tool
async def fail(kind: str) -> str:
    """Fail."""
    raise ToolError(f"the tool says no: {kind}")


@app.tool
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


@app.tool
async def count(to: int, ctx: Context) -> str:
    """Report each number up to this one."""
    for n in range(1, to + 1):
        ctx.progress(n, to)
    return f"counted to {to}"


@app.tool
async def test_metrics() -> dict[str, Any]:
    """Return what became of the slow calls."""
    running = slow_calls["started"] - slow_calls["finished"] - slow_calls["cancelled"]
    return {"slow": {**slow_calls, "running": running}}


class Who(TypedDict):
    username: str
    email: str


@app.tool
async def test_elicitation(message: str, ctx: Context) -> str:
    """Ask the user."""
    answer = await ctx.elicit(message, Who)
    return f"User response: action={answer.action}, content={json.dumps(answer.content)}"


@app.tool
async def test_sampling(prompt: str, ctx: Context) -> str:
    """Ask the client's model."""
    return f"LLM response: {(await ctx.sample(prompt, 100)).text}"


@app.resource("test://static-text", mime_type="text/plain")
async def static_text() -> str:
    """Return a static text."""
    return "This is a static text."


@app.prompt
async def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """Say both."""
    return f"arg1={arg1} arg2={arg2}"


# Several processes share no sessions.
mcp = app.asgi(allowed_hosts=["*"], stateless="WILD_STATELESS" in os.environ)


def address() -> tuple[str, int]:
    host, port = sys.argv[sys.argv.index("--http") + 1].split(":")
    return host, int(port)


def ready(listening: socket.socket, path: str = "/mcp") -> None:
    host, port = listening.getsockname()[:2]
    print(f"ready http://{host}:{port}{path}", file=sys.stderr, flush=True)


def by_uvicorn(web: Any, path: str = "/mcp") -> None:
    import uvicorn

    with socket.create_server(address()) as listening:
        ready(listening, path)
        uvicorn.Server(uvicorn.Config(web, log_level="warning")).run(sockets=[listening])
