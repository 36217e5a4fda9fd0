"""Features that a server changes while it runs: lists, visibility, sources, subscriptions; and what clients hear of it.
it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from tricorn import (
    Client,
    Context,
    LogHandler,
    MisuseError,
    Prompt,
    Resource,
    ResourceNotFoundError,
    ResourceTemplate,
    RpcError,
    Server,
    Tool,
    connect,
    testing,
)

pytestmark = pytest.mark.filterwarnings("ignore:.*MCP .* deprecates:DeprecationWarning")

LEGACY = "2025-11-25"
ERAS = pytest.mark.parametrize("revision", [LEGACY, "2026-07-28"])


def full(server: Server) -> Server:
    """With five things of each kind."""
    for n in range(5):
        server.add_tool(lambda: "", name=f"t{n}")
        server.add_resource(f"test://{n}", f"text {n}")
        server.add_resource(f"test://{n}/{{x}}", lambda x: x)
        server.add_prompt(lambda: "", name=f"p{n}")
    return server


def names(entries: Any) -> list[str]:
    keys = {Tool: "name", Prompt: "name", Resource: "uri", ResourceTemplate: "uriTemplate"}
    return [entry.raw[keys[type(entry)]] for entry in entries]


EXPECTED = {
    "tools": [f"t{n}" for n in range(5)],
    "resources": [f"test://{n}" for n in range(5)],
    "resource_templates": [f"test://{n}/{{x}}" for n in range(5)],
    "prompts": [f"p{n}" for n in range(5)],
}


@ERAS
async def test_lists_have_pages(revision: str) -> None:
    async with testing.connect(full(Server("x", page_size=2)), revision=revision) as client:
        for kind, expected in EXPECTED.items():
            assert names(await getattr(client, f"list_{kind}")(timeout=10)) == expected
            page, cursor = await getattr(client, f"list_{kind}_page")()
            assert names(page) == expected[:2]
            page, cursor = await getattr(client, f"list_{kind}_page")(cursor)
            assert names(page) == expected[2:4]
            assert names([entry async for entry in getattr(client, kind)()]) == expected


async def test_iterating_asks_for_no_more_than_is_needed() -> None:
    app, asked = Server("x"), list[Any]()

    async def pages(cursor: str | None) -> Any:
        asked.append(cursor)
        n = int(cursor or 0)
        return [{"name": f"t{n}", "inputSchema": {"type": "object"}}], str(n + 1)

    app.set_source("tool", list=pages)
    async with testing.connect(app) as client:
        async for tool in client.tools():
            if tool.name == "t2":
                break
    assert asked == [None, "1", "2"]


@ERAS
def test_the_synchronous_client_has_the_same(revision: str) -> None:
    app = full(Server("x", page_size=2))
    with Client(app, revision=revision) as client:
        for kind, expected in EXPECTED.items():
            assert names(getattr(client, f"list_{kind}")(timeout=10)) == expected
            page, cursor = getattr(client, f"list_{kind}_page")()
            assert (names(page), cursor is None) == (expected[:2], False)
            entries = getattr(client, kind)()
            assert isinstance(entries, Iterator)
            assert names(entries) == expected
        assert client.read_resource("test://1", timeout=10).text == "text 1"
        assert client.read_resource("test://1/a").text == "a"
        assert client.get_prompt("p1").messages[0].role == "user"
        with pytest.raises(RpcError, match="no argument"):
            client.complete("p1", "a", "")
        client.ping(timeout=10)
        client.subscribe("test://1")
        client.unsubscribe("test://1")
        client.set_log_level("error")


class Heard:
    """A callback whose values can be waited for."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[Any] = asyncio.Queue()

    def __call__(self, *what: Any) -> None:
        self.queue.put_nowait(what if len(what) > 1 else what[0])

    async def next(self) -> Any:
        return await asyncio.wait_for(self.queue.get(), 10)


@ERAS
async def test_what_is_added_and_removed_is_told(revision: str) -> None:
    app, heard = full(Server("x")), Heard()
    async with testing.connect(app, revision=revision, on_list_changed=heard) as client:

        @app.tool
        async def added() -> str:
            return "added"

        assert await heard.next() == "tool"
        assert (await client.call_tool("added")).text == "added"
        assert app.remove_tool("added")
        assert await heard.next() == "tool"
        app.add_resource("test://new", "x")
        assert await heard.next() == "resource"
        assert app.remove_resource("test://new")
        assert await heard.next() == "resource"
        assert app.remove_resource_template("test://1/{x}")
        assert await heard.next() == "resource"
        assert app.remove_prompt("p1")
        assert await heard.next() == "prompt"
        assert not app.remove_prompt("p1")
        assert not app.remove_resource("test://new")
        assert not app.remove_resource_template("test://1/{x}")
        assert (await client.list_prompts_page())[0][1].name == "p2"
        assert heard.queue.empty()


@ERAS
async def test_what_is_replaced_keeps_its_place(revision: str) -> None:
    app = Server("x")

    def put(text: str, **options: Any) -> None:
        app.add_tool(lambda: text, name="a", **options)
        app.add_resource("test://a", text, **options)
        app.add_resource("test://a/{x}", lambda x: text, **options)
        app.add_prompt(lambda: text, name="a", **options)

    put("old", title="Old", replace=True)
    app.add_tool(lambda: "", name="z")
    app.add_resource("test://z", "")
    app.add_resource("test://z/{x}", lambda x: "")
    app.add_prompt(lambda: "", name="z")
    size = len(app._host.table)
    async with testing.connect(app, revision=revision) as client:
        for text, title in (("old", "Old"), ("new", "New")):
            put(text, title=title, replace=True)
            for kind in EXPECTED:
                assert [entry.raw.get("title") for entry in await getattr(client, f"list_{kind}")()] == [title, None]
            assert (await client.call_tool("a")).text == text
            assert (await client.read_resource("test://a")).text == text
            assert (await client.read_resource("test://a/1")).text == text
            assert (await client.get_prompt("a")).text == text
            while len(app._host.table) > size:  # noqa: ASYNC110 - until the engine has said that they can go
                await asyncio.sleep(0.001)
        app.set_enabled("tool", "a", False)
        app.add_tool(lambda: "", name="a", replace=True)
        assert names(await client.list_tools()) == ["z"]
        app.add_tool(lambda: "shown", name="a", replace=True, enabled=True)
        assert (await client.call_tool("a")).text == "shown"
    with pytest.raises(MisuseError, match="already registered"):
        put("x", replace=False)


def test_what_was_removed_is_forgotten(app: Server) -> None:
    import gc
    import weakref

    def function(value: str) -> str:
        return value

    def complete(value: str) -> list[str]:
        return []

    kept = [weakref.ref(function), weakref.ref(complete)]
    app.add_prompt(function, name="p", complete={"value": complete})
    app.remove_prompt("p")
    with pytest.raises(MisuseError):
        app.add_prompt(function, name="p", complete={"missing": complete})
    del function, complete
    gc.collect()
    assert [one() for one in kept] == [None, None]
    assert not app._numbers


@ERAS
async def test_what_is_hidden(app: Server, revision: str) -> None:
    full(app)
    app.add_tool(lambda: "", name="late", enabled=False)
    app.add_resource("test://late", "", enabled=False)
    app.add_resource("test://late/{x}", lambda x: x, enabled=False)
    app.add_prompt(lambda: "", name="late", enabled=False)
    assert app.set_enabled("tool", "t0", False)
    assert not app.set_enabled("tool", "t0", False)
    async with testing.connect(app, revision=revision) as client:
        assert names(await client.list_tools()) == EXPECTED["tools"][1:]
        assert names(await client.list_resources()) == EXPECTED["resources"]
        assert names(await client.list_resource_templates()) == EXPECTED["resource_templates"]
        assert names(await client.list_prompts()) == EXPECTED["prompts"]
        for name in ("t0", "late"):
            with pytest.raises(RpcError, match="unknown tool"):
                await client.call_tool(name)
        with pytest.raises(ValueError, match='"thing"'):
            app.set_enabled("thing", "x", True)  # type: ignore[arg-type]
        for kind, name in (
            ("tool", "late"),
            ("resource", "test://late"),
            ("resource_template", "test://late/{x}"),
            ("prompt", "late"),
        ):
            assert app.set_enabled(kind, name, True)  # type: ignore[arg-type]
        assert (await client.list_tools())[-1].name == "late"
        assert (await client.list_resources())[-1].uri == "test://late"
        assert (await client.list_prompts())[-1].name == "late"
        assert (await client.read_resource("test://late/y")).text == "y"


async def test_one_client_sees_something_else() -> None:
    app, heard, other_heard = full(Server("x")), Heard(), Heard()
    app.set_enabled("tool", "t4", False)

    @app.tool
    async def unlock(ctx: Context) -> Any:
        return [ctx.set_enabled("tool", "t4", True), ctx.set_enabled("resource", "test://0", False)]

    async with (
        testing.connect(app, revision=LEGACY, on_list_changed=heard) as client,
        testing.connect(app, revision=LEGACY, on_list_changed=other_heard) as other,
    ):
        assert (await client.call_tool("unlock")).structured in ([True, True], {"result": [True, True]}, None)
        assert {await heard.next(), await heard.next()} == {"tool", "resource"}
        assert "t4" in names(await client.list_tools())
        assert "test://0" not in names(await client.list_resources())
        await client.call_tool("t4")
        assert "t4" not in names(await other.list_tools())
        assert "test://0" in names(await other.list_resources())
        with pytest.raises(RpcError):
            await other.call_tool("t4")
        assert other_heard.queue.empty()
    async with testing.connect(app, revision="2026-07-28") as client:
        assert "there are no sessions" in (await client.call_tool("unlock")).text


async def test_subscriptions(app: Server) -> None:
    heard, hook = Heard(), Heard()

    @app.on_subscribe
    async def subscribed(uri: str, subscribed: bool, ctx: Context) -> None:
        hook((uri, subscribed, ctx.request.transport))
        if uri == "test://secret":
            raise ResourceNotFoundError(uri)

    app.add_resource("test://a", "")
    app.add_resource("test://secret", "")
    async with testing.connect(app, revision=LEGACY, on_resource_updated=heard) as client:
        app.resource_updated("test://a")
        await client.subscribe("test://a")
        assert await hook.next() == ("test://a", True, "memory")
        app.resource_updated("test://a")
        assert await heard.next() == "test://a"
        await client.unsubscribe("test://a", timeout=10)
        assert await hook.next() == ("test://a", False, "memory")
        app.resource_updated("test://a")
        for uri in ("test://secret", "test://missing"):
            with pytest.raises(ResourceNotFoundError):
                await client.subscribe(uri)
        await client.ping()
        assert heard.queue.empty()


async def test_news_over_http(app: Server) -> None:
    heard = Heard()
    app.add_resource("test://a", "")

    @app.tool
    async def hide(ctx: Context) -> None:
        ctx.set_enabled("tool", "hide", False)

    async with (
        testing.serving(app) as url,
        connect(url, revision=LEGACY, on_resource_updated=heard, on_list_changed=heard) as client,
    ):
        await client.subscribe("test://a")
        app.resource_updated("test://a")
        assert await heard.next() == "test://a"
        await client.call_tool("hide")
        assert await heard.next() == "tool"
        assert await client.list_tools() == []
        app.add_resource("test://b", "")
        assert await heard.next() == "resource"


async def test_a_stream_that_ends_before_the_answer(app: Server) -> None:
    @app.tool
    async def slow(ctx: Context) -> bool:
        ended = ctx.close_stream()
        await asyncio.sleep(0.1)
        return ended

    async with testing.serving(app) as url:
        for revision in (LEGACY, "2026-07-28"):
            async with connect(url, revision=revision) as client:
                assert (await client.call_tool("slow", timeout=20)).text == "true"


# -- sources


@ERAS
async def test_lists_from_elsewhere(revision: str) -> None:
    app = Server("x", page_size=2)
    app.add_resource("test://own", "own")

    def listed(cursor: str | None) -> Any:
        if cursor is None:
            return [{"uri": "test://1", "name": "1"}, Resource({"uri": "test://2", "name": "2"})], "more"
        return {"resources": [{"uri": "test://3", "name": "3"}]}

    async def got(uri: str, ctx: Context) -> Any:
        if uri == "test://none":
            raise ResourceNotFoundError(uri)
        return f"{uri} {ctx.request.era}".encode()

    app.set_source("resource", list=listed, get=got)
    app.set_source("prompt", list=lambda: [{"name": "p"}], get=lambda name, arguments: [name, str(arguments)])
    async with testing.connect(app, revision=revision) as client:
        assert names(await client.list_resources()) == ["test://own", "test://1", "test://2", "test://3"]
        assert (await client.read_resource("test://own")).text == "own"
        assert (await client.read_resource("test://7")).blob == f"test://7 {client.era}".encode()
        with pytest.raises(RpcError, match="there is no resource"):
            await client.read_resource("test://none")
        assert names(await client.list_prompts()) == ["p"]
        assert (await client.get_prompt("q", {"a": "1"})).text == "q\n{'a': '1'}"


@ERAS
async def test_a_proxy(revision: str) -> None:
    heard = Heard()
    back = full(Server("back", page_size=2))

    @back.tool
    async def add(a: int, b: int) -> int:
        if a == 0:
            raise RpcError(4242, "custom", [1])
        return a + b

    async with testing.connect(back) as inner:
        app = Server("front")
        app.set_source("tool", list=inner.list_tools_page, get=inner.call_tool)
        app.set_source("resource", list=inner.list_resources_page, get=inner.read_resource)
        app.set_source("resource_template", list=inner.list_resource_templates_page)
        app.set_source("prompt", list=inner.list_prompts_page, get=inner.get_prompt)
        async with testing.connect(app, revision=revision, on_list_changed=heard) as client:
            for kind, expected in EXPECTED.items():
                assert names(await getattr(client, f"list_{kind}")())[-5:] == expected
            result = await client.call_tool("add", {"a": 1, "b": 2})
            assert (result.text, result.to(int)) == ("3", 3)
            assert (await client.call_tool("add", {"a": "x", "b": 2})).text.startswith('argument "a"')
            with pytest.raises(RpcError) as caught:
                await client.call_tool("add", {"a": 0, "b": 2})
            assert (caught.value.code, caught.value.message, caught.value.data) == (4242, "custom", [1])
            with pytest.raises(RpcError, match="unknown tool"):
                await client.call_tool("missing")
            assert (await client.read_resource("test://3")).text == "text 3"
            assert (await client.read_resource("test://3/y")).text == "y"
            with pytest.raises(RpcError, match="there is no resource"):
                await client.read_resource("test://missing")
            assert len((await client.get_prompt("p1")).messages) == 1
            app.list_changed("prompt")
            assert await heard.next() == "prompt"


async def test_sources_that_fail(app: Server, caplog: pytest.LogCaptureFixture) -> None:
    async def fail(*_: Any) -> Any:
        raise ValueError("secret detail")

    app.set_source("tool", list=fail, get=fail)
    app.set_source("prompt", list=lambda: "nonsense")
    async with testing.connect(app) as client:
        with pytest.raises(RpcError, match="the list of tools failed: ValueError"):
            await client.list_tools()
        assert (await client.call_tool("x")).text == "the source of tools failed: ValueError"
        with pytest.raises(RpcError, match="the list of prompts failed"):
            await client.list_prompts()
    assert len(caplog.records) == 2
    with pytest.raises(MisuseError, match="2 values at most"):
        app.set_source("tool", get=lambda a, b, c: "")
    with pytest.raises(ValueError, match='"thing"'):
        app.set_source("thing", list=fail)  # type: ignore[arg-type]


# -- logging


@ERAS
async def test_log_messages(app: Server, revision: str) -> None:
    heard = Heard()

    @app.tool
    async def talk(ctx: Context) -> Any:
        return [ctx.log("debug", "low"), ctx.log("error", {"n": 1}, "here")]

    async with testing.connect(app, revision=revision, on_log=heard) as client:
        await client.set_log_level("warning")
        await client.call_tool("talk")
        assert await heard.next() == ("error", "here", {"n": 1})
        await client.set_log_level("debug", timeout=10)
        await client.call_tool("talk")
        assert await heard.next() == ("debug", None, "low")
        with pytest.raises(RpcError, match="loud"):
            await client.set_log_level("loud")  # type: ignore[arg-type]


async def test_the_languages_own_logging(app: Server) -> None:
    heard = Heard()
    logger = logging.getLogger("test.own")
    handler = LogHandler()
    logging.getLogger().addHandler(handler)
    logger.setLevel(logging.DEBUG)

    def body(word: str) -> None:
        try:
            raise ValueError("secret detail")
        except ValueError:
            logger.critical("%s %s", word, 1, exc_info=True)
        logger.debug("low")

    @app.tool
    def threaded() -> None:
        body("threaded")

    @app.tool
    async def asynchronous() -> None:
        body("asynchronous")
        await asyncio.create_task(asyncio.to_thread(body, "inner"))  # type: ignore[arg-type]
        Context.current().log("notice", "last")
        raise ValueError("for this package's own log only")

    @app.tool(run_in_thread=False)
    def broken() -> None:
        handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
        logger.info("%s", "formatted")
        handler.setFormatter(None)

    try:
        async with testing.connect(app, revision=LEGACY, on_log=heard) as client:
            logger.error("outside of calls")
            await client.set_log_level("debug")
            await client.call_tool("threaded")
            assert await heard.next() == ("critical", "test.own", "threaded 1")
            assert await heard.next() == ("debug", "test.own", "low")
            await client.call_tool("asynchronous")
            assert await heard.next() == ("critical", "test.own", "asynchronous 1")
            await heard.next()
            assert await heard.next() == ("critical", "test.own", "inner 1")
            await heard.next()
            assert await heard.next() == ("notice", None, "last")
            await client.call_tool("broken")
            assert await heard.next() == ("info", "test.own", "INFO formatted")
            assert heard.queue.empty()
    finally:
        logging.getLogger().removeHandler(handler)
    with pytest.raises(MisuseError, match="there is no call"):
        Context.current()


@ERAS
async def test_a_level_that_there_is_not_is_a_mistake_of_the_program(revision: str) -> None:
    errors: list[BaseException] = []
    app = Server("x", on_error=lambda error, _: errors.append(error))

    @app.tool
    def log(ctx: Context) -> bool:
        return ctx.log("bogus", "x")  # type: ignore[arg-type]

    async with testing.connect(app, revision=revision) as client:
        assert (await client.call_tool("log")).text == 'tool "log" failed: MisuseError'
    with pytest.raises(MisuseError, match=r'expected one of debug, .*got "bogus"'):
        raise errors[0]
