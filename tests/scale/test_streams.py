"""Streams: what changes anywhere arrives once, and a stream that broke goes on at any process."""

import asyncio
import json

import pytest
from conftest import Starts
from wire import STATIC, WATCHED, Client, Event, Events, Modern, told
from world import FRONT, LIMIT, PROMPT, World

pytestmark = pytest.mark.engine


@pytest.mark.parametrize("change_at", [0, 1])
@pytest.mark.parametrize("stream_at", [0, 1])
@pytest.mark.parametrize("name", ["tools", "prompts"])
async def test_a_changed_list_arrives_once(world: World, name: str, stream_at: int, change_at: int) -> None:
    client = await Client(world).start(at=0)
    other = await Client(world).start(at=1)
    stream = await client.stream(stream_at).open()
    _ = (await other.call(f"test_trigger_{name.removesuffix('s')}_change", at=change_at)).tool
    assert told(await stream.message()) == name
    # Changes of lists are collected for a while, so another list is what shows that nothing of the first one follows.
    fence = "prompts" if name == "tools" else "tools"
    for at in (0, 1):
        _ = (await other.call(f"test_trigger_{fence.removesuffix('s')}_change", at=at)).tool
        seen = told(await stream.message())
        assert seen == fence, f"{name} changed once at process {change_at}, and yet {stream.who} says {seen} again"
    assert await client.settled(stream) == []


async def test_changes_of_both_processes_arrive_once_each(world: World) -> None:
    client = await Client(world).start(at=0)
    other = await Client(world).start(at=1)
    stream = await client.stream(1).open()
    uris = [f"test://template/{n}/data" for n in range(40)]
    await asyncio.gather(*(client.subscribe(uri) for uri in uris))
    await asyncio.gather(*(other.touch(uri, at=n % 2) for n, uri in enumerate(uris)))
    assert sorted(await client.settled(stream)) == sorted(uris)


async def test_two_streams_of_a_session_at_two_processes_get_each_event_once(world: World) -> None:
    """Each message goes on one stream of a session, although both processes hear of the change."""
    client = await Client(world).start(at=0)
    streams = [await client.stream(at).open() for at in (0, 1)]
    uris = [f"test://template/{n}/data" for n in range(20)]
    await asyncio.gather(*(client.subscribe(uri) for uri in uris))
    for n, uri in enumerate(uris):
        await client.touch(uri, at=n % 2)
    assert sorted(await client.settled(*streams)) == sorted(uris)


async def test_what_changes_without_a_stream_waits_for_it_at_any_process(world: World) -> None:
    client = await Client(world).start(at=0)
    await client.subscribe(STATIC, at=0)
    await client.touch(STATIC, at=0)
    stream = await client.stream(1).open()
    assert await client.settled(stream) == [STATIC]


async def taken(stream: Events, count: int) -> list[Event]:
    events = []
    for _ in range(count):
        event = await stream.next()
        assert event is not None, f"the stream of {stream.who} {stream.end} after {len(events)} of {count} events"
        events.append(event)
    return events


@pytest.mark.parametrize("after", ["last", "first", "priming"])
@pytest.mark.parametrize(("first_at", "then_at"), [(0, 1), (1, 0), (0, 0)])
async def test_a_broken_stream_goes_on_elsewhere(world: World, first_at: int, then_at: int, after: str) -> None:
    """Nothing is missing and nothing comes twice, from the last event, and from an earlier one, which is repeated."""
    client = await Client(world).start(at=0)
    uris = [f"test://template/{n}/data" for n in range(8)]
    await asyncio.gather(*(client.subscribe(uri) for uri in uris))
    stream = await client.stream(first_at).open()
    # The event without data with which a stream of 2025-11-25 begins.
    await asyncio.wait_for(stream.named.wait(), PROMPT)
    priming = stream.last
    for n, uri in enumerate(uris[:4]):
        await client.touch(uri, at=n % 2)
    events = await taken(stream, 4)
    assert sorted(told(event.message) for event in events) == sorted(uris[:4])
    assert all(event.id for event in events), "events without ids cannot be resumed from"
    await stream.close()
    for n, uri in enumerate(uris[4:]):
        await client.touch(uri, at=n % 2)
    last, repeated = {
        "last": (events[-1].id, []),
        "first": (events[0].id, events[1:]),
        "priming": (priming, events),
    }[after]
    again = await client.stream(then_at, last=last).open()
    seen = await client.settled(again)
    assert sorted(seen) == sorted([told(event.message) for event in repeated] + uris[4:])


async def test_a_stream_that_moves_ten_times_loses_and_doubles_nothing(world: World) -> None:
    client = await Client(world).start(at=0)
    other = await Client(world).start(at=0)
    uris = [f"test://template/{n}/data" for n in range(100)]
    await asyncio.gather(*(client.subscribe(uri) for uri in uris))

    async def change() -> None:
        for n, uri in enumerate(uris):
            await other.touch(uri, at=n % 2)

    changing = asyncio.create_task(change())
    seen: list[str] = []
    stream = await client.stream(0).open()
    for move in range(10):
        seen += [told(event.message) for event in await taken(stream, 5)]
        await stream.close()
        # Events that arrived with the cut were not taken by anybody, so they count as not seen.
        assert stream.read
        stream = await client.stream((move + 1) % 2, last=stream.read).open()
    await changing
    seen += await client.settled(stream)
    doubled = sorted({uri for uri in seen if seen.count(uri) > 1})
    assert not doubled, f"twice: {doubled}"
    assert sorted(seen) == sorted(uris), f"lost: {sorted(set(uris) - set(seen))}"


async def test_a_call_that_lost_its_stream_is_answered_at_another_process(world: World) -> None:
    client = await Client(world).start(at=0)
    call = client.calling("slow", {"ms": 1500}, at=0, token="t")
    event = await call.next()
    assert event is not None
    assert event.message["method"] == "notifications/progress"
    assert event.id, "an event without an id cannot be resumed from"
    await call.close()
    rest = client.stream(1, last=event.id)
    await rest.open()
    reply = await rest.answer()
    assert reply.tool == "slept 1500 ms"
    # Of the response and nothing else: the second progress, and none that came before.
    assert [message["params"]["progress"] for message in reply.before] == [1500]


async def test_an_answer_that_came_while_nobody_read_is_kept_for_any_process(world: World) -> None:
    client = await Client(world).start(at=0)
    call = client.calling("slow", {"ms": 300}, at=0, token="t")
    event = await call.next()
    assert event is not None
    await call.close()
    # Another call that ends later: by then the first one has its answer.
    assert (await client.call("slow", {"ms": 1000}, 1)).tool == "slept 1000 ms"
    rest = await client.stream(1, last=event.id).open()
    assert (await rest.answer()).tool == "slept 300 ms"


async def test_a_stream_that_the_server_closed_goes_on_elsewhere(world: World) -> None:
    client = await Client(world).start(at=0)
    call = await client.calling("test_reconnection", at=0).open()
    assert await call.over() == "ended in order"
    assert call.last, "no event to resume from"
    rest = await client.stream(1, last=call.last).open()
    assert (await rest.answer()).tool == "Reconnection test completed successfully"


async def test_a_call_is_resumed_once(world: World) -> None:
    """Two readers of one response, at two processes: the answer goes to the one that came last."""
    client = await Client(world).start(at=0)
    call = client.calling("slow", {"ms": 1500}, at=0, token="t")
    event = await call.next()
    assert event is not None
    await call.close()
    first = await client.stream(1, last=event.id).open()
    second = await client.stream(0, last=event.id).open()
    assert (await second.answer()).tool == "slept 1500 ms"
    await first.over(LIMIT)
    kept = [event.message for event in first.messages._queue if event]  # type: ignore[attr-defined]
    assert not kept, f"{first.who} sent it, too: {kept}"


@pytest.mark.parametrize("last", ["s999-1000", "r999-1000", "nonsense", "s1-9999999"])
async def test_an_event_that_never_was_is_refused_everywhere(world: World, last: str) -> None:
    client = await Client(world).start(at=0)
    for at in (0, 1):
        stream = client.stream(at, last=last)
        assert await stream.head() == 400, f"{stream.who} answered {stream.status} to Last-Event-ID {last}"


async def test_another_sessions_event_resumes_nothing(world: World) -> None:
    ada, eve = await Client(world).start(at=0), await Client(world).start(at=1)
    stream = await ada.stream(0).open()
    await ada.subscribe(STATIC)
    await ada.touch(STATIC, at=1)
    event = await stream.next()
    assert event is not None
    await stream.close()
    stolen = eve.stream(1, last=event.id)
    if await stolen.head() == 200:
        # An id that its session has, too, is its own.
        assert await eve.settled(stolen) == []
    assert await ada.settled(await ada.stream(1, last=event.id).open()) == []


async def test_streams_through_the_balancer(world: World) -> None:
    client = await Client(world, by=FRONT).start()
    stream = await client.stream().open()
    await client.subscribe(WATCHED)
    for _ in range(4):
        await client.touch(WATCHED)
        assert told(await stream.message()) == WATCHED


async def test_the_number_of_streams_of_a_session_is_limited_for_all_processes(world: World) -> None:
    client = await Client(world).start(at=0)
    statuses = [await client.stream(n % 2).head() for n in range(40)]
    assert statuses[:8] == [200] * 8, statuses
    assert 409 in statuses or 503 in statuses, f"40 streams of one session: {statuses}"


async def test_a_modern_listener_hears_of_every_process(world: World) -> None:
    modern = Modern(world)
    listeners = [await modern.listen(WATCHED, at) for at in (0, 1)]
    for at in (0, 1):
        _ = (await modern.call("touch", {"uri": WATCHED}, at)).tool
        for listener in listeners:
            assert told(await listener.message()) == WATCHED
        _ = (await modern.call("test_trigger_tool_change", at=at)).result
        for listener in listeners:
            assert told(await listener.message()) == "tools"


async def test_both_eras_hear_of_each_others_changes(world: World) -> None:
    client, modern = await Client(world).start(at=0), Modern(world)
    stream, listener = await client.stream(1).open(), await modern.listen(WATCHED, 0)
    await client.subscribe(WATCHED, at=0)
    _ = (await modern.call("touch", {"uri": WATCHED}, 1)).tool
    assert told(await listener.message()) == WATCHED
    assert await client.settled(stream) == [WATCHED]


async def test_a_list_change_is_one_publish(start: Starts) -> None:
    """A change costs the store the same for one session and for fifty."""
    world = await start()
    costs = []
    clients: list[Client] = []
    streams = []
    for count in (1, 50):
        while len(clients) < count:
            clients.append(await Client(world).start(at=len(clients) % 2))
            streams.append(await clients[-1].stream(len(clients) % 2).open())
        before = await world.store.info("total_commands_processed")
        for _ in range(5):
            _ = (await clients[0].call("test_trigger_tool_change", at=0)).tool
            for stream in streams:
                assert told(await stream.message()) == "tools"
        costs.append(await world.store.info("total_commands_processed") - before)
    # An event that is kept for its session's stream is written for each session; the change itself is one.
    assert costs[1] <= costs[0] + 5 * 49 * 6 + 200, f"commands for five changes: {costs}"


async def test_metrics_count_a_processs_own_streams(world: World) -> None:
    client = await Client(world).start(at=0)
    _ = await client.stream(1).open()
    counts = [json.loads((await client.call("test_metrics", at=at)).tool)["server"]["streams"] for at in (0, 1)]
    assert counts[1] >= 1, counts
