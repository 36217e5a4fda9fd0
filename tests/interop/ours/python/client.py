"""Our client in Python: client.py TARGET [--revision R] [NAME JSON]..."""

import asyncio
import json
import sys
from typing import Any

from tricorn import CallToolResult, connect


def report(result: CallToolResult) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = result.raw["content"]
    return {
        "error": result.is_error,
        "text": blocks[0].get("text", "") if blocks else "",
        "types": [block["type"] for block in blocks],
        "structured": result.structured,
    }


async def main(target: str, *words: str) -> None:
    revision = None
    if words[:1] == ("--revision",):
        revision, words = words[1], words[2:]
    async with connect(target, revision=revision) as client:
        tools = [tool.name for tool in await client.list_tools()]
        calls = [
            report(await client.call_tool(name, json.loads(arguments)))
            for name, arguments in zip(words[::2], words[1::2], strict=True)
        ]
        print(json.dumps({"protocolVersion": client.protocol_version, "tools": tools, "calls": calls}))


asyncio.run(main(*sys.argv[1:]))
