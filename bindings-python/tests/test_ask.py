"""Questions of a handler to its client, and how a client answers them: models, roots, and what goes wrong."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tricorn import (
    CancelledError,
    Client,
    Context,
    CreateMessageResult,
    Error,
    Message,
    MisuseError,
    RequestContext,
    Root,
    RpcError,
    Server,
    Text,
    UnsupportedError,
    assistant,
    connect,
    testing,
    user,
)

from .conftest import LEGACY, MODERN, Asking, Question

pytestmark = pytest.mark.filterwarnings("ignore:.*MCP .* deprecates:DeprecationWarning")

# -- sampling


async def test_sampling(asking: Asking) -> None:
    seen: list[dict[str, Any]] = []

    async def model(params: dict[str, Any], ctx: RequestContext) -> str:
        seen.append(params)
        assert ctx.request.method == "sampling/createMessage"
        return "hi"

    result = await asking(lambda ctx: ctx.sample("hello", 100), sampling=model)
    assert isinstance(result, CreateMessageResult)
    assert (result.text, result.role, result.model, result.stop_reason) == ("hi", "assistant", "unknown", "endTurn")
    assert result.content == [Text("hi")]

    async def everything(ctx: Context) -> Any:
        return await ctx.sample(
            [user("a"), assistant("b"), "c"],
            5,
            system_prompt="s",
            temperature=0.5,
            stop_sequences=["x"],
            model_preferences={"speedPriority": 1},
            include_context="none",
            metadata={"k": 1},
            timeout=10,
        )

    await asking(everything, sampling=model)
    text = [{"type": "text", "text": word} for word in "abc"]
    assert seen == [
        {"messages": [{"role": "user", "content": {"type": "text", "text": "hello"}}], "maxTokens": 100},
        {
            "messages": [
                {"role": "user", "content": text[0]},
                {"role": "assistant", "content": text[1]},
                {"role": "user", "content": text[2]},
            ],
            "maxTokens": 5,
            "systemPrompt": "s",
            "temperature": 0.5,
            "stopSequences": ["x"],
            "modelPreferences": {"speedPriority": 1},
            "includeContext": "none",
            "metadata": {"k": 1},
        },
    ]


async def test_a_conversation(asking: Asking) -> None:
    async def talk(ctx: Context) -> Any:
        first = await ctx.sample("a", 1)
        return (await ctx.sample([user("a"), first, user("c")], 1)).text

    def model(params: dict[str, Any]) -> str:
        return "".join(message["role"][0] + message["content"]["text"] for message in params["messages"])

    assert await asking(talk, sampling=model) == "uaauauc"


TOOL_USE = {"type": "tool_use", "id": "1", "name": "add", "input": {}}


@pytest.mark.parametrize(
    ("given", "text", "model"),
    [
        (CreateMessageResult("x", model="m", stop_reason=None, meta={"a/b": 1}), "x", "m"),
        (CreateMessageResult([Text("a"), Text("b")]), "a\nb", "unknown"),
        (Text("x"), "x", "unknown"),
        (assistant("x"), "x", "unknown"),
        ([Text("x"), TOOL_USE], "x", "unknown"),
        ({"content": {"type": "text", "text": "x"}, "model": "m"}, "x", "m"),
    ],
)
async def test_what_a_model_may_say(asking: Asking, given: Any, text: str, model: str) -> None:
    result = await asking(lambda ctx: ctx.sample("?", 1), sampling=lambda: given)
    assert (result.text, result.model, result.role) == (text, model, "assistant")
    if isinstance(given, list):
        assert result.content[1] == TOOL_USE


async def test_sampling_with_tools(asking: Asking) -> None:
    async def question(ctx: Context) -> Any:
        return await ctx.sample("?", 1, tools=[{"name": "add", "inputSchema": {"type": "object"}}])

    error = await asking(question, sampling=lambda: "x")
    assert isinstance(error, UnsupportedError)
    assert '"sampling.tools"' in str(error)

    def model(params: dict[str, Any]) -> Message:
        return assistant(str(params["tools"][0]["name"]))

    assert (await asking(question, sampling=model, sampling_tools=True)).text == "add"
    with pytest.raises(MisuseError, match="sampling_tools"):
        await asking(question, sampling_tools=True)


# -- roots


async def test_roots(asking: Asking, tmp_path: Path) -> None:
    async def question(ctx: Context) -> Any:
        return await ctx.list_roots()

    roots = [tmp_path / "a b", "/x", "file:///y", Root("file:///z", "Z"), {"uri": "file:///w", "_meta": {"a/b": 1}}]
    listed = await asking(question, roots=roots)
    assert [root.path for root in listed] == [str(tmp_path / "a b"), "/x", "/y", "/z", "/w"]
    assert listed[0].uri == f"file://{tmp_path}/a%20b"
    assert listed[3:] == [Root("file:///z", "Z"), Root("file:///w", meta={"a/b": 1})]
    assert await asking(question, roots=lambda: ["/f"]) == [Root("file:///f")]
    assert await asking(question, roots=[]) == []
    with pytest.raises(MisuseError, match="file://"):
        await asking(question, roots=["https://example.com"])
    with pytest.raises(MisuseError, match="expected a list"):
        await asking(question, roots="/x")


async def test_roots_that_change() -> None:
    app = Server("x")
    seen: list[list[str]] = []

    @app.tool
    async def look(ctx: Context) -> None:
        seen.append([root.path for root in await ctx.list_roots()])

    async with testing.connect(app, revision=LEGACY, roots=["/a"]) as client:
        await client.call_tool("look")
        client.set_roots(["/b", "/c"])
        await client.call_tool("look")
    assert seen == [["/a"], ["/b", "/c"]]
    client = testing.connect(app, revision=LEGACY)
    client.set_roots(["/early"])
    async with client:
        await client.call_tool("look")
    assert seen[2] == ["/early"]
    for options in ({}, {"roots": list}):
        async with testing.connect(app, revision=LEGACY, **options) as client:  # type: ignore[arg-type]
            with pytest.raises(MisuseError, match='connect with the option "roots"'):
                client.set_roots(["/x"])


async def test_a_server_hears_that_roots_have_changed() -> None:
    app = Server("x", state="state")
    heard: asyncio.Queue[tuple[list[str], object]] = asyncio.Queue()

    @app.on_roots_changed
    async def changed(ctx: Context) -> None:
        heard.put_nowait(([root.path for root in await ctx.list_roots()], ctx.state))

    async with testing.connect(app, revision=LEGACY, roots=["/a"]) as client:
        client.set_roots(["/b"])
        assert await asyncio.wait_for(heard.get(), 20) == (["/b"], "state")
    paths = ["/c"]
    async with testing.connect(app, revision=LEGACY, roots=lambda: paths) as client:
        paths[:] = ["/d"]
        client.roots_changed()
        assert await asyncio.wait_for(heard.get(), 20) == (["/d"], "state")
    for revision in (LEGACY, MODERN):
        async with testing.connect(app, revision=revision) as client:
            with pytest.raises(MisuseError, match=r"roots\.listChanged"):
                client.roots_changed()
    assert heard.empty()


async def test_changed_roots_need_not_be_told_where_they_are_asked_for(app: Server) -> None:
    @app.tool
    async def where(ctx: Context) -> str:
        return (await ctx.list_roots())[0].path

    paths = ["/c"]
    async with testing.connect(app, revision=MODERN, roots=lambda: paths) as client:
        paths[:] = ["/d"]
        client.roots_changed()
        assert (await client.call_tool("where")).text == "/d"


# -- what goes wrong


async def test_undeclared_capabilities(asking: Asking) -> None:
    questions: dict[str, Question] = {
        "elicitation": lambda ctx: ctx.elicit("?"),
        "sampling": lambda ctx: ctx.sample("?", 1),
        "roots": lambda ctx: ctx.list_roots(),
    }
    for capability, question in questions.items():
        error = await asking(question)
        assert isinstance(error, UnsupportedError), error
        assert f'"{capability}"' in str(error)
        assert isinstance(await asking(question, "2026-07-28"), Error)
    assert isinstance(await asking(lambda ctx: ctx.elicit_url("?", "https://x", "1")), UnsupportedError)


async def test_errors_of_the_client(asking: Asking, caplog: pytest.LogCaptureFixture) -> None:
    async def refuse() -> str:
        raise RpcError(-1, "the user said no", {"why": 1})

    error = await asking(lambda ctx: ctx.sample("?", 1), sampling=refuse)
    assert isinstance(error, RpcError)
    assert (error.code, error.message, error.data, error.received) == (-1, "the user said no", {"why": 1}, True)
    assert not caplog.records

    async def fail() -> str:
        raise ValueError("secret detail")

    error = await asking(lambda ctx: ctx.sample("?", 1), sampling=fail)
    assert (error.code, error.message) == (-32603, "sampling failed: ValueError")
    assert "secret detail" in caplog.text
    error = await asking(lambda ctx: ctx.sample("?", 1), sampling=lambda: 7)
    assert error.code == -32603


async def test_errors_that_a_handler_lets_pass(app: Server, caplog: pytest.LogCaptureFixture) -> None:
    @app.tool
    async def tool(ctx: Context) -> str:
        return (await ctx.sample("?", 1, timeout=0.1)).text

    @app.tool
    def plain(ctx: Context) -> str:
        return ctx.wait(ctx.sample("?", 1, timeout=0.1)).text

    @app.prompt
    async def prompt(ctx: Context) -> str:
        return (await ctx.sample("?", 1)).text

    async def refuse() -> str:
        raise RpcError(-1, "the user said no", {"why": 1})

    async def never() -> str:
        await asyncio.sleep(60)
        return "?"

    async with testing.connect(app, revision=LEGACY) as client:
        for name in ("tool", "plain"):
            result = await client.call_tool(name)
            assert result.is_error
            assert 'does not declare the capability "sampling"' in result.text
        with pytest.raises(RpcError, match="does not declare") as caught:
            await client.get_prompt("prompt")
        assert caught.value.code == -32603
    async with testing.connect(app, revision=LEGACY, sampling=refuse) as client:
        for name in ("tool", "plain"):
            result = await client.call_tool(name)
            assert result.is_error
            assert result.text == "the question was answered with error -1: the user said no"
        with pytest.raises(RpcError, match="the question was answered with error -1: the user said no") as caught:
            await client.get_prompt("prompt")
        assert caught.value.code == -32603
    async with testing.connect(app, revision=LEGACY, sampling=never) as client:
        assert (await client.call_tool("tool")).is_error
    assert not caplog.records


async def test_generic_questions_and_notifications(asking: Asking) -> None:
    seen: list[Any] = []

    async def question(ctx: Context) -> Any:
        assert ctx.notify("notifications/message", {"level": "info", "data": 1})
        with pytest.raises(MisuseError):
            ctx.notify("no/such/notification")
        with pytest.raises(TimeoutError):
            await ctx.ask("sampling/createMessage", {"messages": [], "maxTokens": 1}, timeout=0.05)
        return await ctx.ask("roots/list", on_progress=seen.append)

    async def roots(ctx: RequestContext) -> list[str]:
        ctx.progress(1, 2, "half")
        return ["/x"]

    async def never() -> str:
        await asyncio.sleep(60)
        return "?"

    answer = await asking(question, sampling=never, roots=roots)
    assert answer == {"roots": [{"uri": "file:///x"}]}
    assert [(p.progress, p.total, p.message) for p in seen] == [(1, 2, "half")]


async def test_cancelling_the_call_takes_its_question_back(app: Server) -> None:
    asked, released, told = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @app.tool
    async def tool(ctx: Context) -> str:
        try:
            await ctx.sample("?", 1)
        except asyncio.CancelledError:
            told.set()
            raise
        return "?"

    async def never() -> str:
        asked.set()
        try:
            await asyncio.sleep(60)
        finally:
            released.set()
        return "?"

    async with testing.connect(app, revision=LEGACY, sampling=never) as client:
        task = asyncio.create_task(client.call_tool("tool"))
        await asyncio.wait_for(asked.wait(), 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(told.wait(), 10)
        await asyncio.wait_for(released.wait(), 10)
        assert not app._host.waiting
        assert not client._host.running


async def test_a_handler_that_gives_up_waiting(app: Server) -> None:
    released = asyncio.Event()

    @app.tool
    async def tool(ctx: Context) -> str:
        try:
            await asyncio.wait_for(ctx.elicit("?"), 0.1)
        except asyncio.TimeoutError:
            await asyncio.wait_for(released.wait(), 10)
            return "gave up"
        return "?"

    async def never() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            released.set()

    async with testing.connect(app, revision=LEGACY, elicitation=never) as client:
        assert (await client.call_tool("tool")).text == "gave up"


async def test_plain_functions_wait(app: Server) -> None:
    @app.tool
    def tool(ctx: Context) -> str:
        return ctx.wait(ctx.sample("?", 1)).text + str(ctx.wait(ctx.elicit("?", int)).content)

    @app.tool(run_in_thread=False)
    def inline(ctx: Context) -> str:
        with pytest.raises(MisuseError, match="would block"):
            ctx.wait(ctx.elicit("?"))
        return "refused"

    @app.tool
    async def asynchronous(ctx: Context) -> str:
        def elsewhere() -> None:
            with pytest.raises(Exception, match="worker thread"):
                ctx.wait(ctx.elicit("?"))

        await asyncio.to_thread(elsewhere)
        return "refused"

    options: Any = {"sampling": lambda: "x", "elicitation": lambda: {"value": 7}, "revision": LEGACY}
    async with testing.connect(app, **options) as client:
        assert (await client.call_tool("tool")).text == "x7"
        assert (await client.call_tool("inline")).text == "refused"
        assert (await client.call_tool("asynchronous")).text == "refused"


async def test_a_plain_function_is_cancelled_while_it_waits(app: Server) -> None:
    asked, outcome = asyncio.Event(), asyncio.get_running_loop().create_future()
    loop = asyncio.get_running_loop()

    @app.tool
    def tool(ctx: Context) -> str:
        try:
            ctx.wait(ctx.sample("?", 1))
        except CancelledError as error:
            loop.call_soon_threadsafe(outcome.set_result, error)
        return "?"

    async def never() -> str:
        asked.set()
        await asyncio.sleep(60)
        return "?"

    async with testing.connect(app, revision=LEGACY, sampling=never) as client:
        task = asyncio.create_task(client.call_tool("tool"))
        await asyncio.wait_for(asked.wait(), 10)
        task.cancel()
        assert isinstance(await asyncio.wait_for(outcome, 10), CancelledError)


async def test_questions_over_http(app: Server) -> None:
    @app.tool
    async def tool(ctx: Context) -> str:
        ctx.progress(1)
        return (await ctx.sample("?", 1)).text + str((await ctx.elicit("?", int)).content)

    released, asked = asyncio.Event(), asyncio.Event()

    async def never() -> str:
        asked.set()
        try:
            await asyncio.sleep(60)
        finally:
            released.set()
        return "?"

    async with testing.serving(app) as url:
        async with connect(url, revision=LEGACY, sampling=never) as client:
            task = asyncio.create_task(client.call_tool("tool"))
            await asyncio.wait_for(asked.wait(), 10)
            task.cancel()
            await asyncio.wait_for(released.wait(), 10)
        options: Any = {"sampling": lambda: "x", "elicitation": lambda: {"value": 7}, "revision": LEGACY}
        async with connect(url, **options) as client:
            assert (await client.call_tool("tool")).text == "x7"


def test_the_synchronous_client_answers() -> None:
    app = Server("x")

    @app.tool
    async def tool(ctx: Context) -> str:
        roots = await ctx.list_roots()
        return (await ctx.sample("?", 1)).text + str((await ctx.elicit("?", int)).content) + roots[0].path

    async def fill_in() -> dict[str, Any]:
        return {"value": 7}

    with Client(app, revision=LEGACY, sampling=lambda: "x", elicitation=fill_in, roots=["/a"]) as client:
        assert client.call_tool("tool").text == "x7/a"
        client.set_roots(["/b"])
        assert client.call_tool("tool").text == "x7/b"


def test_answers_must_be_functions() -> None:
    with pytest.raises(MisuseError, match="sampling: expected a function"):
        testing.connect(Server("x"), sampling="x")  # type: ignore[arg-type]
    with pytest.raises(MisuseError, match="1 values at most"):
        testing.connect(Server("x"), sampling=lambda a, b: "x")
