"""Roots: the folders that a client lets its server work on."""

import asyncio

from tricorn import Context, Root, RpcError, Server, connect

app = Server("roots")


@app.tool
async def folders(ctx: Context) -> str:
    """Say where I may look"""
    ctx.require("roots")
    roots = await ctx.list_roots()
    return " ".join(f"{root.uri} ({root.name})" if root.name else root.uri for root in roots)


async def main() -> None:
    roots = ["/srv/notes", Root("file:///srv/pictures", "Pictures")]
    async with connect(app, revision="2025-11-25", roots=roots) as client:
        print("roots:", (await client.call_tool("folders")).text)
        client.set_roots(["/srv/music"])  # the server is told that they have changed
        print("roots:", (await client.call_tool("folders")).text)

    async with connect(app, revision="2025-11-25") as client:
        try:
            await client.call_tool("folders")
        except RpcError as error:
            print(f"without roots: error {error.code}, {error.message}")


asyncio.run(main())
