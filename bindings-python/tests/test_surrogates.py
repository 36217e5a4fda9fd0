"""Half of a surrogate pair, which JSON can write and Unicode does not have: it arrives as U+FFFD, and nobody waits."""

from __future__ import annotations

import decimal
from typing import Any

import msgspec
import pytest

from tricorn import (
    CallToolResult,
    Client,
    Context,
    Next,
    PeerMisbehavedError,
    Progress,
    Request,
    RequestContext,
    RpcError,
    Server,
    testing,
)
from tricorn.call.request_options import progress_sink
from tricorn.client.handlers import _by_mode
from tricorn.client.tasks import Created
from tricorn.json.decoding import decode, decoded
from tricorn.middleware import Result
from tricorn.model.wire_result import WireResult

from .conftest import LEGACY

HALF = msgspec.Raw(rb'{"a":"x\ud800y"}')
READ = {"a": "x\ufffdy"}
ERAS = pytest.mark.parametrize("revision", [LEGACY, "2026-07-28"])


@pytest.fixture
def app() -> Server:
    app = Server("test")

    @app.tool
    async def fail() -> None:
        raise RpcError(1, "m", HALF)

    @app.tool
    async def whole() -> CallToolResult:
        text = rb'{"content":[{"type":"text","text":"x\ud800y"}],"structuredContent":{"a":"x\ud800y"}}'
        return CallToolResult.from_wire(text)

    @app.tool
    def echo(value: dict[str, Any], ctx: Context) -> dict[str, Any]:
        return {"value": value, "meta": ctx.request.meta["com.example/x"]}

    return app


@ERAS
async def test_a_waiting_call_ends(app: Server, revision: str) -> None:
    async with testing.connect(app, revision=revision) as client:
        with pytest.raises(RpcError) as caught:
            await client.call_tool("fail", timeout=10)
        assert (caught.value.code, caught.value.message, caught.value.data) == (1, "m", READ)
        result = await client.call_tool("whole", timeout=10)
        assert (result.text, result.structured) == ("x\ufffdy", READ)
        raw = await client.request("tools/call", {"name": "whole"}, timeout=10)
        assert raw["structuredContent"] == READ


def test_a_waiting_call_ends_without_asyncio(app: Server) -> None:
    with Client(app) as client:
        with pytest.raises(RpcError) as caught:
            client.call_tool("fail", timeout=10)
        assert caught.value.data == READ
        assert client.call_tool("whole", timeout=10).text == "x\ufffdy"
        assert client.request("tools/call", {"name": "whole"}, timeout=10)["structuredContent"] == READ


@ERAS
async def test_arguments(app: Server, revision: str) -> None:
    async with testing.connect(app, revision=revision) as client:
        result = await client.call_tool("echo", {"value": HALF}, timeout=10, meta={"com.example/x": HALF})
        assert result.structured == {"value": READ, "meta": READ}


@ERAS
async def test_around_a_request(app: Server, revision: str) -> None:
    seen: list[Any] = []

    @app.middleware
    async def watch(request: Request, context: RequestContext, call_next: Next) -> Result:
        seen.append((request.params or {}).get("arguments"))
        return await call_next(request, context)

    async with testing.connect(app, revision=revision) as client:
        result = await client.request("tools/call", {"name": "whole", "arguments": HALF}, timeout=10)
        assert result["isError"]
    assert READ in seen


@ERAS
async def test_what_a_client_answers(app: Server, revision: str) -> None:
    @app.tool
    async def ask(ctx: Context) -> str:
        try:
            answer = await ctx.elicit("?", {"type": "object", "properties": {"a": {"type": "string"}}}, timeout=10)
        except RpcError as error:
            return f"{error.data}"
        return f"{answer.content}"

    def refuse(*_: Any) -> None:
        raise RpcError(1, "m", HALF)

    async with testing.connect(app, revision=revision, elicitation=refuse) as client:
        if revision == LEGACY:
            assert (await client.call_tool("ask", timeout=10)).text == str(READ)
        else:
            with pytest.raises(RpcError, match="was not answered: m"):
                await client.call_tool("ask", timeout=10)


def test_questions_by_mode() -> None:
    asked: list[tuple[str, bytes]] = []
    modes = ("form", "url")
    entry = _by_mode({mode: lambda raw, _, mode=mode: asked.append((mode, raw)) for mode in modes})  # type: ignore[misc]
    texts = [rb'{"mode":"url","message":"\ud800"}', rb'{"message":"\ud800"}', b"["]
    for text in texts:
        entry(text, 1)
    assert asked == list(zip(("url", "form", "form"), texts, strict=True))


def test_what_middleware_sees() -> None:
    assert Request.from_wire("tools/call", bytes(HALF)).params == READ


async def test_what_is_heard(app: Server, caplog: pytest.LogCaptureFixture) -> None:
    heard: list[Any] = []
    on_notification: Any = lambda *told: heard.append(told)  # noqa: E731
    async with testing.connect(app, on_notification=on_notification) as client:
        (source,) = client._host.sinks
        for text in (rb'{"method":"x/y","params":{"a":"x\ud800y"}}', b"["):
            client._host._event(source, "notification", text)
    assert heard == [("x/y", READ)]
    assert [message for message in caplog.messages if "notification was not heard" in message]


def test_progress() -> None:
    heard: list[Progress] = []
    hear = progress_sink(heard.append)
    for text in (rb'{"progress":1,"message":"\ud800"}', b'{"progress":"?"}', b'{"progress":2', b'{"progress":3}'):
        hear(text)
    assert heard == [Progress(1, None, "\ufffd"), Progress(3)]


def test_what_is_read() -> None:
    assert decode(rb'["\ud83d\ude00", "\ud800", "\\ud800", "\ude00\ud83d"]') == [
        "\U0001f600",
        "\ufffd",
        "\\ud800",
        "\ufffd\ufffd",
    ]
    assert decode(b'{"a":1e999}') == {"a": decimal.Decimal("1e999")}
    assert decoded(msgspec.json.Decoder(list[str]).decode, rb'["\ud800"]') == ["\ufffd"]
    with pytest.raises(msgspec.ValidationError):
        decoded(msgspec.json.Decoder(list[int]).decode, rb'["\ud800"]')


@pytest.mark.parametrize("text", [b"", b"[", b"\xff", b"[" * 100_000 + b"]" * 100_000])
def test_what_cannot_be_read_names_the_peer(text: bytes) -> None:
    looks: list[Any] = [decode, lambda text: decoded(decode, text), Created]
    if text:
        looks.append(lambda text: WireResult.from_wire(text).raw)
    for look in looks:
        with pytest.raises(PeerMisbehavedError, match="what was sent cannot be read"):
            look(text)
