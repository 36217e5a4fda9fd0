"""Standard streams: a client launches its server, here this program with the argument `serve`."""

import asyncio
import sys

from tricorn import Server, connect

app = Server("stdio")


@app.tool
def add(a: int, b: int) -> int:
    """Add two numbers"""
    return a + b


async def main() -> None:
    lines: asyncio.Queue[str] = asyncio.Queue()
    # What the server writes to standard error is for people: here it is heard line by line.
    async with connect([sys.executable, __file__, "serve"], on_stderr=lines.put_nowait) as client:
        print("transport:", client.transport)
        print("heard:", await lines.get())
        print("add:", (await client.call_tool("add", {"a": 1, "b": 2})).text)
    # The server has ended: its standard input was closed.


if "serve" in sys.argv:
    print("server started", file=sys.stderr, flush=True)
    app.run()
else:
    asyncio.run(main())
