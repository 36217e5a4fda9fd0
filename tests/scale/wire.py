"""Raw clients: with a session, whose requests go to whichever process a test says, and of 2026-07-28."""

import asyncio
import contextlib
import itertools
import json
from dataclasses import dataclass, field
from typing import Any, Self

import httpx
from world import FRONT, LIMIT, NOTHING, PROMPT, Json, Place, World, until

LEGACY = "2025-11-25"
REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
TASKS = "io.modelcontextprotocol/tasks"
BOTH = "application/json, text/event-stream"
ALL: Json = {"sampling": {}, "elicitation": {}, "roots": {"listChanged": True}}
WATCHED = "test://watched-resource"
STATIC = "test://static-text"


@dataclass
class Event:
    """A message that came, with its id on a stream."""

    id: str | None
    message: Any


@dataclass
class Reply:
    """A response that is complete."""

    who: str
    status: int
    headers: httpx.Headers
    text: str
    message: Any = None
    """The JSON-RPC answer."""
    before: list[Json] = field(default_factory=list)
    """Messages before it on the stream."""

    def __str__(self) -> str:
        return f"{self.who} answered {self.status} {self.text[:300]!r}"

    @property
    def result(self) -> Json:
        """The result; a complaint that names the process where there is none."""
        assert self.status == 200, f"expected a result: {self}"
        assert isinstance(self.message, dict), f"expected a result: {self}"
        assert "result" in self.message, f"expected a result: {self}"
        return self.message["result"]

    @property
    def tool(self) -> str:
        """The text of a tool that did not fail."""
        result = self.result
        assert not result.get("isError"), f"the tool failed: {self}"
        return result["content"][0]["text"]


class Lost(Exception):  # noqa: N818 - an event like others
    """The connection broke before the answer."""


class Events:
    """The messages of an open response in order, of a stream or of one JSON answer."""

    def __init__(self, world: World, at: Place, method: str, headers: dict[str, str], body: Any = None) -> None:
        self.world, self.at = world, at
        self.status = 0
        self.headers = httpx.Headers()
        self.who = world.who(at)
        self.text = ""
        self.last: str | None = None
        """The id of the last event that arrived."""
        self.read: str | None = None
        """The id of the last event that was taken with `next`."""
        self.end: str | None = None
        self.ended_in_order = False
        self.messages: asyncio.Queue[Event | None] = asyncio.Queue()
        self.opened = asyncio.Event()
        self.named = asyncio.Event()
        """An event with an id has arrived."""
        world.open.add(self)
        self.task = asyncio.create_task(self.run(method, headers, body))

    async def run(self, method: str, headers: dict[str, str], body: Any) -> None:
        content = None if body is None else json.dumps(body).encode()
        try:
            async with self.world.http.stream(
                method, self.world.url(self.at), headers=headers, content=content
            ) as response:
                self.status, self.headers = response.status_code, response.headers
                self.who = self.world.who(self.at, response.headers)
                self.opened.set()
                if response.headers.get("content-type", "").startswith("text/event-stream"):
                    await self.follow(response)
                else:
                    self.text = (await response.aread()).decode(errors="replace")
                    with contextlib.suppress(ValueError):
                        parsed = json.loads(self.text)
                        for message in parsed if isinstance(parsed, list) else [parsed]:
                            self.messages.put_nowait(Event(None, message))
            self.end, self.ended_in_order = "ended in order", True
        except httpx.HTTPError as error:
            self.end = f"broke ({type(error).__name__} {error})"
        except asyncio.CancelledError:
            self.end = "closed by the client"
            raise
        finally:
            self.opened.set()
            self.messages.put_nowait(None)

    async def follow(self, response: httpx.Response) -> None:
        identifier, data = None, []
        async for line in response.aiter_lines():
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "id":
                identifier = value
            elif name == "data":
                data.append(value)
            elif not line:
                if identifier:
                    self.last = identifier
                    self.named.set()
                text = "\n".join(data)
                if text:
                    self.text = text
                    self.messages.put_nowait(Event(identifier, json.loads(text)))
                identifier, data = None, []

    async def open(self, limit: float = LIMIT) -> "Events":
        """Waits for the head of the response, which has to be a stream."""
        await self.head(limit)
        assert self.status == 200, (
            f"expected a stream: {self.who} answered {self.status} {self.text[:300]!r} {self.end}"
        )
        return self

    async def head(self, limit: float = LIMIT) -> int:
        try:
            await asyncio.wait_for(self.opened.wait(), limit)
        except TimeoutError:
            raise AssertionError(f"{self.world.who(self.at)} sent no head of a response in {limit:g} s") from None
        if self.status != 200:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(self.task), limit)
        return self.status

    async def next(self, limit: float = LIMIT) -> Event | None:
        """The next message; None at the end."""
        try:
            event = await asyncio.wait_for(self.messages.get(), limit)
        except TimeoutError:
            raise AssertionError(f"nothing arrived in {limit:g} s on the response of {self.who}") from None
        if event is None:
            self.messages.put_nowait(None)
        else:
            self.read = event.id or self.read
        return event

    async def message(self, limit: float = LIMIT) -> Json:
        """The next message, which has to come."""
        event = await self.next(limit)
        assert event is not None, f"the response of {self.who} {self.end} before a message came: {self.text[:300]!r}"
        return event.message

    async def question(self, limit: float = LIMIT) -> Json:
        """The next message, which has to be a question of the server's."""
        message = await self.message(limit)
        assert {"method", "id"} <= message.keys(), f"expected a question of {self.who}, got {message}"
        return message

    async def started(self, limit: float = LIMIT) -> Json:
        """The first progress of a call: from now on it runs."""
        message = await self.message(limit)
        assert message.get("method") == "notifications/progress", f"expected progress of {self.who}, got {message}"
        return message

    async def over(self, limit: float = LIMIT) -> str:
        """Waits for the end. Returns how it came."""
        async with asyncio.timeout(limit):
            while await self.next(limit) is not None:
                pass
        return self.end or ""

    async def answer(self, limit: float = LIMIT) -> Reply:
        """The response when it is complete.

        Raises `Lost` when the connection broke before.
        """
        before: list[Json] = []
        loop = asyncio.get_running_loop()
        end = loop.time() + limit
        while True:
            event = await self.next(max(0.01, end - loop.time()))
            if event is None:
                break
            message = event.message
            if isinstance(message, dict) and "method" not in message:
                return Reply(self.who, self.status, self.headers, json.dumps(message), message, before)
            before.append(message)
        if not self.ended_in_order:
            raise Lost(f"the connection to {self.who} {self.end}")
        return Reply(self.who, self.status, self.headers, self.text, None, before)

    async def close(self) -> None:
        """Breaks the connection."""
        self.world.open.discard(self)
        self.task.cancel()
        # Waited for like this, its cancellation is not taken for that of the caller, and the other way round.
        await asyncio.wait({self.task})


class Client:
    """A client with a session. Without a place each of its requests goes to the next process."""

    numbers = itertools.count(1)
    fences = itertools.count(1)

    def __init__(
        self,
        world: World,
        revision: str = LEGACY,
        capabilities: Json | None = None,
        by: Place | None = None,
        token: str | None = None,
        name: str = "scale",
    ) -> None:
        self.world, self.revision, self.name, self.by, self.token = world, revision, name, by, token
        self.capabilities = ALL if capabilities is None else capabilities
        self.session: str | None = None
        self.turn = 0

    def place(self, at: Place | None) -> Place:
        if at is not None:
            return at
        if self.by is not None:
            return self.by
        self.turn = (self.turn + 1) % len(self.world.processes)
        return self.turn

    def headers(self, accept: str = BOTH) -> dict[str, str]:
        headers = {"content-type": "application/json", "accept": accept}
        if self.session:
            headers["mcp-session-id"] = self.session
            headers["mcp-protocol-version"] = self.revision
        if self.token:
            headers["authorization"] = f"Bearer {self.token}"
        return headers

    # -- requests

    def send(self, body: Any, at: Place | None = None, accept: str = BOTH) -> Events:
        """A POST whose response is read as it comes."""
        return Events(self.world, self.place(at), "POST", self.headers(accept), body)

    def begin(self, method: str, params: Json | None = None, at: Place | None = None, accept: str = BOTH) -> Events:
        """A request whose response is read as it comes; its id is `number` of it."""
        number = next(self.numbers)
        events = self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}}, at, accept)
        events.number = number  # type: ignore[attr-defined]
        return events

    async def post(self, body: Any, at: Place | None = None, limit: float = LIMIT) -> Reply:
        events = self.send(body, at)
        try:
            return await events.answer(limit)
        finally:
            await events.close()

    async def request(
        self, method: str, params: Json | None = None, at: Place | None = None, limit: float = LIMIT
    ) -> Reply:
        events = self.begin(method, params, at)
        try:
            return await events.answer(limit)
        finally:
            await events.close()

    async def call(
        self, name: str, arguments: Json | None = None, at: Place | None = None, limit: float = LIMIT
    ) -> Reply:
        return await self.request("tools/call", {"name": name, "arguments": arguments or {}}, at, limit)

    def calling(self, name: str, arguments: Json | None = None, at: Place | None = None, **more: Any) -> Events:
        """A call that is read as it comes. `accept`: what its response may be; `token`: the one of its progress."""
        params: Json = {"name": name, "arguments": arguments or {}}
        if "token" in more:
            params["_meta"] = {"progressToken": more["token"]}
        return self.begin("tools/call", params, at, more.get("accept", BOTH))

    async def notify(self, method: str, params: Json | None = None, at: Place | None = None) -> Reply:
        reply = await self.post({"jsonrpc": "2.0", "method": method, "params": params or {}}, at)
        assert reply.status == 202, f"{method}: {reply}"
        return reply

    async def reply(self, question: Json, result: Json, at: Place | None = None) -> Reply:
        """The answer to a question of the server's."""
        reply = await self.post({"jsonrpc": "2.0", "id": question["id"], "result": result}, at)
        assert reply.status == 202, f"the answer to {question['method']}: {reply}"
        return reply

    # -- the session

    async def initialize(self, at: Place | None = None, limit: float = LIMIT) -> Reply:
        params = {
            "protocolVersion": self.revision,
            "capabilities": self.capabilities,
            "clientInfo": {"name": self.name, "version": "1"},
        }
        self.session = None
        reply = await self.request("initialize", params, at, limit)
        self.session = reply.headers.get("mcp-session-id")
        return reply

    async def start(self, at: Place | None = 0) -> Self:
        """Opens a session at a process and says at the next one that it is there."""
        reply = await self.initialize(self.by if self.by is not None else at)
        assert reply.result["protocolVersion"] == self.revision
        assert self.session, f"no Mcp-Session-Id: {reply}"
        self.turn = at if isinstance(at, int) else 0
        # If nothing is shared, the tests fail at what they are about, and not here.
        await self.notify("notifications/initialized", at=at if self.world.sharing == NOTHING else None)
        return self

    async def delete(self, at: Place | None = None) -> Reply:
        events = Events(self.world, self.place(at), "DELETE", self.headers())
        try:
            return await events.answer()
        finally:
            await events.close()

    def stream(self, at: Place | None = None, last: str | None = None) -> Events:
        """A standalone stream, or the rest of one after the event `last`."""
        headers = self.headers("text/event-stream")
        if last is not None:
            headers["last-event-id"] = last
        return Events(self.world, self.place(at), "GET", headers)

    # -- what belongs to no request

    async def subscribe(self, uri: str, at: Place | None = None) -> None:
        _ = (await self.request("resources/subscribe", {"uri": uri}, at)).result

    async def touch(self, uri: str, at: Place | None = None) -> None:
        assert (await self.call("touch", {"uri": uri}, at)).tool == f"touched {uri}"

    async def settled(self, *streams: Events, at: tuple[Place, ...] | None = None) -> list[str]:
        """Changes that have arrived on these streams until those that are made now at each process have, without those.

        A change that is missing or doubled is seen without waiting for nothing to come.
        """
        fences = set()
        for place in at if at is not None else range(len(self.world.processes)):
            uri = f"test://template/fence-{next(self.fences)}/data"
            await self.subscribe(uri, at=place)
            await self.touch(uri, place)
            fences.add(uri)
        missing, seen = set(fences), []
        waiting = {asyncio.create_task(stream.next()): stream for stream in streams}
        try:
            async with asyncio.timeout(LIMIT):
                while missing:
                    done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                    for task in done:
                        stream, event = waiting.pop(task), task.result()
                        if event is None:
                            # One of several may end: its client has gone elsewhere.
                            assert waiting, f"the stream of {stream.who} {stream.end}; seen: {seen}"
                            continue
                        waiting[asyncio.create_task(stream.next())] = stream
                        name = told(event.message)
                        if name in fences:
                            assert name in missing, f"a change arrived twice: {name}; before it {seen}"
                            missing.discard(name)
                        else:
                            seen.append(name)
        except TimeoutError:
            where = ", ".join(stream.who for stream in streams)
            raise AssertionError(f"changes never arrived at {where}: {sorted(missing)}; what did: {seen}") from None
        finally:
            for task in waiting:
                task.cancel()
        return seen


def told(message: Json) -> str:
    """A notification in short: the URI of a resource, or the list."""
    method = message.get("method", "")
    if method == "notifications/resources/updated":
        return message["params"]["uri"]
    return method.removeprefix("notifications/").removesuffix("/list_changed") or json.dumps(message)


def accepted(**content: Any) -> Json:
    """The result of a form that was filled in."""
    return {"action": "accept", "content": content}


class Modern:
    """A client of 2026-07-28, which has no session."""

    token: str | None = None

    def __init__(self, world: World, **capabilities: Any) -> None:
        self.world, self.capabilities = world, capabilities

    def begin(self, method: str, params: Json | None = None, at: Place = FRONT) -> Events:
        meta = {
            f"{META}protocolVersion": MODERN,
            f"{META}clientInfo": {"name": "scale", "version": "1"},
            f"{META}clientCapabilities": self.capabilities,
        }
        headers = {
            "content-type": "application/json",
            "accept": BOTH,
            "mcp-protocol-version": MODERN,
            "mcp-method": method,
        }
        params = params or {}
        if name := params.get("name", params.get("uri", params.get("taskId"))):
            headers["mcp-name"] = name
        if self.token:
            headers["authorization"] = f"Bearer {self.token}"
        body = {"jsonrpc": "2.0", "id": next(Client.numbers), "method": method, "params": {"_meta": meta, **params}}
        return Events(self.world, at, "POST", headers, body)

    async def request(self, method: str, params: Json | None = None, at: Place = FRONT, limit: float = LIMIT) -> Reply:
        events = self.begin(method, params, at)
        try:
            return await events.answer(limit)
        finally:
            await events.close()

    async def call(self, name: str, arguments: Json | None = None, at: Place = FRONT, limit: float = LIMIT) -> Reply:
        return await self.request("tools/call", {"name": name, "arguments": arguments or {}}, at, limit)

    async def listen(self, uri: str, at: Place) -> Events:
        """A listen stream for a resource and the tools, which the server has acknowledged."""
        wanted = {"toolsListChanged": True, "resourceSubscriptions": [uri]}
        events = await self.begin("subscriptions/listen", {"notifications": wanted}, at).open()
        message = await events.message()
        assert message["method"] == "notifications/subscriptions/acknowledged", f"{events.who}: {message}"
        return events


class Tasking(Client):
    """A client of 2025-11-25 with tasks."""

    async def task(self, name: str, arguments: Json | None = None, at: Place = 0, ttl: int = 600_000) -> str:
        """A call as a task. Returns its id."""
        params = {"name": name, "arguments": arguments or {}, "task": {"ttl": ttl}}
        task = (await self.request("tools/call", params, at)).result["task"]
        assert task["status"] == "working", task
        return task["taskId"]

    async def get(self, task: str, at: Place) -> Json:
        return (await self.request("tasks/get", {"taskId": task}, at)).result

    async def result(self, task: str, at: Place, limit: float = LIMIT) -> Reply:
        return await self.request("tasks/result", {"taskId": task}, at, limit)

    async def cancel(self, task: str, at: Place) -> Reply:
        return await self.request("tasks/cancel", {"taskId": task}, at)

    async def ids(self, at: Place) -> list[str]:
        return [task["taskId"] for task in (await self.request("tasks/list", {}, at)).result["tasks"]]

    async def becomes(self, task: str, status: str, at: Place, limit: float = PROMPT) -> Json:
        async def is_so() -> bool:
            return (await self.get(task, at))["status"] == status

        await until(f"a task is {status} at process {at}", is_so, limit)
        return await self.get(task, at)


class ModernTasking(Modern):
    """A client of 2026-07-28 that declares tasks."""

    def __init__(self, world: World, token: str | None = None, **capabilities: Any) -> None:
        super().__init__(world, extensions={TASKS: {}}, elicitation={}, **capabilities)
        self.token = token

    async def task(self, name: str, arguments: Json | None = None, at: Place = 0) -> str:
        result = (await self.request("tools/call", {"name": name, "arguments": arguments or {}}, at)).result
        assert result["resultType"] == "task", result
        return result["taskId"]

    async def get(self, task: str, at: Place) -> Json:
        return (await self.request("tasks/get", {"taskId": task}, at)).result

    async def cancel(self, task: str, at: Place) -> Json:
        return (await self.request("tasks/cancel", {"taskId": task}, at)).result

    async def answer(self, task: str, responses: Json, at: Place) -> Reply:
        return await self.request("tasks/update", {"taskId": task, "inputResponses": responses}, at)

    async def becomes(self, task: str, status: str, at: Place, limit: float = PROMPT) -> Json:
        found: Json = {}

        async def is_so() -> bool:
            nonlocal found
            found = await self.get(task, at)
            return found["status"] == status

        await until(f"a task is {status} at process {at}", is_so, limit)
        return found

    async def following(self, task: str, at: Place) -> Events:
        """A stream of the states of a task, which the server has acknowledged."""
        events = await self.begin("subscriptions/listen", {"notifications": {"taskIds": [task]}}, at).open()
        message = await events.message()
        assert message["method"] == "notifications/subscriptions/acknowledged", f"{events.who}: {message}"
        assert message["params"]["notifications"]["taskIds"] == [task], f"{events.who}: {message}"
        return events
