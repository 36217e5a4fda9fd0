"""Testing a server: the real protocol, without a process or a socket."""

import asyncio

from tricorn import Context, Server, connect, testing

app = Server("calculator")


@app.tool
def add(a: int, b: int) -> int:
    """Add two numbers"""
    return a + b


@app.tool
async def confirm(ctx: Context) -> str:
    """Ask before something happens"""
    answer = await ctx.elicit("Really?")
    return "sure" if answer.accepted else "no"


def yes(message: str) -> str:
    """The user of a test"""
    print("asked:", message)
    return "accept"


async def main() -> None:
    for revision in ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"):
        async with testing.connect(app, revision=revision) as client:
            result = await client.call_tool("add", {"a": 1, "b": 2})
            assert result.to(int) == 3
            print(f"{revision}: 1 + 2 = {result.to(int)}")

    async with testing.connect(app) as client:
        print("wrong:", (await client.call_tool("add", {"a": "one", "b": 2})).text)

    async with testing.connect(app, revision="2025-11-25", elicitation=yes) as client:
        print("asking:", (await client.call_tool("confirm")).text)

    async with testing.serving(app) as url, connect(url) as client:
        print("over http:", (await client.call_tool("add", {"a": 1, "b": 2})).to(int))


asyncio.run(main())
