"""The official Python SDK through a balancer: `official.py URL`. Prints what its client saw as one line of JSON.

Runs with the SDK's own environment, before 2.0 or after.
"""

import asyncio
import json
import sys
from typing import Any

import mcp.types as types
from mcp import ClientSession
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client


async def main(url: str) -> dict[str, Any]:
    updated: asyncio.Queue[str] = asyncio.Queue()

    async def elicitation(_: Any, _params: Any) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"a": "x", "b": "y", "c": "z", "name": "Ada"})

    async def message(message: Any) -> None:
        message = getattr(message, "root", message)
        if isinstance(message, types.ResourceUpdatedNotification):
            updated.put_nowait(str(message.params.uri))

    seen: dict[str, Any] = {"texts": [], "updated": []}
    transport = sse_client if url.endswith("/sse") else streamable_http_client
    async with (
        transport(url) as (read, write, *_),
        ClientSession(read, write, elicitation_callback=elicitation, message_handler=message) as session,
    ):
        answer = await session.initialize()
        seen["revision"] = str(getattr(answer, "protocolVersion", None) or answer.protocol_version)

        async def call(name: str, **arguments: Any) -> None:
            result = await session.call_tool(name, arguments)
            seen["texts"].append(result.content[0].text)

        for n in range(10):
            await call("echo", text=str(n))
        await call("three_questions")
        await call("test_streaming_elicitation")
        uri: Any = "test://watched-resource"
        if hasattr(types, "AnyUrl"):
            uri = types.AnyUrl(uri)
        await session.subscribe_resource(uri)
        for _ in range(4):
            await call("touch", uri="test://watched-resource")
            seen["updated"].append(await asyncio.wait_for(updated.get(), 20))
    return seen


print(json.dumps(asyncio.run(main(sys.argv[1]))))
