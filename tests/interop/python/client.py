"""A client on the official Python SDK: client.py TARGET [--revision R] [NAME JSON]..."""

import asyncio
import json
import os
import shlex
import sys

from mcp import Client, StdioServerParameters


def target(text: str) -> str | StdioServerParameters:
    if text.startswith("http"):
        return text
    words = json.loads(text) if text.startswith("[") else shlex.split(text)
    return StdioServerParameters(command=words[0], args=words[1:], env=dict(os.environ))


async def main(where: str, *rest: str) -> None:
    words = list(rest)
    mode = "auto"
    if words[:1] == ["--revision"]:
        mode = words[1] if words[1] >= "2026" else "legacy"
        words = words[2:]
    async with Client(target(where), mode=mode, read_timeout_seconds=30) as client:
        tools, cursor = [], None
        while True:
            page = await client.list_tools(cursor=cursor) if cursor else await client.list_tools()
            tools += [tool.name for tool in page.tools]
            cursor = page.next_cursor
            if cursor is None:
                break
        calls = []
        for name, arguments in zip(words[::2], words[1::2], strict=True):
            result = await client.call_tool(name, json.loads(arguments))
            first = result.content[0] if result.content else None
            calls.append(
                {
                    "error": bool(result.is_error),
                    "text": getattr(first, "text", "") or "",
                    "types": [block.type for block in result.content],
                    "structured": result.structured_content,
                }
            )
        print(json.dumps({"protocolVersion": client.protocol_version, "tools": tools, "calls": calls}))


asyncio.run(main(*sys.argv[1:]))
