"""A server on the official Python SDK: server.py --stdio | --http HOST:PORT."""

import socket
import sys

import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel

server = MCPServer("python-sdk", log_level="WARNING")


class Weather(BaseModel):
    city: str
    temperature: float
    conditions: str


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool(structured_output=False)
def echo(text: str) -> str:
    """Return the text unchanged."""
    return text


@server.tool()
def structured(city: str) -> Weather:
    """A weather report."""
    return Weather(city=city, temperature=22.5, conditions="sunny")


@server.tool(structured_output=False)
def fail(kind: str) -> str:
    """Fail when asked to."""
    if kind == "tool":
        raise ToolError("the tool says no")
    return "no failure"


class Announcing(uvicorn.Server):
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        port = self.servers[0].sockets[0].getsockname()[1]
        print(f"ready http://127.0.0.1:{port}/mcp", file=sys.stderr, flush=True)


match sys.argv[1:]:
    case ["--stdio"]:
        server.run("stdio")
    case ["--http", address]:
        host, port = address.rsplit(":", 1)
        app = server.streamable_http_app(host=host)
        Announcing(uvicorn.Config(app, host=host, port=int(port), log_level="warning")).run()
    case _:
        sys.exit(__doc__)
