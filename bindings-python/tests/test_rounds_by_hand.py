"""Several questions as values, rounds that a handler keeps itself, and the state between two of them."""

from __future__ import annotations

import asyncio
import json
import math
import sys
from typing import Any

import pytest

from tricorn import (
    Context,
    InputRequired,
    ListRootsResult,
    MisuseError,
    Next,
    Question,
    Request,
    RpcError,
    Server,
    testing,
)

from .conftest import MODERN, REVISIONS, User, called
from .test_asgi import Exchange

pytestmark = [
    pytest.mark.usefixtures("quiet"),
    pytest.mark.filterwarnings("ignore:.*MCP .* deprecates:DeprecationWarning"),
]


# -- several questions as values


async def test_answers_are_those_of_the_single_calls(app: Server, revision: str) -> None:
    seen: list[Any] = []

    @app.tool
    async def tool(ctx: Context) -> str:
        questions = (
            Question.elicit("name?", str),
            Question.list_roots(),
            Question.sample("hello", 10, system_prompt="s", temperature=None),
        )
        name, roots, said = await ctx.ask_all(questions, timeout=60)
        assert isinstance(roots, ListRootsResult)
        seen.append(await ctx.ask_all([]))
        return f"{name.content} {roots[0].path} {said.text}"

    def model(params: dict[str, Any]) -> str:
        assert params.keys() - {"_meta"} == {"messages", "maxTokens", "systemPrompt"}
        return "hi"

    assert await called(app, revision, User(), sampling=model, roots=["/x"]) == "name? /x hi"
    assert seen == [[]]


async def test_a_page_among_them(app: Server) -> None:
    @app.tool
    async def tool(ctx: Context) -> str:
        answers = await ctx.ask_all([Question.elicit_url("sign in", "https://example.com/in", "1")])
        return answers[0].action

    for revision in REVISIONS[1:]:
        async with testing.connect(app, revision=revision, elicitation_url=lambda: True) as client:
            assert (await client.call_tool("tool")).text == "accept"


async def test_one_of_several_is_no_json(app: Server, revision: str) -> None:
    good = Question.elicit("a", str)

    def bad(value: object) -> Question[Any]:
        return Question("elicitation/create", {"message": "b", "requestedSchema": {"x": [value]}}, lambda _: None)

    @app.tool
    async def tool(ctx: Context) -> str:
        for value, why in ((object(), "object cannot be written"), (math.nan, "expected a finite number")):
            for several in ([good, bad(value)], [bad(value), good]):
                with pytest.raises(MisuseError, match=rf"elicitation/create: requestedSchema\.x\[0\]: {why}"):
                    await ctx.ask_all(several)
        answers = await ctx.ask_all([good, Question.elicit("c", str)], meta={"com.example/x": None})
        return " ".join(answer.content or "" for answer in answers)

    user = User()
    assert await called(app, revision, user) == "a c"
    assert user.asked == ["a", "c"]


async def test_one_of_several_fails(app: Server, revision: str) -> None:
    released = asyncio.Event()

    @app.tool
    async def tool(ctx: Context) -> str:
        with pytest.raises(MisuseError, match="expected a Question"):
            await ctx.ask_all(["name?"])  # type: ignore[list-item]
        with pytest.raises(MisuseError, match='unknown option "temprature", did you mean "temperature"'):
            Question.sample("?", 1, temprature=2)  # type: ignore[call-arg]
        await ctx.ask_all([Question.list_roots(), Question.elicit("name?", str)])
        return "?"

    async def never(message: str) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            released.set()

    async def refuse() -> list[str]:
        raise RpcError(-1, "no roots for you")

    async with testing.connect(app, revision=revision, elicitation=never, roots=refuse) as client:
        if revision == "2026-07-28":  # its own function failed, before anything was sent
            with pytest.raises(RpcError, match="no roots for you"):
                await client.call_tool("tool")
        else:
            result = await client.call_tool("tool")
            assert result.is_error
            assert result.text == "the question was answered with error -1: no roots for you"
        await asyncio.wait_for(released.wait(), 10)


# -- by hand


async def test_rounds_may_be_kept_by_hand(app: Server, revision: str) -> None:
    seen: list[Any] = []

    def ask(ctx: Context) -> InputRequired | None:
        seen.append((ctx.input_responses, ctx.request_state))
        round_ = ctx.request_state["round"] if ctx.request_state else 0
        if round_ < 2:
            return InputRequired({"who": Question.elicit(f"name {round_}?", str)}, state={"round": round_ + 1})
        return None

    @app.tool
    async def raising(ctx: Context) -> str:
        if required := ask(ctx):
            raise required
        return str(ctx.input_responses["who"]["content"]["value"])

    @app.tool
    def returning(ctx: Context) -> str | InputRequired:
        return ask(ctx) or str(ctx.input_responses["who"]["content"]["value"])

    @app.tool
    async def from_a_task(ctx: Context) -> str:
        async def inner() -> str:
            if required := ask(ctx):
                raise required
            return str(ctx.input_responses["who"]["content"]["value"])

        if sys.version_info < (3, 11):
            return await inner()
        async with asyncio.TaskGroup() as group:
            task = group.create_task(inner())
        return task.result()

    for name in ("raising", "returning", "from_a_task"):
        user = User()
        assert await called(app, revision, user, name) == "name 1?"
        assert user.asked == ["name 0?", "name 1?"]
        first, second, third = seen
        assert first == ({}, None)
        assert second == ({"who": {"action": "accept", "content": {"value": "name 0?"}}}, {"round": 1})
        assert third == ({"who": {"action": "accept", "content": {"value": "name 1?"}}}, {"round": 2})
        seen.clear()


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", *REVISIONS])
async def test_a_request_comes_back_with_its_state_alone(app: Server, revision: str) -> None:
    @app.tool
    async def tool(ctx: Context) -> str:
        if ctx.request_state != 1:
            raise InputRequired(state=1)
        return "done"

    async with testing.connect(app, revision=revision) as client:
        assert (await client.call_tool("tool")).text == "done"


async def test_middleware_keeps_rounds(app: Server) -> None:
    @app.middleware
    async def sure(request: Request, context: Context, call_next: Next) -> dict[str, Any]:
        if request.method == "tools/call" and "sure" not in context.input_responses:
            raise InputRequired({"sure": Question.elicit("sure?")})
        return await call_next(request, context)

    @app.tool
    async def tool() -> str:
        return "done"

    assert await called(app, MODERN, User(lambda _: {})) == "done"


async def test_what_returns_it_has_the_schema_of_its_answer(app: Server) -> None:
    @app.tool
    async def number(ctx: Context) -> int | InputRequired:
        return 7 if ctx.request_state else InputRequired(state=True)

    @app.tool
    async def text() -> str | InputRequired | None: ...

    @app.tool
    async def never() -> InputRequired: ...

    async with testing.connect(app) as client:
        schemas = {tool.name: tool.raw.get("outputSchema") for tool in await client.list_tools()}
        assert schemas == {"number": {"type": "integer"}, "text": None, "never": None}
        assert (await client.call_tool("number")).structured == 7


async def test_mistakes_by_hand(app: Server, revision: str, failures: list[Exception]) -> None:
    @app.tool
    async def nothing() -> None:
        raise InputRequired

    @app.tool
    async def no_json() -> None:
        raise InputRequired(state=object())

    @app.tool
    async def no_question() -> None:
        raise InputRequired({"x": Question("tools/call", None, lambda _: None)})

    async with testing.connect(app, revision=revision) as client:
        with pytest.raises(RpcError, match="expected a question or a state"):
            await client.call_tool("nothing")
        with pytest.raises(RpcError, match="is no question"):
            await client.call_tool("no_question")
        assert not failures
        assert (await client.call_tool("no_json")).text == 'tool "no_json" failed: TypeError'
        assert len(failures) == 1


async def test_the_call_is_over(app: Server) -> None:
    kept: list[Context] = []

    @app.tool
    async def tool(ctx: Context) -> None:
        kept.append(ctx)

    await called(app, MODERN)
    for read in (lambda ctx: ctx.input_responses, lambda ctx: ctx.request_state):
        with pytest.raises(MisuseError, match="the call is over"):
            read(kept[0])


def test_it_is_no_exception() -> None:
    assert not issubclass(InputRequired, Exception)
    assert str(InputRequired({"a": Question.list_roots()})) == "the client is asked: a"
    assert repr(Question.list_roots()) == "Question('roots/list', None)"
    own = InputRequired(state=1)
    assert InputRequired.of(own) is own
    assert InputRequired.of(ValueError()) is None


# -- the state between two rounds


def test_options() -> None:
    for options, message in (
        ({"request_state_keys": ["short"]}, r'"request_state_keys": key 0: expected at least 32 bytes'),
        ({"request_state_keys": "x" * 32}, "request_state_keys"),
        ({"request_state_keys": []}, '"request_state_keys": expected secrets .*, got none; without the option'),
        ({"request_state_keys": ()}, '"request_state_keys": expected secrets .*, got none; without the option'),
        ({"request_state_ttl": -1}, "request_state_ttl"),
        ({"max_request_state_bytes": 0}, "max_request_state_bytes"),
    ):
        with pytest.raises(MisuseError, match=message) as caught:
            Server("x", **options)  # type: ignore[arg-type]
        assert "short" not in str(caught.value).replace("shortened", "")
    Server("x", request_state_keys=["x" * 32, "y" * 40], request_state_ttl=1.5, max_request_state_bytes=100)


async def test_a_state_that_is_too_long() -> None:
    app = Server("x", max_request_state_bytes=500)

    @app.tool
    async def tool(ctx: Context, size: int) -> None:
        await ctx.step("large", lambda: "x" * size)
        await ctx.elicit("?")

    async with testing.connect(app, elicitation=User(lambda _: {})) as client:
        await client.call_tool("tool", {"size": 10})
        with pytest.raises(RpcError, match="max_request_state_bytes"):
            await client.call_tool("tool", {"size": 500})


async def post(app: Server, params: dict[str, Any]) -> Any:
    """One call of the tool in the revision that has rounds."""
    body: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "tool", **params}}
    body["params"]["_meta"] = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    }
    headers = {"mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": "tool"}
    exchange = Exchange(app.asgi(), "POST", headers, json.dumps(body).encode())
    await exchange.start()
    return json.loads(await exchange.rest())


async def test_servers_with_one_secret_answer_for_each_other() -> None:
    def server(*keys: str) -> Server:
        app = Server("x", request_state_keys=keys) if keys else Server("x")

        @app.tool
        async def tool(ctx: Context) -> str:
            first = await ctx.elicit("first?", str)
            return f"{first.content} {(await ctx.elicit('second?', str)).content}"

        return app

    def again(answer: Any, value: str) -> dict[str, Any]:
        result = answer["result"]
        assert result["resultType"] == "input_required"
        content = {"action": "accept", "content": {"value": value}}
        responses = dict.fromkeys(result["inputRequests"], content)
        return {"inputResponses": responses, "requestState": result["requestState"]}

    old, new = "o" * 32, "n" * 32
    second = await post(server(new, old), again(await post(server(old), {}), "a"))
    refused = await post(server(old), again(second, "b"))
    assert (refused["error"]["code"], "requestState" in refused["error"]["message"]) == (-32602, True)
    done = await post(server(new), again(second, "b"))
    assert done["result"]["content"][0]["text"] == "a b"
    refused = await post(server(), again(second, "b"))
    assert refused["error"]["code"] == -32602


async def test_wrong_answers_are_no_answers(app: Server) -> None:
    @app.tool
    async def tool(ctx: Context) -> str:
        match ctx.input_responses.get("who"):
            case {"action": "accept", "content": {"value": str(name)}}:
                return f"{name} {ctx.request_state}"
            case _:
                raise InputRequired({"who": Question.elicit("who?", str)}, state="kept")

    for wrong in ({}, {"who": 7}, {"who": {"action": "decline"}}, {"whom": {}}):
        answer = await post(app, {"inputResponses": wrong})
        assert answer["result"]["inputRequests"].keys() == {"who"}
    accepted = {"action": "accept", "content": {"value": "Ada"}}
    # Without its state, as a request that is not the next one.
    assert (await post(app, {"inputResponses": {"who": accepted}}))["result"]["content"][0]["text"] == "Ada None"
    given = {"inputResponses": {"who": accepted, "more": 1}, "requestState": answer["result"]["requestState"]}
    assert (await post(app, given))["result"]["content"][0]["text"] == "Ada kept"
