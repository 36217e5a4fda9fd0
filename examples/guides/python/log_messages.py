"""Log messages: what a server tells its client besides answers."""

import asyncio
import json
from typing import Any

from tricorn import Context, Server, connect

app = Server("logging")


@app.tool
async def backup(ctx: Context) -> str:
    """Copy everything"""
    ctx.log("debug", "looking for files", "backup")
    ctx.log("info", "copying", "backup")
    ctx.log("warning", {"free": 3}, "disk")
    return "backup done"


def heard(level: str, logger: str | None, data: Any) -> None:
    print(f"{level}: {logger}, {json.dumps(data, separators=(',', ':'))}")


async def main() -> None:
    async with connect(app, revision="2025-11-25", on_log=heard) as client:
        print("no level:", (await client.call_tool("backup")).text)
        await client.set_log_level("warning")
        print("level warning:", (await client.call_tool("backup")).text)

    # Newer revisions ask with each call: for the level that was set, or one of its own.
    async with connect(app, on_log=heard) as client:
        await client.set_log_level("warning")
        print("newer, level warning:", (await client.call_tool("backup")).text)
        result = await client.call_tool("backup", meta={"io.modelcontextprotocol/logLevel": "info"})
        print("one call:", result.text)


asyncio.run(main())
