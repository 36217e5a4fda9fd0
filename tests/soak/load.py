"""A load for a server over HTTP, one process of it: clients of both revisions that behave as clients do, good and bad.

load.py JSON, with the members of `Plan`; a line of JSON on standard output says how it went.
"""

import asyncio
import contextlib
import json
import random
import resource
import sys
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from link import BrokenError, Link, Reply, outgoing, watch
from mix import (
    LEGACY,
    LONG,
    MODERN,
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

STALLED = 12
"""Connections of a process that are open and not read, at most: the oldest goes."""
SMALL = 4096
"""Bytes that the system takes for one of them."""
Json = dict[str, Any]


@dataclass
class Plan:
    host: str
    port: int
    seed: int
    worker: int
    """The number of this process."""
    clients: int
    calls: int
    seconds: float
    phase: str


class Client:
    """One client: a connection, and in the older revision a session."""

    def __init__(self, crowd: "Crowd", number: int) -> None:
        plan = crowd.plan
        self.crowd, self.tally = crowd, crowd.tally
        self.modern = number % 2 == 1
        self.name = f"{plan.phase}{plan.seed}-{plan.worker}-{number}"
        self.rng = random.Random(self.name)
        self.dice = Dice(self.rng, [*SIMPLE, *SPECIAL])
        self.there = (plan.host, plan.port)
        self.source = f"127.{10 + plan.worker}.{number // 250}.{number % 250 + 1}"
        self.host = f"{plan.host}:{plan.port}"
        self.link: Link | None = None
        self.session = ""
        self.asked = 0

    async def run(self) -> None:
        while self.tally.goes_on():
            name, thing = self.dice.throw()
            self.tally.made(name)
            try:
                if isinstance(thing, Special):
                    await thing.act(self)
                else:
                    await self.ask(thing(self.rng, self.tag(), self.modern))
            except (BrokenError, OSError, ValueError, KeyError) as error:
                self.tally.fail(f"{name}, {'2026' if self.modern else '2025'}: {type(error).__name__}: {error}")
                self.drop(reset=True)
        with contextlib.suppress(BrokenError, OSError, ValueError):
            if self.rng.random() < 0.5:
                await self.leave()
        self.drop()

    # -- one exchange

    def tag(self) -> str:
        """A text that no other call has."""
        self.asked += 1
        return f"{self.name}-{self.asked}"

    def number(self) -> int | str:
        """The id of the last call."""
        return self.asked if self.asked % 2 else f"{self.name}-{self.asked}"

    def bytes_of(self, message: Json, session: str, accept: str = "application/json, text/event-stream") -> bytes:
        body = json.dumps(message, separators=(",", ":")).encode()
        lines = f"POST /mcp HTTP/1.1\r\nHost: {self.host}\r\nContent-Type: application/json\r\nAccept: {accept}\r\n"
        params = message.get("params", {})
        if not self.modern:
            lines += f"MCP-Protocol-Version: {LEGACY}\r\n"
            if session:
                lines += f"Mcp-Session-Id: {session}\r\n"
        else:
            lines += f"MCP-Protocol-Version: {MODERN}\r\nMcp-Method: {message['method']}\r\n"
            name = params.get("name") or params.get("uri") or params.get("taskId")
            if name:
                lines += f"Mcp-Name: {name}\r\n"
        return f"{lines}Content-Length: {len(body)}\r\n\r\n".encode() + body

    async def ready(self) -> Link:
        """The connection, open, in the older revision with a session."""
        if self.link is None or self.link.ended:
            self.link = await Link.open(self.there, self.source)
        if not self.modern and not self.session:
            self.session = await self.initialize(self.link)
        return self.link

    async def initialize(self, link: Link, **capabilities: Any) -> str:
        params = {
            "protocolVersion": LEGACY,
            "capabilities": capabilities,
            "clientInfo": {"name": self.name, "version": "1"},
        }
        message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
        link.send(self.bytes_of(message, ""))
        reply = await link.reply()
        messages = await reply.messages()
        if reply.status != 200 or not reply.session or len(messages) != 1 or "result" not in messages[0]:
            raise BrokenError(f"no session: {reply.status} {str(messages)[:200]}")
        await self.notify(link, reply.session, "notifications/initialized")
        return reply.session

    async def notify(self, link: Link, session: str, method: str, params: Json | None = None) -> None:
        message: Json = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        link.send(self.bytes_of(message, session))
        reply = await link.reply()
        await reply.whole()
        if reply.status != 202:
            raise BrokenError(f"{method}: {reply.status}")

    async def ask(self, call: Call) -> Json:
        """A call, and its one right answer."""
        link = await self.ready()
        self.tag()
        number = self.number()
        link.send(self.bytes_of(call.message(number, self.modern), self.session))
        reply = await link.reply()
        messages = await reply.messages()
        if wrong := judge(call, number, messages):
            if reply.status == 404 and not self.modern:
                self.session = ""
            raise BrokenError(f"{wrong} (status {reply.status})")
        return messages[-1]

    def drop(self, reset: bool = False) -> None:
        """Hangs up."""
        if self.link is not None:
            self.link.close(reset)
            self.link = None

    async def begin(self, call: Call, session: str) -> Link:
        """Sends a call on a connection of its own."""
        link = await Link.open(self.there, self.source)
        self.tag()
        link.send(self.bytes_of(call.message(self.number(), self.modern), session))
        return link

    async def pause(self, most: float) -> None:
        """Some milliseconds, so that what follows comes at any point of what is done."""
        if self.rng.random() < 0.8:
            await asyncio.sleep(self.rng.random() * most)

    # -- clients that change their minds

    async def cancel(self) -> None:
        await self.ready()
        call = tool("slow", {"ms": LONG}, says(""), token=self.tag() if self.rng.random() < 0.5 else None)
        link = await self.begin(call, self.session)
        number = self.number()
        try:
            reply: Reply | None = None
            if call.token is None:
                await self.pause(0.005)
            else:
                reply = await link.reply()
                message = await reply.message()
                if message is None or message.get("params", {}).get("progressToken") != call.token:
                    raise BrokenError(f"no progress: {message}")
            if self.modern:
                return
            params = {"requestId": number, "reason": "enough"}
            await self.notify(await self.ready(), self.session, "notifications/cancelled", params)
            for _ in range(20):
                if reply is not None:
                    break
                try:
                    async with asyncio.timeout(0.3):
                        reply = await link.reply()
                except TimeoutError:
                    # On its own connection the call may have come later than that.
                    await self.notify(await self.ready(), self.session, "notifications/cancelled", params)
            if reply is None:
                raise BrokenError("the call goes on")
            rest = await reply.messages()
            if any("result" in m or "error" in m for m in rest):
                raise BrokenError(f"an answer to what was cancelled: {str(rest)[:200]}")
        finally:
            link.close(self.rng.random() < 0.5)

    async def abandon(self) -> None:
        """Hangs up while the call runs. In the older revision it runs to its end."""
        link = await self.ready()
        tag = self.tag()
        calls = [
            lambda: tool("slow", {"ms": self.rng.randrange(20, 300)}, says(""), token=tag),
            lambda: tool("count", {"to": 500}, says(""), token=tag),
            lambda: echo_long(self.rng, tag, self.modern),
            lambda: Call("tools/list", {}, says("")),
        ]
        call = self.rng.choices(calls, weights=(6, 1, 2, 1))[0]()
        link.send(self.bytes_of(call.message(self.number(), self.modern), self.session))
        await self.pause(0.02)
        self.drop(self.rng.random() < 0.5)

    async def break_off(self) -> None:
        """Half a request."""
        link = await self.ready()
        call = echo_long(self.rng, self.tag(), self.modern)
        data = self.bytes_of(call.message(self.number(), self.modern), self.session)
        link.send(data[: self.rng.randrange(20, len(data) - 20)])
        await self.pause(0.005)
        self.drop(reset=True)

    # -- sessions and streams

    async def leave(self) -> None:
        """Ends the session as a polite client does."""
        if not self.session:
            return
        link = await self.ready()
        session, self.session = self.session, ""
        link.send(self.without_body("DELETE", session))
        reply = await link.reply()
        await reply.whole()
        if reply.status not in (200, 202, 204):
            raise BrokenError(f"DELETE: {reply.status}")

    async def forget(self) -> None:
        """Takes a new session, and says nothing of the old one."""
        if self.modern:
            self.drop(reset=True)
            return
        await self.ready()
        self.session = ""
        if self.rng.random() < 0.5:
            self.drop()

    def without_body(self, verb: str, session: str) -> bytes:
        lines = f"{verb} /mcp HTTP/1.1\r\nHost: {self.host}\r\nAccept: text/event-stream\r\n"
        return f"{lines}MCP-Protocol-Version: {LEGACY}\r\nMcp-Session-Id: {session}\r\n\r\n".encode()

    async def stall(self) -> None:
        """Opens something long, and never reads it."""
        number = self.tag()
        if self.modern:
            wanted = {"toolsListChanged": True, "resourceSubscriptions": [WATCHED]}
            calls = [
                Call("subscriptions/listen", {"notifications": wanted}, says("")),
                tool("count", {"to": 2000}, says(""), token=number),
                tool("echo", {"text": "z" * 200_000}, says("")),
            ]
            data = self.bytes_of(self.rng.choice(calls).message(number, True), "")
        else:
            link = await Link.open(self.there, self.source)
            session = await self.initialize(link)
            params = {"uri": WATCHED}
            link.send(
                self.bytes_of({"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": params}, session)
            )
            await (await link.reply()).whole()
            link.close()
            data = self.without_body("GET", session)
            if self.rng.random() < 0.3:
                data = self.bytes_of(tool("count", {"to": 2000}, says(""), token=number).message(2, False), session)
        await self.crowd.stall(self.there, self.source, data)

    async def elicit(self) -> None:
        """Leaves a question to the user unanswered."""
        if self.modern:
            await self.ask(unanswered())
            return
        link = await Link.open(self.there, self.source)
        session = await self.initialize(link, elicitation={"form": {}})
        call = tool("test_elicitation", {"message": self.tag()}, says(""))
        link.send(self.bytes_of(call.message(self.number(), False), session))
        message = await (await link.reply()).message()
        if message is None or message.get("method") != "elicitation/create":
            raise BrokenError(f"no question: {message}")
        if self.rng.random() < 0.5:
            link.close(self.rng.random() < 0.5)
        else:
            self.crowd.keep(link)

    async def subscribe(self) -> None:
        """Waits for the news of a resource, once."""
        await self.ready()
        if self.modern:
            wanted = {"resourceSubscriptions": [WATCHED]}
            link = await self.begin(Call("subscriptions/listen", {"notifications": wanted}, says("")), "")
            number = self.number()
            reply = await link.reply()
            await self.hear(reply, "notifications/subscriptions/acknowledged", number)
        else:
            subscribing = Call("resources/subscribe", {"uri": WATCHED}, lambda m: m["result"] == {})
            await self.ask(subscribing)
            link = await Link.open(self.there, self.source)
            number = None
            link.send(self.without_body("GET", self.session))
            reply = await link.reply()
        try:
            if reply.status != 200:
                raise BrokenError(f"no stream: {reply.status}")
            await self.ask(touch())
            await self.hear(reply, "notifications/resources/updated", number)
        finally:
            link.close(self.rng.random() < 0.5)
        if not self.modern:
            await self.ask(Call("resources/unsubscribe", {"uri": WATCHED}, lambda m: m["result"] == {}))

    async def hear(self, reply: Reply, method: str, number: Any) -> None:
        """Waits for a message; other news of the session may come before it."""
        while True:
            message = await reply.message()
            if message is None:
                raise BrokenError(f"the stream ended before {method}")
            if number is not None and message.get("params", {}).get("_meta", {}).get(SUBSCRIPTION) != number:
                raise BrokenError(f"news of another's: {message}")
            if message.get("method") == method:
                return
            if not str(message.get("method", "")).startswith("notifications/"):
                raise BrokenError(f"no news: {message}")

    async def change(self) -> None:
        await self.ask(change())

    async def task(self) -> None:
        """A call that goes on as a task; its result is asked for, or not."""
        tag = self.tag()
        answer = await self.ask(begin_task(tag, self.modern))
        if self.modern:
            key = answer["result"]["taskId"]
            looking = Call("tasks/get", {"taskId": key}, lambda m: m["result"]["taskId"] == key)
            looking.capabilities = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
            await self.ask(looking)
        elif self.rng.random() < 0.5:
            key = answer["result"]["task"]["taskId"]

            def right(message: Json) -> bool:
                return message["result"]["content"][0]["text"].startswith(f"computed {tag} in")

            await self.ask(Call("tasks/result", {"taskId": key}, right, news=True))


@dataclass(frozen=True)
class Special:
    """Something that is more than a request and its answer."""

    act: Callable[[Client], Awaitable[None]]


SPECIAL: list[tuple[int, str, Special]] = [
    (parts, act.__name__, Special(act))
    for parts, act in (
        (50, Client.cancel),
        (50, Client.abandon),
        (10, Client.break_off),
        (4, Client.forget),
        (4, Client.leave),
        (3, Client.stall),
        (4, Client.elicit),
        (6, Client.subscribe),
        (2, Client.change),
        (3, Client.task),
    )
]
"""With those of `SIMPLE` a thousand, about."""


class Crowd:
    """The clients of this process, and what they have left open."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.tally = Tally(plan.calls, plan.seconds, time.monotonic)
        self.open: deque[Any] = deque()

    def keep(self, thing: Any) -> None:
        self.open.append(thing)
        while len(self.open) > STALLED:
            self.open.popleft().close()

    async def stall(self, there: tuple[str, int], source: str, data: bytes) -> None:
        sock = outgoing(source, SMALL)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(10.0):
                await loop.sock_connect(sock, there)
                await loop.sock_sendall(sock, data)
        except OSError:
            sock.close()
            raise
        self.keep(sock)

    async def run(self) -> None:
        watching = asyncio.create_task(watch())
        await asyncio.gather(*(Client(self, number).run() for number in range(self.plan.clients)))
        watching.cancel()
        for thing in self.open:
            thing.close()
        for link in list(Link.all):
            link.close()
        await asyncio.sleep(0)


def main() -> None:
    plan = Plan(**json.loads(sys.argv[1]))
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    crowd = Crowd(plan)
    begin = time.monotonic()
    asyncio.run(crowd.run())
    used = resource.getrusage(resource.RUSAGE_SELF)
    facts = {**crowd.tally.facts(), "seconds": time.monotonic() - begin, "cpu": used.ru_utime + used.ru_stime}
    print(json.dumps(facts), flush=True)


if __name__ == "__main__":
    main()
