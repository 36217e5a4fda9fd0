"""A store of documents in a table of PostgreSQL, which makes one server of the processes of many machines."""

from __future__ import annotations

import time

from psycopg import IsolationLevel, errors
from psycopg_pool import ConnectionPool

from tricorn import Document, DocumentWrite

TABLE = """
    SELECT pg_advisory_xact_lock(7422671);  -- else processes that make the table at once hinder each other
    CREATE TABLE IF NOT EXISTS documents (key text PRIMARY KEY, version text, text text, expires timestamptz);
    CREATE INDEX IF NOT EXISTS documents_by_expiry ON documents (expires);
"""
LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(key, 0)) FROM unnest(%s::text[]) AS key"
READ = "SELECT key, version, text FROM documents WHERE key = ANY(%s)"
WRITE = """
    INSERT INTO documents SELECT key, version, text, now() + ttl * interval '1 second'
    FROM unnest(%s::text[], %s::text[], %s::text[], %s::float[]) AS one (key, version, text, ttl)
    ON CONFLICT (key) DO UPDATE SET (version, text, expires) = (EXCLUDED.version, EXCLUDED.text, EXCLUDED.expires)
"""
OLD = "SELECT key FROM documents WHERE expires < now() LIMIT 1000 FOR UPDATE SKIP LOCKED"
# A server that is gone is noticed within seconds. PgBouncer may be between, which knows no prepared statements.
OPTIONS = {"autocommit": True, "prepare_threshold": None, "connect_timeout": 2, "tcp_user_timeout": 2000}


class PostgresStore:
    def __init__(self, address: str) -> None:
        check = ConnectionPool.check_connection  # the server may have closed those that were idle
        self._pool = ConnectionPool(address, kwargs=OPTIONS, min_size=1, max_size=8, timeout=2, check=check, open=True)
        self._swept = time.monotonic()
        with self._pool.connection() as database, database.transaction():
            database.execute(TABLE)

    def get(self, keys: list[str]) -> list[Document | None]:
        with self._pool.connection() as database:
            found = {key: Document(version, text) for key, version, text in database.execute(READ, [keys])}
        return [found.get(key) for key in keys]

    def commit(self, expected: dict[str, str | None], writes: list[DocumentWrite]) -> bool:
        gone = [key for key, document, _ in writes if document is None]
        kept = [(key, *document, ttl) for key, document, ttl in sorted(writes) if document is not None]
        try:
            with self._pool.connection() as database:
                if time.monotonic() > self._swept + 10:
                    self._swept = time.monotonic()
                    database.execute(f"DELETE FROM documents WHERE key IN ({OLD})")
                # Each statement sees what was there after the locks were taken.
                database.isolation_level = IsolationLevel.READ_COMMITTED
                with database.transaction():
                    database.execute(LOCK, [sorted({*expected, *(write.key for write in writes)})])
                    found = {key: version for key, version, _ in database.execute(READ, [list(expected)])}
                    if any(found.get(key) != version for key, version in expected.items()):
                        return False
                    database.execute("DELETE FROM documents WHERE key = ANY(%s)", [gone])
                    database.execute(WRITE, [[one[at] for one in kept] for at in range(4)])
        except (errors.SerializationFailure, errors.DeadlockDetected):
            return False  # somebody else was faster
        return True

    def now(self) -> float:
        with self._pool.connection() as database:
            return float(database.execute("SELECT extract(epoch FROM clock_timestamp())").fetchall()[0][0])

    def close(self) -> None:
        self._pool.close()
