"""Listening to changes, in every revision, through memory and over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tricorn import (
    AsyncClient,
    AsyncListening,
    Change,
    ClosedError,
    Honoured,
    MisuseError,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    RpcError,
    Server,
    ToolsListChanged,
    TransportError,
    UnsupportedError,
    connect,
    connect_many,
    testing,
)

from .conftest import MODERN, PATIENCE, full, gauges, idle, until

pytestmark = pytest.mark.filterwarnings("ignore:.*MCP .* deprecates:DeprecationWarning")

OVER = pytest.mark.parametrize("over", ["memory", "http"])


@pytest.fixture
def app() -> Server:
    return full(Server("s"))


@asynccontextmanager
async def reached(app: Server, over: str, **options: Any) -> AsyncGenerator[AsyncClient]:
    """A client of the server, which nobody listens to any more when the client has gone."""
    if over == "memory":
        async with testing.connect(app, **options) as client:
            yield client
        await idle(app)
    else:
        async with testing.serving(app) as url:
            async with connect(url, **options) as client:
                yield client
            await idle(app)


async def following(changes: AsyncListening) -> Change | None:
    return await changes.next(PATIENCE)


class Heard:
    """A callback whose values can be waited for."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[Any] = asyncio.Queue()

    def __call__(self, *what: Any) -> None:
        self.queue.put_nowait(what if len(what) > 1 else what[0])

    async def next(self) -> Any:
        return await asyncio.wait_for(self.queue.get(), PATIENCE)


@OVER
async def test_several_listeners_in_every_revision(app: Server, revision: str, over: str) -> None:
    async with reached(app, over, revision=revision) as client:
        one = (await client.list_resources())[0]
        async with client.listen(tools=True, uris=["a://one", "a://many/1"]) as changes:
            assert changes.honoured == Honoured(tools=True, uris=("a://one", "a://many/1"))
            async with client.listen(prompts=True, resources=True, uris=(one,)) as others:
                assert gauges(app) == (2 if revision == MODERN else 0, 0)
                app.resource_updated("a://many/2")
                app.resource_updated("a://many/1")
                assert await following(changes) == ResourceUpdated("a://many/1")
                app.list_changed("prompt")
                assert await following(others) == PromptsListChanged()
                app.add_resource("a://two", "2")
                assert await following(others) == ResourcesListChanged()
                app.remove_tool("t")
                assert await following(changes) == ToolsListChanged()
                app.resource_updated("a://one")
                assert await following(changes) == await following(others) == ResourceUpdated("a://one")
            # What one no longer wants, the other still hears.
            await client.ping()
            app.resource_updated("a://one")
            assert await following(changes) == ResourceUpdated("a://one")
            assert await others.next() is None


@OVER
async def test_leaving_the_loop_ends_the_stream(app: Server, revision: str, over: str) -> None:
    heard = Heard()

    @app.on_subscribe
    async def hook(uri: str, subscribed: bool) -> None:
        heard(uri, subscribed)

    async with reached(app, over, revision=revision) as client:
        async with client.listen(tools=True, uris=["a://one"]) as changes:
            assert await heard.next() == ("a://one", True)
            app.resource_updated("a://one")
            async for change in changes:
                match change:
                    case ResourceUpdated(uri):
                        assert uri == "a://one"
                    case ToolsListChanged() | PromptsListChanged() | ResourcesListChanged():
                        raise AssertionError(change)
                assert change.method == "notifications/resources/updated"
                break
        assert [change async for change in changes] == []
        assert await heard.next() == ("a://one", False)
        await idle(app)
        assert (await client.call_tool("t")).text == "t"


async def test_whichever_way_it_is_left_it_ends(app: Server, revision: str) -> None:
    heard, entered = Heard(), Heard()

    @app.on_subscribe
    async def hook(uri: str, subscribed: bool) -> None:
        heard(subscribed)

    async def taken(client: AsyncClient) -> AsyncGenerator[Change]:
        async with client.listen(uris=["a://one"]) as changes:
            entered(True)
            async for change in changes:
                yield change

    async def fail(client: AsyncClient) -> None:
        async with client.listen(uris=["a://one"]) as changes:
            entered(True)
            async for _ in changes:
                raise ValueError("enough")

    async with reached(app, "memory", revision=revision) as client:
        generator = taken(client)
        for way in ("exception", "cancelled", "left"):
            task = asyncio.ensure_future(anext(generator) if way == "left" else fail(client))
            assert await entered.next()
            assert await heard.next()
            if way == "cancelled":
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            else:
                app.resource_updated("a://one")
            if way == "exception":
                with pytest.raises(ValueError, match="enough"):
                    await asyncio.wait_for(task, PATIENCE)
            if way == "left":
                assert await asyncio.wait_for(task, PATIENCE) == ResourceUpdated("a://one")
                await generator.aclose()
            assert not await heard.next()
            assert not client._host.waiting


async def test_giving_up_to_wait_loses_nothing(app: Server, revision: str) -> None:
    async with reached(app, "memory", revision=revision) as client, client.listen(tools=True, prompts=True) as changes:
        with pytest.raises(TimeoutError, match="nothing has changed"):
            await changes.next(0.01)
        for turns in range(20):
            task = asyncio.create_task(changes.next())
            await asyncio.sleep(0)
            app.list_changed("tool")
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            told = await following(changes) if task.cancelled() else task.result()
            assert told == ToolsListChanged()
        # Who waits in turns gets what comes in turns, and the end together.
        tasks = [asyncio.create_task(changes.next()) for _ in range(4)]
        await asyncio.sleep(0)
        app.list_changed("tool")
        app.list_changed("prompt")
        await until(lambda: sum(task.done() for task in tasks) == 2)
        changes.close()
        taken = await asyncio.wait_for(asyncio.gather(*tasks), PATIENCE)
        assert sorted(map(repr, filter(None, taken))) == ["PromptsListChanged()", "ToolsListChanged()"]
        assert taken.count(None) == 2


async def test_what_is_not_taken_is_there_once(app: Server, revision: str) -> None:
    one, many = ResourceUpdated("a://one"), ResourceUpdated("a://many/1")
    async with (
        reached(app, "memory", revision=revision) as client,
        client.listen(uris=[one.uri, many.uri]) as changes,
        client.listen(uris=[many.uri]) as others,
    ):
        for _ in range(100):
            app.resource_updated(one.uri)
        app.resource_updated(many.uri)
        assert await following(others) == many
        # So whoever began to listen before has been told everything.
        assert [await following(changes), await following(changes)] == [one, many]
        app.resource_updated(one.uri)
        assert await following(changes) == one


@OVER
async def test_a_server_that_closes_ends_it_in_order(app: Server, over: str) -> None:
    async with reached(app, over, revision=MODERN) as client:
        async with client.listen(tools=True) as changes:
            app.close()
            assert await asyncio.wait_for(anext(changes, None), PATIENCE) is None
        await idle(app)


@OVER
async def test_a_client_that_closes_is_an_error_once(app: Server, revision: str, over: str) -> None:
    async with reached(app, over, revision=revision) as client:
        waiting, idling = client.listen(tools=True), client.listen(tools=True)
        async with waiting, idling:
            task = asyncio.create_task(waiting.next())
            await asyncio.sleep(0)
            await client.close()
            with pytest.raises(ClosedError):
                await asyncio.wait_for(task, PATIENCE)
            with pytest.raises(ClosedError):
                await idling.next()
            assert await waiting.next() is None
            assert await idling.next() is None
        with pytest.raises(ClosedError):
            await client.listen(tools=True).__aenter__()


async def test_a_server_that_died_is_started_again_and_listened_to_again(command: list[str]) -> None:
    told: asyncio.Queue[str] = asyncio.Queue()
    async with connect(command, on_close=told.put_nowait) as client, client.listen(tools=True) as changes:
        before = client.server_info
        with pytest.raises(TransportError, match="idempotent"):
            await client.call_tool("die")
        assert await changes.next(PATIENCE) == ToolsListChanged()
        assert (await client.call_tool("complain")).text == "complained"
        assert client.server_info == before
        assert client.transport == "stdio"
        assert told.empty()


async def test_a_listener_that_never_was(app: Server) -> None:
    """One whose opening is given up is gone at the server, too."""
    asked, may = asyncio.Event(), asyncio.Event()

    @app.on_subscribe
    async def hook(uri: str, subscribed: bool) -> None:
        asked.set()
        await may.wait()

    async with reached(app, "memory", revision=MODERN) as client:
        task = asyncio.ensure_future(client.listen(uris=["a://one"]).__aenter__())
        await asyncio.wait_for(asked.wait(), PATIENCE)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        may.set()
        await idle(app)
    assert not client._host.waiting


async def test_what_cannot_be_listened_to(revision: str) -> None:
    app = Server("s")
    app.add_tool(lambda: "t", name="t")
    client = testing.connect(app, revision=revision)
    with pytest.raises(MisuseError, match="not connected"):
        await client.listen(tools=True).__aenter__()
    async with client:
        for wrong, member in (
            (client.listen(tools=True, prompts=True), "promptsListChanged"),
            (client.listen(resources=True), "resourcesListChanged"),
            (client.listen(uris=["a://one"]), "resourceSubscriptions"),
        ):
            with pytest.raises(UnsupportedError, match=member):
                await wrong.__aenter__()
        with pytest.raises(MisuseError, match="nothing is asked for"):
            await client.listen().__aenter__()
        for options, message in (
            ({"uris": "a://one"}, "uris: expected a list of URIs, got .a://one.$"),
            ({"uris": None}, "uris: expected a list of URIs, got null"),
            ({"uris": [1]}, "uris: expected a string, got 1"),
            ({"prompts": "yes"}, 'prompts: expected a boolean, got "yes"'),
        ):
            with pytest.raises(MisuseError, match=f"^listen: {message}$"):
                client.listen(**options)  # type: ignore[arg-type]
        changes = client.listen(tools=True)
        assert repr(changes) == "<AsyncListening new>"
        for early in (lambda: changes.honoured, lambda: changes.next().send(None)):
            with pytest.raises(MisuseError, match="does not listen yet"):
                early()
        async with changes:
            pass
        assert repr(changes) == "<AsyncListening over>"
        with pytest.raises(MisuseError, match="has listened before"):
            await changes.__aenter__()


def test_a_listener_of_a_loop_that_ended(app: Server) -> None:
    client = testing.connect(app)

    async def begin() -> AsyncListening:
        await client.connect()
        changes = await client.listen(tools=True).__aenter__()
        with pytest.raises(TimeoutError):
            await changes.next(0.001)
        return changes

    async def go_on(changes: AsyncListening) -> None:
        await client.close()
        with pytest.raises(ClosedError):
            await changes.next(PATIENCE)
        assert await changes.next() is None
        await idle(app)

    asyncio.run(go_on(asyncio.run(begin())))


async def test_what_a_server_does_not_know(app: Server, revision: str) -> None:
    async with testing.connect(app, revision=revision) as client:
        changes = client.listen(tools=True, uris=["a://one", "b://unknown"])
        if revision == MODERN:
            async with changes:
                assert changes.honoured == Honoured(tools=True, uris=("a://one",))
        else:
            with pytest.raises(RpcError, match="b://unknown"):
                await changes.__aenter__()


@pytest.mark.parametrize("max_listeners", [1, None])
async def test_there_are_so_many_listeners(max_listeners: int | None) -> None:
    app = full(Server("s", max_listeners=max_listeners) if max_listeners else Server("s"))
    async with reached(app, "memory", revision=MODERN) as client:
        open_ = [await client.listen(tools=True).__aenter__() for _ in range(max_listeners or 64)]
        with pytest.raises(RpcError, match="max_listeners") as caught:
            await client.listen(tools=True).__aenter__()
        assert caught.value.code == -32600
        open_.pop().close()
        await until(lambda: gauges(app)[0] == len(open_))
        async with client.listen(tools=True):
            pass


# -- the callbacks of a client


class Notes:
    """A class that somebody wrote when 2025-11-25 was the newest revision."""

    def __init__(self) -> None:
        self.lists, self.uris, self.all = Heard(), Heard(), Heard()

    def on_list_changed(self, kind: str) -> None:
        self.lists(kind)

    def on_resource_updated(self, uri: str) -> None:
        self.uris(uri)

    def on_notification(self, method: str, params: dict[str, Any]) -> None:
        self.all((method.removeprefix("notifications/"), params))


@OVER
async def test_callbacks_need_no_change(app: Server, revision: str, over: str) -> None:
    notes = Notes()
    async with reached(app, over, revision=revision, policy=notes) as client:
        app.add_tool(lambda: "more", name="more")
        assert await notes.lists.next() == "tool"
        assert await notes.all.next() == ("tools/list_changed", {})
        app.remove_tool("more")
        assert await notes.lists.next() == "tool"
        app.set_enabled("prompt", "p", False)
        assert await notes.lists.next() == "prompt"
        await client.subscribe("a://one")
        await client.subscribe("a://many/1")
        app.resource_updated("a://one")
        assert await notes.uris.next() == "a://one"
        await client.unsubscribe("a://one")
        app.resource_updated("a://one")
        app.resource_updated("a://many/1")
        assert await notes.uris.next() == "a://many/1"
        app.add_resource("a://two", "2")
        assert await notes.lists.next() == "resource"
        told = [await notes.all.next() for _ in range(5)]
        assert [method for method, _ in told[:2]] == ["tools/list_changed", "prompts/list_changed"]
        assert told[2:4] == [("resources/updated", {"uri": uri}) for uri in ("a://one", "a://many/1")]
        assert notes.all.queue.empty()


@pytest.mark.parametrize("name", ["on_list_changed", "on_notification", "on_resource_updated", "on_log"])
async def test_only_who_hears_listens(app: Server, name: str) -> None:
    async with reached(app, "memory", revision=MODERN, **{name: lambda *_: None}) as client:
        assert gauges(app) == (1 if name in ("on_list_changed", "on_notification") else 0, 0)
        await client.subscribe("a://one")
        await until(lambda: gauges(app) == (1, 0))
        await client.unsubscribe("a://one")


async def test_the_clients_of_a_group(revision: str) -> None:
    one, two, heard = full(Server("one")), full(Server("two")), Heard()
    async with connect_many({"one": one, "two": two}, revision=revision, on_list_changed=heard) as group:
        two.list_changed("tool")
        assert await heard.next() == "tool"
        async with group["one"].listen(tools=True, uris=["a://one"]) as changes:
            two.resource_updated("a://one")
            one.resource_updated("a://one")
            assert await following(changes) == ResourceUpdated("a://one")
    for app in (one, two):
        await idle(app)


# -- over HTTP alone


class Wire:
    """A connection between a client and a server's port, until it is cut."""

    def __init__(self, url: str) -> None:
        self.port = int(url.rpartition(":")[2].partition("/")[0])
        self.open: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> str:
        self.server = await asyncio.start_server(self.connected, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self.server.sockets[0].getsockname()[1]}/mcp"

    async def __aexit__(self, *_: object) -> None:
        self.server.close()
        self.cut()
        await asyncio.sleep(0)

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        other_reader, other = await asyncio.open_connection("127.0.0.1", self.port)
        self.open += [writer, other]
        await asyncio.gather(self.carry(reader, other), self.carry(other_reader, writer))

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while part := await reader.read(65536):
                writer.write(part)
        except OSError:
            pass
        writer.close()

    def cut(self) -> None:
        for writer in self.open:
            writer.transport.abort()
        self.open.clear()


async def test_after_a_cut_everything_is_said_to_have_changed(app: Server) -> None:
    heard = Heard()
    async with testing.serving(app, allowed_hosts=["*"]) as direct:
        wire = Wire(direct)
        async with (
            wire as url,
            connect(url, revision=MODERN, on_list_changed=heard) as client,
            client.listen(tools=True, uris=["a://one"]) as changes,
        ):
            assert gauges(app)[0] == 2
            wire.cut()
            assert await following(changes) == ToolsListChanged()
            assert await following(changes) == ResourceUpdated("a://one")
            assert {await heard.next() for _ in range(3)} == {"tool", "prompt", "resource"}
            # And goes on.
            app.resource_updated("a://one")
            assert await following(changes) == ResourceUpdated("a://one")
            app.list_changed("tool")
            assert await heard.next() == "tool"
            await until(lambda: gauges(app)[0] == 2)
        await idle(app)
