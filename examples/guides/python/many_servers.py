"""Many servers: used as if they were one."""

import asyncio

from tricorn import Error, Server, connect_many

maps = Server("maps")
files = Server("files")
news: asyncio.Queue[str] = asyncio.Queue()


@maps.tool(name="find")
def find_city(name: str) -> str:
    """Find a city"""
    return f"the map of {name}"


@maps.tool
def zoom() -> str:
    """Look closer"""
    return "closer"


@files.tool(name="find")
def find_file(name: str) -> str:
    """Find a file"""
    return f"file:///{name}.txt"


files.add_resource("file:///Rome.txt", "Not built in a day.")


async def main() -> None:
    servers = {"broken": {"command": "/no/such/program"}, "maps": maps, "files": files}
    async with connect_many(
        servers,
        revision="2025-11-25",
        for_server=lambda name: {"on_list_changed": lambda kind: news.put_nowait(f"{name} {kind}")},
    ) as group:
        print("servers:", ", ".join(group.names))
        for name, failure in group.failures.items():
            print(f"failed: {name}, {failure.kind}")

        for tool in await group.list_tools():
            print(f"{tool.name} of {tool.server}")
        print("maps_find:", (await group.call_tool("maps_find", {"name": "Rome"})).text)
        print("files_find:", (await group.call_tool("files_find", {"name": "Rome"})).text)
        print("zoom:", (await group.call_tool("zoom")).text)
        print("file:///Rome.txt:", (await group.read_resource("file:///Rome.txt")).text)
        try:
            await group.call_tool("zooom")
        except Error as error:
            print("zooom:", error.kind)

        # One of them, with its own names.
        print("maps alone:", ", ".join([tool.name for tool in await group["maps"].list_tools()]))

        maps.add_tool(lambda: "north", name="turn")
        print("changed:", await news.get())
        print("turn:", (await group.call_tool("turn")).text)

        await group.remove("files")
        print("without files:", ", ".join([tool.name for tool in await group.list_tools()]))


asyncio.run(main())
