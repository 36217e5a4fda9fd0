"""The benchmark server: `add`, `echo`, `sleep_ms` and fillers up to a hundred tools."""

import asyncio
from collections.abc import Awaitable, Callable

from msgspec import Struct

from tricorn import Server

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


def filler(number: int) -> Callable[..., Awaitable[str]]:
    async def row(key: str, limit: int = 10, verbose: bool = False) -> str:
        return f"row {key}"

    row.__name__ = f"tool_{number:03d}"
    row.__doc__ = f"Filler tool number {number}: looks a record up by key and returns at most limit rows."
    return row


for number in range(3, 100):
    app.tool(filler(number))

app.run()
