"""Checks of every client, in the same words: see README.md. A driver says how its client does each."""

import asyncio
import json
import sys
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any

LIMIT = 40.0
"""Seconds for one check."""
TEXT = 'grüße 🦄 " \\ \n\t </script>'
USER = {"username": "ada", "email": "ada@example.com"}
"""The answer of the client's user to a form."""


class Skip(Exception):  # noqa: N818
    """This client has no way to do that."""


class Session:
    """A connection. What a client has no way to do stays as it is here."""

    answers: tuple[str, ...] = ()
    """The questions of servers that it answers, `elicitation` with USER and `sampling` with `model`."""

    async def tools(self) -> list[str]:
        raise Skip

    async def call(self, name: str, arguments: dict[str, Any]) -> tuple[bool, str]:
        """Calls a tool; returns whether the answer is an error, and the text."""
        raise Skip

    async def progress(self, name: str, arguments: dict[str, Any]) -> list[float]:
        raise Skip

    async def read(self, uri: str) -> str:
        raise Skip

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        raise Skip


Open = Callable[[Any], AbstractAsyncContextManager[Session]]


def say(check: str, ok: bool | None, note: str = "") -> None:
    print(json.dumps({"check": check, "ok": ok, "note": note}), flush=True)


def plan() -> dict[str, Any]:
    return json.loads(sys.argv[-1])


def why(error: BaseException) -> str:
    while inner := getattr(error, "exceptions", None):
        error = inner[0]
    last = traceback.extract_tb(error.__traceback__)[-1:]
    where = "".join(f" ({frame.filename.rsplit('/', 1)[-1]}:{frame.lineno})" for frame in last)
    return f"{type(error).__name__}: {error}"[:400] + where


async def check(name: str, body: Awaitable[str | None]) -> bool:
    """The text is a note beside a check that passed."""
    try:
        say(name, True, await asyncio.wait_for(body, LIMIT) or "")
    except Skip:
        say(name, None)
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001
        say(name, False, "no end" if isinstance(error, TimeoutError) and not str(error) else why(error))
        return False
    return True


def expect(ok: object, said: object) -> None:
    if not ok:
        raise AssertionError(repr(said)[:400])


def model(text: str) -> str:
    """The answer of the client's model."""
    return f"heard {text}"


async def ask(what: str, done: str) -> None:
    print(json.dumps({"ask": what}), flush=True)
    line = await asyncio.to_thread(sys.stdin.readline)
    expect(line.strip() == done, line)


async def restart() -> None:
    """The server is ended and started again at its port."""
    await ask("restart", "restarted")


async def kill() -> None:
    """The server on standard streams is killed."""
    await ask("kill", "killed")


class Checks:
    """The checks of one connection, in their order."""

    def __init__(self, it: Session) -> None:
        self.it = it

    async def list(self) -> str:
        names = await self.it.tools()
        expect(any(name.endswith("add") for name in names), names)
        return f"{len(names)} tools"

    async def real(self) -> None:
        said = await self.it.call("add", {"a": 2, "b": 40})
        expect(not said[0] and "42" in said[1], said)
        said = await self.it.call("echo", {"text": TEXT})
        expect(not said[0] and (TEXT in said[1] or json.dumps(TEXT, ensure_ascii=False)[1:-1] in said[1]), said)

    async def error(self) -> None:
        error, text = await self.it.call("fail", {"kind": "tool"})
        expect(error and "the tool says no" in text, (error, text))

    async def many(self) -> None:
        calls = [self.it.call("add", {"a": n, "b": 1000}) for n in range(50)]
        said = await asyncio.gather(*calls)
        wrong = [(n, got) for n, got in enumerate(said) if got[0] or str(n + 1000) not in got[1]]
        expect(not wrong, wrong[:3])

    async def slow_calls(self) -> dict[str, int]:
        error, text = await self.it.call("test_metrics", {})
        expect(not error, text)
        # Frameworks make texts, literals and objects of it.
        flat = text.replace("\\", "").replace("'", '"').replace(" ", "").replace("\n", "")
        found = {}
        for name in ("cancelled", "running"):
            at = flat.rindex(f'"{name}":') + len(name) + 3
            digits = flat[at:].split(",")[0].split("}")[0].split(".")[0]
            found[name] = int(digits)
        return found

    async def cancel(self) -> str:
        before = await self.slow_calls()
        call = asyncio.ensure_future(self.it.call("slow", {"ms": 20_000}))
        loop = asyncio.get_running_loop()
        end = loop.time() + LIMIT / 2
        # Each question is a round to the server, so nothing spins.
        while (await self.slow_calls())["running"] <= before["running"]:
            if loop.time() > end:
                call.cancel()
                await asyncio.gather(call, return_exceptions=True)
                return "each call has a server of its own"
        call.cancel()
        await asyncio.wait([call], timeout=LIMIT / 2)
        expect(call.done(), "the cancelled call goes on")
        end = loop.time() + 6
        heard = False
        while not heard and loop.time() < end:
            heard = (await self.slow_calls())["cancelled"] > before["cancelled"]
        await self.real()
        return "" if heard else "the client does not tell the server"

    async def progress(self) -> str:
        heard = await self.it.progress("count", {"to": 5})
        expect(heard and heard == [float(n + 1) for n in range(len(heard))], heard)
        return "" if len(heard) == 5 else "the client drops a report that arrives with the result"

    async def resource(self) -> None:
        text = await self.it.read("test://static-text")
        expect("static text" in text.lower(), text)

    async def prompt(self) -> None:
        text = await self.it.prompt("test_prompt_with_arguments", {"arg1": "hello", "arg2": "world"})
        expect("hello" in text and "world" in text, text)

    async def elicitation(self) -> None:
        self.can("elicitation")
        error, text = await self.it.call("test_elicitation", {"message": "Who is there?"})
        expect(not error and USER["email"] in text, (error, text))

    async def sampling(self) -> None:
        self.can("sampling")
        error, text = await self.it.call("test_sampling", {"prompt": "a question"})
        expect(not error and model("a question") in text, (error, text))

    def can(self, question: str) -> None:
        if question not in self.it.answers:
            raise Skip

    async def again(self) -> None:
        said = await self.it.call("add", {"a": 20, "b": 3})
        expect(not said[0] and "23" in said[1], said)


async def run(connect: Open) -> None:
    asked = plan()
    target = asked["target"]
    opened = ended = False
    restarting: asyncio.Task[None] | None = None
    try:
        async with connect(target) as it:
            say("connect", True)
            opened = True
            checks = Checks(it)
            for name, body in [
                ("list", checks.list),
                ("call", checks.real),
                ("tool error", checks.error),
                ("50 at once", checks.many),
                ("cancel", checks.cancel),
                ("progress", checks.progress),
                ("resource", checks.resource),
                ("prompt", checks.prompt),
                ("elicitation", checks.elicitation),
                ("sampling", checks.sampling),
            ]:
                if name in asked.get("without", []):
                    continue
                await check(name, body())
            if isinstance(target, str):
                # A client that a lost connection ends leaves this block before the server is there again.
                restarting = asyncio.create_task(restart())
                await asyncio.shield(restarting)
                try:
                    await asyncio.wait_for(checks.again(), LIMIT)
                    say("restart", True)
                    ended = True
                except (Exception, asyncio.CancelledError):  # noqa: BLE001
                    pass
            else:
                ended = True
        say("close", True)
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001
        # A connection that the restart has broken may end with that.
        if not opened or ended or not isinstance(target, str):
            say("close" if opened else "connect", False, why(error))
    if restarting:
        await restarting
    if opened and not ended:
        await check("restart", anew(connect, target))


async def anew(connect: Open, target: Any) -> str:
    async with connect(target) as it:
        await Checks(it).again()
    return "with a new connection"


def main(connect: Open) -> None:
    asyncio.run(run(connect))


def text_of(content: Any) -> str:
    """The texts of blocks, by attribute or by member."""
    parts = []
    for block in content or []:
        text = block.get("text") if isinstance(block, dict) else getattr(block, "text", None)
        parts.append(str(text) if text is not None else repr(block)[:200])
    return "\n".join(parts)


__all__ = ["USER", "AsyncIterator", "Coroutine", "Session", "Skip", "main", "model", "plan", "text_of", "why"]
