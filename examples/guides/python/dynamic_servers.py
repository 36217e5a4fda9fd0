"""Servers that change while they run: for everybody, for one client, and by themselves."""

import asyncio

from tricorn import Context, RpcError, Server, connect

app = Server("dynamic")
app.add_resource("note://first", "1")


@app.tool
def unlock(ctx: Context) -> str:
    """Show the vault to this client, and give it a key"""
    ctx.session.set_enabled("tool", "vault", True)
    ctx.session.add_tool(key)
    return "open"


@app.tool(enabled=False)
def vault() -> str:
    """What is in the vault"""
    return "gold"


def key() -> str:
    """What this client alone has"""
    return "brass"


@app.prompt
def first() -> str:
    """The first prompt"""
    return "1"


def clock() -> str:
    """What time it is"""
    return "noon"


def later() -> str:
    """What time it is"""
    return "midnight"


def second() -> str:
    """The second prompt"""
    return "2"


def row(uri: str) -> str:
    """A row of a table"""
    return f"row {uri.removeprefix('row://')}"


async def main() -> None:
    changes: asyncio.Queue[str] = asyncio.Queue()
    async with (
        connect(app, revision="2025-11-25", on_list_changed=changes.put_nowait) as client,
        connect(app, revision="2025-11-25") as other,
    ):
        print("tools:", ", ".join([tool.name for tool in await client.list_tools()]))

        app.add_tool(clock)
        print("changed:", await changes.get())
        print("tools:", ", ".join([tool.name for tool in await client.list_tools()]))

        app.add_tool(later, name="clock", replace=True)
        print("replaced:", await changes.get())
        print("clock:", (await client.call_tool("clock")).text)

        app.add_resource("note://second", "2")
        print("changed:", await changes.get())
        print("resources:", ", ".join([resource.uri for resource in await client.list_resources()]))

        app.add_prompt(second)
        print("changed:", await changes.get())
        print("prompts:", ", ".join([prompt.name for prompt in await client.list_prompts()]))

        app.set_enabled("tool", "clock", False)
        print("hidden:", await changes.get())
        print("tools:", ", ".join([tool.name for tool in await client.list_tools()]))
        try:
            await client.call_tool("clock")
        except RpcError as error:
            print("clock: error", error.code)

        await client.call_tool("unlock")
        print("for this client:", await changes.get())
        print("tools:", ", ".join([tool.name for tool in await client.list_tools()]))
        print("key:", (await client.call_tool("key")).text)
        print("other client:", ", ".join([tool.name for tool in await other.list_tools()]))

        # What is registered nowhere comes from a source, such as a database.
        app.set_source("resource", get=row)
        print("from a source:", (await client.read_resource("row://7")).text)


asyncio.run(main())
