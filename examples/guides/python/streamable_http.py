"""Streamable HTTP: a server at a URL, for any number of clients of both eras."""

import asyncio

from tricorn import Context, Server, TransportError, connect

app = Server("http")


@app.tool
def greet(ctx: Context) -> str:
    """Greet whoever calls"""
    return f"hello, {ctx.request.headers.get('x-user', 'stranger')}"


async def main() -> None:
    listening: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    # Port 0 is any free one. As a program of its own: app.run(http="127.0.0.1:8000").
    serving = asyncio.create_task(app.serve_http(port=0, on_listening=listening.set_result))
    url = await listening

    for revision in (None, "2025-11-25"):
        async with connect(url, revision=revision, headers={"X-User": "ada"}) as client:
            session = str(client.session_id is not None).lower()
            print(f"{client.protocol_version} over {client.transport}, session: {session}")
            print((await client.call_tool("greet")).text)

    app.close()
    await serving
    try:
        await connect(url)
    except TransportError as error:
        print("stopped:", error.kind)


asyncio.run(main())
