"""Ping: whether the other side is still there."""

import asyncio

from tricorn import Context, Server, connect

app = Server("ping")


@app.tool
async def ask_back(ctx: Context) -> str:
    """Ping the client"""
    await ctx.ask("ping", timeout=5)
    return "the client is there"


async def main() -> None:
    async with connect(app, revision="2025-11-25") as client:
        await client.ping(timeout=5)
        print(f"{client.protocol_version}: the server is there")
        print(f"{client.protocol_version}:", (await client.call_tool("ask_back")).text)

    async with connect(app) as client:
        await client.ping(timeout=5)
        print(f"{client.protocol_version}: the server is there")


asyncio.run(main())
