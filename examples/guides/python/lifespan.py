"""Lifespan: what a server starts with its first use and stops with its last."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tricorn import Context, Server, connect


@dataclass
class Database:
    rows: list[str] = field(default_factory=list[str])


@asynccontextmanager
async def lifespan(_: Server) -> AsyncGenerator[Database]:
    database = Database()
    print("open")
    try:
        yield database
    finally:
        print("close, rows:", len(database.rows))


app = Server("notes", lifespan=lifespan)


@app.tool
def note(text: str, ctx: Context[Database]) -> int:
    """Write something down"""
    ctx.state.rows.append(text)
    return len(ctx.state.rows)


@dataclass
class Settings:
    greeting: str


polite = Server("polite", state=Settings("Good morning"))


@polite.tool
def greet(ctx: Context[Settings]) -> str:
    """Greet"""
    return ctx.state.greeting


async def main() -> None:
    async with connect(app) as one:
        async with connect(app) as two:
            print("one: row", (await one.call_tool("note", {"text": "Buy milk."})).text)
            print("two: row", (await two.call_tool("note", {"text": "Buy bread."})).text)
        print("one is still there")
        print("one: row", (await one.call_tool("note", {"text": "Bake."})).text)

    async with connect(app) as again:
        print("again: row", (await again.call_tool("note", {"text": "Eat."})).text)

    async with connect(polite) as client:
        print("greet:", (await client.call_tool("greet")).text)


asyncio.run(main())
