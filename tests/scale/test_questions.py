"""Questions of one process, whose answers arrive at another one; cancellation."""

import asyncio
import json

import pytest
from wire import Client, Events, Modern, accepted
from world import DOCUMENTS, FRONT, POSTGRES, PROMPT, Json, World, until

ANSWERS: dict[str, Json] = {
    "elicitation/create": accepted(name="Ada"),
    "sampling/createMessage": {
        "role": "assistant",
        "model": "m",
        "content": {"type": "text", "text": "Paris"},
    },
    "roots/list": {"roots": [{"uri": "file:///ada"}, {"uri": "file:///bob"}]},
}
CASES = [
    ("test_streaming_elicitation", {}, "elicitation/create", "Hello, Ada!"),
    ("test_sampling", {"prompt": "Where?"}, "sampling/createMessage", "Paris"),
    ("roots", {}, "roots/list", "file:///ada file:///bob"),
]
KINDS = [case[2] for case in CASES]


@pytest.mark.parametrize(("name", "arguments", "method", "says"), CASES, ids=KINDS)
@pytest.mark.parametrize(("opened", "called", "answered"), [(0, 0, 1), (0, 1, 0), (0, 1, 1), (1, 0, 0)])
async def test_an_answer_reaches_the_process_that_asked(
    world: World, opened: int, called: int, answered: int, name: str, arguments: Json, method: str, says: str
) -> None:
    client = await Client(world).start(at=opened)
    call = client.calling(name, arguments, at=called)
    question = await call.question()
    assert question["method"] == method, f"{call.who}: {question}"
    await client.reply(question, ANSWERS[method], at=answered)
    assert says in (await call.answer()).tool


@pytest.mark.parametrize(("name", "arguments", "method", "says"), CASES, ids=KINDS)
async def test_a_question_without_a_stream_of_its_own_goes_out_at_another_process(
    world: World, name: str, arguments: Json, method: str, says: str
) -> None:
    """A client that takes JSON alone as the answer is asked on its standalone stream, wherever that is."""
    client = await Client(world).start(at=0)
    stream = await client.stream(1).open()
    call = client.calling(name, arguments, at=0, accept="application/json")
    question = await stream.question()
    assert question["method"] == method, f"{stream.who}: {question}"
    await client.reply(question, ANSWERS[method], at=1)
    assert says in (await call.answer()).tool


async def test_questions_one_after_the_other_are_answered_at_alternate_processes(world: World) -> None:
    client = await Client(world).start(at=0)
    call = client.calling("three_questions", at=0)
    for n, key in enumerate("abc"):
        await client.reply(await call.question(), accepted(**{key: f"{key}{n}"}), at=(n + 1) % 2)
    assert (await call.answer()).tool == "a0 b1 c2"


async def test_two_questions_at_once_are_answered_at_two_processes(world: World) -> None:
    client = await Client(world).start(at=0)
    call = client.calling("two_questions", at=0)
    questions = [await call.question(), await call.question()]
    for question in questions:
        key = question["params"]["message"].lower().rstrip("?")
        await client.reply(question, accepted(**{key: key}), at=0 if key == "right" else 1)
    assert (await call.answer()).tool == "left right"


async def test_the_clients_error_reaches_the_process_that_asked(world: World) -> None:
    client = await Client(world).start(at=0)
    call = client.calling("test_streaming_elicitation", at=0)
    question = await call.question()
    refusal = {"jsonrpc": "2.0", "id": question["id"], "error": {"code": -1, "message": "the user is away"}}
    reply = await client.post(refusal, at=1)
    assert reply.status == 202, str(reply)
    answer = await call.answer()
    assert "the user is away" in json.dumps(answer.message), str(answer)


async def test_an_answer_counts_once(world: World) -> None:
    client = await Client(world).start(at=0)
    call = client.calling("three_questions", at=0)
    first = await call.question()
    await client.reply(first, accepted(a="one"), at=1)
    second = await call.question()
    # The same answer again, at both processes: it is to no question any more.
    for at in (0, 1):
        reply = await client.post({"jsonrpc": "2.0", "id": first["id"], "result": accepted(a="two")}, at)
        assert reply.status in (202, 400), str(reply)
    await client.reply(second, accepted(b="b"), at=1)
    await client.reply(await call.question(), accepted(c="c"), at=0)
    assert (await call.answer()).tool == "one b c"


async def test_another_sessions_answer_counts_for_nothing(world: World) -> None:
    ada, eve = await Client(world).start(at=0), await Client(world).start(at=1)
    call = ada.calling("test_streaming_elicitation", at=0)
    question = await call.question()
    for at in (0, 1):
        reply = await eve.post({"jsonrpc": "2.0", "id": question["id"], "result": accepted(name="Eve")}, at)
        assert reply.status in (202, 400), str(reply)
    await ada.reply(question, accepted(name="Ada"), at=1)
    assert (await call.answer()).tool == "Hello, Ada!"


async def test_ids_of_questions_differ_between_processes(world: World) -> None:
    """Two processes ask in one session at the same time, and each gets the answer to its own question."""
    client = await Client(world).start(at=0)
    calls = [client.calling("three_questions", at=at) for at in (0, 1)]
    questions = [await call.question() for call in calls]
    assert questions[0]["id"] != questions[1]["id"], questions
    for key in "abc":
        for at in (0, 1):
            await client.reply(questions[at], accepted(**{key: f"{key}{at}"}), at=1 - at)
        if key != "c":
            questions = [await call.question() for call in calls]
    assert [(await call.answer()).tool for call in calls] == ["a0 b0 c0", "a1 b1 c1"]


async def test_many_sessions_ask_at_once(world: World) -> None:
    """Each through the balancer, which takes the processes in turn; nobody gets another's answer."""
    # A store that runs in Python answers fewer within its deadline on a busy machine.
    many = 10 if world.sharing in (DOCUMENTS, POSTGRES) else 50

    async def run(n: int) -> str:
        client = await Client(world, by=FRONT).start()
        call = client.calling("three_questions")
        for key in "abc":
            await client.reply(await call.question(), accepted(**{key: f"{key}{n}"}))
        return (await call.answer()).tool

    assert await asyncio.gather(*map(run, range(many))) == [f"a{n} b{n} c{n}" for n in range(many)]


async def slow(world: World, at: int) -> Json:
    reply = await Client.call(await Client(world).start(at=at), "test_metrics", at=at)
    return json.loads(reply.tool)["slow"]


@pytest.mark.parametrize(("called", "cancelled"), [(0, 1), (1, 0), (0, 0)])
async def test_a_cancellation_reaches_the_process_that_runs_the_call(world: World, called: int, cancelled: int) -> None:
    client = await Client(world).start(at=0)
    call: Events = client.calling("slow", {"ms": 120_000}, at=called, token="t")
    await call.started()
    kept = client.calling("slow", {"ms": 120_000}, at=called, token="u")
    await kept.started()
    params = {"requestId": call.number, "reason": "enough"}  # type: ignore[attr-defined]
    await client.notify("notifications/cancelled", params, at=cancelled)

    async def stopped() -> bool:
        return (await slow(world, called))["cancelled"] == 1

    await until(f"process {called} stops a call that was cancelled at process {cancelled}", stopped, PROMPT)
    await call.over(PROMPT)
    assert (await slow(world, called))["running"] == 1, "another call of the session was cancelled, too"


async def test_another_sessions_cancellation_cancels_nothing(world: World) -> None:
    ada, eve = await Client(world).start(at=0), await Client(world).start(at=0)
    call = ada.calling("slow", {"ms": 1500}, at=0, token="t")
    await call.started()
    for at in (0, 1):
        await eve.notify("notifications/cancelled", {"requestId": call.number}, at)  # type: ignore[attr-defined]
    assert (await call.answer()).tool == "slept 1500 ms"


async def test_a_change_of_roots_is_taken_at_any_process(world: World) -> None:
    client = await Client(world).start(at=0)
    for at in (0, 1):
        await client.notify("notifications/roots/list_changed", at=at)
    call = client.calling("roots", at=1)
    await client.reply(await call.question(), ANSWERS["roots/list"], at=0)
    assert (await call.answer()).tool == "file:///ada file:///bob"


async def test_a_modern_question_is_answered_at_another_process(world: World) -> None:
    """The store brings the keys of states: nobody has to configure them."""
    modern = Modern(world, elicitation={})
    params: Json = {"name": "three_questions", "arguments": {}}
    for n, key in enumerate("abc"):
        result = (await modern.request("tools/call", params, at=n % 2)).result
        assert result["resultType"] == "input_required", result
        [asked] = result["inputRequests"]
        params["requestState"] = result["requestState"]
        params["inputResponses"] = {asked: accepted(**{key: key * 2})}
    assert (await modern.request("tools/call", params, at=1)).tool == "aa bb cc"
