"""Unknown members of a peer's messages reach the program, and those that a program adds go out."""

from __future__ import annotations

from typing import Any

import pytest

from tricorn import (
    Client,
    Completion,
    Context,
    CreateMessageResult,
    Elicited,
    GetPromptResult,
    Page,
    ReadResourceResult,
    Root,
    Server,
    testing,
)

from .conftest import LEGACY, Asking

pytestmark = pytest.mark.filterwarnings("ignore:.*MCP .* deprecates:DeprecationWarning")


def meta(of: str) -> dict[str, Any]:
    return {"com.example/of": of}


async def test_a_handler_gets_all_of_what_its_client_answers(asking: Asking) -> None:
    async def everything(ctx: Context) -> Any:
        form = await ctx.elicit("?")
        page = await ctx.elicit_url("?", "https://example.com", "1")
        return form, page, await ctx.sample("?", 1), await ctx.list_roots()

    form, page, said, roots = await asking(
        everything,
        elicitation=lambda message, schema: Elicited("accept", {}, meta=meta("form")),
        elicitation_url=lambda message, url, elicitation_id: Elicited("decline", meta=meta("page")),
        sampling=lambda params: {"content": "hi", "model": "m", "_meta": meta("model"), "novelty": 2},
        roots=lambda: {"roots": ["/a"], "_meta": meta("roots"), "novelty": 3},
    )
    assert (form.accepted, form.meta, form.raw["action"]) == (True, meta("form"), "accept")
    assert (page.action, page.meta) == ("decline", meta("page"))
    assert isinstance(said, CreateMessageResult)
    assert (said.meta, said.raw["novelty"]) == (meta("model"), 2)
    assert roots == [Root("file:///a")]
    assert (roots.meta, roots.raw["novelty"]) == (meta("roots"), 3)


@pytest.fixture
def says() -> Server:
    app = Server("says", tasks=True)

    @app.resource("x://a")
    def a() -> ReadResourceResult:
        return ReadResourceResult("text", meta=meta("resource"))

    @app.prompt(complete={"x": lambda value: Completion(["one"], 7, meta=meta("completion"))})
    def p(x: str = "") -> GetPromptResult:
        return GetPromptResult("hi", meta=meta("prompt"))

    @app.tool(task_support="optional")
    def t() -> str:
        return "done"

    def page(cursor: str | None) -> Any:
        return {"resources": [{"uri": "x://b", "name": "b"}], "_meta": meta("list"), "novelty": 5}

    app.set_source("resource", list=page)
    return app


@pytest.mark.parametrize("revision", ["2024-11-05", LEGACY, "2026-07-28"])
async def test_what_a_server_says_besides_goes_out(says: Server, revision: str) -> None:
    async with testing.connect(says, revision=revision) as client:
        assert client.initialize_result["capabilities"].keys() >= {"resources", "tools"}
        own = await client.list_resources_page()
        _, cursor = own
        assert isinstance(own, Page)
        assert (own.next_cursor, own.meta.get("com.example/of")) == (cursor, None)
        page = await client.list_resources_page(cursor)
        assert ([entry.uri for entry in page.entries], page.next_cursor) == (["x://b"], None)
        assert (page.meta["com.example/of"], page.raw["novelty"]) == ("list", 5)
        assert (await client.read_resource("x://a")).meta["com.example/of"] == "resource"
        assert (await client.get_prompt("p")).meta["com.example/of"] == "prompt"
        found = await client.complete("p", "x", "")
        assert (found.values, found.total, found.has_more) == (["one"], 7, True)
        assert found.meta["com.example/of"] == "completion"
        assert found.raw["completion"]["total"] == 7


async def test_a_page_is_passed_on_with_all_that_it_says(says: Server) -> None:
    async with testing.connect(says, revision=LEGACY) as far:
        app = Server("proxy")
        app.set_source("resource", list=far.list_resources_page)
        async with testing.connect(app, revision=LEGACY) as client:
            first = await client.list_resources_page()
            second = await client.list_resources_page(first.next_cursor)
            assert second.meta == meta("list")
            assert second.raw["novelty"] == 5
            assert second.next_cursor is None


def test_the_synchronous_client_loses_nothing_either(says: Server) -> None:
    with Client(says, revision=LEGACY) as client:
        assert client.initialize_result["protocolVersion"] == LEGACY
        first = client.list_resources_page()
        assert client.list_resources_page(first.next_cursor).meta == meta("list")
        task = client.call_tool_task("t")
        assert task.created is not None
        assert task.created["task"]["taskId"] == task.id
        assert client.task(task.id).created is None
