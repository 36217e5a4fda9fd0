"""Clients of others, which know nothing of the processes behind the URL."""

import asyncio
import json
import subprocess

import pytest
from world import HERE, World

LIMIT = 120.0


@pytest.mark.parametrize("sdk", ["python-sdk1", "python-sdk"])
async def test_the_official_client_through_the_balancer(world: World, sdk: str) -> None:
    """python-sdk#520, python-sdk#1676, typescript-sdk#330: calls, questions and subscriptions without affinity."""
    python = world.built / "target/interop" / sdk / "bin/python"
    if not python.is_file():
        pytest.skip(f"{sdk} is not there: cargo xtask setup interop")
    program = await asyncio.create_subprocess_exec(
        str(python), str(HERE / "official.py"), world.front.url, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        out, errors = await asyncio.wait_for(program.communicate(), LIMIT)
    except TimeoutError:
        program.kill()
        out, errors = await program.communicate()
    assert program.returncode == 0, f"{sdk} ended with {program.returncode}: {errors.decode()[-2000:]}"
    seen = json.loads(out)
    texts = [*map(str, range(10)), "x y z", "Hello, Ada!", *["touched test://watched-resource"] * 4]
    assert seen["texts"] == texts
    assert seen["updated"] == ["test://watched-resource"] * 4
