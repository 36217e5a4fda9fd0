"""How long answers keep (2026-07-28): what a server says of it, and what a client makes of that."""

from __future__ import annotations

from typing import Any

import pytest

from tricorn import AsyncClient, Client, MisuseError, Server, ServerCache, testing

MODERN = "2026-07-28"
CACHE: ServerCache = {"ttl": 60, "scope": "public", "tools": {"ttl": 0.5}, "prompts": {"scope": "private"}}


async def hints(client: AsyncClient, method: str, params: dict[str, Any] | None = None) -> tuple[Any, Any]:
    result = await client.request(method, params or {}, cache="bypass")
    return result.get("ttlMs"), result.get("cacheScope")


async def test_what_a_server_says_and_to_whom() -> None:
    app = Server("s", cache=CACHE)
    app.add_resource("test://own", "text", cache={"ttl": 5, "scope": "public"})
    app.add_resource("test://other", "text")
    app.add_prompt(lambda: "text", name="p")
    async with testing.connect(app, revision=MODERN) as client:
        assert await hints(client, "tools/list") == (500, "public")
        assert await hints(client, "prompts/list") == (60_000, "private")
        assert await hints(client, "resources/read", {"uri": "test://own"}) == (5000, "public")
        assert await hints(client, "resources/read", {"uri": "test://other"}) == (60_000, "private")
    async with testing.connect(app, revision="2025-11-25") as client:
        assert await hints(client, "resources/read", {"uri": "test://own"}) == (None, None)


async def test_files_have_their_own(tmp_path: Any) -> None:
    (tmp_path / "a.txt").write_text("a")
    app = Server("s")
    app.add_file(tmp_path / "a.txt", "one://a", cache={"ttl": 1})
    app.add_directory(tmp_path, "all://", cache={"ttl": 2, "scope": "public"})
    async with testing.connect(app, revision=MODERN) as client:
        assert await hints(client, "resources/read", {"uri": "one://a"}) == (1000, "private")
        assert await hints(client, "resources/read", {"uri": "all://a.txt"}) == (2000, "public")


def counting() -> Server:
    app, reads = Server("s", cache={"ttl": 3600}), 0

    @app.resource("test://count")
    def count() -> str:
        nonlocal reads
        reads += 1
        return str(reads)

    return app


async def test_a_client_keeps_what_it_may() -> None:
    async with testing.connect(counting(), revision=MODERN) as client:
        assert [(await client.read_resource("test://count")).text for _ in range(3)] == ["1", "1", "1"]
        assert (await client.read_resource("test://count", cache="bypass")).text == "2"
        assert (await client.read_resource("test://count")).text == "1"
        assert (await client.read_resource("test://count", cache="refresh")).text == "3"
        assert (await client.read_resource("test://count")).text == "3"
        cache = client.metrics()["cache"]
        assert (cache["hits"], cache["misses"], cache["stale"], cache["entries"]) == (4, 1, 0, 1)
    async with testing.connect(counting(), revision=MODERN, cache=False) as client:
        assert [(await client.read_resource("test://count")).text for _ in range(2)] == ["1", "2"]


def test_a_synchronous_client_keeps_it_too() -> None:
    with Client(counting(), revision=MODERN, cache={"max_entries": 1}) as client:
        assert [client.read_resource("test://count").text for _ in range(2)] == ["1", "1"]
        assert client.read_resource("test://count", cache="refresh").text == "2"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Server("s", cache={"tools": {"ttl": -1}}), '"tools": "ttl": expected seconds of at least 0, got -1'),
        (lambda: Server("s", cache={"scope": "all"}), '"scope": expected "public" or "private", got "all"'),  # type: ignore[typeddict-item]
        (lambda: Server("s").add_resource("a://b", "", cache={"tll": 1}), '"tll": unknown'),  # type: ignore[typeddict-unknown-key]
        (lambda: Client(Server("s"), cache={"max_bytes": 0}), '"max_bytes": expected an integer of at least 1'),
    ],
)
def test_what_is_wrong_is_named(make: Any, said: str) -> None:
    with pytest.raises(MisuseError) as caught:
        make()
    assert said in str(caught.value)


async def test_an_unknown_mode_is_named() -> None:
    async with testing.connect(Server("s"), revision=MODERN) as client:
        with pytest.raises(MisuseError, match='"cache": expected "default", "refresh" or "bypass"'):
            await client.request("tools/list", cache="never")  # type: ignore[arg-type]
