"""LangChain's adapters: tools of one session."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import answering
from checks import Session, main
from langchain_core.tools import ToolException
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.prompts import load_mcp_prompt
from langchain_mcp_adapters.resources import load_mcp_resources
from langchain_mcp_adapters.tools import load_mcp_tools


class Theirs(Session):
    answers = answering.BOTH

    def __init__(self, session: Any, tools: dict[str, Any]) -> None:
        self.session = session
        self.all = tools

    async def tools(self) -> list[str]:
        return list(self.all)

    async def call(self, name: str, arguments: dict[str, Any]) -> tuple[bool, str]:
        try:
            content = await self.all[name].ainvoke(arguments)
        except ToolException as error:
            return True, str(error)
        parts = content if isinstance(content, list) else [content]
        text = "\n".join(str(part.get("text", part)) if isinstance(part, dict) else str(part) for part in parts)
        # The adapter gives the model the text of a failed call.
        return "the tool says no" in text, text

    async def read(self, uri: str) -> str:
        return (await load_mcp_resources(self.session, uris=[uri]))[0].as_string()

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        return str((await load_mcp_prompt(self.session, name, arguments=arguments))[0].content)


@asynccontextmanager
async def connect(target: Any) -> AsyncIterator[Session]:
    there: dict[str, Any] = {"transport": "streamable_http", "url": target}
    if not isinstance(target, str):
        there = {"transport": "stdio", "command": target[0], "args": target[1:]}
    there["session_kwargs"] = {
        "elicitation_callback": answering.elicitation,
        "sampling_callback": answering.sampling,
    }
    client = MultiServerMCPClient({"ours": there})  # type: ignore[dict-item]
    async with client.session("ours") as session:
        yield Theirs(session, {tool.name: tool for tool in await load_mcp_tools(session)})


main(connect)
