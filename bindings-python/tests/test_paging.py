"""Lists that change while they are read page by page."""

from __future__ import annotations

from typing import Any

import pytest

from tricorn import Client, RpcError, Server, testing

ERAS = pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])


def names(tools: Any) -> list[str]:
    return [tool.name for tool in tools]


def changing() -> tuple[Server, list[int]]:
    """A server whose list is another one after its first page, and the version that it starts with."""
    app, version = Server("x"), [1]

    def pages(cursor: str | None) -> Any:
        now = version[0]
        if cursor is None:
            version[0] = 2
            return [{"name": name, "inputSchema": {"type": "object"}} for name in ("same", f"a{now}")], f"c{now}"
        if cursor != f"c{now}":
            raise RpcError(-32602, "no such cursor")
        return [{"name": f"b{now}", "inputSchema": {"type": "object"}}], None

    app.set_source("tool", list=pages)
    return app, version


@ERAS
async def test_a_list_that_has_changed_meanwhile_is_read_anew(revision: str) -> None:
    app, version = changing()
    async with testing.connect(app, revision=revision) as client:
        assert names(await client.list_tools()) == ["same", "a2", "b2"]
        version[0] = 1
        assert names([tool async for tool in client.tools()]) == ["same", "a1", "a2", "b2"]


@ERAS
def test_the_synchronous_client_reads_it_anew(revision: str) -> None:
    app, version = changing()
    with Client(app, revision=revision) as client:
        assert names(client.list_tools()) == ["same", "a2", "b2"]
        version[0] = 1
        assert names(client.tools()) == ["same", "a1", "a2", "b2"]
