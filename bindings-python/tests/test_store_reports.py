"""Public reports about stores that programs bring to frameworks, with ours on SQLite and PostgreSQL.

The table in tests/scale/README.md says which.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import AsyncIterator, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool

from tricorn import Document, DocumentWrite, MisuseError, Server, connect, testing

from .authorization_server import serving
from .conftest import INITIALIZE, MODERN, PATIENCE
from .postgres import Postgres, Unfit
from .postgres_store import LOCK, READ, TABLE, WRITE, PostgresStore
from .sqlite_store import SqliteStore
from .test_document_store import GUIDE, LEGACY, Plain, asked, named, opened, post

Expected = dict[str, "str | None"]
Store = Any
OTHERS = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
ENDED = f"SELECT pg_terminate_backend(pid) {OTHERS}"


@pytest.fixture(scope="session")
def postgres() -> Generator[Postgres]:
    """A server for all tests that do not end it."""
    yield from started()


@pytest.fixture
def own_postgres() -> Generator[Postgres]:
    """A server for one test."""
    yield from started()


def started() -> Generator[Postgres]:
    try:
        server = Postgres()
    except Unfit as why:
        if sys.platform == "linux" and "CI" in os.environ:
            pytest.fail(str(why))
        pytest.skip(str(why))
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture
def address(postgres: Postgres) -> str:
    """A database without a table."""
    do(postgres.address(), ENDED)
    do(postgres.address(), "DROP TABLE IF EXISTS documents")
    return postgres.address()


@pytest.fixture
def store(address: str) -> Generator[PostgresStore]:
    with contextlib.closing(PostgresStore(address)) as store:
        yield store


@pytest.fixture(params=["sqlite", "postgres"])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Store]:
    """A store of each kind."""
    if request.param == "postgres":
        yield request.getfixturevalue("store")
        return
    with contextlib.closing(SqliteStore(str(tmp_path / "documents.db"))) as store:
        yield store


def do(address: str, statement: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(address, autocommit=True) as database:
        found = database.execute(statement)
        return found.fetchall() if found.description else []


def write(key: str, version: str = "1", text: str = "{}", ttl: float = 60.0) -> DocumentWrite:
    return DocumentWrite(key, Document(version, text), ttl)


class Heard(list[Exception]):
    """What `on_error` hears."""

    def __call__(self, error: Exception, name: str) -> None:
        assert name == "store"
        self.append(error)


@contextlib.asynccontextmanager
async def two(store: Store, **options: Any) -> AsyncIterator[tuple[str, str]]:
    """The addresses of two servers with one store."""
    servers = serving(named("one", store, **options)), serving(named("another", store, **options))
    async with servers[0] as one, servers[1] as another:
        yield one, another


async def works(url: str, session: str, status: int = 200) -> None:
    """Asks until the answer has this status."""
    end = time.monotonic() + PATIENCE
    while (found := await asked(url, session))[0] != status:
        assert time.monotonic() < end, f"expected {status}, got {found}"
        await asyncio.sleep(0.05)


async def refused_by_check(store: Store, said: str) -> MisuseError:
    with pytest.raises(MisuseError) as error:
        await testing.check_document_store(store)
    assert said in str(error.value)
    return error.value


def each(number: int, call: Callable[..., Any], *values: Any) -> list[Any]:
    """Returns the results of a function that runs in as many threads, which begin at once."""
    barrier = threading.Barrier(number)

    def run(at: int) -> Any:
        barrier.wait(PATIENCE)
        return call(at, *values)

    with ThreadPoolExecutor(number) as threads:
        return list(threads.map(run, range(number)))


# -- the store of the guide


def test_the_guide_shows_the_store() -> None:
    shown = (Path(__file__).parent / "postgres_store.py").read_text(encoding="utf-8")
    assert f"```python\n{shown}```\n" in GUIDE.read_text(encoding="utf-8")


async def test_it_keeps_the_rules(store: PostgresStore) -> None:
    await testing.check_document_store(store)


async def test_what_has_expired_is_removed(store: PostgresStore, address: str) -> None:
    assert store.commit({"a": None, "b": None}, [write("a", ttl=1.0), write("b")])
    do(address, "UPDATE documents SET expires = now() - interval '1 second' WHERE key = 'a'")
    store._swept -= 120
    assert store.commit({"b": "1"}, [write("b", "2")])
    assert do(address, "SELECT key FROM documents") == [("b",)]


# -- many at once


def test_tables_that_all_make_at_once(address: str, tmp_path: Path) -> None:
    makes = (lambda: PostgresStore(address), lambda: SqliteStore(str(tmp_path / "documents.db")))
    for make in makes:
        for store in each(8, lambda _, make: make(), make):
            store.close()


def test_of_those_that_make_one_document_at_once_one_is_told_so(either: Store) -> None:
    for turn in range(20):
        key = f"made:{turn}"
        found = each(8, lambda at, key: either.commit({key: None}, [write(key, f"{at}")]), key)
        assert sorted(found) == [*(7 * [False]), True]


def test_documents_in_any_order_are_no_deadlock(store: PostgresStore, address: str) -> None:
    keys = [f"k{at}" for at in range(20)]

    def turns(at: int) -> int:
        done = 0
        for turn in range(20):
            order = keys[:: 1 if (at + turn) % 2 else -1]
            found = {key: one and one.version for key, one in zip(order, store.get(order))}
            done += store.commit(found, [write(key, f"{at}-{turn}") for key in order])
        return done

    counted = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    before = do(address, counted)
    assert sum(each(6, turns)) >= 20
    assert do(address, counted) == before


async def test_a_deadlock_with_others_is_a_conflict(store: PostgresStore, address: str) -> None:
    heard = Heard()
    assert store.commit({"a": None, "b": None}, [write("a"), write("b")])
    with psycopg.connect(address) as other:
        other.execute("UPDATE documents SET text = '' WHERE key = 'b'")
        ours = asyncio.create_task(
            asyncio.to_thread(store.commit, {"a": "1", "b": "1"}, [write("a", "2"), write("b", "2")])
        )
        while not await asyncio.to_thread(do, address, f"SELECT 1 {OTHERS} AND wait_event_type = 'Lock'"):
            assert not ours.done()
        # One of the two is ended by PostgreSQL, after a second.
        with contextlib.suppress(psycopg.errors.DeadlockDetected):
            await asyncio.to_thread(other.execute, "UPDATE documents SET text = '' WHERE key = 'a'")
    assert isinstance(await ours, bool)
    async with two(store, on_error=heard) as urls:
        await works(urls[1], await opened(urls[0]))
    assert not heard


class Serializable(PostgresStore):
    """The same without locks, by SERIALIZABLE transactions."""

    def commit(self, expected: Expected, writes: list[DocumentWrite]) -> bool:
        kept = [(key, *document, ttl) for key, document, ttl in writes if document is not None]
        with contextlib.suppress(psycopg.errors.SerializationFailure), self._pool.connection() as database:
            database.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
            with database.transaction():
                found = {key: version for key, version, _ in database.execute(READ, [list(expected)])}
                if any(found.get(key) != version for key, version in expected.items()):
                    return False
                gone = [one.key for one in writes if one.document is None]
                database.execute("DELETE FROM documents WHERE key = ANY(%s)", [gone])
                database.execute(WRITE, [[one[at] for one in kept] for at in range(4)])
            return True
        return False


@pytest.mark.parametrize("kind", [PostgresStore, Serializable])
async def test_serialization_failures_are_no_outage(address: str, kind: type[PostgresStore]) -> None:
    heard = Heard()
    with contextlib.closing(kind(address)) as store:
        await testing.check_document_store(store)
        async with two(store, on_error=heard) as urls:
            sessions = await asyncio.gather(*(opened(urls[at % 2]) for at in range(24)))
            found = await asyncio.gather(*(asked(urls[(at + 1) % 2], one) for at, one in enumerate(sessions)))
    assert {status for status, _ in found} == {200}
    assert not heard


async def test_the_isolation_of_the_database_does_not_matter(address: str) -> None:
    with contextlib.closing(
        PostgresStore(f"{address}&options=-cdefault_transaction_isolation%3Dserializable")
    ) as store:
        await testing.check_document_store(store)

        for turn in range(20):
            # Each writes one of two, if the other has not been written.
            both: Expected = {f"{turn}:0": None, f"{turn}:1": None}
            found = each(2, lambda at, both: store.commit(both, [write(list(both)[at])]), both)
            assert sorted(found) == [False, True]


def test_a_long_document_is_written_beside_short_ones(store: PostgresStore) -> None:
    is_over, took = threading.Event(), list[float]()

    def writes(at: int) -> None:
        if at:
            turn = 0
            while not is_over.is_set():
                turn += 1
                assert store.commit({f"{at}:{turn}": None}, [write(f"{at}:{turn}")])
            return
        try:
            for turn in range(6):
                begun = time.monotonic()
                assert store.commit(
                    {"long": f"{turn}" if turn else None}, [write("long", f"{turn + 1}", "x" * (4 << 20))]
                )
                took.append(time.monotonic() - begun)
        finally:
            is_over.set()

    each(5, writes)
    assert len(took) == 6


# -- connections


async def test_connections_that_the_server_has_closed_are_noticed(store: PostgresStore, address: str) -> None:
    heard = Heard()
    async with two(store, on_error=heard) as (one, another):
        session = await opened(one)
        for url in (another, one, another):
            assert do(address, ENDED)
            assert (await asked(url, session))[0] == 200
    # A question that was on its way at that moment may have failed.
    assert all(isinstance(error, psycopg.OperationalError) for error in heard)


async def test_a_server_that_is_started_again(own_postgres: Postgres) -> None:
    heard = Heard()
    with contextlib.closing(PostgresStore(own_postgres.address())) as store:
        async with two(store, on_error=heard) as (one, another):
            session, unseen = await opened(one), await opened(one)
            await works(another, session)
            own_postgres.end()
            await works(another, unseen, 503)
            assert (await asked(another, session))[0] == 200
            assert (await post(one, INITIALIZE))[0] == 503
            async with connect(another, revision=MODERN) as client:
                assert (await client.call_tool("who")).text == "another"
            own_postgres.start()
            await works(another, unseen)
            await works(one, await opened_at_last(another))
    assert {type(error).__module__.partition(".")[0] for error in heard} <= {"psycopg", "psycopg_pool"}


async def test_connections_that_others_use_up(store: PostgresStore) -> None:
    async with two(store) as (one, another):
        session = await opened(one)
        with contextlib.ExitStack() as stack:
            for _ in range(8):
                stack.enter_context(store._pool.connection())
            begun = time.monotonic()
            assert (await asked(another, session))[0] == 503
            assert time.monotonic() - begun < PATIENCE / 2
        await works(another, session)
        await works(another, await opened_at_last(one))
        sessions = await asyncio.gather(*(opened(one) for _ in range(40)))
        found = await asyncio.gather(*(asked(another, each) for each in sessions))
    assert {status for status, _ in found} == {200}


def test_nothing_is_prepared_that_a_pooler_would_lose(store: PostgresStore) -> None:
    for turn in range(20):
        store.get(["a"])
        assert store.commit({f"{turn}": None}, [write(f"{turn}")])
    with store._pool.connection() as database:
        assert database.execute("SELECT count(*) FROM pg_prepared_statements").fetchall() == [(0,)]
        assert database.execute("SHOW default_transaction_isolation").fetchall() == [("read committed",)]


class InTransactions:
    """An asynchronous store with one connection or a pool of them, made in whatever loop asks first."""

    def __init__(self, address: str, connections: int) -> None:
        self.address, self.connections = address, connections
        self.pool: AsyncConnectionPool[AsyncConnection] | None = None
        self.alone: AsyncConnection | None = None

    @contextlib.asynccontextmanager
    async def database(self) -> AsyncIterator[AsyncConnection]:
        if self.connections == 1:
            if self.alone is None:
                self.alone = await AsyncConnection.connect(self.address, autocommit=True)
            yield self.alone
            return
        if self.pool is None:
            kwargs = {"autocommit": True}
            self.pool = AsyncConnectionPool(
                self.address, kwargs=kwargs, min_size=1, max_size=self.connections, open=False
            )
            await self.pool.open()
        async with self.pool.connection() as database:
            yield database

    async def get(self, keys: list[str]) -> Any:
        async with self.database() as database:
            found = {key: (version, text) async for key, version, text in await database.execute(READ, [keys])}
        return [found.get(key) for key in keys]

    async def commit(self, expected: Expected, writes: list[DocumentWrite]) -> Any:
        kept = [(key, *document, ttl) for key, document, ttl in writes if document is not None]
        gone = [one.key for one in writes if one.document is None]
        async with self.database() as database, database.transaction():
            await database.execute(LOCK, [sorted(expected)])
            found = {key: version async for key, version, _ in await database.execute(READ, [list(expected)])}
            if any(found.get(key) != version for key, version in expected.items()):
                return False
            await database.execute("DELETE FROM documents WHERE key = ANY(%s)", [gone])
            await database.execute(WRITE, [[one[at] for one in kept] for at in range(4)])
            return True

    async def aclose(self) -> None:
        if self.pool is not None:
            await self.pool.close()
        if self.alone is not None:
            await self.alone.close()


async def test_one_connection_for_all_is_refused(address: str) -> None:
    do(address, TABLE)
    async with contextlib.aclosing(InTransactions(address, 1)) as store:
        error = await refused_by_check(store, "commit: it failed")
        assert isinstance(error.__cause__, psycopg.Error)
    async with contextlib.aclosing(InTransactions(address, 8)) as store:
        await testing.check_document_store(store)


async def test_a_cancelled_operation_leaves_no_transaction(address: str) -> None:
    do(address, TABLE)
    heard = Heard()
    async with contextlib.aclosing(InTransactions(address, 2)) as store:
        async with two(store, on_error=heard) as (one, another):
            session = await opened(one)
            with psycopg.connect(address) as other:
                other.execute("LOCK TABLE documents")
                assert (await asked(another, session))[0] == 503
            await works(another, session)
            await works(one, session)
        assert not do(address, f"SELECT query {OTHERS} AND state LIKE 'idle in transaction%'")


# -- loops, threads and processes


def test_a_store_is_used_by_one_loop_after_the_other(either: Store) -> None:
    sessions: list[str] = []

    async def use() -> None:
        async with two(either) as (one, another):
            sessions.append(await opened(one))
            for session in sessions:
                await works(another, session)

    for _ in range(2):
        asyncio.run(use())


async def test_a_connection_for_one_thread_is_refused(tmp_path: Path) -> None:
    store = SqliteStore(str(tmp_path / "documents.db"))
    store.close()
    store._database = sqlite3.connect(str(tmp_path / "documents.db"), isolation_level=None)
    with contextlib.closing(store):
        error = await refused_by_check(store, "get: it failed: ProgrammingError")
        assert isinstance(error.__cause__, sqlite3.ProgrammingError)


async def test_a_store_that_is_closed_before_its_server(either: Store) -> None:
    heard = Heard()
    begun = time.monotonic()
    async with two(either, on_error=heard) as (one, another):
        session = await opened(one)
        either.close()
        await works(another, session, 503)
        async with connect(another, revision=MODERN) as client:
            assert (await client.call_tool("who")).text == "another"
    assert time.monotonic() - begun < PATIENCE
    assert heard


FORKED = '''
    import os, sys

    sys.path.insert(0, sys.argv[1])
    from postgres_store import PostgresStore
    from sqlite_store import SqliteStore
    from tricorn import Document, DocumentWrite

    place, made = sys.argv[2], {}

    class Store:
        """Makes its connections in the process that uses them."""

        def __getattr__(self, name):
            if os.getpid() not in made:
                made[os.getpid()] = PostgresStore(place) if place.startswith("postgresql:") else SqliteStore(place)
            return getattr(made[os.getpid()], name)

    store = Store()
    assert store.commit({"parent": None}, [DocumentWrite("parent", Document("0", "{}"), 60.0)])
    child = os.fork()
    who, status = "parent" if child else "child", 1
    try:
        for turn in range(30):
            key = f"{who}:{turn}"
            assert store.commit({key: None}, [DocumentWrite(key, Document("1", key), 60.0)])
            assert store.get([key, "parent"]) == [("1", key), ("0", "{}")], key
        status = 0
    finally:
        if not child:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    store.close()
'''


@pytest.mark.skipif(sys.platform != "linux", reason="fork is safe enough there alone")
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_store_in_forked_processes(tmp_path: Path, kind: str, request: pytest.FixtureRequest) -> None:
    place = request.getfixturevalue("address") if kind == "postgres" else str(tmp_path / "documents.db")
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(FORKED), encoding="utf-8")
    words = [sys.executable, str(path), str(Path(__file__).parent), place]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ended.returncode == 0, ended.stderr


# -- SQLite


async def test_a_file_that_another_process_has_locked(tmp_path: Path) -> None:
    path = str(tmp_path / "documents.db")
    with contextlib.closing(SqliteStore(path)) as store, contextlib.closing(sqlite3.connect(path)) as other:
        async with two(store) as (one, another):
            session = await opened(one)
            other.execute("BEGIN IMMEDIATE")
            # Those that read go on, and one that writes waits.
            opening = asyncio.create_task(post(another, INITIALIZE))
            assert (await asked(another, session))[0] == 200
            other.rollback()
            assert (await opening)[0] in (200, 503)
            other.execute("BEGIN IMMEDIATE")
            assert (await post(another, INITIALIZE))[0] == 503
            other.rollback()
            await works(one, await opened_at_last(another))


async def opened_at_last(url: str) -> str:
    end = time.monotonic() + PATIENCE
    while (found := await post(url, INITIALIZE))[0] != 200:
        assert time.monotonic() < end, found
        await asyncio.sleep(0.05)
    return found[1]


def test_a_commit_that_fails_leaves_no_transaction(tmp_path: Path) -> None:
    path = str(tmp_path / "documents.db")
    with contextlib.closing(SqliteStore(path)) as store, contextlib.closing(sqlite3.connect(path)) as reader:
        assert store.commit({"a": None}, [write("a")])
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM documents").fetchall()
        with contextlib.suppress(sqlite3.OperationalError):
            store.commit({"a": "1"}, [write("a", "2")])
        reader.rollback()
        found = store.get(["a"])[0]
        assert found
        assert store.commit({"a": found.version}, [write("a", "3")])
        assert reader.execute("SELECT version FROM documents").fetchall() == [("3",)]


# -- texts and keys


class Json(PostgresStore):
    def __init__(self, address: str) -> None:
        super().__init__(address)
        do(address, "ALTER TABLE documents ALTER COLUMN text TYPE jsonb USING text::jsonb")


async def test_a_column_of_jsonb_is_refused(address: str) -> None:
    with contextlib.closing(Json(address)) as store:
        await refused_by_check(store, "get: it failed: ")


async def test_a_nul_of_a_client_is_kept(either: Store) -> None:
    async with two(either) as (one, another):
        info = {"name": "nul \0 and \ud83e\udd80", "version": "\u202e"}
        usual: Any = INITIALIZE["params"]
        params = {**usual, "protocolVersion": LEGACY, "clientInfo": info}
        status, session, text = await post(one, {**INITIALIZE, "params": params})
        assert status == 200, text
        assert (await post(one, {"jsonrpc": "2.0", "method": "notifications/initialized"}, session))[0] == 202
        assert (await asked(another, session))[0] == 200


class OfItems(Plain):
    """A store that takes items of 400 KB, with their names."""

    def commit(self, expected: Expected, writes: list[DocumentWrite]) -> Any:
        if any(one.document and len(one.document.text) > 400_000 for one in writes):
            raise ValueError("Item size has exceeded the maximum allowed size")
        return super().commit(expected, writes)


async def test_a_limit_of_400_kb_is_named() -> None:
    error = await refused_by_check(OfItems(), "get and commit: it failed: ValueError")
    assert isinstance(error.__cause__, ValueError)


class Refusing(Plain):
    """As `OfItems`, and says that it refuses this one."""

    refused = 0

    def commit(self, expected: Expected, writes: list[DocumentWrite]) -> Any:
        if any(one.document and len(one.document.text) > 400_000 for one in writes):
            self.refused += 1
            raise MisuseError("Item size has exceeded the maximum allowed size")
        return super().commit(expected, writes)


async def test_a_document_that_is_refused_stops_nobody_else(capfd: pytest.CaptureFixture[str]) -> None:
    store, heard, found = Refusing(), Heard(), list[int]()
    app, other = named("one", store, on_error=heard), named("another", store)
    for server in (app, other):
        server.add_resource("a://{name}", lambda name: name)
    async with serving(app) as one, serving(other) as another:
        greedy = await opened(one)
        for at in range(120):
            params = {"uri": f"a://{at}{'u' * 6000}"}
            subscribe = {"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": params}
            await post(one, subscribe, greedy)
            found.append((await post((one, another)[at % 2], INITIALIZE))[0])
    assert store.refused
    assert set(found) == {200}
    assert {type(error) for error in heard} == {MisuseError}
    assert 1 <= capfd.readouterr().err.count("one question failed: Item size has exceeded") <= 2


async def test_keys_that_differ_in_case_alone(address: str, tmp_path: Path) -> None:
    said = "was taken for another"
    do(
        address,
        "CREATE COLLATION IF NOT EXISTS nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
    )
    with contextlib.closing(PostgresStore(address)) as store:
        do(address, "ALTER TABLE documents ALTER COLUMN key TYPE text COLLATE nocase")
        await refused_by_check(store, said)
    with contextlib.closing(SqliteStore(str(tmp_path / "documents.db"))) as file:
        file._database.execute("DROP TABLE documents")
        file._database.execute(
            "CREATE TABLE documents (key TEXT PRIMARY KEY COLLATE NOCASE, version TEXT, text TEXT, expires REAL)"
        )
        await refused_by_check(file, said)


class Named(Plain):
    """A store whose keys are names of files or of documents, with other signs for those that they cannot have."""

    def get(self, keys: list[str]) -> list[Document | None]:
        return super().get([self.name(key) for key in keys])

    def commit(self, expected: Expected, writes: list[DocumentWrite]) -> bool:
        expected = {self.name(key): version for key, version in expected.items()}
        return super().commit(expected, [write._replace(key=self.name(write.key)) for write in writes])

    def name(self, key: str) -> str:
        return re.sub(r"[^A-Za-z0-9:-]", "_", key)


async def test_keys_that_are_written_otherwise_are_told_apart() -> None:
    await refused_by_check(Named(), "was taken for another")


class Seen(Plain):
    """Looks at the keys and the order of what is written."""

    def commit(self, expected: Expected, writes: list[DocumentWrite]) -> bool:
        keys = [one.key for one in writes]
        for key in (*expected, *keys):
            assert re.fullmatch(r"[!-~]{1,512}", key), key
        assert keys == sorted(keys)
        assert set(keys) <= set(expected)
        for one in writes:
            if one.document:
                assert re.fullmatch(r"[!-~]{1,32}", one.document.version)
                assert not re.search(r"[\x00-\x1f]", one.document.text)
        return super().commit(expected, writes)


@pytest.mark.parametrize("name", ["shop", "Läden, 日本 / \\ \n", "n" * 400, "n" * 600, "ü" * 300])
async def test_keys_are_short_and_visible_whatever_the_names_are(name: str) -> None:
    store, heard = Seen(), Heard()
    app = Server(name, store=store, on_error=heard)
    app.add_tool(lambda: "one", name="who", description="")
    async with serving(app) as url:
        session = await opened(url)
        assert (await asked(url, session))[0] == 200
        assert (await asked(url, "s" * 4000))[0] == 404
    assert not heard


# -- times


class Forever(Plain):
    """Removes nothing, as a store does whose expiry comes hours late."""

    def commit(self, expected: Expected, writes: list[DocumentWrite]) -> bool:
        return super().commit(expected, [one for one in writes if one.document])


async def test_a_session_ends_in_time_where_expiry_is_late() -> None:
    store = Forever()
    servers = [testing.serving(named(who, store), session_idle_timeout=1.0) for who in ("one", "another", "third")]
    async with servers[0] as one, servers[1] as another, servers[2] as third:
        session = await opened(one)
        assert (await asked(another, session))[0] == 200
        await asyncio.sleep(3)
        for url in (one, another, third):
            assert (await asked(url, session))[0] == 404
    assert any(":session:" in key for key in store.kept)


class Clock(Plain):
    """A store whose clock is hours from that of the machine."""

    def now(self) -> float:
        return time.time() + 3 * 3600


async def test_the_clock_of_the_store_counts() -> None:
    store = Clock()
    async with two(store) as (one, another):
        session = await opened(one)
        for url in (another, one, another):
            await works(url, session)
    with contextlib.suppress(MisuseError):
        await testing.check_document_store(store)


async def test_the_database_tells_the_time(store: PostgresStore) -> None:
    assert abs(store.now() - time.time()) < 60


# -- answers that are lost


class Losing:
    """Does what it is told, and the answer to a commit of a change is lost once."""

    def __init__(self, store: Plain) -> None:
        self.get, self.store, self.loses = store.get, store, False

    def commit(self, expected: Expected, writes: list[DocumentWrite]) -> bool:
        done = self.store.commit(expected, writes)
        if done and self.loses and any(":changes:" in one.key for one in writes):
            self.loses = False
            raise ConnectionResetError
        return done


async def test_a_change_whose_commit_had_no_answer_comes_once() -> None:
    store, heard, changed = Plain(), Heard(), list[str]()
    losing = Losing(store)
    app, other = named("one", losing, on_error=heard), named("another", store)
    for server in (app, other):
        for uri in ("a://1", "a://2"):
            server.add_resource(uri, "text")

    async def arrives(uri: str) -> None:
        app.resource_updated(uri)
        end = time.monotonic() + PATIENCE
        while uri not in changed:
            assert time.monotonic() < end, f"{uri} was lost with the answer"
            await asyncio.sleep(0.05)

    async with (
        serving(app),
        serving(other) as another,
        connect(another, revision="2025-11-25", on_resource_updated=changed.append) as client,
    ):
        for uri in ("a://1", "a://2"):
            await client.subscribe(uri)
        losing.loses = True
        await arrives("a://1")
        await arrives("a://2")
    assert [type(error) for error in heard] == [ConnectionResetError]
    assert changed == ["a://1", "a://2"]
