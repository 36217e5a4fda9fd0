"""Clients of others, which know nothing of the processes behind the URL."""

import asyncio
import json
import subprocess
from typing import Any

import pytest
from conftest import Starts
from world import HERE, World

LIMIT = 120.0


async def seen_by(world: World, sdk: str, url: str) -> Any:
    """The answers that the client of this environment saw at a URL."""
    python = world.built / "target/interop" / sdk / "bin/python"
    if not python.is_file():
        pytest.skip(f"{sdk} is not there: cargo xtask setup interop")
    program = await asyncio.create_subprocess_exec(
        str(python), str(HERE / "official.py"), url, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        out, errors = await asyncio.wait_for(program.communicate(), LIMIT)
    except TimeoutError:
        program.kill()
        out, errors = await program.communicate()
    assert program.returncode == 0, f"{sdk} ended with {program.returncode}: {errors.decode()[-2000:]}"
    return json.loads(out)


@pytest.mark.parametrize("sdk", ["python-sdk1", "python-sdk"])
async def test_the_official_client_through_the_balancer(world: World, sdk: str) -> None:
    """python-sdk#520, python-sdk#1676, typescript-sdk#330: calls, questions and subscriptions without affinity."""
    seen = await seen_by(world, sdk, world.front.url)
    check(seen)


@pytest.mark.parametrize("sdk", ["python-sdk1", "python-sdk"])
async def test_the_official_client_over_sse_through_the_balancer(start: Starts, sdk: str) -> None:
    """typescript-sdk#329, java-sdk#332, fastmcp#1003: a stream at one process, messages at any."""
    world = await start(SSE="1")
    seen = await seen_by(world, sdk, world.front.url.replace("/mcp", "/sse"))
    check(seen)


def check(seen: Any) -> None:
    texts = [*map(str, range(10)), "x y z", "Hello, Ada!", *["touched test://watched-resource"] * 4]
    assert seen["texts"] == texts
    assert seen["updated"] == ["test://watched-resource"] * 4
