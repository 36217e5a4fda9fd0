"""A load for a server on standard streams: one pipe, many ids in flight, both revisions on it."""

import json
import random
import threading
import time
from typing import Any

from mix import (
    LONG,
    SIMPLE,
    SUBSCRIPTION,
    WATCHED,
    Call,
    Dice,
    Tally,
    begin_task,
    change,
    echo_long,
    judge,
    says,
    tool,
    touch,
    unanswered,
)
from programs import StdioServer

WINDOW = 150
"""Requests in flight, of the 256 that a server takes."""
WAIT = 30.0
"""Seconds for an answer."""
HELD = 24
"""Calls at most that wait for their end by a cancellation, each for so many others."""
Json = dict[str, Any]


class Asked:
    """A request that waits for its answer."""

    __slots__ = ("before", "call", "name", "since")

    def __init__(self, name: str, call: Call) -> None:
        self.name, self.call = name, call
        self.since = time.monotonic()
        self.before: list[Json] = []


class Pipe(StdioServer):
    """The server, and what it was asked."""

    def __init__(self, words: list[str], env: dict[str, str], mark: str) -> None:
        self.asking = threading.Condition()
        self.ledger: dict[Any, Asked] = {}
        self.tokens: dict[str, Asked] = {}
        self.ended: dict[Any, str] = {}
        """Calls that were cancelled, of which nothing more may come. As long as the load."""
        self.listens: dict[Any, int] = {}
        self.halves: set[str] = set()
        """The ids of half messages that have not been refused by them."""
        self.nameless = 0
        """Refusals without an id, as the other half had it."""
        self.tally = Tally(0, 0.0, time.monotonic)
        super().__init__(words, env, mark)

    def hear(self, line: bytes) -> None:
        if b'"ask-' in line:
            super().hear(line)
            return
        try:
            message = json.loads(line)
        except ValueError:
            self.wrong(f"no JSON: {line[:200]!r}")
            return
        if "method" in message:
            if "id" not in message:
                self.note(message)
            # A question to the user stays unanswered.
            return
        number = message.get("id")
        with self.asking:
            asked = self.ledger.pop(number, None)
            if asked is not None and asked.call.token is not None:
                self.tokens.pop(asked.call.token, None)
            if number is None and self.refuses(message):
                self.nameless += 1
            elif number in self.halves and self.refuses(message):
                self.halves.remove(number)
            elif asked is None:
                why = "an answer to what was cancelled" if number in self.ended else "an answer that nobody waits for"
                self.tally.fail(f"{why} {self.ended.get(number, '')}: {line[:200]!r}")
            elif wrong := judge(asked.call, number, [*asked.before, message]):
                self.tally.fail(f"{asked.name}: {wrong}")
            self.asking.notify()

    def refuses(self, message: Json) -> bool:
        return message.get("error", {}).get("code") in (-32700, -32600)

    def note(self, message: Json) -> None:
        params = message.get("params") or {}
        if message["method"] == "notifications/progress":
            with self.asking:
                asked = self.tokens.get(params.get("progressToken"))
                if asked is not None:
                    asked.before.append(message)
                elif params.get("progressToken") not in self.ended:
                    self.tally.fail(f"progress of nobody's: {json.dumps(message)[:200]}")
            return
        listening = params.get("_meta", {}).get(SUBSCRIPTION)
        if listening is not None:
            with self.asking:
                self.listens[listening] = self.listens.get(listening, 0) + 1

    def wrong(self, why: str) -> None:
        with self.asking:
            self.tally.fail(why)

    def say(self, message: Json) -> None:
        if not self.write(json.dumps(message, separators=(",", ":")).encode() + b"\n", WAIT):
            raise TimeoutError("the server does not read")


class Load:
    """One load on a pipe."""

    def __init__(self, pipe: Pipe, seed: int, phase: str, calls: int, seconds: float) -> None:
        self.pipe = pipe
        self.name = f"{phase}{seed}"
        self.rng = random.Random(self.name)
        self.dice = Dice(self.rng, [*SIMPLE, *SPECIAL])
        self.tally = pipe.tally = Tally(calls, seconds, time.monotonic)
        self.asked = 0
        self.held: list[tuple[Any, int]] = []
        """Requests to cancel, each after so many calls."""

    def run(self) -> Json:
        pipe = self.pipe
        begin = time.monotonic()
        try:
            while pipe.alive and self.tally.goes_on():
                with pipe.asking:
                    pipe.asking.wait_for(lambda: len(pipe.ledger) < WINDOW or not pipe.alive, WAIT)
                name, thing = self.dice.throw()
                self.tally.made(name)
                modern = self.rng.random() < 0.5
                if isinstance(thing, str):
                    getattr(self, thing)(modern)
                else:
                    self.asked += 1
                    self.send(name, thing(self.rng, self.tag(), modern), modern)
                while self.held and (self.held[0][1] <= self.asked or len(self.held) > HELD):
                    self.end(self.held.pop(0)[0])
            for number, _ in self.held:
                self.end(number)
        except (TimeoutError, OSError) as error:
            self.tally.fail(str(error))
        with pipe.asking:
            pipe.asking.wait_for(lambda: not pipe.ledger and len(pipe.halves) <= pipe.nameless, WAIT)
            for asked in list(pipe.ledger.values())[:20]:
                self.tally.fail(f"{asked.name}: no answer")
            if len(pipe.halves) != pipe.nameless:
                self.tally.fail(f"{len(pipe.halves)} half messages without an id, {pipe.nameless} refusals")
            if pipe.listens and all(count < 2 for count in pipe.listens.values()):
                self.tally.fail("no listener heard any news")
            for known in (pipe.ledger, pipe.tokens, pipe.ended, pipe.listens, pipe.halves):
                known.clear()
            pipe.nameless = 0
        return {**self.tally.facts(), "seconds": time.monotonic() - begin}

    def tag(self) -> str:
        return f"{self.name}-{self.asked}"

    def send(self, name: str, call: Call, modern: bool, waits: bool = True) -> Any:
        number = self.asked if self.asked % 2 else self.tag()
        if waits:
            with self.pipe.asking:
                asked = self.pipe.ledger[number] = Asked(name, call)
                if call.token is not None:
                    self.pipe.tokens[call.token] = asked
        self.pipe.say(call.message(number, modern))
        return number

    def end(self, number: Any) -> None:
        self.pipe.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})

    def hold(self, name: str, call: Call, modern: bool) -> None:
        """A call that is never answered, and cancelled somewhat later."""
        self.asked += 1
        number = self.asked if self.asked % 2 else self.tag()
        with self.pipe.asking:
            self.pipe.ended[number] = name
            if call.token is not None:
                self.pipe.ended[call.token] = name
        self.send(name, call, modern, waits=False)
        self.held.append((number, self.asked + self.rng.randrange(40)))

    def cancel(self, modern: bool) -> None:
        # Of its own: progress of the last call has that tag.
        token = f"{self.tag()}-cancelled" if self.rng.random() < 0.5 else None
        self.hold("cancel", tool("slow", {"ms": LONG}, says(""), token=token), modern)

    def break_off(self, _: bool) -> None:
        """Half a message."""
        self.asked += 1
        call = echo_long(self.rng, self.tag(), False)
        number = f"{self.tag()}-half"
        text = json.dumps(call.message(number, False))
        with self.pipe.asking:
            self.pipe.halves.add(number)
        if not self.pipe.write(text[: self.rng.randrange(1, len(text) - 1)].encode() + b"\n", WAIT):
            raise TimeoutError("the server does not read")

    def elicit(self, modern: bool) -> None:
        if modern:
            self.asked += 1
            self.send("elicit", unanswered(), True)
        else:
            self.hold("elicit", tool("test_elicitation", {"message": self.tag()}, says("")), False)

    def subscribe(self, modern: bool) -> None:
        if modern:
            wanted = {"notifications": {"resourceSubscriptions": [WATCHED]}}
            self.hold("subscribe", Call("subscriptions/listen", wanted, says("")), True)
        else:
            subscribed = Call("resources/subscribe", {"uri": WATCHED}, lambda m: m["result"] == {})
            self.asked += 1
            self.send("subscribe", subscribed, False)
        self.asked += 1
        self.send("touch", touch(), modern)

    def unsubscribe(self, _: bool) -> None:
        self.asked += 1
        gone = Call("resources/unsubscribe", {"uri": WATCHED}, lambda m: m["result"] == {})
        self.send("unsubscribe", gone, False)

    def change(self, modern: bool) -> None:
        self.asked += 1
        self.send("change", change(), modern)

    def task(self, modern: bool) -> None:
        self.asked += 1
        self.send("task", begin_task(self.tag(), modern), modern)


SPECIAL: list[tuple[int, str, str]] = [
    (100, "cancel", "cancel"),
    (10, "break_off", "break_off"),
    (4, "elicit", "elicit"),
    (6, "subscribe", "subscribe"),
    (6, "unsubscribe", "unsubscribe"),
    (2, "change", "change"),
    (3, "task", "task"),
]
"""A pipe cannot be abandoned: as many calls more are cancelled."""
