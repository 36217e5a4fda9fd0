"""Requests as odd clients, gateways and proxies send them, byte by byte, to a server that others mount."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from tricorn import Context, MisuseError, Server, ServerAuth, connect

from .conftest import INITIALIZE
from .test_asgi import Exchange, post

fastapi = pytest.importorskip("fastapi")
applications = pytest.importorskip("starlette.applications")
bases = pytest.importorskip("starlette.middleware.base")
middlewares = pytest.importorskip("starlette.middleware")
routing = pytest.importorskip("starlette.routing")
uvicorn = pytest.importorskip("uvicorn")

LIMIT = 20
PING = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
BOTH = "application/json, text/event-stream"


@contextlib.asynccontextmanager
async def hosted(web: Any) -> AsyncGenerator[int]:
    """The port at which uvicorn serves an application."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        host = uvicorn.Server(uvicorn.Config(web, lifespan="off", log_level="critical", ws="none"))
        host.capture_signals = contextlib.nullcontext  # the test owns the signals
        serving = asyncio.create_task(host.serve(sockets=[listening]))
        try:
            yield listening.getsockname()[1]
        finally:
            host.should_exit = True
            await asyncio.wait_for(serving, LIMIT)


def head(path: str = "/mcp", method: str = "POST", version: str = "HTTP/1.1", **headers: str) -> bytes:
    given = {"Host": "localhost", "Content-Type": "application/json", "Accept": BOTH, **headers}
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in given.items() if value != "-"]
    return "\r\n".join([f"{method} {path} {version}", *lines, "", ""]).encode()


async def answers(port: int, *pieces: bytes) -> str:
    """All that is answered to these bytes; the last request says that the connection ends."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
    said = await asyncio.wait_for(reader.read(), LIMIT)
    writer.close()
    await writer.wait_closed()
    return said.decode()


def sized(body: bytes = PING, **headers: str) -> bytes:
    return head(Connection="close", **{"Content-Length": str(len(body)), **headers}) + body


async def test_requests_as_others_write_them() -> None:
    mcp = Server("odd").asgi()
    async with hosted(applications.Starlette(routes=mcp.routes("/mcp"))) as port:
        opened = await answers(port, sized(json.dumps(INITIALIZE).encode()))
        session = next(line for line in opened.splitlines() if line.startswith("mcp-session-id: ")).split()[1]
        mine = {"Mcp-Session-Id": session}
        whole = sized(**mine)
        chunks = b"5\r\n%b\r\n%x;name=value\r\n%b\r\n0\r\nX-Trailer: 1\r\n\r\n" % (PING[:5], len(PING) - 5, PING[5:])
        kept = head(**{"Content-Length": str(len(PING)), **mine}) + PING
        requests: list[tuple[str, list[bytes], int]] = [
            ("as most do", [whole], 1),
            ("with a slash at the end", [whole.replace(b"/mcp ", b"/mcp/ ")], 1),
            ("with a query", [whole.replace(b"/mcp ", b"/mcp?api_key=a%20b ")], 1),
            ("in HTTP/1.0", [whole.replace(b"HTTP/1.1", b"HTTP/1.0")], 1),
            ("in chunks", [head(Connection="close", **{"Transfer-Encoding": "chunked"}, **mine), chunks], 1),
            ("piece by piece", [whole[:20], whole[20:-10], whole[-10:]], 1),
            ("two at once", [kept + whole], 2),
            ("any answer", [sized(Accept="*/*", **mine)], 1),
            ("no Accept", [sized(Accept="-", **mine)], 1),
            ("JSON alone", [sized(Accept="application/json", **mine)], 1),
            ("with a charset", [sized(**{"Content-Type": 'Application/JSON; charset="UTF-8"'}, **mine)], 1),
            ("over several lines", [sized(PING.replace(b",", b",\r\n") + b"\r\n", **mine)], 1),
        ]
        for name, pieces, times in requests:
            said = await answers(port, *pieces)
            assert (said.count(" 200 OK"), said.count('"id":1,"result":{}')) == (times, times), (name, said)
        expecting = head(Expect="100-continue", Connection="close", **{"Content-Length": str(len(PING))}, **mine)
        said = await answers(port, expecting, PING)
        assert said.startswith("HTTP/1.1 100 Continue"), said
        assert '"id":1,"result":{}' in said
        for method in ("HEAD", "OPTIONS", "PUT"):
            said = await answers(port, head(method=method, Connection="close", **mine))
            assert said.startswith("HTTP/1.1 405 ")
            assert "allow: GET, POST, DELETE" in said
            assert (said.partition("\r\n\r\n")[2] == "") == (method == "HEAD")


@pytest.mark.parametrize("path", ["/mcp", "/mcp/", "/mcp?x=1"])
async def test_routes_lead_to_a_server_without_a_redirect(path: str) -> None:
    """Hosted assistants take the slash off, do not follow, or follow to http."""
    for made in ("starlette", "fastapi", "below another"):
        mcp = Server("routed").asgi()
        if made == "fastapi":
            web = fastapi.FastAPI()
            web.routes.extend(mcp.routes("mcp/"))
        elif made == "below another":
            web = applications.Starlette(routes=[routing.Mount("/api", routes=mcp.routes())])
        else:
            web = applications.Starlette(routes=mcp.routes("/mcp"))
        at = f"/api{path}" if made == "below another" else path
        bare, _, query = at.partition("?")
        sent = Exchange(web, "POST", {}, json.dumps(INITIALIZE).encode(), query, bare)
        status, headers = await sent.start()
        assert (status, "location" in headers) == (200, False), made
        assert json.loads(await sent.rest())["result"]["serverInfo"]["name"] == "routed"


async def test_routes_include_the_metadata_of_a_protected_server() -> None:
    auth = ServerAuth(issuer="https://login.example.com", resource="https://example.com/mcp")
    mcp = Server("protected", auth=auth).asgi(allowed_hosts=["example.com"])
    assert mcp.metadata is not None
    paths = [route.path for route in mcp.routes()]
    assert paths == ["/.well-known/oauth-protected-resource/mcp", "/mcp", "/mcp"]
    web = applications.Starlette(routes=mcp.routes())
    sent = Exchange(web, "GET", {"host": "example.com"}, path=mcp.metadata.path)
    assert (await sent.start())[0] == 200
    assert json.loads(await sent.rest())["resource"] == "https://example.com/mcp"
    assert [route.path for route in Server("root").asgi().routes("/")] == [""]


def reading(how: str) -> Any:
    """A middleware that reads bodies, as those that log or trace do."""

    async def dispatch(request: Any, call_next: Any) -> Any:
        if how == "body":
            await request.body()
        elif how == "json":
            await request.json()
        else:
            async for _ in request.stream():
                pass
        return await call_next(request)

    return middlewares.Middleware(bases.BaseHTTPMiddleware, dispatch=dispatch)


@pytest.mark.parametrize("how", ["body", "json"])
async def test_a_middleware_may_read_the_body(how: str) -> None:
    app, seen = Server("logged"), list[float]()

    @app.tool
    async def work(ctx: Context) -> str:
        ctx.progress(1, 2)
        return "done"

    web = applications.Starlette(routes=app.asgi().routes(), middleware=[reading(how), reading(how)])
    async with hosted(web) as port:
        for revision in ("2025-06-18", "2026-07-28"):
            seen.clear()
            async with connect(f"http://127.0.0.1:{port}/mcp", revision=revision) as client:
                assert (await client.call_tool("work", on_progress=lambda p: seen.append(p.progress))).text == "done"
            assert seen == [1]


async def test_a_client_that_leaves_is_missed_behind_middleware() -> None:
    app, started, cancelled = Server("left"), asyncio.Event(), asyncio.Event()

    @app.tool
    async def work(ctx: Context) -> None:
        ctx.progress(1, 2)
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    meta = {
        "progressToken": 1,
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": "work", "arguments": {}, "_meta": meta}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "work"}
    web = applications.Starlette(routes=app.asgi().routes(), middleware=[reading("body"), reading("json")])
    async with hosted(web) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head(**{"Content-Length": str(len(body)), **headers}) + body)
        await asyncio.wait_for(reader.readuntil(b"notifications/progress"), LIMIT)
        assert started.is_set()
        writer.transport.abort()
        await asyncio.wait_for(cancelled.wait(), LIMIT)


async def test_a_body_that_is_gone_is_named() -> None:
    """A reader of the stream leaves nothing: an empty body would blame the client."""
    web = applications.Starlette(routes=Server("read").asgi().routes(), middleware=[reading("stream")])
    body = json.dumps(INITIALIZE).encode()
    sent = Exchange(web, "POST", {"content-length": str(len(body))}, body, path="/mcp")
    with pytest.raises(MisuseError, match=r"^the body was read before .* let it use request\.body\(\)"):
        await asyncio.wait_for(sent.task, LIMIT)
    # An empty body that was announced as that is the client's own.
    sent = Exchange(Server("read").asgi(), "POST", {"content-length": "0"})
    assert (await sent.start())[0] == 400
    assert json.loads(await sent.rest())["error"]["code"] == -32700


class Replaying:
    """Passes on a body that it has read, as most do: without ever waiting, and without an end."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message["body"], message["more_body"]

        async def again() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        await self.app(scope, again, send)


async def test_a_middleware_may_say_the_body_again_and_again() -> None:
    """To listen for the client's leaving there would stop the program for ever."""
    app = Server("replayed")

    @app.tool
    async def work() -> str:
        await asyncio.sleep(0)
        return "done"

    web = Replaying(app.asgi())
    _, got, _ = await asyncio.wait_for(post(web, INITIALIZE), LIMIT)
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "work", "arguments": {}}}
    _, _, answer = await asyncio.wait_for(post(web, call, mcp_session_id=got["mcp-session-id"]), LIMIT)
    assert answer["result"]["content"][0]["text"] == "done"
    # What is refused without being read, too.
    auth = ServerAuth(issuer="https://login.example.com", resource="https://example.com/mcp")
    web = Replaying(Server("protected", auth=auth).asgi())
    assert (await asyncio.wait_for(post(web, INITIALIZE), LIMIT))[0] == 401
