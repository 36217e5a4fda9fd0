"""Many clients behind nginx while processes are killed and the store fails: what was lost, and what came twice.

`chaos.py --seconds 60 --sessions 50`. Prints a table; the status is 1 when something was lost, doubled or wrong.
"""

import argparse
import asyncio
import contextlib
import functools
import itertools
import json
import math
import os
import random
import re
import signal
import sys
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from wire import Client, Events, Lost, Modern, ModernTasking, Reply, Tasking, accepted, told
from world import ALONE, FRONT, LANGS, NOTHING, PROMPT, SHARED, TREE, Json, Process, World, new_http

LIMIT = 45.0
"""Seconds after which a request hangs."""
SETTLES = 15.0
"""Seconds for what is still to arrive when all is well again."""
KINDS = (
    "initialize",
    "call",
    "question",
    "change",
    "stream",
    "task",
    "modern call",
    "modern question",
    "modern change",
    "modern task",
)
LISTS = ("tools", "resources", "prompts")
ENDS = 60.0
"""Seconds in which a task is over, also if its process was killed."""
ANSWERED = 5.0
"""Seconds in which a client sends an answer again."""
UNSURE = 1.0
"""Seconds before a kill in which an answer does not show that its change was told to the store."""
UNSURE_TIMES = 2
"""Times that a client may hear again of a resource that it subscribed to while the store was away: its change perhaps
comes twice, and when the store is back the resource may have changed."""
ANYTHING = 2
"""Times that a client hears that anything may have changed, when the store lost something."""
AGAIN = 4.0
"""Seconds in which a store that is back is asked again."""
TOLD_AGAIN = 12.0
"""Seconds in which the processes have told the store again what it lost, or what they could not tell it."""
LAG = 1.0
"""Seconds before a failover whose writes are lost."""
DEADLINE = 0.25
"""Seconds after which a process gives up a question to the store. If this program is late by as much, so may it be."""
BACK = 3.0
"""Seconds in which nginx gives a process that is back requests again: its `fail_timeout`, and one."""
SEEN = 0.5
"""Seconds after which a client has seen what happened."""
BROKEN = 3.0
"""Seconds after a kill in which all clients have seen, through nginx, that their connections broke."""
KEYS = 60.0
"""Seconds in which the keys of states are put back into a store that was emptied."""
KEPT = 300.0
"""Seconds for which is known what happened: longer than anything waits."""
PERIOD = 300.0
"""Seconds after which a long run has all disturbances again."""
BALANCER, STORE, DRAIN, LOST = "502", "503", "-32603 the server was closed", "connection lost"
RESUMED, FAILED = "400 to Last-Event-ID", "failed with its process"
NO_SESSION, NO_TASK, NO_STATE = "404", "-32602 task not found", '-32602 "requestState"'
DEFINED = {
    BALANCER: "no process took it: all have ended or drain, or were back for less than `BACK`",
    STORE: "the store is away, or was until `AGAIN` ago, or its process drains",
    DRAIN: "it ran for longer than its process had to end",
    LOST: "its process was killed just then",
    RESUMED: "the store lost what is known of the stream",
    FAILED: "a task whose process has ended since",
    NO_SESSION: "the session, which the store lost",
    NO_TASK: "the task, which the store lost, or was never told of",
    NO_STATE: "the key of the state, which the store lost",
}
"""Errors that a client has to expect, by what is counted, when there is a cause: see `Chaos.has_cause`."""
WELL, OUT, AWAY = "all was well", "a process was out", "the store was away"
SHARES = {WELL: 1.0, OUT: 0.8, AWAY: 0.5}
"""The least share of calls that are good, by what was there while they ran, without those that found that the store has
lost something."""


@dataclass
class Count:
    """Requests of one kind, and their ends."""

    calls: int = 0
    good: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    lost: int = 0
    doubled: int = 0
    wrong: int = 0


@dataclass
class Out:
    """A process that was killed, or asked to end, and when it was back."""

    name: str
    at: float
    is_kill: bool
    back: float = math.inf

    def of(self, who: str) -> bool:
        return who == self.name or who.startswith(f"{self.name} ")


@dataclass
class Away:
    """A time without the store."""

    what: str
    start: float
    end: float = math.inf
    lost_from: float | None = None
    """The time from which it lost what was written, if it did."""

    def spoils(self, at: float, after: float) -> bool:
        """True for what was written at that time: it may not be there, until so many seconds after."""
        first = self.start if self.lost_from is None else self.lost_from
        return first - UNSURE < at < self.end + after


class Recent(deque[Any]):
    """The events of the last `KEPT` seconds, and those that go on."""

    def note(self, it: Any, now: float) -> None:
        while self and self.time(self[0]) < now - KEPT:
            self.popleft()
        self.append(it)

    @staticmethod
    def time(it: Any) -> float:
        return it if isinstance(it, float) else getattr(it, "back", getattr(it, "end", 0.0))


@dataclass
class Change:
    """A change of a session's own resource, whose answer came."""

    who: str
    at: float
    subscribed: str
    """The process that answered the subscription."""
    is_sure: bool
    """All others know of it."""


class Refused(Exception):  # noqa: N818 - an outcome
    """A defined error."""


class SessionLost(Refused):
    """404: the session is gone."""


class Chaos:
    def __init__(self, world: World, given: argparse.Namespace) -> None:
        self.world, self.given = world, given
        self.counts = {kind: Count() for kind in KINDS}
        self.over = asyncio.Event()
        self.is_done = False
        self.event: asyncio.Task[None] | None = None
        """The disturbance of the store that goes on."""
        self.replacing: dict[str, asyncio.Task[None]] = {}
        """Processes that are out."""
        self.ends = Recent()
        """Processes that ended."""
        self.done: Counter[str] = Counter()
        self.flushes = Recent()
        """Times at which the store was emptied."""
        self.away = Recent()
        """Times in which the store stood still, or was failing over."""
        self.gone = 0
        """Sessions that were answered with 404."""
        self.as_defined: Counter[str] = Counter()
        """Effects of a failover, a flush or a store that was away: allowed, and seen."""
        self.shares: dict[str, Counter[str]] = {name: Counter() for name in SHARES}
        """Calls, and the good ones of them, by what was there while they ran."""
        self.complaints: list[str] = []
        """The first lost, doubled, wrong or undefined ends, in words."""
        self.complained = 0
        self.marks: deque[tuple[float, str]] = deque(maxlen=400)
        """The disturbances, with their times."""
        self.spies: dict[str, Tasking] = {}
        """Clients that also ask for tasks of others."""
        self.tasks_made: dict[str, str] = {}
        """Tasks of sessions, and their clients: the last of them."""
        self.late = 0.0
        """Seconds by which this program itself was late in the last seconds, and in all."""
        self.latest = 0.0
        self.slow = Recent()
        """Times at which it, or the store, was late by more than a store may be."""
        self.slowest = (0.0, 0.0)
        """The longest time for which the store did not answer though it was there, and when that was."""
        self.memory = Memory(world)
        self.begun = self.now()
        self.random = random.Random(given.seed)

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def complain(self, text: str) -> None:
        self.complained += 1
        if len(self.complaints) < 200 and not any(text in before for before in self.complaints):
            before = ", ".join(f"{what} at {at - self.begun:.1f} s" for at, what in list(self.marks)[-3:])
            self.complaints.append(f"{self.now() - self.begun:.1f} s: {text} (before it: {before})")

    async def act(self, kind: str, action: Callable[[], Awaitable[Reply]], opened: float = 0.0) -> Reply:
        """Counts a request with its outcome. `opened`: the time at which its session began."""
        count, begun = self.counts[kind], self.now()
        count.calls += 1
        share = None
        try:
            reply = await action()
        except Lost as error:
            who, when = error.args if len(error.args) == 2 else (str(error), self.now())
            who = who.removeprefix("the connection to ").partition(" broke")[0]
            self.failed(kind, LOST, begun, who, f"{who} at {when - self.begun:.1f} s", now=when)
            raise Refused from None
        except AssertionError as error:
            text = str(error)
            name = "hangs" if " s " in text and "nothing arrived" in text else text[:60]
            self.failed(kind, name, begun, "", text)
            raise Refused from None
        else:
            share = self.shares[self.condition(begun)]
        finally:
            if share is None:
                self.shares[self.condition(begun)]["calls"] += 1
        if reply.status != 200:
            name = str(reply.status)
            share["calls"] += name != NO_SESSION
            if reply.status == 503 and not re.fullmatch(r"[1-9]|[12]\d|30", reply.headers.get("retry-after", "")):
                name = "503 without Retry-After"
            self.failed(kind, name, begun, reply.who, reply, opened)
            raise (SessionLost if reply.status == 404 else Refused)(str(reply))
        if not isinstance(reply.message, dict) or "result" not in reply.message:
            error = (reply.message or {}).get("error", {})
            # Without the ids that it names.
            message = re.split(r"[:;(]", str(error.get("message", "")))[0]
            name = f"{error.get('code', 'no answer')} {message[:40]}".strip()
            share["calls"] += name not in (NO_TASK, NO_STATE)
            self.failed(kind, name, begun, reply.who, reply)
            raise Refused(str(reply))
        count.good += 1
        share["calls"] += 1
        share["good"] += 1
        return reply

    def failed(
        self, kind: str, name: str, begun: float, who: str, what: object, opened: float = 0.0, now: float | None = None
    ) -> None:
        """Counts an error, which has to have a cause. `now`: the time at which it was, if it was seen later."""
        now = self.now() if now is None else now
        errors = self.counts[kind].errors
        errors[name if name in errors or len(errors) < 40 else "others"] += 1
        if not self.has_cause(name, begun, now, who, opened):
            reason = f"without its cause ({DEFINED[name]})" if name in DEFINED else "which is not defined"
            session = f" in a session of {opened - self.begun:.1f} s" if opened else ""
            self.complain(f"{kind}: {name} {reason}, asked {now - begun:.1f} s before{session}: {what}")

    def has_cause(self, name: str, begun: float, now: float, who: str, opened: float) -> bool:
        """True for an error that the disturbances of that time explain. `begun`: when it was asked for."""
        match name:
            case "502":
                return self.is_out(begun)
            case "503":
                return self.is_store_away(begun) or self.drained(who, begun) or self.was_slow(begun)
            case "-32603 the server was closed":
                return self.drained(who, begun)
            case "connection lost":
                seen = BROKEN + self.late
                return any(out.is_kill and out.of(who) and -SEEN < now - out.at < seen for out in self.ends)
            case "404":
                return any(at > opened for at in self.flushes) or self.is_spoiled(opened, 0.0)
            case "400 to Last-Event-ID":
                lost = (*self.flushes, *(away.end for away in self.away))
                return any(now - KEYS < at < now for at in lost)
            case "-32602 task not found":
                # The task itself is looked at by `follow`.
                return bool(self.flushes or self.away)
            case '-32602 "requestState"':
                return any(at < now < at + KEYS + SEEN for at in self.flushes)
        return False

    def meets(self, start: float, end: float, begun: float) -> bool:
        """True if a time has something of the one from `begun` until now, as far as clients can tell."""
        return start - SEEN < self.now() and end + SEEN + self.late > begun

    def is_out(self, begun: float) -> bool:
        """True if nginx may have had no process for what was asked for then."""
        return any(self.meets(out.at, out.back + BACK, begun) for out in self.ends)

    def is_store_away(self, begun: float) -> bool:
        return any(self.meets(away.start, away.end + AGAIN, begun) for away in self.away)

    def drained(self, who: str, begun: float) -> bool:
        """True if a process was asked to end then."""
        return any(not out.is_kill and out.of(who) and self.meets(out.at, out.back, begun) for out in self.ends)

    def was_slow(self, since: float) -> bool:
        """True if this machine was so busy since then that a store may have missed its deadline. Counts it."""
        is_slow = any(at > since - BACK for at in self.slow)
        self.as_defined["deadlines of the store on a busy machine"] += is_slow
        return is_slow

    def is_spoiled(self, at: float, after: float) -> bool:
        """True for what was written when the store was away or slow, or just before a failover."""
        is_slow = any(slow - DEADLINE - UNSURE < at < slow + after for slow in self.slow)
        return is_slow or any(away.spoils(at, after) for away in self.away)

    def condition(self, begun: float) -> str:
        return AWAY if self.is_store_away(begun) else OUT if self.is_out(begun) else WELL

    def right(self, kind: str, is_right: bool, what: object = "") -> None:
        if not is_right:
            self.counts[kind].wrong += 1
            self.complain(f"{kind}: not its own, or not right: {what}")

    # -- legacy clients

    async def session(self, number: int) -> None:
        """One client: opens a session, calls, asks and listens. A session that is lost is followed by another."""
        await self.rest()
        while not self.over.is_set():
            client = Client(self.world, by=FRONT, name=f"chaos-{number}")
            try:
                opened = self.now()
                await self.act("initialize", lambda client=client: client.initialize(limit=LIMIT))
                if not client.session:
                    raise Refused
                with contextlib.suppress(Lost, AssertionError):
                    await client.notify("notifications/initialized")
            except Refused:
                await self.pause()
                continue
            listener = Listener(self, client, opened)
            listening = asyncio.create_task(listener.run())
            try:
                await self.use(client, listener, number)
                await listener.settle()
            except SessionLost:
                self.gone += 1
                listener.session_lost = True
            finally:
                # Not cancelled: Python before 3.12 forgets a cancellation when something arrives just then.
                await listener.close()
                await listening
            if not listener.session_lost:
                listener.judge()
                with contextlib.suppress(Lost, AssertionError):
                    await client.delete()

    async def use(self, client: Client, listener: "Listener", number: int) -> None:
        ends, act = self.now() + self.given.lives * (0.5 + self.random.random()), self.act
        opened = listener.opened
        for turn in itertools.count():
            if self.over.is_set() or self.now() > ends:
                return
            text = f"{number}.{turn}"
            try:
                match turn % 4:
                    case 0 | 2:
                        echo = functools.partial(client.call, "echo", {"text": text}, limit=LIMIT)
                        reply = await act("call", echo, opened)
                        self.right("call", reply.tool == text, reply)
                    case 1:
                        await listener.change()
                    case 3:
                        reply = await act("question", functools.partial(self.ask, client, text), opened)
                        self.right("question", reply.tool == f"a{text} b{text} c{text}", reply)
            except SessionLost:
                raise
            except Refused:
                await self.pause()
            await self.rest()

    async def ask(self, client: Client, text: str) -> Reply:
        call = client.calling("three_questions")
        broken: list[float] = []
        call.task.add_done_callback(lambda _: broken.append(self.now()))
        try:
            for key in "abc":
                event = await call.next(LIMIT)
                if event is None or "method" not in event.message:
                    break
                body = {"jsonrpc": "2.0", "id": event.message["id"], "result": accepted(**{key: key + text})}
                reply = await self.answer(client, body)
                if reply.status != 202:
                    return reply
            else:
                return await call.answer(LIMIT)
            if event is not None:
                return Reply(call.who, call.status, call.headers, "", event.message)
            if not call.ended_in_order:
                raise Lost
            return Reply(call.who, call.status, call.headers, call.text)
        except Lost:
            if not broken or call.ended_in_order:
                raise
            # Perhaps while an answer was under way.
            raise Lost(call.who, broken[0]) from None
        finally:
            await call.close()

    async def answer(self, client: Client, body: Json) -> Reply:
        """Sends an answer, again if nobody took it: the question waits."""
        ends = self.now() + ANSWERED
        while True:
            begun = self.now()
            reply = await client.post(body, limit=LIMIT)
            name = str(reply.status)
            if name not in (BALANCER, STORE) or self.now() > ends:
                return reply
            self.failed("question", name, begun, reply.who, reply)
            await self.pause()

    async def rest(self) -> None:
        """The time between two requests of a client, not the same for all."""
        await asyncio.sleep(self.given.pause * (0.5 + self.random.random()))

    async def pause(self) -> None:
        """A client that was refused tries again later."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.over.wait(), 0.2 + self.random.random() * 0.3)

    # -- modern clients

    async def modern(self, number: int) -> None:
        client = Modern(self.world, elicitation={})
        await self.rest()
        for turn in itertools.count():
            if self.over.is_set():
                return
            text = f"m{number}.{turn}"
            try:
                if turn % 2:
                    reply = await self.act(
                        "modern call", lambda text=text: client.call("echo", {"text": text}, limit=LIMIT)
                    )
                    self.right("modern call", reply.tool == text, reply)
                else:
                    params = {"name": "three_questions", "arguments": {}}
                    for key in "abc":
                        reply = await self.act(
                            "modern question", lambda params=params: client.request("tools/call", params, limit=LIMIT)
                        )
                        [asked] = reply.message["result"]["inputRequests"]
                        params["requestState"] = reply.message["result"]["requestState"]
                        params["inputResponses"] = {asked: accepted(**{key: key + text})}
                    reply = await self.act(
                        "modern question", lambda params=params: client.request("tools/call", params, limit=LIMIT)
                    )
                    self.right("modern question", reply.tool == f"a{text} b{text} c{text}", reply)
            except Refused:
                await self.pause()
            await self.rest()

    async def listener(self, number: int) -> None:
        """A listen stream, and changes one after the other, each of which it has to bring once while it is open."""
        client, uri, kind = Modern(self.world), f"test://template/modern-{number}/data", "modern change"
        count = self.counts[kind]
        await self.rest()
        while not self.over.is_set():
            made = heard = anything = 0
            opened = self.now()
            stream: Events | None = None
            try:
                stream = self.watched(kind, await self.listen(client, uri))
                while not self.over.is_set():
                    made += 1
                    begun = self.now()
                    reply = await self.act(kind, lambda: client.call("touch", {"uri": uri}, limit=LIMIT))
                    try:
                        while (event := await stream.next(self.given.pause_store + SETTLES)) is not None:
                            name = told(event.message)
                            heard += name == uri
                            anything += name == "tools"
                            if name == uri or "method" not in event.message:
                                break
                            self.right(kind, name in LISTS, f"{name} on the stream of {uri}")
                    except AssertionError:
                        if not self.unsure(reply.who, begun):
                            count.lost += 1
                            self.complain(f"{kind}: {uri} was changed by {reply.who} and did not come to {stream.who}")
                        break
                    if event is None or "method" not in event.message:
                        break
                    await self.rest()
                # A change that came twice is more than what was made.
                with contextlib.suppress(AssertionError):
                    while (event := await stream.next(0.5)) is not None:
                        heard += told(event.message) == uri
                        anything += told(event.message) == "tools"
            except (Refused, AssertionError, Lost):
                await self.pause()
            finally:
                if stream:
                    await stream.close()
            # That anything may have changed is one more, and comes before the lists, which a kill may keep back.
            losses = sum(end + TOLD_AGAIN > opened for _, end in self.losses_of_changes())
            anything = max(anything, ANYTHING * losses)
            if (more := heard - made - anything) > 0:
                count.doubled += more
                self.complain(f"{kind}: {stream and stream.who} brought {uri} {heard} times, of {made} changes")

    async def listen(self, client: Modern, uri: str) -> Events:
        """A listen stream, whose refusals are counted as those of calls are."""
        begun, kind = self.now(), "modern change"
        wanted = {"toolsListChanged": True, "resourceSubscriptions": [uri]}
        stream = client.begin("subscriptions/listen", {"notifications": wanted})
        try:
            status = await stream.head(LIMIT)
            event = await stream.next(LIMIT) if status == 200 else None
        except AssertionError as error:
            self.failed(kind, "hangs", begun, stream.who, error)
            await stream.close()
            raise Refused from None
        if event and event.message.get("method") == "notifications/subscriptions/acknowledged":
            return stream
        if status and status != 200:
            self.failed(kind, str(status), begun, stream.who, f"{stream.who} {stream.text[:300]}")
        elif event:
            error = event.message.get("error", {})
            self.failed(kind, f"{error.get('code')} {error.get('message')}", begun, stream.who, event.message)
        elif not stream.ended_in_order:
            self.failed(kind, LOST, begun, stream.who, f"{stream.who}: {stream.end}")
        await stream.close()
        raise Refused

    def watched(self, kind: str, stream: Events) -> Events:
        """A stream whose end by the server, or break, has to have a cause."""

        def ended(_: asyncio.Task[None]) -> None:
            if self.is_done or stream.status != 200 or stream.end in (None, "closed by the client"):
                return
            begun = self.now()
            if not stream.ended_in_order:
                self.failed(kind, LOST, begun, stream.who, f"the stream of {stream.who} {stream.end}")
            elif not self.drained(stream.who, begun):
                self.complain(f"{kind}: the stream of {stream.who} {stream.end}, and that process did not drain")

        stream.task.add_done_callback(ended)
        return stream

    # -- tasks

    async def tasks(self, number: int) -> None:
        """A client that makes tasks of both kinds, and asks any process for them until they are over."""
        client, modern = Tasking(self.world, by=FRONT, name=f"tasks-{number}"), ModernTasking(self.world)
        opened = 0.0
        self.spies[f"t{number}"] = client
        for turn in itertools.count():
            if self.over.is_set():
                return
            arguments = {"seconds": self.random.random(), "label": f"t{number}.{turn}"}
            params: Json = {"name": "slow_compute", "arguments": arguments}
            try:
                if turn % 2:
                    make = functools.partial(modern.request, "tools/call", params, FRONT, LIMIT)
                    await self.follow("modern task", make, modern.request, arguments["label"])
                    continue
                if not client.session:
                    opened = self.now()
                    await self.act("initialize", lambda: client.initialize(limit=LIMIT))
                    with contextlib.suppress(Lost, AssertionError):
                        await client.notify("notifications/initialized")
                params["task"] = {"ttl": int(self.given.ttl * 1000)}
                make = functools.partial(client.request, "tools/call", params, FRONT, LIMIT)
                await self.follow("task", make, client.request, arguments["label"], opened)
            except SessionLost:
                self.gone += 1
                client.session = None
            except Refused:
                await self.pause()
            await self.rest()

    async def follow(
        self,
        kind: str,
        make: Callable[[], Awaitable[Reply]],
        request: Callable[..., Awaitable[Reply]],
        label: str,
        opened: float = 0.0,
    ) -> None:
        count, act = self.counts[kind], functools.partial(self.act, opened=opened)
        begun = self.now()
        reply = await act(kind, make)
        made = reply.result
        task, who = made.get("task", made)["taskId"], reply.who
        if kind == "task":
            await self.peep(label, task)
        missing: float | None = None
        while self.now() - begun < ENDS + self.time_away(begun):
            await asyncio.sleep(0.2)
            try:
                reply = await act(kind, lambda: request("tasks/get", {"taskId": task}, FRONT, LIMIT))
            except SessionLost:
                raise
            except Refused as refused:
                if "-32602" not in str(refused):
                    continue
                if self.went(who, begun):
                    self.as_defined["tasks lost"] += 1
                    return
                # Its process has it, and tells the store.
                missing = missing or self.now()
                if self.now() - max(missing, *self.losses(begun)) > TOLD_AGAIN:
                    count.lost += 1
                    self.complain(f"{kind}: {task} of {who} is not found: {refused}")
                    return
                continue
            missing, found = None, reply.result
            match found["status"]:
                case "completed":
                    if "result" in found:
                        self.right(kind, label in json.dumps(found["result"]), found)
                        return
                    ask = functools.partial(request, "tasks/result", {"taskId": task}, FRONT, LIMIT)
                    with contextlib.suppress(Refused):
                        result = await act(kind, ask)
                        self.right(kind, label in result.text, result)
                        return
                case "failed":
                    count.errors[FAILED] += 1
                    has_ended = any(out.of(who) and out.back > begun for out in self.ends)
                    self.right(kind, "process" in found.get("statusMessage", "") and has_ended, (who, found))
                    return
                case "cancelled":
                    self.right(kind, is_right=False, what=found)
                    return
        count.errors["hangs"] += 1
        self.complain(f"{kind}: {task} of {who} has no end in {ENDS:g} s")

    def losses(self, since: float) -> list[float]:
        """Times at which the store lost what it knew since then, or could be told again what it missed."""
        back = [away.end for away in self.away if away.end > since]
        return [0.0, *back, *(at for at in self.flushes if at > since)]

    def time_away(self, since: float) -> float:
        """Seconds since then in which nobody could ask the store."""
        return sum(min(away.end, self.now()) + AGAIN - away.start for away in self.away if away.end > since)

    def losses_of_changes(self) -> list[tuple[float, float]]:
        """Times in which processes see that the log has lost entries."""
        failovers = [(away.start, away.end) for away in self.away if away.lost_from is not None]
        return [*failovers, *((at, at) for at in self.flushes)]

    def went(self, who: str, made: float) -> bool:
        """True for a task that the store lost, or was never told of, and whose process has ended since."""
        has_ended = any(out.of(who) and out.at > made for out in self.ends)
        return has_ended and (self.is_spoiled(made, TOLD_AGAIN) or any(at > made for at in self.flushes))

    async def peep(self, label: str, task: str) -> None:
        """Asks for the task of another session, which nobody else may see."""
        own = label.partition(".")[0]
        others = [name for name, of in self.tasks_made.items() if of != own]
        self.tasks_made[task] = own
        if len(self.tasks_made) > 100:
            del self.tasks_made[next(iter(self.tasks_made))]
        if not others or own not in self.spies:
            return
        other = self.random.choice(others[-5:])
        method = self.random.choice(["tasks/get", "tasks/result", "tasks/cancel"])
        with contextlib.suppress(Lost, AssertionError):
            reply = await self.spies[own].request(method, {"taskId": other}, FRONT, LIMIT)
            is_seen = isinstance(reply.message, dict) and "result" in reply.message
            self.right("task", not is_seen, f"{method} of another's task: {reply}")

    # -- disturbances

    def planned(self, begins: float, lasts: float) -> list[tuple[float, Callable[[], Awaitable[None]]]]:
        """Disturbances that come once in a period, each at its part of it, and the time without any at its end."""
        given = self.given
        all_of_them = (
            (given.pause_store, 0.2, self.stop_store),
            (given.failover, 0.4, self.fail_over),
            (given.rolling, 0.6, self.roll),
            (given.flush, 0.75, self.flush),
            (given.quiet, 1.0, self.be_quiet),
        )
        return [(begins + lasts * part, action) for is_wanted, part, action in all_of_them if is_wanted]

    async def disturb(self) -> None:
        begun, given = self.now(), self.given
        periods = max(1, round(given.seconds / PERIOD))
        lasts = given.seconds / periods
        planned = [one for n in range(periods) for one in self.planned(begun + n * lasts, lasts)]
        while planned or self.now() - begun < given.seconds:
            await asyncio.sleep(given.every)
            if self.event and self.event.done():
                await self.event
                self.event = None
            if planned and not self.event and self.now() > planned[0][0]:
                action = planned.pop(0)[1]
                if action in (self.roll, self.be_quiet):
                    await self.all_back()
                    await action()
                    continue
                self.event = asyncio.create_task(action(), name="store")
            if given.how != "nothing":
                self.replace_one()
        if self.event:
            await self.event
        await self.all_back()
        self.over.set()

    def replace_one(self) -> None:
        """Ends one process, if at least half of them are left then, and waits for nothing."""
        there = [process for process in self.world.distinct if process.name not in self.replacing]
        if len(there) <= len(self.world.distinct) / 2 and self.replacing:
            return
        how = self.given.how if self.given.how != "both" else self.random.choice(["kill", "kill", "term"])
        self.done["killed" if how == "kill" else "restarted in order"] += 1
        process = self.random.choice(there)
        replacing = self.replacing[process.name] = asyncio.create_task(self.replace(process, how))

        def back(task: asyncio.Task[None]) -> None:
            del self.replacing[process.name]
            if not task.cancelled() and (error := task.exception()):
                self.complain(f"{process.name} did not come back: {error}")

        replacing.add_done_callback(back)

    async def all_back(self) -> None:
        if self.replacing:
            await asyncio.wait(list(self.replacing.values()))

    def mark(self, what: str) -> None:
        self.marks.append((self.now(), what))

    async def stop_store(self) -> None:
        self.done["store stopped"] += 1
        self.mark("store stopped")
        away = Away("stopped", self.now())
        self.away.note(away, self.now())
        self.world.store.signal(signal.SIGSTOP)
        await asyncio.sleep(self.given.pause_store)
        self.world.store.signal(signal.SIGCONT)
        away.end = self.now()
        self.mark("store goes on")
        # Writes that waited meanwhile follow when the store is asked again.
        await asyncio.sleep(AGAIN)

    async def fail_over(self) -> None:
        """The master goes, with what it was told in the last second, and its replica takes its place."""
        pair = self.world.pair
        assert pair
        await pair.in_step()
        self.done["store failed over"] += 1
        await pair.cut()
        cut = self.now()
        await asyncio.sleep(LAG)
        self.mark(f"master gone ({self.given.failover})")
        away = Away("failed over", self.now(), lost_from=cut)
        self.away.note(away, self.now())
        await pair.fail_over(signal.SIGKILL if self.given.failover == "kill" else signal.SIGSTOP)
        away.end = self.now()
        self.mark("replica is the master")
        await asyncio.sleep(AGAIN)
        await pair.heal()
        self.mark("master of before is back")

    async def flush(self) -> None:
        self.done["store flushed"] += 1
        self.mark("store flushed")
        self.flushes.note(self.now(), self.now())
        await self.world.store.do("FLUSHALL")

    async def be_quiet(self) -> None:
        """Disturbs nothing: when what was before is over, all calls have to be good."""
        self.mark("quiet")
        await asyncio.sleep(BACK + AGAIN + SEEN + self.late + self.given.quiet)
        self.mark("quiet no more")

    async def roll(self) -> None:
        """Restarts all processes in order, one after the other."""
        self.done["all restarted"] += 1
        for process in self.world.distinct:
            await self.replace(process, "term")

    async def replace(self, process: Process, how: str) -> None:
        out = Out(process.name, self.now(), how == "kill")
        self.mark(f"{process.name} {'killed' if out.is_kill else 'asked to end'}")
        self.ends.note(out, self.now())
        if how == "term":
            process.terminate()
            await process.ended(60)
        await process.kill()
        await process.start()
        out.back = self.now()

    def is_away(self, at: float) -> bool:
        """True for what was told to a store that stood still, had not been asked again since, or lost it."""
        return self.is_spoiled(at, AGAIN)

    def unsure(self, who: str, at: float) -> bool:
        """True if the process that answered was killed so soon after that its change may not be in the store."""
        return any(out.is_kill and out.of(who) and -UNSURE < out.at - at < UNSURE for out in self.ends)

    async def watch(self) -> None:
        """Measures how late this program is, and the memory of all programs ten times in the run."""
        step, next_look = 0.1, 0.0
        while True:
            begun = self.now()
            if begun - self.begun >= next_look:
                self.memory.look(begun - self.begun)
                next_look += self.given.seconds / 10
            await asyncio.sleep(step)
            late = self.now() - begun - step
            self.latest = max(self.latest, late)
            if late > DEADLINE:
                self.slow.note(self.now(), self.now())
            # A delay is still felt for some seconds.
            self.late = max(late, self.late * 0.98)

    async def ping(self) -> None:
        """Asks the store all the time, and notes when it takes longer than processes wait."""
        while True:
            begun = self.now()
            with contextlib.suppress(OSError, EOFError, TimeoutError):
                reader, writer = await asyncio.open_connection("127.0.0.1", self.world.store.port)
                try:
                    while True:
                        begun = self.now()
                        writer.write(b"PING\r\n")
                        async with asyncio.timeout(PROMPT):
                            await reader.readuntil(b"\r\n")
                        self.took(begun)
                        await asyncio.sleep(0.05)
                finally:
                    writer.close()
            self.took(begun)
            await asyncio.sleep(0.05)

    def took(self, begun: float) -> None:
        took = self.now() - begun
        if not self.is_store_away(begun):
            self.slowest = max(self.slowest, (took, self.now() - self.begun))
            if took > DEADLINE:
                self.mark(f"the store took {took:.2f} s")
                self.slow.note(self.now(), self.now())

    # -- the whole

    async def run(self) -> None:
        self.begun = self.now()
        given = self.given
        count = 1 + (given.sessions + given.modern) // 8
        self.world.http = Spread(self.world.http, count)  # type: ignore[assignment]
        clients = [asyncio.create_task(self.session(n), name=f"session {n}") for n in range(given.sessions)]
        clients += [asyncio.create_task(self.modern(n), name=f"modern {n}") for n in range(given.modern)]
        clients += [asyncio.create_task(self.listener(n), name=f"listener {n}") for n in range(given.modern)]
        clients += [asyncio.create_task(self.tasks(n), name=f"tasks {n}") for n in range(given.tasks)]
        disturbing = asyncio.create_task(self.disturb(), name="disturbances")
        watching = [asyncio.create_task(self.watch(), name="memory"), asyncio.create_task(self.ping(), name="ping")]
        try:
            await disturbing
            # Each request has a limit, and so has each client.
            _, late = await asyncio.wait(clients, timeout=ENDS + LIMIT + SETTLES)
            for client in late:
                stack = "; ".join(f"{frame.f_code.co_qualname}:{frame.f_lineno}" for frame in client.get_stack())
                self.complain(f"{client.get_name()} does not come to its end: {stack}")
            for client in clients:
                if client.done() and (error := client.exception()):
                    raise error
        finally:
            self.is_done = True
            for task in (disturbing, *watching, *clients, *self.replacing.values(), self.event):
                if task:
                    task.cancel()

    def undefined(self) -> list[str]:
        """Errors that no client has to expect."""
        return [
            f"{kind}: {name}" for kind, count in self.counts.items() for name in count.errors if name not in DEFINED
        ]

    def too_few(self) -> list[str]:
        """The kinds of calls of which too few were good."""
        parts = ((name, share, SHARES[name]) for name, share in self.shares.items() if share["calls"])
        return [
            f"while {name}, {share['good']} of {share['calls']} calls were good, and not {least:.0%}"
            for name, share, least in parts
            if share["good"] < share["calls"] * least
        ]

    def table(self) -> bool:
        """Prints what happened. True if nothing was lost, doubled or wrong."""
        head = f"{'':<16}{'calls':>8}{'good':>8}{'errors':>8}{'lost':>6}{'doubled':>9}{'wrong':>7}  errors by kind"
        print(head)
        for kind, count in self.counts.items():
            errors = ", ".join(f"{name}: {n}" for name, n in count.errors.most_common(8))
            total = sum(count.errors.values())
            line = (
                f"{kind:<16}{count.calls:>8}{count.good:>8}{total:>8}{count.lost:>6}{count.doubled:>9}{count.wrong:>7}"
            )
            print(f"{line}  {errors}")
        for name, share in self.shares.items():
            calls = share["calls"]
            print(
                f"while {name}: {calls} calls, {share['good'] / max(1, calls):.1%} good (at least {SHARES[name]:.0%})"
            )
        happened = ", ".join(f"{what} {n} times" for what, n in self.done.items()) or "nothing was disturbed"
        print(f"{happened}; sessions answered with 404: {self.gone}")
        defined = ", ".join(f"{n} {what}" for what, n in self.as_defined.items() if n) or "nothing"
        print(f"as defined, with the store: {defined}; this program was late by {self.latest:.2f} s at most")
        print("the store took {:.2f} s at most to answer, at {:.1f} s".format(*self.slowest))
        print(self.memory)
        if self.complained:
            print(f"{self.complained} complaints, the first of them below")
            print("; ".join(f"{when - self.begun:.1f} s: {what}" for when, what in self.marks))
        print("\n".join(self.complaints[:20]), end="\n" if self.complaints else "")
        few = self.too_few()
        print("\n".join(few), end="\n" if few else "")
        is_whole = not any(count.lost or count.doubled or count.wrong for count in self.counts.values())
        return is_whole and not (self.undefined() or self.complained or few)


class Spread:
    """Many clients of HTTP as one, since each of them looks at all of its connections for each request."""

    def __init__(self, first: httpx.AsyncClient, count: int) -> None:
        self.all = [first, *(new_http() for _ in range(count - 1))]
        self.turns = itertools.cycle(self.all)

    def stream(self, *given: Any, **more: Any) -> contextlib.AbstractAsyncContextManager[httpx.Response]:
        return next(self.turns).stream(*given, **more)

    async def aclose(self) -> None:
        await asyncio.gather(*(one.aclose() for one in self.all))


class Memory:
    """MiB of the programs over time."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.looks: list[tuple[float, dict[str, float]]] = []

    def look(self, at: float) -> None:
        found = {program.name: memory(program.process.pid) for program in self.world.distinct if program.process}
        if store := self.world.store.process:
            found["store"] = memory(store.pid)
        # Its master needs little.
        found["nginx"] = round(sum(memory(pid) for pid in self.world.front.children()), 1)
        self.looks.append((at, {**found, "this program": memory(os.getpid())}))

    def __str__(self) -> str:
        names = list(dict.fromkeys(name for _, found in self.looks for name in found))
        lines = ["MiB" + " " * 13 + "".join(f"{at:>7.0f}s" for at, _ in self.looks)]
        for name in names:
            lines.append(f"{name:<16}" + "".join(f"{found.get(name) or '-':>8}" for _, found in self.looks))
        return "\n".join(lines)


class Listener:
    """The standalone stream of a session, opened again at any process, and the changes that it has to bring."""

    def __init__(self, chaos: Chaos, client: Client, opened: float) -> None:
        self.chaos, self.client, self.opened = chaos, client, opened
        self.changes: dict[str, Change] = {}
        """Changes whose answers came."""
        self.seen: dict[str, list[float]] = {}
        """The times at which they came."""
        self.anything: list[float] = []
        """The times at which it heard that anything may have changed."""
        self.arrived = asyncio.Event()
        self.session_lost = self.is_closed = False
        self.last: str | None = None
        self.stream: Events | None = None
        self.places: deque[str] = deque(maxlen=6)
        """Processes of its streams, the newest last."""
        self.numbers = itertools.count()

    async def run(self) -> None:
        chaos = self.chaos
        while not self.is_closed:
            begun = chaos.now()
            stream = self.stream = self.client.stream(last=self.last)
            try:
                status = await stream.head(LIMIT)
                if status == 404:
                    self.session_lost = True
                    return
                if status == 400 and self.last:
                    chaos.failed("change", RESUMED, begun, stream.who, f"{stream.who} {stream.text[:300]}")
                    self.last = None
                elif status != 200 and not self.is_closed:
                    name = str(status) if status else LOST
                    chaos.failed("stream", name, begun, stream.who, f"{stream.who} {stream.text[:300]}")
                elif status == 200 and not self.is_closed:
                    chaos.watched("stream", stream)
                self.places.append(f"{stream.who} ({status}) at {chaos.now() - chaos.begun:.1f} s")
                while status == 200 and (event := await stream.next(3600)) is not None:
                    self.last = event.id or self.last
                    name = told(event.message)
                    if name == "tools":
                        self.anything.append(chaos.now())
                    if event.message.get("method") == "notifications/resources/updated":
                        self.seen.setdefault(name, []).append(chaos.now())
                        self.arrived.set()
                self.last = stream.last or self.last
            except asyncio.CancelledError:
                # Its response was closed while it was read.
                if not self.is_closed:
                    raise
            except AssertionError:
                if not self.is_closed:
                    chaos.failed("stream", "hangs", begun, stream.who, f"no head in {LIMIT:g} s")
            finally:
                await stream.close()
            await asyncio.sleep(0.1)

    async def change(self) -> None:
        """Changes a resource of this session's own, which its stream has to hear of once."""
        uri = f"test://template/{self.client.name}-{next(self.numbers)}/data"
        chaos, client = self.chaos, self.client
        subscribe = functools.partial(client.request, "resources/subscribe", {"uri": uri}, limit=LIMIT)
        begun = chaos.now()
        subscribed = await chaos.act("change", subscribe, self.opened)
        at = chaos.now()
        touch = functools.partial(client.call, "touch", {"uri": uri}, limit=LIMIT)
        reply = await chaos.act("change", touch, self.opened)
        # The others do not know of a subscription that its process could not tell the store, or that the store lost.
        is_sure = not any(map(chaos.is_away, (begun, at, chaos.now())))
        self.changes[uri] = Change(reply.who, at, subscribed.who, is_sure)

    def missing(self) -> list[str]:
        """Changes that did not come and have to. That one was made just before a failover is known only later."""
        chaos = self.chaos
        gone = [(uri, made) for uri, made in self.changes.items() if uri not in self.seen and made.is_sure]
        return [uri for uri, made in gone if not chaos.unsure(made.who, made.at) and not chaos.is_away(made.at)]

    async def settle(self) -> None:
        """Waits until all that has to arrive has arrived."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SETTLES):
                while self.missing() and not self.session_lost:
                    self.arrived.clear()
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self.arrived.wait(), 0.5)

    def judge(self) -> None:
        chaos, name = self.chaos, self.client.name
        count, places = chaos.counts["change"], ", ".join(self.places)
        missing = self.missing()
        for uri in missing:
            chaos.complain(f"change: {uri}, {self.made(uri)}, did not come; {places}")
        count.lost += len(missing)
        chaos.as_defined["changes lost"] += sum(uri not in self.seen for uri in self.changes) - len(missing)
        # After a loss in the store, clients hear once or twice that anything may have changed; and that a resource may
        # have, if the store knew late of the subscription.

        def is_blind(heard: float) -> bool:
            is_away = any(away.start - SEEN < heard < away.end + AGAIN for away in chaos.away)
            return is_away or any(heard - BACK < slow < heard + SEEN for slow in chaos.slow)

        for uri, times in self.seen.items():
            change = self.changes.get(uri)
            at, is_sure = (change.at, change.is_sure) if change else (times[0], False)
            again = 0
            for start, end in chaos.losses_of_changes():
                if at < end + TOLD_AGAIN:
                    again += min(ANYTHING, sum(when > start for when in times))
            # A stream of which the store can say nothing begins with all changes.
            told_all = sum(any(abs(when - heard) < 1 for heard in self.anything if is_blind(heard)) for when in times)
            if len(times) > 1 + again:
                chaos.as_defined["changes told again with all"] += min(told_all, len(times) - 1 - again)
            again += told_all
            if len(times) > 1 + again + UNSURE_TIMES * (not is_sure):
                count.doubled += 1
                when, anything = (
                    " ".join(f"{t - chaos.begun:.2f}" for t in all_[:8]) for all_ in (times, self.anything)
                )
                came = f"came {len(times)} times (at {when} s); anything at {anything} s"
                chaos.complain(f"change: {uri}, {self.made(uri)}, {came}; {places}")
            chaos.right("change", f"/{name}-" in uri, f"{uri} on the stream of {name}")

    def made(self, uri: str) -> str:
        change = self.changes.get(uri)
        if not change:
            return "whose call had no answer"
        away = "" if change.is_sure else ", while the store was away"
        return (
            f"changed by {change.who} at {change.at - self.chaos.begun:.1f} s{away}, subscribed at {change.subscribed}"
        )

    async def close(self) -> None:
        self.is_closed = True
        if self.stream:
            await self.stream.close()


def memory(pid: int) -> float:
    """MiB that a process has."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return round(int(line.split()[1]) / 1024, 1)
    return 0.0


async def figures(world: World) -> dict[str, int]:
    store = world.store
    names = {"used_memory": "bytes", "connected_clients": "connections"}
    return {"keys": len(await store.keys()), **{names[name]: await store.info(name) for name in names}}


def options(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lang", default=os.environ.get("TRICORN_SCALE_LANG", "rust"), choices=LANGS)
    parser.add_argument("--built", default=os.environ.get("TRICORN_SCALE_BUILT", str(TREE)), type=Path)
    parser.add_argument("--seconds", default=60.0, type=float)
    parser.add_argument("--sessions", default=50, type=int)
    parser.add_argument("--modern", default=20, type=int, help="clients of 2026-07-28, and listeners")
    parser.add_argument("--tasks", default=20, type=int, help="clients with tasks of both kinds")
    parser.add_argument("--ttl", default=600.0, type=float, help="seconds for which tasks are kept")
    parser.add_argument("--processes", default=2, type=int)
    parser.add_argument("--every", default=1.0, type=float, help="seconds between two disturbances")
    parser.add_argument("--how", default="both", choices=["kill", "term", "both", "nothing"])
    parser.add_argument("--pause-store", default=0.0, type=float, help="seconds for which the store stands still, once")
    parser.add_argument("--rolling", action="store_true", help="all processes are restarted in order, once")
    parser.add_argument("--flush", action="store_true", help="the store is emptied, once")
    kinds = ["kill", "stop"]
    text = "the store has a replica and a sentinel, and its master is killed, or stopped, once"
    parser.add_argument("--failover", nargs="?", const="kill", choices=kinds, help=text)
    parser.add_argument("--quiet", default=5.0, type=float, help="seconds at the end in which nothing is disturbed")
    parser.add_argument("--lives", default=90.0, type=float, help="seconds for which a session is used, about")
    parser.add_argument("--pause", type=float, help="seconds between two requests of a client")
    parser.add_argument("--seed", default=1, type=int)
    parser.add_argument("--sharing", default=SHARED, choices=[SHARED, NOTHING, ALONE])
    given = parser.parse_args(words)
    if given.pause is None:
        # As much as one program can send, and two processors can answer.
        given.pause = max(0.05, (given.sessions + 2 * given.modern + given.tasks) / 160)
    return given


def settings(given: argparse.Namespace) -> dict[str, str]:
    """Settings of the fixture server that these options need."""
    tasks = {"TASKS": str(int(given.ttl))} if given.tasks else {}
    return {"MAX_CONNECTIONS": str(4 * given.sessions + 1000), "DRAIN_TIMEOUT": "2", **tasks}


async def main() -> int:
    given = options()
    task = asyncio.current_task()
    assert task
    # Its programs end with it.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    world = World(given.lang, given.built, given.sharing)
    try:
        await world.start(given.processes, paired=bool(given.failover), **settings(given))
        before = await figures(world)
        chaos = Chaos(world, given)
        await chaos.run()
        fine = chaos.table()
        after = await figures(world)
        for what, count in before.items():
            print(f"{what} of the store: {count} before, {after[what]} after")
        return 0 if fine else 1
    finally:
        await world.stop()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
