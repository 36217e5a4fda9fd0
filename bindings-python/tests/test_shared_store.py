"""A Redis or Valkey that processes share: answers and logins of clients, limits of servers."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tricorn import (
    AsyncClient,
    ClientAuth,
    MisuseError,
    RpcError,
    Server,
    ServerAuth,
    connect,
)
from tricorn.middleware import concurrency_limit, rate_limit

from .authorization_server import AuthorizationServer, Visitor, serving
from .conftest import PATIENCE

SECRET = "a secret for tests, longer than thirty-two bytes"
UNPACKED = Path(__file__).parents[2] / "target" / "valkey" / "valkey-server"


@pytest.fixture
def store(tmp_path: Path) -> Generator[str]:
    """The URL of a store of this test's own."""
    program = shutil.which("valkey-server") or shutil.which("redis-server") or str(UNPACKED)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.DEVNULL) as process:
        end = time.monotonic() + PATIENCE
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert time.monotonic() < end, "the store does not start"
                time.sleep(0.01)
        yield f"redis://127.0.0.1:{port}"
        process.kill()


def counting() -> Server:
    app, reads = Server("s", cache={"ttl": 3600}), 0

    @app.resource("test://count", cache={"scope": "public"})
    def count() -> str:
        nonlocal reads
        reads += 1
        return str(reads)

    return app


@pytest.mark.parametrize("options", [{}, {"secret": SECRET, "prefix": "p"}])
async def test_clients_share_answers(store: str, options: dict[str, str]) -> None:
    cache: Any = {"store": {"url": store, **options} if options else store}
    async with serving(counting()) as url:
        for hits in (0, 1):
            async with connect(url, revision="2026-07-28", cache=cache) as client:
                assert (await client.read_resource("test://count")).text == "1"
                assert client.metrics()["cache"]["hits"] == hits


async def test_clients_share_logins(store: str, authority: AuthorizationServer, visitor: Visitor) -> None:
    app = Server("notes", auth=ServerAuth(verifier=authority.tokens.get, authorization_servers=[authority.url]))
    app.add_tool(lambda: "ada", name="who", description="")
    place: Any = {"url": store, "secret": SECRET}
    async with serving(app) as url:
        for _ in range(2):
            async with connect(url, auth=ClientAuth(browser=visitor.browse, store=place)) as client:
                assert (await client.call_tool("who")).text == "ada"
        authority.tokens.clear()
        async with connect(url, auth=ClientAuth(browser=visitor.browse, store=place)) as client:
            assert (await client.call_tool("who")).text == "ada"
    assert (len(visitor.visited), authority.grants()) == (1, ["authorization_code", "refresh_token"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"auth": ClientAuth(store="redis://ann:hush@127.0.0.1:1")}, '"secret": missing'),
        (
            {"auth": ClientAuth(store={"url": "redis://127.0.0.1:1", "secret": "hush"})},
            '"secret": expected at least 32',
        ),
        ({"cache": {"store": "redis:hush"}}, '"url": '),
        ({"cache": {"store": {"url": "redis://127.0.0.1:1", "hush": 1}}}, '"cache": "store"'),
        ({"cache": {"store": 1}}, "cache: store: expected a CacheStore"),
    ],
)
async def test_a_wrong_store_is_named_and_its_secrets_are_not(options: dict[str, Any], said: str) -> None:
    with pytest.raises(MisuseError) as error:
        async with connect("http://127.0.0.1:1/mcp", **options):
            pass
    assert said in str(error.value)
    assert "hush" not in str(error.value)


async def test_servers_count_together(store: str) -> None:
    def limited(middleware: Any) -> Server:
        app = Server("limited", store=store)
        app.middleware(middleware)
        app.add_tool(lambda: "done", name="work", description="")
        return app

    async def calls(client: AsyncClient) -> str:
        try:
            return (await client.call_tool("work")).text
        except RpcError as error:
            return "refused" if error.data["retryAfter"] > 1000 else str(error)

    rate = [limited(rate_limit(1 / 3600, burst=3)) for _ in range(2)]
    async with serving(rate[0]) as one, serving(rate[1]) as other, connect(one) as first, connect(other) as second:
        # Revisions of today ask the server first, which passes no middleware.
        answers = [await calls(client) for client in (first, second, first, second, first)]
    assert answers == ["done", "done", "done", "refused", "refused"]
    running = [limited(concurrency_limit(1)) for _ in range(2)]
    async with (
        serving(running[0]) as one,
        serving(running[1]) as other,
        connect(one) as first,
        connect(other) as second,
    ):
        assert [await calls(client) for client in (first, second, first)] == ["done"] * 3
