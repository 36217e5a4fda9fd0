"""FastMCP's client."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import answering
from checks import Session, main, text_of
from fastmcp import Client
from fastmcp.client.transports import StdioTransport


class Theirs(Session):
    answers = answering.BOTH

    def __init__(self, client: Client[Any]) -> None:
        self.client = client

    async def tools(self) -> list[str]:
        return [tool.name for tool in await self.client.list_tools()]

    async def call(self, name: str, arguments: dict[str, Any]) -> tuple[bool, str]:
        result = await self.client.call_tool(name, arguments, raise_on_error=False)
        return bool(result.is_error), text_of(result.content)

    async def progress(self, name: str, arguments: dict[str, Any]) -> list[float]:
        heard = []

        async def on(done: float, _total: float | None, _message: str | None) -> None:
            heard.append(done)

        await self.client.call_tool(name, arguments, progress_handler=on)
        return heard

    async def read(self, uri: str) -> str:
        return text_of(await self.client.read_resource(uri))

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        return text_of([m.content for m in (await self.client.get_prompt(name, arguments)).messages])


@asynccontextmanager
async def connect(target: Any) -> AsyncIterator[Session]:
    there = target if isinstance(target, str) else StdioTransport(target[0], target[1:], keep_alive=False)
    async with Client(there, **answering.FAST) as client:
        yield Theirs(client)


main(connect)
