"""Public reports about servers behind balancers that no other test here covers. The table is in README.md."""

import asyncio
import json

import pytest
from conftest import Starts
from wire import BOTH, LEGACY, STATIC, Client, Events, Lost, accepted, told
from world import FRONT, LIMIT, PROMPT, World, until

pytestmark = pytest.mark.engine

OPENS = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}},
}


async def sessions(world: World, at: int) -> int:
    """The sessions that a process counts, without the one that asks."""
    client = await Client(world).start(at=at)
    counted = json.loads((await client.call("test_metrics", at=at)).tool)["server"]["sessions"]
    await client.delete(at)
    return counted - 1


@pytest.mark.parametrize(
    ("changed", "body"),
    [
        ({"accept": "text/html"}, OPENS),
        ({"content-type": "text/plain"}, OPENS),
        ({"host": "elsewhere.example.com"}, OPENS),
        ({"origin": "https://elsewhere.example.com"}, OPENS),
        ({}, {**OPENS, "params": {}}),
        ({}, {**OPENS, "params": {**OPENS["params"], "capabilities": 7}}),
        ({}, {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
    ],
)
async def test_a_request_that_is_refused_leaves_no_session(world: World, changed: dict[str, str], body: object) -> None:
    """python-sdk#3228"""
    before = set(await world.store.keys())
    for _ in range(10):
        headers = {"content-type": "application/json", "accept": BOTH, **changed}
        events = Events(world, 0, "POST", headers, body)
        await events.head()
        refused = events.status >= 400 or "error" in (await events.message())
        assert refused, f"{events.who} answered {events.status} {events.text}"
        assert "mcp-session-id" not in events.headers
        await events.close()
    assert set(await world.store.keys()) == before
    assert await sessions(world, 0) == 0


async def test_sessions_that_nobody_ends_go_from_the_store_and_from_all_processes(start: Starts) -> None:
    """mcp-go#723, withings-mcp#35, python-sdk#2455, mcp-context-forge#4029: most clients send no DELETE."""
    world = await start(SESSION_IDLE_TIMEOUT="1")
    before = set(await world.store.keys())
    clients = await asyncio.gather(*(Client(world).start(at=n % 2) for n in range(20)))
    await asyncio.gather(*(client.subscribe(STATIC) for client in clients))
    streams = [await client.stream(n % 2).open() for n, client in enumerate(clients)]
    for stream in streams:
        await stream.close()
    opened = {key for key in set(await world.store.keys()) - before if ":session:" in key}
    assert len(opened) == 20

    async def gone() -> bool:
        counts = [await sessions(world, at) for at in (0, 1)]
        return counts == [0, 0] and not opened & set(await world.store.keys())

    await until("sessions without DELETE are gone", gone)


@pytest.mark.parametrize("at", [0, 1])
async def test_a_long_call_keeps_its_session_at_all_processes(start: Starts, at: int) -> None:
    """python-sdk#2455: an idle limit must not end what is in use. The call runs three times as long as the limit."""
    world = await start(SESSION_IDLE_TIMEOUT="1")
    client = await Client(world).start(at=0)
    assert (await client.call("slow", {"ms": 3000}, at)).tool == "slept 3000 ms"
    for place in (0, 1):
        assert (await client.call("echo", {"text": "x"}, place)).tool == "x"


async def test_an_open_stream_keeps_its_session_at_all_processes(start: Starts) -> None:
    """penpot#10000: the sweep of one process must not end what is in use at another."""
    world = await start(SESSION_IDLE_TIMEOUT="1")
    client, clock = await Client(world).start(at=0), await Client(world).start(at=0)
    stream = await client.stream(1).open()
    for _ in range(4):
        assert (await clock.call("slow", {"ms": 700}, 0)).tool == "slept 700 ms"
    assert stream.end is None, f"the stream of {stream.who} {stream.end}"
    assert (await client.call("echo", {"text": "x"}, 0)).tool == "x"
    await client.subscribe(STATIC, at=0)
    await client.touch(STATIC, at=0)
    assert told(await stream.message()) == STATIC


@pytest.mark.parametrize("first", ["notification", "answer", "request", "stream"])
async def test_the_first_message_at_a_process_may_be_anything(world: World, first: str) -> None:
    """anubis-mcp#221: a session was restored for requests, and notifications and answers got 404."""
    client = Client(world)
    _ = (await client.initialize(0)).result
    await client.notify("notifications/initialized", at=1 if first == "notification" else 0)
    if first == "answer":
        call = client.calling("test_streaming_elicitation", at=0)
        await client.reply(await call.question(), accepted(name="Ada"), at=1)
        assert (await call.answer()).tool == "Hello, Ada!"
    elif first == "request":
        assert (await client.call("echo", {"text": "x"}, 1)).tool == "x"
    elif first == "stream":
        await client.stream(1).open()
    assert (await client.call("echo", {"text": "x"}, 1)).tool == "x"


async def test_many_first_requests_at_once_at_a_process(world: World) -> None:
    """mcp-use#1133, rust-sdk#775: a session that is taken over by many requests at once is taken over once."""
    clients = await asyncio.gather(*(Client(world).start(at=0) for _ in range(4)))

    async def ask(client: Client, n: int) -> None:
        assert (await client.call("echo", {"text": str(n)}, 1)).tool == str(n)

    await asyncio.gather(*(ask(client, n) for client in clients for n in range(25)))


async def test_the_rest_of_a_call_has_nothing_of_another(world: World) -> None:
    """mcp-lite#74: the replay of one stream had events of others in between."""
    client = await Client(world).start(at=0)
    calls = [client.calling("slow", {"ms": 900 + n}, at=n % 2, token=f"t{n}") for n in range(4)]
    ids = []
    for call in calls:
        event = await call.next()
        assert event is not None
        ids.append(event.id)
    for call in calls:
        await call.close()
    for n, last in enumerate(ids):
        rest = await client.stream((n + 1) % 2, last=last).open()
        reply = await rest.answer()
        assert reply.tool == f"slept {900 + n} ms"
        assert [message["params"]["progressToken"] for message in reply.before] == [f"t{n}"], str(reply.before)


async def test_progress_arrives_in_order_at_every_process(world: World) -> None:
    """typescript-sdk#843: progress, questions and more than one process at a time."""
    client = await Client(world).start(at=0)
    for at in (0, 1):
        call = client.calling("count", {"to": 20}, at=at, token=f"p{at}")
        reply = await call.answer()
        assert reply.tool == "counted to 20"
        assert [message["params"]["progress"] for message in reply.before] == list(range(1, 21)), reply.who


async def test_new_sessions_go_elsewhere_while_a_process_drains(several: World) -> None:
    """fastmcp#4791: a process that drains takes no new sessions, and clients are served by the others."""
    world = several
    client = await Client(world).start(at=0)
    call = client.calling("slow", {"ms": 2000}, at=0, token="t")
    await call.started()
    await world.front.reload(world.http, down=(0,))
    world.processes[0].terminate()
    for n in range(6):
        new = await Client(world, by=FRONT).start()
        assert (await new.call("echo", {"text": str(n)}, limit=PROMPT)).tool == str(n)
    try:
        assert (await call.answer()).tool == "slept 2000 ms"
    except Lost as lost:
        pytest.fail(f"a call that ran while its process drained: {lost}")


async def test_a_process_with_open_streams_ends(world: World) -> None:
    """python-sdk#1272, python-sdk#2150, mcp-clickhouse#164: SIGTERM ended nothing while clients were connected."""
    clients = await asyncio.gather(*(Client(world).start(at=0) for _ in range(10)))
    streams = [await client.stream(0).open() for client in clients]
    world.processes[0].terminate()
    assert await world.processes[0].ended(LIMIT) in (0, 143, -15)
    for stream in streams:
        await stream.over(PROMPT)
        assert stream.ended_in_order, f"the stream of {stream.who} {stream.end}"


@pytest.mark.parametrize("by", ["header", "nothing"])
async def test_a_client_whose_session_is_gone_can_begin_anew_at_any_process(world: World, by: str) -> None:
    """typescript-sdk#1476, rust-sdk#559, inspector#573: 404, neither 400 nor 401, and then a new session.

    Some clients keep the header of the old session with the new `initialize`.
    """
    client = await Client(world).start(at=0)
    await client.delete(0)

    async def gone() -> bool:
        return (await client.call("echo", {"text": "x"}, 1)).status == 404

    await until("404 for a session that was ended at process 0", gone, PROMPT)
    if by == "nothing":
        client.session = None
    reply = await client.request("initialize", OPENS["params"], 1)  # type: ignore[arg-type]
    assert reply.status == 200, str(reply)
    client.session = reply.headers["mcp-session-id"]
    await client.notify("notifications/initialized", at=0)
    for at in (0, 1):
        assert (await client.call("echo", {"text": "x"}, at)).tool == "x"


async def test_a_request_for_an_orphaned_session_does_not_wait_for_its_owner(several: World) -> None:
    """mcp-context-forge#5485: requests waited 30 s for the worker that was gone, for five minutes."""
    world = several
    clients = await asyncio.gather(*(Client(world).start(at=0) for _ in range(5)))
    streams = [await client.stream(0).open() for client in clients]
    await world.processes[0].kill()
    for stream in streams:
        await stream.over(PROMPT)
    loop = asyncio.get_running_loop()
    begun = loop.time()
    replies = await asyncio.gather(*(client.call("echo", {"text": "x"}, 1, PROMPT) for client in clients))
    assert [reply.tool for reply in replies] == ["x"] * 5
    reopened = await asyncio.gather(
        *(client.stream(1, last=old.last).open(PROMPT) for client, old in zip(clients, streams))
    )
    assert loop.time() - begun < 2 * PROMPT
    await clients[0].subscribe(STATIC, at=1)
    await clients[0].touch(STATIC, at=1)
    assert told(await reopened[0].message()) == STATIC
