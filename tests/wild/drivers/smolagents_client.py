"""The MCP client of smolagents: ordinary functions, so the calls run on threads."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from checks import Session, main
from mcp import StdioServerParameters
from smolagents import MCPClient


class Theirs(Session):
    def __init__(self, tools: dict[str, Any]) -> None:
        self.all = tools

    async def tools(self) -> list[str]:
        return list(self.all)

    async def call(self, name: str, arguments: dict[str, Any]) -> tuple[bool, str]:
        text = str(await asyncio.to_thread(self.all[name], **arguments))
        # It gives the model the text of a failed call.
        return "the tool says no" in text, text


@asynccontextmanager
async def connect(target: Any) -> AsyncIterator[Session]:
    there: Any = {"url": target, "transport": "streamable-http"}
    if not isinstance(target, str):
        there = StdioServerParameters(command=target[0], args=target[1:])
    client = MCPClient(there, structured_output=False)
    try:
        yield Theirs({tool.name: tool for tool in client.get_tools()})
    finally:
        await asyncio.to_thread(client.disconnect)


main(connect)
