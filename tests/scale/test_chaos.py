"""Everything at once: clients of all kinds, while processes are killed and replaced and the store fails."""

import asyncio
import contextlib
import os
from collections import Counter
from pathlib import Path

import pytest
from chaos import WELL, Chaos, memory, options, settings
from conftest import Starts
from world import SHARED, Process, World, until

TTL, IDLE = 60, 20
"""Seconds that tasks and unused sessions live."""
GONE = TTL + 20.0
"""Seconds after which the store has nothing of them any more: the inbox of a killed process lives for a minute."""
WORDS = [
    *("--seconds", "30", "--every", "1.5", "--pause-store", "4", "--failover", "--rolling", "--flush"),
    *("--sessions", "8", "--modern", "4", "--tasks", "4", "--pause", "0.2"),
    *("--processes", "4", "--ttl", str(TTL)),
]
GOOD = 0.5
"""The least share of good requests of each kind: errors have causes, and there are none when nothing is disturbed."""
MORE = 24.0
"""MiB that a process may have more than one that has just started."""
STORED = 2 << 20
"""Bytes that the store may have more than before: the log of changes, and the scripts."""


def memory_of(world: World) -> list[float]:
    return [memory(process.process.pid) for process in world.distinct if process.process]


async def kinds(world: World) -> Counter[str]:
    """Keys of the store by kind, without the log of changes, which begins with the first of them."""
    found = Counter(key.split(":")[2] for key in await world.store.keys())
    found.pop("changes", None)
    return found


def sockets(process: Process) -> int:
    """Connections of a process, to the store and to nginx, which keeps those that are not used for a minute."""
    assert process.process
    found = 0
    for file in Path(f"/proc/{process.process.pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            found += os.readlink(file).startswith("socket:")
    return found


async def standing(world: World) -> tuple[Counter[str], int, list[int]]:
    """The figures that return to their values: keys, connections of the store, and those of the processes."""
    # Not all the time.
    await asyncio.sleep(0.5)
    connections = await world.store.info("connected_clients")
    return await kinds(world), connections, [sockets(process) for process in world.distinct]


@pytest.mark.slow
async def test_nothing_is_lost_and_nothing_comes_twice(start: Starts, pytestconfig: pytest.Config) -> None:
    if pytestconfig.getoption("--sharing") != SHARED:
        pytest.skip("processes that share nothing lose what is theirs")
    given = options(WORDS)
    world = await start(given.processes, paired=True, SESSION_IDLE_TIMEOUT=str(IDLE), **settings(given))
    before = await standing(world)
    used, began = await world.store.info("used_memory"), memory_of(world)
    chaos = Chaos(world, given)
    await chaos.run()
    chaos.table()
    expected = {"store stopped", "store failed over", "store flushed", "all restarted", "killed"}
    assert expected <= chaos.done.keys()
    for kind, count in chaos.counts.items():
        # A client that was only refused has shown nothing.
        assert count.good >= count.calls * GOOD, f"{kind}: {count}"
        ends = (count.lost, count.doubled, count.wrong, count.errors["hangs"])
        assert ends == (0, 0, 0, 0), f"{kind}: {count}; {chaos.complaints[:8]}"
    assert chaos.undefined() == []
    assert chaos.complaints == []
    # All that is not good has a cause, so there is nothing but good calls when nothing is disturbed.
    assert chaos.too_few() == []
    assert chaos.shares[WELL]["calls"] >= 100, chaos.shares

    async def as_before() -> bool:
        nonlocal seen
        seen = await standing(world)
        return seen == before

    seen = before
    try:
        await until("keys and connections are those of before", as_before, GONE)
    except AssertionError as error:
        raise AssertionError(f"{error}: {before} before, {seen} now") from None
    ends = memory_of(world)
    assert max(ends) < max(began) + MORE, f"MiB of the processes: {began} before, {ends} after"
    more = await world.store.info("used_memory") - used
    assert more < STORED, f"the store has {more} bytes more than before"
