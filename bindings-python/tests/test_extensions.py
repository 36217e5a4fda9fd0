"""Extensions of one's own, and MCP Apps."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tricorn import (
    AsyncClient,
    AsyncListening,
    Change,
    Client,
    ClosedError,
    Context,
    Extension,
    ExtensionNotification,
    MisuseError,
    PeerMisbehavedError,
    RpcError,
    Server,
    apps,
    connect,
    testing,
)
from tricorn.model.definitions import Tool

from .conftest import MODERN, PATIENCE

ROOT = Path(__file__).parents[2]
SEARCH = "com.example/search"
FOUND = "notifications/com.example/found"
MEMBER = "com.example/queries"
DECLARED: dict[str, Any] = {"extensions": {SEARCH: {"limit": 3}}}
REVISIONS = pytest.mark.parametrize("revision", ["2024-11-05", "2025-11-25", MODERN])
OVER = pytest.mark.parametrize("over", ["memory", "http"])


def search() -> Extension:
    extension = Extension(SEARCH, {"languages": ["en"]})

    @extension.method(SEARCH, idempotent=True)
    async def find(query: str, ctx: Context, limit: int = 10) -> dict[str, Any]:
        return {"found": [query] * limit, "wanted": ctx.extension(SEARCH)}

    @extension.method("com.example/later")
    def later() -> dict[str, Any]:
        return {"resultType": "com.example/later", "at": 7}

    @extension.method("com.example/any", run_in_thread=False)
    def anything(**params: Any) -> dict[str, Any]:
        return params

    @extension.method("com.example/nothing")
    async def nothing() -> None:
        return None

    @extension.method("com.example/wrong")
    async def wrong() -> list[int]:
        return [1]

    @extension.method("com.example/fails")
    async def fails() -> None:
        raise RpcError(-31050, "no such index", {"index": 1})

    @extension.method("com.example/secret")
    async def secret() -> None:
        raise ValueError("the password")

    extension.notification(FOUND, MEMBER)
    return extension


@pytest.fixture
def app() -> Server:
    app = Server("library", extensions=[search()], on_error=lambda *_: None)

    @app.tool
    def which(ctx: Context) -> bool:
        return ctx.extension(SEARCH) is not None

    return app


@asynccontextmanager
async def reached(app: Server, over: str, **options: Any) -> AsyncGenerator[AsyncClient]:
    if over == "memory":
        async with testing.connect(app, **options) as client:
            yield client
    else:
        async with testing.serving(app) as url, connect(url, **options) as client:
            yield client


async def refused(client: AsyncClient, method: str, **params: Any) -> RpcError:
    with pytest.raises(RpcError) as caught:
        await client.request(method, params)
    return caught.value


@REVISIONS
@OVER
async def test_requests_of_an_extension(app: Server, over: str, revision: str) -> None:
    async with reached(app, over, revision=revision, **DECLARED) as client:
        assert client.capabilities["extensions"] == {SEARCH: {"languages": ["en"]}}
        found = await client.request(SEARCH, {"query": "ü", "limit": 2})
        assert (found["found"], found["wanted"]) == (["ü", "ü"], {"limit": 3})
        any_of = await client.request("com.example/any", {"a": [1, None]})
        assert any_of["a"] == [1, None]
        nothing = await client.request("com.example/nothing")
        assert not nothing.keys() - {"resultType", "_meta"}
        assert (await refused(client, SEARCH, query=7)).code == -32602
        assert "query" in str(await refused(client, SEARCH))
        failed = await refused(client, "com.example/fails")
        assert (failed.code, failed.message, failed.data) == (-31050, "no such index", {"index": 1})
        assert (await refused(client, "com.example/wrong")).code == -32603
        hidden = await refused(client, "com.example/secret")
        assert hidden.code == -32603
        assert "ValueError" in hidden.message
        assert "password" not in hidden.message
        assert (await client.call_tool("which")).text == "true"


@REVISIONS
async def test_who_does_not_declare_it_gets_nothing_of_it(app: Server, revision: str) -> None:
    async with testing.connect(app, revision=revision) as client:
        assert (await refused(client, SEARCH, query="x")).code == (-32021 if revision == MODERN else -32601)
        assert (await client.call_tool("which")).text == "false"
    async with testing.connect(Server("plain"), revision=revision, **DECLARED) as client:
        assert (await refused(client, SEARCH, query="x")).code == -32601


async def test_a_result_of_another_type(app: Server) -> None:
    async with testing.connect(app, revision=MODERN, **DECLARED) as client:
        with pytest.raises(PeerMisbehavedError, match=r"com\.example/later"):
            await client.request("com.example/later")
        later = await client.request("com.example/later", any_result=True)
        assert (later["resultType"], later["at"]) == ("com.example/later", 7)


async def following(changes: AsyncListening) -> Change | None:
    return await changes.next(PATIENCE)


@REVISIONS
@OVER
async def test_notifications_of_an_extension(app: Server, over: str, revision: str) -> None:
    async with reached(app, over, revision=revision, **DECLARED) as client:
        wanted: dict[str, Any] = {MEMBER: ["a"]}
        async with client.listen(extensions={MEMBER: True}) as everything, client.listen(extensions=wanted) as keyed:
            assert everything.honoured.extensions == {MEMBER: True}
            assert keyed.honoured.extensions == wanted
            for query in ("b", "a"):
                app.notify(FOUND, {"query": query}, key=query)
            for query in ("b", "a"):
                told = ExtensionNotification(FOUND, {"query": query})
                assert await following(everything) == told
                # Older clients cannot choose.
                if revision != MODERN or query == "a":
                    assert await following(keyed) == told
            app.notify(FOUND)
            assert await following(everything) == ExtensionNotification(FOUND, {})


async def test_what_is_not_taken_is_not_lost_silently(app: Server) -> None:
    async with (
        testing.connect(app, revision=MODERN, **DECLARED) as client,
        client.listen(extensions={MEMBER: True}) as changes,
    ):
        for number in range(1100):
            app.notify(FOUND, {"number": number})
        for _ in range(1024):
            assert await following(changes) is not None
        with pytest.raises(ClosedError, match="1024"):
            await following(changes)


async def test_the_synchronous_client(app: Server) -> None:
    def use() -> None:
        with Client(app, **DECLARED) as client:
            assert client.request(SEARCH, {"query": "x"}, timeout=PATIENCE)["found"] == ["x"] * 10
            with client.listen(extensions={MEMBER: ["a"]}) as changes:
                app.notify(FOUND, {}, key="a")
                assert changes.next(PATIENCE) == ExtensionNotification(FOUND, {})

    await asyncio.to_thread(use)


def test_what_is_wrong_is_named() -> None:
    app = Server("library", extensions=[search()])
    taken = Extension("com.example/other")
    taken.method(SEARCH)(weather)
    for extension, named in (
        (Extension("search"), "identifier with a prefix"),
        (search(), "it is there already"),
        (taken, "is there already"),
        (Extension("io.modelcontextprotocol/tasks"), 'option "tasks"'),
    ):
        with pytest.raises(MisuseError, match=named):
            app.add_extension(extension)
    with pytest.raises(MisuseError, match="expected an Extension"):
        app.add_extension("x")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with pytest.raises(MisuseError, match="no notification of an extension"):
        app.notify("notifications/x")
    with pytest.raises(MisuseError, match="extensions"):
        connect("http://127.0.0.1:1/mcp", extensions={"search": {}})


async def test_what_cannot_be_wanted_is_refused(app: Server) -> None:
    async with testing.connect(app, revision=MODERN, **DECLARED) as client:
        with pytest.raises(MisuseError, match="expected true or a list of keys"):
            client.listen(extensions={MEMBER: "a"})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]
    async with testing.connect(app, revision=MODERN) as client:
        with pytest.raises(RpcError) as caught:
            async with client.listen(extensions={MEMBER: True}):
                pass
        assert caught.value.code == -32021


# -- MCP Apps

MAP = "ui://weather/map"
HOST: dict[str, Any] = {"extensions": {apps.UI_EXTENSION: apps.ui_client_settings()}}


def weather() -> Server:
    app = Server("weather", extensions=[apps.ui_extension()])

    @app.tool(meta=apps.ToolUi(MAP, visibility=("app",)).meta())
    def forecast(ctx: Context) -> str:
        return "a map" if apps.supports_ui(ctx) else "sunny"

    @app.tool(meta={apps._RESOURCE_URI: MAP})  # pyright: ignore[reportPrivateUsage]
    def older() -> str:
        return "x"

    @app.tool
    def plain() -> str:
        return "x"

    ui = apps.ResourceUi(
        apps.UiCsp(connect_domains=("https://tiles.example.com",)),
        apps.UiPermissions(geolocation=True, clipboard_write=True),
        prefers_border=True,
    )
    apps.add_ui_resource(app, MAP, lambda: "<h1>Map</h1>", ui, title="Map")
    return app


@REVISIONS
async def test_apps(revision: str) -> None:
    async with testing.connect(weather(), revision=revision, **HOST) as client:
        assert apps.UI_EXTENSION in client.capabilities["extensions"]
        assert (await client.call_tool("forecast")).text == "a map"
        contents = (await client.read_resource(MAP)).contents[0]
        assert (contents.mime_type, contents.text) == (apps.UI_MIME_TYPE, "<h1>Map</h1>")
        (resource,) = await client.list_resources()
        assert (resource.raw["mimeType"], resource.raw["name"]) == (apps.UI_MIME_TYPE, "weather/map")
        if revision == "2024-11-05":
            return  # it has no `_meta` there
        assert contents.meta == {
            "ui": {
                "csp": {"connectDomains": ["https://tiles.example.com"]},
                "permissions": {"geolocation": {}, "clipboardWrite": {}},
                "prefersBorder": True,
            }
        }
        forecast, older, plain = await client.list_tools()
        assert forecast.raw["_meta"] == {"ui": {"resourceUri": MAP, "visibility": ["app"]}}
        assert apps.tool_ui(forecast) == apps.ToolUi(MAP, ("app",))
        assert apps.tool_ui(older) == apps.ToolUi(MAP)
        assert apps.tool_ui(plain) is None
        assert [apps.visible_to_model(tool) for tool in (forecast, older, plain)] == [False, True, True]
        assert all(apps.callable_by_app(tool) for tool in (forecast, older, plain))


async def test_a_client_without_user_interfaces_gets_the_text() -> None:
    for options in ({}, {"extensions": {apps.UI_EXTENSION: apps.ui_client_settings(["text/x"])}}):
        async with testing.connect(weather(), **options) as client:
            assert (await client.call_tool("forecast")).text == "sunny"


def test_what_is_wrong_about_an_app_is_named() -> None:
    with pytest.raises(MisuseError, match="resource_uri"):
        apps.ToolUi("https://example.com")
    with pytest.raises(MisuseError, match="visibility"):
        apps.ToolUi(MAP, ("user",))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with pytest.raises(MisuseError, match="ui://"):
        apps.add_ui_resource(Server("x"), "https://example.com", "")


@REVISIONS
async def test_pages_of_functions_bytes_and_templates(revision: str) -> None:
    app = weather()
    ui = apps.ResourceUi(prefers_border=False)

    async def asynchronous(ctx: Context) -> str:
        return f"<p>{apps.supports_ui(ctx)}</p>"

    def day(number: int, ctx: Context, place: str = "here") -> bytes:
        return f"<p>{number} {place} {apps.supports_ui(ctx)}</p>".encode()

    class Called:
        async def __call__(self, uri: str) -> str:
            return uri

    apps.add_ui_resource(app, "ui://bytes", b"<p>", ui)
    apps.add_ui_resource(app, "ui://async", asynchronous, ui)
    apps.add_ui_resource(app, "ui://day/{number}", day, ui, title="A day")
    apps.add_ui_resource(app, "ui://partial/{number}", partial(day, place="there"))
    apps.add_ui_resource(app, "ui://called", Called())
    apps.add_ui_resource(app, "ui://later", lambda: asyncio.sleep(0, "<p>later"))
    apps.add_ui_resource(app, "ui://fixed/{x}", "<p>fixed", ui)
    nothing_of_the_kind: Any = lambda: 7  # noqa: E731
    apps.add_ui_resource(app, "ui://wrong", nothing_of_the_kind)
    async with testing.connect(app, revision=revision, **HOST) as client:
        for uri, html, blob in (
            ("ui://bytes", None, b"<p>"),
            ("ui://async", "<p>True</p>", None),
            ("ui://day/7", None, b"<p>7 here True</p>"),
            ("ui://partial/8", None, b"<p>8 there True</p>"),
            ("ui://called", "ui://called", None),
            ("ui://later", "<p>later", None),
            ("ui://fixed/y", "<p>fixed", None),
        ):
            (page,) = (await client.read_resource(uri)).contents
            assert (page.uri, page.mime_type, page.text, page.blob) == (uri, apps.UI_MIME_TYPE, html, blob)
            if revision != "2024-11-05" and html != uri and uri not in ("ui://partial/8", "ui://later"):
                assert page.meta == {"ui": {"prefersBorder": False}}
        with pytest.raises(RpcError, match="number"):
            await client.read_resource("ui://day/seven")
        with pytest.raises(RpcError, match="MisuseError"):
            await client.read_resource("ui://wrong")
        days = [template for template in await client.list_resource_templates() if "day" in template.uri_template]
        assert [(day.mime_type, day.name) for day in days] == [(apps.UI_MIME_TYPE, "day/{number}")]


UNTYPED: Any = apps
UNTYPED_SERVER: Any = Server


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: UNTYPED.UiCsp("https://x.com"), "connect_domains: expected a list of origins"),
        (lambda: UNTYPED.UiCsp(frame_domains=(1,)), "frame_domains: expected a list of origins"),
        (lambda: UNTYPED.UiPermissions(camera="yes"), "camera: expected True or False, got .yes"),
        (lambda: UNTYPED.UiPermissions(clipboard_write=1), "clipboard_write"),
        (lambda: UNTYPED.ResourceUi(csp={}), "csp: expected a UiCsp"),
        (lambda: UNTYPED.ResourceUi(domain=1), "domain: expected text"),
        (lambda: UNTYPED.ResourceUi(prefers_border=1), "prefers_border: expected True or False"),
        (lambda: UNTYPED.ui_client_settings("text/html"), "mime_types: expected a list of at least one"),
        (lambda: UNTYPED.ui_client_settings([]), "mime_types"),
        (lambda: UNTYPED.ui_client_settings([1]), "mime_types"),
        (lambda: UNTYPED.add_ui_resource(Server("x"), 7, ""), "uri: expected"),
        (lambda: UNTYPED.add_ui_resource(Server("x"), "ui://x", 7), "'ui://x': expected HTML, text or bytes, got 7"),
        (lambda: UNTYPED.add_ui_resource(Server("x"), "ui://x", "", {}), "ui: expected a ResourceUi"),
        (lambda: UNTYPED.add_ui_resource(Server("x"), "ui://x/{y}", lambda: ""), "no parameter 'y'"),
        (lambda: UNTYPED_SERVER("x").add_tool(weather, output_schema=True), "tool .weather.: outputSchema: expected"),
    ],
)
def test_what_is_of_the_wrong_type_is_named(make: Any, named: str) -> None:
    with pytest.raises(MisuseError, match=named):
        make()


def test_what_others_list_is_read_with_care() -> None:
    cases: list[dict[str, Any]] = json.loads((ROOT / "tests/apps.json").read_text(encoding="utf-8"))
    for case in cases:
        tool = Tool({"name": "t", "_meta": case["meta"]})
        ui = apps.tool_ui(tool)
        assert (ui and (ui.resource_uri, list(ui.visibility))) == (
            case["ui"] and (case["ui"].get("resourceUri"), case["ui"]["visibility"])
        ), case
        assert (apps.visible_to_model(tool), apps.callable_by_app(tool)) == (case["model"], case["app"]), case
