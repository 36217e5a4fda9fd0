"""Makes the wrong uses of misuse.json with the public Python API and compares what they raise, text by text.

`misuse_check.py` checks, `misuse_check.py --print [FILE]` prints the texts as JSON, by the names of the cases.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import tricorn
from tricorn import (
    ClientAuth,
    Extension,
    Introspection,
    Principal,
    Question,
    RpcError,
    Server,
    ServerAuth,
    TraceContext,
)
from tricorn import middleware as ready_made

LANGUAGE = "python"
FILE = Path(__file__).with_name("misuse.json")
URL = "http://127.0.0.1:9/mcp"
"""A URL where nothing listens: options of HTTP are refused before a connection is made."""


async def slow() -> str:
    """Answers too late for every case."""
    await asyncio.sleep(60)
    return "at last"


async def nothing() -> dict[str, Any]:
    """Answers with an empty result."""
    return {}


def demo(**options: Any) -> Server:
    """A server with one of everything."""
    server = Server("demo", **options)
    server.add_tool(slow)
    server.add_tool(lambda a, b: a + b, name="add")
    server.add_prompt(lambda: "Hello", name="hello")
    server.add_resource("notes://1", "One", name="one")
    return server


async def make_server(options: dict[str, Any]) -> None:
    """A server, and that it serves a client: some options are read then."""
    async with tricorn.connect(Server("demo", **options)):
        pass


async def make_client(options: dict[str, Any], target: Any = None) -> None:
    """A client, of a server in memory unless there is a target."""
    async with tricorn.connect(demo() if target is None else target, **options):
        pass


async def make_http(options: dict[str, Any]) -> None:
    """A server over HTTP, at a port that is free."""
    async with demo().listen(port=0, **options):
        pass


async def make_server_auth(options: dict[str, Any]) -> None:
    """A protected server over HTTP."""
    if isinstance(options.get("introspection"), dict):
        options = options | {"introspection": Introspection(**options["introspection"])}
    async with demo(auth=ServerAuth(**options)).listen(port=0):
        pass


async def make_auth(options: dict[str, Any]) -> None:
    """A client that logs in."""
    async with tricorn.connect(URL, auth=ClientAuth(**options)):
        pass


async def make_tool(options: dict[str, Any]) -> None:
    """A tool."""
    demo().add_tool(lambda **_: "done", **options)


async def make_prompt(options: dict[str, Any]) -> None:
    """A prompt with the argument `code`."""
    demo().add_prompt(lambda code: code, **options)


async def make_resource(options: dict[str, Any]) -> None:
    """A resource, a template where its URI has variables."""
    options = dict(options)
    uri = options.pop("uri")
    body: Any = (lambda number: number) if "{number" in str(uri) else "text"
    demo().add_resource(uri, body, **options)


async def make_group(options: dict[str, Any]) -> None:
    """A group of one server."""
    async with tricorn.connect_many({"one": {"url": URL}}, **options):
        pass


async def make_middleware(options: dict[str, Any], call: str) -> None:
    """Middleware that comes with the package."""
    Server("demo").middleware(getattr(ready_made, call)(**options))


async def make_task(options: dict[str, Any]) -> None:
    """A server with tasks."""
    Server("demo", tasks=options)


async def make_extension(options: dict[str, Any]) -> None:
    """An extension of a server, with a method and a notification if they are named."""
    extension = Extension(options["id"], options.get("settings"))
    if "method" in options:
        extension.method(options["method"])(nothing)
    if "notification" in options:
        extension.notification(options["notification"], options["member"])
    demo().add_extension(extension)


async def make_principal(options: dict[str, Any]) -> None:
    """A principal."""
    options = dict(options)
    Principal(options.pop("subject"), **options)


async def make_error(options: dict[str, Any]) -> None:
    """An error for the peer."""
    raise RpcError(options["code"], options["message"])


async def make_question(options: dict[str, Any]) -> None:
    """A question to the user, as a form."""
    Question.elicit(options["message"], options["schema"])


async def make_trace(options: dict[str, Any]) -> None:
    """The trace of a request."""
    async with tricorn.connect(demo()) as client:
        await client.list_tools(trace_context=TraceContext(**options))


async def make_on_server(options: dict[str, Any], call: str, arguments: list[Any]) -> None:
    """A method of a server."""
    server = demo()
    server.add_extension(Extension("com.example/x"))
    getattr(server, call)(*arguments, **options)


async def make_request(
    options: dict[str, Any], call: str, arguments: list[Any], client: dict[str, Any] | None = None
) -> None:
    """A method of a connected client."""
    async with tricorn.connect(demo(), **(client or {})) as connected:
        made = getattr(connected, call)(*arguments, **options)
        if hasattr(made, "__aenter__"):
            async with made:
                pass
        elif made is not None:
            await made


async def told(case: dict[str, Any]) -> str:
    """The text of the error that a case ends with."""
    rest = {name: case[name] for name in ("target", "call", "arguments", "client") if name in case}
    try:
        await globals()[f"make_{case['make']}"](case.get("options", {}), **rest)
    except tricorn.Error as error:
        message = getattr(error, "message", str(error))
        return message if error.kind == "misuse" else f"{error.kind}: {message}"
    except Exception as error:  # noqa: BLE001 - any error is an answer, and compared
        return f"{type(error).__name__}: {error}"
    return "(nothing was refused)"


PLACEHOLDER = re.compile(r"\{(?:([otn]):([^}]*)|(u|s|all|any))\}")


def rendered(text: str) -> re.Pattern[str]:
    """The expected text as this language has it: names of options in snake_case, times in seconds."""
    pattern, end = "", 0
    for found in PLACEHOLDER.finditer(text):
        pattern += re.escape(text[end : found.start()])
        kind, value, word = found.groups()
        if word:
            pattern += {"u": "seconds", "s": "a JSON Schema", "all": r"\w+(?:, \w+)+", "any": ".*"}[word]
        else:
            pattern += re.escape(value + " s" if kind == "t" else value)
        end = found.end()
    return re.compile(pattern + re.escape(text[end:]), re.DOTALL)


def is_skipped(case: dict[str, Any]) -> bool:
    """True if the case says why it is not for this language."""
    return any(LANGUAGE in languages.split(",") for languages in case.get("skip", {}))


async def main() -> int:
    """Checks all cases, or prints what they end with."""
    warnings.simplefilter("ignore")
    shows = sys.argv[1:2] == ["--print"]
    path = Path(sys.argv[2]) if len(sys.argv) > 2 else FILE
    cases = json.loads(path.read_text(encoding="utf-8"))["cases"]
    texts = {case["name"]: await asyncio.wait_for(told(case), 10) for case in cases if not is_skipped(case)}
    if shows:
        print(json.dumps(texts, indent=1, ensure_ascii=False))
        return 0
    failed = 0
    for case in cases:
        got = texts.get(case["name"])
        if got is None or rendered(case["error"]).fullmatch(got):
            continue
        failed += 1
        print(f"{case['name']}:\n  expected {case['error']}\n  got      {got}")
    print(f"{LANGUAGE}: {len(texts)} cases, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
