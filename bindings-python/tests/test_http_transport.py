"""HTTP that something else carries: an application of this process, httpx, a transport of the program's own."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import gzip
import json
import threading
import urllib.error
import urllib.request
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from typing import Any
from urllib.parse import urlsplit

import pytest

from tricorn import (
    Client,
    ClientAuth,
    Context,
    HttpRequest,
    HttpResponse,
    HttpTransport,
    MisuseError,
    Server,
    ServerAuth,
    TimeoutError,  # noqa: A004
    ToolsListChanged,
    TransportError,
    connect,
    connect_many,
)
from tricorn.client import asgi_transport, http_transport
from tricorn.testing import ASGITransport, serving

from .authorization_server import AuthorizationServer, Visitor
from .conftest import LEGACY, MODERN, PATIENCE, idle, until
from .test_auth_functions import gone

fastapi = pytest.importorskip("fastapi")
applications = pytest.importorskip("starlette.applications")
background = pytest.importorskip("starlette.background")
responses = pytest.importorskip("starlette.responses")
routing = pytest.importorskip("starlette.routing")

URL = "http://localhost/mcp"
JSON = [("content-type", "application/json")]
EVENTS = [("Content-Type", "text/event-stream")]


@pytest.fixture(autouse=True)
def exchanges(monkeypatch: pytest.MonkeyPatch) -> Generator[list[http_transport.Exchanges]]:
    """A transport that counts its exchanges; in the end none of them is open."""
    made: list[http_transport.Exchanges] = []

    class Recorded(http_transport.Exchanges):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            made.append(self)

    monkeypatch.setattr(http_transport, "Exchanges", Recorded)
    yield made
    assert [(one.open, one._host._carried) for one in made] == [({}, set())] * len(made)


@pytest.fixture
def httpx() -> Any:
    return pytest.importorskip("httpx")


@pytest.fixture
def server() -> Server:
    app = Server("inside")

    @app.tool
    async def add(a: int, b: int) -> int:
        return a + b

    @app.tool
    async def who(ctx: Context) -> str:
        return f"{ctx.request.transport} {ctx.request.headers.get('x-mine')}"

    return app


async def soon(awaitable: Awaitable[Any]) -> Any:
    return await asyncio.wait_for(awaitable, PATIENCE)


def mounted(server: Server, how: str) -> Any:
    mcp = server.asgi()
    if how == "starlette":
        return applications.Starlette(routes=mcp.routes("/mcp"))
    if how == "below a path":
        return applications.Starlette(routes=[routing.Mount("/mcp", mcp)])
    if how == "fastapi":
        web = fastapi.FastAPI()
        web.routes.extend(mcp.routes("/mcp"))
        return web
    return mcp


class Made:
    """A server that is made up; `call` answers the calls of its tools."""

    def __init__(self, call: Callable[[dict[str, Any]], Awaitable[HttpResponse]]) -> None:
        self.call = call
        self.seen: list[HttpRequest] = []
        self.threads: set[str] = set()

    async def send(self, request: HttpRequest) -> HttpResponse:
        self.seen.append(request)
        self.threads.add(threading.current_thread().name)
        if request.method == "GET":
            return HttpResponse(405)
        asked: dict[str, Any] = json.loads(request.body or b"{}")
        if asked.get("method") == "tools/call":
            return await self.call(asked)
        if asked.get("method") != "initialize":
            return HttpResponse(202)
        result = {"protocolVersion": LEGACY, "capabilities": {"tools": {}}}
        return answer(asked, {**result, "serverInfo": {"name": "made up", "version": "1"}})


def result(asked: dict[str, Any], value: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": value}, ensure_ascii=False).encode()


def answer(asked: dict[str, Any], value: dict[str, Any]) -> HttpResponse:
    return HttpResponse(200, JSON, result(asked, value))


def said(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


async def hello(asked: dict[str, Any]) -> HttpResponse:
    return answer(asked, said("hello"))


class Counting:
    """Counts the bodies that are open."""

    def __init__(self, inner: HttpTransport) -> None:
        self.inner = inner
        self.seen: list[HttpRequest] = []
        self.open = 0
        self.most = 0

    async def send(self, request: HttpRequest) -> HttpResponse:
        self.seen.append(request)
        response = await self.inner.send(request)
        self.open += 1
        self.most = max(self.most, self.open)
        return HttpResponse(response.status, response.headers, _Counted(self, response.body))


class _Counted:
    def __init__(self, counting: Counting, body: Any) -> None:
        self.counting = counting
        self.body = body
        self.is_open = True

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        async for piece in self.body:
            yield piece

    async def aclose(self) -> None:
        assert self.is_open
        self.is_open = False
        await self.body.aclose()
        self.counting.open -= 1


# -- applications of this process


@pytest.mark.parametrize("how", ["bare", "starlette", "below a path", "fastapi"])
async def test_an_application_of_this_process(server: Server, revision: str, how: str) -> None:
    go = asyncio.Event()

    @server.tool
    async def work(ctx: Context) -> str:
        ctx.progress(1, 2)
        await go.wait()  # which the client sees to when it has heard of this progress: what is buffered hangs
        return "worked"

    url = f"{URL}/" if how == "below a path" else URL
    options: Any = {"revision": revision, "headers": {"X-Mine": "yes"}}
    transport = ASGITransport(mounted(server, how))
    async with connect(url, http_transport=transport, **options) as client:
        assert client.transport == "http"
        assert (await soon(client.call_tool("who"))).text == "http yes"
        assert (await soon(client.call_tool("work", on_progress=lambda _: go.set()))).text == "worked"
        results = await soon(asyncio.gather(*(client.call_tool("add", {"a": n, "b": n}) for n in range(50))))
        assert [int(one.text) for one in results] == [2 * n for n in range(50)]


async def test_other_hosts_are_said_to_the_server(server: Server) -> None:
    with pytest.raises(TransportError):
        await connect("http://test/mcp", http_transport=ASGITransport(server.asgi()))
    transport = ASGITransport(server.asgi(allowed_hosts=["test"]))
    async with connect("http://test/mcp", http_transport=transport) as client:
        assert (await soon(client.call_tool("add", {"a": 1, "b": 2}))).text == "3"


async def test_changes_come_over_streams(server: Server, revision: str) -> None:
    transport = Counting(ASGITransport(server.asgi()))
    async with (
        connect(URL, http_transport=transport, revision=revision) as client,
        client.listen(tools=True) as changes,
    ):
        for name in ("one", "two"):
            server.add_tool(lambda: "", name=name)
            assert await changes.next(PATIENCE) == ToolsListChanged()
    assert transport.most
    assert transport.open == 0


async def test_the_standalone_stream(server: Server) -> None:
    heard: asyncio.Queue[str] = asyncio.Queue()
    transport = Counting(ASGITransport(server.asgi()))
    options: Any = {"http_transport": transport, "revision": LEGACY, "on_list_changed": heard.put_nowait}
    async with connect(URL, **options):
        await until(lambda: any(request.method == "GET" for request in transport.seen) and transport.open > 0)
        server.add_tool(lambda: "", name="another")
        assert await soon(heard.get()) == "tool"
    assert transport.open == 0


async def test_cancelling_reaches_the_tool(server: Server, revision: str) -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    @server.tool
    async def slow() -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return ""

    transport = Counting(ASGITransport(server.asgi()))
    async with connect(URL, http_transport=transport, revision=revision) as client:
        calling = asyncio.create_task(client.call_tool("slow"))
        await soon(started.wait())
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        await soon(cancelled.wait())
        assert (await soon(client.call_tool("add", {"a": 1, "b": 2}))).text == "3"
    assert transport.open == 0


async def test_closing_ends_what_is_under_way(server: Server, revision: str) -> None:
    started, inner = asyncio.Event(), ASGITransport(server.asgi())

    @server.tool
    async def slow(ctx: Context) -> str:
        ctx.progress(1)  # from here on its answer is a stream
        started.set()
        await asyncio.Event().wait()
        return ""

    transport = Counting(inner)
    client = await connect(URL, http_transport=transport, revision=revision)
    calling = asyncio.create_task(client.call_tool("slow", on_progress=lambda _: None))
    await soon(started.wait())
    await soon(client.close())
    with pytest.raises(Exception, match="clos"):
        await soon(calling)
    assert transport.open == 0
    await until(lambda: not inner._calls)
    await idle(server)


async def test_the_application_has_a_context_of_its_own(server: Server) -> None:
    variable = contextvars.ContextVar("variable", default="outside")

    @server.tool
    async def seen() -> str:
        return variable.get()

    transport = ASGITransport(server.asgi())
    variable.set("the client's")
    async with connect(URL, http_transport=transport) as client:
        assert (await soon(client.call_tool("seen"))).text == "outside"


async def test_errors_of_the_application_before_its_response(caplog: pytest.LogCaptureFixture) -> None:
    async def fails(scope: Any, receive: Any, send: Any) -> None:
        raise LookupError("the database is down")

    with pytest.raises(TransportError, match="the database is down"):
        await connect(URL, http_transport=ASGITransport(fails), revision=MODERN)
    assert caplog.records
    assert all(record.exc_info and record.exc_info[0] is LookupError for record in caplog.records)

    async def silent(scope: Any, receive: Any, send: Any) -> None:
        pass

    with pytest.raises(TransportError, match="the application gave no response"):
        await connect(URL, http_transport=ASGITransport(silent), revision=MODERN)


@pytest.mark.parametrize("raises", [True, False])
async def test_errors_of_the_application_within_its_response(raises: bool, server: Server) -> None:
    mcp = server.asgi()

    async def breaks(scope: Any, receive: Any, send: Any) -> None:
        message = await receive()
        if b"tools/call" not in message.get("body", b""):
            again = iter([message])

            async def replayed() -> Any:
                return next(again, None) or await receive()

            await mcp(scope, replayed, send)
            return
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
        await send({"type": "http.response.body", "body": b'{"jsonrpc', "more_body": True})
        if raises:
            raise LookupError("the database is down")

    async with connect(URL, http_transport=ASGITransport(breaks), revision=LEGACY) as client:
        with pytest.raises(TransportError) as caught:
            await soon(client.call_tool("add", {"a": 1, "b": 2}))
    wanted = "the database is down" if raises else "the application left its response unfinished"
    assert wanted in str(caught.value)


async def test_its_lifespan_is_run_where_the_transport_is_entered(server: Server) -> None:
    happened: list[str] = []

    @contextlib.asynccontextmanager
    async def lifespan(_: Any) -> AsyncGenerator[dict[str, str]]:
        happened.append("started")
        yield {"name": "shared"}
        happened.append("stopped")

    async def name(request: Any) -> Any:
        return responses.PlainTextResponse(getattr(request.state, "name", "nothing"))

    web = applications.Starlette(
        routes=[*server.asgi().routes("/mcp"), routing.Route("/name", name)], lifespan=lifespan
    )
    asked = HttpRequest("GET", "http://localhost/name")
    async with ASGITransport(web) as transport:
        assert happened == ["started"]
        async with connect(URL, http_transport=transport) as client:
            assert (await soon(client.call_tool("add", {"a": 1, "b": 2}))).text == "3"
        assert await whole(await transport.send(asked)) == b"shared"
        with pytest.raises(MisuseError, match="its lifespan has begun already"):
            await transport.__aenter__()
    assert happened == ["started", "stopped"]
    assert await whole(await transport.send(asked)) == b"nothing"
    async with transport:  # once more
        assert happened[2:] == ["started"]


async def test_lifespans_that_fail() -> None:
    def failing(*steps: str) -> Any:
        @contextlib.asynccontextmanager
        async def lifespan(_: Any) -> AsyncGenerator[None]:
            if "start" in steps:
                raise LookupError("at its start")
            yield
            raise LookupError("at its end")

        return ASGITransport(applications.Starlette(lifespan=lifespan))

    with pytest.raises(LookupError, match="at its start"):
        await failing("start").__aenter__()
    with pytest.raises(LookupError, match="at its end"):
        async with failing("end"):
            pass

    async def says(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "lifespan.startup.failed", "message": "no database"})

    with pytest.raises(RuntimeError, match="no database"):
        await ASGITransport(says).__aenter__()

    async def knows_none(scope: Any, receive: Any, send: Any) -> None:
        raise ValueError(f"no {scope['type']} here")  # as Django says it

    async with ASGITransport(knows_none):
        pass


async def whole(response: HttpResponse) -> bytes:
    assert not isinstance(response.body, bytes)
    return b"".join([piece async for piece in response.body])


async def test_what_an_application_is_told() -> None:
    scopes: list[dict[str, Any]] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        scopes.append(scope)
        body = (await receive())["body"]
        await send({"type": "http.response.start", "status": 201, "headers": [(b"X-One", b"1"), (b"x-one", b"\xe4")]})
        await send({"type": "http.response.body", "body": body})
        assert (await receive())["type"] == "http.disconnect"

    transport = ASGITransport(app, client=("10.0.0.1", 7), root_path="/below")
    headers = [("accept", "text/plain"), ("x-name", "J\xe4ger"), ("x-other", "\u0141")]
    response = await transport.send(HttpRequest("POST", "http://me@host:81/a%20b/%C3%A4?q=%20", headers, b"body"))
    assert (response.status, list(response.headers)) == (201, [("X-One", "1"), ("x-one", "\xe4")])
    assert await whole(response) == b"body"
    assert (await transport.send(HttpRequest("GET", "https://host"))).status == 201
    first, second = scopes
    assert (first["method"], first["scheme"], first["path"], first["raw_path"], first["query_string"]) == (
        "POST",
        "http",
        "/a b/ä",
        b"/a%20b/%C3%A4",
        b"q=%20",
    )
    assert (first["client"], first["server"], first["root_path"]) == (("10.0.0.1", 7), ("host", 81), "/below")
    assert first["headers"] == [
        (b"host", b"host:81"),
        (b"accept", b"text/plain"),
        (b"x-name", b"J\xe4ger"),
        (b"x-other", b"\xc5\x81"),
        (b"content-length", b"4"),
    ]
    assert (second["path"], second["server"], second["headers"]) == ("/", ("host", 443), [(b"host", b"host")])


async def test_an_application_waits_for_who_reads_and_hears_who_leaves() -> None:
    sent, left = 0, asyncio.Event()

    async def floods(scope: Any, receive: Any, send: Any) -> None:
        nonlocal sent
        await send({"type": "http.response.start", "status": 200})
        try:
            while True:
                await send({"type": "http.response.body", "body": bytes(1024), "more_body": True})
                sent += 1
        except OSError:
            assert (await receive())["type"] == "http.disconnect"
            left.set()
            raise

    transport = ASGITransport(floods)
    body: Any = (await transport.send(HttpRequest("GET", URL))).body
    await until(lambda: sent >= 64)
    for _ in range(100):
        await asyncio.sleep(0)
    assert sent <= 65
    for _ in range(32):
        assert len(await soon(body.__anext__())) == 1024
    await soon(body.aclose())
    assert left.is_set()
    await until(lambda: not transport._calls)


async def test_applications_that_hear_of_no_end_are_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asgi_transport, "GRACE", 0.01)
    cancelled: list[str] = []

    async def deaf(scope: Any, receive: Any, send: Any) -> None:
        try:
            if scope["path"] == "/stream":
                await send({"type": "http.response.start", "status": 200})
            await asyncio.Event().wait()
        finally:
            cancelled.append(scope["path"])

    transport = ASGITransport(deaf)
    body: Any = (await transport.send(HttpRequest("GET", "http://localhost/stream"))).body
    await soon(body.aclose())
    assert cancelled == ["/stream"]
    sending = asyncio.create_task(transport.send(HttpRequest("GET", "http://localhost/head")))
    await until(lambda: len(transport._calls) == 1)
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    await until(lambda: not transport._calls)
    assert cancelled == ["/stream", "/head"]


async def test_what_goes_on_after_a_response_is_left_alone() -> None:
    go, done = asyncio.Event(), asyncio.Event()

    async def later() -> None:
        await go.wait()
        done.set()

    async def page(_: Any) -> Any:
        return responses.PlainTextResponse("page", background=background.BackgroundTask(later))

    transport = ASGITransport(applications.Starlette(routes=[routing.Route("/", page)]))
    response = await transport.send(HttpRequest("GET", "http://localhost/"))
    assert await whole(response) == b"page"
    body: Any = response.body
    await soon(body.aclose())
    go.set()
    await soon(done.wait())
    await until(lambda: not transport._calls)


async def test_streams_of_starlette_end_with_their_reader() -> None:
    ended = asyncio.Event()

    async def events() -> AsyncGenerator[str]:
        try:
            yield "data: 1\n\n"
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def stream(_: Any) -> Any:
        return responses.StreamingResponse(events(), media_type="text/event-stream")

    transport = ASGITransport(applications.Starlette(routes=[routing.Route("/", stream)]))
    body: Any = (await transport.send(HttpRequest("GET", "http://localhost/"))).body
    assert await soon(body.__anext__()) == b"data: 1\n\n"
    await soon(body.aclose())
    assert ended.is_set()
    assert not transport._calls


def test_an_application_has_to_be_one() -> None:
    with pytest.raises(MisuseError, match=r"expected an application of ASGI 3, got a Server; give its \.asgi"):
        ASGITransport(Server("s"))  # type: ignore[arg-type]
    with pytest.raises(MisuseError, match="expected an application of ASGI 3, got a str"):
        ASGITransport("app:web")  # type: ignore[arg-type]


# -- httpx


async def test_a_client_of_httpx_over_a_socket(server: Server, revision: str, httpx: Any) -> None:
    asked: list[str] = []

    async def mine(request: Any) -> None:
        asked.append(request.method)
        request.headers["X-Mine"] = "hooked"

    async with (
        serving(server) as url,
        httpx.AsyncClient(event_hooks={"request": [mine]}, timeout=httpx.Timeout(5, read=0.001)) as web,
    ):
        async with connect(url, http_transport=web, revision=revision) as client:
            assert (await soon(client.call_tool("who"))).text == "http hooked"
            async with client.listen(tools=True) as changes:
                server.add_tool(lambda: "", name="another")
                assert await changes.next(PATIENCE) == ToolsListChanged()
        assert not web.is_closed
        assert asked


def made_up(httpx: Any, seen: list[Any]) -> Any:
    """A transport of httpx that answers as `Made` does, zipped."""
    made = Made(hello)

    async def carry(request: Any) -> Any:
        seen.append(request)
        response = await made.send(HttpRequest(request.method, str(request.url), [], request.content))
        body: Any = response.body
        headers = [*response.headers, ("Content-Encoding", "gzip")]
        return httpx.Response(response.status, headers=headers, content=gzip.compress(body))

    return httpx.MockTransport(carry)


@pytest.mark.parametrize("wrapped", [True, False])
async def test_transports_of_httpx(httpx: Any, wrapped: bool, caplog: pytest.LogCaptureFixture) -> None:
    seen: list[Any] = []
    transport = made_up(httpx, seen)
    given = httpx.AsyncClient(transport=transport, headers={"X-Mine": "yes"}, timeout=7) if wrapped else transport
    async with connect(URL, http_transport=given, revision=LEGACY, headers={"X-Other": "no"}) as client:
        assert (await soon(client.call_tool("any"))).text == "hello"
    for request in seen:
        assert str(request.url) == URL
        assert (request.headers.get("x-mine"), request.headers["x-other"]) == ("yes" if wrapped else None, "no")
        # Streams are silent for as long as they like, whatever the client's default says.
        limits = request.extensions["timeout"]
        assert (limits["read"], limits["connect"]) == (None, 7 if wrapped else 5)
    assert not caplog.records


async def test_errors_of_httpx(httpx: Any) -> None:
    def fails(request: Any) -> Any:
        raise httpx.ReadTimeout("", request=request)

    with pytest.raises(TransportError, match="ReadTimeout"):
        await connect(URL, http_transport=httpx.MockTransport(fails), revision=MODERN)
    web = httpx.AsyncClient()
    await web.aclose()
    with pytest.raises(TransportError, match="the client has been closed"):
        await connect(URL, http_transport=web, revision=MODERN)


async def test_bodies_of_httpx_are_closed(httpx: Any) -> None:
    closed = asyncio.Event()

    class Stream(httpx.AsyncByteStream):  # type: ignore[misc]
        async def __aiter__(self) -> AsyncGenerator[bytes]:
            yield b": nothing yet\n\n"
            await asyncio.Event().wait()

        async def aclose(self) -> None:
            closed.set()

    async def streams(_: dict[str, Any]) -> Any:
        return httpx.Response(200, headers=EVENTS, stream=Stream())

    made = Made(streams)

    async def carry(request: Any) -> Any:
        response: Any = await made.send(HttpRequest(request.method, str(request.url), [], request.content))
        if isinstance(response, HttpResponse):
            body: Any = response.body
            return httpx.Response(response.status, headers=list(response.headers), content=body)
        return response

    async with connect(URL, http_transport=httpx.MockTransport(carry), revision=LEGACY) as client:
        with pytest.raises(TimeoutError):
            await client.call_tool("any", timeout=0.1)
        await soon(closed.wait())


async def test_what_httpx_has_for_applications_keeps_streams_back(
    httpx: Any, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(MisuseError, match=r"http_transport: this ASGITransport hands .* tricorn.testing.ASGITransport"):
        connect(URL, http_transport=httpx.ASGITransport(server.asgi()))
    web = httpx.AsyncClient(transport=httpx.ASGITransport(server.asgi()))
    async with connect(URL, http_transport=web, revision=MODERN) as client:
        assert (await soon(client.call_tool("add", {"a": 1, "b": 2}))).text == "3"
    assert ["ASGITransport of this AsyncClient" in message for message in caplog.messages] == [True]


def test_what_is_synchronous_is_refused(httpx: Any) -> None:
    with httpx.Client() as web, pytest.raises(MisuseError) as caught:
        connect(URL, http_transport=web)
    assert str(caught.value) == "http_transport: this Client is synchronous; give an httpx.AsyncClient"
    with pytest.raises(MisuseError, match=r"this WSGITransport is synchronous; give an httpx\.AsyncBase"):
        connect(URL, http_transport=httpx.WSGITransport(app=None))


# -- transports of the program's own


def test_it_is_a_protocol() -> None:
    transports: list[HttpTransport] = [Made(hello), ASGITransport(Server("s").asgi())]
    assert all(isinstance(transport, HttpTransport) for transport in transports)
    assert not isinstance({}, HttpTransport)


def test_secrets_are_not_shown() -> None:
    request = HttpRequest("POST", URL, [("authorization", "Bearer secret")], b"secret")
    response = HttpResponse(200, [("set-cookie", "secret")], b"secret")
    assert "secret" not in f"{request!r} {response!r}"


async def test_a_transport_of_ones_own(exchanges: list[http_transport.Exchanges]) -> None:
    made = Made(hello)
    async with connect(URL, http_transport=made, headers={"X-Mine": "yes"}, revision=LEGACY) as client:
        assert (await soon(client.call_tool("any"))).text == "hello"
    assert len(exchanges) == 1
    for request in made.seen:
        names = [name for name, _ in request.headers]
        assert names == [name.lower() for name in names]
        assert not {"host", "content-length"} & set(names)
        assert ("x-mine", "yes") in request.headers
        assert request.url == URL
        assert isinstance(request.body, bytes)


async def test_characters_may_be_split_between_pieces() -> None:
    text = "\ufeffgrüße 🦀 €"

    async def split(asked: dict[str, Any]) -> HttpResponse:
        event = b"\xef\xbb\xbfevent: message\ndata: " + result(asked, said(text)) + b"\n\n"

        async def body() -> AsyncGenerator[bytes]:
            for at in range(len(event)):
                yield event[at : at + 1]

        return HttpResponse(200, EVENTS, body())

    async with connect(URL, http_transport=Made(split), revision=LEGACY) as client:
        assert (await soon(client.call_tool("any"))).text == text


@pytest.mark.parametrize("streams", [True, False])
async def test_long_bodies_come_in_parts(streams: bool) -> None:
    text = "ü" * 300_001

    async def long(asked: dict[str, Any]) -> HttpResponse:
        whole = result(asked, said(text))

        async def body() -> AsyncGenerator[bytes]:
            yield b""
            yield whole[:200_000]
            yield whole[200_000:]

        return HttpResponse(200, JSON, body() if streams else whole)

    async with connect(URL, http_transport=Made(long), revision=LEGACY) as client:
        assert (await soon(client.call_tool("any"))).text == text


async def test_a_body_is_read_in_the_task_that_sends() -> None:
    tasks: list[Any] = []

    async def call(asked: dict[str, Any]) -> HttpResponse:
        tasks.append(asyncio.current_task())

        async def body() -> AsyncGenerator[bytes]:
            try:
                for part in result(asked, said("hello")).partition(b","):
                    tasks.append(asyncio.current_task())
                    yield part
            finally:
                tasks.append(asyncio.current_task())

        return HttpResponse(200, JSON, body())

    async with connect(URL, http_transport=Made(call), revision=LEGACY) as client:
        assert (await soon(client.call_tool("any"))).text == "hello"
    assert len(tasks) == 5
    assert len(set(tasks)) == 1


@pytest.mark.parametrize("begun", [True, False])
@pytest.mark.parametrize("how", ["cancelled", "late", "closed"])
async def test_giving_up_reaches_the_transport(how: str, begun: bool) -> None:
    waiting, ended = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        waiting.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)  # it may take its time
            ended.set()
            raise

    async def call(asked: dict[str, Any]) -> HttpResponse:
        async def body() -> AsyncGenerator[bytes]:
            yield b": begun\n\n"
            await wait()

        if begun:
            return HttpResponse(200, EVENTS, body())
        await wait()
        return answer(asked, said("never"))

    timeout = 0.1 if how == "late" else 60
    client = await connect(URL, http_transport=Made(call), revision=LEGACY, request_timeout=timeout)
    calling = asyncio.create_task(client.call_tool("any"))
    await soon(waiting.wait())
    if how == "cancelled":
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
    elif how == "late":
        with pytest.raises(TimeoutError):
            await calling
    else:
        await soon(client.close())
        assert ended.is_set()
        with pytest.raises(Exception, match="clos"):
            await soon(calling)
    await soon(ended.wait())
    await client.close()


async def test_a_body_that_cannot_be_closed_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_transport, "CLOSING", 0.01)
    closing = asyncio.Event()

    class Body:
        def __aiter__(self) -> Body:
            return self

        async def __anext__(self) -> bytes:
            await asyncio.Event().wait()
            return b""

        async def aclose(self) -> None:
            closing.set()
            await asyncio.Event().wait()

    async def call(_: dict[str, Any]) -> HttpResponse:
        return HttpResponse(200, EVENTS, Body())

    async with connect(URL, http_transport=Made(call), revision=LEGACY) as client:
        with pytest.raises(TimeoutError):
            await client.call_tool("any", timeout=0.1)
        await soon(closing.wait())


class Silent(Exception):  # noqa: N818
    """Says nothing."""


@pytest.mark.parametrize(
    ("raised", "message"),
    [
        (ConnectionError("no route to the server"), "no route to the server"),
        (Silent(), "Silent"),
        (asyncio.TimeoutError(), "TimeoutError"),
        (asyncio.CancelledError(), "CancelledError"),
        (TransportError("as it is"), "as it is"),
    ],
)
@pytest.mark.parametrize("begun", [True, False])
async def test_what_it_raises_reaches_the_caller(raised: BaseException, message: str, begun: bool) -> None:
    async def call(_: dict[str, Any]) -> HttpResponse:
        async def body() -> AsyncGenerator[bytes]:
            yield b'{"jsonrpc":'
            raise raised

        if begun:
            return HttpResponse(200, JSON, body())
        raise raised

    heard: list[tuple[Any, str]] = []
    options: Any = {"revision": LEGACY, "on_error": lambda error, name: heard.append((error, name))}
    async with connect(URL, http_transport=Made(call), **options) as client:
        with pytest.raises(TransportError) as caught:
            await soon(client.call_tool("any"))
    assert message in str(caught.value)
    assert [name for _, name in heard] == ["http_transport"]
    assert raised in (heard[0][0], heard[0][0].__cause__)


async def test_the_log_hears_of_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    async def call(_: dict[str, Any]) -> HttpResponse:
        raise ConnectionError("no route")

    async with connect(URL, http_transport=Made(call), revision=LEGACY) as client:
        with pytest.raises(TransportError, match="no route"):
            await soon(client.call_tool("any"))
    assert not caplog.records


async def not_bytes() -> AsyncGenerator[Any]:
    yield "text"


@pytest.mark.parametrize(
    ("response", "message"),
    [
        (None, "send: expected an HttpResponse, got a NoneType"),
        ({"status": 200}, "send: expected an HttpResponse, got a dict"),
        (HttpResponse("200"), "status: expected a number of three digits, got '200'"),  # type: ignore[arg-type]
        (HttpResponse(20), "status: expected a number of three digits, got 20"),
        (HttpResponse(200, {"a": "b"}), "got a dict; give its .items()"),  # type: ignore[dict-item]
        (HttpResponse(200, [("a", b"b")]), "both text, got bytes; give its .decode()"),  # type: ignore[list-item]
        (HttpResponse(200, ["a"]), "headers: expected pairs of a name and a value"),  # type: ignore[list-item]
        (HttpResponse(200, None), "headers: expected pairs of a name and a value"),  # type: ignore[arg-type]
        (HttpResponse(200, JSON, "{}"), "got a str; give its .encode()"),  # type: ignore[arg-type]
        (HttpResponse(200, JSON, [b"{}"]), "body: expected bytes, or an async"),  # type: ignore[arg-type]
        (HttpResponse(200, JSON, not_bytes()), "body: expected bytes, got a str; give its .encode()"),
    ],
)
async def test_wrong_responses_are_named(response: Any, message: str) -> None:
    async def call(_: dict[str, Any]) -> HttpResponse:
        made: HttpResponse = response
        return made

    async with connect(URL, http_transport=Made(call), revision=LEGACY) as client:
        with pytest.raises(MisuseError) as caught:
            await soon(client.call_tool("any"))
    assert "http_transport: " in str(caught.value)
    assert message in str(caught.value)


async def test_a_plain_method_is_refused() -> None:
    class Plain:
        def send(self, request: HttpRequest) -> HttpResponse:
            return HttpResponse(200)

    with pytest.raises(MisuseError, match="http_transport: send: expected an asynchronous method"):
        await connect(URL, http_transport=Plain(), revision=LEGACY)  # type: ignore[arg-type]


EXPECTED = "http_transport: expected an HttpTransport, an httpx.AsyncClient or an httpx.AsyncBaseTransport"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, f"{EXPECTED}; this dict has no method 'send'"),
        ("http", f"{EXPECTED}; this str has no method 'send'"),
        (False, f"{EXPECTED}; this bool has no method 'send'"),
        (Made, f"{EXPECTED}, got the class Made; give an object of it"),
        (print, f"{EXPECTED}; this builtin_function_or_method has no method 'send'; an application of ASGI goes into"),
    ],
)
@pytest.mark.parametrize("make", [connect, Client])
def test_what_is_no_transport_is_refused(make: Any, given: Any, message: str) -> None:
    with pytest.raises(MisuseError) as caught:
        make(URL, http_transport=given)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("option", ["proxy", "ca", "cert", "key"])
async def test_options_of_connections_are_refused_beside_it(option: str) -> None:
    options: Any = {option: "http://127.0.0.1:1"}
    with pytest.raises(MisuseError, match=option):
        await connect(URL, http_transport=Made(hello), **options)


async def test_it_stays_none_where_none_is_given(server: Server) -> None:
    async with serving(server) as url, connect(url, http_transport=None) as client:
        assert (await soon(client.call_tool("add", {"a": 1, "b": 2}))).text == "3"


def test_a_synchronous_client(exchanges: list[http_transport.Exchanges]) -> None:
    made = Made(hello)
    with Client(URL, http_transport=made, revision=LEGACY) as client:
        assert client.call_tool("any").text == "hello"
    assert made.threads == {"tricorn-clients"}
    assert not exchanges[0].open


async def test_a_group() -> None:
    servers = {name: Server(name) for name in ("one", "two")}
    inside: dict[str, HttpTransport] = {}
    for name, app in servers.items():
        app.add_tool(lambda name=name: name, name="name")
        inside[name] = ASGITransport(app.asgi(allowed_hosts=[name]))

    class Router:
        async def send(self, request: HttpRequest) -> HttpResponse:
            return await inside[str(urlsplit(request.url).hostname)].send(request)

    targets = {name: f"http://{name}/mcp" for name in servers}
    async with connect_many(targets, http_transport=Router()) as group:
        assert not group.failures
        for name in servers:
            assert (await soon(group[name].call_tool("name"))).text == name


@pytest.mark.parametrize("several", [True, False])
async def test_it_goes_with_its_client(several: bool, exchanges: list[http_transport.Exchanges]) -> None:
    made = Made(hello)
    known = weakref.ref(made)
    options: Any = {"http_transport": made, "revision": LEGACY}
    client: Any = connect_many({"one": URL}, **options) if several else connect(URL, **options)
    del made, options
    async with client:
        assert known() is not None
    assert not exchanges.pop().open
    assert await gone(known)


class Urllib:
    """Sends what it knows no application for over sockets, and keeps the addresses."""

    def __init__(self, inside: HttpTransport) -> None:
        self.inside = inside
        self.urls: list[str] = []

    async def send(self, request: HttpRequest) -> HttpResponse:
        self.urls.append(request.url)
        if request.url.startswith("http://localhost/"):
            return await self.inside.send(request)
        return await asyncio.to_thread(self._fetched, request)

    def _fetched(self, request: HttpRequest) -> HttpResponse:
        made = urllib.request.Request(request.url, request.body or None, dict(request.headers), method=request.method)
        try:
            with urllib.request.urlopen(made, timeout=PATIENCE) as response:
                return HttpResponse(response.status, response.getheaders(), response.read())
        except urllib.error.HTTPError as error:
            with error:
                return HttpResponse(error.code, error.headers.items(), error.read())


async def test_logins_go_through_it(authority: AuthorizationServer, visitor: Visitor) -> None:
    server = Server("notes", auth=ServerAuth(issuer=authority.url, resource=URL))

    @server.tool
    async def who(ctx: Context) -> str:
        return str(ctx.principal and ctx.principal.subject)

    transport = Urllib(ASGITransport(server.asgi()))
    auth = ClientAuth(browser=visitor.browse, store="memory")
    async with connect(URL, http_transport=transport, auth=auth) as client:
        assert (await soon(client.call_tool("who"))).text == "ada"
    asked = {urlsplit(url).path for url in transport.urls}
    assert {"/mcp", "/.well-known/oauth-authorization-server", "/register", "/token"} <= asked
    assert any(path.startswith("/.well-known/oauth-protected-resource") for path in asked)


def test_nothing_is_imported_for_it_in_advance(script: Callable[[str], str]) -> None:
    code = """
        import sys
        import tricorn
        from tricorn import connect

        names = ("httpx", "tricorn.client.http_transport", "tricorn.client.asgi_transport")
        print([name for name in names if name in sys.modules])
        print(tricorn.HttpTransport.__name__, "tricorn.client.http_transport" in sys.modules)
    """
    assert script(code) == "[]\nHttpTransport True\n"


def test_a_client_whose_loop_has_ended_is_closed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tricorn.bridge.host.CLOSING", 3600.0)

    begun = asyncio.Event()

    async def call(_: dict[str, Any]) -> HttpResponse:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def begin() -> Any:
        client = await connect(URL, http_transport=Made(call), revision=LEGACY)
        calls = [asyncio.create_task(client.call_tool("any"))]
        await begun.wait()
        return client, calls

    loop = asyncio.new_event_loop()
    client, calls = loop.run_until_complete(soon(begin()))
    asyncio.run(asyncio.wait_for(client.close(), PATIENCE))
    for task in [*calls, *asyncio.all_tasks(loop)]:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*asyncio.all_tasks(loop), return_exceptions=True))
    loop.close()
