"""HTTP+SSE: the oldest transport, for clients and servers that have nothing newer."""

import asyncio
from urllib.parse import urlsplit

from tricorn import Server, connect

app = Server("old")


@app.tool
def greet() -> str:
    """Greet"""
    return "hello"


async def main() -> None:
    listening: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(app.serve_http(port=0, sse=True, on_listening=listening.set_result))
    url = await listening

    async with connect(url) as client:
        print(f"{urlsplit(url).path}: {client.protocol_version}")

    # A client finds out by itself that there is nothing newer at a URL.
    async with connect(url.replace("/mcp", "/sse")) as client:
        print(f"/sse: {client.protocol_version},", (await client.call_tool("greet")).text)

    app.close()
    await serving


asyncio.run(main())
