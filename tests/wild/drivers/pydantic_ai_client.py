"""The MCP toolset of pydantic-ai, without a model."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import answering
from checks import Session, main, text_of
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from pydantic_ai.exceptions import ModelRetry, ToolFailed
from pydantic_ai.mcp import MCPToolset


class Theirs(Session):
    answers = answering.BOTH

    def __init__(self, toolset: MCPToolset[Any]) -> None:
        self.toolset = toolset

    async def tools(self) -> list[str]:
        return [tool.name for tool in await self.toolset.list_tools()]

    async def call(self, name: str, arguments: dict[str, Any]) -> tuple[bool, str]:
        try:
            return False, str(await self.toolset.direct_call_tool(name, arguments))
        except (ModelRetry, ToolFailed) as error:
            return True, str(error)

    async def read(self, uri: str) -> str:
        return str(await self.toolset.read_resource(uri))

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        said = await self.toolset.get_prompt(name, arguments)
        return repr(list(said.messages)) if hasattr(said, "messages") else text_of(said)


@asynccontextmanager
async def connect(target: Any) -> AsyncIterator[Session]:
    http = isinstance(target, str)
    there = StreamableHttpTransport(target) if http else StdioTransport(target[0], target[1:], keep_alive=False)
    async with MCPToolset(there, **answering.FAST) as toolset:
        yield Theirs(toolset)


main(connect)
