"""A server on the official Python SDK: server.py --stdio | --http HOST:PORT."""

import sys
from typing import Any

import fixture
import mcp_types as types
import newest
from mcp.server.caching import CacheHint
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.streamable_http import EventMessage
from serving import RETRY, Events, listen

CACHE = {"tools/list": CacheHint(60_000, "public"), "resources/read": CacheHint(5_000, "public")}

server = MCPServer("python-sdk", log_level="ERROR", cache_hints=CACHE)
subscribed = fixture.offer(server, types, Context, ToolError, str, newest.Again())
newest.offer(server)


async def subscribe(ctx: Any, params: types.SubscribeRequestParams) -> types.EmptyResult:
    subscribed.setdefault(str(params.uri), []).append(ctx.session)
    return types.EmptyResult()


async def unsubscribe(_: Any, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
    subscribed.pop(str(params.uri), None)
    return types.EmptyResult()


async def set_level(_: Any, _params: types.SetLevelRequestParams) -> types.EmptyResult:
    return types.EmptyResult()


# What the high-level server has no decorator for.
low = server._lowlevel_server
low.add_request_handler("resources/subscribe", types.SubscribeRequestParams, subscribe)
low.add_request_handler("resources/unsubscribe", types.UnsubscribeRequestParams, unsubscribe)
low.add_request_handler("logging/setLevel", types.SetLevelRequestParams, set_level)

match sys.argv[1:]:
    case ["--stdio"]:
        server.run("stdio")
    case ["--http", address]:
        app = server.streamable_http_app(event_store=Events(EventMessage), retry_interval=RETRY)
        listen(app, server.sse_app(), address)
    case _:
        sys.exit(__doc__)
