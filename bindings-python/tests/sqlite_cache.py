"""A cache's store in a file, which processes share, and a program that reads with it: `sqlite_cache.py URL FILE`."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import sys
from collections.abc import Iterable
from typing import Any

from tricorn import connect


class SqliteCache:
    """Plain methods, which run in worker threads."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._run("create table if not exists kept (key text primary key, text text)")

    def get(self, keys: list[str]) -> list[str | None]:
        found = dict(self._run(f"select key, text from kept where key in ({','.join('?' * len(keys))})", *keys))
        return [found.get(key) for key in keys]

    def set(self, key: str, text: str, ttl: int) -> None:
        assert ttl >= 1
        self._run("insert or replace into kept values (?, ?)", key, text)

    def delete(self, key: str) -> None:
        self._run("delete from kept where key = ?", key)

    def all_keys(self) -> list[str]:
        return [key for (key,) in self._run("select key from kept")]

    def _run(self, statement: str, *values: str) -> Iterable[Any]:
        with contextlib.closing(sqlite3.connect(self.path, timeout=30)) as database, database:
            return database.execute(statement, values).fetchall()


async def main(url: str, path: str) -> None:
    async with connect(url, revision="2026-07-28", cache={"store": SqliteCache(path)}) as client:
        text = (await client.read_resource("test://count")).text
        print(text, client.metrics()["cache"]["hits"])


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
