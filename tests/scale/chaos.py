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
SETTLES = 30.0
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
ENDS = 60.0
"""Seconds in which a task is over, also if its process was killed."""
UNSURE = 1.0
"""Seconds before a kill in which an answer does not show that its change was told to the store."""


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
        self.kills: list[tuple[str, float]] = []
        self.done: Counter[str] = Counter()
        self.flushed = False
        self.is_away = False
        """The store stands still, or did a moment ago."""
        self.gone = 0
        """Sessions that were answered with 404."""
        self.random = random.Random(given.seed)

    def now(self) -> float:
        return asyncio.get_running_loop().time()

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
            count.errors[f"{reply.status}"] += 1
            raise (SessionLost if reply.status == 404 else Refused)(str(reply))
        if not isinstance(reply.message, dict) or "result" not in reply.message:
            error = (reply.message or {}).get("error", {})
            count.errors[f"{error.get('code', 'no answer')} {str(error.get('message', ''))[:30]}".strip()] += 1
            raise Refused(str(reply))
        count.good += 1
        return reply

    def right(self, kind: str, is_right: bool) -> None:
        if not is_right:
            self.counts[kind].wrong += 1

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
                listening.cancel()
                await asyncio.wait({listening})
                await listener.close()
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
                        self.right("call", reply.tool == text)
                    case 1:
                        await listener.change()
                    case 3:
                        reply = await self.act("question", lambda text=text: self.ask(client, text))
                        self.right("question", reply.tool == f"a{text} b{text} c{text}")
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
                    self.right("modern call", reply.tool == text)
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
                    self.right("modern question", reply.tool == f"a{text} b{text} c{text}")
            except Refused:
                await self.pause()
            await asyncio.sleep(self.given.pause)

    async def listener(self, number: int) -> None:
        """A listen stream, and changes one after the other, each of which it has to bring once while it is open."""
        client, uri, kind = Modern(self.world), f"test://template/modern-{number}/data", "modern change"
        count = self.counts[kind]
        while not self.over.is_set():
            made = heard = 0
            stream: Events | None = None
            try:
                stream = await client.listen(uri, FRONT)
                while not self.over.is_set():
                    made += 1
                    begun = self.now()
                    reply = await self.act(kind, lambda: client.call("touch", {"uri": uri}, limit=LIMIT))
                    try:
                        event = await stream.next(self.given.pause_store + SETTLES)
                    except AssertionError:
                        count.lost += not self.flushed and not self.unsure(reply.who, begun)
                        break
                    if event is None or "method" not in event.message:
                        break
                    heard += 1
                    await asyncio.sleep(self.given.pause)
                # A change that came twice is more than what was made.
                with contextlib.suppress(AssertionError):
                    while (event := await stream.next(0.5)) is not None:
                        heard += "method" in event.message
                count.doubled += max(0, heard - made) if not self.flushed else 0
            except (Refused, AssertionError, Lost):
                await self.pause()
            finally:
                if stream:
                    await stream.close()

    # -- tasks

    async def tasks(self, number: int) -> None:
        """A client that makes tasks of both kinds, and asks any process for them until they are over."""
        client, modern = Tasking(self.world, by=FRONT, name=f"tasks-{number}"), ModernTasking(self.world)
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
                params["task"] = {"ttl": 600_000}
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
        count, away = self.counts[kind], self.is_away
        made = (await self.act(kind, make)).result
        task = made.get("task", made)["taskId"]
        begun = self.now()
        unsure = away or self.is_away
        while self.now() - begun < ENDS:
            await asyncio.sleep(0.2)
            try:
                reply = await self.act(kind, lambda: request("tasks/get", {"taskId": task}, FRONT, LIMIT))
            except SessionLost:
                raise
            except Refused as refused:
                unsure |= self.is_away
                if "-32602" in str(refused):
                    # One that was made while the store was away went with its process.
                    count.lost += not self.flushed and not unsure
                    return
                continue
            found = reply.result
            match found["status"]:
                case "completed":
                    if "result" in found:
                        self.right(kind, label in json.dumps(found["result"]))
                    elif not self.over.is_set():
                        ask = functools.partial(request, "tasks/result", {"taskId": task}, FRONT, LIMIT)
                        result = await self.act(kind, ask)
                        self.right(kind, label in result.text)
                    return
                case "failed":
                    count.errors["failed with its process"] += 1
                    self.right(kind, "process" in found.get("statusMessage", "") and bool(self.kills))
                    return
                case "cancelled":
                    self.right(kind, is_right=False)
                    return
        count.errors["hangs"] += 1

    # -- disturbances

    async def disturb(self) -> None:
        begun, given = self.now(), self.given
        paused = flushed = False
        while (passed := self.now() - begun) < given.seconds:
            await asyncio.sleep(given.every)
            if given.pause_store and not paused and passed > given.seconds / 3:
                paused = True
                self.done["store stopped"] += 1
                self.is_away = True
                self.world.store.signal(signal.SIGSTOP)
                await asyncio.sleep(given.pause_store)
                self.world.store.signal(signal.SIGCONT)
                # A task that was made meanwhile is written when the store is asked again.
                await asyncio.sleep(4)
                self.is_away = False
            elif given.flush and not flushed and passed > given.seconds * 2 / 3:
                flushed = self.flushed = True
                self.done["store flushed"] += 1
                await self.world.store.do("FLUSHALL")
            elif given.how != "nothing":
                await self.replace(self.random.choice(self.world.distinct))
        self.over.set()

    async def replace(self, process: Process) -> None:
        how = self.given.how if self.given.how != "both" else self.random.choice(["kill", "term"])
        self.done["killed" if how == "kill" else "restarted in order"] += 1
        self.kills.append((process.name, self.now()))
        if how == "term":
            process.terminate()
            await process.ended(60)
        await process.kill()
        await process.start()

    def unsure(self, who: str, at: float) -> bool:
        """True if the process that answered was killed so soon after that its change may not be in the store."""
        return any(who.startswith(name) and -UNSURE < when - at < UNSURE for name, when in self.kills)

    # -- the whole

    async def run(self) -> None:
        clients = [asyncio.create_task(self.session(n)) for n in range(self.given.sessions)]
        clients += [asyncio.create_task(self.modern(n)) for n in range(self.given.modern)]
        clients += [asyncio.create_task(self.listener(n)) for n in range(self.given.modern)]
        clients += [asyncio.create_task(self.tasks(n)) for n in range(self.given.tasks)]
        disturbing = asyncio.create_task(self.disturb())
        await disturbing
        await asyncio.gather(*clients)

    def table(self) -> bool:
        """Prints what happened. True if nothing was lost, doubled or wrong."""
        head = f"{'':<16}{'calls':>8}{'good':>8}{'errors':>8}{'lost':>6}{'doubled':>9}{'wrong':>7}  errors by kind"
        print(head)
        fine = True
        for kind, count in self.counts.items():
            errors = ", ".join(f"{name}: {n}" for name, n in count.errors.most_common(8))
            total = sum(count.errors.values())
            line = (
                f"{kind:<16}{count.calls:>8}{count.good:>8}{total:>8}{count.lost:>6}{count.doubled:>9}{count.wrong:>7}"
            )
            print(f"{line}  {errors}")
            fine &= not (count.lost or count.doubled or count.wrong or count.errors["hangs"])
        happened = ", ".join(f"{what} {n} times" for what, n in self.done.items()) or "nothing was disturbed"
        print(f"{happened}; sessions answered with 404: {self.gone}")
        return fine and (self.flushed or not self.gone)


class Listener:
    """The standalone stream of a session, opened again at any process, and the changes that it has to bring."""

    def __init__(self, chaos: Chaos, client: Client) -> None:
        self.chaos, self.client = chaos, client
        self.touched: set[str] = set()
        """Changes whose answers came."""
        self.maybe: set[str] = set()
        """Changes of which nobody can tell whether they were made."""
        self.seen: Counter[str] = Counter()
        self.arrived = asyncio.Event()
        self.session_lost = False
        self.last: str | None = None
        self.stream: Events | None = None
        self.numbers = itertools.count()
        self.answers: list[tuple[str, str, float]] = []
        """Changes, the processes that answered, and times."""

    async def run(self) -> None:
        while True:
            stream = self.stream = self.client.stream(last=self.last)
            try:
                status = await stream.head(LIMIT)
                if status == 404:
                    self.session_lost = True
                    return
                if status == 400 and self.last:
                    self.chaos.counts["change"].errors["400 to Last-Event-ID"] += 1
                    self.last = None
                while status == 200 and (event := await stream.next(3600)) is not None:
                    self.last = event.id or self.last
                    if event.message.get("method") == "notifications/resources/updated":
                        self.seen[told(event.message)] += 1
                        self.arrived.set()
                self.last = stream.last or self.last
            except AssertionError:
                self.chaos.counts["change"].errors["a stream hangs"] += 1
            finally:
                await stream.close()
            await asyncio.sleep(0.1)

    async def change(self) -> None:
        """Changes a resource of this session's own, which its stream has to hear of once."""
        uri = f"test://template/{self.client.name}-{next(self.numbers)}/data"
        chaos, client = self.chaos, self.client
        await chaos.act("change", lambda: client.request("resources/subscribe", {"uri": uri}, limit=LIMIT))
        begun = chaos.now()
        self.maybe.add(uri)
        reply = await chaos.act("change", lambda: client.call("touch", {"uri": uri}, limit=LIMIT))
        self.touched.add(uri)
        if not chaos.unsure(reply.who, begun):
            self.maybe.discard(uri)
        self.answers.append((uri, reply.who, chaos.now()))

    def missing(self) -> list[str]:
        for uri, who, at in self.answers:
            if self.chaos.unsure(who, at):
                self.maybe.add(uri)
        return [uri for uri in self.touched if uri not in self.maybe and not self.seen[uri]]

    async def settle(self) -> None:
        """Waits until all that has to arrive has arrived."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SETTLES):
                while self.missing() and not self.session_lost:
                    self.arrived.clear()
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self.arrived.wait(), 0.5)

    def judge(self) -> None:
        count = self.chaos.counts["change"]
        if not self.chaos.flushed:
            count.lost += len(self.missing())
        count.doubled += sum(times - 1 for times in self.seen.values() if times > 1)
        foreign = [uri for uri in self.seen if f"/{self.client.name}-" not in uri]
        count.wrong += len(foreign)

    async def close(self) -> None:
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


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lang", default=os.environ.get("TRICORN_SCALE_LANG", "rust"), choices=LANGS)
    parser.add_argument("--built", default=os.environ.get("TRICORN_SCALE_BUILT", str(TREE)), type=Path)
    parser.add_argument("--seconds", default=60.0, type=float)
    parser.add_argument("--sessions", default=50, type=int)
    parser.add_argument("--modern", default=20, type=int, help="clients of 2026-07-28, and listeners")
    parser.add_argument("--tasks", default=20, type=int, help="clients with tasks of both kinds")
    parser.add_argument("--processes", default=2, type=int)
    parser.add_argument("--every", default=1.0, type=float, help="seconds between two disturbances")
    parser.add_argument("--how", default="both", choices=["kill", "term", "both", "nothing"])
    parser.add_argument("--pause-store", default=0.0, type=float, help="seconds for which the store stands still, once")
    parser.add_argument("--flush", action="store_true", help="the store is emptied, once")
    parser.add_argument("--pause", default=0.05, type=float, help="seconds between two requests of a client")
    parser.add_argument("--seed", default=1, type=int)
    parser.add_argument("--sharing", default=SHARED, choices=[SHARED, NOTHING, ALONE])
    given = parser.parse_args()
    task = asyncio.current_task()
    assert task
    # Its programs end with it.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    world = World(given.lang, given.built, given.sharing)
    try:
        settings = {"TASKS": "3600"} if given.tasks else {}
        await world.start(given.processes, MAX_CONNECTIONS=str(4 * given.sessions + 1000), **settings)
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
