"""The MCP toolset of Google's ADK."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

from checks import Session, main, text_of
from google.adk.tools.mcp_tool import McpToolset, StdioConnectionParams, StreamableHTTPConnectionParams
from mcp import StdioServerParameters


class Theirs(Session):
    def __init__(self, kit: McpToolset, tools: dict[str, Any]) -> None:
        self.kit = kit
        self.all = tools

    async def tools(self) -> list[str]:
        return list(self.all)

    async def call(self, name: str, arguments: dict[str, Any]) -> tuple[bool, str]:
        context: Any = SimpleNamespace(state={}, function_call_id="1", user_id="u", session=None)
        result = await self.all[name]._run_async_impl(args=arguments, tool_context=context, credential=None)
        return bool(result.get("isError", False)), text_of(result.get("content"))


@asynccontextmanager
async def connect(target: Any) -> AsyncIterator[Session]:
    if isinstance(target, str):
        there: Any = StreamableHTTPConnectionParams(url=target, timeout=30)
    else:
        params = StdioServerParameters(command=target[0], args=target[1:])
        there = StdioConnectionParams(server_params=params, timeout=30)
    kit = McpToolset(connection_params=there)
    try:
        yield Theirs(kit, {tool.name: tool for tool in await kit.get_tools()})
    finally:
        await kit.close()


main(connect)
