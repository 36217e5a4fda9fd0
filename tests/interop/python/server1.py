"""A server on the official Python SDK before 2.0: server1.py --stdio | --http HOST:PORT."""

import sys

import fixture
import mcp.types as types
from mcp.server.fastmcp import Context, FastMCP
from mcp.server.fastmcp.exceptions import ToolError
from mcp.server.streamable_http import EventMessage
from pydantic import AnyUrl
from serving import RETRY, Events, listen

server = FastMCP("python-sdk", log_level="ERROR", event_store=Events(EventMessage), retry_interval=RETRY)
subscribed = fixture.offer(server, types, Context, ToolError, AnyUrl)
low = server._mcp_server


@low.subscribe_resource()
async def subscribe(uri: AnyUrl) -> None:
    subscribed.setdefault(str(uri), []).append(low.request_context.session)


@low.unsubscribe_resource()
async def unsubscribe(uri: AnyUrl) -> None:
    subscribed.pop(str(uri), None)


@low.set_logging_level()
async def set_level(_: types.LoggingLevel) -> None:
    pass


match sys.argv[1:]:
    case ["--stdio"]:
        server.run("stdio")
    case ["--http", address]:
        listen(server.streamable_http_app(), server.sse_app(), address)
    case _:
        sys.exit(__doc__)
