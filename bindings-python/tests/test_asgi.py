"""The ASGI application, driven by hand: no framework, no lifespan."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from typing import Any

import pytest

from tricorn import Context, Server, connect

from .conftest import INITIALIZE

pytestmark = pytest.mark.filterwarnings("ignore:.*MCP .* deprecates:DeprecationWarning")

ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json", "host": "localhost"}


class Exchange:
    """One HTTP exchange as a framework would run it."""

    def __init__(
        self,
        app: Any,
        method: str,
        headers: dict[str, str],
        body: bytes = b"",
        query: str = "",
        path: str = "/mounted/somewhere",
        coming: bool = True,
    ) -> None:
        self.incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.outgoing: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        half = len(body) // 2
        if coming:
            self.incoming.put_nowait({"type": "http.request", "body": body[:half], "more_body": True})
            self.incoming.put_nowait({"type": "http.request", "body": body[half:], "more_body": False})
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in {**ACCEPT, **headers}.items()],
            "client": ("127.0.0.1", 1234),
        }
        self.task = asyncio.create_task(app(scope, self.incoming.get, self._send))

    async def _send(self, message: dict[str, Any]) -> None:
        await self.outgoing.put(message)

    async def start(self) -> tuple[int, dict[str, str]]:
        message = await asyncio.wait_for(self.outgoing.get(), 10)
        assert message["type"] == "http.response.start"
        return message["status"], {name.decode(): value.decode() for name, value in message["headers"]}

    async def rest(self) -> bytes:
        body = b""
        while True:
            message = await asyncio.wait_for(self.outgoing.get(), 10)
            assert message["type"] == "http.response.body"
            body += message["body"]
            if not message.get("more_body"):
                await asyncio.wait_for(self.task, 10)
                return body


async def post(app: Any, message: dict[str, Any], **headers: str) -> tuple[int, dict[str, str], Any]:
    exchange = Exchange(app, "POST", {k.replace("_", "-"): v for k, v in headers.items()}, json.dumps(message).encode())
    status, got = await exchange.start()
    text = (await exchange.rest()).decode()
    if "data:" in text:
        text = [line for line in text.splitlines() if line.startswith("data:")][-1].removeprefix("data:")
    return status, got, json.loads(text) if text else None


@pytest.fixture
def server() -> Server:
    app = Server("demo")

    @app.tool
    async def add(a: int, b: int) -> int:
        return a + b

    return app


async def test_a_legacy_session(server: Server) -> None:
    app = server.asgi()
    status, headers, answer = await post(app, INITIALIZE)
    assert (status, answer["result"]["serverInfo"]["name"]) == (200, "demo")
    session = headers["mcp-session-id"]
    status, _, answer = await post(
        app, {"jsonrpc": "2.0", "method": "notifications/initialized"}, mcp_session_id=session
    )
    assert (status, answer) == (202, None)
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 1, "b": 2}}}
    status, _, answer = await post(app, call, mcp_session_id=session, mcp_protocol_version="2025-11-25")
    assert (status, answer["result"]["content"][0]["text"]) == (200, "3")


async def test_hosts_are_checked(server: Server) -> None:
    status, _, _ = await post(server.asgi(), INITIALIZE, host="evil.example.com")
    assert 400 <= status < 500
    status, _, _ = await post(server.asgi(allowed_hosts=["good.example.com"]), INITIALIZE, host="good.example.com")
    assert status == 200


async def test_a_client_that_leaves_cancels(server: Server) -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    @server.tool
    async def slow() -> str:
        started.set()
        try:
            await asyncio.sleep(600)
        finally:
            cancelled.set()
        return "?"

    info = {"name": "t", "version": "1"}
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": info,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "slow", "_meta": meta}}
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "slow"}
    exchange = Exchange(server.asgi(), "POST", headers, json.dumps(call).encode())
    await asyncio.wait_for(started.wait(), 10)
    exchange.incoming.put_nowait({"type": "http.disconnect"})
    await asyncio.wait_for(cancelled.wait(), 10)
    await asyncio.wait_for(exchange.task, 10)
    assert not server._exchanges
    assert not server._host.waiting


async def test_bodies_that_are_too_long() -> None:
    app = Server("small", max_message_bytes=1000).asgi()
    exchange = Exchange(app, "POST", {}, b"x" * 10_000)
    status, _ = await exchange.start()
    assert status == 413


async def test_lifespan_is_optional_but_understood(server: Server) -> None:
    app = server.asgi()
    incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    sent: list[str] = []

    async def send(message: Any) -> None:
        sent.append(message["type"])

    task = asyncio.create_task(app({"type": "lifespan"}, incoming.get, send))
    incoming.put_nowait({"type": "lifespan.startup"})
    assert (await post(app, INITIALIZE))[0] == 200
    incoming.put_nowait({"type": "lifespan.shutdown"})
    await asyncio.wait_for(task, 10)
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert server._host.loop is None


async def test_web_sockets_are_refused(server: Server) -> None:
    incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    incoming.put_nowait({"type": "websocket.connect"})
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    await server.asgi()({"type": "websocket"}, incoming.get, send)
    assert sent == [{"type": "websocket.close", "code": 1000}]


def test_loop_after_loop(server: Server) -> None:
    app = server.asgi()
    for _ in range(3):
        assert asyncio.run(post(app, INITIALIZE))[0] == 200


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_mounted_in_a_framework_that_runs_no_lifespan(server: Server, revision: str) -> None:
    applications = pytest.importorskip("starlette.applications")
    routing = pytest.importorskip("starlette.routing")
    uvicorn = pytest.importorskip("uvicorn")

    @server.tool
    async def work(ctx: Context) -> str:
        ctx.progress(1, 2)
        return f"{ctx.request.transport} {ctx.request.headers['x-mine']}"

    app = applications.Starlette(routes=[routing.Mount("/tools", app=server.asgi())])
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        web = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_level="warning", ws="none"))
        web.capture_signals = contextlib.nullcontext  # the test owns the signals
        serving = asyncio.create_task(web.serve(sockets=[listening]))
        try:
            seen: list[float] = []
            url = f"http://127.0.0.1:{port}/tools/"
            async with connect(url, revision=revision, headers={"X-Mine": "yes"}) as client:
                assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"
                result = await client.call_tool("work", on_progress=lambda p: seen.append(p.progress))
                assert result.text == "http yes"
                assert seen == [1]
                results = await asyncio.gather(*(client.call_tool("add", {"a": n, "b": n}) for n in range(50)))
                assert [int(result.text) for result in results] == [2 * n for n in range(50)]
        finally:
            web.should_exit = True
            await asyncio.wait_for(serving, 20)


async def test_the_oldest_transport_where_it_is_mounted(server: Server) -> None:
    app = server.asgi(sse=True)
    stream = Exchange(app, "GET", {"accept": "text/event-stream"})
    assert (await stream.start())[0] == 200
    first = (await asyncio.wait_for(stream.outgoing.get(), 10))["body"].decode()
    query = first.split("data:", 1)[1].split()[0]
    assert first.startswith("event: endpoint"), first
    assert query.startswith("?session_id="), first
    posted = Exchange(app, "POST", {}, json.dumps(INITIALIZE).encode(), query=query.removeprefix("?"))
    assert (await posted.start())[0] == 202
    await posted.rest()
    answer = (await asyncio.wait_for(stream.outgoing.get(), 10))["body"].decode()
    assert '"name":"demo"' in answer, answer
    stream.incoming.put_nowait({"type": "http.disconnect"})
    await asyncio.wait_for(stream.task, 10)


async def test_a_client_of_the_oldest_transport(server: Server) -> None:
    uvicorn = pytest.importorskip("uvicorn")

    mounted = server.asgi(sse=True)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        assert scope["path"] == "/api/sse"
        await mounted(scope, receive, send)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        web = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_level="warning", ws="none"))
        web.capture_signals = contextlib.nullcontext
        serving = asyncio.create_task(web.serve(sockets=[listening]))
        try:
            target = {"mcpServers": {"old": {"type": "sse", "url": f"http://127.0.0.1:{port}/api/sse"}}}
            async with connect(target) as client:
                assert (client.era, client.transport) == ("legacy", "http")
                results = await asyncio.gather(*(client.call_tool("add", {"a": n, "b": n}) for n in range(20)))
                assert [int(result.text) for result in results] == [2 * n for n in range(20)]
        finally:
            web.should_exit = True
            await asyncio.wait_for(serving, 20)
