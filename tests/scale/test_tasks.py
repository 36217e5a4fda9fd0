"""Tasks are made at one process and are known at all of them: those of sessions, and those of 2026-07-28."""

import asyncio
import contextlib
import json
import signal

import pytest
import pytest_asyncio
from conftest import Starts
from test_sessions import AUTH
from wire import WATCHED, ModernTasking, Reply, Tasking, accepted, told
from world import PAGE, PROMPT, World, until

ENDED = ("completed", "failed", "cancelled")
LEASE = 30.0
"""A process that was not heard of for so long has ended, for the others."""
GRACE = 20.0
"""Time on top of that until they say so."""


@pytest_asyncio.fixture
async def world(start: Starts) -> World:
    """A store, two processes that run tasks, and nginx before them."""
    return await start(TASKS="3600")


@pytest.fixture
def stored(world: World) -> World:
    if world.sharing in ("alone", "documents", "postgres"):
        pytest.skip("nothing is kept in a Redis")
    return world


def code(reply: Reply) -> int:
    assert isinstance(reply.message, dict), str(reply)
    assert "error" in reply.message, f"expected an error: {reply}"
    return reply.message["error"]["code"]


# -- of sessions


async def test_a_task_of_one_process_is_known_at_the_other_at_once(world: World) -> None:
    client = await Tasking(world).start(at=0)
    for turn in range(10):
        task = await client.task("slow_compute", {"seconds": 0, "label": str(turn)}, at=turn % 2)
        assert (await client.get(task, 1 - turn % 2))["taskId"] == task
        result = (await client.result(task, 1 - turn % 2)).result
        assert result["content"][0]["text"] == f"computed {turn} in 0 s"
        assert result["_meta"]["io.modelcontextprotocol/related-task"] == {"taskId": task}
        assert (await client.get(task, 1 - turn % 2))["status"] == "completed"


async def test_a_result_that_is_waited_for_elsewhere_comes_when_it_is_there(world: World) -> None:
    client = await Tasking(world).start(at=0)
    task = await client.task("slow_compute", {"seconds": 1.5, "label": "x"})
    loop = asyncio.get_running_loop()
    begun = loop.time()
    replies = await asyncio.gather(*(client.result(task, at) for at in (1, 0, 1)))
    assert [reply.tool for reply in replies] == ["computed x in 1.5 s"] * 3
    # Told, not looked for: the look comes every two seconds.
    assert loop.time() - begun < 3.0


@pytest.mark.parametrize("at", [0, 1])
async def test_a_failure_is_the_same_everywhere(world: World, at: int) -> None:
    client = await Tasking(world).start(at=0)
    failing, broken = await client.task("failing_job", at=0), await client.task("protocol_error_job", at=0)
    reply = await client.result(failing, at)
    assert reply.result["isError"], str(reply)
    found = await client.becomes(failing, "failed", at)
    assert found["statusMessage"] == "the job failed"
    reply = await client.result(broken, at)
    assert reply.message["error"]["message"] == "the job broke", str(reply)


@pytest.mark.parametrize("at", [0, 1])
async def test_a_task_is_cancelled_from_any_process(world: World, at: int) -> None:
    client = await Tasking(world).start(at=0)
    task = await client.task("slow", {"ms": 120_000}, at=0)
    waiting = [client.begin("tasks/result", {"taskId": task}, place) for place in (0, 1)]
    await asyncio.sleep(0)
    assert (await client.cancel(task, at)).result["status"] == "cancelled"
    for events in waiting:
        reply = await events.answer(PROMPT)
        assert code(reply) == -32603, str(reply)
        await events.close()
    for place in (0, 1):
        assert (await client.get(task, place))["status"] == "cancelled"
        assert code(await client.cancel(task, place)) == -32602

    async def stopped() -> bool:
        return json.loads((await client.call("test_metrics", at=0)).tool)["slow"]["cancelled"] == 1

    await until("the handler at process 0 was cancelled", stopped, PROMPT)


async def test_tasks_of_all_processes_are_listed_in_order(world: World) -> None:
    client = await Tasking(world).start(at=0)
    made = [await client.task("slow_compute", {"seconds": 0}, at=n % 2) for n in range(6)]
    for at in (0, 1):
        assert await client.ids(at) == made, f"process {at}"


async def test_pages_of_the_list_go_on_at_another_process(start: Starts) -> None:
    world = await start(TASKS="3600", PAGE_SIZE="2")
    client = await Tasking(world).start(at=0)
    made = [await client.task("slow_compute", {"seconds": 0}, at=n % 2) for n in range(5)]
    cursor, seen, at = None, [], 0
    while True:
        result = (await client.request("tasks/list", {"cursor": cursor} if cursor else {}, at)).result
        seen += [task["taskId"] for task in result["tasks"]]
        cursor, at = result.get("nextCursor"), 1 - at
        if cursor is None:
            break
    assert seen == made
    assert code(await client.request("tasks/list", {"cursor": "k-zz"}, 0)) == -32602


async def test_nobody_sees_a_task_of_another_session(world: World) -> None:
    ada, eve = await Tasking(world).start(at=0), await Tasking(world).start(at=1)
    task = await ada.task("slow", {"ms": 60_000}, at=0)
    for at in (0, 1):
        for method in ("tasks/get", "tasks/result", "tasks/cancel"):
            assert code(await eve.request(method, {"taskId": task}, at)) == -32602, f"{method} at {at}"
        assert await eve.ids(at) == []
        assert (await ada.get(task, at))["status"] == "working"


async def test_a_question_of_a_task_reaches_a_client_that_waits_for_the_result_elsewhere(world: World) -> None:
    """A client without a stream reads questions on the response to `tasks/result`, wherever that is."""
    client = await Tasking(world).start(at=0)
    task = await client.task("confirm_delete", {"filename": "a"}, at=0)
    await client.becomes(task, "input_required", 1)
    waiting = client.begin("tasks/result", {"taskId": task}, 1)
    question = await waiting.question(PROMPT)
    assert question["method"] == "elicitation/create"
    assert question["params"]["_meta"]["io.modelcontextprotocol/related-task"] == {"taskId": task}
    await client.reply(question, accepted(confirm=True), at=1)
    reply = await waiting.answer(PROMPT)
    assert reply.tool == "deleted a"


async def test_a_question_that_comes_while_the_result_is_waited_for_elsewhere(world: World) -> None:
    client = await Tasking(world).start(at=0)
    task = await client.task("multi_input", at=0)
    waiting = client.begin("tasks/result", {"taskId": task}, 1)
    for _ in range(2):
        # Notifications of the task's status may come before.
        while "id" not in (question := await waiting.message(PROMPT)):
            assert question["method"] == "notifications/tasks/status", question
        left = question["params"]["message"] == "Left?"
        await client.reply(question, accepted(name="Ada") if left else accepted(confirm=True), at=1)
    assert (await waiting.answer(PROMPT)).tool == "Ada true"


async def test_a_question_finds_the_request_for_its_result_though_another_came_later(world: World) -> None:
    client = await Tasking(world).start(at=0)
    first, second = await client.task("multi_input", at=0), await client.task("slow_compute", {"seconds": 0.2}, at=0)
    waiting = client.begin("tasks/result", {"taskId": first}, 1)
    other = await client.result(second, 0)
    assert other.tool == "computed  in 0.2 s"
    seen, before = 0, list(other.before)
    # Without a stream of their own, questions go out on the response to either request.
    while seen < 2:
        message = before.pop(0) if before else await waiting.message(PROMPT)
        if "id" in message:
            seen += 1
            left = message["params"]["message"] == "Left?"
            await client.reply(message, accepted(name="Ada") if left else accepted(confirm=True), at=0)
    assert (await waiting.answer(PROMPT)).tool == "Ada true"


async def test_an_end_that_one_process_tells_is_known_at_the_other(stored: World) -> None:
    world = stored
    client, modern = await Tasking(world).start(at=0), ModernTasking(world)
    for turn in range(20):
        task = await client.task("slow_compute", {"seconds": 0.02, "label": str(turn)}, at=0)
        assert (await client.result(task, 0)).tool == f"computed {turn} in 0.02 s"
        assert (await client.get(task, 1))["status"] == "completed", f"turn {turn}"
        task = await modern.task("slow_compute", {"seconds": 0.02}, at=0)
        await modern.becomes(task, "completed", 0)
        assert (await modern.get(task, 1))["status"] == "completed", f"turn {turn}"


SLOW = 0.03
"""Seconds, each way, from a process to its store."""


async def test_a_cancellation_at_its_own_process_is_known_at_the_other(start: Starts) -> None:
    world = await start(wired=True, TASKS="3600")
    client, modern = await Tasking(world).start(at=0), ModernTasking(world)
    world.wires[0].delay = SLOW
    for turn in range(5):
        task = await client.task("slow", {"ms": 60_000}, at=0)
        assert (await client.cancel(task, 0)).result["status"] == "cancelled"
        assert (await client.get(task, 1))["status"] == "cancelled", f"turn {turn}"
        task = await modern.task("slow", {"ms": 60_000}, at=0)
        _ = (await modern.request("tasks/cancel", {"taskId": task}, 0)).result
        assert (await modern.get(task, 1))["status"] == "cancelled", f"turn {turn}"


@pytest.mark.parametrize("answered", [0, 1])
async def test_questions_that_are_answered_are_seen_nowhere(start: Starts, answered: int) -> None:
    world = await start(wired=True, TASKS="3600")
    modern = ModernTasking(world)
    world.wires[0].delay = SLOW
    for turn in range(5):
        task = await modern.task("multi_input", at=0)
        asked = (await modern.becomes(task, "input_required", 0))["inputRequests"]
        key = min(asked)
        answer = accepted(name="Ada") if asked[key]["params"]["message"] == "Left?" else accepted(confirm=True)
        _ = (await modern.request("tasks/update", {"taskId": task, "inputResponses": {key: answer}}, answered)).result
        for at in (0, 1):
            assert key not in (await modern.get(task, at)).get("inputRequests", {}), f"turn {turn} at process {at}"


async def test_a_cancellation_is_told_once(stored: World) -> None:
    world = stored
    client = await Tasking(world).start(at=0)
    stream = await client.stream(0).open()
    task = await client.task("slow", {"ms": 120_000}, at=0)
    assert (await client.cancel(task, 1)).result["status"] == "cancelled"

    async def stopped() -> bool:
        return json.loads((await client.call("test_metrics", at=0)).tool)["slow"]["cancelled"] == 1

    await until("the handler at process 0 was cancelled", stopped, PROMPT)
    await client.subscribe(WATCHED, at=0)
    await client.touch(WATCHED, at=0)
    ends = 0
    while told(message := await stream.message(PROMPT)) != WATCHED:
        ends += message["method"] == "notifications/tasks/status" and message["params"]["status"] == "cancelled"
    assert ends == 1


async def test_status_reaches_the_stream_of_the_session(world: World) -> None:
    client = await Tasking(world).start(at=0)
    stream = await client.stream(1).open()
    task = await client.task("slow_compute", {"seconds": 0.3}, at=0)
    seen = []
    while not seen or seen[-1]["status"] not in ENDED:
        message = await stream.message(PROMPT)
        assert message["method"] == "notifications/tasks/status", message
        assert message["params"]["taskId"] == task
        seen.append(message["params"])
    assert seen[-1]["status"] == "completed"


@pytest.mark.parametrize("at", [0, 1])
async def test_the_end_of_a_session_ends_its_tasks_everywhere(stored: World, at: int) -> None:
    world = stored
    other = await Tasking(world).start(at=0)
    before = {key for key in await world.store.keys() if ":task" in key}
    client = await Tasking(world).start(at=0)
    tasks = [await client.task("slow", {"ms": 120_000}, at=place) for place in (0, 1)]
    tasks.append(await client.task("slow_compute", {"seconds": 0}, at=0))
    waiting = client.begin("tasks/result", {"taskId": tasks[0]}, 1)
    await client.result(tasks[2], 1)
    assert {key for key in await world.store.keys() if ":task" in key} - before
    assert (await client.delete(at)).status in (200, 202, 204)
    with contextlib.suppress(Exception):
        await waiting.over(PROMPT)

    async def stopped() -> bool:
        found = [json.loads((await other.call("test_metrics", at=place)).tool) for place in (0, 1)]
        return [one["slow"]["cancelled"] for one in found] == [1, 1]

    await until("the handlers of both processes were cancelled", stopped, PROMPT)

    async def empty() -> bool:
        return {key for key in await world.store.keys() if ":task" in key} <= before

    await until("the keys of its tasks are gone", empty, PROMPT)
    for place in (0, 1):
        assert (await client.request("tasks/get", {"taskId": tasks[2]}, place)).status == 404


async def test_a_task_is_gone_everywhere_when_its_time_is_over(stored: World) -> None:
    world = stored
    client = await Tasking(world).start(at=0)
    tasks = [
        await client.task("slow_compute", {"seconds": 0}, ttl=1500),
        await client.task("slow", {"ms": 60_000}, ttl=1500),
    ]
    waiting = client.begin("tasks/result", {"taskId": tasks[1]}, 1)
    assert len(await client.ids(1)) == 2
    reply = await waiting.answer(PROMPT)
    assert code(reply) == -32602, str(reply)
    for at in (0, 1):
        assert await client.ids(at) == []
        for task in tasks:
            assert code(await client.request("tasks/get", {"taskId": task}, at)) == -32602
    assert not [key for key in await world.store.keys() if ":task:" in key]


async def test_a_session_lives_as_long_as_its_tasks(start: Starts) -> None:
    world = await start(TASKS="3600", SESSION_IDLE_TIMEOUT="2")
    client, other = await Tasking(world).start(at=0), await Tasking(world).start(at=0)
    task = await client.task("slow_compute", {"seconds": 5, "label": "long"}, at=0)
    _ = await other.ids(1)
    await asyncio.sleep(5.5)
    assert (await other.request("tasks/list", at=1)).status == 404, "idle, and without tasks"
    assert (await client.result(task, 1)).tool == "computed long in 5 s"


# -- of the extension


async def test_a_task_of_the_extension_is_known_everywhere(world: World) -> None:
    client = ModernTasking(world)
    for at in (0, 1):
        task = await client.task("slow_compute", {"seconds": 0.2, "label": "y"}, at=at)
        found = await client.get(task, 1 - at)
        assert found["taskId"] == task, found
        assert found["status"] in ("working", "completed"), found
        found = await client.becomes(task, "completed", 1 - at)
        assert found["result"]["content"][0]["text"] == "computed y in 0.2 s"
    task = await client.task("protocol_error_job")
    assert (await client.becomes(task, "failed", 1))["error"]["message"] == "the job broke"


async def test_a_task_that_a_handler_goes_on_as_is_known_everywhere(world: World) -> None:
    client = ModernTasking(world)
    first = (await client.request("tools/call", {"name": "test_tool_with_task", "arguments": {}}, 0)).result
    responses = {key: accepted(name="Ada") for key in first["inputRequests"]}
    params = {"name": "test_tool_with_task", "arguments": {}, "inputResponses": responses}
    params["requestState"] = first["requestState"]
    result = (await client.request("tools/call", params, 1)).result
    assert result["resultType"] == "task", result
    found = await client.becomes(result["taskId"], "completed", 0)
    assert found["result"]["content"][0]["text"] == "Hello, Ada!"


async def test_questions_are_seen_and_answered_elsewhere(world: World) -> None:
    client = ModernTasking(world)
    task = await client.task("multi_input", at=0)

    async def both() -> bool:
        return len((await client.get(task, 1)).get("inputRequests", {})) == 2

    await until("both questions are known at process 1", both, PROMPT)
    questions = (await client.get(task, 1))["inputRequests"]
    left = next(key for key, asked in questions.items() if asked["params"]["message"] == "Left?")
    right = next(key for key in questions if key != left)
    # One that answers nothing is asked again under another key.
    assert (await client.answer(task, {left: {"action": "accept", "content": {"name": 5}}}, 1)).result is not None
    _ = (await client.answer(task, {right: accepted(confirm=True)}, 1)).result

    async def asked_again() -> bool:
        found = await client.get(task, 1)
        return bool(found.get("inputRequests")) and not {left, right} & found["inputRequests"].keys()

    with contextlib.suppress(AssertionError):
        await until("the question is asked again", asked_again, 2.0)
    for key in (await client.get(task, 1)).get("inputRequests", {}):
        _ = (await client.answer(task, {key: accepted(name="Ada")}, 1)).result
    await client.becomes(task, "completed", 1)


async def test_a_task_of_the_extension_is_cancelled_from_elsewhere(world: World) -> None:
    client = ModernTasking(world)
    task = await client.task("slow", {"ms": 120_000}, at=0)
    await client.cancel(task, 1)
    for at in (1, 0):
        assert (await client.becomes(task, "cancelled", at))["status"] == "cancelled"
    # Once more is nothing.
    await client.cancel(task, 1)
    other = ModernTasking(world)

    async def stopped() -> bool:
        return json.loads((await other.call("test_metrics", at=0)).tool)["slow"]["cancelled"] == 1

    await until("the handler at process 0 was cancelled", stopped, PROMPT)


async def test_whoever_listens_elsewhere_hears_of_a_task(world: World) -> None:
    client = ModernTasking(world)
    task = await client.task("confirm_delete", {"filename": "b"}, at=0)
    streams = [await client.following(task, at) for at in (1, 0)]
    for stream in streams:
        state = await stream.message(PROMPT)
        while state["params"]["status"] != "input_required":
            state = await stream.message(PROMPT)
        assert state["method"] == "notifications/tasks", state
    (key,) = state["params"]["inputRequests"]
    _ = (await client.answer(task, {key: accepted(confirm=True)}, 1)).result
    for stream in streams:
        state = await stream.message(PROMPT)
        while state["params"]["status"] not in ENDED:
            state = await stream.message(PROMPT)
        assert state["params"]["status"] == "completed", state
        assert state["params"]["result"]["content"][0]["text"] == "deleted b"


async def test_another_users_task_is_none(start: Starts) -> None:
    world = await start(TASKS="3600", AUTH=json.dumps(AUTH))
    ada, eve, nobody = ModernTasking(world, token="ada"), ModernTasking(world, token="eve"), ModernTasking(world)
    task = await ada.task("confirm_delete", {"filename": "c"}, at=0)
    for at in (0, 1):
        for method, more in (("tasks/get", {}), ("tasks/cancel", {}), ("tasks/update", {"inputResponses": {}})):
            reply = await eve.request(method, {"taskId": task, **more}, at)
            assert code(reply) == -32602, f"{method} at {at}: {reply}"
        assert (await nobody.request("tasks/get", {"taskId": task}, at)).status == 401
        events = await eve.begin("subscriptions/listen", {"notifications": {"taskIds": [task]}}, at).open()
        message = await events.message()
        assert message["params"]["notifications"].get("taskIds", []) == [], f"{events.who}: {message}"
    assert (await ada.becomes(task, "input_required", 1))["taskId"] == task


async def test_four_processes_know_all_tasks(start: Starts) -> None:
    world = await start(count=4, TASKS="3600")
    session, client = await Tasking(world).start(at=0), ModernTasking(world)
    made = [await session.task("slow_compute", {"seconds": 0.5, "label": str(n)}, at=n % 4) for n in range(8)]
    others = [await client.task("slow_compute", {"seconds": 0.5, "label": str(n)}, at=n % 4) for n in range(8)]
    replies = await asyncio.gather(*(session.result(task, (n + 1 + n // 4) % 4) for n, task in enumerate(made)))
    assert [reply.tool for reply in replies] == [f"computed {n} in 0.5 s" for n in range(8)]
    for n, task in enumerate(others):
        found = await client.becomes(task, "completed", (n + 3) % 4)
        assert found["result"]["content"][0]["text"] == f"computed {n} in 0.5 s"
    for at in range(4):
        assert await session.ids(at) == made


# -- processes that end


@pytest.mark.slow
async def test_tasks_of_a_killed_process_have_failed(stored: World) -> None:
    world = stored
    session, client = await Tasking(world).start(at=0), ModernTasking(world)
    done = await session.task("slow_compute", {"seconds": 0, "label": "kept"}, at=0)
    assert (await session.result(done, 1)).tool == "computed kept in 0 s"
    running = [await session.task("slow", {"ms": 300_000}, at=0), await session.task("slow", {"ms": 300_000}, at=0)]
    other = await client.task("slow", {"ms": 300_000}, at=0)
    stream = await client.following(other, 1)
    waiting = session.begin("tasks/result", {"taskId": running[0]}, 1)
    await session.get(running[0], 1)
    await world.processes[0].kill()
    assert (await session.result(done, 1)).tool == "computed kept in 0 s", "what has ended is kept"
    reply = await waiting.answer(LEASE + GRACE)
    assert code(reply) == -32603, str(reply)
    assert "process" in reply.message["error"]["message"], str(reply)
    for found in (
        await session.becomes(running[1], "failed", 1, GRACE),
        await client.becomes(other, "failed", 1, GRACE),
    ):
        assert found["statusMessage"] == "the process that ran the task has ended", found
    state = await stream.message(PROMPT)
    while state["params"]["status"] not in ENDED:
        state = await stream.message(PROMPT)
    assert state["params"]["status"] == "failed", state
    assert code(await session.result(running[1], 1)) == -32603
    assert code(await session.cancel(running[1], 1)) == -32602


@pytest.mark.slow
async def test_a_process_that_stood_still_does_not_write_over_what_came_since(stored: World) -> None:
    world = stored
    session, client = await Tasking(world).start(at=0), ModernTasking(world)
    # They end while the process stands still, and so does one that goes on.
    task = await session.task("slow_compute", {"seconds": 5, "label": "late"}, at=0)
    other = await client.task("slow_compute", {"seconds": 5, "label": "late"}, at=0)
    world.processes[0].signal(signal.SIGSTOP)
    try:
        await session.becomes(task, "failed", 1, LEASE + GRACE)
        await client.becomes(other, "failed", 1, GRACE)
    finally:
        world.processes[0].signal(signal.SIGCONT)
    # Until the store has answered it, the process goes on alone.
    await session.becomes(task, "failed", 0, GRACE)
    await client.becomes(other, "failed", 0, GRACE)
    for _ in range(10):
        for at in (0, 1):
            assert (await session.get(task, at))["status"] == "failed", f"process {at}"
            assert (await client.get(other, at))["status"] == "failed", f"process {at}"
            reply = await session.result(task, at)
            assert "process" in reply.message["error"]["message"], str(reply)
        await asyncio.sleep(0.1)


async def test_a_short_pause_harms_no_task(stored: World) -> None:
    world = stored
    session = await Tasking(world).start(at=0)
    task = await session.task("slow_compute", {"seconds": 2, "label": "x"}, at=0)
    waiting = session.begin("tasks/result", {"taskId": task}, 1)
    world.processes[0].signal(signal.SIGSTOP)
    await asyncio.sleep(4)
    assert (await session.get(task, 1))["status"] == "working"
    world.processes[0].signal(signal.SIGCONT)
    assert (await waiting.answer(PROMPT)).tool == "computed x in 2 s"


async def test_a_process_that_is_asked_to_end_lets_tasks_end(stored: World) -> None:
    world = stored
    session, client = await Tasking(world).start(at=0), ModernTasking(world)
    task = await session.task("slow_compute", {"seconds": 1, "label": "x"}, at=0)
    other = await client.task("slow_compute", {"seconds": 1, "label": "y"}, at=0)
    world.processes[0].terminate()
    await world.processes[0].ended()
    assert (await session.result(task, 1)).tool == "computed x in 1 s"
    found = await client.becomes(other, "completed", 1)
    assert found["result"]["content"][0]["text"] == "computed y in 1 s"


async def test_a_process_that_is_asked_to_end_says_so_of_its_tasks(stored: World) -> None:
    world = stored
    session, client = await Tasking(world).start(at=0), ModernTasking(world)
    task = await session.task("slow", {"ms": 300_000}, at=0)
    other = await client.task("slow", {"ms": 300_000}, at=0)
    waiting = session.begin("tasks/result", {"taskId": task}, 1)
    await session.get(task, 1)
    world.processes[0].terminate()
    await world.processes[0].ended()
    reply = await waiting.answer(GRACE)
    assert code(reply) == -32603, str(reply)
    for found in (await session.becomes(task, "failed", 1, GRACE), await client.becomes(other, "failed", 1, GRACE)):
        assert "process" in found["statusMessage"], found


# -- failures of the store


async def test_a_store_that_is_away_stops_what_needs_it_only(stored: World) -> None:
    world = stored
    session, client = await Tasking(world).start(at=0), ModernTasking(world)
    task = await client.task("confirm_delete", {"filename": "d"}, at=0)
    (key,) = (await client.becomes(task, "input_required", 1))["inputRequests"]
    mine = await session.task("slow", {"ms": 300_000}, at=0)
    assert (await session.get(mine, 1))["status"] == "working"
    world.store.signal(signal.SIGSTOP)
    try:
        # Its own process goes on.
        assert (await client.get(task, 0))["status"] == "input_required"
        assert (await session.get(mine, 0))["status"] == "working"
        made = await client.task("slow_compute", {"seconds": 0, "label": "made"}, at=0)
        assert (await client.becomes(made, "completed", 0))["result"]["content"][0]["text"] == "computed made in 0 s"
        for method, more in (("tasks/get", {}), ("tasks/cancel", {}), ("tasks/update", {"inputResponses": {key: {}}})):
            reply = await client.request(method, {"taskId": task, **more}, 1)
            assert code(reply) == -32010, f"{method}: {reply}"
            assert (reply.status, reply.headers["retry-after"]) == (503, "1"), f"{method}: {reply}"
        for method in ("tasks/get", "tasks/result", "tasks/cancel", "tasks/list"):
            reply = await session.request(method, {"taskId": mine}, 1)
            assert code(reply) == -32010, f"{method}: {reply}"
            assert (reply.status, reply.headers["retry-after"]) == (503, "1"), f"{method}: {reply}"
        assert code(await client.request("subscriptions/listen", {"notifications": {"taskIds": [task]}}, 1)) == -32010
    finally:
        world.store.signal(signal.SIGCONT)

    async def known() -> bool:
        reply = await client.request("tasks/get", {"taskId": made}, 1)
        return "result" in reply.message and reply.result["status"] == "completed"

    await until("what was made meanwhile is known at process 1", known, PROMPT)


async def test_a_store_that_was_emptied_gets_the_tasks_back(stored: World) -> None:
    world = stored
    session, client = await Tasking(world).start(at=0), ModernTasking(world)
    mine = [await session.task("slow", {"ms": 300_000}), await session.task("slow_compute", {"seconds": 0})]
    task = await client.task("slow_compute", {"seconds": 3, "label": "e"}, at=0)
    await session.result(mine[1], 1)
    waiting = session.begin("tasks/result", {"taskId": mine[0]}, 1)
    await session.get(mine[0], 1)
    await world.store.do("FLUSHALL")
    assert (await session.get(mine[0], 0))["status"] == "working", "its process needs no store"

    async def back() -> bool:
        reply = await client.request("tasks/get", {"taskId": task}, 1)
        return "result" in reply.message

    await until("a task is known again", back, 15.0)

    async def listed() -> bool:
        return await session.ids(1) == mine

    await until("the tasks are listed again", listed, 15.0)
    assert (await client.becomes(task, "completed", 1))["result"]["content"][0]["text"] == "computed e in 3 s"
    assert (await session.cancel(mine[0], 1)).result["status"] == "cancelled"
    assert code(await waiting.answer(PROMPT)) == -32603


# -- the store


async def test_the_store_shows_no_ids_of_tasks_in_keys(stored: World) -> None:
    world = stored
    session, client = await Tasking(world).start(at=0), ModernTasking(world)
    task = await client.task("slow_compute", {"seconds": 0})
    mine = await session.task("slow_compute", {"seconds": 0})
    await session.result(mine, 1)
    keys = await world.store.keys()
    assert [key for key in keys if ":task:" in key], keys
    assert not [key for key in keys if task in key or mine in key]
    endless = [key for key in keys if await world.store.do("PTTL", key) == -1]
    assert not endless, f"keys without a time to live: {endless}"
    for key in keys:
        # Whoever reads the store cannot ask for a task that belongs to nobody.
        if ":task:" in key:
            assert task not in str(await world.store.do("HGETALL", key))


async def test_what_is_no_task_costs_the_store_nothing(stored: World) -> None:
    world = stored
    client = ModernTasking(world)
    _ = (await client.call("echo", {"text": "warm"}, 1)).tool
    before = await world.store.info("total_commands_processed")
    for n in range(100):
        assert (await client.call("echo", {"text": str(n)}, 1)).tool == str(n)
    used = await world.store.info("total_commands_processed") - before
    assert used <= 60, f"{used} commands for 100 calls that are no tasks"


@pytest.mark.slow
async def test_a_task_that_nobody_listens_to_any_more_is_looked_at_no_more(stored: World) -> None:
    world = stored
    client = ModernTasking(world)
    tasks = [await client.task("slow", {"ms": 300_000}, at=0) for _ in range(30)]
    streams = [await client.following(task, 1) for task in tasks]
    for stream in streams:
        await stream.close()
    # The last look takes them out.
    await asyncio.sleep(4)
    before = await world.store.info("total_commands_processed")
    await asyncio.sleep(6)
    used = await world.store.info("total_commands_processed") - before
    assert used < 60, f"{used} commands in 6 s for 30 tasks that nobody listens to"


# -- reports of others


async def test_a_cancellation_arrives_after_the_connections_to_the_store_broke(stored: World) -> None:
    world = stored
    client = ModernTasking(world)
    task = await client.task("slow", {"ms": 120_000}, at=0)
    _ = await client.get(task, 1)
    for _ in range(3):
        await world.store.do("CLIENT", "KILL", "SKIPME", "yes", "TYPE", "normal")

    async def cancelled() -> bool:
        reply = await client.request("tasks/cancel", {"taskId": task}, 1)
        return "result" in reply.message

    await until("process 1 takes a cancellation", cancelled, PROMPT)

    async def stopped() -> bool:
        return json.loads((await client.call("test_metrics", at=0)).tool)["slow"]["cancelled"] == 1

    await until("the handler at process 0 was cancelled", stopped, 20.0)


async def test_what_has_ended_outlives_all_processes(stored: World) -> None:
    world = stored
    session, client = await Tasking(world).start(at=0), ModernTasking(world)
    mine = await session.task("slow_compute", {"seconds": 0, "label": "mine"}, at=0)
    task = await client.task("slow_compute", {"seconds": 0, "label": "kept"}, at=0)
    await session.becomes(mine, "completed", 1)
    await client.becomes(task, "completed", 1)
    for process in world.processes:
        process.terminate()
        await process.ended()
        await process.start()
    for at in (0, 1):
        assert (await client.get(task, at))["result"]["content"][0]["text"] == "computed kept in 0 s"
        assert (await session.result(mine, at)).tool == "computed mine in 0 s"
        assert await session.ids(at) == [mine]


async def test_all_that_is_kept_of_a_task_lives_as_long_as_it(stored: World) -> None:
    world = stored
    session = await Tasking(world).start(at=0)
    long = await session.task("slow_compute", {"seconds": 0}, ttl=900_000)
    _ = await session.task("slow_compute", {"seconds": 0}, ttl=1_000, at=1)
    await session.becomes(long, "completed", 1)
    left = {key: await world.store.do("PTTL", key) for key in await world.store.keys() if ":task" in key}
    assert len(left) == 3, left
    assert sorted(time > 800_000 for time in left.values()) == [False, True, True], left


async def test_the_commands_that_the_page_names_are_enough(stored: World) -> None:
    world = stored
    shown = next(line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("user shop on"))
    commands = [word for word in shown.split() if word.startswith("+")]
    await world.store.do("ACL", "SETUSER", "default", "reset", "on", "nopass", "~tricorn:*", *commands)
    session, client = await Tasking(world).start(at=0), ModernTasking(world)
    tasks = [await session.task("slow", {"ms": 60_000}, at=at) for at in (0, 1)]
    waiting = session.begin("tasks/result", {"taskId": tasks[0]}, 1)
    assert await session.ids(1) == tasks
    assert (await session.cancel(tasks[0], 1)).result["status"] == "cancelled"
    assert code(await waiting.answer(PROMPT)) == -32603
    task = await client.task("confirm_delete", {"filename": "f"}, at=0)
    (key,) = (await client.becomes(task, "input_required", 1))["inputRequests"]
    _ = (await client.answer(task, {key: accepted(confirm=True)}, 1)).result
    await client.becomes(task, "completed", 1)
    stream = await session.stream(1).open()
    await session.subscribe(WATCHED, at=0)
    await session.touch(WATCHED, at=0)
    while told(await stream.message(PROMPT)) != WATCHED:
        pass
    assert (await session.delete(0)).status in (200, 202, 204)
    said = [line for process in world.processes for line in process.lines if "the store" in line]
    assert not said, said
