"""Processes that end, are killed, stand still and come back."""

import asyncio
import contextlib
import itertools
import signal

import pytest
from conftest import Starts
from wire import STATIC, Client, Lost, Modern, accepted, told
from world import FRONT, LIMIT, PROMPT, World, until

STOPPED = 30.0
"""Seconds after which the others know that a process is gone."""


async def test_a_killed_process_leaves_its_sessions_usable(world: World) -> None:
    clients = await asyncio.gather(*(Client(world).start(at=0) for _ in range(20)))
    await asyncio.gather(*(client.subscribe(STATIC, at=0) for client in clients))
    _ = (await clients[0].request("logging/setLevel", {"level": "error"}, 0)).result
    await world.processes[0].kill()
    for n, client in enumerate(clients):
        reply = await client.call("echo", {"text": str(n)}, 1, PROMPT)
        assert reply.tool == str(n)
    assert not (await clients[0].call("test_tool_with_logging", at=1)).before, "the log level went with the process"
    streams = [await client.stream(1).open() for client in clients]
    await clients[0].touch(STATIC, at=1)
    for stream in streams:
        assert told(await stream.message()) == STATIC


async def test_a_stream_of_a_killed_process_goes_on_at_another(world: World) -> None:
    client = await Client(world).start(at=0)
    uris = [f"test://template/{n}/data" for n in range(6)]
    await asyncio.gather(*(client.subscribe(uri) for uri in uris))
    stream = await client.stream(0).open()
    for n, uri in enumerate(uris[:3]):
        await client.touch(uri, at=n % 2)
    seen = [told(await stream.message()) for _ in uris[:3]]
    assert sorted(seen) == sorted(uris[:3])
    await world.processes[0].kill()
    await stream.over(PROMPT)
    for uri in uris[3:]:
        await client.touch(uri, at=1)
    again = await client.stream(1, last=stream.read).open()
    assert sorted(await client.settled(again, at=(1,))) == sorted(uris[3:])


async def test_a_call_and_a_question_of_a_killed_process_end_in_a_defined_way(world: World) -> None:
    """A session, a stream, a call and a question are open when the process is killed."""
    client = await Client(world).start(at=0)
    stream = await client.stream(0).open()
    running = client.calling("slow", {"ms": 120_000}, at=0, token="t")
    event = await running.next()
    assert event is not None
    asking = client.calling("test_streaming_elicitation", at=0)
    asked = await asking.next()
    assert asked is not None
    await world.processes[0].kill()
    for events in (stream, running, asking):
        await events.over(PROMPT)
    # The answer to the question of a process that is gone: taken or refused, at once.
    reply = await client.post({"jsonrpc": "2.0", "id": asked.message["id"], "result": accepted(name="x")}, 1, PROMPT)
    assert reply.status in (202, 400), str(reply)
    assert (await client.call("echo", {"text": "there"}, 1, PROMPT)).tool == "there"
    for events, last in ((running, event.id), (asking, asked.id)):
        rest = client.stream(1, last=last)
        status = await rest.head(STOPPED)
        if status == 200:
            reply = await rest.answer(STOPPED)
            assert reply.message is not None, f"the rest of a call of a dead process ends without an answer: {reply}"
            assert "error" in reply.message, str(reply)
            assert reply.message["id"] == events.number, str(reply)  # type: ignore[attr-defined]
        else:
            # 404 would say that the session is gone. 503: until its lease ends it may be a process that stands still.
            assert status in (400, 503), f"{rest.who} answered {status} {rest.text}"
            assert status == 400 or "retry-after" in rest.headers, str(rest.headers)
    # Asked again, it is answered.
    call = client.calling("test_streaming_elicitation", at=1)
    await client.reply(await call.question(), accepted(name="Ada"), at=1)
    assert (await call.answer()).tool == "Hello, Ada!"


async def test_a_process_that_comes_back_knows_all_sessions(world: World) -> None:
    client = await Client(world).start(at=0)
    await client.subscribe(STATIC, at=0)
    await world.processes[0].kill()
    await client.touch(STATIC, at=1)
    await world.processes[0].start()
    assert (await client.call("echo", {"text": "back"}, 0, PROMPT)).tool == "back"
    stream = await client.stream(0).open()
    seen = await client.settled(stream)
    assert seen == [STATIC], "a change that nobody was there to read waits for the next stream"


async def test_both_processes_are_replaced_one_after_the_other(world: World) -> None:
    """None is left that has seen `initialize`."""
    client = await Client(world, "2025-06-18").start(at=0)
    await client.subscribe(STATIC, at=1)
    for at in (0, 1):
        await world.processes[at].kill()
        await world.processes[at].start()
    for at in (0, 1):
        assert (await client.call("echo", {"text": "x"}, at, PROMPT)).tool == "x"
    stream = await client.stream(1).open()
    await client.touch(STATIC, at=0)
    assert await client.settled(stream) == [STATIC]


async def test_a_process_that_stood_still_doubles_nothing(world: World) -> None:
    """A process with a stream is stopped; its client goes elsewhere; then it goes on."""
    client = await Client(world).start(at=0)
    uris = [f"test://template/{n}/data" for n in range(6)]
    await asyncio.gather(*(client.subscribe(uri) for uri in uris))
    first = await client.stream(0).open()
    await client.touch(uris[0], at=0)
    assert told(await first.message()) == uris[0]
    world.processes[0].signal(signal.SIGSTOP)
    second = await client.stream(1, last=first.read).open()
    for uri in uris[1:]:
        await client.touch(uri, at=1)
    seen = [told(await second.message()) for _ in uris[1:]]
    assert sorted(seen) == sorted(uris[1:])
    world.processes[0].signal(signal.SIGCONT)
    # The first stream still gets what its client has not asked for elsewhere: nothing.
    assert await client.settled(first, second) == []


async def test_sigterm_lets_calls_end(world: World) -> None:
    client = await Client(world).start(at=0)
    call = client.calling("slow", {"ms": 800}, at=0, token="t")
    await call.started()
    world.processes[0].terminate()
    try:
        assert (await call.answer()).tool == "slept 800 ms"
    except Lost as lost:
        pytest.fail(f"SIGTERM cut a call that runs: {lost}")
    await world.processes[0].ended()
    assert (await client.call("echo", {"text": "x"}, 1, PROMPT)).tool == "x"


async def test_sigterm_ends_streams_in_order_and_they_go_on_elsewhere(world: World) -> None:
    client = await Client(world).start(at=0)
    await client.subscribe(STATIC, at=0)
    stream = await client.stream(0).open()
    await client.touch(STATIC, at=1)
    assert told(await stream.message()) == STATIC
    world.processes[0].terminate()
    await stream.over(PROMPT)
    assert stream.ended_in_order, f"the stream of {stream.who} {stream.end}"
    await client.touch(STATIC, at=1)
    again = await client.stream(1, last=stream.read).open()
    assert await client.settled(again, at=(1,)) == [STATIC]
    await world.processes[0].ended()


async def test_a_question_that_is_open_at_sigterm_can_still_be_answered(world: World) -> None:
    client = await Client(world).start(at=0)
    call = client.calling("test_streaming_elicitation", at=0)
    question = await call.question()
    world.processes[0].terminate()
    await client.reply(question, accepted(name="Ada"), at=1)
    try:
        assert (await call.answer()).tool == "Hello, Ada!"
    except Lost as lost:
        pytest.fail(f"SIGTERM cut a call that waits for its answer: {lost}")


async def test_a_rolling_restart_is_noticed_by_no_client(world: World) -> None:
    """The balancer takes a process out, the process drains and is started again; then the next one."""
    clients = await asyncio.gather(*(Client(world, by=FRONT).start() for _ in range(10)))
    over = asyncio.Event()
    failures: list[str] = []

    async def work(n: int, client: Client) -> int:
        for turn in itertools.count():
            if over.is_set():
                return turn
            try:
                reply = await client.call("slow", {"ms": 20})
                if reply.status != 200 or "result" not in (reply.message or {}):
                    failures.append(str(reply))
            except (Lost, AssertionError) as error:
                failures.append(str(error))
            if turn % 5 == n % 5:
                call = client.calling("test_streaming_elicitation")
                with contextlib.suppress(Lost):
                    await client.reply(await call.question(), accepted(name="Ada"))
                    if (await call.answer()).tool != "Hello, Ada!":
                        failures.append("a question without its answer")
        return 0

    working = [asyncio.create_task(work(n, client)) for n, client in enumerate(clients)]
    try:
        for number, process in enumerate(world.processes):
            await world.front.reload(world.http, down=(number,))
            process.terminate()
            await process.ended()
            await process.kill()
            await process.start()
            await world.front.reload(world.http)
    finally:
        over.set()
    turns = await asyncio.gather(*working)
    assert not failures, f"{len(failures)} of {sum(turns)} calls: {failures[:5]}"
    assert all(turns)


async def test_a_restart_that_the_balancer_does_not_know_of_keeps_sessions(world: World) -> None:
    """Without a word to nginx: what it had sent to the process may fail, and everything after it must not."""
    client = await Client(world, by=FRONT).start()
    for process in world.processes:
        process.terminate()
        await process.ended()
        for turn in range(4):
            reply = await client.call("echo", {"text": str(turn)}, limit=PROMPT)
            assert reply.status == 200 or turn == 0, f"with one process left: {reply}"
        await process.kill()
        await process.start()
        name = f"process {process.number} behind nginx"

        async def back(name: str = name) -> bool:
            return (await client.call("echo", {"text": "x"}, limit=PROMPT)).who == name

        await until(f"nginx sends requests to process {process.number} again", back)
    for turn in range(4):
        assert (await client.call("echo", {"text": str(turn)})).tool == str(turn)


async def test_a_killed_process_behind_the_balancer_costs_what_it_was_doing_at_most(world: World) -> None:
    client = await Client(world, by=FRONT).start()
    await world.processes[1].kill()
    replies = [await client.call("echo", {"text": str(turn)}, limit=PROMPT) for turn in range(10)]
    assert [reply.tool for reply in replies] == [str(turn) for turn in range(10)]


async def test_the_last_process_goes_and_sessions_stay(world: World) -> None:
    """All processes stop in order: a session is the store's, and ends with its client or its time."""
    client = await Client(world).start(at=0)
    for process in world.processes:
        process.terminate()
    for process in world.processes:
        await process.ended()
        await process.kill()
    await asyncio.gather(*(process.start() for process in world.processes))
    for at in (0, 1):
        assert (await client.call("echo", {"text": "x"}, at, PROMPT)).tool == "x"


async def test_modern_listeners_of_a_killed_process_listen_elsewhere(world: World) -> None:
    modern = Modern(world)
    listener = await modern.listen(STATIC, 0)
    await world.processes[0].kill()
    await listener.over(PROMPT)
    again = await modern.listen(STATIC, 1)
    _ = (await modern.call("touch", {"uri": STATIC}, 1)).tool
    assert told(await again.message()) == STATIC


# -- probes


async def probe(world: World, at: int, path: str) -> tuple[int, str]:
    response = await world.http.get(f"http://127.0.0.1:{world.processes[at].port}{path}")
    return response.status_code, response.text


async def test_probes_of_a_process_that_works(world: World) -> None:
    for path in ("/healthz", "/readyz"):
        for at in (0, 1):
            status, text = await probe(world, at, path)
            assert status == 200, f"process {at}: {path} answered {status} {text[:200]}"
            assert len(text) < 100, f"{path} is to say nothing of the server: {text[:200]}"


async def test_a_process_that_drains_is_alive_and_not_ready(world: World) -> None:
    client = await Client(world).start(at=0)
    call = client.calling("slow", {"ms": 2000}, at=0, token="t")
    await call.started()
    world.processes[0].terminate()

    async def unready() -> bool:
        # A port that is closed is no readiness, either.
        with contextlib.suppress(OSError, Exception):
            return (await probe(world, 0, "/readyz"))[0] == 503
        return True

    await until("a process that drains is not ready", unready, PROMPT)
    assert (await call.answer()).tool == "slept 2000 ms"


async def test_readiness_follows_the_store_and_health_does_not(world: World) -> None:
    await world.store.kill()

    async def ready(expected: int) -> bool:
        return [(await probe(world, at, "/readyz"))[0] for at in (0, 1)] == [expected, expected]

    # Requests of 2026-07-28 go on without a store: whether a process without it is ready is a decision, and the same
    # at both.
    statuses = [(await probe(world, at, "/readyz"))[0] for at in (0, 1)]
    assert set(statuses) <= {200, 503}, statuses
    for at in (0, 1):
        status, text = await probe(world, at, "/healthz")
        assert status == 200, f"process {at} would be killed for a store that is down: {status} {text[:200]}"
    await world.store.start()
    await until("both are ready again", lambda: ready(200))


async def test_a_process_starts_without_its_store(start: Starts) -> None:
    world = await start()
    await world.store.kill()
    await world.processes[0].kill()
    await world.processes[0].start()
    assert (await Modern(world).call("echo", {"text": "x"}, 0, PROMPT)).tool == "x"
    await world.store.start()

    async def serves() -> bool:
        return (await Client(world).initialize(0, LIMIT)).status == 200

    await until("a process that started without its store opens sessions when the store is there", serves)
