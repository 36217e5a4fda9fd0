"""What both sides can do, and which revision of the protocol they speak."""

import asyncio

from tricorn import Context, MisuseError, Server, UnsupportedError, connect

app = Server("library", "1.2.0", title="The library", instructions="Ask for a book by its title.")


@app.prompt
def borrow(title: str) -> str:
    """Borrow a book"""
    return f"I would like to read {title}."


@app.tool
def caller(ctx: Context) -> str:
    """Say who calls"""
    request = ctx.request
    info = request.client_info
    who = f"{info.name} {info.version}" if info else "somebody"
    sampling = str("sampling" in request.client_capabilities).lower()
    return f"{who}, {request.protocol_version}, sampling: {sampling}"


async def main() -> None:
    for revision in ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"):
        async with connect(app, revision=revision) as client:
            print(f"{client.protocol_version} {client.era}:", ", ".join(sorted(client.capabilities)))

    async with connect(app, name="reader", version="0.3.0") as client:  # the newest that both speak
        print("negotiated:", client.protocol_version)
        server = client.server_info
        if server is not None:
            print(f"server: {server.name} {server.version}, {client.instructions}")
        print("client:", (await client.call_tool("caller")).text)
        try:
            await client.list_resources()
        except UnsupportedError as error:
            print("not offered:", error.kind)

    async with connect(app, revision="2025-11-25", name="reader", version="0.3.0", sampling=lambda: "hello") as client:
        print("client:", (await client.call_tool("caller")).text)

    try:
        await connect(app, revision="2020-01-01")
    except MisuseError as error:
        print("unknown revision:", error.kind)


asyncio.run(main())
