"""An extension of the protocol: requests, a type of results and a notification of its own."""

from typing import Any

from tricorn import Context, Extension, RpcError, Server

SEARCH = "com.example/search"
FOUND = "notifications/com.example/found"


def add_search(app: Server) -> None:
    search = Extension(SEARCH, {"languages": ["en"]})

    @search.method(SEARCH, idempotent=True)
    async def find(query: str, ctx: Context) -> dict[str, Any]:
        return {"found": [query], "wanted": ctx.extension(SEARCH)}

    @search.method("com.example/later")
    async def later() -> dict[str, Any]:
        return {"resultType": "com.example/later", "at": 7}

    @search.method("com.example/fails")
    async def fails() -> None:
        raise RpcError(-31050, "no such index")

    @search.method("com.example/announce")
    async def announce(query: str) -> None:
        app.notify(FOUND, {"query": query}, key=query)

    search.notification(FOUND, "com.example/queries")
    app.add_extension(search)
