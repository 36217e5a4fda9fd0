"""Plain functions that nobody waits for any more: they go on, and keep no other from running."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import queue
import threading
import weakref
from collections.abc import Generator
from concurrent import futures

import pytest

from tricorn import ClientAuth, Context, Principal, RpcError, Server, ServerAuth, connect, connect_many
from tricorn.bridge import threads
from tricorn.bridge.callouts import answered
from tricorn.bridge.threads import Threads

from .authorization_server import AuthorizationServer, Visitor, serving
from .conftest import until
from .test_auth_server import LOGIN, send

MANY = 40
"""More than there are threads."""


def test_a_call_that_was_cancelled_waits_for_nothing() -> None:
    call = threads.ThreadCall()
    call.cancel()
    refused: futures.Future[None] = futures.Future()
    refused.set_exception(RpcError(-32603, "the task was cancelled, and has no result"))
    pending: futures.Future[None] = futures.Future()
    for future in (refused, pending):
        with pytest.raises(futures.CancelledError):
            call.wait(future)
    assert pending.cancelled()


class Gate:
    """Functions that wait for as long as the test likes."""

    def __init__(self) -> None:
        self.opens = threading.Event()
        self.waiting = 0
        self._lock = threading.Lock()

    def wait(self) -> None:
        with self._lock:
            self.waiting += 1
        self.opens.wait(60)
        with self._lock:
            self.waiting -= 1


@pytest.fixture
def gate() -> Generator[Gate]:
    gate = Gate()
    yield gate
    gate.opens.set()


async def test_logins_that_were_given_up(authority: AuthorizationServer, visitor: Visitor, gate: Gate) -> None:
    app = Server("notes", auth=ServerAuth(issuer=authority.url))
    came: queue.SimpleQueue[str] = queue.SimpleQueue()
    answers = threading.Event()

    @app.tool
    def who(ctx: Context) -> str:
        return str(ctx.principal and ctx.principal.subject)

    def browser(url: str) -> None:
        query = dict(part.split("=", 1) for part in url.partition("?")[2].split("&"))
        if answers.is_set():
            came.put(f"code=nonsense&state={query['state']}&iss={authority.url}")

    def callback() -> str:
        if not answers.is_set():
            gate.wait()
            return ""
        return came.get(timeout=30)

    auth = ClientAuth(
        browser=browser,
        redirect_uri="https://app.example/back",
        callback=callback,
        store="memory",
        login_timeout=0.5,
        client_id="c",
    )
    async with serving(app) as url:
        async with connect_many({f"s{n}": f"{url}?{n}" for n in range(MANY)}, auth=auth) as group:
            assert len(group.failures) == MANY
            assert all("nobody has logged in" in str(error) for error in group.failures.values())
            assert gate.waiting == MANY
            answers.set()
            with pytest.raises(Exception, match="invalid_grant"):
                await group.add("last", url)
        good = ClientAuth(browser=visitor.browse, store="memory")
        async with connect(url, auth=good) as client:
            assert (await client.call_tool("who")).text == "ada"
    gate.opens.set()
    await until(lambda: gate.waiting == 0)


async def test_tokens_that_nobody_could_check_in_time(gate: Gate) -> None:
    def verify(token: str) -> Principal:
        if token == "slow":
            gate.wait()
        return Principal(token)

    auth = ServerAuth(verifier=verify, authorization_servers=LOGIN, timeout=0.2)
    app = Server("notes", auth=auth)

    @app.tool
    def who(ctx: Context) -> str:
        return str(ctx.principal and ctx.principal.subject)

    async with serving(app) as url:
        for _ in range(2):
            answers = await asyncio.gather(*(asyncio.to_thread(send, url, "slow") for _ in range(MANY // 2)))
            assert {status for status, *_ in answers} == {503}
        assert gate.waiting == MANY
        async with connect(url, auth=ClientAuth.bearer("ada")) as client:
            assert (await client.call_tool("who")).text == "ada"


async def test_those_that_are_given_up_are_bounded(
    gate: Gate, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(threads, "MAX_GIVEN_UP", 3)
    pool = Threads(2)

    async def given_up() -> None:
        before = gate.waiting
        task = asyncio.create_task(answered(pool, gate.wait))
        await until(lambda: gate.waiting > before)
        task.cancel()
        await asyncio.wait([task])

    for _ in range(5):
        await given_up()
    # Three have threads of their own, two keep those of the pool: nothing else runs until one of them is over.
    last = asyncio.create_task(answered(pool, lambda: "done"))
    dropped = asyncio.create_task(answered(pool, lambda: pytest.fail("nobody wants it")))
    await asyncio.sleep(0)
    dropped.cancel()
    await asyncio.wait([dropped])  # else a thread may have taken it before it is told
    assert pool._shared.workers == 2
    assert (gate.waiting, last.done()) == (5, False)
    gate.opens.set()
    assert await asyncio.wait_for(last, 30) == "done"
    await until(lambda: (pool._shared.given_up, pool._shared.spare) == (0, 2))
    assert [record.getMessage() for record in caplog.records] == [
        "3 functions that were given up are still at work: others wait for a thread"
    ]


async def test_threads_that_are_free_are_used_again() -> None:
    pool = Threads(4)
    shared, used = pool._shared, set[threading.Thread]()
    for _ in range(20):
        used.add(await answered(pool, threading.current_thread))
        await until(lambda: shared.spare == 1)
    assert len(used) == 1
    # They end with their pool.
    del pool
    gc.collect()
    for thread in used:
        thread.join(30)
        assert not thread.is_alive()


async def test_threads_that_are_free_keep_nothing() -> None:
    class Result:
        """Something that can be referred to weakly."""

    pool = Threads(2)
    result = Result()
    known = weakref.ref(result)

    def work(held: Result = result) -> None:
        del held

    pool.submit(contextvars.copy_context(), work)
    del result, work
    await until(lambda: pool._shared.spare == 1)
    gc.collect()
    await until(lambda: known() is None)
