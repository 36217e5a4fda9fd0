"""The server mounted in somebody else's HTTP server: `asgi` alone, or below a path of a `starlette` application."""

from __future__ import annotations

import socket
import sys
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.routing import Route

from tricorn import Server


def serve(app: Server, kind: str, **options: Any) -> None:
    """Serve at the address after `--http`."""
    mcp: Any = app.asgi(**options)
    if kind == "starlette":
        routes = [Route("/mcp", mcp)]
        if mcp.metadata:
            routes.append(Route(mcp.metadata.path, mcp.metadata))
        mcp = Starlette(routes=routes)
    host, port = sys.argv[sys.argv.index("--http") + 1].split(":")
    with socket.create_server((host, int(port))) as listening:
        print(f"ready http://{host}:{listening.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
        # Its log of requests would have their queries.
        config = uvicorn.Config(mcp, log_level="warning", access_log=False, ws="none")
        uvicorn.Server(config).run(sockets=[listening])
