"""For the tests of your own server: clients without processes or sockets, and HTTP with a port or without."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from .asgi_transport import ASGITransport
from .client import AsyncClient, ClientOptions, introduce
from .content import CallToolResult
from .server import HttpOptions, Server
from .sync import Client

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["ASGITransport", "call", "connect", "serving"]


def connect(server: Server, /, **options: Unpack[ClientOptions]) -> AsyncClient:
    """A client in memory: `async with testing.connect(app) as client: ...`; `revision="..."` picks a revision."""
    introduce(options, sys._getframe(1).f_globals)
    return AsyncClient(server, **options)


def call(
    server: Server, name: str, arguments: Mapping[str, Any] | None = None, /, **options: Unpack[ClientOptions]
) -> CallToolResult:
    """One tool call from a plain test function: `assert testing.call(app, "add", {"a": 1, "b": 2}).text == "3"`."""
    with Client(server, **options) as client:
        return client.call_tool(name, arguments)


@asynccontextmanager
async def serving(server: Server, **options: Unpack[HttpOptions]) -> AsyncGenerator[str]:
    """Serves HTTP on a free loopback port and yields the URL."""
    url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(server.serve_http(port=0, on_listening=url.set_result, **options))
    try:
        task.add_done_callback(lambda _: url.done() or url.cancel())
        try:
            address = await url
        except asyncio.CancelledError:
            if task.done():
                task.result()  # it could not listen, and knows why
            raise
        yield address
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
