"""Types: strict checkers find nothing, in the package and in programs that use it; the stub is the module."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PROGRAM = """
    from typing import Annotated

    from msgspec import Meta

    from collections.abc import AsyncGenerator
    from contextlib import asynccontextmanager
    from dataclasses import dataclass

    from tricorn import (
        CallToolResult, Change, Client, ClientAuth, ClientGroup, Completion, Context, Elicited, Image, InputRequired,
        ListRootsResult, Message, Next, PromptsListChanged, Question, Request, RequestContext, ResourcesListChanged,
        ExtensionNotification, HttpRequest, HttpResponse, HttpTransport, Principal, ResourceUpdated, Server,
        ServerAuth, TaskChanged, TokenKey, TokenStore,
        ToolsListChanged, assistant, connect, connect_many, user,
    )
    from tricorn.middleware import Result, rate_limit, timing
    from tricorn.testing import ASGITransport
    from tricorn.types import CreateMessageRequestParams

    app = Server("demo", page_size=10, title="Demo")


    @app.tool
    async def add(a: int, b: int = 1, *, ctx: Context) -> int:
        ctx.progress(1, 2, "half")
        return a + b


    @app.principal
    def user_of(ctx: Context) -> str | None:
        return ctx.request.headers.get("x-user")


    @app.principal  # type: ignore[type-var]
    def nobody(ctx: Context) -> int:
        return 7


    @app.tool(title="Picture", run_in_thread=False)
    def picture(n: Annotated[int, Meta(ge=0)]) -> Image:
        return Image(bytes(n))


    @dataclass
    class Person:
        name: str


    @app.resource("notes://{number}", mime_type="text/plain", complete={"number": ["1", "2"]})
    def note(number: int) -> str:
        return str(number)


    class Logins:
        def load(self, key: TokenKey) -> str | None:
            return None

        async def find(self, server: str) -> list[tuple[str, str]]:
            return []

        async def save(self, key: TokenKey, login: str) -> None:
            pass

        def remove(self, key: TokenKey) -> None:
            pass


    async def whose(token: str) -> Principal | None:
        return Principal("ada", scopes=["read"]) if token else None


    guarded = Server("guarded", auth=ServerAuth(verifier=whose, authorization_servers=["https://login.example.com"]))


    @guarded.tool(scopes=["write"])
    def guarded_who(ctx: Context) -> bool:
        return ctx.principal is not None and ctx.principal.has_scope("write")


    logins: TokenStore = Logins()
    protected = connect("https://example.com/mcp", auth=ClientAuth(store=logins, token=lambda: "t"))
    steps: list[str] = [step.decision for step in protected.auth_trace()]


    class Echo:
        async def send(self, request: HttpRequest) -> HttpResponse:
            async def body() -> AsyncGenerator[bytes, None]:
                yield request.body

            return HttpResponse(200, request.headers, body())


    carriers: list[HttpTransport] = [Echo(), ASGITransport(app.asgi())]
    carried = [connect("http://localhost/mcp", http_transport=carrier) for carrier in carriers]
    synchronous = Client("http://localhost/mcp", http_transport=Echo())


    @app.prompt
    def review(code: str, lines: int = 1) -> list[Message]:
        return [user(f"{code} {lines}"), assistant("ok")]


    def codes(value: str, arguments: dict[str, str]) -> list[str]:
        return [value, *arguments]


    async def model(params: CreateMessageRequestParams, ctx: RequestContext) -> str:
        ctx.progress(1)
        return f"{len(params['messages'])} messages"


    @app.prompt(title="Other", complete={"code": codes})
    async def other(code: str) -> str:
        return code


    @app.on_complete
    def rest(ref: dict[str, str], argument: str, value: str) -> Completion:
        return Completion([value])


    @app.tool
    async def question(ctx: Context) -> str:
        answer = await ctx.elicit("Who?", Person, timeout=60)
        if answer.content is not None:
            return answer.content.name
        form = await ctx.elicit("Who?", {"type": "object"})
        assert form.content is not None
        written = await ctx.sample([user("hi"), "there"], 10, temperature=0.5)
        return written.text + str(form.content["x"]) + (await ctx.list_roots())[0].path


    @app.tool
    def plain(ctx: Context) -> str:
        return ctx.wait(ctx.sample("hi", max_tokens=10)).text


    async def reserve() -> int:
        return 7


    @app.tool
    async def rounds(ctx: Context) -> str | InputRequired:
        number: int = await ctx.step("number", reserve)
        other: int = await ctx.step("other", lambda: 7)
        someone: Person = await ctx.step("person", lambda: Person("x"), type=Person)
        name, roots, written = await ctx.ask_all(
            (Question.elicit("Who?", Person), Question.list_roots(), Question.sample("hi", 10, temperature=1)),
            timeout=60,
        )
        people: list[Elicited[Person]] = await ctx.ask_all([Question.elicit("Who?", Person)] * number)
        if name.content is None or ctx.input_responses.get("x") is None:
            return InputRequired({"x": Question.elicit("Sure?"), "y": Question.list_roots()}, state=[other])
        assert ctx.request_state == [other]
        found: ListRootsResult = roots
        return name.content.name + found[0].path + written.text + someone.name + str(len(people))


    def news(change: Change) -> str:
        match change:
            case ResourceUpdated(uri):
                return uri
            case ToolsListChanged() | PromptsListChanged() | ResourcesListChanged():
                return change.method
            case TaskChanged(task):
                return task.status
            case ExtensionNotification(method):
                return method


    async def features() -> None:
        async with connect(app, sampling=model, roots=["/x"], on_list_changed=print) as client:
            async for tool in client.tools():
                print(tool.name)
            async for resource in client.resources(timeout=1):
                print((await client.read_resource(resource.uri)).blob)
            names: list[str] = [prompt.name for prompt in await client.list_prompts()]
            print(names, (await client.get_prompt("review", {"code": "x", "lines": 2})).messages[0].text)
            print((await client.complete("review", "code", "x")).values)
            handle = await client.call_tool_task("slow")
            async with client.listen(tools=True, uris=["x://y"], tasks=[handle, "id"]) as changes:
                async for change in changes:
                    print(news(change), changes.honoured.uris)
            await client.set_log_level("loud")  # type: ignore[arg-type]
        app.set_source("tool", list=client.list_tools_page, get=client.call_tool)
        app.set_enabled("toool", "x", False)  # type: ignore[arg-type]


    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncGenerator[Person]:
        yield Person(server.name)


    alive = Server("alive", lifespan=lifespan, tasks=True)


    @alive.tool(task_support="optional")
    async def who(ctx: Context[Person]) -> str:
        ctx.set_status("looking")
        as_task: bool = ctx.run_as_task()
        ctx.session.add_tool(picture)
        name: str = ctx.state.name
        return name + str(ctx.state.nam) + str(as_task)  # type: ignore[attr-defined]


    @alive.middleware
    async def around(request: Request, context: Context, call_next: Next) -> Result:
        context.values["name"] = request.params.get("name")
        return await call_next(request, context)


    async def outward(request: Request, context: RequestContext, call_next: Next) -> Result:
        return await call_next(request, context)


    async def heard(level: str, logger: str | None, data: object) -> None:
        print(level, logger, data)


    alive.middleware(rate_limit(5, burst=10))
    alive.middleware(5)  # type: ignore[call-overload]


    async def many() -> None:
        async with connect_many({"a": app, "b": "https://x"}, on_log=heard, middleware=[outward, timing()]) as group:
            async for tool in group.tools():
                print(tool.server, tool.task_support)
            print((await group.call_tool("x", {}, task=5)).text, (await group["a"].list_tools())[0].name)
            handle = await group.call_tool_task("x", ttl=60)
            async for task in handle.changes():
                print(task.status, task.status_message)
            print((await handle.result()).text, {name: error.kind for name, error in group.failures.items()})
        with ClientGroup("mcp.json", prefix="always") as sync:
            print(sync.call_tool_task("x").wait().is_over, sync["a"].list_prompts(meta={"a/b": 1}))


    async def main() -> int:
        total: int = await add(1, ctx=...)  # type: ignore[arg-type]
        picture("x")  # type: ignore[arg-type]
        async with connect("python x.py", revision="2025-11-25") as client:
            result: CallToolResult = await client.call_tool("add", {"a": total}, timeout=None)
        with Client({"url": "https://example.com"}) as sync:
            with sync.listen(prompts=True) as changes:
                texts: list[str] = [news(change) for change in changes]
            return result.to(int) + sync.call_tool("add").to(int) + len(texts)


    Server("x", request_state_keys=["x" * 32], request_state_ttl=60, max_request_state_bytes=1000)
    Server("x", page_sizes=1)  # type: ignore[call-arg]
    app.resource("x://y", titel="x")  # type: ignore[call-arg]
    app.tool(titel="x")  # type: ignore[call-overload]
    app.run(http="127.0.0.1:8000", allowed_hosts=["example.com"])
"""


def check(*command: str | Path) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def write(folder: Path, first_line: str) -> Path:
    path = folder / "program.py"
    path.write_text(first_line + textwrap.dedent(PROGRAM), encoding="utf-8")
    return path


def test_the_stub_is_the_compiled_module() -> None:
    check(sys.executable, "-m", "mypy.stubtest", "tricorn._core", "--mypy-config-file", "pyproject.toml")


def test_programs_are_typed_for_mypy(tmp_path: Path) -> None:
    path = write(tmp_path, "")
    check(sys.executable, "-m", "mypy", "--strict", "--config-file", "pyproject.toml", path)


def test_programs_are_typed_for_pyright(tmp_path: Path) -> None:
    places = (ROOT / "target/tools/node_modules/.bin", Path(sys.executable).parent)
    pyright = shutil.which("pyright", path=os.pathsep.join(map(str, places)))
    if pyright is None:
        pytest.skip("pyright is not installed: cargo xtask setup gets it")
    path = write(tmp_path, "# pyright: strict, reportUnnecessaryTypeIgnoreComment=true, reportDeprecated=false")
    check(pyright, "--pythonpath", sys.executable, path)


def test_type_checkers_see_what_is_deprecated(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(
        "from tricorn import LogHandler, Question\n\nLogHandler()\nQuestion.list_roots()\n", encoding="utf-8"
    )
    command = ["-m", "mypy", "--strict", "--enable-error-code", "deprecated", "--config-file", "pyproject.toml", path]
    done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False)
    own = [line for line in done.stdout.splitlines() if line.startswith(str(path)) and "[deprecated]" in line]
    assert len(own) == 2, done.stdout + done.stderr
    assert "use tool arguments, resource URIs or configuration" in done.stdout
