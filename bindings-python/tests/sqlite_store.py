"""A store of documents in a file of SQLite, which makes one server of the processes of a machine."""

from __future__ import annotations

import sqlite3
import threading
import time

from tricorn import Document, DocumentWrite

TABLE = """
    CREATE TABLE IF NOT EXISTS documents (key TEXT PRIMARY KEY, version TEXT, text TEXT, expires REAL);
    CREATE INDEX IF NOT EXISTS by_expiry ON documents (expires);
"""


class SqliteStore:
    def __init__(self, path: str) -> None:
        self._lock = threading.Lock()
        self._database = sqlite3.connect(path, timeout=2, isolation_level=None, check_same_thread=False)
        self._database.executescript(TABLE)

    def get(self, keys: list[str]) -> list[Document | None]:
        query = f"SELECT key, version, text FROM documents WHERE key IN ({', '.join('?' * len(keys))})"
        with self._lock:
            found = {key: Document(version, text) for key, version, text in self._database.execute(query, keys)}
        return [found.get(key) for key in keys]

    def commit(self, expected: dict[str, str | None], writes: list[DocumentWrite]) -> bool:
        with self._lock, self._database as database:
            database.execute("BEGIN IMMEDIATE")
            for key, version in expected.items():
                found = database.execute("SELECT version FROM documents WHERE key = ?", [key]).fetchone()
                if (found[0] if found else None) != version:
                    return False
            for key, document, ttl in writes:
                database.execute("DELETE FROM documents WHERE key = ?", [key])
                if document is not None:
                    database.execute("INSERT INTO documents VALUES (?, ?, ?, ?)", [key, *document, time.time() + ttl])
            database.execute("DELETE FROM documents WHERE expires < ?", [time.time()])
            return True

    def close(self) -> None:
        self._database.close()
