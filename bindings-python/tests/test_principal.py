"""Owners of requests, as a function of the server says: states between rounds, and tasks."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tricorn import Context, MisuseError, Next, Request, Server
from tricorn.middleware import Result

from .conftest import MODERN
from .test_asgi import post

pytestmark = pytest.mark.usefixtures("quiet")

META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {
        "elicitation": {},
        "extensions": {"io.modelcontextprotocol/tasks": {}},
    },
}


@pytest.fixture
def app() -> Server:
    app = Server("shop", tasks=True)

    @app.tool
    async def buy(ctx: Context) -> str:
        return f"bought {(await ctx.elicit('What?', str)).content}"

    @app.tool(task_support="required")
    async def bake() -> str:
        return "a cake"

    return app


class Shop:
    """The mounted server, and requests of users to it."""

    def __init__(self, app: Server) -> None:
        self.mounted = app.asgi()

    async def ask(self, user: str | None, method: str, name: str, params: dict[str, Any]) -> dict[str, Any]:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}
        headers = {"mcp_protocol_version": MODERN, "mcp_method": method, "mcp_name": name}
        _, _, answer = await post(self.mounted, message, **headers, **({} if user is None else {"x_user": user}))
        assert isinstance(answer, dict)
        return answer

    async def call(self, user: str | None, name: str, **params: Any) -> dict[str, Any]:
        return await self.ask(user, "tools/call", name, {"name": name, **params})

    async def task(self, user: str | None, id: str) -> dict[str, Any]:  # noqa: A002 - its name
        return await self.ask(user, "tasks/get", id, {"taskId": id})


def retry(answer: dict[str, Any]) -> dict[str, Any]:
    result = answer["result"]
    accepted = {"action": "accept", "content": {"value": "milk"}}
    return {"requestState": result["requestState"], "inputResponses": dict.fromkeys(result["inputRequests"], accepted)}


def header(ctx: Context) -> str | None:
    return ctx.request.headers.get("x-user")


async def later(ctx: Context) -> str | None:
    await asyncio.sleep(0)
    return header(ctx)


@pytest.mark.parametrize("function", [header, later])
async def test_states_and_tasks_are_their_users(app: Server, function: Any) -> None:
    assert app.principal(function) is function
    shop = Shop(app)
    again = retry(await shop.call("ada", "buy"))
    task = (await shop.call("ada", "bake"))["result"]["taskId"]
    for other in ("bob", None):
        assert (await shop.call(other, "buy", **again))["error"]["code"] == -32602
        assert (await shop.task(other, task))["error"]["code"] == -32602
    assert (await shop.call("ada", "buy", **again))["result"]["content"][0]["text"] == "bought milk"
    assert (await shop.task("ada", task))["result"]["taskId"] == task
    again = retry(await shop.call(None, "buy"))
    assert (await shop.call("ada", "buy", **again))["error"]["code"] == -32602
    assert "result" in await shop.call(None, "buy", **again)


async def test_what_middleware_found_out_is_there(app: Server) -> None:
    @app.principal
    def _(ctx: Context) -> str | None:
        user = ctx.values.get("user")
        return None if user is None else str(user)

    @app.middleware
    async def knows(request: Request, context: Context, call_next: Next) -> Result:
        context.values["user"] = f"user of {header(context)}"
        return await call_next(request, context)

    shop = Shop(app)
    again = retry(await shop.call("ada", "buy"))
    assert (await shop.call("bob", "buy", **again))["error"]["code"] == -32602
    assert "result" in await shop.call("ada", "buy", **again)


async def test_what_cannot_be_said_ends_the_request(app: Server, failures: list[Exception]) -> None:
    def broken(ctx: Context) -> str | None:
        raise LookupError(f"no user {header(ctx)}")

    async def asks(ctx: Context) -> str | None:
        return str((await ctx.elicit("who?", str)).content)

    def wrong(_: Context) -> Any:
        return 7

    shop = Shop(app)
    for function, why, heard in (
        (broken, "it failed", LookupError),
        (wrong, "it failed", TypeError),
        (asks, "it must not ask the client", None),
    ):
        app.principal(function)
        for answer in (await shop.call("ada", "buy"), await shop.call("ada", "bake")):
            assert answer["error"] == {"code": -32603, "message": f"the server's principal: {why}"}
        assert [type(error) for error in failures] == ([heard] * 2 if heard else [])
        failures.clear()

    @app.middleware
    async def curious(request: Request, context: Context, call_next: Next) -> Result:
        await context.elicit("who?", str)
        return await call_next(request, context)

    app.principal(header)
    assert (await shop.call("ada", "buy"))["error"]["code"] == -32603
    failures.clear()


def test_what_takes_no_context_is_refused(app: Server) -> None:
    given: Any
    for given in (lambda: None, lambda context, other: None, lambda *, context: None):
        with pytest.raises(MisuseError, match=r"principal: .* is called with \(context\)"):
            app.principal(given)
    given = lambda context, other=None: None  # noqa: E731
    assert app.principal(given) is given
    app.principal(print)


def test_what_is_no_function_is_refused(app: Server) -> None:
    given: Any
    for given in (7, None, str):
        with pytest.raises(MisuseError, match="principal"):
            app.principal(given)
