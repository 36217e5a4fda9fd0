"""PyPI `mcp` before 2.0."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import answering
from checks import Session, main, text_of
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client
from pydantic import AnyUrl


class Theirs(Session):
    answers = answering.BOTH

    def __init__(self, session: ClientSession) -> None:
        self.session = session

    async def tools(self) -> list[str]:
        return [tool.name for tool in (await self.session.list_tools()).tools]

    async def call(self, name: str, arguments: dict[str, Any]) -> tuple[bool, str]:
        result = await self.session.call_tool(name, arguments)
        return result.isError, text_of(result.content)

    async def progress(self, name: str, arguments: dict[str, Any]) -> list[float]:
        heard = []

        async def on(done: float, _total: float | None, _message: str | None) -> None:
            heard.append(done)

        await self.session.call_tool(name, arguments, progress_callback=on)
        return heard

    async def read(self, uri: str) -> str:
        return text_of((await self.session.read_resource(AnyUrl(uri))).contents)

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        return text_of([m.content for m in (await self.session.get_prompt(name, arguments)).messages])


@asynccontextmanager
async def connect(target: Any) -> AsyncIterator[Session]:
    async with AsyncExitStack() as stack:
        if isinstance(target, str):
            streams = await stack.enter_async_context(streamablehttp_client(target))
        else:
            there = StdioServerParameters(command=target[0], args=target[1:])
            streams = await stack.enter_async_context(stdio_client(there))
        session = ClientSession(
            streams[0], streams[1], elicitation_callback=answering.elicitation, sampling_callback=answering.sampling
        )
        await stack.enter_async_context(session)
        await session.initialize()
        yield Theirs(session)


main(connect)
