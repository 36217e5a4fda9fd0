"""The mix of calls: what is asked, how often, and what the one right answer is. Nothing of a transport."""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

LEGACY, MODERN = "2025-11-25", "2026-07-28"
LONG = 120_000
"""Milliseconds of a call that is cancelled: longer than anybody waits, so that one which goes on is seen."""
ENOUGH = 1000
"""Failures after which a load ends."""
WATCHED = "test://watched-resource"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
Json = dict[str, Any]


def meta(**capabilities: Any) -> Json:
    """Returns the `_meta` of a request of the modern revision, which describes its client."""
    return {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "soak", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    }


@dataclass(slots=True)
class Call:
    """A request with exactly one answer."""

    method: str
    params: Json
    right: Callable[[Json], bool]
    """True if this message is the answer."""
    token: str | None = None
    """The progress that may come before it."""
    capabilities: Json = field(default_factory=dict)
    news: bool = False
    """True when what waits for a stream in the session may come with the answer."""

    def message(self, number: Any, modern: bool) -> Json:
        params = self.params
        extra: Json = meta(**self.capabilities) if modern else {}
        if self.token is not None:
            extra["progressToken"] = self.token
        if extra:
            params = {"_meta": extra, **params}
        return {"jsonrpc": "2.0", "id": number, "method": self.method, "params": params}


def tool(name: str, arguments: Json, right: Callable[[Json], bool], token: str | None = None) -> Call:
    return Call("tools/call", {"name": name, "arguments": arguments}, right, token)


def says(expected: str) -> Callable[[Json], bool]:
    """The text of a tool that did not fail."""

    def right(message: Json) -> bool:
        result = message["result"]
        return result["content"][0]["text"] == expected and not result.get("isError")

    return right


def fails(expected: str) -> Callable[[Json], bool]:
    def right(message: Json) -> bool:
        result = message["result"]
        return result.get("isError") is True and expected in result["content"][0]["text"]

    return right


def refused(*codes: int) -> Callable[[Json], bool]:
    return lambda message: message["error"]["code"] in codes


def has(member: str) -> Callable[[Json], bool]:
    return lambda message: len(message["result"][member]) > 0


Maker = Callable[[random.Random, str, bool], Call]
SIMPLE: list[tuple[int, str, Maker]] = []
"""Parts in a thousand, a name, and what makes one call of a unique text."""


def kind(parts: int) -> Callable[[Maker], Maker]:
    def add(make: Maker) -> Maker:
        SIMPLE.append((parts, make.__name__, make))
        return make

    return add


@kind(300)
def echo(rng: random.Random, tag: str, _: bool) -> Call:
    text = f"{tag} {'x' * rng.randrange(100)}"
    return tool("echo", {"text": text}, says(text))


@kind(30)
def echo_long(rng: random.Random, tag: str, _: bool) -> Call:
    text = f"{tag} {'y' * rng.randrange(1000, 20_000)}"
    return tool("echo", {"text": text}, says(text))


@kind(60)
def add(rng: random.Random, _: str, __: bool) -> Call:
    a, b = rng.randrange(1 << 40), rng.randrange(1 << 40)
    return tool("add", {"a": a, "b": b}, says(str(a + b)))


@kind(30)
def structured(_: random.Random, tag: str, __: bool) -> Call:
    return tool("structured", {"city": tag}, lambda m: m["result"]["structuredContent"]["city"] == tag)


@kind(20)
def any_value(_: random.Random, tag: str, __: bool) -> Call:
    value = {"tag": tag, "list": [1, 2.5, None, {"deep": [[]]}]}
    return tool("any_value", {"value": value}, lambda m: json.loads(m["result"]["content"][0]["text"]) == value)


@kind(15)
def all_content(_: random.Random, __: str, ___: bool) -> Call:
    return tool("all_content", {}, lambda m: len(m["result"]["content"]) == 7)


@kind(50)
def count(rng: random.Random, tag: str, _: bool) -> Call:
    to = rng.randrange(2, 20)
    return tool("count", {"to": to}, says(f"counted to {to}"), token=tag)


@kind(20)
def slow(rng: random.Random, tag: str, _: bool) -> Call:
    ms = rng.randrange(1, 30)
    return tool("slow", {"ms": ms}, says(f"slept {ms} ms"), token=tag)


@kind(3)
def progress(_: random.Random, tag: str, __: bool) -> Call:
    return tool("test_tool_with_progress", {}, says("Tool with progress executed successfully"), token=tag)


@kind(20)
def tool_error(_: random.Random, __: str, ___: bool) -> Call:
    return tool("fail", {"kind": "tool"}, fails("the tool says no"))


@kind(15)
def exception(_: random.Random, __: str, ___: bool) -> Call:
    return tool("fail", {"kind": "exception"}, fails("fail"))


@kind(15)
def protocol_error(_: random.Random, __: str, ___: bool) -> Call:
    return tool("fail", {"kind": "protocol"}, refused(4242))


@kind(20)
def unknown_tool(_: random.Random, tag: str, __: bool) -> Call:
    name = f"none-{tag}"
    return tool(name, {}, lambda m: m["error"]["code"] == -32602 and name in m["error"]["message"])


@kind(10)
def unknown_method(_: random.Random, tag: str, __: bool) -> Call:
    return Call(f"none/{tag}", {}, refused(-32601))


@kind(10)
def wrong_arguments(_: random.Random, __: str, ___: bool) -> Call:
    return tool("echo", {"txt": 7}, lambda m: "error" in m or m["result"].get("isError") is True)


@kind(40)
def read(_: random.Random, __: str, ___: bool) -> Call:
    text = "This is the content of the static text resource."
    return Call("resources/read", {"uri": "test://static-text"}, lambda m: m["result"]["contents"][0]["text"] == text)


@kind(40)
def read_template(_: random.Random, tag: str, __: bool) -> Call:
    right = f"Data for ID: {tag}"
    uri = f"test://template/{tag}/data"
    return Call("resources/read", {"uri": uri}, lambda m: right in m["result"]["contents"][0]["text"])


@kind(10)
def read_binary(_: random.Random, __: str, ___: bool) -> Call:
    return Call("resources/read", {"uri": "test://static-binary"}, lambda m: m["result"]["contents"][0]["blob"] != "")


@kind(10)
def read_unknown(_: random.Random, tag: str, __: bool) -> Call:
    return Call("resources/read", {"uri": f"test://none/{tag}"}, refused(-32002, -32602))


@kind(40)
def prompt(_: random.Random, tag: str, __: bool) -> Call:
    params = {"name": "test_prompt_with_arguments", "arguments": {"arg1": tag, "arg2": "z"}}
    right = f"Prompt with arguments: arg1='{tag}', arg2='z'"
    return Call("prompts/get", params, lambda m: m["result"]["messages"][0]["content"]["text"] == right)


@kind(5)
def prompt_image(_: random.Random, __: str, ___: bool) -> Call:
    right: Callable[[Json], bool] = lambda m: m["result"]["messages"][0]["content"]["type"] == "image"  # noqa: E731
    return Call("prompts/get", {"name": "test_prompt_with_image"}, right)


@kind(5)
def prompt_unknown(_: random.Random, tag: str, __: bool) -> Call:
    return Call("prompts/get", {"name": f"none-{tag}"}, refused(-32602))


@kind(15)
def tools(_: random.Random, __: str, ___: bool) -> Call:
    return Call("tools/list", {}, has("tools"))


@kind(15)
def resources(_: random.Random, __: str, ___: bool) -> Call:
    return Call("resources/list", {}, has("resources"))


@kind(15)
def templates(_: random.Random, __: str, ___: bool) -> Call:
    return Call("resources/templates/list", {}, has("resourceTemplates"))


@kind(15)
def prompts(_: random.Random, __: str, ___: bool) -> Call:
    return Call("prompts/list", {}, has("prompts"))


@kind(15)
def complete(_: random.Random, __: str, ___: bool) -> Call:
    ref = {"type": "ref/prompt", "name": "test_prompt_with_arguments"}
    params = {"ref": ref, "argument": {"name": "arg1", "value": "par"}}
    right = ["paris", "park", "party"]
    return Call("completion/complete", params, lambda m: m["result"]["completion"]["values"] == right)


@kind(25)
def alive(_: random.Random, __: str, modern: bool) -> Call:
    if modern:
        return Call("server/discover", {}, has("supportedVersions"))
    return Call("ping", {}, lambda m: m["result"] == {})


def touch() -> Call:
    return tool("touch", {"uri": WATCHED}, says(f"touched {WATCHED}"))


def change() -> Call:
    """Adds a tool and removes it again. Of two at once, the second may find it there already, and fails."""
    changed = says("The list of tools has changed")
    return tool("test_trigger_tool_change", {}, lambda m: bool(m["result"].get("isError")) or changed(m))


def unanswered() -> Call:
    """A question to the user of the modern revision, whose client does not come back."""
    right: Callable[[Json], bool] = lambda m: m["result"]["resultType"] == "input_required"  # noqa: E731
    call = tool("three_questions", {}, right)
    call.capabilities = {"elicitation": {}}
    return call


def begin_task(tag: str, modern: bool) -> Call:
    """A call that goes on as a task."""
    arguments = {"seconds": 0.02, "label": tag}
    if modern:
        call = tool("slow_compute", arguments, lambda m: m["result"]["resultType"] == "task")
        call.capabilities = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
        return call
    call = tool("slow_compute", arguments, lambda m: bool(m["result"]["task"]["taskId"]))
    call.params["task"] = {"ttl": 1000}
    return call


class Dice:
    """Chooses by parts of a whole, always the same for the same seed."""

    def __init__(self, rng: random.Random, parts: list[tuple[int, str, Any]]) -> None:
        self.rng = rng
        self.names = [name for _, name, _ in parts]
        self.things = [thing for *_, thing in parts]
        self.sums = list(accumulate(part for part, *_ in parts))

    def throw(self) -> tuple[str, Any]:
        at = self.rng.choices(range(len(self.sums)), cum_weights=self.sums)[0]
        return self.names[at], self.things[at]


def judge(call: Call, number: Any, messages: list[Json]) -> str:
    """Returns what is wrong with the messages that came for a request; nothing if they are right."""
    answers = [m for m in messages if "result" in m or "error" in m]
    if len(answers) != 1:
        return f"{len(answers)} answers"
    answer = answers[0]
    if answer.get("id") != number:
        return f"the answer of another call: {answer.get('id')!r} for {number!r}"
    before = 0.0
    for message in messages:
        if message is answer:
            continue
        if call.news and message.get("method", "").startswith("notifications/") and "id" not in message:
            continue
        params = message.get("params", {})
        if message.get("method") != "notifications/progress" or params.get("progressToken") != call.token:
            return f"a message of another call: {json.dumps(message)[:200]}"
        if params["progress"] < before:
            return "progress that goes back"
        before = params["progress"]
    if messages[-1] is not answer:
        return "a message after the answer"
    try:
        if call.right(answer):
            return ""
    except (KeyError, IndexError, TypeError, ValueError):
        pass
    return f"another answer: {json.dumps(answer)[:300]}"


class Tally:
    """Counts of calls and failures."""

    def __init__(self, calls: int, seconds: float, clock: Callable[[], float]) -> None:
        self.most, self.clock = calls, clock
        self.end = clock() + seconds
        self.calls = self.failed = 0
        self.kinds: dict[str, int] = {}
        self.failures: list[str] = []

    def goes_on(self) -> bool:
        """True if another call is to be made, which is counted."""
        if self.calls >= self.most or self.failed >= ENOUGH or self.clock() >= self.end:
            return False
        self.calls += 1
        return True

    def made(self, name: str) -> None:
        self.kinds[name] = self.kinds.get(name, 0) + 1

    def fail(self, why: str) -> None:
        self.failed += 1
        if len(self.failures) < 20:
            self.failures.append(why)

    def facts(self) -> Json:
        return {"calls": self.calls, "failed": self.failed, "failures": self.failures, "kinds": self.kinds}
