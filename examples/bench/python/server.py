"""The benchmark server: `add`, `echo`, `sleep_ms`, what asks its client, and fillers up to a hundred tools."""

import asyncio
import warnings
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct

from tricorn import Context, Server

warnings.filterwarnings("ignore", ".*MCP .* deprecates", DeprecationWarning)  # it works on, and is tested
app = Server("bench", "1.0.0")


class Sum(Struct):
    sum: int


@app.tool
async def add(a: int, b: int) -> Sum:
    """Add two integers."""
    return Sum(a + b)


@app.tool
async def echo(text: str) -> str:
    """Return the text."""
    return text


@app.tool
async def sleep_ms(ms: int) -> str:
    """Sleep for some milliseconds."""
    await asyncio.sleep(ms / 1000)
    return f"slept {ms}"


@app.resource("bench://hello", mime_type="text/plain")
async def hello() -> str:
    return "hello from bench"


@app.resource("bench://item/{id}", mime_type="text/plain")
async def item(id: str) -> str:  # noqa: A002 - the variable's name
    return f"item {id}"


@app.prompt
async def greet(name: str) -> str:
    """Greet somebody."""
    return f"Say hello to {name}."


@app.tool
async def ask_model(question: str, ctx: Context) -> str:
    """Ask the client's model."""
    return (await ctx.sample(question, 100)).text


FORM: dict[str, Any] = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}


@app.tool
async def ask_user(question: str, ctx: Context) -> str:
    """Ask the user."""
    return str(((await ctx.elicit(question, FORM)).content or {}).get("answer"))


def filler(number: int) -> Callable[..., Awaitable[str]]:
    async def row(key: str, limit: int = 10, verbose: bool = False) -> str:
        return f"row {key}"

    row.__name__ = f"tool_{number:03d}"
    row.__doc__ = f"Filler tool number {number}: looks a record up by key and returns at most limit rows."
    return row


for number in range(5, 100):
    app.tool(filler(number))

app.run()
