"""Our own client through the balancer: it has one session for as long as it lives. Needs the package `tricorn`."""

import asyncio
import json
import signal
from typing import Any

import pytest
from wire import LEGACY, WATCHED
from world import PROMPT, World, until

from tricorn import Error, connect


async def session(client: Any) -> str:
    """The session that a call arrived in."""
    return json.loads((await client.call_tool("context", idempotent=True)).text)["sessionId"]


def fill_in(_message: str, schema: dict[str, Any]) -> dict[str, str]:
    return dict.fromkeys(schema["properties"], "x")


async def test_calls_questions_and_changes(world: World) -> None:
    async with connect(world.front.url, revision=LEGACY, elicitation=fill_in) as client:
        first = await session(client)
        for n in range(10):
            assert (await client.call_tool("echo", {"text": str(n)})).text == str(n)
            assert (await client.call_tool("three_questions")).text == "x x x"
        heard: list[str] = []
        async with client.listen(uris=[WATCHED]) as changes:
            for _ in range(4):
                await client.call_tool("touch", {"uri": WATCHED})
                change = await asyncio.wait_for(anext(aiter(changes)), PROMPT)
                heard.append(str(change))
        assert len(heard) == 4
        assert await session(client) == first


async def test_a_session_survives_all_processes(several: World) -> None:
    world = several
    async with connect(world.front.url, revision=LEGACY) as client:
        first = await session(client)
        for process in world.processes:
            await process.kill()
            await process.start()

            async def serves() -> bool:
                try:
                    return bool(await session(client))
                except Error:
                    return False

            await until("a call after a process was killed", serves)
        assert await session(client) == first, "the client had to begin a new session"


async def test_a_session_survives_a_store_that_stands_still(stored: World) -> None:
    """A refusal for the store must not look like one of a session that is gone: the client would begin a new one."""
    world = stored
    async with connect(world.front.url, revision=LEGACY) as client:
        first = await session(client)
        world.store.signal(signal.SIGSTOP)
        errors = []
        for _ in range(4):
            try:
                assert await asyncio.wait_for(session(client), 4 * PROMPT) == first
            except Error as error:
                errors.append(str(error))
        unclear = [error for error in errors if "503" not in error and "store" not in error]
        assert not unclear, f"the caller is not told why: {unclear}"
        world.store.signal(signal.SIGCONT)

        async def serves() -> str | None:
            try:
                return await session(client)
            except Error:
                return None

        assert await until("a call when the store is back", serves) == first


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18"])
async def test_every_older_revision(world: World, revision: str) -> None:
    async with connect(world.front.url, revision=revision) as client:
        for n in range(6):
            assert (await client.call_tool("echo", {"text": str(n)})).text == str(n)
