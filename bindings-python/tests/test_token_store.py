"""Stores of logins: one of the program's own."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator
from concurrent import futures
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tricorn import (
    AsyncClient,
    AuthError,
    Client,
    ClientAuth,
    ClosedError,
    Context,
    FileStore,
    MisuseError,
    Server,
    ServerAuth,
    TimeoutError,  # noqa: A004 - this package's
    TokenKey,
    TokenStore,
    connect,
)
from tricorn.client import connection
from tricorn.client.token_store import _turn, _turns

from .authorization_server import AuthorizationServer, Visitor, serving
from .conftest import until


class PlainStore:
    """Keeps logins in a dictionary; its methods run in worker threads."""

    def __init__(self) -> None:
        self.logins: dict[TokenKey, str] = {}
        self.asked: list[str] = []

    def load(self, key: TokenKey) -> str | None:
        self.asked.append("load")
        return self.logins.get(key)

    def find(self, server: str) -> list[tuple[str, str]]:
        self.asked.append("find")
        return [(key.issuer, login) for key, login in self.logins.items() if key.server == server]

    def save(self, key: TokenKey, login: str) -> None:
        self.asked.append("save")
        self.logins[key] = login

    def remove(self, key: TokenKey) -> None:
        self.asked.append("remove")
        self.logins.pop(key, None)


class AsyncStore:
    """The same, asynchronous, and with reservations."""

    def __init__(self) -> None:
        self.plain = PlainStore()
        self.lock = asyncio.Lock()
        self.tasks: list[Any] = []
        self.waits: list[float] = []

    @property
    def asked(self) -> list[str]:
        return self.plain.asked

    @property
    def logins(self) -> dict[TokenKey, str]:
        return self.plain.logins

    async def load(self, key: TokenKey) -> str | None:
        return self.plain.load(key)

    async def find(self, server: str) -> list[tuple[str, str]]:
        return self.plain.find(server)

    async def save(self, key: TokenKey, login: str) -> None:
        assert self.lock.locked()
        self.plain.save(key, login)

    async def remove(self, key: TokenKey) -> None:
        self.plain.remove(key)

    @contextlib.asynccontextmanager
    async def reserve(self, key: TokenKey, wait: float) -> AsyncGenerator[None]:
        self.waits.append(wait)
        entering = asyncio.current_task()
        async with self.lock:
            yield
        self.tasks.append((entering, asyncio.current_task()))


@pytest.fixture
def app(authority: AuthorizationServer) -> Server:
    auth = ServerAuth(verifier=authority.tokens.get, authorization_servers=[authority.url], required_scopes=["read"])
    app = Server("notes", auth=auth)

    @app.tool
    async def who(ctx: Context) -> str:
        return str(ctx.principal and ctx.principal.subject)

    return app


@pytest.mark.parametrize("make", [PlainStore, AsyncStore])
async def test_a_login_outlives_its_client(
    app: Server, authority: AuthorizationServer, visitor: Visitor, make: Any
) -> None:
    store = make()
    assert isinstance(store, TokenStore)
    async with serving(app) as url:
        for _ in range(3):
            auth = ClientAuth(browser=visitor.browse, store=store)
            async with connect(url, auth=auth) as client:
                assert (await client.call_tool("who")).text == "ada"
        assert list(store.logins) == [TokenKey(authority.url, url)]
        # What is kept is refreshed where it is refused.
        authority.tokens.clear()
        async with connect(url, auth=ClientAuth(browser=visitor.browse, store=store)) as client:
            assert (await client.call_tool("who")).text == "ada"
    assert (len(visitor.visited), authority.grants()) == (1, ["authorization_code", "refresh_token"])
    assert store.asked.count("save") == 2
    assert not _turns


async def test_reservations_are_entered_and_left_in_one_task(
    app: Server, authority: AuthorizationServer, visitor: Visitor
) -> None:
    store = AsyncStore()
    async with serving(app) as url, connect(url, auth=ClientAuth(browser=visitor.browse, store=store)) as client:
        assert (await client.call_tool("who")).text == "ada"
    assert store.tasks
    assert all(entered is left for entered, left in store.tasks)
    assert store.waits[0] == 60
    assert not store.lock.locked()


@pytest.mark.parametrize("make", [PlainStore, AsyncStore])
async def test_clients_that_share_a_store_share_a_refresh(
    app: Server, authority: AuthorizationServer, visitor: Visitor, make: Any
) -> None:
    store = make()

    def auth() -> ClientAuth:
        return ClientAuth(browser=visitor.browse, store=store)

    async with serving(app) as url, connect(url, auth=auth()) as one, connect(url, auth=auth()) as two:
        authority.tokens.clear()
        results = await asyncio.gather(*(client.call_tool("who", idempotent=True) for client in (one, two) * 5))
        assert [result.text for result in results] == ["ada"] * 10
    assert authority.grants() == ["authorization_code", "refresh_token"]
    assert len(visitor.visited) == 1


async def test_a_store_that_cannot_be_reserved(app: Server, visitor: Visitor) -> None:
    class Busy(AsyncStore):
        @contextlib.asynccontextmanager
        async def reserve(self, key: TokenKey, wait: float) -> AsyncGenerator[None]:
            raise TimeoutError("somebody else has it")
            yield

    async with serving(app) as url:
        with pytest.raises(AuthError, match="somebody else has it"):
            await connect(url, auth=ClientAuth(browser=visitor.browse, store=Busy()))
    assert visitor.visited == []


async def test_a_reservation_that_is_none(app: Server, visitor: Visitor, caplog: pytest.LogCaptureFixture) -> None:
    class Odd(PlainStore):
        def reserve(self, key: TokenKey, wait: float) -> contextlib.AbstractContextManager[None]:
            return contextlib.closing(self)  # type: ignore

    async with serving(app) as url:
        with pytest.raises(MisuseError, match="reserve: expected an asynchronous context manager"):
            await connect(url, auth=ClientAuth(browser=visitor.browse, store=Odd()))


async def test_a_store_that_fails(app: Server, visitor: Visitor, caplog: pytest.LogCaptureFixture) -> None:
    class Broken(PlainStore):
        def find(self, server: str) -> list[tuple[str, str]]:
            raise ZeroDivisionError("s3cret")

    class Full(PlainStore):
        def save(self, key: TokenKey, login: str) -> None:
            raise ZeroDivisionError("s3cret")

    async with serving(app) as url:
        with caplog.at_level(logging.WARNING, logger="tricorn"):
            for store in (Broken(), Full()):
                async with connect(url, auth=ClientAuth(browser=visitor.browse, store=store)) as client:
                    assert (await client.call_tool("who")).text == "ada"
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert [warning.partition(":")[0] for warning in warnings] == [
        "what is kept of earlier logins cannot be read",
        "the login is used, and cannot be kept",
    ]
    assert all('"store": ZeroDivisionError' in warning and "s3cret" not in warning for warning in warnings)


@pytest.mark.parametrize(
    ("name", "given", "why"),
    [
        ("load", b"s3cret", "store: load: expected a string, got bytes"),
        ("find", None, "store: find: expected pairs of an issuer and a login"),
        ("find", ["s3cret"], "store: find: expected pairs of an issuer and a login"),
        ("find", [("issuer", b"s3cret")], "store: find: login: expected a string, got bytes"),
    ],
)
async def test_a_store_that_gives_what_is_no_login(
    app: Server, visitor: Visitor, name: str, given: Any, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    store: Any = PlainStore()
    setattr(store, name, lambda _: given)
    heard: list[str] = []
    async with serving(app) as url:
        auth = ClientAuth(browser=visitor.browse, store=store)
        client = connect(url, auth=auth, on_error=lambda error, _: heard.append(str(error)))
        # What cannot be found keeps nobody from logging in.
        with contextlib.nullcontext() if name == "find" else pytest.raises(MisuseError, match=why):
            await client
        await client.close()
    assert heard[0].startswith(why)
    assert "s3cret" not in f"{heard} {caplog.text}"


def test_a_directory_that_is_none() -> None:
    for wrong in (7, b"logins", None):
        with pytest.raises(MisuseError, match="FileStore: expected a path"):
            FileStore(wrong)  # type: ignore[arg-type]


async def test_a_client_that_closes_meanwhile_gives_its_turn_back(app: Server) -> None:
    store = AsyncStore()
    opened = asyncio.Event()

    async def browser(url: str) -> None:
        opened.set()

    async with serving(app) as url:
        client = connect(url, auth=ClientAuth(browser=browser, store=store))
        connecting = asyncio.ensure_future(client.connect())
        await asyncio.wait_for(opened.wait(), 30)
        connecting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await connecting
        await asyncio.wait_for(client.close(), 30)
        async with asyncio.timeout(30) if hasattr(asyncio, "timeout") else contextlib.nullcontext(), store.lock:
            pass


# -- a client that ends while its login is renewed


async def renewing(url: str, authority: AuthorizationServer, visitor: Visitor, store: Any) -> ClientAuth:
    """A login that the next client renews, and is answered late."""
    auth = ClientAuth(browser=visitor.browse, store=store)
    async with connect(url, auth=auth):
        authority.slow.set()
        authority.tokens.clear()
    return auth


async def settled(client: AsyncClient) -> None:
    """The engine takes the client for closed: whoever waits for nothing else would end it now."""
    await until(lambda: client._closing is not None and not client._host.waiting)
    for _ in range(10):
        await asyncio.sleep(0)


async def is_kept(url: str, authority: AuthorizationServer, auth: ClientAuth) -> None:
    """Checks that the login that the refresh has brought opens the server: the refresh token before it is used up."""
    authority.slow.clear()
    async with connect(url, auth=auth) as client:
        assert (await client.call_tool("who")).text == "ada"
    assert authority.grants() == ["authorization_code", "refresh_token"]
    assert not _turns


@pytest.mark.parametrize("make", [PlainStore, AsyncStore])
@pytest.mark.parametrize("end", ["close", "cancel"])
async def test_a_login_is_kept_of_a_client_that_is_given_up(
    app: Server, authority: AuthorizationServer, visitor: Visitor, make: Any, end: str
) -> None:
    store = make()
    async with serving(app) as url:
        auth = await renewing(url, authority, visitor, store)
        client = connect(url, auth=auth)
        connecting = asyncio.ensure_future(client.connect())
        assert await asyncio.to_thread(authority.waits.wait, 30)
        if end == "close":
            ending: asyncio.Future[Any] = asyncio.ensure_future(client.close())
        else:
            connecting.cancel()
            ending = connecting
        await settled(client)
        authority.answers.set()
        await asyncio.wait([ending, connecting], timeout=30)
        assert isinstance(connecting.exception(), ClosedError) if end == "close" else connecting.cancelled()
        assert not client._host.reserved
        await is_kept(url, authority, auth)


async def test_a_login_is_kept_of_a_client_that_is_closed(
    app: Server, authority: AuthorizationServer, visitor: Visitor
) -> None:
    store = AsyncStore()
    async with serving(app) as url:
        auth = ClientAuth(browser=visitor.browse, store=store)
        client = await connect(url, auth=auth)
        authority.slow.set()
        authority.tokens.clear()
        calling = asyncio.ensure_future(client.call_tool("who"))
        assert await asyncio.to_thread(authority.waits.wait, 30)
        closing = asyncio.ensure_future(client.close())
        with pytest.raises(ClosedError):
            await asyncio.wait_for(calling, 30)
        authority.answers.set()
        await asyncio.wait_for(closing, 30)
        await is_kept(url, authority, auth)


@pytest.mark.parametrize("end", ["close", "interrupt"])
async def test_a_login_is_kept_of_a_synchronous_client(
    app: Server, authority: AuthorizationServer, visitor: Visitor, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait = futures.wait

    def interrupted(*arguments: Any, **options: Any) -> Any:
        monkeypatch.setattr(futures, "wait", wait)
        authority.waits.wait(30)
        raise KeyboardInterrupt

    async with serving(app) as url:
        auth = await renewing(url, authority, visitor, PlainStore())
        client = Client(url, auth=auth)
        if end == "interrupt":
            monkeypatch.setattr(futures, "wait", interrupted)
        with ThreadPoolExecutor() as pool:
            connecting = pool.submit(client.connect)
            assert await asyncio.to_thread(authority.waits.wait, 30)
            closing = connecting if end == "interrupt" else pool.submit(client.close)
            await settled(client._async)
            assert not closing.done()
            authority.answers.set()
            done, _ = await asyncio.to_thread(wait, [connecting, closing], 30)
            assert len(done) == len({connecting, closing})
        assert isinstance(connecting.exception(), KeyboardInterrupt if end == "interrupt" else ClosedError)
        await is_kept(url, authority, auth)


async def test_a_login_that_does_not_end_is_not_waited_for(
    app: Server, authority: AuthorizationServer, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "LAST", 0.05)
    store = AsyncStore()
    async with serving(app) as url:
        client = connect(url, auth=await renewing(url, authority, visitor, store))
        connecting = asyncio.ensure_future(client.connect())
        assert await asyncio.to_thread(authority.waits.wait, 30)
        await asyncio.wait_for(client.close(), 30)
        with pytest.raises(ClosedError):
            await connecting
        await until(lambda: not store.lock.locked())
        authority.answers.set()


async def test_turns() -> None:
    what = (1, TokenKey("a", "b"))
    order: list[str] = []

    async def take(name: str, over: asyncio.Event, taken: asyncio.Event) -> None:
        async with _turn(what, 30):
            order.append(name)
            taken.set()
            await over.wait()

    over, taken = asyncio.Event(), [asyncio.Event() for _ in range(3)]
    first = asyncio.create_task(take("first", over, taken[0]))
    await taken[0].wait()
    given_up = asyncio.create_task(take("given up", over, taken[1]))
    last = asyncio.create_task(take("last", over, taken[2]))
    with pytest.raises(asyncio.TimeoutError):
        async with _turn(what, 0.01):
            raise AssertionError("two at once")
    given_up.cancel()
    over.set()
    await asyncio.wait([first, given_up, last], timeout=30)
    assert (order, given_up.cancelled(), last.done(), _turns) == (["first", "last"], True, True, {})


def test_a_directory() -> None:
    assert repr(FileStore("logins")) == "FileStore('logins')"
