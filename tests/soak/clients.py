"""A load for a client: a case runner, whose clients call a good server over every way there is."""

import queue
import random
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mix import LEGACY, MODERN, Dice, Tally
from programs import ROOT, Client, Gone

WINDOW = 48
"""Commands in flight."""
WAIT = 30.0
"""Seconds for what comes of one."""
ROUND = 400
"""Commands after which one of the clients is closed and connected anew."""
SERVER = [str(ROOT / "examples/everything/rust/run"), "--stdio"]
Json = dict[str, Any]


@dataclass(slots=True)
class Step:
    """A command, and what is right for it."""

    command: Json
    right: Callable[[Json], bool]
    cancelled: bool = False


def result(right: Callable[[Any], bool]) -> Callable[[Json], bool]:
    return lambda said: "result" in said and right(said["result"])


def failure(said: Json) -> bool:
    return "error" in said


def call(name: str, arguments: Json, right: Callable[[Json], bool], **more: Any) -> Step:
    return Step({"do": "call_tool", "name": name, "arguments": arguments, **more}, right)


def echo(rng: random.Random, tag: str) -> Step:
    text = f"{tag} {'x' * rng.randrange(300)}"
    return call("echo", {"text": text}, result(lambda r: r["text"] == text and not r["is_error"]))


def add(rng: random.Random, _: str) -> Step:
    a, b = rng.randrange(1 << 40), rng.randrange(1 << 40)
    return call("add", {"a": a, "b": b}, result(lambda r: r["text"] == str(a + b)))


def progress(rng: random.Random, _: str) -> Step:
    to = rng.randrange(2, 12)
    return call("count", {"to": to}, result(lambda r: r["text"] == f"counted to {to}"), progress=True)


def tool_error(_: random.Random, __: str) -> Step:
    return call("fail", {"kind": "tool"}, result(lambda r: r["is_error"] and r["text"] == "the tool says no"))


def protocol_error(_: random.Random, __: str) -> Step:
    return call("fail", {"kind": "protocol"}, lambda said: said["error"].get("code") == 4242)


def unknown(_: random.Random, tag: str) -> Step:
    return call(f"none-{tag}", {}, failure)


def timeout(rng: random.Random, _: str) -> Step:
    return call("slow", {"ms": 60_000}, failure, timeout=rng.randrange(5, 40) / 1000)


def cancel(_: random.Random, __: str) -> Step:
    step = call("slow", {"ms": 60_000}, failure)
    step.cancelled = True
    return step


def tools(_: random.Random, __: str) -> Step:
    return Step({"do": "list_tools"}, result(lambda r: len(r) > 20))


def listed(rng: random.Random, _: str) -> Step:
    return Step(
        {"do": "list", "what": rng.choice(["resources", "prompts", "resource_templates"])}, result(lambda r: len(r) > 0)
    )


def read(_: random.Random, tag: str) -> Step:
    right = f"Data for ID: {tag}"
    return Step({"do": "read_resource", "uri": f"test://template/{tag}/data"}, result(lambda r: right in r[0]["text"]))


def prompt(_: random.Random, tag: str) -> Step:
    arguments = {"arg1": tag, "arg2": "z"}
    right = f"Prompt with arguments: arg1='{tag}', arg2='z'"
    command = {"do": "get_prompt", "name": "test_prompt_with_arguments", "arguments": arguments}
    return Step(command, result(lambda r: r["messages"][0]["content"]["text"] == right))


def complete(_: random.Random, __: str) -> Step:
    command = {"do": "complete", "prompt": "test_prompt_with_arguments", "argument": "arg1", "value": "par"}
    return Step(command, result(lambda r: r["values"] == ["paris", "park", "party"]))


MIX: list[tuple[int, str, Callable[[random.Random, str], Step]]] = [
    (400, "echo", echo),
    (80, "add", add),
    (60, "progress", progress),
    (50, "tool_error", tool_error),
    (30, "protocol_error", protocol_error),
    (30, "unknown", unknown),
    (50, "timeout", timeout),
    (50, "cancel", cancel),
    (30, "tools", tools),
    (60, "listed", listed),
    (80, "read", read),
    (60, "prompt", prompt),
    (20, "complete", complete),
]


class Load:
    """One load of a program of clients. Those with the numbers of `ways` are opened and closed by it."""

    def __init__(self, runner: Client, seed: int, phase: str, calls: int, seconds: float) -> None:
        self.runner = runner
        self.name = f"{phase}{seed}"
        self.rng = random.Random(self.name)
        self.dice = Dice(self.rng, MIX)
        self.tally = Tally(calls, seconds, time.monotonic)
        self.flying: deque[tuple[str, Step, int, queue.Queue[Json]]] = deque()
        over_http = {"url": runner.url}
        on_pipe = {"command": SERVER[0], "args": SERVER[1:]}
        self.ways: dict[int, Json] = {
            3: {"target": over_http, "options": {"revision": MODERN}},
            4: {"target": over_http, "options": {"revision": LEGACY}},
            5: {"target": on_pipe, "options": {"revision": MODERN}},
            6: {"target": on_pipe, "options": {"revision": LEGACY}},
        }

    def do(self, **command: Any) -> None:
        said = self.runner.do(WAIT, **command)
        if said is None or "result" not in said:
            raise Gone(f"{command['do']} of client {command['client']}: {said}")

    def run(self) -> Json:
        begin = time.monotonic()
        tally = self.tally
        ways = list(self.ways)
        stray = self.runner.stray
        try:
            for key in ways:
                self.do(do="connect", client=key, **self.ways[key])
            while self.runner.alive and tally.goes_on():
                name, make = self.dice.throw()
                tally.made(name)
                tag = f"{self.name}-{tally.calls}"
                step = make(self.rng, tag)
                number, answers = self.runner.start(client=self.rng.choice(ways), **step.command)
                self.flying.append((name, step, number, answers))
                if len(self.flying) >= WINDOW:
                    self.settle()
                if tally.calls % ROUND == 0:
                    self.land()
                    key = self.rng.choice(ways)
                    self.do(do="close", client=key)
                    self.do(do="connect", client=key, **self.ways[key])
            self.land()
            for key in ways:
                self.do(do="close", client=key)
        except Gone as error:
            tally.fail(str(error))
        if self.runner.stray > stray:
            tally.fail(f"{self.runner.stray - stray} answers that nobody waits for")
        return {**tally.facts(), "seconds": time.monotonic() - begin}

    def land(self) -> None:
        while self.flying:
            self.settle()

    def settle(self) -> None:
        """Takes what came of the oldest command."""
        name, step, number, answers = self.flying.popleft()
        if step.cancelled:
            self.do(do="cancel", client=0, call=number)
        try:
            said = answers.get(timeout=WAIT)
        except queue.Empty:
            self.tally.fail(f"{name}: nothing came of it")
            return
        try:
            right = step.right(said)
        except (KeyError, IndexError, TypeError):
            right = False
        if not right:
            self.tally.fail(f"{name}: {str(said)[:300]}")
