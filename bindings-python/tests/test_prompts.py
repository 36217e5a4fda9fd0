"""Prompts and completion, seen by a client in memory, in both eras."""

from __future__ import annotations

import datetime
import enum
from typing import Annotated, Any, Literal

import msgspec
import pytest

from tricorn import (
    Completion,
    Context,
    CreateMessageResult,
    GetPromptResult,
    Icon,
    Image,
    Message,
    MisuseError,
    Next,
    Prompt,
    PromptArgument,
    Request,
    RpcError,
    Server,
    Text,
    assistant,
    testing,
    types,
    user,
)

ERAS = pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])


async def get(app: Server, name: str, revision: str = "2025-11-25", /, **arguments: Any) -> GetPromptResult:
    async with testing.connect(app, revision=revision) as client:
        return await client.get_prompt(name, arguments)


@ERAS
@pytest.mark.parametrize(
    ("value", "messages"),
    [
        ("text", [user("text")]),
        (assistant("text"), [assistant("text")]),
        ([user("one"), assistant("two"), "three"], [user("one"), assistant("two"), user("three")]),
        (("one", Image(b"x")), [user("one"), user(Image(b"x"))]),
        (Text("x"), [user("x")]),
        ({"role": "assistant", "content": "x"}, [assistant("x")]),
        ({"type": "text", "text": "x"}, [user("x")]),
        (Message("assistant", {"type": "text", "text": "x"}), [assistant("x")]),
        (GetPromptResult([user("a"), "b"], description="other"), [user("a"), user("b")]),
        ({"messages": [{"role": "user", "content": {"type": "text", "text": "x"}}]}, [user("x")]),
        (user([Text("e"), "f"]), [user("e"), user("f")]),
        ([assistant(["e", Image(b"x")]), "g"], [assistant("e"), assistant(Image(b"x")), user("g")]),
        ({"role": "assistant", "content": ["e", "f"]}, [assistant("e"), assistant("f")]),
        (CreateMessageResult(["e", Text("f")]), [assistant("e"), assistant("f")]),  # type: ignore[list-item]
        (GetPromptResult(user(["e", "f"]), description="other"), [user("e"), user("f")]),
        (
            {"messages": [{"role": "user", "content": [{"type": "text", "text": "e"}, {"type": "text", "text": "f"}]}]},
            [user("e"), user("f")],
        ),
    ],
)
async def test_what_a_prompt_says(app: Server, value: Any, messages: list[Message], revision: str) -> None:
    @app.prompt
    async def prompt() -> Any:
        """What it is for."""
        return value

    result = await get(app, "prompt", revision)
    assert result.messages == messages
    assert result.description == ("other" if isinstance(value, GetPromptResult) else "What it is for.")
    assert result.text == "\n".join(message.text for message in messages if message.text)


@ERAS
async def test_arguments_are_typed(app: Server, revision: str) -> None:
    @app.prompt(title="Review", icons=[Icon("https://example.com/i.png")], meta={"com.example/x": 1})
    def review(
        code: str, lines: Annotated[int, msgspec.Meta(title="Lines", ge=1)], ctx: Context, strict: bool = False
    ) -> Any:
        """Review some code.

        Args:
            code: The program
        """
        return f"{code!r} {lines!r} {strict!r} {ctx.request.method}"

    async with testing.connect(app, revision=revision) as client:
        (listed,) = await client.list_prompts()
        assert (listed.name, listed.title, listed.description) == ("review", "Review", "Review some code.")
        assert listed.arguments == [
            PromptArgument("code", description="The program", required=True),
            PromptArgument("lines", title="Lines", required=True),
            PromptArgument("strict"),
        ]
        assert (listed.icons, listed.meta) == ([Icon("https://example.com/i.png")], {"com.example/x": 1})
        got = await client.get_prompt("review", {"code": "5", "lines": 7, "strict": True})
        assert got.text == "'5' 7 True prompts/get"
        assert (await client.get_prompt("review", {"code": "x", "lines": "1"})).text == "'x' 1 False prompts/get"
        for arguments, message in (
            ({"code": "x", "lines": "many"}, 'argument "lines": expected integer, got "many"'),
            ({"code": "x"}, 'argument "lines": missing'),
            ({"code": "x", "lines": "0"}, 'argument "lines": '),
            ({"code": "x", "lines": "1", "more": "?"}, 'argument "more": unknown'),
        ):
            with pytest.raises(RpcError) as caught:
                await client.get_prompt("review", arguments)
            assert caught.value.code == -32602
            assert caught.value.message.startswith(message)


@ERAS
async def test_errors_of_a_prompt(app: Server, revision: str, caplog: pytest.LogCaptureFixture) -> None:
    @app.prompt
    async def fail(kind: str) -> Any:
        if kind == "own":
            raise RpcError(4242, "custom")
        if kind == "value":
            return 7
        raise ValueError("secret detail")

    async with testing.connect(app, revision=revision) as client:
        for kind, code, message in (
            ("own", 4242, "custom"),
            ("value", -32603, 'prompt "fail" failed: TypeError'),
            ("other", -32603, 'prompt "fail" failed: ValueError'),
        ):
            with pytest.raises(RpcError) as caught:
                await client.get_prompt("fail", {"kind": kind})
            assert (caught.value.code, caught.value.message) == (code, message)
        with pytest.raises(RpcError, match="unknown prompt"):
            await client.get_prompt("missing")
    assert "secret detail" in caplog.text
    assert "expected text, a message or a content block, got int" in caplog.text


async def test_explicit_arguments(app: Server) -> None:
    @app.prompt(name="free", arguments=[{"name": "a", "required": True}])
    async def anything(**arguments: str) -> str:
        return repr(arguments)

    @app.prompt
    async def whole() -> types.GetPromptResult:
        return {"messages": [], "description": "said"}

    async with testing.connect(app) as client:
        assert (await client.list_prompts())[0].arguments == [PromptArgument("a", required=True)]
        assert (await client.get_prompt("free", {"a": "1"})).text == "{'a': '1'}"
        with pytest.raises(RpcError, match="missing"):
            await client.get_prompt("free")
        assert (await client.get_prompt("whole")).description == "said"


def test_mistakes_show_at_registration(app: Server) -> None:
    with pytest.raises(MisuseError, match="has no name"):
        app.add_prompt(lambda: "x")
    with pytest.raises(MisuseError, match='prompt: unknown option "nam", did you mean "name"'):
        app.prompt(nam="x")(lambda: "x")  # type: ignore[call-overload]
    with pytest.raises(MisuseError, match="no argument"):
        app.add_prompt(lambda: "x", name="x", complete={"a": []})
    app.add_prompt(lambda: "x", name="x")
    with pytest.raises(MisuseError, match="already registered"):
        app.add_prompt(lambda: "x", name="x")


# -- completion

CITIES = ["Paris", "park", "Lisbon"]


def after(value: str, arguments: dict[str, str]) -> list[str]:
    return [f"{arguments.get('language', '?')}:{value}"]


@ERAS
async def test_completion(app: Server, revision: str) -> None:
    async def slow(value: str, ctx: Context) -> Completion:
        return Completion([value, ctx.request.method], total=1000)

    @app.prompt(complete={"city": CITIES, "framework": after, "other": slow})
    async def plan(city: str, framework: str, other: str, tone: Literal["dry", "warm"], free: str) -> str:
        return ""

    @app.resource("x://{city}/{other}", complete={"city": lambda value: (city for city in CITIES if value in city)})
    async def place(city: str, other: str) -> str:
        return ""

    async with testing.connect(app, revision=revision) as client:
        assert await client.complete("plan", "city", "pa") == Completion(["Paris", "park"], 2, False)
        found = await client.complete("plan", "framework", "d", {"language": "python"})
        assert found.values == ["python:d"]
        (prompt,) = await client.list_prompts()
        assert await client.complete(prompt, "other", "v") == Completion(["v", "completion/complete"], 1000, True)
        assert (await client.complete("plan", "tone", "w")).values == ["warm"]
        assert (await client.complete("plan", "free", "")).values == []
        assert (await client.complete("x://{city}/{other}", "city", "ar")).values == ["Paris", "park"]
        (template,) = await client.list_resource_templates()
        assert (await client.complete(template, "other", "")).values == []
        assert (await client.complete({"type": "ref/prompt", "name": "plan"}, "city", "l")).values == ["Lisbon"]
        with pytest.raises(RpcError, match="no argument"):
            await client.complete("plan", "missing", "")
        with pytest.raises(RpcError, match="there is no prompt"):
            await client.complete("missing", "city", "")
        with pytest.raises(MisuseError, match="expected a prompt's name"):
            await client.complete(7, "city", "")  # type: ignore[arg-type]


@ERAS
async def test_who_completes_the_rest(app: Server, revision: str, caplog: pytest.LogCaptureFixture) -> None:
    @app.on_complete
    async def rest(ref: dict[str, Any], argument: str, value: str, arguments: dict[str, str], ctx: Context) -> Any:
        assert ctx.request.era in ("legacy", "modern")
        if value == "fail":
            raise ValueError("secret detail")
        if value == "many":
            return [str(n) for n in range(150)]
        return {"values": [ref["name"], argument, value, *arguments.values()], "hasMore": True}

    app.add_prompt(lambda a, b: "", name="p", complete={"a": ["x"]})
    async with testing.connect(app, revision=revision) as client:
        assert (await client.complete("p", "a", "")).values == ["x"]
        assert await client.complete("p", "b", "v", {"a": "1"}) == Completion(["p", "b", "v", "1"], None, True)
        many = await client.complete("p", "b", "many")
        assert (len(many.values), many.total, many.has_more) == (100, 150, True)
        with pytest.raises(RpcError, match=r"the completion failed: ValueError"):
            await client.complete("p", "b", "fail")
    assert "secret detail" in caplog.text


def test_messages() -> None:
    message = user(["one", Image(b"x"), {"type": "text", "text": "two"}])
    assert message.text == "one\ntwo"
    assert user("x") == Message("user", Text("x"))
    assert assistant("x").role == "assistant"
    assert Message("user", "x") == user("x")  # type: ignore[arg-type]
    assert Prompt({"name": "x"}) == Prompt({"name": "x"})
    assert repr(GetPromptResult("x")).startswith("GetPromptResult({'messages'")


class Color(enum.Enum):
    RED = "red"


async def test_arguments_are_text(app: Server) -> None:
    seen: list[Any] = []

    @app.middleware
    async def look(request: Request, context: Context, call_next: Next) -> Any:
        seen.append(request.params.get("arguments"))
        return await call_next(request, context)

    @app.prompt
    def prompt(day: datetime.date, color: Color, many: list[int], flag: bool, text: str, none: str = "-") -> str:
        return f"{day} {color} {many} {flag} {text} {none}"

    arguments = {"day": datetime.date(2020, 1, 2), "color": Color.RED, "many": [1, 2], "flag": True, "text": "t"}
    async with testing.connect(app) as client:
        result = await client.get_prompt("prompt", {**arguments, "none": None})
    assert result.text == "2020-01-02 Color.RED [1, 2] True t -"
    assert {"day": "2020-01-02", "color": "red", "many": "[1,2]", "flag": "true", "text": "t"} in seen


async def test_a_prompt_that_says_nothing(app: Server) -> None:
    app.add_prompt(lambda: None, name="p")
    async with testing.connect(app) as client:
        with pytest.raises(RpcError, match="expected text, a message"):
            await client.get_prompt("p")


async def test_choices_are_completed_in_their_order(app: Server) -> None:
    @app.prompt
    def prompt(size: Literal["S", "M", "L"]) -> str:
        return size

    async with testing.connect(app) as client:
        assert (await client.complete("prompt", "size", "")).values == ["S", "M", "L"]


def test_wrong_completions(app: Server) -> None:
    for wrong in (5, "x", [5], {"a": "b"}):
        with pytest.raises(MisuseError, match=r"the completion of .a.: expected a function or a list of strings"):
            app.add_prompt(lambda a: "", name="p", complete={"a": wrong})  # type: ignore[dict-item]
