"""A server's store of the program's own, in place of a Redis."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tricorn import Document, DocumentStore, DocumentWrite, MisuseError, PeerMisbehavedError, Server, connect, testing

from .authorization_server import serving
from .conftest import INITIALIZE, MODERN, PATIENCE, Program
from .sqlite_store import SqliteStore

LEGACY = "2025-06-18"
GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "many-machines.md"

PROGRAM = """
    import sys

    sys.path.insert(0, sys.argv[1])
    from sqlite_store import SqliteStore
    from tricorn import Server

    app = Server("shop", store=SqliteStore(sys.argv[2]))
    app.add_tool(lambda: sys.argv[3], name="who", description="")
    app.run(0)
"""


class Plain:
    """Documents in a dictionary; plain methods."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.kept: dict[str, Document | None] = {}

    def get(self, keys: list[str]) -> list[Document | None]:
        with self.lock:
            return [self.kept.get(key) for key in keys]

    def commit(self, expected: dict[str, str | None], writes: list[DocumentWrite]) -> bool:
        assert all(isinstance(write, DocumentWrite) and write.ttl >= 1 for write in writes)
        with self.lock:
            for key, version in expected.items():
                found = self.kept.get(key)
                if (found.version if found else None) != version:
                    return False
            self.kept.update({write.key: write.document for write in writes})
            return True


class Asynchronous:
    """Documents in a dictionary; asynchronous methods, also those that a store need not have."""

    def __init__(self) -> None:
        self.plain = Plain()
        self.changed = asyncio.Event()
        self.waited = self.timed = 0

    async def get(self, keys: list[str]) -> tuple[tuple[str, str] | None, ...]:
        found = self.plain.get(keys)
        return tuple(None if one is None else (one.version, one.text) for one in found)

    async def commit(self, expected: dict[str, str | None], writes: list[DocumentWrite]) -> bool:
        done = self.plain.commit(expected, writes)
        self.changed.set()
        self.changed = asyncio.Event()
        return done

    async def wait(self, seen: dict[str, str | None], timeout: float) -> None:
        assert isinstance(timeout, float)
        self.waited += 1
        changed, found = self.changed, self.plain.get(list(seen))
        if [one.version if one else None for one in found] == list(seen.values()):
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(changed.wait(), timeout)

    async def now(self) -> float:
        self.timed += 1
        return time.time()


class Wrong(Plain):
    """Does something else when it is asked."""

    does: Any = "works"

    def get(self, keys: list[str]) -> Any:
        match self.does:
            case "raises":
                raise ConnectionError("no route to the password")
            case "gives a mapping":
                return {}
            case "gives a text":
                return "text"
            case "gives nothing":
                return None
            case "gives texts":
                return ["text" for _ in keys]
            case "gives numbers":
                return [(1, "{}") for _ in keys]
            case "gives too few":
                return []
        return super().get(keys)

    def commit(self, expected: dict[str, str | None], writes: list[DocumentWrite]) -> Any:
        match self.does:
            case "ignores versions":
                return super().commit({}, writes)
            case "returns nothing":
                super().commit(expected, writes)
                return None
            case "counts":
                return int(super().commit(expected, writes))
        return super().commit(expected, writes)


def named(who: str, store: Any, **options: Any) -> Server:
    app = Server("shop", store=store, **options)
    app.add_tool(lambda: who, name="who", description="")
    return app


async def post(url: str, message: dict[str, Any], session: str = "") -> tuple[int, str, str]:
    """The status, the session and the text of the answer to a message of a client of an older revision."""
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    if session:
        headers |= {"Mcp-Session-Id": session, "Mcp-Protocol-Version": LEGACY}
    request = urllib.request.Request(url, json.dumps(message).encode(), headers)

    def answered() -> tuple[int, str, str]:
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return answer.status, answer.headers.get("Mcp-Session-Id", ""), answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, "", error.read().decode()

    return await asyncio.to_thread(answered)


async def opened(url: str) -> str:
    """A session of a client of an older revision."""
    params = {**INITIALIZE["params"], "protocolVersion": LEGACY}
    status, session, text = await post(url, {**INITIALIZE, "params": params})
    assert status == 200, text
    assert session
    status, _, text = await post(url, {"jsonrpc": "2.0", "method": "notifications/initialized"}, session)
    assert status == 202, text
    return session


async def asked(url: str, session: str) -> tuple[int, str]:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "who", "arguments": {}}}
    status, _, text = await post(url, call, session)
    return status, text


def test_it_is_a_protocol(tmp_path: Path) -> None:
    with contextlib.closing(SqliteStore(str(tmp_path / "kept"))) as file:
        stores: list[DocumentStore] = [Plain(), Asynchronous(), file]
        assert all(isinstance(store, DocumentStore) for store in stores)
    assert not isinstance({}, DocumentStore)


def test_the_guide_shows_the_store() -> None:
    shown = (Path(__file__).parent / "sqlite_store.py").read_text(encoding="utf-8")
    assert f"```python\n{shown}```\n" in GUIDE.read_text(encoding="utf-8")


async def test_a_store_that_keeps_the_rules_passes(tmp_path: Path) -> None:
    await testing.check_document_store(Plain())
    store = Asynchronous()
    await testing.check_document_store(store)
    assert store.waited
    assert store.timed
    with contextlib.closing(SqliteStore(str(tmp_path / "kept"))) as file:
        await testing.check_document_store(file)


@pytest.mark.parametrize(
    ("does", "said"),
    [
        ("ignores versions", "commit: a document was there, and expected not to be"),
        ("gives a mapping", "get: it failed: store: get: expected a list in the order of the keys, got a dict"),
        ("gives a text", "store: get: expected a list in the order of the keys, got a str"),
        ("gives nothing", "store: get: expected a list in the order of the keys, got a NoneType"),
        ("gives texts", "store: get: expected a Document or None, got a string"),
        ("gives numbers", "store: get: version: expected a string, got a number"),
        ("gives too few", "get: it returned another number of documents than there were keys"),
        ("returns nothing", "store: commit: expected true or false, got null"),
        ("counts", "store: commit: expected true or false, got a number"),
    ],
)
async def test_a_store_that_breaks_a_rule_is_refused(does: str, said: str) -> None:
    store = Wrong()
    store.does = does
    with pytest.raises(MisuseError) as error:
        await testing.check_document_store(store)
    assert said in str(error.value)


async def test_the_cause_is_what_the_store_raised() -> None:
    store = Wrong()
    store.does = "raises"
    with pytest.raises(MisuseError, match="get: it failed: ConnectionError") as error:
        await testing.check_document_store(store)
    assert isinstance(error.value.__cause__, ConnectionError)
    assert "password" not in str(error.value)


async def test_a_wrong_answer_is_a_failure_and_no_refusal() -> None:
    store = Wrong()
    store.does = "returns nothing"
    with pytest.raises(MisuseError, match="store: commit: expected true or false, got null") as error:
        await testing.check_document_store(store)
    assert isinstance(error.value.__cause__, PeerMisbehavedError)


class GetAlone:
    get = Plain.get


@pytest.mark.parametrize(
    ("store", "said"),
    [
        (1, 'server option "store": expected a URL, StoreOptions or a DocumentStore: it has no function "get"'),
        (
            GetAlone(),
            'server option "store": expected a URL, StoreOptions or a DocumentStore: it has no function "commit"',
        ),
        ({"documents": {}}, 'server option "store": documents: expected a DocumentStore: it has no function "get"'),
        (
            {"documents": GetAlone()},
            'server option "store": documents: expected a DocumentStore: it has no function "commit"',
        ),
        (
            {"documents": Plain(), "url": "redis://hush@127.0.0.1:1"},
            'server option "store": expected "url" or "documents", got both',
        ),
        ({"documents": Plain(), "secret": 17}, 'server option "store": secret: expected a string, got a number'),
        ({"documents": Plain(), "secret": "hush"}, 'server option "store": "secret": expected at least 32 bytes'),
        ({"documents": Plain(), "prefix": "a b"}, 'server option "store": "prefix": expected 1 to 64 letters'),
        ({"documents": Plain(), "pre": "hush"}, 'unknown option "pre"'),
        ({"prefix": "p"}, 'option "store": expected a URL such as'),
    ],
)
def test_a_wrong_store_is_named_and_its_secrets_are_not(store: Any, said: str) -> None:
    with pytest.raises(MisuseError) as error:
        Server("shop", store=store)
    assert said in str(error.value)
    assert "hush" not in str(error.value)


@pytest.mark.parametrize("make", [Plain, Asynchronous])
async def test_servers_with_one_store_have_one_session(make: Callable[[], Any]) -> None:
    store = make()
    async with serving(named("one", store)) as one, serving(named("another", store)) as another:
        session = await opened(one)
        for url, who in ((another, "another"), (one, "one")):
            status, text = await asked(url, session)
            assert status == 200, text
            assert f'"text":"{who}"' in text
        assert (await asked(another, "x" * len(session)))[0] == 404


async def test_options_begin_the_keys() -> None:
    store = Plain()
    options = {"documents": store, "prefix": "ours", "secret": "a secret for tests, longer than thirty-two bytes"}
    async with serving(named("one", options)) as one, serving(named("another", {"documents": store})) as another:
        session = await opened(one)
        assert (await asked(one, session))[0] == 200
        assert (await asked(another, session))[0] == 404
    assert {key.partition(":")[0] for key in store.kept} == {"ours", "tricorn"}


async def test_a_store_that_fails_stops_only_what_needs_it(caplog: pytest.LogCaptureFixture) -> None:
    store, failed = Wrong(), set[tuple[type, str]]()

    def hear(error: Exception, name: str) -> None:
        failed.add((type(error), name))

    async with serving(named("one", store)) as one, serving(named("another", store, on_error=hear)) as another:
        session = await opened(one)
        store.does = "raises"
        status, text = await asked(another, session)
        assert status == 503
        assert "password" not in text
        status, _, _ = await post(another, INITIALIZE)
        assert status == 503
        async with connect(another, revision=MODERN) as client:
            assert (await client.call_tool("who")).text == "another"
        store.does = "works"
        end = time.monotonic() + PATIENCE
        while (await asked(another, session))[0] != 200:
            assert time.monotonic() < end, "the store is not asked again"
            await asyncio.sleep(0.05)
    assert failed == {(ConnectionError, "store")}
    assert not [message for message in caplog.messages if "store failed" in message]


async def test_processes_share_sessions_in_a_file(program: Callable[..., Program], tmp_path: Path) -> None:
    urls: list[str] = []
    for who in ("one", "another"):
        started = program(PROGRAM, str(Path(__file__).parent), str(tmp_path / "documents.db"), who)
        urls.append((await asyncio.to_thread(started.expect_error, "ready ")).split()[1])
    session = await opened(urls[0])
    for url, who in zip(urls[::-1], ("another", "one"), strict=True):
        status, text = await asked(url, session)
        assert status == 200, text
        assert f'"text":"{who}"' in text
