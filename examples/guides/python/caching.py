"""Caching: a server says how long its answers keep, and its client asks no sooner than that."""

import asyncio
from typing import Any

from tricorn import ResourceUpdated, Server, connect

app = Server("prices", cache={"tools": {"ttl": 60, "scope": "public"}})
looked_up = 0


@app.resource("price://apple", cache={"ttl": 3600})
def apple() -> str:
    """What an apple costs: private, as it may depend on who asks"""
    global looked_up
    looked_up += 1
    return f"look-up {looked_up}"


@app.tool
def buy(fruit: str) -> str:
    """Buy fruit: calls of tools are never kept"""
    return fruit


async def main() -> None:
    async with connect(app, revision="2026-07-28") as client:
        tools = await client.request("tools/list")
        print(f"tools: {tools['ttlMs']} ms, {tools['cacheScope']}")

        async def read(how: str, mode: Any = "default") -> None:
            print(f"{how}:", (await client.read_resource("price://apple", cache=mode)).text)

        await read("first")
        await read("again")
        await read("past it", "bypass")  # neither looks at what is kept nor changes it
        await read("again")
        await read("anew", "refresh")  # asks, and keeps the answer
        await read("again")
        usage = client.metrics()["cache"]
        print(f"hits {usage['hits']}, misses {usage['misses']}")

        # What is listened to is dropped as soon as it changes.
        async with client.listen(uris=["price://apple"]) as changes:
            app.resource_updated("price://apple")
            async for change in changes:
                if isinstance(change, ResourceUpdated):
                    print("changed:", change.uri)
                    break
        await read("again")

    variants: dict[str, Any] = {"no cache": {"cache": False}, "2025-11-25": {"revision": "2025-11-25"}}
    for how, options in variants.items():
        async with connect(app, **options) as client:
            texts = [(await client.read_resource("price://apple")).text for _ in range(2)]
            print(f"{how}:", ", ".join(texts))


asyncio.run(main())
