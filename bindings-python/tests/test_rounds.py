"""Questions in every revision that has them: one handler, asked by requests or in rounds; steps."""

from __future__ import annotations

import asyncio
import sys
import threading
from dataclasses import dataclass
from typing import Any, TypedDict

import pytest

from tricorn import (
    Context,
    Elicited,
    Error,
    InputRequired,
    Next,
    Question,
    Request,
    RpcError,
    Server,
    ToolError,
    UnsupportedError,
    testing,
)

from .conftest import MODERN, User, called

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.mark.parametrize(
    ("answer", "text"),
    [({"value": "Ada"}, "accept Ada"), (Elicited("decline"), "decline None"), (Elicited("cancel"), "cancel None")],
)
async def test_one_question(app: Server, revision: str, answer: Any, text: str) -> None:
    @app.tool
    async def tool(ctx: Context) -> str:
        answer = await ctx.elicit("name?", str)
        return f"{answer.action} {answer.content}"

    user = User(lambda _: answer)
    assert await called(app, revision, user) == text
    assert user.asked == ["name?"]


async def test_questions_follow_one_another_and_steps_are_done_once(app: Server, revision: str) -> None:
    done: list[str] = []

    async def later() -> dict[str, int]:
        await asyncio.sleep(0)
        done.append("later")
        return {"n": len(done)}

    @app.tool
    async def tool(ctx: Context) -> str:
        await ctx.step("now", lambda: done.append("now"))
        order = await ctx.step("later", later)
        # The same question twice is two questions.
        given = [(await ctx.elicit(message, str)).content for message in ("a", "b", "b")]
        return f"{order['n']} {given}"

    user = User()
    assert await called(app, revision, user) == "2 ['a', 'b', 'b']"
    assert (user.asked, done) == (["a", "b", "b"], ["now", "later"])


async def test_plain_functions(app: Server, revision: str, failures: list[Exception]) -> None:
    threads: list[tuple[int, int]] = []

    @app.tool
    def tool(ctx: Context) -> str:
        here = threading.get_ident()
        ctx.wait(ctx.step("here", lambda: threads.append((here, threading.get_ident()))))

        async def elsewhere() -> int:
            assert asyncio.get_running_loop() is app._host.loop
            await asyncio.sleep(0)
            return 7

        number = ctx.wait(ctx.step("elsewhere", elsewhere))
        first = ctx.wait(ctx.elicit("a", str)).content
        both = ctx.wait(ctx.ask_all([Question.elicit("b", str), Question.elicit("c", str)]))
        return f"{number} {first} {[answer.content for answer in both]}"

    user = User()
    assert await called(app, revision, user) == "7 a ['b', 'c']"
    assert user.asked[0] == "a"
    assert sorted(user.asked) == ["a", "b", "c"]
    [(handler, step)] = threads
    assert handler == step
    assert not failures


async def gathered(ctx: Context) -> list[Any]:
    return [answer.content for answer in await asyncio.gather(ctx.elicit("a", str), ctx.elicit("b", str))]


async def in_tasks(ctx: Context) -> list[Any]:
    tasks = [asyncio.create_task(ctx.elicit(message, str)) for message in ("a", "b")]
    return [(await task).content for task in tasks]


async def in_a_group(ctx: Context) -> list[Any]:
    async with asyncio.TaskGroup() as group:  # type: ignore[attr-defined, unused-ignore]
        tasks = [group.create_task(ctx.elicit(message, str)) for message in ("a", "b")]
    return [task.result().content for task in tasks]


async def all_at_once(ctx: Context) -> list[Any]:
    return [answer.content for answer in await ctx.ask_all([Question.elicit("a", str), Question.elicit("b", str)])]


WAYS = [gathered, in_tasks, all_at_once]
if sys.version_info >= (3, 11):
    WAYS.append(in_a_group)


@pytest.mark.parametrize("ask", WAYS)
async def test_two_questions_at_once_are_one_round(
    app: Server, revision: str, ask: Any, failures: list[Exception]
) -> None:
    runs: list[int] = []

    @app.tool
    async def tool(ctx: Context) -> str:
        runs.append(1)
        return " ".join(await ask(ctx))

    user = User()
    assert await called(app, revision, user) == "a b"
    assert sorted(user.asked) == ["a", "b"]
    assert len(runs) == (2 if revision == MODERN else 1)
    assert not failures


async def test_no_run_that_ends_at_a_question_has_failed(app: Server, revision: str, failures: list[Exception]) -> None:
    ends: list[str] = []

    @app.tool
    async def passing(ctx: Context) -> str:
        try:
            return str((await ctx.elicit("?", str)).content)
        except Exception:  # noqa: BLE001 - it must not be caught
            return "caught"

    @app.tool
    async def swallowing(ctx: Context) -> str:
        try:
            return str((await ctx.elicit("?", str)).content)
        except BaseException as error:  # noqa: BLE001 - whoever does that
            ends.append(str(error))
            return "swallowed"

    @app.tool
    async def wrapping(ctx: Context) -> str:
        try:
            return str((await ctx.elicit("?", str)).content)
        except InputRequired as error:
            raise ValueError("wrapped") from error

    @app.tool
    def plain(ctx: Context) -> str:
        try:
            return str(ctx.wait(ctx.elicit("?", str)).content)
        except InputRequired:
            raise ToolError("told to nobody") from None

    for name in ("passing", "swallowing", "wrapping", "plain"):
        assert await called(app, revision, User(), name) == "?"
    assert ends == (["the client is asked, and the handler runs again with its answer"] if revision == MODERN else [])
    assert not failures


async def test_a_failure_after_the_answer_is_reported(app: Server, revision: str, failures: list[Exception]) -> None:
    @app.tool
    async def tool(ctx: Context) -> str:
        await ctx.elicit("?")
        raise ValueError("after")

    async with testing.connect(app, revision=revision, elicitation=User(lambda _: {})) as client:
        assert (await client.call_tool("tool")).text == 'tool "tool" failed: ValueError'
    assert [str(error) for error in failures] == ["after"]


async def test_middleware_asks_too(app: Server, revision: str) -> None:
    @app.middleware
    async def sure(request: Request, context: Context, call_next: Next) -> dict[str, Any]:
        if request.method == "tools/call" and not (await context.elicit("sure?", bool)).content:
            raise RpcError(-1, "not sure")
        return await call_next(request, context)

    @app.tool
    async def tool(ctx: Context) -> str:
        return str((await ctx.elicit("name?", str)).content)

    user = User(lambda message: {"value": True if message == "sure?" else "Ada"})
    assert await called(app, revision, user) == "Ada"
    assert user.asked == ["sure?", "name?"]
    with pytest.raises(RpcError, match="not sure"):
        await called(app, revision, User(lambda _: Elicited("decline")))


async def test_prompts_and_resources_ask(app: Server, revision: str) -> None:
    @app.prompt
    async def letter(ctx: Context) -> str:
        return f"a letter to {(await ctx.elicit('to?', str)).content}"

    @app.resource("memo://x")
    async def memo(ctx: Context) -> str | InputRequired:
        if not ctx.input_responses:
            return InputRequired({"which": Question.elicit("which?", int)})
        return f"memo {ctx.input_responses['which']['content']['value']}"

    user = User(lambda message: {"value": "Bob" if message == "to?" else 7})
    async with testing.connect(app, revision=revision, elicitation=user) as client:
        assert (await client.get_prompt("letter")).text == "a letter to Bob"
        assert (await client.read_resource("memo://x")).text == "memo 7"


async def test_who_cannot_be_asked(app: Server, revision: str) -> None:
    seen: list[Exception] = []

    @app.tool
    async def tool(ctx: Context) -> str:
        try:
            return str(await ctx.elicit("?"))
        except Error as error:
            seen.append(error)
            raise

    @app.tool
    async def by_hand() -> str:
        raise InputRequired({"?": Question.elicit("?")})

    for name in ("tool", "by_hand"):
        async with testing.connect(app, revision=revision) as client:
            if revision == MODERN:
                with pytest.raises(RpcError, match="elicitation") as caught:
                    await client.call_tool(name)
                assert caught.value.code == -32021
                assert caught.value.data["requiredCapabilities"].keys() == {"elicitation"}
            else:
                result = await client.call_tool(name)
                assert result.is_error
                assert '"elicitation"' in result.text
    assert isinstance(seen[0], UnsupportedError)


# -- steps


@dataclass
class Order:
    number: int
    name: str


class Item(TypedDict):
    name: str


async def test_the_result_of_a_step(app: Server, revision: str) -> None:
    seen: list[Any] = []

    @app.tool
    async def tool(ctx: Context) -> str:
        one = await ctx.step("plain", lambda: Order(1, "x"))
        two = await ctx.step("typed", lambda: Order(2, "y"), type=Order)
        three = await ctx.step("other", lambda: {"name": "z"}, type=Item)
        none = await ctx.step("none", lambda: None)
        await ctx.elicit("?")
        seen.append((one, two, three, none))
        return "done"

    assert await called(app, revision, User(lambda _: {})) == "done"
    assert seen == [({"number": 1, "name": "x"}, Order(2, "y"), {"name": "z"}, None)]


async def test_a_step_that_fails_is_not_done(app: Server, revision: str) -> None:
    calls: list[int] = []

    async def fails_once() -> int:
        await asyncio.sleep(0)
        calls.append(1)
        if len(calls) == 1:
            raise ConnectionError("the first time")
        return len(calls)

    @app.tool
    async def tool(ctx: Context) -> str:
        try:
            number = await ctx.step("fails", fails_once)
        except ConnectionError:
            number = 0
        await ctx.elicit("?")
        return str(number)

    assert await called(app, revision, User(lambda _: {})) == ("2" if revision == MODERN else "0")


@pytest.mark.parametrize("swallows", [False, True])
async def test_a_step_that_is_at_work_at_a_question_is_done_once(
    app: Server, revision: str, swallows: bool, failures: list[Exception]
) -> None:
    begun: list[str] = []

    async def both(ctx: Context) -> str:
        asked = asyncio.Event()

        async def slowly() -> str:
            begun.append("x")
            await asked.wait()
            for _ in range(20):
                await asyncio.sleep(0.001)
            return "stepped"

        async def asks() -> Any:
            try:
                return (await ctx.elicit("?", str)).content
            finally:
                asked.set()

        step, answer = await asyncio.gather(ctx.step("slow", slowly), asks())
        return f"{step} {answer}"

    @app.tool
    async def tool(ctx: Context) -> str:
        try:
            return await both(ctx)
        except InputRequired:
            if swallows:
                return "swallowed"
            raise

    @app.tool
    def plain(ctx: Context) -> str:
        try:
            return ctx.wait(both(ctx))
        except InputRequired:
            if swallows:
                return "swallowed"
            raise

    for name in ("tool", "plain"):
        assert await called(app, revision, User(), name) == "stepped ?"
        assert begun == ["x"]
        begun.clear()
    assert not app._host.steps
    assert not failures


async def test_a_step_may_ask(app: Server, revision: str) -> None:
    @app.tool
    async def tool(ctx: Context) -> str:
        async def name() -> str:
            return str((await ctx.elicit("name?", str)).content)

        return await ctx.step("name", name) + str((await ctx.elicit("more?", str)).content)

    user = User()
    assert await called(app, revision, user) == "name?more?"
    assert user.asked == ["name?", "more?"]


async def test_mistakes_with_steps(app: Server, revision: str, failures: list[Exception]) -> None:
    @app.tool
    async def twice(ctx: Context) -> None:
        await ctx.step("x", lambda: 1)
        await ctx.step("x", lambda: 2)

    @app.tool
    async def no_json(ctx: Context) -> None:
        await ctx.step("x", object)

    @app.tool
    async def another_type(ctx: Context) -> None:
        await ctx.step("x", lambda: "seven", type=int)

    @app.tool
    async def no_function(ctx: Context) -> None:
        await ctx.step("x", 7)  # type: ignore[call-overload]

    @app.tool
    def forgotten(ctx: Context) -> None:
        with pytest.raises(TypeError):
            ctx.wait(7)  # type: ignore[arg-type]
        ctx.wait(ctx.step("x", no_json))  # type: ignore[arg-type]

    expected = {
        "twice": 'step "x": there are two of this name',
        "no_json": "its result is no JSON",
        "another_type": "its result is no <class 'int'>",
        "no_function": "expected a function",
        "forgotten": "missing 1 required positional argument",
    }
    async with testing.connect(app, revision=revision) as client:
        for name, message in expected.items():
            assert (await client.call_tool(name)).is_error
            assert message in str(failures.pop()), name
            assert not failures
