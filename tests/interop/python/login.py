"""A client on the official Python SDK that logs in: commands on standard input, what came of them on standard out."""

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata
from pydantic import AnyUrl


class Memory:
    """The SDK's `TokenStorage`."""

    tokens: Any = None
    client_info: Any = None

    async def get_tokens(self) -> Any:
        return self.tokens

    async def set_tokens(self, tokens: Any) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> Any:
        return self.client_info

    async def set_client_info(self, client_info: Any) -> None:
        self.client_info = client_info


class Callback:
    """The address that the browser comes back to."""

    def __init__(self) -> None:
        self.came: asyncio.Queue[dict[str, list[str]]] = asyncio.Queue(1)

    async def listen(self) -> str:
        server = await asyncio.start_server(self.answer, "127.0.0.1", 0)
        return f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/callback"

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = (await reader.readline()).decode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\ndone")
        await writer.drain()
        writer.close()
        await self.came.put(parse_qs(urlsplit(line.split()[1]).query))

    async def wait(self) -> AuthorizationCodeResult:
        query = {name: values[0] for name, values in (await self.came.get()).items()}
        if "error" in query:
            raise PermissionError(query["error"])
        return AuthorizationCodeResult(code=query["code"], state=query.get("state"), iss=query.get("iss"))


async def show(url: str) -> None:
    print(url, file=sys.stderr, flush=True)


class Clients:
    def __init__(self, stack: AsyncExitStack) -> None:
        self.stack = stack
        self.all: dict[int, Client] = {}

    async def do(self, command: dict[str, Any]) -> Any:
        match command["do"]:
            case "connect":
                return await self.connect(command)
            case "call_tool":
                result = await self.all[command["client"]].call_tool(command["name"], command["arguments"])
                text = "".join(block.text for block in result.content if block.type == "text")
                return {"text": text, "structured": result.structured_content, "is_error": result.is_error}
            case other:
                raise ValueError(f"no such command: {other}")

    async def connect(self, command: dict[str, Any]) -> Any:
        url, callback = command["target"]["url"], Callback()
        metadata = OAuthClientMetadata(redirect_uris=[AnyUrl(await callback.listen())], client_name="python-sdk")
        auth = OAuthClientProvider(url, metadata, Memory(), show, callback.wait)
        http = await self.stack.enter_async_context(httpx2.AsyncClient(auth=auth, timeout=30))
        revision = command["options"].get("revision")
        client = Client(streamable_http_client(url, http_client=http), mode="legacy" if revision else "auto")
        self.all[command["client"]] = await self.stack.enter_async_context(client)
        return {"protocolVersion": client.protocol_version}


async def main() -> None:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    async with AsyncExitStack() as stack:
        clients = Clients(stack)
        async for line in reader:
            command = json.loads(line)
            try:
                came = {"result": await clients.do(command)}
            except Exception as error:  # noqa: BLE001
                came = {"error": {"kind": type(error).__name__, "message": str(error)}}
            print(json.dumps({"id": command["id"], **came}), flush=True)


asyncio.run(main())
