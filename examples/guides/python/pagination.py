"""Pagination: long lists come in pages."""

import asyncio

from tricorn import RpcError, Server, connect

app = Server("shelf", page_size=2)
for name in ("one", "two", "three", "four", "five"):
    app.add_resource(f"book://{name}", f"Book {name}.", name=name)


async def main() -> None:
    async with connect(app) as client:
        cursor = None
        while True:
            page, cursor = await client.list_resources_page(cursor)
            print("page:", ", ".join(resource.name for resource in page))
            if cursor is None:
                break

        seen: list[str] = []
        async for resource in client.resources():  # asks for a page when the loop gets there
            seen.append(resource.name)
            if resource.name == "three":
                break
        print("lazily:", *seen)

        print("all:", len(await client.list_resources()))

        try:
            await client.list_resources_page("nonsense")
        except RpcError as error:
            print("bad cursor: error", error.code)


asyncio.run(main())
