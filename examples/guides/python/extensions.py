"""Extensions: settings, requests and notifications of one's own, for the clients that declare them."""

import asyncio
from typing import Any

from tricorn import (
    AsyncClient,
    Context,
    Extension,
    ExtensionNotification,
    PeerMisbehavedError,
    RpcError,
    Server,
    connect,
)

SEARCH = "com.example/search"
RESERVE = "com.example/reserve"
ORDERED = "notifications/com.example/ordered"
SUBJECTS = "com.example/subjects"
BOOKS = ["Tea at Five", "Tea at Six", "Coffee at Ten"]
WANTED = {SEARCH: {"limit": 1}}

search = Extension(SEARCH, {"languages": ["en", "de"]})


@search.method(SEARCH, idempotent=True)
async def find(query: str, ctx: Context) -> dict[str, Any]:
    settings = ctx.extension(SEARCH) or {}
    return {"found": [title for title in BOOKS if query in title][: settings.get("limit")]}


@search.method(RESERVE)
async def reserve(title: str) -> dict[str, Any]:
    return {"resultType": "com.example/ticket", "title": title, "number": 7}


# Who listens asks for it by this member of the filter.
search.notification(ORDERED, SUBJECTS)

app = Server("library", extensions=[search])


@app.tool
def limit(ctx: Context) -> str:
    """How much this client takes"""
    settings = ctx.extension(SEARCH)
    return f"at most {settings['limit']}" if settings else "no search"


async def hear(client: AsyncClient) -> None:
    async with client.listen(extensions={SUBJECTS: ["tea"]}) as changes:
        app.notify(ORDERED, {"title": "Coffee at Eleven"}, key="coffee")
        app.notify(ORDERED, {"title": "Tea at Seven"}, key="tea")
        async for change in changes:
            if isinstance(change, ExtensionNotification):
                print("ordered:", change.params["title"])
                if change.params["title"] == "Tea at Seven":
                    break


async def refusal(client: AsyncClient, params: dict[str, Any]) -> str:
    try:
        return f"found {(await client.request(SEARCH, params))['found']}"
    except RpcError as error:
        return f"error {error.code}"


async def main() -> None:
    for revision in ("2025-11-25", "2026-07-28"):
        print(revision)
        async with connect(app, revision=revision, extensions=WANTED) as client:
            print("languages:", ", ".join(client.capabilities["extensions"][SEARCH]["languages"]))
            print("found:", ", ".join((await client.request(SEARCH, {"query": "Tea"}))["found"]))
            print("tool:", (await client.call_tool("limit")).text)
            print("wrong:", await refusal(client, {"query": 7}))
            await asyncio.wait_for(hear(client), timeout=10)
        async with connect(app, revision=revision) as client:  # declares nothing
            said = (await client.call_tool("limit")).text
            print(f"undeclared: {said},", await refusal(client, {"query": "Tea"}))

    async with connect(app, revision="2026-07-28", extensions=WANTED) as client:
        try:
            await client.request(RESERVE, {"title": "Tea at Six"})
        except PeerMisbehavedError as error:
            print("unasked:", error.kind)
        ticket = await client.request(RESERVE, {"title": "Tea at Six"}, any_result=True)
        print("reserved:", ticket["resultType"], ticket["number"])


asyncio.run(main())
