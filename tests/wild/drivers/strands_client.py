"""The MCP client of Strands."""

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import answering
from checks import Session, main, text_of
from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client
from strands.tools.mcp import MCPClient


class Theirs(Session):
    answers = ("elicitation",)
    numbers = itertools.count()

    def __init__(self, client: MCPClient) -> None:
        self.client = client

    async def tools(self) -> list[str]:
        return [tool.tool_name for tool in self.client.list_tools_sync()]

    async def call(self, name: str, arguments: dict[str, Any]) -> tuple[bool, str]:
        result = await self.client.call_tool_async(f"call-{next(self.numbers)}", name, arguments)
        return result["status"] == "error", text_of(result["content"])

    async def read(self, uri: str) -> str:
        return text_of(self.client.read_resource_sync(uri).contents)

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        return text_of([m.content for m in self.client.get_prompt_sync(name, arguments).messages])


@asynccontextmanager
async def connect(target: Any) -> AsyncIterator[Session]:
    answers: Any = {"elicitation_callback": answering.elicitation}
    if isinstance(target, str):
        client = MCPClient(url=target, **answers)
    else:
        there = StdioServerParameters(command=target[0], args=target[1:])
        client = MCPClient(lambda: stdio_client(there), **answers)
    with client:
        yield Theirs(client)


main(connect)
