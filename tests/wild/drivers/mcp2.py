"""PyPI `mcp` from 2.0."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import answering
from checks import Session, main, text_of
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client


class Theirs(Session):
    answers = answering.BOTH

    def __init__(self, client: Client) -> None:
        self.client = client

    async def tools(self) -> list[str]:
        return [tool.name for tool in (await self.client.list_tools()).tools]

    async def call(self, name: str, arguments: dict[str, Any]) -> tuple[bool, str]:
        result = await self.client.call_tool(name, arguments)
        return bool(result.is_error), text_of(result.content)

    async def progress(self, name: str, arguments: dict[str, Any]) -> list[float]:
        heard = []

        async def on(done: float, _total: float | None, _message: str | None) -> None:
            heard.append(done)

        await self.client.call_tool(name, arguments, progress_callback=on)
        return heard

    async def read(self, uri: str) -> str:
        return text_of((await self.client.read_resource(uri)).contents)

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        return text_of([m.content for m in (await self.client.get_prompt(name, arguments)).messages])


@asynccontextmanager
async def connect(target: Any) -> AsyncIterator[Session]:
    there = (
        target if isinstance(target, str) else stdio_client(StdioServerParameters(command=target[0], args=target[1:]))
    )
    answers: Any = {"elicitation_callback": answering.elicitation, "sampling_callback": answering.sampling}
    async with Client(there, **answers) as client:
        yield Theirs(client)


main(connect)
