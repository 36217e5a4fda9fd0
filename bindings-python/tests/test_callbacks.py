"""Callbacks and handlers of a client: asynchronous ones, those that fail, and what they are given."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from tricorn import (
    CancelledError,
    Client,
    Context,
    LogHandler,
    MisuseError,
    Progress,
    RequestContext,
    RpcError,
    Server,
    UnsupportedError,
    testing,
)

from .conftest import LEGACY, Asking

pytestmark = pytest.mark.filterwarnings("ignore:.*MCP .* deprecates:DeprecationWarning")


def talking(app: Server) -> Server:
    @app.tool
    async def talk(ctx: Context, count: int = 1) -> None:
        for number in range(count):
            ctx.log("info", number)

    @app.tool
    async def count(ctx: Context) -> None:
        ctx.progress(1, 2)

    return app


async def test_asynchronous_callbacks(app: Server) -> None:
    heard: asyncio.Queue[Any] = asyncio.Queue()

    async def on_log(level: str, logger: str | None, data: Any) -> None:
        await asyncio.sleep(0)
        heard.put_nowait((level, data))

    async def on_list_changed(kind: str) -> None:
        heard.put_nowait(kind)

    async def on_progress(progress: Progress) -> None:
        heard.put_nowait(progress.progress)

    talking(app)
    async with testing.connect(app, revision=LEGACY, on_log=on_log, on_list_changed=on_list_changed) as client:
        await client.call_tool("talk")
        assert await asyncio.wait_for(heard.get(), 10) == ("info", 0)
        app.remove_tool("talk")
        assert await asyncio.wait_for(heard.get(), 10) == "tool"
        await client.call_tool("count", on_progress=on_progress)
        assert await asyncio.wait_for(heard.get(), 10) == 1
        host = client._host
    assert not host._tasks


async def test_callbacks_that_never_end_are_bounded_and_cancelled(
    app: Server, caplog: pytest.LogCaptureFixture
) -> None:
    started = cancelled = 0

    async def on_log(*_: Any) -> None:
        nonlocal started, cancelled
        started += 1
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled += 1
            raise

    async with testing.connect(talking(app), revision=LEGACY, on_log=on_log) as client:
        await client.call_tool("talk", {"count": 300})
        await client.ping()
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert started == cancelled == 256
    assert "on_log was not told" in caplog.text


async def test_one_callback_does_not_silence_the_others(app: Server, caplog: pytest.LogCaptureFixture) -> None:
    heard: asyncio.Queue[Any] = asyncio.Queue()

    def broken(*_: Any) -> None:
        raise ValueError("broken callback")

    def on_log(level: str, logger: str | None, data: Any) -> None:
        heard.put_nowait(data)

    talking(app)
    async with testing.connect(app, revision=LEGACY, on_notification=broken, on_log=on_log) as client:
        await client.call_tool("talk")
        assert await asyncio.wait_for(heard.get(), 10) == 0
    assert "on_notification failed" in caplog.text
    assert "broken callback" in caplog.text
    caplog.clear()
    errors: asyncio.Queue[Any] = asyncio.Queue()

    async def fails(*_: Any) -> None:
        raise KeyError("later")

    def on_error(error: Exception, name: str) -> None:
        errors.put_nowait((type(error), name))

    async with testing.connect(app, revision=LEGACY, on_log=fails, on_error=on_error) as client:
        await client.call_tool("talk")
        assert await asyncio.wait_for(errors.get(), 10) == (KeyError, "on_log")
    assert not caplog.records


async def test_the_errors_of_a_clients_handlers(asking: Asking, caplog: pytest.LogCaptureFixture) -> None:
    errors: list[Any] = []

    def fail() -> str:
        raise ValueError("secret detail")

    error = await asking(
        lambda ctx: ctx.sample("?", 1), sampling=fail, on_error=lambda error, name: errors.append((str(error), name))
    )
    assert isinstance(error, RpcError)
    assert errors == [("secret detail", "sampling")]
    assert not caplog.records


async def test_what_a_clients_handler_gets(asking: Asking) -> None:
    def model(params: dict[str, Any], ctx: RequestContext) -> str:
        assert type(ctx) is RequestContext
        assert RequestContext.current().request.method == "sampling/createMessage"
        assert not ctx.cancelled
        ctx.values["n"] = 1
        ctx.progress(1)
        with pytest.raises(MisuseError, match="RequestContext"):
            Context.current()
        return "ok"

    assert (await asking(lambda ctx: ctx.sample("?", 1), sampling=model)).text == "ok"

    async def wrong(params: dict[str, Any], ctx: Context) -> str:
        return "?"

    with pytest.raises(MisuseError, match=r"sampling: .* RequestContext"):
        await asking(lambda ctx: ctx.sample("?", 1), sampling=wrong)


async def test_a_log_handler_leaves_a_clients_handlers_alone(asking: Asking) -> None:
    logger = logging.getLogger("test.client")
    logger.setLevel(logging.DEBUG)
    handler = LogHandler()
    logger.addHandler(handler)
    failed: list[Any] = []
    handler.handleError = failed.append  # type: ignore[method-assign]
    heard: list[Any] = []

    def model() -> str:
        logger.info("in the client")
        return "ok"

    try:
        await asking(lambda ctx: ctx.sample("?", 1), sampling=model, on_notification=lambda *told: heard.append(told))
    finally:
        logger.removeHandler(handler)
    assert not failed
    assert not heard


async def test_a_call_that_is_cancelled_is_no_failure() -> None:
    errors: list[Any] = []
    app = Server("x", on_error=lambda error, name: errors.append(error))
    asked, ended = asyncio.Event(), asyncio.Event()

    @app.tool
    def plain(ctx: Context) -> str:
        try:
            return ctx.wait(ctx.sample("?", 1)).text
        except CancelledError:
            assert ctx.cancelled
            raise
        finally:
            loop.call_soon_threadsafe(ended.set)

    async def never() -> str:
        asked.set()
        await asyncio.sleep(60)
        return "?"

    loop = asyncio.get_running_loop()
    async with testing.connect(app, revision=LEGACY, sampling=never) as client:
        task = asyncio.create_task(client.call_tool("plain"))
        await asyncio.wait_for(asked.wait(), 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(ended.wait(), 10)
        while app._host.running:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    assert not errors


async def test_data_of_a_log_message(app: Server) -> None:
    heard: asyncio.Queue[Any] = asyncio.Queue()

    @app.tool
    async def talk(ctx: Context) -> None:
        ctx.log("info", {"path": Path("/x")})
        ctx.log("info", ValueError("boom"))
        ctx.log("info", "\ud800")

    def on_log(level: str, logger: str | None, data: Any) -> None:
        heard.put_nowait(data)

    async with testing.connect(app, revision=LEGACY, on_log=on_log) as client:
        assert not (await client.call_tool("talk")).is_error
        assert [await asyncio.wait_for(heard.get(), 10) for _ in range(3)] == [{"path": "/x"}, "boom", "\ufffd"]


async def test_sampling_context(asking: Asking) -> None:
    declared = await asking(_capabilities, sampling=lambda: "x", sampling_context=True, sampling_tools=True)
    assert declared["sampling"] == {"tools": {}, "context": {}}
    with pytest.raises(MisuseError, match="sampling_context"):
        await asking(_capabilities, sampling_context=True)


async def _capabilities(ctx: Context) -> Any:
    return ctx.request.client_capabilities


async def test_undeclared_parts_are_the_engines_affair(asking: Asking) -> None:
    error = await asking(lambda ctx: ctx.sample("?", 1, tools=[]), sampling=lambda: "x")
    assert isinstance(error, UnsupportedError)
    assert "sampling.tools" in str(error)
    error = await asking(
        lambda ctx: ctx.ask("elicitation/create", {"mode": "strange", "message": "?"}), elicitation=lambda: True
    )
    assert isinstance(error, Exception)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"samplng": lambda: "x"}, 'unknown option "samplng", did you mean "sampling"?'),
        ({"request_timout": 5}, 'did you mean "request_timeout"?'),
        ({"qqq": 5}, 'client options: unknown option "qqq", expected one of '),
        ({"roots": 5}, "roots: expected a list"),
        ({"roots": "/x"}, "roots: expected a list"),
        ({"on_log": 5}, "on_log: expected a function, got 5"),
        ({"on_notification": "x"}, "on_notification: expected a function"),
        ({"on_error": "x"}, "on_error: expected a function"),
        ({"sampling": "x"}, "sampling: expected a function"),
    ],
)
def test_wrong_options(app: Server, options: Any, says: str) -> None:
    for make in (testing.connect, Client):
        with pytest.raises(MisuseError) as caught:
            make(app, **options)
        assert says in str(caught.value)


def test_a_synchronous_client_wants_plain_progress(app: Server) -> None:
    async def on_progress(_: Progress) -> None:
        pass

    with Client(talking(app)) as client, pytest.raises(MisuseError, match="plain functions"):
        client.call_tool("count", on_progress=on_progress)


async def test_handlers_that_come_and_go(app: Server) -> None:
    size = len(app._host.table)
    for _ in range(100):
        app.add_tool(lambda: "x", name="t")
        app.set_source("prompt", list=list)
        assert app.remove_tool("t")
    assert len(app._host.table) == size + 1
    async with testing.connect(app) as client:
        with pytest.raises(RpcError, match="unknown tool"):
            await client.call_tool("t")
