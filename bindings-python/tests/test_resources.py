"""Resources and resource templates, seen by a client in memory, in both eras."""

from __future__ import annotations

import asyncio
import queue
import threading
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from tricorn import (
    Annotations,
    Client,
    Context,
    Icon,
    MisuseError,
    Next,
    ReadResourceResult,
    Request,
    ResourceContents,
    ResourceNotFoundError,
    RpcError,
    Server,
    connect_many,
    is_safe_icon,
    testing,
    types,
)

ERAS = pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])


async def read(app: Server, uri: str, revision: str = "2025-11-25") -> ReadResourceResult:
    async with testing.connect(app, revision=revision) as client:
        return await client.read_resource(uri)


@dataclass
class Point:
    x: int


@ERAS
@pytest.mark.parametrize(
    ("value", "contents"),
    [
        ("text", [ResourceContents("test://r", text="text")]),
        (b"\x00\x01", [ResourceContents("test://r", blob=b"\x00\x01")]),
        (bytearray(b"\x02"), [ResourceContents("test://r", blob=b"\x02")]),
        (ResourceContents(text="own"), [ResourceContents("test://r", text="own")]),
        (
            [ResourceContents("test://r/1", "text/html", "one"), ResourceContents(blob=b"two"), "three", b"four"],
            [
                ResourceContents("test://r/1", "text/html", "one"),
                ResourceContents("test://r", blob=b"two"),
                ResourceContents("test://r", text="three"),
                ResourceContents("test://r", blob=b"four"),
            ],
        ),
        ({"a": [1]}, [ResourceContents("test://r", "application/json", '{"a":[1]}')]),
        ([1, 2], [ResourceContents("test://r", "application/json", "[1,2]")]),
        (Point(1), [ResourceContents("test://r", "application/json", '{"x":1}')]),
        (ReadResourceResult("whole"), [ResourceContents("test://r", text="whole")]),
        (ReadResourceResult([]), []),
    ],
)
async def test_what_a_resource_holds(app: Server, value: Any, contents: list[ResourceContents], revision: str) -> None:
    async def function() -> Any:
        return value

    app.add_resource("test://r", function)
    assert (await read(app, "test://r", revision)).contents == contents
    if isinstance(value, (str, bytes, dict)):
        app.add_resource("test://plain", value)
        assert (await read(app, "test://plain", revision)).contents[0].text == contents[0].text


@ERAS
async def test_a_resource_that_gives_nothing(app: Server, revision: str) -> None:
    app.add_resource("test://r", lambda: None)
    with pytest.raises(RpcError, match="it gave nothing") as caught:
        await read(app, "test://r", revision)
    assert caught.value.code == -32603


@ERAS
async def test_text_and_bytes_of_a_result(app: Server, revision: str) -> None:
    app.add_resource("test://text", "hello", mime_type="text/plain")
    app.add_resource("test://bytes", b"\xff\x00", mime_type="image/png")
    async with testing.connect(app, revision=revision) as client:
        text = await client.read_resource("test://text")
        assert (text.text, text.blob) == ("hello", None)
        data = await client.read_resource((await client.list_resources())[1])
        assert (data.text, data.blob) == ("", b"\xff\x00")
        assert data.raw["contents"] == [{"uri": "test://bytes", "mimeType": "image/png", "blob": "/wA="}]
        assert data.contents[0].mime_type == "image/png"
        assert "ReadResourceResult(" in repr(data)
        assert data != text


async def test_options_of_a_resource(app: Server) -> None:
    @app.resource(
        "test://r",
        title="Title",
        mime_type="text/plain",
        size=3,
        annotations=Annotations(priority=1),
        icons=[Icon("https://example.com/i.png")],
        meta={"com.example/x": 1},
    )
    async def notes() -> str:
        """What I think."""
        return "abc"

    app.add_resource("test://lambda", lambda: "x")
    app.add_resource("test://named", "x", name="called", description="said")
    async with testing.connect(app) as client:
        first, second, third = await client.list_resources()
        assert first.raw == {
            "uri": "test://r",
            "name": "notes",
            "title": "Title",
            "description": "What I think.",
            "mimeType": "text/plain",
            "size": 3,
            "annotations": {"priority": 1.0},
            "icons": [{"src": "https://example.com/i.png"}],
            "_meta": {"com.example/x": 1},
        }
        assert (first.uri, first.name, first.title, first.mime_type, first.size) == (
            "test://r",
            "notes",
            "Title",
            "text/plain",
            3,
        )
        assert first.annotations == Annotations(priority=1)
        assert (first.icons, first.meta) == ([Icon("https://example.com/i.png")], {"com.example/x": 1})
        assert (second.name, second.title, second.annotations) == ("test://lambda", "test://lambda", None)
        assert (third.name, third.description) == ("called", "said")
    assert await notes() == "abc"


@ERAS
async def test_templates_have_typed_variables(app: Server, revision: str) -> None:
    @app.resource("notes://{kind}/{number}{?full,tags*}", title="Note")
    async def note(
        kind: Literal["short", "long"],
        number: int,
        ctx: Context,
        full: bool = False,
        tags: dict[str, str] | None = None,
    ) -> Any:
        """One note."""
        assert ctx.request.method == "resources/read"
        return [kind, number, full]

    async with testing.connect(app, revision=revision) as client:
        (template,) = await client.list_resource_templates()
        assert (template.uri_template, template.name, template.title, template.description) == (
            "notes://{kind}/{number}{?full,tags*}",
            "note",
            "Note",
            "One note.",
        )
        assert (template.mime_type, template.annotations) == (None, None)
        assert (await client.read_resource("notes://short/7")).text == '["short",7,false]'
        assert (await client.read_resource("notes://long/8?full=true")).text == '["long",8,true]'
        for uri, message in (
            ("notes://short/x", 'argument "number": expected integer, got "x"'),
            ("notes://play/1", 'argument "kind": '),
        ):
            with pytest.raises(RpcError) as caught:
                await client.read_resource(uri)
            assert caught.value.code == -32602
            assert caught.value.message.startswith(message)


@ERAS
async def test_a_resource_that_is_not_there(app: Server, revision: str) -> None:
    @app.resource("notes://{number}")
    async def note(number: int) -> str:
        raise ResourceNotFoundError(f"notes://{number}")

    code = -32002 if revision < "2026" else -32602
    async with testing.connect(app, revision=revision) as client:
        for uri in ("notes://1", "other://x"):
            with pytest.raises(ResourceNotFoundError) as caught:
                await client.read_resource(uri)
            assert (caught.value.code, caught.value.data) == (code, {"uri": uri})
            assert caught.value.message == f'there is no resource "{uri}"'
            assert caught.value.uri == uri
            assert caught.value.received


async def test_what_only_looks_like_a_resource_that_is_not_there(app: Server) -> None:
    @app.resource("notes://{kind}")
    async def note(kind: str) -> str:
        raise RpcError(-32602 if kind != "code" else -32601, "no", {"uri": 5} if kind == "else" else [1])

    @app.resource("texts://one")
    def one() -> str:
        raise RpcError(-32602, "no", {"uri": "texts://one"})

    @app.resource("texts://alias")
    def alias() -> str:
        raise RpcError(-32602, "no", {"uri": "texts://one"})

    async with testing.connect(app) as client:
        for uri in ("notes://else", "notes://data", "notes://code"):
            with pytest.raises(RpcError) as caught:
                await client.read_resource(uri)
            assert type(caught.value) is RpcError
        with pytest.raises(RpcError) as caught:
            await client.request("resources/read", {"uri": "texts://one"})
        assert type(caught.value) is RpcError
        with pytest.raises(ResourceNotFoundError) as other:  # it may be another one's URI that is named
            await client.read_resource("texts://alias")
        assert other.value.uri == "texts://one"
    async with connect_many({"a": app}) as group:
        with pytest.raises(ResourceNotFoundError):
            await group.read_resource("texts://one")


def test_a_resource_that_is_not_there_without_asyncio(app: Server) -> None:
    app.add_resource("notes://0", "x")
    with Client(app) as client, pytest.raises(ResourceNotFoundError) as caught:
        client.read_resource("notes://1")
    assert caught.value.code == -32602


@ERAS
async def test_errors_of_a_resource(app: Server, revision: str, caplog: pytest.LogCaptureFixture) -> None:
    @app.resource("test://{kind}")
    async def fail(kind: str) -> str:
        if kind == "own":
            raise RpcError(4242, "custom", [1])
        if kind == "value":
            return object()  # type: ignore[return-value]
        raise ValueError("secret detail")

    async with testing.connect(app, revision=revision) as client:
        with pytest.raises(RpcError) as caught:
            await client.read_resource("test://own")
        assert (caught.value.code, caught.value.message, caught.value.data) == (4242, "custom", [1])
        assert not caplog.records
        for kind, name in (("other", "ValueError"), ("value", "TypeError")):
            with pytest.raises(RpcError) as caught:
                await client.read_resource(f"test://{kind}")
            assert caught.value.code == -32603
            assert caught.value.message == f'resource template "test://{{kind}}" failed: {name}'
    assert "secret detail" in caplog.text


async def test_on_error_hears_of_resources(app: Server) -> None:
    heard: list[tuple[str, str]] = []
    app = Server("test", on_error=lambda error, name: heard.append((str(error), name)))

    async def fail() -> str:
        raise ValueError("why")

    app.add_resource("test://r", fail)
    with pytest.raises(RpcError):
        await read(app, "test://r")
    assert heard == [("why", "test://r")]


async def test_the_uri_and_threads(app: Server) -> None:
    @app.resource("test://uri")
    def where(uri: str) -> Any:
        return [uri, threading.current_thread() is threading.main_thread()]

    @app.resource("test://inline", run_in_thread=False)
    def inline(**given: str) -> Any:
        return [given["uri"], threading.current_thread() is threading.main_thread()]

    assert (await read(app, "test://uri")).text == '["test://uri",false]'
    assert (await read(app, "test://inline")).text == '["test://inline",true]'


async def test_a_result_as_the_schema_has_it(app: Server) -> None:
    @app.resource("test://r")
    async def whole() -> types.ReadResourceResult:
        return {"contents": [{"uri": "test://r", "text": "x"}], "_meta": {"com.example/n": 1}}

    result = await read(app, "test://r")
    assert (result.text, result.meta) == ("x", {"com.example/n": 1})


def test_mistakes_show_at_registration(app: Server) -> None:
    async def typed(number: int) -> str:
        return ""

    for uri, content, options, message in (
        ("notes://{a}", typed, {}, "no parameter 'a'"),
        ("notes://x", typed, {}, "'number' is no variable"),
        ("notes://{number}{a}", lambda number, a, b: "", {}, '"b" is no variable'),
        ("notes://{number", typed, {}, "uriTemplate"),
        ("notes://{}", typed, {}, "names no variable"),
        ("notes://{!number}", typed, {}, "has no meaning yet"),
        ("notes://{a-b}", "a text", {}, "'-' in a variable's name"),
        ("notes://{number}", "a text", {}, "expected a function"),
        ("notes://{number}", typed, {"size": 1}, "size"),
        ("notes://{number}", typed, {"complete": {"a": ["x"]}}, "no variable"),
        ("notes://{number}", typed, {"complete": {"number": "x"}}, "expected a function or a list"),
        ("notes://{number}", typed, {"complete": {"number": lambda a, b, c: []}}, "2 values at most"),
        ("notes://x", "", {"complete": {"a": ["x"]}}, "is for templates"),
        ("notes://x", "", {"mime": "x"}, 'unknown option "mime", did you mean "mime_type"'),
        ("no uri", "", {}, "absolute URI"),
    ):
        with pytest.raises(MisuseError, match=message):
            app.add_resource(uri, content, **options)  # type: ignore[arg-type]
    with pytest.raises(MisuseError, match="say where it is"):
        app.resource(typed)  # type: ignore[arg-type]
    app.add_resource("notes://x", "")
    with pytest.raises(MisuseError, match="already registered"):
        app.add_resource("notes://x", "")


@ERAS
async def test_reading_is_cancelled(app: Server, revision: str) -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    @app.resource("test://slow")
    async def slow() -> str:
        started.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return "?"

    async with testing.connect(app, revision=revision) as client:
        task = asyncio.create_task(client.read_resource("test://slow"))
        await started.wait()
        task.cancel()
        await asyncio.wait_for(cancelled.wait(), 10)
    assert not app._host.running


async def test_subscribing_by_definition_and_meta_of_every_request(app: Server) -> None:
    seen: list[Any] = []

    @app.middleware
    async def look(request: Request, context: Context, call_next: Next) -> Any:
        seen.append((request.method, context.request.meta.get("a/b")))
        return await call_next(request, context)

    app.add_resource("test://1", "one")
    app.on_subscribe(lambda: None)
    async with testing.connect(app, revision="2025-11-25") as client:
        (resource,) = await client.list_resources(meta={"a/b": 1})
        await client.subscribe(resource, meta={"a/b": 2})
        await client.unsubscribe(resource)
        await client.request("resources/read", {"uri": "test://1", "_meta": {"c/d": 1}}, meta={"a/b": 3})
        with pytest.raises(MisuseError, match='resources/read: unknown option "metta", did you mean "meta"'):
            await client.read_resource(resource, metta={})  # type: ignore[call-arg]
    assert ("resources/list", 1) in seen
    assert ("resources/read", 3) in seen


async def test_a_plain_function_hears_of_the_end_of_the_last_subscription(app: Server) -> None:
    heard: queue.SimpleQueue[tuple[str, bool]] = queue.SimpleQueue()
    app.add_resource("note://a", "text")

    @app.on_subscribe
    def hook(uri: str, subscribed: bool) -> None:
        heard.put((uri, subscribed))

    async with testing.connect(app, revision="2025-11-25") as client:
        await client.subscribe("note://a")
    assert heard.get(timeout=10) == ("note://a", True)
    assert heard.get(timeout=10) == ("note://a", False)


def test_icons_that_a_client_may_load() -> None:
    for src in ("https://example.com/a.png", "data:image/png;base64,AAAA"):
        assert is_safe_icon(src)
    for src in ("http://example.com/a.png", "javascript:alert(1)", "file:///a.png", "data:text/html,x", ""):
        assert not is_safe_icon(src)
