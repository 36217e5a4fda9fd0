"""The stream of an answer that broke goes on at any process, wherever the call runs."""

import asyncio
import json
import re
import signal
import socket
from pathlib import Path

import pytest
from conftest import Starts
from test_sessions import AUTH
from wire import STATIC, Client, Event, Events, accepted, told
from world import LIMIT, PROMPT, Json, Process, World, until

pytestmark = pytest.mark.engine


async def broken(call: Events) -> str:
    """Reads the first event of a call, and breaks its connection. Returns the id of the event."""
    event = await call.next()
    assert event is not None, f"the response of {call.who} {call.end}"
    assert event.id, "an event without an id cannot be resumed from"
    await call.close()
    return event.id


async def rest(stream: Events) -> list[Json]:
    """All messages until the answer, and after it nothing."""
    await stream.open()
    seen: list[Event] = []
    async with asyncio.timeout(LIMIT):
        while (event := await stream.next()) is not None:
            seen.append(event)
    assert stream.ended_in_order, f"the stream of {stream.who} {stream.end}"
    ids = [event.id for event in seen]
    assert len(set(ids)) == len(ids), f"twice: {ids}"
    return [event.message for event in seen]


def numbers(messages: list[Json]) -> list[float]:
    return [message["params"]["progress"] for message in messages if message.get("method") == "notifications/progress"]


def text(message: Json) -> str:
    return message["result"]["content"][0]["text"]


async def refused(stream: Events, status: int) -> Json:
    assert await stream.head(PROMPT) == status, f"{stream.who} answered {stream.status} {stream.text[:300]!r}"
    return (await stream.message())["error"]


def states(number: int) -> set[str]:
    """The states of all threads of a process."""
    threads = Path(f"/proc/{number}/task").iterdir()
    return {(thread / "stat").read_text().rpartition(")")[2].split()[0] for thread in threads}


async def stopped(process: Process) -> None:
    """Stops all threads of a process: what one of them does at that moment may still be answered."""
    process.signal(signal.SIGSTOP)
    assert process.process
    number = process.process.pid

    async def stand_still() -> bool:
        return states(number) == {"T"}

    await until(f"{process.name} stands still", stand_still)


@pytest.mark.parametrize("count", [2, 4])
async def test_a_stream_that_changes_its_place_again_and_again(start: Starts, count: int) -> None:
    world = await start(count=count)
    client = await Client(world).start(at=0)
    last = await broken(client.calling("slow", {"ms": 2500}, at=0, token="t"))
    places = [(turn + 1) % count for turn in range(2 * count)]
    for at in places:
        stream = await client.stream(at, last=last).open()
        await stream.close()
    messages = await rest(client.stream(1, last=last))
    assert (numbers(messages), text(messages[-1])) == ([2500], "slept 2500 ms")


@pytest.mark.parametrize(("first", "then"), [(0, 1), (1, 0)])
async def test_the_old_connection_still_lives(world: World, first: int, then: int) -> None:
    """A client may know that its connection is dead before the server does: the newest one has the stream."""
    client = await Client(world).start(at=0)
    call = client.calling("slow", {"ms": 1500}, at=first, token="t")
    event = await call.next()
    assert event is not None
    messages = await rest(client.stream(then, last=event.id))
    assert (numbers(messages), text(messages[-1])) == ([1500], "slept 1500 ms")
    assert await call.over() == "ended in order"
    assert call.messages.get_nowait() is None, f"{call.who} sent more on the old connection"


async def test_the_same_stream_twice_at_one_process(world: World) -> None:
    client = await Client(world).start(at=0)
    last = await broken(client.calling("slow", {"ms": 1500}, at=0, token="t"))
    first = await client.stream(1, last=last).open()
    messages = await rest(client.stream(1, last=last))
    assert text(messages[-1]) == "slept 1500 ms"
    assert await first.over() == "ended in order"


async def test_questions_of_a_resumed_stream_come_once_and_are_answered_anywhere(world: World) -> None:
    client = await Client(world).start(at=0)
    stream = client.calling("three_questions", at=0)
    for n, key in enumerate("abc"):
        event = await stream.next()
        assert event is not None, f"{stream.who} {stream.end}"
        assert event.message["method"] == "elicitation/create", f"{stream.who}: {event.message}"
        await stream.close()
        await client.reply(event.message, accepted(**{key: f"{key}{n}"}), at=n % 2)
        stream = await client.stream((n + 1) % 2, last=event.id).open()
    messages = await rest(stream)
    assert [text(message) for message in messages] == ["a0 b1 c2"]


async def test_log_messages_of_a_resumed_stream_come_once_and_in_order(world: World) -> None:
    client = await Client(world).start(at=0)
    last = await broken(client.calling("test_tool_with_logging", at=0))
    messages = await rest(client.stream(1, last=last))
    logs = [message["params"]["data"] for message in messages[:-1]]
    assert logs == ["Tool processing data", "Tool execution completed"]
    assert text(messages[-1]) == "Tool with logging executed successfully"


async def test_the_rest_of_a_finished_call_is_replayed_until_nothing_is_left(world: World) -> None:
    client = await Client(world).start(at=0)
    call = client.calling("count", {"to": 20}, at=0, token="t")
    events = []
    while (event := await call.next()) is not None:
        events.append(event)
    ids = [event.id for event in events]
    assert len(ids) == 21
    for at in (1, 0, 1):
        messages = await rest(client.stream(at, last=ids[4]))
        assert numbers(messages) == list(range(6, 21))
        assert text(messages[-1]) == "counted to 20"
        assert [text(message) for message in await rest(client.stream(at, last=ids[19]))] == ["counted to 20"]
        assert "is over" in (await refused(client.stream(at, last=ids[20]), 400))["message"]


async def test_many_calls_are_resumed_at_once(start: Starts) -> None:
    world = await start(count=4)
    clients = await asyncio.gather(*(Client(world).start(at=n % 4) for n in range(20)))

    async def one(client: Client, n: int, turn: int) -> None:
        ms = 1000 + 10 * n + turn
        last = await broken(client.calling("slow", {"ms": ms}, at=turn, token=f"{n}-{turn}"))
        for hop in range(3):
            stream = await client.stream((n + turn + hop) % 4, last=last).open()
            await stream.close()
        messages = await rest(client.stream((n + turn + 3) % 4, last=last))
        assert (numbers(messages), text(messages[-1])) == ([ms], f"slept {ms} ms")
        assert messages[0]["params"]["progressToken"] == f"{n}-{turn}"

    await asyncio.gather(*(one(client, n, turn) for n, client in enumerate(clients) for turn in range(4)))


async def test_an_event_of_another_session_resumes_nothing(world: World) -> None:
    """fastmcp#4402, frontmcp#529: ids of streams of one session were good in another."""
    ada, eve = await Client(world).start(at=0), await Client(world).start(at=1)
    last = await broken(ada.calling("slow", {"ms": 1500}, at=0, token="t"))
    for at in (1, 0, 1):
        assert "no such event" in (await refused(eve.stream(at, last=last), 400))["message"]
    assert text((await rest(ada.stream(1, last=last)))[-1]) == "slept 1500 ms"


async def test_another_user_resumes_nothing(start: Starts) -> None:
    world = await start(AUTH=json.dumps(AUTH))
    ada, eve = await Client(world, token="ada").start(at=0), Client(world, token="eve")
    last = await broken(ada.calling("slow", {"ms": 1500}, at=0, token="t"))
    eve.session = ada.session
    for at in (1, 0):
        assert await eve.stream(at, last=last).head() == 404
    assert text((await rest(ada.stream(1, last=last)))[-1]) == "slept 1500 ms"


async def test_a_cancelled_call_ends_the_resumed_stream(world: World) -> None:
    client = await Client(world).start(at=0)
    call = client.calling("slow", {"ms": 60_000}, at=0, token="t")
    number = call.number  # type: ignore[attr-defined]
    stream = await client.stream(1, last=await broken(call)).open()
    await client.notify("notifications/cancelled", {"requestId": number}, at=1)
    assert await stream.over() == "ended in order"


async def test_the_end_of_a_session_ends_its_resumed_streams(world: World) -> None:
    client = await Client(world).start(at=0)
    stream = await client.stream(1, last=await broken(client.calling("slow", {"ms": 60_000}, at=0, token="t"))).open()
    assert (await client.delete(0)).status == 204
    assert await stream.over() == "ended in order"


async def test_a_resumed_answer_leaves_the_standalone_stream_where_it_is(world: World) -> None:
    client = await Client(world).start(at=0)
    await client.subscribe(STATIC, at=0)
    standalone = await client.stream(0).open()
    last = await broken(client.calling("slow", {"ms": 1500}, at=0, token="t"))
    answer = await client.stream(1, last=last).open()
    for at in (0, 1):
        await client.touch(STATIC, at=at)
        assert told(await standalone.message()) == STATIC
    assert text((await rest(answer))[-1]) == "slept 1500 ms"
    assert await client.settled(standalone) == []


async def test_the_process_that_reads_ends_and_the_stream_goes_on_elsewhere(several: World) -> None:
    world = several
    client = await Client(world).start(at=0)
    last = await broken(client.calling("slow", {"ms": 3000}, at=0, token="t"))
    stream = await client.stream(1, last=last).open()
    world.processes[1].terminate()
    assert await stream.over() == "ended in order"
    assert text((await rest(client.stream(0, last=last)))[-1]) == "slept 3000 ms"


async def test_a_process_that_drains_answers_on_streams_of_others(several: World) -> None:
    world = several
    client = await Client(world).start(at=0)
    last = await broken(client.calling("slow", {"ms": 2000}, at=0, token="t"))
    stream = await client.stream(1, last=last).open()
    world.processes[0].terminate()
    assert text((await rest(stream))[-1]) == "slept 2000 ms"
    assert await world.processes[0].ended() == 0


async def test_the_process_that_reads_is_killed_and_the_stream_goes_on_elsewhere(start: Starts) -> None:
    world = await start(count=4)
    client = await Client(world).start(at=0)
    last = await broken(client.calling("slow", {"ms": 3000}, at=0, token="t"))
    stream = await client.stream(1, last=last).open()
    await world.processes[1].kill()
    await stream.over()
    assert text((await rest(client.stream(2, last=last)))[-1]) == "slept 3000 ms"


async def test_the_answer_is_lost_with_the_process_that_was_killed(stored: World) -> None:
    world = stored
    client = await Client(world).start(at=0)
    last = await broken(client.calling("slow", {"ms": 60_000}, at=0, token="t"))
    open_one = await client.stream(1, last=last).open()
    await world.processes[0].kill()
    stream = client.stream(1, last=last)
    # Nobody knows yet: it may stand still.
    assert (await refused(stream, 503))["code"] == -32010
    assert re.fullmatch(r"\d+", stream.headers["retry-after"])
    number = int(last[1:].split("-")[0]) >> 40
    lease = [key for key in await world.store.keys() if f":node:{number}:" in key]
    assert lease, number
    # Its lease ends after half a minute.
    await world.store.do("DEL", *lease)
    assert "lost" in (await refused(client.stream(1, last=last), 400))["message"]
    await open_one.over()
    assert open_one.ended_in_order, open_one.end
    assert (await client.call("echo", {"text": "x"}, 1)).tool == "x"


async def test_a_process_that_stands_still_is_not_waited_for(several: World) -> None:
    world = several
    client = await Client(world).start(at=0)
    last = await broken(client.calling("slow", {"ms": 1000}, at=0, token="t"))
    await stopped(world.processes[0])
    stream = client.stream(1, last=last)
    assert (await refused(stream, 503))["code"] == -32010
    assert "retry-after" in stream.headers
    world.processes[0].signal(signal.SIGCONT)

    async def resumes() -> Events | None:
        again = client.stream(1, last=last)
        return again if await again.head() == 200 else None

    assert text((await rest(await until("the stream goes on", resumes)))[-1]) == "slept 1000 ms"


async def test_the_store_stands_still_while_a_stream_is_resumed(stored: World) -> None:
    world = stored
    client = await Client(world).start(at=0)
    _ = (await client.call("echo", {"text": "x"}, 1)).tool
    last = await broken(client.calling("slow", {"ms": 1500}, at=0, token="t"))
    stream = await client.stream(1, last=last).open()
    world.store.signal(signal.SIGSTOP)
    asked = client.stream(1, last=last)
    assert (await refused(asked, 503))["code"] == -32010
    assert "retry-after" in asked.headers
    world.store.signal(signal.SIGCONT)
    assert text((await rest(stream))[-1]) == "slept 1500 ms"


@pytest.mark.slow
async def test_a_slow_reader_loses_nothing(world: World) -> None:
    """The rest is there when it comes again: nothing is missing and nothing comes twice."""
    client, clock = await Client(world).start(at=0), await Client(world).start(at=1)
    call = client.calling("count", {"to": 200}, at=0, token="t" * 4000)
    assert "counted" in (await call.answer()).tool
    assert call.last
    stream = int(call.last[1:].split("-")[0])
    beginning = f"r{stream}-{stream}"
    everything = numbers(await rest(client.stream(0, last=beginning)))
    # HTTP/1.0 has no chunks, and small segments and a small window are full soon.
    one = socket.socket()
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    one.setblocking(False)
    loop = asyncio.get_running_loop()
    port = world.processes[1].port
    await loop.sock_connect(one, ("127.0.0.1", port))
    headers = {**client.headers("text/event-stream"), "last-event-id": beginning}
    lines = [f"GET /mcp HTTP/1.0\r\nhost: 127.0.0.1:{port}", *(f"{k}: {v}" for k, v in headers.items())]
    await loop.sock_sendall(one, ("\r\n".join(lines) + "\r\n\r\n").encode())
    assert (await clock.call("slow", {"ms": 12_000}, 1)).tool == "slept 12000 ms"
    data = b""
    async with asyncio.timeout(LIMIT):
        while some := await loop.sock_recv(one, 65536):
            data += some
    one.close()
    seen = data.decode()
    assert " 200 OK" in seen[:30], seen[:300]
    first = [int(n) for n in re.findall(r'"progress":(\d+)', seen)]
    if "too slow" not in seen[-300:]:
        # The buffers of this system took all of it.
        assert first == everything
        assert seen.rstrip().endswith('"text":"counted to 200"}]}}')
        return
    last = re.findall(r"^id: (\S+)$", seen, re.MULTILINE)[-1]
    messages = await rest(client.stream(1, last=last))
    both = [*first, *numbers(messages)]
    assert both == everything, f"{first[:3]}..{first[-3:]}, {numbers(messages)[:3]}"
    assert text(messages[-1]) == "counted to 200"
