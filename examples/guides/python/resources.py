"""Resources: listed, read, templated, watched."""

import asyncio

from tricorn import ResourceNotFoundError, RpcError, Server, connect

app = Server("resources")
notes = {"today": "Buy milk."}


@app.resource("notes://today", mime_type="text/plain")
def today() -> str:
    """What to do today"""
    return notes["today"]


app.add_resource("logo://dot", b"\x89PNG", name="dot", mime_type="image/png")


@app.resource("notes://{year}/{month}", mime_type="text/plain")
def month(year: int, month: int) -> str:
    """The notes of a month"""
    if year < 2000:
        raise ResourceNotFoundError(f"notes://{year}/{month}")
    return f"Notes of {month}/{year}"


async def main() -> None:
    told: asyncio.Queue[str] = asyncio.Queue()
    async with connect(app, revision="2025-11-25", on_resource_updated=told.put_nowait) as client:
        for resource in await client.list_resources():
            print(resource.uri, resource.mime_type)
        for template in await client.list_resource_templates():
            print(template.uri_template)

        print("notes://today:", (await client.read_resource("notes://today")).text)
        print("logo://dot:", len((await client.read_resource("logo://dot")).blob or b""), "bytes")
        print("notes://2026/11:", (await client.read_resource("notes://2026/11")).text)
        for uri in ("notes://2026/May", "notes://1999/1"):
            try:
                await client.read_resource(uri)
            except RpcError as error:
                print(f"{uri}: error {error.code}, {error.message}")

        await client.subscribe("notes://today")
        notes["today"] = "Buy milk and bread."
        app.resource_updated("notes://today")
        print("changed:", await told.get())
        print("notes://today:", (await client.read_resource("notes://today")).text)

        await client.unsubscribe("notes://today")
        app.resource_updated("notes://today")
        await client.ping()  # whatever was sent before is here now
        print("told", 1 + told.qsize(), "time")


asyncio.run(main())
