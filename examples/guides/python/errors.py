"""Errors: whose fault it was decides what becomes of it."""

import asyncio
import json

from tricorn import (
    Error,
    MisuseError,
    RpcError,
    Server,
    ToolError,
    TransportError,
    UnsupportedError,
    connect,
)


class JamError(Exception):
    """Something that went wrong inside"""


def log(error: BaseException, name: str) -> None:
    print(f"log: {name}: {error}")


app = Server("printer", on_error=log)


@app.tool
def empty() -> str:
    """Fail, and say why"""
    raise ToolError("out of paper")


@app.tool
async def crash() -> str:
    """Fail by accident"""
    raise JamError("secret detail")


@app.tool
def refuse() -> str:
    """Refuse the request"""
    raise RpcError(4242, "no such tray", {"tray": 9})


@app.tool
async def stuck() -> str:
    """Never answer"""
    await asyncio.Event().wait()
    return ""


async def main() -> None:
    async with connect(app) as client:
        for name in ("empty", "crash"):
            result = await client.call_tool(name)
            print(f"failed: is_error={str(result.is_error).lower()}, {result.text}")
        try:
            await client.call_tool("refuse")
        except RpcError as error:
            print(f"rpc: {error.code}, {error.message}, {json.dumps(error.data, separators=(',', ':'))}")
        try:
            await client.call_tool("stuck", timeout=0.1)
        except Error as error:  # all of them
            print(f"{error.kind}:", error.message)
        try:
            await client.list_prompts()
        except UnsupportedError as error:
            print(f"{error.kind}: nothing was sent")

    try:
        await connect("http://127.0.0.1:9/mcp")
    except TransportError as error:
        print(f"{error.kind}: nobody listens")
    try:
        await connect(app, revision="2020-01-01")
    except MisuseError as error:
        print(f"{error.kind}:", "expected one of" if "expected one of" in error.message else error.message)


asyncio.run(main())
