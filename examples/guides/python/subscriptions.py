"""Subscriptions: what has changed, heard one change after the other or by a function, the same in every revision."""

import asyncio
from contextlib import AsyncExitStack

from tricorn import AsyncClient, ResourceUpdated, Server, ToolsListChanged, connect

app = Server("news")
score = "0:0"
hooked: asyncio.Queue[str] = asyncio.Queue()


@app.resource("news://sport")
def sport() -> str:
    """How it stands"""
    return score


@app.tool
def headlines() -> str:
    """What is new"""
    return "It rains."


@app.tool(enabled=False)
def search(word: str) -> str:
    """What was new"""
    return word


@app.on_subscribe
async def hear(uri: str, subscribed: bool) -> None:
    if subscribed:  # else somebody has left
        hooked.put_nowait(f"server: {uri} is listened to")


async def one_after_the_other(client: AsyncClient) -> None:
    global score
    async with client.listen(tools=True, uris=["news://sport"]) as changes:
        print(await hooked.get())
        print("listening to", "tools," if changes.honoured.tools else "", *changes.honoured.uris)
        score = "1:0"
        app.resource_updated("news://sport")
        async for change in changes:
            match change:
                case ResourceUpdated(uri):
                    print(f"changed: {uri}:", (await client.read_resource(uri)).text)
                    app.set_enabled("tool", "search", True)
                case ToolsListChanged():
                    print("changed: tools:", ", ".join(tool.name for tool in await client.list_tools()))
                    break
                case _:
                    pass
    app.set_enabled("tool", "search", False)


async def by_a_function(client: AsyncClient, told: asyncio.Queue[str]) -> None:
    await client.subscribe("news://sport")
    print(await hooked.get())
    app.resource_updated("news://sport")
    print("told:", await told.get())
    await client.unsubscribe("news://sport")


async def main() -> None:
    async with AsyncExitStack() as clients:
        for revision in ("2025-11-25", "2026-07-28"):
            print(revision)
            client = await clients.enter_async_context(connect(app, revision=revision))
            await one_after_the_other(client)
            told: asyncio.Queue[str] = asyncio.Queue()
            hearing = connect(app, revision=revision, on_resource_updated=told.put_nowait)
            await by_a_function(await clients.enter_async_context(hearing), told)


asyncio.run(main())
