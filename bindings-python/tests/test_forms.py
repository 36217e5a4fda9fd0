"""Forms that a handler has the user fill in, and pages that it has the user visit."""

from __future__ import annotations

import asyncio
import datetime
import enum
import threading
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pydantic
import pytest

from tricorn import (
    Context,
    Elicited,
    Error,
    Form,
    MisuseError,
    PeerMisbehavedError,
    RequestContext,
    RpcError,
    Server,
    UnsupportedError,
    UrlElicitation,
    UrlElicitationRequiredError,
    testing,
)

from .conftest import LEGACY, Asking


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Person:
    """Somebody."""

    name: Annotated[str, msgspec.Meta(description="In full", min_length=1)]
    age: int
    color: Color
    sizes: list[Literal["s", "m"]]
    born: datetime.date | None = None
    member: bool = True


class Nested(TypedDict):
    home: Typed


class Typed(TypedDict):
    score: float


class Model(pydantic.BaseModel):
    mail: str = pydantic.Field(json_schema_extra={"format": "email"})
    tone: Literal["dry", "warm"] = "dry"
    color: Color = Color.BLUE
    note: str | None = None


def test_forms_of_types() -> None:
    assert Form(Person).schema == {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "In full", "minLength": 1},
            "age": {"type": "integer"},
            "color": {"type": "string", "enum": ["red", "blue"], "title": "Color"},
            "sizes": {"type": "array", "items": {"type": "string", "enum": ["s", "m"]}},
            "born": {"type": "string", "format": "date"},
            "member": {"type": "boolean", "default": True},
        },
        "required": ["name", "age", "color", "sizes"],
    }
    assert Form(Model).schema == {
        "type": "object",
        "properties": {
            "mail": {"type": "string", "title": "Mail", "format": "email"},
            "tone": {"type": "string", "title": "Tone", "enum": ["dry", "warm"], "default": "dry"},
            "color": {"type": "string", "title": "Color", "enum": ["red", "blue"], "default": "blue"},
            "note": {"type": "string", "title": "Note"},
        },
        "required": ["mail"],
    }
    assert Form(int).schema == {"type": "object", "properties": {"value": {"type": "integer"}}, "required": ["value"]}
    assert Form(Literal["b", "a"]).schema["properties"]["value"] == {"type": "string", "enum": ["b", "a"]}
    assert Form(None).schema == {"type": "object", "properties": {}}
    for nested in (list[int], dict[str, int], Literal[1, 2], int | str, TypedDict("Nested", {"x": Person})):
        with pytest.raises(MisuseError, match="flat fields only"):
            Form(nested)
    with pytest.raises(MisuseError, match="no JSON Schema"):
        Form(type("Opaque", (), {}))


@pytest.mark.parametrize(
    ("schema", "given", "content"),
    [
        (
            Person,
            {"name": "Ada", "age": 36.0, "color": "red", "sizes": ["s"], "born": "1815-12-10"},
            Person("Ada", 36, Color.RED, ["s"], datetime.date(1815, 12, 10)),
        ),
        (Typed, {"score": 1}, {"score": 1.0}),
        (Model, {"mail": "a@b.c"}, Model(mail="a@b.c")),
        (int, {"value": 3}, 3),
        ({"type": "object", "properties": {"x": {"type": "string"}}}, {"x": "y"}, {"x": "y"}),
        (None, {}, None),
    ],
)
async def test_forms_are_filled_in(asking: Asking, schema: Any, given: Any, content: Any) -> None:
    seen: list[Any] = []

    async def fill_in(message: str, schema: dict[str, Any]) -> Any:
        seen.extend((message, schema))
        return given

    answer = await asking(lambda ctx: ctx.elicit("Who?", schema), elicitation=fill_in)
    assert answer == Elicited("accept", content)
    assert answer.accepted
    assert seen == ["Who?", Form(schema).schema]


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        (None, Elicited("decline")),
        (False, Elicited("decline")),
        ("decline", Elicited("decline")),
        ("cancel", Elicited("cancel")),
        (Elicited("cancel"), Elicited("cancel")),
        (Elicited("accept", Typed(score=2)), Elicited("accept", {"score": 2.0})),
        ({"action": "accept", "content": {"score": 3}}, Elicited("accept", {"score": 3.0})),
        ({"action": "decline"}, Elicited("decline")),
    ],
)
async def test_what_a_user_may_do(asking: Asking, given: Any, answer: Any) -> None:
    def choose(message: str) -> Any:
        assert threading.current_thread() is not threading.main_thread()
        return given

    assert await asking(lambda ctx: ctx.elicit("Score?", Typed), elicitation=choose) == answer


class Ordered(TypedDict, total=False):
    action: Literal["accept", "decline"]
    why: str


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        # A refusal is one, however the server calls its fields.
        ({"action": "decline"}, Elicited("decline")),
        ({"action": "decline", "why": "x"}, Elicited("decline")),
        ({"action": "decline", "content": None}, Elicited("decline")),
        ({"action": "accept"}, Elicited("accept", {"action": "accept"})),
        ({"action": "accept", "content": {"action": "decline"}}, Elicited("accept", {"action": "decline"})),
        (Elicited("accept", {"action": "accept"}), Elicited("accept", {"action": "accept"})),
        (Elicited("decline"), Elicited("decline")),
        ("decline", Elicited("decline")),
        (None, Elicited("decline")),
    ],
)
async def test_a_form_with_a_field_called_action(asking: Asking, given: Any, answer: Any) -> None:
    assert await asking(lambda ctx: ctx.elicit("What?", Ordered), elicitation=lambda: given) == answer


async def test_an_object_as_the_answer(asking: Asking) -> None:
    person = Person("Ada", 36, Color.RED, [])
    assert (await asking(lambda ctx: ctx.elicit("Who?", Person), elicitation=lambda: person)).content == person
    model = Model(mail="a@b.c", tone="warm")
    assert (await asking(lambda ctx: ctx.elicit("Who?", Model), elicitation=lambda: model)).content == model


async def test_answers_that_do_not_fit(asking: Asking) -> None:
    for schema in (Typed, Model, int):
        error = await asking(lambda ctx, schema=schema: ctx.elicit("?", schema), elicitation=lambda: {"score": "many"})
        assert isinstance(error, (RpcError, PeerMisbehavedError)), error
        with pytest.raises(PeerMisbehavedError, match='does not fit the form: answer "'):
            Form(schema).answer(b'{"action":"accept","content":{"score":"many"}}')
    with pytest.raises(PeerMisbehavedError, match='action "perhaps"'):
        Form(None).answer(b'{"action":"perhaps"}')


async def test_an_answer_that_is_no_object(asking: Asking, caplog: pytest.LogCaptureFixture) -> None:
    async def seven() -> Any:
        return Elicited("accept", 7)

    error = await asking(lambda ctx: ctx.elicit("?", int), elicitation=seven)
    assert isinstance(error, RpcError)
    assert "expected an object of answers, got int" in caplog.text


async def test_a_form_made_before_anybody_is_asked(asking: Asking) -> None:
    form = Form(Typed)
    assert Form(form.schema).schema == form.schema
    answer = await asking(lambda ctx: ctx.elicit("Score?", form), elicitation=lambda: {"score": 3})
    assert answer == Elicited("accept", {"score": 3.0})


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (Nested, "'home'"),
        ({"type": "object", "properties": {"home": {"type": "object"}}}, 'property "home"'),
        ({"type": "array"}, 'expected "type": "object"'),
    ],
)
def test_a_form_that_cannot_be_shown_is_refused_where_it_is_made(schema: Any, message: str) -> None:
    with pytest.raises(MisuseError, match=message):
        Form(schema)


async def test_forms_that_are_none(asking: Asking) -> None:
    error = await asking(lambda ctx: ctx.elicit("?", {"type": "array"}), elicitation=lambda: None)
    assert isinstance(error, MisuseError)


async def test_pages_to_visit(asking: Asking) -> None:
    heard: list[Any] = []

    async def visit(message: str, url: str, elicitation_id: str, ctx: RequestContext) -> bool:
        heard.append((message, url, elicitation_id, ctx.request.method))
        return True

    async def question(ctx: Context) -> Any:
        answer = await ctx.elicit_url("Sign in", "https://example.com/in", "e1")
        assert ctx.elicitation_complete("e1")
        return answer

    done = asyncio.Event()

    def told(method: str, params: dict[str, Any]) -> None:
        heard.append((method, params))
        done.set()

    assert (await asking(question, elicitation_url=visit, on_notification=told)).accepted
    await asyncio.wait_for(done.wait(), 10)
    assert heard == [
        ("Sign in", "https://example.com/in", "e1", "elicitation/create"),
        ("notifications/elicitation/complete", {"elicitationId": "e1"}),
    ]
    answer = await asking(question, elicitation_url=lambda: "decline", elicitation=lambda: None)
    assert answer == Elicited("decline")
    # One mode does not stand for the other.
    error = await asking(question, elicitation=lambda: True)
    assert isinstance(error, UnsupportedError)
    assert '"elicitation.url"' in str(error)
    error = await asking(lambda ctx: ctx.elicit("?"), elicitation_url=lambda: True)
    assert isinstance(error, (RpcError, UnsupportedError))


async def test_pages_that_have_to_be_visited_first(app: Server) -> None:
    page = UrlElicitation("Sign in", "https://example.com/in", "e1")

    @app.tool
    async def tool() -> None:
        raise UrlElicitationRequiredError(page)

    async with testing.connect(app, revision=LEGACY) as client:
        with pytest.raises(RpcError, match="visit a page") as other:  # it declares no elicitation.url
            await client.call_tool("tool")
        assert other.value.code == -32603
    async with testing.connect(app, revision=LEGACY, elicitation_url=lambda: True) as client:
        with pytest.raises(UrlElicitationRequiredError) as caught:
            await client.call_tool("tool")
        assert (caught.value.code, caught.value.elicitations) == (-32042, [page])
        assert caught.value.data == {
            "elicitations": [
                {"mode": "url", "message": "Sign in", "url": "https://example.com/in", "elicitationId": "e1"}
            ]
        }


def test_a_user_is_sent_to_web_pages_only() -> None:
    with pytest.raises(MisuseError, match="at least one page"):
        UrlElicitationRequiredError()
    page = UrlElicitation("Sign in", "https://example.com/in", "e1")
    for url in ("javascript:alert(1)", "ftp://example.com/", "example.com", ""):
        with pytest.raises(MisuseError, match=r'elicitations\[1\]: "url": expected an http or https URL'):
            UrlElicitationRequiredError(page, UrlElicitation("m", url, "2"))


Size = Literal["S", "M", "L", "XL"]


class Weight(enum.Enum):
    LIGHT = "light"
    HEAVY = "heavy"
    AVERAGE = "average"


class Order(TypedDict):
    size: Size
    weight: Weight
    extras: list[Literal["z", "a", "m"]]
    on: datetime.date
    at: datetime.datetime | None
    again: Literal["z", "a"] | None


def test_choices_keep_their_order_and_times_their_format() -> None:
    fields = Form(Order).schema["properties"]
    assert fields["size"]["enum"] == ["S", "M", "L", "XL"]
    assert fields["weight"]["enum"] == ["light", "heavy", "average"]
    assert fields["extras"]["items"]["enum"] == ["z", "a", "m"]
    assert fields["again"]["enum"] == ["z", "a"]
    assert fields["on"] == {"type": "string", "format": "date"}
    assert fields["at"] == {"type": "string", "format": "date-time"}
    assert Form(Size).schema["properties"]["value"]["enum"] == ["S", "M", "L", "XL"]
    assert Form(datetime.datetime).schema["properties"]["value"]["format"] == "date-time"


async def test_times_in_a_form(asking: Asking) -> None:
    at = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)
    assert (
        await asking(lambda ctx: ctx.elicit("?", datetime.datetime), elicitation=lambda: {"value": at})
    ).content == at
    day = await asking(lambda ctx: ctx.elicit("?", datetime.date), elicitation=lambda: {"value": "2026-01-02"})
    assert day.content == datetime.date(2026, 1, 2)
    for schema in (datetime.datetime, datetime.date):
        error = await asking(lambda ctx, schema=schema: ctx.elicit("?", schema), elicitation=lambda: {"value": "soon"})
        assert isinstance(error, Error), error
        assert "value" in str(error) or "encoded" in str(error)
