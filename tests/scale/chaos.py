"""Many clients behind nginx while processes are killed and the store fails: what was lost, and what came twice.

`chaos.py --seconds 60 --sessions 50`. Prints a table; the status is 1 when something was lost, doubled or wrong.
"""

import argparse
import asyncio
import contextlib
import functools
import itertools
import json
import os
import random
import re
import signal
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from wire import Client, Events, Lost, Modern, ModernTasking, Reply, Tasking, accepted, told
from world import ALONE, FRONT, LANGS, NOTHING, SHARED, TREE, Json, Process, World

LIMIT = 45.0
"""Seconds after which a request hangs."""
SETTLES = 15.0
"""Seconds for what is still to arrive when all is well again."""
KINDS = (
    "initialize",
    "call",
    "question",
    "change",
    "task",
    "modern call",
    "modern question",
    "modern change",
    "modern task",
)
LISTS = ("tools", "resources", "prompts")
ENDS = 60.0
"""Seconds in which a task is over, also if its process was killed."""
UNSURE = 1.0
"""Seconds before a kill in which an answer does not show that its change was told to the store."""
ANYTHING = 2
"""Times that a client hears that anything may have changed, when the store was emptied."""
AGAIN = 4.0
"""Seconds in which a store that is back is asked again."""
TOLD_AGAIN = 12.0
"""Seconds in which the processes have told the store again what it lost, or what they could not tell it."""
BALANCER, STORE, DRAIN = "502", "503", "-32603 the server was closed"
DEFINED = {
    BALANCER: "no process took it",
    STORE: "the store is away",
    DRAIN: "it ran for longer than its process had to end",
    "connection lost": "its process was killed",
    "400 to Last-Event-ID": "the stream of before is not known any more",
    "failed with its process": "a task",
}
"""Errors that a client has to expect, by what is counted, with their reasons."""
AFTER_A_FLUSH = {
    "404": "the session",
    "-32602 task not found": "the task",
    '-32602 "requestState"': "the key of the state",
}
"""Errors for what a store lost that was emptied."""


@dataclass
class Count:
    """Requests of one kind, and their ends."""

    calls: int = 0
    good: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    lost: int = 0
    doubled: int = 0
    wrong: int = 0


class Refused(Exception):  # noqa: N818 - an outcome
    """A defined error."""


class SessionLost(Refused):
    """404: the session is gone."""


class Chaos:
    def __init__(self, world: World, given: argparse.Namespace) -> None:
        self.world, self.given = world, given
        self.counts = {kind: Count() for kind in KINDS}
        self.over = asyncio.Event()
        self.ends: list[tuple[str, float, bool]] = []
        """Processes that ended, the times, and `True` for those that were killed."""
        self.done: Counter[str] = Counter()
        self.flushed: float | None = None
        """The time at which the store was emptied."""
        self.away: list[tuple[float, float]] = []
        """Times in which the store stood still."""
        self.gone = 0
        """Sessions that were answered with 404."""
        self.complaints: list[str] = []
        """Lost, doubled, wrong or undefined ends, in words."""
        self.spies: dict[str, Tasking] = {}
        """Clients that also ask for tasks of others."""
        self.tasks_made: dict[str, str] = {}
        """Tasks of sessions, and their clients."""
        self.begun = self.now()
        self.random = random.Random(given.seed)

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def complain(self, text: str) -> None:
        self.complaints.append(f"{self.now() - self.begun:.1f} s: {text}")

    @property
    def was_flushed(self) -> bool:
        return self.flushed is not None

    async def act(self, kind: str, action: Callable[[], Awaitable[Reply]]) -> Reply:
        """Counts a request with its outcome."""
        count = self.counts[kind]
        count.calls += 1
        try:
            reply = await action()
        except Lost:
            count.errors["connection lost"] += 1
            raise Refused from None
        except AssertionError as error:
            text = str(error)
            count.errors["hangs" if " s " in text and "nothing arrived" in text else text[:60]] += 1
            raise Refused from None
        if reply.status != 200:
            name = str(reply.status)
            if reply.status == 503 and not re.fullmatch(r"[1-9]|[12]\d|30", reply.headers.get("retry-after", "")):
                name = "503 without Retry-After"
            self.failed(kind, name, reply)
            raise (SessionLost if reply.status == 404 else Refused)(str(reply))
        if not isinstance(reply.message, dict) or "result" not in reply.message:
            error = (reply.message or {}).get("error", {})
            # Without the ids that it names.
            message = re.split(r"[:;(]", str(error.get("message", "")))[0]
            self.failed(kind, f"{error.get('code', 'no answer')} {message[:40]}".strip(), reply)
            raise Refused(str(reply))
        count.good += 1
        return reply

    def failed(self, kind: str, name: str, reply: Reply) -> None:
        self.counts[kind].errors[name] += 1
        if name not in DEFINED and name not in AFTER_A_FLUSH:
            self.complain(f"{kind}: {reply}")

    def right(self, kind: str, is_right: bool, what: object = "") -> None:
        if not is_right:
            self.counts[kind].wrong += 1
            self.complain(f"{kind}: not its own, or not right: {what}")

    # -- legacy clients

    async def session(self, number: int) -> None:
        """One client: opens a session, calls, asks and listens. A session that is lost is followed by another."""
        while not self.over.is_set():
            client = Client(self.world, by=FRONT, name=f"chaos-{number}")
            try:
                await self.act("initialize", lambda client=client: client.initialize(limit=LIMIT))
                if not client.session:
                    raise Refused
                with contextlib.suppress(Lost, AssertionError):
                    await client.notify("notifications/initialized")
            except Refused:
                await self.pause()
                continue
            listener = Listener(self, client)
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
        for turn in itertools.count():
            if self.over.is_set():
                return
            text = f"{number}.{turn}"
            try:
                match turn % 4:
                    case 0 | 2:
                        reply = await self.act(
                            "call", lambda text=text: client.call("echo", {"text": text}, limit=LIMIT)
                        )
                        self.right("call", reply.tool == text, reply)
                    case 1:
                        await listener.change()
                    case 3:
                        reply = await self.act("question", lambda text=text: self.ask(client, text))
                        self.right("question", reply.tool == f"a{text} b{text} c{text}", reply)
            except SessionLost:
                raise
            except Refused:
                await self.pause()
            await asyncio.sleep(self.given.pause)

    async def ask(self, client: Client, text: str) -> Reply:
        call = client.calling("three_questions")
        try:
            for key in "abc":
                event = await call.next(LIMIT)
                if event is None or "method" not in event.message:
                    break
                body = {"jsonrpc": "2.0", "id": event.message["id"], "result": accepted(**{key: key + text})}
                reply = await client.post(body, limit=LIMIT)
                if reply.status != 202:
                    return reply
            else:
                return await call.answer(LIMIT)
            if event is not None:
                return Reply(call.who, call.status, call.headers, "", event.message)
            if not call.ended_in_order:
                raise Lost
            return Reply(call.who, call.status, call.headers, call.text)
        finally:
            await call.close()

    async def pause(self) -> None:
        """A client that was refused tries again later."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.over.wait(), 0.2 + self.random.random() * 0.3)

    # -- modern clients

    async def modern(self, number: int) -> None:
        client = Modern(self.world, elicitation={})
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
            await asyncio.sleep(self.given.pause)

    async def listener(self, number: int) -> None:
        """A listen stream, and changes one after the other, each of which it has to bring once while it is open."""
        client, uri, kind = Modern(self.world), f"test://template/modern-{number}/data", "modern change"
        count = self.counts[kind]
        while not self.over.is_set():
            made = heard = anything = 0
            opened = self.now()
            stream: Events | None = None
            try:
                stream = await client.listen(uri, FRONT)
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
                    await asyncio.sleep(self.given.pause)
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
            if self.flushed and self.flushed > opened:
                anything = max(anything, ANYTHING)
            if (more := heard - made - anything) > 0:
                count.doubled += more
                self.complain(f"{kind}: {stream and stream.who} brought {uri} {heard} times, of {made} changes")

    # -- tasks

    async def tasks(self, number: int) -> None:
        """A client that makes tasks of both kinds, and asks any process for them until they are over."""
        client, modern = Tasking(self.world, by=FRONT, name=f"tasks-{number}"), ModernTasking(self.world)
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
                    await self.act("initialize", lambda: client.initialize(limit=LIMIT))
                    with contextlib.suppress(Lost, AssertionError):
                        await client.notify("notifications/initialized")
                params["task"] = {"ttl": int(self.given.ttl * 1000)}
                make = functools.partial(client.request, "tools/call", params, FRONT, LIMIT)
                await self.follow("task", make, client.request, arguments["label"])
            except SessionLost:
                self.gone += 1
                client.session = None
            except Refused:
                await self.pause()
            await asyncio.sleep(self.given.pause)

    async def follow(
        self,
        kind: str,
        make: Callable[[], Awaitable[Reply]],
        request: Callable[..., Awaitable[Reply]],
        label: str,
    ) -> None:
        count = self.counts[kind]
        begun = self.now()
        reply = await self.act(kind, make)
        made = reply.result
        task, who = made.get("task", made)["taskId"], reply.who
        if kind == "task":
            await self.peep(label, task)
        missing: float | None = None
        while self.now() - begun < ENDS:
            await asyncio.sleep(0.2)
            try:
                reply = await self.act(kind, lambda: request("tasks/get", {"taskId": task}, FRONT, LIMIT))
            except SessionLost:
                raise
            except Refused as refused:
                if "-32602" not in str(refused):
                    continue
                if self.went(who, begun):
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
                        result = await self.act(kind, ask)
                        self.right(kind, label in result.text, result)
                        return
                case "failed":
                    count.errors["failed with its process"] += 1
                    has_ended = any(who.startswith(name) and when > begun - 10 for name, when, _ in self.ends)
                    self.right(kind, "process" in found.get("statusMessage", "") and has_ended, (who, found))
                    return
                case "cancelled":
                    self.right(kind, is_right=False, what=found)
                    return
        count.errors["hangs"] += 1
        self.complain(f"{kind}: {task} of {who} has no end in {ENDS:g} s")

    def losses(self, since: float) -> list[float]:
        """Times at which the store lost what it knew since then, or could be told again what it missed."""
        back = [end for _, end in self.away if end > since]
        return [0.0, *back, *([self.flushed] if self.flushed and self.flushed > since else [])]

    def went(self, who: str, made: float) -> bool:
        """True for a task that the store lost, or was never told of, and whose process has ended since."""
        ended = [when for name, when, _ in self.ends if who.startswith(name) and when > made]
        away = any(start - UNSURE < made < end + TOLD_AGAIN for start, end in self.away)
        return bool(ended) and (away or (self.flushed is not None and self.flushed > made))

    async def peep(self, label: str, task: str) -> None:
        """Asks for the task of another session, which nobody else may see."""
        own = label.partition(".")[0]
        others = [name for name, of in self.tasks_made.items() if of != own]
        self.tasks_made[task] = own
        if not others or own not in self.spies:
            return
        other = self.random.choice(others[-5:])
        method = self.random.choice(["tasks/get", "tasks/result", "tasks/cancel"])
        with contextlib.suppress(Lost, AssertionError):
            reply = await self.spies[own].request(method, {"taskId": other}, FRONT, LIMIT)
            is_seen = isinstance(reply.message, dict) and "result" in reply.message
            self.right("task", not is_seen, f"{method} of another's task: {reply}")

    # -- disturbances

    async def disturb(self) -> None:
        begun, given = self.now(), self.given
        # Each once, at its part of the time.
        planned: list[tuple[float, Callable[[], Awaitable[None]]]] = []
        if given.pause_store:
            planned.append((given.seconds / 3, self.stop_store))
        if given.rolling:
            planned.append((given.seconds / 2, self.roll))
        if given.flush:
            planned.append((given.seconds * 0.6, self.flush))
        while planned or self.now() - begun < given.seconds:
            await asyncio.sleep(given.every)
            if planned and self.now() - begun > planned[0][0]:
                await planned.pop(0)[1]()
            elif given.how != "nothing":
                how = given.how if given.how != "both" else self.random.choice(["kill", "term"])
                self.done["killed" if how == "kill" else "restarted in order"] += 1
                await self.replace(self.random.choice(self.world.distinct), how)
        self.over.set()

    async def stop_store(self) -> None:
        self.done["store stopped"] += 1
        stopped = self.now()
        self.away.append((stopped, stopped + self.given.pause_store + AGAIN))
        self.world.store.signal(signal.SIGSTOP)
        await asyncio.sleep(self.given.pause_store)
        self.world.store.signal(signal.SIGCONT)
        self.away[-1] = (stopped, self.now())
        # Writes that waited meanwhile follow when the store is asked again.
        await asyncio.sleep(AGAIN)

    async def flush(self) -> None:
        self.done["store flushed"] += 1
        self.flushed = self.now()
        await self.world.store.do("FLUSHALL")

    async def roll(self) -> None:
        """Restarts all processes in order, one after the other."""
        self.done["all restarted"] += 1
        for process in self.world.distinct:
            await self.replace(process, "term")

    async def replace(self, process: Process, how: str) -> None:
        self.ends.append((process.name, self.now(), how == "kill"))
        if how == "term":
            process.terminate()
            await process.ended(60)
        await process.kill()
        await process.start()

    def is_away(self, at: float) -> bool:
        """True for a time at which the store stood still, or had not been asked again since."""
        return any(start - UNSURE < at < end + AGAIN for start, end in self.away)

    def unsure(self, who: str, at: float) -> bool:
        """True if the process that answered was killed so soon after that its change may not be in the store."""
        return any(
            is_kill and who.startswith(name) and -UNSURE < when - at < UNSURE for name, when, is_kill in self.ends
        )

    # -- the whole

    async def run(self) -> None:
        self.begun = self.now()
        given = self.given
        clients = [asyncio.create_task(self.session(n), name=f"session {n}") for n in range(given.sessions)]
        clients += [asyncio.create_task(self.modern(n), name=f"modern {n}") for n in range(given.modern)]
        clients += [asyncio.create_task(self.listener(n), name=f"listener {n}") for n in range(given.modern)]
        clients += [asyncio.create_task(self.tasks(n), name=f"tasks {n}") for n in range(given.tasks)]
        disturbing = asyncio.create_task(self.disturb(), name="disturbances")
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
            for task in (disturbing, *clients):
                task.cancel()

    def undefined(self) -> list[str]:
        """Errors that no client has to expect."""
        expected = {*DEFINED, *(AFTER_A_FLUSH if self.was_flushed else ())}
        return [
            f"{kind}: {name}" for kind, count in self.counts.items() for name in count.errors if name not in expected
        ]

    def table(self) -> bool:
        """Prints what happened. True if nothing was lost, doubled or wrong."""
        head = f"{'':<16}{'calls':>8}{'good':>8}{'errors':>8}{'lost':>6}{'doubled':>9}{'wrong':>7}  errors by kind"
        print(head)
        fine = not self.undefined()
        for kind, count in self.counts.items():
            errors = ", ".join(f"{name}: {n}" for name, n in count.errors.most_common(8))
            total = sum(count.errors.values())
            line = (
                f"{kind:<16}{count.calls:>8}{count.good:>8}{total:>8}{count.lost:>6}{count.doubled:>9}{count.wrong:>7}"
            )
            print(f"{line}  {errors}")
            fine &= not (count.lost or count.doubled or count.wrong)
        happened = ", ".join(f"{what} {n} times" for what, n in self.done.items()) or "nothing was disturbed"
        print(f"{happened}; sessions answered with 404: {self.gone}")
        marks = [(when, f"{name} {'killed' if is_kill else 'restarted'}") for name, when, is_kill in self.ends]
        marks += [(start, f"store stopped for {end - start:.1f} s") for start, end in self.away]
        marks += [(self.flushed, "store flushed")] if self.flushed else []
        if self.complaints:
            print(f"{len(self.complaints)} complaints, the first of them below")
            print("; ".join(f"{when - self.begun:.1f} s: {what}" for when, what in sorted(marks)))
        print("\n".join(self.complaints[:20]), end="\n" if self.complaints else "")
        return fine and not self.complaints and (self.was_flushed or not self.gone)


class Listener:
    """The standalone stream of a session, opened again at any process, and the changes that it has to bring."""

    def __init__(self, chaos: Chaos, client: Client) -> None:
        self.chaos, self.client = chaos, client
        self.changes: dict[str, tuple[str, float]] = {}
        """Changes whose answers came, the processes that answered, and times."""
        self.subscribed: dict[str, str] = {}
        """The processes that answered the subscriptions."""
        self.seen: Counter[str] = Counter()
        self.anything = 0
        """Number of times that it heard that anything may have changed."""
        self.arrived = asyncio.Event()
        self.session_lost = self.is_closed = False
        self.last: str | None = None
        self.stream: Events | None = None
        self.places: list[str] = []
        """Processes of its streams, the newest last."""
        self.numbers = itertools.count()

    async def run(self) -> None:
        while not self.is_closed:
            stream = self.stream = self.client.stream(last=self.last)
            try:
                status = await stream.head(LIMIT)
                if status == 404:
                    self.session_lost = True
                    return
                if status == 400 and self.last:
                    self.chaos.counts["change"].errors["400 to Last-Event-ID"] += 1
                    self.last = None
                self.places.append(f"{stream.who} ({status}) at {self.chaos.now() - self.chaos.begun:.1f} s")
                while status == 200 and (event := await stream.next(3600)) is not None:
                    self.last = event.id or self.last
                    name = told(event.message)
                    self.anything += name == "tools"
                    if event.message.get("method") == "notifications/resources/updated":
                        self.seen[name] += 1
                        self.arrived.set()
                self.last = stream.last or self.last
            except asyncio.CancelledError:
                # Its response was closed while it was read.
                if not self.is_closed:
                    raise
            except AssertionError:
                if not self.is_closed:
                    self.chaos.counts["change"].errors["hangs"] += 1
                    self.chaos.complain(f"a stream of {self.client.name} has no head in {LIMIT:g} s")
            finally:
                await stream.close()
            await asyncio.sleep(0.1)

    async def change(self) -> None:
        """Changes a resource of this session's own, which its stream has to hear of once."""
        uri = f"test://template/{self.client.name}-{next(self.numbers)}/data"
        chaos, client = self.chaos, self.client
        subscribed = await chaos.act("change", lambda: client.request("resources/subscribe", {"uri": uri}, limit=LIMIT))
        begun = chaos.now()
        reply = await chaos.act("change", lambda: client.call("touch", {"uri": uri}, limit=LIMIT))
        # The others do not know of a subscription that its process could not tell the store.
        if not chaos.is_away(begun):
            self.changes[uri] = (reply.who, begun)
            self.subscribed[uri] = subscribed.who

    def missing(self) -> list[str]:
        return [uri for uri, made in self.changes.items() if not self.seen[uri] and not self.chaos.unsure(*made)]

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
        count = chaos.counts["change"]
        for uri in self.missing():
            who, at = self.changes[uri]
            count.lost += 1
            places = ", ".join(self.places[-6:])
            made = f"changed by {who} at {at - chaos.begun:.1f} s, subscribed at {self.subscribed[uri]}"
            chaos.complain(f"change: {uri}, {made}, did not come; {places}")
        # After a loss in the store, clients hear once or twice that anything may have changed; and that a resource may
        # have, if the store knew late of the subscription.
        for uri, times in self.seen.items():
            who, at = self.changes.get(uri, ("", 0.0))
            may_repeat = chaos.flushed is not None and at < chaos.flushed + TOLD_AGAIN
            if times > 1 + ANYTHING * may_repeat + (uri not in self.changes):
                count.doubled += 1
                made = f"changed by {who} at {at - chaos.begun:.1f} s" if who else "changed while the store was away"
                places = ", ".join(self.places[-6:])
                chaos.complain(f"change: {uri}, {made}, came {times} times; anything {self.anything} times; {places}")
            chaos.right("change", f"/{name}-" in uri, f"{uri} on the stream of {name}")

    async def close(self) -> None:
        self.is_closed = True
        if self.stream:
            await self.stream.close()


def memory(process: Process) -> float:
    """MiB that a process has."""
    assert process.process
    for line in Path(f"/proc/{process.process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
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
    parser.add_argument("--pause", default=0.05, type=float, help="seconds between two requests of a client")
    parser.add_argument("--seed", default=1, type=int)
    parser.add_argument("--sharing", default=SHARED, choices=[SHARED, NOTHING, ALONE])
    return parser.parse_args(words)


def settings(given: argparse.Namespace) -> dict[str, str]:
    """Settings of the fixture server that these options need."""
    tasks = {"TASKS": str(int(given.ttl))} if given.tasks else {}
    return {"MAX_CONNECTIONS": str(4 * given.sessions + 1000), **tasks}


async def main() -> int:
    given = options()
    task = asyncio.current_task()
    assert task
    # Its programs end with it.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    world = World(given.lang, given.built, given.sharing)
    try:
        await world.start(given.processes, **settings(given))
        before = await figures(world)
        chaos = Chaos(world, given)
        await chaos.run()
        fine = chaos.table()
        after = await figures(world)
        for what, count in before.items():
            print(f"{what} of the store: {count} before, {after[what]} after")
        print("memory of the processes: " + ", ".join(f"{memory(process):.0f} MiB" for process in world.distinct))
        return 0 if fine else 1
    finally:
        await world.stop()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
