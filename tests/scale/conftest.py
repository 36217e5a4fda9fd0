"""Options of the tests, and the programs that they start."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from world import ALONE, DOCUMENTS, LANGS, NOTHING, POSTGRES, SHARED, TREE, World

Starts = Callable[..., Awaitable[World]]


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("scale")
    lang = os.environ.get("TRICORN_SCALE_LANG", "rust")
    group.addoption("--lang", default=lang, choices=LANGS, help="the fixture server's language (TRICORN_SCALE_LANG)")
    built = os.environ.get("TRICORN_SCALE_BUILT", str(TREE))
    group.addoption("--built", default=built, help="the tree whose programs are run (TRICORN_SCALE_BUILT)")
    meaning = "nothing: processes without a store, tests have to fail; alone: one process under the names of all; "
    meaning += "documents, postgres: a store of the program, in Python"
    choices = [SHARED, NOTHING, ALONE, DOCUMENTS, POSTGRES]
    group.addoption("--sharing", default=SHARED, choices=choices, help=meaning)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> object:
    """The last lines of all programs belong to a failure."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    world = item.stash.get(WORLD, None)
    if report.failed and world:
        report.sections.append(("programs", world.said()))


WORLD = pytest.StashKey[World]()


@pytest_asyncio.fixture
async def start(request: pytest.FixtureRequest) -> AsyncIterator[Starts]:
    """Starts the programs of a test: `world = await start(count=2, SESSION_IDLE_TIMEOUT="2")`."""
    config = request.config
    worlds: list[World] = []

    async def begin(*given: Any, **settings: Any) -> World:
        lang, built = config.getoption("--lang"), Path(config.getoption("--built"))
        world = World(lang, built, config.getoption("--sharing"))
        worlds.append(world)
        await world.start(*given, **settings)
        request.node.stash[WORLD] = world
        return world

    yield begin
    for world in worlds:
        await world.stop()


@pytest_asyncio.fixture
async def world(start: Starts) -> World:
    """A store, two processes, and nginx before them."""
    return await start()


@pytest.fixture
def stored(world: World) -> World:
    """The same, for tests that look into the store."""
    if world.sharing in (ALONE, DOCUMENTS, POSTGRES):
        pytest.skip("nothing is kept in a Redis")
    return world


@pytest.fixture
def several(world: World) -> World:
    """The same, for tests in which a process ends and another goes on."""
    if world.sharing == ALONE:
        pytest.skip("one process cannot go on for another")
    return world
