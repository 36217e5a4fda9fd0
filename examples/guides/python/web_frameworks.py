"""A stock of a shop: mounted in FastAPI behind the shop's login, with a database, and tests in memory."""

import asyncio
import hashlib
import socket
import sqlite3
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated, Literal

import uvicorn
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel, Field, PositiveInt
from starlette.middleware import Middleware
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from tricorn import AuthError, Context, Server, ToolError, connect, testing

# The database: opened with the first use of the server, closed with the last.


class Stock:
    """What the shop has, in SQLite. One connection is enough for an example; a pool looks the same."""

    def __init__(self) -> None:
        self.connection = sqlite3.connect(":memory:", check_same_thread=False)
        self.connection.execute("create table items (name text primary key, price integer, amount integer)")
        rows = [("teapot", 2900, 4), ("cup", 700, 12), ("spoon", 200, 0)]
        self.connection.executemany("insert into items values (?, ?, ?)", rows)

    def items(self, most: int) -> "list[Item]":
        query = "select name, price, amount from items where price <= ? order by name"
        return [Item(name=name, price=price, amount=n) for name, price, n in self.connection.execute(query, (most,))]

    def take(self, name: str, amount: int) -> bool:
        query = "update items set amount = amount - ? where name = ? and amount >= ?"
        return self.connection.execute(query, (amount, name, amount)).rowcount == 1


@asynccontextmanager
async def lifespan(_server: Server) -> AsyncGenerator[Stock]:
    stock = Stock()
    print("database: open")
    try:
        yield stock
    finally:
        stock.connection.close()
        print("database: closed")


# The types: their limits are in the listed schemas, and hold.


class Item(BaseModel):
    name: str
    price: Annotated[int, Field(ge=0, description="In cents")]
    amount: Annotated[int, Field(ge=0)]
    supplier: Annotated[str, Field(exclude=True)] = "nobody's business"


class Line(BaseModel):
    name: Annotated[str, Field(min_length=1, description="Of the item")]
    amount: PositiveInt = 1


class Receipt(BaseModel):
    customer: str
    lines: list[Line]
    status: Literal["reserved"] = "reserved"


# The server.

app = Server("stock", "1.0", lifespan=lifespan)


def customer(ctx: Context[Stock]) -> str:
    """Who has logged in, as the login knows it; nobody has in memory."""
    return ctx.host["user"] if ctx.host else "somebody in memory"


@app.tool
def find(ctx: Context[Stock], most: Annotated[int, Field(ge=1, le=100_000)] = 100_000) -> list[Item]:
    """What there is for up to so many cents."""
    return ctx.state.items(most)


@app.tool
def reserve(ctx: Context[Stock], lines: Annotated[list[Line], Field(min_length=1, max_length=10)]) -> Receipt:
    """Puts items aside for the customer."""
    for line in lines:
        if not ctx.state.take(line.name, line.amount):
            raise ToolError(f"there are not {line.amount} of {line.name}")
    return Receipt(customer=customer(ctx), lines=lines)


# The shop: its pages, its login, and the server among them.

TOKENS = {hashlib.sha256(f"secret of {name}".encode()).hexdigest(): name for name in ("ada", "bob")}


class Login:
    """Lets through who has a token, and says whose it is."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith("/mcp"):
            headers = dict(scope["headers"])
            name = TOKENS.get(headers.get(b"authorization", b"").decode().removeprefix("Bearer "))
            if name is None:
                await Response(status_code=401, headers={"www-authenticate": "Bearer"})(scope, receive, send)
                return
            scope = {**scope, "user": name}
        await self.app(scope, receive, send)


web = FastAPI(middleware=[Middleware(Login)])


@web.get("/login/{name}")
def login(name: str) -> dict[str, str]:
    for token, owner in TOKENS.items():
        if owner == name:
            return {"token": token}
    raise HTTPException(404)


web.routes.extend(app.asgi().routes("/mcp"))


# Tests: the same server in memory, without a port and a login.


async def check() -> None:
    async with testing.connect(app) as client:
        tools = {tool.name: tool.input_schema for tool in await client.list_tools()}
        print("listed limit:", tools["find"]["properties"]["most"]["maximum"])
        print("found:", [item.name for item in (await client.call_tool("find", {"most": 700})).to(list[Item])])
        wrong = await client.call_tool("reserve", {"lines": [{"name": "cup", "amount": -1}]})
        print("refused:", wrong.is_error, "amount" in wrong.text)
        print("sold out:", (await client.call_tool("reserve", {"lines": [{"name": "spoon"}]})).text)
        print("kept back:", "supplier" not in (await client.call_tool("find")).text)


async def shop() -> None:
    """The whole of it under uvicorn, and what a client of each customer gets."""
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp/"
    server = uvicorn.Server(uvicorn.Config(web, log_level="error"))
    serving = asyncio.create_task(server.serve([listener]))
    try:
        await connect(url)
    except AuthError:
        print("without a token: refused")
    token = {name: token for token, name in TOKENS.items()}
    for name in ("ada", "bob"):
        async with connect(url, headers={"authorization": f"Bearer {token[name]}"}) as client:
            receipt = await client.call_tool("reserve", {"lines": [{"name": "teapot", "amount": 2}]})
            print(receipt.to(Receipt).customer, "has", receipt.to(Receipt).lines[0].amount)
    client = await connect(url, headers={"authorization": f"Bearer {token['ada']}"})
    async with client.listen(tools=True):
        server.should_exit = True  # as at Ctrl-C: a stream that is open keeps nobody waiting
        await serving
    await client.close()
    print("ended")


async def main() -> None:
    await check()
    await shop()


if __name__ == "__main__" and "serve" in sys.argv:
    uvicorn.run(web, port=8000)
elif __name__ == "__main__":
    asyncio.run(main())
