"""A session is opened at one process and is in use at all of them."""

import asyncio
import json

import pytest
from conftest import Starts
from wire import ALL, LEGACY, REVISIONS, STATIC, WATCHED, Client, Modern, accepted, told
from world import FRONT, PROMPT, World, until

AUTH = {
    "verifier": {name: {"subject": name, "issuer": "https://issuer.example", "scopes": []} for name in ("ada", "eve")},
    "resource": "http://127.0.0.1/mcp",
    "authorization_servers": ["https://issuer.example"],
}


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_session_of_one_process_is_used_at_the_other(world: World, revision: str) -> None:
    client = await Client(world, revision).start(at=0)
    for at in (1, 0, 1, 1, 0):
        assert (await client.call("echo", {"text": f"to {at}"}, at)).tool == f"to {at}"
    names = {tool["name"] for tool in (await client.request("tools/list", at=1)).result["tools"]}
    assert {"echo", "slow", "touch"} <= names


async def test_the_balancer_needs_no_affinity(world: World) -> None:
    clients = await asyncio.gather(*(Client(world, by=FRONT).start() for _ in range(8)))
    served: set[str] = set()
    for turn in range(10):
        replies = await asyncio.gather(*(one.call("echo", {"text": f"{n}.{turn}"}) for n, one in enumerate(clients)))
        assert [reply.tool for reply in replies] == [f"{n}.{turn}" for n in range(8)]
        served |= {reply.who for reply in replies}
    assert len(served) == len(world.distinct), f"only {served} answered"


async def test_four_processes_share_as_two_do(start: Starts) -> None:
    world = await start(count=4)
    client = await Client(world).start(at=3)
    for turn in range(12):
        assert (await client.call("add", {"a": turn, "b": 1}, turn % 4)).result["structuredContent"] == {
            "result": turn + 1
        }


async def test_initialized_at_another_process_counts_everywhere(world: World) -> None:
    client = Client(world)
    _ = (await client.initialize(at=0)).result
    await client.notify("notifications/initialized", at=1)
    # A server asks its clients only when they have said that they are there, so that a question shows it.
    for at in (0, 1):
        events = client.calling("test_streaming_elicitation", at=at)
        question = await events.question(PROMPT)
        assert question["method"] == "elicitation/create", f"{events.who}: {question}"
        await client.reply(question, accepted(name="Ada"), at)
        assert (await events.answer()).tool == "Hello, Ada!"


async def test_what_was_negotiated_is_known_everywhere(world: World) -> None:
    clients = [
        await Client(world, "2025-06-18", {"roots": {}, "experimental": {"x": {"y": 1}}}, name="ada").start(at=0),
        await Client(world, "2025-03-26", {"sampling": {}}, name="bob").start(at=1),
    ]
    for client in clients:
        for at in (0, 1):
            reply = await client.call("context", at=at)
            facts = json.loads(reply.tool)
            assert facts["clientInfo"] == {"name": client.name, "version": "1"}, f"{reply.who}: {facts}"
            assert facts["clientCapabilities"] == client.capabilities, f"{reply.who}: {facts}"
            assert facts["protocolVersion"] == client.revision, f"{reply.who}: {facts}"
            assert facts["sessionId"] == client.session, f"{reply.who}: {facts}"


async def test_a_client_is_not_asked_elsewhere_for_what_it_cannot_do(world: World) -> None:
    client = await Client(world, capabilities={}).start(at=0)
    for at in (1, 0):
        result = (await client.call("roots", at=at)).result
        assert result["isError"], f"process {at}: {result}"
        assert "roots" in result["content"][0]["text"], f"process {at}: {result}"


async def test_revision_rules_hold_everywhere(world: World) -> None:
    """A batch is answered in 2025-03-26, and refused in a session of 2025-06-18, wherever the session was opened."""
    batch = [{"jsonrpc": "2.0", "id": f"b{n}", "method": "ping"} for n in range(2)]
    old = await Client(world, "2025-03-26").start(at=0)
    for at in (1, 0):
        events = old.send(batch, at)
        ids = {(await events.message())["id"] for _ in batch} if await events.head() == 200 else None
        assert ids == {"b0", "b1"}, f"{events.who} answered {events.status} {events.text[:300]}"
    new = await Client(world, "2025-06-18").start(at=0)
    for at in (1, 0):
        reply = await new.post(batch, at)
        assert reply.status == 400, f"a batch in 2025-06-18: {reply}"


@pytest.mark.parametrize("at", [0, 1])
async def test_delete_ends_a_session_everywhere(world: World, at: int) -> None:
    client = await Client(world).start(at=0)
    _ = (await client.call("echo", {"text": "x"}, 1)).tool
    streams = [await client.stream(place).open() for place in (0, 1)]
    reply = await client.delete(at)
    assert reply.status in (200, 202, 204), str(reply)
    for stream in streams:
        await stream.over(PROMPT)
        assert stream.ended_in_order, f"the stream of {stream.who} {stream.end}"

    async def gone() -> bool:
        return [(await client.call("echo", {"text": "x"}, place)).status for place in (0, 1)] == [404, 404]

    await until("both processes answer 404 after DELETE", gone, PROMPT)
    assert (await client.delete(1 - at)).status == 404
    assert await client.stream(1 - at).head() == 404


async def test_delete_elsewhere_cancels_what_runs(world: World) -> None:
    client = await Client(world).start(at=0)
    other = await Client(world).start(at=0)
    call = client.calling("slow", {"ms": 120_000}, at=0, token="t")
    await call.started()
    assert (await client.delete(1)).status in (200, 202, 204)
    await call.over(PROMPT)

    async def cancelled() -> bool:
        return json.loads((await other.call("test_metrics", at=0)).tool)["slow"]["cancelled"] == 1

    await until("process 0 cancels the call of a session that ended at process 1", cancelled, PROMPT)


async def test_an_unknown_session_is_404_at_every_process(world: World) -> None:
    client = await Client(world).start(at=0)
    client.session = "nobody-has-this-one-12345"
    for at in (0, 1):
        reply = await client.call("echo", {"text": "x"}, at)
        assert reply.status == 404, str(reply)
        assert await client.stream(at).head() == 404
    # The client's way out: a new session, in which the old header is no hindrance.
    params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    reply = await client.request("initialize", params, 1)
    assert reply.result["protocolVersion"] == LEGACY


async def test_a_request_without_a_session_is_refused_at_every_process(world: World) -> None:
    client = Client(world)
    for at in (0, 1):
        reply = await client.request("tools/list", at=at)
        assert reply.status == 400, str(reply)


async def test_another_users_session_is_none(start: Starts) -> None:
    world = await start(AUTH=json.dumps(AUTH))
    ada, eve = await Client(world, token="ada").start(at=0), await Client(world, token="eve").start(at=1)
    for at in (0, 1):
        assert json.loads((await ada.call("whoami", at=at)).tool)["subject"] == "ada"
        eve_with_hers = Client(world, token="eve")
        eve_with_hers.session = ada.session
        for reply in (await eve_with_hers.call("whoami", at=at), await eve_with_hers.delete(at)):
            assert reply.status == 404, f"eve in ada's session: {reply}"
        assert await eve_with_hers.stream(at).head() == 404
    assert json.loads((await ada.call("whoami", at=1)).tool)["subject"] == "ada"
    assert json.loads((await eve.call("whoami", at=0)).tool)["subject"] == "eve"


async def test_a_log_level_is_known_everywhere(world: World) -> None:
    client = await Client(world).start(at=0)
    _ = (await client.request("logging/setLevel", {"level": "error"}, 0)).result
    for at in (1, 0, 1):
        reply = await client.call("test_tool_with_logging", at=at)
        assert not reply.before, f"level error, set at process 0, and yet {reply.who} sent {reply.before}"
    _ = (await client.request("logging/setLevel", {"level": "debug"}, 1)).result
    for at in (0, 1, 0):
        reply = await client.call("test_tool_with_logging", at=at)
        logs = [message for message in reply.before if message["method"] == "notifications/message"]
        assert len(logs) == 3, f"level debug, set at process 1, and {reply.who} sent {reply.before}"


@pytest.mark.parametrize("stream_at", [0, 1])
@pytest.mark.parametrize("touch_at", [0, 1])
async def test_a_subscription_is_known_everywhere(world: World, stream_at: int, touch_at: int) -> None:
    client = await Client(world).start(at=0)
    other = await Client(world).start(at=1)
    stream = await client.stream(stream_at).open()
    await client.subscribe(STATIC, at=0)
    await other.touch(STATIC, at=touch_at)
    assert await client.settled(stream) == [STATIC]
    _ = (await client.request("resources/unsubscribe", {"uri": STATIC}, 1)).result
    await other.touch(STATIC, at=touch_at)
    assert await client.settled(stream) == [], f"unsubscribed at process 1, changed at process {touch_at}"


async def test_sessions_are_told_of_their_own_subscriptions_only(world: World) -> None:
    clients = await asyncio.gather(*(Client(world).start(at=n % 2) for n in range(10)))
    streams = await asyncio.gather(*(one.stream((n + 1) % 2).open() for n, one in enumerate(clients)))
    uris = [f"test://template/own-{n}/data" for n in range(10)]
    await asyncio.gather(*(one.subscribe(uri) for one, uri in zip(clients, uris)))
    for n, uri in enumerate(uris):
        await clients[0].touch(uri, at=n % 2)
    seen = await asyncio.gather(*(one.settled(stream) for one, stream in zip(clients, streams)))
    assert seen == [[uri] for uri in uris]


async def test_use_at_one_process_keeps_a_session_at_all(start: Starts) -> None:
    world = await start(SESSION_IDLE_TIMEOUT="2")
    used, idle = await Client(world).start(at=0), await Client(world).start(at=0)
    _ = (await idle.call("echo", {"text": "x"}, 1)).tool
    for _ in range(6):
        assert (await used.call("slow", {"ms": 500}, 1)).tool == "slept 500 ms"
    assert (await used.call("echo", {"text": "here"}, 0)).tool == "here"
    for at in (0, 1):
        reply = await idle.call("echo", {"text": "x"}, at)
        assert reply.status == 404, f"idle for 3 s with a limit of 2 s: {reply}"


async def test_a_session_leaves_nothing_behind(stored: World) -> None:
    world = stored
    first = await Client(world).start(at=0)
    _ = (await first.call("echo", {"text": "x"}, 1)).tool
    await first.touch(WATCHED, at=0)
    await first.delete(0)
    before = set(await world.store.keys())
    client = await Client(world).start(at=0)
    await client.subscribe(WATCHED, at=1)
    stream = await client.stream(1).open()
    await client.touch(WATCHED, at=0)
    assert told(await stream.message()) == WATCHED
    kept = set(await world.store.keys()) - before
    assert kept, "a session has no key in the store"
    await client.delete(0)

    async def empty() -> bool:
        # For a minute is known that it has ended, and nothing else.
        rest = set(await world.store.keys()) - before
        known = [(await world.store.do("HLEN", key), await world.store.do("PTTL", key)) for key in rest]
        return len(rest) <= 1 and all(fields == 1 and 0 < left <= 60_000 for fields, left in known)

    await until(f"the keys of a session go with it: {sorted(kept)}", empty, PROMPT)


async def test_everything_in_the_store_has_an_end(stored: World) -> None:
    world = stored
    client = await Client(world).start(at=0)
    await client.subscribe(WATCHED, at=1)
    stream = await client.stream(1).open()
    await client.touch(WATCHED, at=0)
    assert told(await stream.message()) == WATCHED
    keys = await world.store.keys()
    assert keys, "nothing is in the store"
    endless = [key for key in keys if await world.store.do("PTTL", key) == -1]
    assert not endless, f"keys without a time to live: {endless}"


async def test_keys_of_the_store_show_no_session(stored: World) -> None:
    """The id is all that a client without a token needs, and keys are in slow logs, metrics and dumps."""
    world = stored
    client = await Client(world).start(at=0)
    await client.subscribe(WATCHED, at=1)
    stream = await client.stream(1).open()
    await client.touch(WATCHED, at=0)
    assert told(await stream.message()) == WATCHED
    keys = await world.store.keys()
    assert client.session
    assert not [key for key in keys if client.session in key], "a session's id is readable in a key"


async def test_a_request_is_served_by_the_balancer_while_sessions_end(world: World) -> None:
    """Sessions open and end in quick succession, and no one's end is another's."""
    steady = await Client(world, by=FRONT).start()

    async def visit(n: int) -> None:
        client = await Client(world, by=FRONT).start()
        assert (await client.call("echo", {"text": str(n)})).tool == str(n)
        assert (await client.delete()).status in (200, 202, 204)

    for _ in range(5):
        *_, reply = await asyncio.gather(*(visit(n) for n in range(8)), steady.call("echo", {"text": "steady"}))
        assert reply.tool == "steady"


async def test_another_initialize_in_a_session_counts_everywhere(world: World) -> None:
    client = await Client(world, "2025-06-18").start(at=0)
    params = {"protocolVersion": "2025-11-25", "capabilities": ALL, "clientInfo": {"name": "again", "version": "2"}}
    _ = (await client.request("initialize", params, at=1)).result
    client.revision = "2025-11-25"
    await client.notify("notifications/initialized", at=0)
    for at in (0, 1):
        facts = json.loads((await client.call("context", at=at)).tool)
        assert facts["clientInfo"]["name"] == "again", f"process {at}: {facts}"


async def test_modern_requests_need_no_session(world: World) -> None:
    modern = Modern(world)
    served = set()
    for turn in range(10):
        reply = await modern.call("echo", {"text": str(turn)})
        assert reply.tool == str(turn)
        assert "mcp-session-id" not in reply.headers, str(reply)
        served.add(reply.who)
    assert len(served) == len(world.distinct), f"only {served} answered"


async def test_a_session_takes_one_round_trip_at_most(world: World) -> None:
    """The store's own count of commands, while one client calls a process that knows its session."""
    client = await Client(world).start(at=0)
    for _ in range(3):
        _ = (await client.call("echo", {"text": "warm"}, 1)).tool
    before = await world.store.info("total_commands_processed")
    for n in range(100):
        assert (await client.call("echo", {"text": str(n)}, 1)).tool == str(n)
    used = await world.store.info("total_commands_processed") - before
    # Each script is a command, and so is what it does. Processes do a few by themselves in a second.
    assert used <= 100 * 8 + 100, f"{used} commands for 100 calls"
    before = await world.store.info("total_commands_processed")
    modern = Modern(world)
    for n in range(100):
        assert (await modern.call("echo", {"text": str(n)}, 1)).tool == str(n)
    used = await world.store.info("total_commands_processed") - before
    assert used <= 60, f"{used} commands for 100 calls of 2026-07-28, which need none"
