"""The MCP toolkit of Agno."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from agno.tools.mcp import MCPTools
from checks import Session, main
from mcp import StdioServerParameters


class Theirs(Session):
    def __init__(self, kit: MCPTools) -> None:
        self.kit = kit

    async def tools(self) -> list[str]:
        return list(self.kit.functions)

    async def call(self, name: str, arguments: dict[str, Any]) -> tuple[bool, str]:
        entry = self.kit.functions[name].entrypoint
        assert entry
        result = await entry(**arguments)
        text = str(getattr(result, "content", result))
        # It gives the model the text of a failed call.
        return "the tool says no" in text, text


@asynccontextmanager
async def connect(target: Any) -> AsyncIterator[Session]:
    if isinstance(target, str):
        kit = MCPTools(url=target, transport="streamable-http", timeout_seconds=30)
    else:
        there = StdioServerParameters(command=target[0], args=target[1:])
        kit = MCPTools(server_params=there, transport="stdio", timeout_seconds=30)
    async with kit:
        yield Theirs(kit)


main(connect)
