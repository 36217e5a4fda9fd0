"""The call's own context: what runs for a request sees the variables of whoever caused it, and keeps nothing."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import json
import threading
import weakref
from collections.abc import Callable
from typing import Annotated, Any

import pydantic
import pytest

from tricorn import Client, Context, RequestContext, Server, connect
from tricorn import middleware as builtin
from tricorn.bridge import host

from .conftest import INITIALIZE, LEGACY
from .test_asgi import Exchange, post

pytestmark = pytest.mark.filterwarnings("ignore:.*MCP .* deprecates:DeprecationWarning")

who: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")
thing: contextvars.ContextVar[object] = contextvars.ContextVar("thing")
PEOPLE = ("ada", "bob", "eve")
ERAS = (None, LEGACY)


def everything(app: Server) -> None:
    """One of each function that a request can reach, each of which says whose request it is."""

    @app.tool
    async def later() -> str:
        before = who.get()
        await asyncio.sleep(0)
        return before + who.get()

    @app.tool
    def threaded() -> str:
        return who.get() * 2

    @app.tool(run_in_thread=False)
    def inline() -> str:
        return who.get() * 2

    @app.resource("test://static")
    async def static() -> str:
        return who.get()

    @app.resource("test://{name}")
    def template(name: str) -> str:
        return who.get()

    @app.prompt(complete={"name": lambda _: [who.get()]})
    def prompt(name: str) -> str:
        return who.get()


async def ask_everything(client: Any, name: str) -> None:
    for tool in ("later", "threaded", "inline"):
        assert (await client.call_tool(tool)).text == name * 2, tool
    assert (await client.read_resource("test://static")).text == name
    assert (await client.read_resource("test://x")).text == name
    assert (await client.get_prompt("prompt", {"name": "x"})).messages[0].content.text == name
    assert (await client.complete("prompt", "name", "")).values == [name]


@pytest.mark.parametrize("revision", ERAS)
async def test_in_memory_each_task_has_its_own(revision: str | None) -> None:
    app = Server("own")
    everything(app)
    go = asyncio.Event()

    async def user(name: str) -> None:
        who.set(name)
        async with connect(app, revision=revision) if revision else connect(app) as client:
            await go.wait()
            await ask_everything(client, name)
            who.set(name + "!")
            await ask_everything(client, name + "!")

    tasks = [asyncio.create_task(user(name)) for name in PEOPLE]
    go.set()
    await asyncio.gather(*tasks)


async def test_one_client_that_several_tasks_share() -> None:
    app = Server("shared")
    everything(app)
    async with connect(app) as client:

        async def user(name: str) -> None:
            who.set(name)
            for _ in range(5):
                await ask_everything(client, name)

        await asyncio.gather(*map(user, PEOPLE))
        assert (await client.call_tool("later")).text == "nobody" * 2


class Login:
    """ASGI middleware that does what those of web frameworks do."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self.things: list[weakref.ref[Any]] = []

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        headers = dict(scope["headers"])
        name = headers[b"x-user"].decode()
        who.set(name)
        session = Thing()
        self.things.append(weakref.ref(session))
        thing.set(session)
        del session
        scope["user"] = name.upper()
        scope["state"] = {"db": name}
        scope["headers"] = [(key, b"checked " + value if key == b"x-user" else value) for key, value in headers.items()]
        await self.app(scope, receive, send)


class Thing:
    """An object that belongs to a request, such as a session of the database."""


def modern(method: str, params: dict[str, Any], id: int = 1) -> dict[str, Any]:  # noqa: A002
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": {**params, "_meta": meta}}


async def call_modern(web: Any, name: str, tool: str) -> str:
    headers = {"mcp_protocol_version": "2026-07-28", "mcp_method": "tools/call", "mcp_name": tool, "x_user": name}
    _, _, answer = await post(web, modern("tools/call", {"name": tool, "arguments": {}}), **headers)
    return str(answer["result"]["content"][0]["text"])


async def session_of(web: Any, name: str) -> str:
    _, headers, _ = await post(web, INITIALIZE, x_user=name)
    session = headers["mcp-session-id"]
    initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    await post(web, initialized, mcp_session_id=session, x_user=name)
    return session


async def call_legacy(web: Any, name: str, session: str, tool: str) -> str:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": {}}}
    headers = {"mcp_session_id": session, "mcp_protocol_version": LEGACY, "x_user": name}
    _, _, answer = await post(web, call, **headers)
    return str(answer["result"]["content"][0]["text"])


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_behind_asgi_middleware(era: str) -> None:
    app = Server("mounted")
    everything(app)
    asked: list[str] = []

    @app.middleware
    async def around(request: Any, context: Context, call_next: Any) -> Any:
        asked.append(who.get())
        return await call_next(request, context)

    web = Login(app.asgi())
    for name in PEOPLE:
        session = await session_of(web, name) if era == "legacy" else ""
        for tool in ("later", "threaded", "inline"):
            said = call_modern(web, name, tool) if era == "modern" else call_legacy(web, name, session, tool)
            assert await said == name * 2, tool
    assert asked == [name for name in PEOPLE for _ in range(3)]
    # A session that several people use: each request is its sender's.
    if era == "legacy":
        session = await session_of(web, "ada")
        assert await call_legacy(web, "bob", session, "later") == "bobbob"


async def test_two_requests_at_once_behind_asgi() -> None:
    app, both, there = Server("twice"), asyncio.Event(), set[str]()

    @app.tool
    async def slow() -> str:
        before = who.get()
        there.add(before)
        if len(there) == len(PEOPLE):
            both.set()
        await both.wait()
        return before + who.get()

    web = Login(app.asgi())
    assert await asyncio.gather(*(call_modern(web, name, "slow") for name in PEOPLE)) == [p * 2 for p in PEOPLE]


async def test_the_principal_is_asked_in_the_context_of_its_request() -> None:
    app, asked = Server("whose"), list[str]()

    @app.principal
    async def principal(_: Context) -> str:
        asked.append(who.get())
        return who.get()

    @app.tool
    async def ask(ctx: Context) -> str:
        await ctx.elicit("Sure?", {"type": "object", "properties": {"ok": {"type": "boolean"}}})
        return who.get()

    async def user(name: str) -> None:
        who.set(name)

        def elicitation(message: str, schema: Any) -> dict[str, Any]:
            assert who.get() == name
            return {"ok": True}

        async with connect(app, elicitation=elicitation) as client:
            assert (await client.call_tool("ask")).text == name

    await asyncio.gather(*map(user, PEOPLE))
    assert sorted(set(asked)) == sorted(PEOPLE)


async def test_nothing_of_a_request_is_kept() -> None:
    app = Server("free")
    everything(app)
    web = Login(app.asgi())
    things = web.things
    for name in PEOPLE:
        await call_modern(web, name, "later")
        await call_modern(web, name, "threaded")
    session = await session_of(web, "ada")
    await call_legacy(web, "ada", session, "later")

    async def client_of(name: str) -> None:
        session = Thing()
        things.append(weakref.ref(session))
        thing.set(session)
        who.set(name)
        async with connect(app) as client:
            await client.call_tool("later")

    await asyncio.gather(*map(client_of, PEOPLE))
    await asyncio.sleep(0)
    gc.collect()
    assert [ref() for ref in things if ref() is not None] == []
    assert not host.AROUND


async def test_nothing_of_a_request_is_kept_that_is_given_up() -> None:
    pytest.importorskip("uvicorn.server")  # once it is there, frames are searched for it
    app, started, over = Server("left"), asyncio.Event(), asyncio.Event()

    @app.tool
    async def slow() -> None:
        started.set()
        try:
            await asyncio.sleep(600)
        finally:
            assert who.get() == "ada"
            over.set()

    web = Login(app.asgi())
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "slow", "x-user": "ada"}
    call = modern("tools/call", {"name": "slow", "arguments": {}})
    exchange = Exchange(web, "POST", headers, json.dumps(call).encode())
    await asyncio.wait_for(started.wait(), 10)
    exchange.incoming.put_nowait({"type": "http.disconnect"})
    await asyncio.wait_for(over.wait(), 10)
    await asyncio.wait_for(exchange.task, 10)
    del exchange
    for _ in range(100):
        gc.collect()
        if web.things[0]() is None:
            return
        await asyncio.sleep(0.05)
    raise AssertionError("the request's context is kept")


async def test_the_scope_reaches_handlers() -> None:
    app, seen = Server("scope"), list[Any]()

    @app.middleware
    async def around(request: Any, context: Context, call_next: Any) -> Any:
        seen.append(context.host)
        return await call_next(request, context)

    @app.tool
    async def scoped(ctx: Context) -> str:
        assert ctx.host is not None
        seen.append(ctx.host)
        return f"{ctx.host['user']} {ctx.host['state']['db']} {ctx.request.headers['x-user']}"

    @app.tool
    def plain(ctx: Context) -> str:
        assert ctx.host is not None
        return str(ctx.host["user"])

    web = Login(app.asgi())
    for name in PEOPLE:
        assert await call_modern(web, name, "scoped") == f"{name.upper()} {name} checked {name}"
        assert await call_modern(web, name, "plain") == name.upper()
    assert seen[0] is seen[1]
    async with connect(app) as client:
        assert (await client.call_tool("scoped")).is_error
    assert seen[-1] is None


@pytest.mark.parametrize("revision", ERAS)
async def test_what_a_client_is_asked_and_told_belongs_to_its_call(revision: str | None) -> None:
    app, heard = Server("asks"), list[tuple[str, str]]()

    @app.tool
    async def ask(ctx: Context) -> str:
        ctx.progress(1)
        ctx.log("info", "x")
        answer = await ctx.elicit("Sure?", {"type": "object", "properties": {"who": {"type": "string"}}})
        return str(answer.content["who"]) if answer.content else "?"

    async def elicitation(message: str, schema: Any, ctx: RequestContext) -> dict[str, Any]:
        await asyncio.sleep(0)
        return {"who": who.get()}

    def on_log(*_: object) -> None:
        heard.append(("log", who.get()))

    def on_progress(_: object) -> None:
        heard.append(("progress", who.get()))

    who.set("connect")
    options: dict[str, Any] = {"revision": revision} if revision else {}
    async with connect(app, elicitation=elicitation, on_log=on_log, **options) as client:
        await client.set_log_level("debug")

        async def user(name: str) -> None:
            who.set(name)
            assert (await client.call_tool("ask", on_progress=on_progress)).text == name

        await asyncio.gather(*map(user, PEOPLE))
    assert {name for kind, name in heard if kind == "progress"} == set(PEOPLE)
    assert {name for kind, name in heard if kind == "log"} == set(PEOPLE)


async def test_what_belongs_to_no_call_runs_where_it_was_connected() -> None:
    app, heard = Server("changes"), asyncio.Queue[str]()
    who.set("connect")

    def on_list_changed(_: str) -> None:
        heard.put_nowait(who.get())
        who.set("nobody sees this")

    async with connect(app, on_list_changed=on_list_changed, revision=LEGACY) as client:
        who.set("later")
        await client.list_tools()
        for _ in range(2):
            app.tool(name=f"t{heard.qsize()}{_}")(lambda: "x")
            assert await asyncio.wait_for(heard.get(), 10) == "connect"


async def test_a_handler_sees_what_the_middleware_around_it_has_set() -> None:
    app = Server("wins")

    @app.middleware
    async def around(request: Any, context: Context, call_next: Any) -> Any:
        who.set(f"{who.get()} within")
        return await call_next(request, context)

    @app.tool
    async def later() -> str:
        return who.get()

    @app.tool
    def threaded() -> str:
        return who.get()

    who.set("ada")
    async with connect(app) as client:
        assert (await client.call_tool("later")).text == "ada within"
        assert (await client.call_tool("threaded")).text == "ada within"
        assert who.get() == "ada"


async def test_a_task_goes_on_in_the_context_of_its_request() -> None:
    app, go, said = Server("tasks", tasks=True), asyncio.Event(), asyncio.Queue[str]()

    @app.tool(task_support="optional")
    async def slow() -> str:
        await go.wait()
        said.put_nowait(who.get())
        return who.get()

    who.set("ada")
    async with connect(app, revision=LEGACY) as client:
        task = await client.call_tool_task("slow")
        who.set("somebody else")
        go.set()
        assert await asyncio.wait_for(said.get(), 10) == "ada"
        assert (await task.result()).text == "ada"


async def test_the_lifespan_is_no_requests() -> None:
    seen: list[str] = []

    async def lifespan(_: Server) -> Any:
        seen.append(who.get())
        yield None

    app = Server("life", lifespan=lifespan)
    everything(app)
    mounted = app.asgi()
    web = Login(mounted)
    assert await call_modern(web, "ada", "later") == "adaada"
    for _ in range(3):
        await asyncio.sleep(0)
    gc.collect()
    assert seen == ["nobody"]
    assert web.things[0]() is None
    await mounted.close()
    who.set("connect")
    async with connect(app):
        assert seen == ["nobody", "connect"]


async def test_errors_and_logs_are_heard_in_the_context_of_their_request(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[str] = []
    app = Server("errors", on_error=lambda error, name: heard.append(who.get()))
    app.middleware(builtin.logging())

    @app.tool
    async def fails() -> None:
        raise RuntimeError("x")

    @app.tool
    def fails_in_a_thread() -> None:
        raise RuntimeError("x")

    async def user(name: str) -> None:
        who.set(name)
        async with connect(app) as client:
            await client.call_tool("fails")
            await client.call_tool("fails_in_a_thread")

    await asyncio.gather(*map(user, PEOPLE))
    assert sorted(heard) == sorted(PEOPLE * 2)


def test_a_plain_client_in_threads() -> None:
    app = Server("threads")
    everything(app)
    wrong: list[BaseException] = []

    def user(name: str) -> None:
        try:
            who.set(name)
            with Client(app) as client:
                assert client.call_tool("later").text == name * 2
                assert client.call_tool("threaded").text == name * 2
        except BaseException as error:  # noqa: BLE001 - told by the test's own thread
            wrong.append(error)

    threads = [threading.Thread(target=user, args=(name,)) for name in PEOPLE]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert wrong == []


async def test_serving_has_a_context_and_each_request_a_copy(app: Server) -> None:
    listening: asyncio.Queue[str] = asyncio.Queue()

    @app.tool(run_in_thread=False)
    def change() -> str:
        before = who.get()
        who.set("changed")
        return before

    async def serve() -> None:
        who.set("serve")
        await app.serve_http(port=0, on_listening=listening.put_nowait)

    task = asyncio.create_task(serve())
    url = await asyncio.wait_for(listening.get(), 10)
    who.set("caller")
    async with connect(url) as client:
        assert [(await client.call_tool("change")).text for _ in range(3)] == ["serve"] * 3
    app.close()
    await asyncio.wait_for(task, 10)


def test_the_scope_is_typed() -> None:
    user: Callable[[Context], object] = lambda ctx: ctx.host["user"] if ctx.host is not None else None  # noqa: E731
    assert callable(user)


class Signed(pydantic.BaseModel):
    """A model whose parts look at who asks, as models with a validation context do."""

    name: Annotated[str, pydantic.BeforeValidator(lambda name: f"{name} for {who.get()}")]
    by: str = pydantic.Field(default_factory=who.get)
    seen: Annotated[str, pydantic.PlainSerializer(lambda _: who.get())] = ""


@pytest.mark.parametrize("revision", ERAS)
async def test_what_judges_a_value_sees_whose_it_is(revision: str | None) -> None:
    """Validators, defaults and serializers run for the request, too."""
    app = Server("judges")

    @app.tool
    async def later(signed: Signed) -> Signed:
        await asyncio.sleep(0)
        return signed

    @app.tool
    def plain(signed: Signed) -> list[Signed]:
        return [signed]

    async def user(name: str) -> None:
        who.set(name)
        expected = {"name": f"tea for {name}", "by": name, "seen": name}
        async with connect(app, revision=revision) as client:
            for tool in ("later", "plain"):
                result = await client.call_tool(tool, {"signed": {"name": "tea"}})
                assert json.loads(result.text) == (expected if tool == "later" else [expected])

    await asyncio.gather(*(asyncio.create_task(user(name)) for name in PEOPLE))


async def test_a_variable_is_reset_where_it_was_set() -> None:
    """A token is of no use in another context, and tracing, such as OpenTelemetry's, resets its own."""
    app = Server("tokens")

    @app.middleware
    async def around(request: Any, context: Context, call_next: Any) -> Any:
        token = who.set(f"{who.get()} within")
        try:
            return await call_next(request, context)
        finally:
            who.reset(token)

    @app.tool
    async def later() -> str:
        token = who.set("inner")
        await asyncio.sleep(0)
        who.reset(token)
        return who.get()

    @app.tool
    def plain() -> str:
        token = who.set("inner")
        who.reset(token)
        return who.get()

    async def user(name: str) -> None:
        who.set(name)
        async with connect(app) as client:
            for tool in ("later", "plain"):
                assert (await client.call_tool(tool)).text == f"{name} within"

    await asyncio.gather(*(asyncio.create_task(user(name)) for name in PEOPLE))
