"""A store that stands still, restarts, is emptied, is full, or holds what is not ours."""

import asyncio
import re
import signal

import pytest
from conftest import Starts
from wire import STATIC, Client, Events, Modern, Reply, told
from world import PROMPT, World, until

pytestmark = pytest.mark.engine

DEFINED = (200, 404, 503)
OF_A_LOST_SESSION = [
    "no valid",
    "invalid",
    "not found",
    "unknown",
    "expired",
    "missing",
    "exist",
    "terminated",
    "required",
]
"""Words by which clients, ours among them, know that a session is gone, whatever the status is."""


def unavailable(reply: Reply) -> None:
    """503, with the time after which to try again."""
    assert reply.status == 503, f"expected 503: {reply}"
    after = reply.headers.get("retry-after", "")
    assert re.fullmatch(r"\d+", after), f"503 without Retry-After: {reply} {dict(reply.headers)}"
    assert int(after) <= 30, f"Retry-After: {after}"
    said = str(reply.message).lower()
    words = [word for word in OF_A_LOST_SESSION if word in said]
    assert "session" not in said or not words, f"clients take this for a session that is gone ({words}): {reply}"


async def stand_still(world: World) -> None:
    """Stops the store, and waits until a process has seen that."""
    world.store.signal(signal.SIGSTOP)


async def again(client: Client, at: int) -> bool:
    """Asks until there is another answer than 503; true if the session is there."""

    async def answered() -> Reply | None:
        reply = await client.call("echo", {"text": "back"}, at, PROMPT)
        assert reply.status in DEFINED, str(reply)
        return None if reply.status == 503 else reply

    reply = await until(f"process {at} answers a session when the store is back", answered)
    return reply.status == 200


async def test_what_needs_no_store_goes_on_without_it(world: World) -> None:
    modern = Modern(world)
    await stand_still(world)
    for turn in range(10):
        assert (await modern.call("echo", {"text": str(turn)}, turn % 2, PROMPT)).tool == str(turn)
    await world.store.kill()
    for turn in range(10):
        assert (await modern.call("echo", {"text": str(turn)}, turn % 2, PROMPT)).tool == str(turn)


@pytest.mark.parametrize("how", ["stopped", "killed"])
async def test_what_needs_the_store_gets_503_and_does_not_hang(world: World, how: str) -> None:
    client = await Client(world).start(at=0)
    # Process 1 has heard nothing of this one.
    stranger = Client(world)
    _ = (await stranger.initialize(0)).result
    await stranger.notify("notifications/initialized", at=0)
    if how == "stopped":
        await stand_still(world)
    else:
        await world.store.kill()
    for at in (0, 1):
        unavailable(await Client(world).initialize(at, PROMPT))
    # At a process that has not seen the session; 404 would make a client throw it away.
    for turn in range(3):
        unavailable(await stranger.call("echo", {"text": str(turn)}, 1, PROMPT))
    stream: Events = stranger.stream(1)
    assert await stream.head(PROMPT) == 503, f"{stream.who} answered {stream.status} {stream.text}"
    for at in (0, 1):
        reply = await client.call("echo", {"text": "x"}, at, PROMPT)
        assert reply.status in (200, 503), str(reply)
    if how == "stopped":
        world.store.signal(signal.SIGCONT)
        for at in (0, 1):
            assert await again(client, at), f"process {at} forgot a session while the store stood still"
            assert await again(stranger, at), f"process {at} forgot a session while the store stood still"


async def test_a_short_stop_of_the_store_loses_no_change(world: World) -> None:
    client, modern = await Client(world).start(at=0), Modern(world)
    stream, listener = await client.stream(1).open(), await modern.listen(STATIC, 1)
    await client.subscribe(STATIC, at=0)
    await stand_still(world)
    _ = (await modern.call("touch", {"uri": STATIC}, 0, PROMPT)).tool
    world.store.signal(signal.SIGCONT)
    assert told(await listener.message()) == STATIC
    assert told(await stream.message()) == STATIC
    for at in (0, 1):
        assert await again(client, at)
    assert await client.settled(stream) == []


async def test_streams_stay_open_while_the_store_is_away(world: World) -> None:
    client = await Client(world).start(at=0)
    await client.subscribe(STATIC, at=0)
    streams = [await client.stream(at).open() for at in (0, 1)]
    await stand_still(world)
    unavailable(await Client(world).initialize(0, PROMPT))
    world.store.signal(signal.SIGCONT)
    for at in (0, 1):
        assert await again(client, at)
    assert [stream.end for stream in streams] == [None, None], "a stream ended because the store stood still"
    await client.touch(STATIC, at=0)
    assert await client.settled(*streams) == [STATIC]


@pytest.mark.parametrize("how", ["restarted", "flushed"])
async def test_a_store_that_lost_everything_is_used_again(world: World, how: str) -> None:
    """Sessions are there as before, or 404, at all processes alike; new ones work at once."""
    client = await Client(world).start(at=0)
    _ = (await client.call("echo", {"text": "x"}, 1)).tool
    if how == "restarted":
        await world.store.kill()
        await world.store.start()
    else:
        await world.store.do("FLUSHALL")

    async def opens() -> Client | None:
        new = Client(world)
        return new if (await new.initialize(0, PROMPT)).status == 200 else None

    new = await until("a new session", opens)
    await new.notify("notifications/initialized", at=0)
    for at in (1, 0, 1):
        assert await again(new, at), f"process {at} does not know a session that was opened after the store was {how}"

    async def agree() -> bool:
        return len({await again(client, at) for at in (0, 1, 0, 1)}) == 1

    await until("all processes agree on a session that the store lost", agree)
    modern = Modern(world)
    listeners = [await modern.listen(STATIC, at) for at in (0, 1)]
    for at in (0, 1):
        _ = (await modern.call("touch", {"uri": STATIC}, at)).tool
        for listener in listeners:
            seen = told(await listener.message())
            # After a loss everything counts as changed, once.
            while seen != STATIC:
                seen = told(await listener.message())


async def test_a_stream_that_the_store_lost_ends_or_says_that_it_has_gaps(world: World) -> None:
    """After FLUSHALL: the events after Last-Event-ID, or a refusal; never a stream that goes on as if nothing was."""
    client = await Client(world).start(at=0)
    await client.subscribe(STATIC, at=0)
    stream = await client.stream(0).open()
    await client.touch(STATIC, at=1)
    assert told(await stream.message()) == STATIC
    await stream.close()
    await client.touch(STATIC, at=1)
    await world.store.do("FLUSHALL")
    for at in (0, 1):
        rest = client.stream(at, last=stream.read)
        status = await rest.head(PROMPT)
        assert status in (200, 400, 404), f"{rest.who} answered {status} {rest.text}"
        if status == 200:
            # After a loss everything may count as changed.
            seen = [told(await rest.message())]
            while seen[-1] != STATIC and len(seen) < 20:
                seen.append(told(await rest.message()))
            assert seen[-1] == STATIC, seen
            await rest.close()


async def test_a_full_store_refuses_new_sessions_and_serves_the_others(world: World) -> None:
    client = await Client(world).start(at=0)
    _ = (await client.call("echo", {"text": "x"}, 1)).tool
    await world.store.do("CONFIG", "SET", "maxmemory", 1)
    unavailable(await Client(world).initialize(0, PROMPT))
    assert (await Modern(world).call("echo", {"text": "x"}, 1, PROMPT)).tool == "x"
    for at in (0, 1):
        reply = await client.call("echo", {"text": "x"}, at, PROMPT)
        assert reply.status in (200, 503), str(reply)
    await world.store.do("CONFIG", "SET", "maxmemory", 0)
    for at in (0, 1):
        assert await again(client, at)
    await (await Client(world).start(at=1)).touch(STATIC, at=0)


async def test_what_is_not_ours_in_the_store_is_no_session(world: World) -> None:
    client = await Client(world).start(at=0)
    keys = await world.store.keys()
    assert keys, "nothing is in the store"
    for key in keys:
        await world.store.do("SET", key, "\x00 not ours {")
    for at in (0, 1):
        reply = await client.call("echo", {"text": "x"}, at, PROMPT)
        assert reply.status in (200, 404, 503), str(reply)
        reply = await Client(world).initialize(at, PROMPT)
        assert reply.status in (200, 503), str(reply)
        assert (await Modern(world).call("echo", {"text": "x"}, at, PROMPT)).tool == "x"
    await world.store.do("FLUSHALL")

    async def opens() -> bool:
        return (await Client(world).initialize(1, PROMPT)).status == 200

    await until("a new session after what was not ours is gone", opens)


@pytest.mark.parametrize("how", ["held", "cut"])
async def test_a_process_that_lost_the_store_does_not_stop_the_other(start: Starts, how: str) -> None:
    world = await start(wired=True)
    client, modern = await Client(world).start(at=0), Modern(world)
    await client.subscribe(STATIC, at=1)
    stream = await client.stream(1).open()
    if how == "held":
        world.wires[1].hold()
    else:
        await world.wires[1].cut()
    unavailable(await Client(world).initialize(1, PROMPT))
    for turn in range(10):
        assert (await client.call("echo", {"text": str(turn)}, 0, PROMPT)).tool == str(turn)
        assert (await modern.call("echo", {"text": str(turn)}, 1, PROMPT)).tool == str(turn)
        reply = await client.call("echo", {"text": str(turn)}, 1, PROMPT)
        assert reply.status in (200, 503), str(reply)
    new = Client(world)
    assert (await new.initialize(0, PROMPT)).status == 200
    await client.touch(STATIC, at=0)
    await world.wires[1].heal()
    for at in (0, 1):
        assert await again(client, at), f"process {at} lost a session while process 1 was cut off"
    assert told(await stream.message()) == STATIC
    assert await client.settled(stream) == []


async def test_connections_to_the_store_that_are_cut_again_and_again(world: World) -> None:
    client = await Client(world).start(at=0)
    over = asyncio.Event()

    async def cut() -> int:
        count = 0
        while not over.is_set():
            # Both reconnect; the calls of neither may fail for longer than that takes.
            count += await world.store.do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            await until("both processes connect again", lambda: connected(world))
        return count

    cutting = asyncio.create_task(cut())
    answered = 0
    try:
        for turn in range(50):
            reply = await client.call("echo", {"text": str(turn)}, turn % 2, PROMPT)
            assert reply.status in (200, 503), str(reply)
            answered += reply.status == 200
    finally:
        over.set()
    await cutting
    for at in (0, 1):
        assert await again(client, at), f"process {at} lost a session with its connection to the store"


async def connected(world: World) -> bool:
    return await world.store.info("connected_clients") >= 3


async def test_trouble_is_one_line_and_its_end_another(world: World) -> None:
    client = await Client(world).start(at=0)
    before = [len(process.lines) for process in world.processes]
    await world.store.kill()
    for turn in range(20):
        reply = await client.call("echo", {"text": str(turn)}, turn % 2, PROMPT)
        assert reply.status in (200, 503), str(reply)
    await world.store.start()

    async def opens() -> bool:
        return all([(await Client(world).initialize(at, PROMPT)).status == 200 for at in (0, 1)])

    await until("new sessions when the store is back", opens)
    for process, count in zip(world.processes, before):
        lines = [line for line in process.lines[count:] if "store" in line or "redis" in line]
        assert 1 <= len(lines) <= 6, f"{process.name} says of one trouble: {lines}"


async def test_connections_to_the_store_are_few(world: World) -> None:
    """A process needs a handful for any number of sessions."""
    clients = await asyncio.gather(*(Client(world).start(at=n % 2) for n in range(40)))
    _ = [await client.stream(n % 2).open() for n, client in enumerate(clients)]
    await asyncio.gather(*(client.call("slow", {"ms": 100}) for client in clients))
    connections = await world.store.info("connected_clients")
    assert connections <= 20, f"{connections} connections of two processes"
