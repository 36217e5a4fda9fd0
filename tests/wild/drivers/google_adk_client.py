"""The MCP toolset of Google's ADK."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import answering
from checks import Session, main, text_of
from google.adk.tools.mcp_tool import McpToolset, StdioConnectionParams, StreamableHTTPConnectionParams
from mcp import StdioServerParameters


class Theirs(Session):
    answers = answering.BOTH

    def __init__(self, kit: McpToolset, tools: dict[str, Any], heard: list[float]) -> None:
        self.kit = kit
        self.all = tools
        self.heard = heard

    async def tools(self) -> list[str]:
        return list(self.all)

    async def call(self, name: str, arguments: dict[str, Any]) -> tuple[bool, str]:
        context: Any = SimpleNamespace(state={}, function_call_id="1", user_id="u", session=None)
        result = await self.all[name].run_async(args=arguments, tool_context=context)
        # What went wrong on the way is an answer of another form.
        if "error" in result:
            raise RuntimeError(result["error"])
        return bool(result.get("isError", False)), text_of(result.get("content"))

    async def progress(self, name: str, arguments: dict[str, Any]) -> list[float]:
        self.heard.clear()
        await self.call(name, arguments)
        return list(self.heard)

    async def read(self, uri: str) -> str:
        for name in await self.kit.list_resources():
            if str((await self.kit.get_resource_info(name))["uri"]) == uri:
                return text_of(await self.kit.read_resource(name))
        raise LookupError(uri)


@asynccontextmanager
async def connect(target: Any) -> AsyncIterator[Session]:
    if isinstance(target, str):
        there: Any = StreamableHTTPConnectionParams(url=target, timeout=30)
    else:
        params = StdioServerParameters(command=target[0], args=target[1:])
        there = StdioConnectionParams(server_params=params, timeout=30)
    heard: list[float] = []

    async def on(done: float, _total: float | None, _message: str | None) -> None:
        heard.append(done)

    kit = McpToolset(
        connection_params=there,
        progress_callback=on,
        elicitation_callback=answering.elicitation,
        sampling_callback=answering.sampling,
    )
    try:
        yield Theirs(kit, {tool.name: tool for tool in await kit.get_tools()}, heard)
    finally:
        await kit.close()


main(connect)
