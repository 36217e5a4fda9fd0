"""Lifetime of cached answers (2026-07-28): hints of a server, and their use by a client."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tricorn import AsyncClient, Client, Extension, MisuseError, Server, ServerCache, connect, middleware, testing

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
        (lambda: Server("s").add_resource("a://b", "", cache={"tll": 1}), 'unknown option "tll", did you mean "ttl"?'),  # type: ignore[typeddict-unknown-key]
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


UNTYPED_SERVER: Any = Server


def added(**options: Any) -> Any:
    return lambda: Server("s").add_resource("test://x", "text", **options)


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: Server("s", cache={"ttl": math.inf}), "cache.ttl: expected a finite number of seconds, got inf"),
        (lambda: Server("s", cache={"tools": {"ttl": math.nan}}), "cache.tools.ttl: expected a finite"),
        (lambda: Server("s", tasks={"task_ttl": math.inf}), "tasks.task_ttl: expected a finite number of seconds"),
        (lambda: Server("s", tasks={"task_poll_interval": -math.inf}), "tasks.task_poll_interval"),
        (lambda: Server("s", ping_interval=math.nan), "ping_interval: expected a finite number of seconds, got nan"),
        (lambda: UNTYPED_SERVER("s", max_nesting=math.inf), "max_nesting: expected a finite number, got inf"),
        (added(cache={"ttl": math.inf}), "cache.ttl"),
        (added(annotations={"priority": math.nan}), "annotations.priority"),
        (lambda: Server("s").add_file("x", "one://a", cache={"ttl": math.inf}), "cache.ttl"),
        (lambda: UNTYPED_SERVER("s").add_resource("t://{x}", lambda x: "", cache={"ttl": math.nan}), "cache.ttl"),
        (lambda: Server("s").middleware(middleware.rate_limit(math.inf)), "per_second: expected a finite number"),
        (lambda: Server("s").asgi(keep_alive_interval=math.inf), "keep_alive_interval"),
        (lambda: connect("http://127.0.0.1:1/mcp", request_timeout=math.nan), "request_timeout: expected a finite"),
        (lambda: Server("s", extensions=[Extension("com.example/x", {"n": math.nan})]), "'com.example/x': settings.n"),
    ],
)
def test_what_is_infinite_is_not_taken_for_nothing(make: Any, named: str) -> None:
    with pytest.raises(MisuseError, match=named):
        make()


async def test_requests_and_default_values_that_are_infinite() -> None:
    app = Server("s")

    @app.tool
    def least(bound: float = math.inf) -> bool:
        return bound == math.inf

    async with testing.connect(app) as client:
        assert (await client.call_tool("least")).text == "true"
        wrong: list[Any] = [{"timeout": math.nan}, {"max_timeout": -math.inf}, {"task": math.inf}]
        for options in wrong:
            with pytest.raises(MisuseError, match=f"{next(iter(options))}: expected a finite number"):
                await client.call_tool("least", **options)
        with pytest.raises(MisuseError, match="ttl: expected a finite number of seconds"):
            await client.call_tool_task("least", ttl=math.nan)
