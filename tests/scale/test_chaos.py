"""Everything at once: clients of all kinds, while processes are killed and replaced and the store fails."""

from collections import Counter

import pytest
from chaos import Chaos, options, settings
from conftest import Starts
from world import SHARED, World, until

TTL, IDLE = 60, 20
"""Seconds that tasks and unused sessions live."""
GONE = TTL + 20.0
"""Seconds after which the store has nothing of them any more: the inbox of a killed process lives for a minute."""
WORDS = [
    *("--seconds", "28", "--every", "1.5", "--pause-store", "4", "--rolling", "--flush"),
    *("--sessions", "8", "--modern", "3", "--tasks", "4", "--pause", "0.2"),
    *("--processes", "3", "--ttl", str(TTL)),
]


async def kinds(world: World) -> Counter[str]:
    """Keys of the store by kind, without the log of changes, which begins with the first of them."""
    found = Counter(key.split(":")[2] for key in await world.store.keys())
    found.pop("changes", None)
    return found


@pytest.mark.slow
async def test_nothing_is_lost_and_nothing_comes_twice(start: Starts, pytestconfig: pytest.Config) -> None:
    if pytestconfig.getoption("--sharing") != SHARED:
        pytest.skip("processes that share nothing lose what is theirs")
    given = options(WORDS)
    world = await start(given.processes, SESSION_IDLE_TIMEOUT=str(IDLE), DRAIN_TIMEOUT="2", **settings(given))
    keys, connections = await kinds(world), await world.store.info("connected_clients")
    chaos = Chaos(world, given)
    await chaos.run()
    chaos.table()
    assert {"store stopped", "store flushed", "all restarted", "killed"} <= chaos.done.keys()
    for kind, count in chaos.counts.items():
        # A client that was only refused has shown nothing.
        assert count.good >= count.calls / 4, f"{kind}: {count}"
        ends = (count.lost, count.doubled, count.wrong, count.errors["hangs"])
        assert ends == (0, 0, 0, 0), f"{kind}: {count}; {chaos.complaints[:8]}"
    assert chaos.undefined() == []
    assert chaos.complaints == []

    async def as_before() -> bool:
        nonlocal seen
        seen = (await kinds(world), await world.store.info("connected_clients"))
        return seen == (keys, connections)

    seen = (keys, connections)
    try:
        await until("the store has the keys and connections of before", as_before, GONE)
    except AssertionError as error:
        raise AssertionError(f"{error}: {(keys, connections)} before, {seen} now") from None
