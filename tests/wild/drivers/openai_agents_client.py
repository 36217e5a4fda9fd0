"""The MCP servers of openai-agents, without a model."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from agents.mcp import MCPServerStdio, MCPServerStreamableHttp
from checks import Session, main, text_of


class Theirs(Session):
    def __init__(self, server: Any) -> None:
        self.server = server

    async def tools(self) -> list[str]:
        return [tool.name for tool in await self.server.list_tools()]

    async def call(self, name: str, arguments: dict[str, Any]) -> tuple[bool, str]:
        result = await self.server.call_tool(name, arguments)
        return bool(getattr(result, "isError", getattr(result, "is_error", False))), text_of(result.content)

    async def read(self, uri: str) -> str:
        return text_of((await self.server.read_resource(uri)).contents)

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        return text_of([m.content for m in (await self.server.get_prompt(name, arguments)).messages])


@asynccontextmanager
async def connect(target: Any) -> AsyncIterator[Session]:
    if isinstance(target, str):
        server: Any = MCPServerStreamableHttp({"url": target}, client_session_timeout_seconds=30)
    else:
        server = MCPServerStdio({"command": target[0], "args": target[1:]}, client_session_timeout_seconds=30)
    async with server:
        yield Theirs(server)


main(connect)
