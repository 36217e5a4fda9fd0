"""Older revisions without sessions: any process serves any request, and what needs a session is refused by name."""

import json

import pytest
from conftest import Starts
from wire import REVISIONS, STATIC, Client
from world import FRONT, HERE, PROMPT, World


async def stateless(start: Starts) -> World:
    world = await start(program=["target/venv/bin/python", str(HERE / "stateless.py")])
    if world.lang != "python":
        pytest.skip("the program is one in Python: --lang python")
    return world


@pytest.mark.parametrize("revision", REVISIONS)
async def test_requests_need_no_session(start: Starts, revision: str) -> None:
    """python-sdk#1180, typescript-sdk#330"""
    world = await stateless(start)
    client = Client(world, revision, by=FRONT)
    reply = await client.initialize()
    assert reply.result["protocolVersion"] == revision
    assert client.session is None, "a server without sessions names one"
    await client.notify("notifications/initialized")
    for turn in range(6):
        assert (await client.call("echo", {"text": str(turn)})).tool == str(turn)
    call = client.calling("count", {"to": 5}, token="t")
    reply = await call.answer()
    assert [message["params"]["progress"] for message in reply.before] == [1, 2, 3, 4, 5], str(reply)


async def test_what_needs_a_session_is_refused_by_name_and_does_not_hang(start: Starts) -> None:
    """fastmcp#678, fastmcp#1585, python-sdk#1740, go-sdk#387"""
    world = await stateless(start)
    client = Client(world, by=FRONT)
    capabilities = (await client.initialize()).result["capabilities"]
    assert "logging" not in capabilities
    for method, params in (("logging/setLevel", {"level": "debug"}), ("resources/subscribe", {"uri": STATIC})):
        reply = await client.request(method, params, limit=PROMPT)
        assert "stateless" in json.dumps(reply.message), str(reply)
    reply = await client.call("ask", limit=PROMPT)
    assert reply.result["isError"], str(reply)
    assert "stateless" in reply.text, f"the reason is missing: {reply}"
    stream = client.stream()
    assert await stream.head(PROMPT) in (400, 405), f"{stream.who} answered {stream.status} {stream.text}"
