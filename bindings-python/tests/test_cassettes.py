"""Cassettes: recorded once, played ever after, with equal results and without secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tricorn import MisuseError, RpcError, Server, connect, testing

CASSETTES = Path(__file__).resolve().parents[2] / "tests" / "cassettes"


def calculator() -> Server:
    app = Server("calculator")

    @app.tool
    def add(a: int, b: int) -> int:
        return a + b

    @app.tool
    def login(password: str) -> str:
        return f"welcome with {password}"

    return app


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_recorded_server_is_played(revision: str, tmp_path: Path) -> None:
    file = tmp_path / "calculator.jsonl"
    async with testing.cassette(file, calculator(), revision=revision) as client:
        assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"
        await client.call_tool("login", {"password": "hunter2-hunter2"})
    assert file.exists()
    assert "hunter2" not in file.read_text("utf-8")
    assert not file.with_name("calculator.jsonl.part").exists()

    async with testing.cassette(file, Server("nothing"), revision=revision) as client:
        assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"
        assert (await client.call_tool("login", {"password": "another-1"})).text.startswith("welcome with <secret-")

    with testing.cassette(file, Server("nothing"), mode="replay", strict=True, revision=revision) as sync:
        assert sync.call_tool("add", {"a": 1, "b": 2}).text == "3"
        with pytest.raises(RpcError, match="recorded 1 times"):
            sync.call_tool("add", {"a": 1, "b": 2})


async def test_a_test_that_fails_leaves_no_cassette(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        async with testing.cassette(tmp_path / "a.jsonl", calculator()):
            raise ZeroDivisionError
    assert not (tmp_path / "a.jsonl").exists()
    assert not (tmp_path / "a.jsonl.part").exists()


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_the_fixture_server_is_played(era: str) -> None:
    async with connect(f"replay:{CASSETTES / era}.jsonl") as client:
        assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"
        assert len(await client.list_tools()) > 5


async def test_a_missing_cassette_is_said() -> None:
    with pytest.raises(MisuseError, match=r"there is no such file; tricorn record TARGET -o nowhere\.jsonl"):
        async with connect("replay:nowhere.jsonl"):
            pass
