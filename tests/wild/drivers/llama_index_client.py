"""The MCP client of llama-index: a session for each call."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import answering
from checks import Session, main, text_of
from llama_index.tools.mcp import BasicMCPClient, McpToolSpec


class Theirs(Session):
    answers = ("sampling",)

    def __init__(self, client: BasicMCPClient) -> None:
        self.client = client

    async def tools(self) -> list[str]:
        return [tool.metadata.name or "" for tool in await McpToolSpec(self.client).to_tool_list_async()]

    async def call(self, name: str, arguments: dict[str, Any]) -> tuple[bool, str]:
        result = await self.client.call_tool(name, arguments)
        return bool(getattr(result, "isError", getattr(result, "is_error", False))), text_of(result.content)

    async def progress(self, name: str, arguments: dict[str, Any]) -> list[float]:
        heard = []

        async def on(done: float, _total: float | None, _message: str | None) -> None:
            heard.append(done)

        await self.client.call_tool(name, arguments, progress_callback=on)
        return heard

    async def read(self, uri: str) -> str:
        return text_of((await self.client.read_resource(uri)).contents)

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        return str(await self.client.get_prompt(name, arguments))


@asynccontextmanager
async def connect(target: Any) -> AsyncIterator[Session]:
    http = isinstance(target, str)
    answers: Any = {"sampling_callback": answering.sampling}
    client = BasicMCPClient(target, **answers) if http else BasicMCPClient(target[0], args=target[1:], **answers)
    await client.list_tools()
    yield Theirs(client)


main(connect)
