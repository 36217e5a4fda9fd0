"""Listening to changes without asyncio."""

from __future__ import annotations

import asyncio
import threading

import pytest

from tricorn import (
    Change,
    Client,
    ClosedError,
    Honoured,
    Listening,
    MisuseError,
    PromptsListChanged,
    ResourceUpdated,
    Server,
    ToolsListChanged,
    testing,
)

from .conftest import LEGACY, MODERN, PATIENCE, full, idle


@pytest.fixture
def app() -> Server:
    return full(Server("s"))


def test_a_synchronous_client_listens(app: Server, revision: str) -> None:
    with Client(app, revision=revision) as client:
        with client.listen(tools=True, uris=["a://one"]) as changes, client.listen(prompts=True) as others:
            assert isinstance(changes, Listening)
            assert changes.honoured == Honoured(tools=True, uris=("a://one",))
            with pytest.raises(TimeoutError, match="nothing has changed"):
                changes.next(timeout=0.01)
            app.list_changed("tool")
            app.resource_updated("a://one")
            told: set[Change] = set()
            for change in changes:
                told.add(change)
                if len(told) == 2:
                    break
            # Changes of lists wait for more of them.
            assert told == {ToolsListChanged(), ResourceUpdated("a://one")}
            app.list_changed("prompt")
            assert others.next(PATIENCE) == PromptsListChanged()
        assert list(changes) == []
        with pytest.raises(MisuseError, match="has listened before"), changes:
            pass
        with pytest.raises(MisuseError, match="nothing is asked for"), client.listen():
            pass
        left = client.listen(tools=True)
        left.__enter__()
    with pytest.raises(ClosedError):
        left.next()
    assert left.next() is None
    assert not client._async._host.waiting
    asyncio.run(idle(app))


def test_threads_that_wait_hear_of_the_end(app: Server, revision: str) -> None:
    with Client(app, revision=revision) as client, client.listen(tools=True) as changes:
        ended: list[object] = []
        threads = [threading.Thread(target=lambda: ended.append(changes.next())) for _ in range(3)]
        for thread in threads:
            thread.start()
        changes.close()
        for thread in threads:
            thread.join(PATIENCE)
        assert ended == [None, None, None]


def test_a_synchronous_client_that_closes_meanwhile(app: Server, revision: str) -> None:
    client = Client(app, revision=revision).connect()
    changes = client.listen(tools=True).__enter__()
    outcome: list[object] = []

    def wait() -> None:
        try:
            outcome.append(list(changes))
        except ClosedError as error:
            outcome.append(type(error))

    thread = threading.Thread(target=wait)
    thread.start()
    client.close()
    thread.join(PATIENCE)
    assert outcome == [ClosedError]


async def test_a_synchronous_client_over_http(app: Server, revision: str) -> None:
    def work(url: str) -> Change | None:
        with Client(url, revision=revision) as client, client.listen(uris=["a://one"]) as changes:
            app.resource_updated("a://one")
            return changes.next(PATIENCE)

    async with testing.serving(app) as url:
        assert await asyncio.to_thread(work, url) == ResourceUpdated("a://one")
        await idle(app)


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
async def test_a_synchronous_client_does_not_block_its_own_server(app: Server, revision: str) -> None:
    async with testing.connect(app, revision=revision):
        client = Client(app, revision=revision)
        await asyncio.to_thread(client.connect)
        changes = client.listen(tools=True)
        with pytest.raises(MisuseError, match="block"):
            changes.__enter__()
        await asyncio.to_thread(client.close)
