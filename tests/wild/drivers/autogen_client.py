"""The MCP workbench of AutoGen."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from autogen_ext.models.replay import ReplayChatCompletionClient
from autogen_ext.tools.mcp import McpWorkbench, StdioServerParams, StreamableHttpServerParams
from checks import Session, main, model, text_of


class Theirs(Session):
    answers = ("sampling",)

    def __init__(self, bench: McpWorkbench) -> None:
        self.bench = bench

    async def tools(self) -> list[str]:
        return [tool["name"] for tool in await self.bench.list_tools()]

    async def call(self, name: str, arguments: dict[str, Any]) -> tuple[bool, str]:
        result = await self.bench.call_tool(name, arguments)
        return result.is_error, result.to_text()

    async def read(self, uri: str) -> str:
        return text_of((await self.bench.read_resource(uri)).contents)

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        return text_of([m.content for m in (await self.bench.get_prompt(name, arguments)).messages])


@asynccontextmanager
async def connect(target: Any) -> AsyncIterator[Session]:
    if isinstance(target, str):
        there: Any = StreamableHttpServerParams(url=target)
    else:
        there = StdioServerParams(command=target[0], args=target[1:], read_timeout_seconds=30)
    llm = ReplayChatCompletionClient([model("a question")])
    async with McpWorkbench(there, model_client=llm) as bench:
        yield Theirs(bench)


main(connect)
