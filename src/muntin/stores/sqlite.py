"""Records as rows of one table in a SQLite file."""

from __future__ import annotations

import re
import time
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from muntin.errors import ConfigurationError, StateConflictError, StateCorruptError, StateError
from muntin.stores.base import RecordStore
from muntin.stores.folder import LOCK_SECONDS, checked_path
from muntin.stores.record import ANY, Entry, Expected, Record, digest_of

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Generator, Mapping
    from os import PathLike

__all__ = ("SqliteRecords",)

_COLUMNS = {"version": "TEXT", "sha256": "TEXT", "size": "INTEGER", "stored_at": "REAL"}
"""Columns besides `key` and `body`; a table that was made without them gets them."""


class SqliteRecords(RecordStore):
    """Keep records in a table of a SQLite file, which is made when missing.

    Each call opens its own connection, so any thread and process may call. Contents are checked
    against their hash when they are read.

    Args:
        path: The file.
        table: The table: letters, digits and underscores.
        lock_timeout: Seconds to wait for another writer.
        max_bytes: Bytes of all contents, see `RecordStore`.
        max_age: Seconds after its last write at which a record is gone.
        clock: Returns seconds since the epoch.

    Raises:
        ConfigurationError: The path holds a NUL or a lone surrogate, the table is not a name, or a
            limit is not above 0.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        table: str = "muntin_records",
        lock_timeout: float = LOCK_SECONDS,
        max_bytes: int | None = None,
        max_age: float | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(max_bytes=max_bytes, max_age=max_age, clock=clock)
        if not re.fullmatch(r"[A-Za-z_]\w{0,62}", table, re.ASCII):
            raise ConfigurationError(
                f"table must be a name of letters, digits and underscores, got {table!r}"
            )
        self.path = checked_path(path)
        self.table = table
        self.name = str(self.path)
        self._lock_timeout = lock_timeout

    def read(self, key: str) -> Record | None:
        """Return the record of a key; see `RecordStore.read`."""
        if not self.path.exists():
            return None
        with self._open() as connection:
            if not self._is_ready(connection):
                return None
            found = connection.execute(
                f"SELECT body, version, sha256, stored_at FROM {self.table} WHERE key = ?", (key,)
            ).fetchone()
        return None if found is None else _record(*found)

    def write(self, key: str, body: bytes, expected: Expected, also: Mapping[str, bytes]) -> str:
        """Store a record; see `RecordStore.write`."""
        version = uuid.uuid4().hex
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._open() as connection:
            connection.execute("BEGIN IMMEDIATE")
            self._make(connection)
            if expected is not ANY:
                found = connection.execute(
                    f"SELECT version FROM {self.table} WHERE key = ?", (key,)
                ).fetchone()
                if expected != (_version(found[0]) if found else None):
                    raise StateConflictError(f"another writer changed {key!r} in {self.name}")
            for name, content in {key: body, **also}.items():
                self._store(connection, name, content, version)
        return version

    def remove(self, key: str) -> bool:
        """Remove a record; see `RecordStore.remove`."""
        if not self.path.exists():
            return False
        with self._open() as connection:
            if not self._is_ready(connection):
                return False
            removed = connection.execute(f"DELETE FROM {self.table} WHERE key = ?", (key,))
            return removed.rowcount > 0

    def listing(self) -> list[Entry]:
        """List the records; see `RecordStore.listing`."""
        if not self.path.exists():
            return []
        with self._open() as connection:
            if not self._is_ready(connection):
                return []
            found = connection.execute(
                f"SELECT key, coalesce(size, length(body)), coalesce(stored_at, 0) "
                f"FROM {self.table} ORDER BY stored_at, rowid"
            ).fetchall()
        return [Entry(key=key, size=size, stored_at=stored_at) for key, size, stored_at in found]

    def _store(self, connection: sqlite3.Connection, key: str, body: bytes, version: str) -> None:
        row = (version, digest_of(body), len(body), self._clock())
        connection.execute(
            f"INSERT INTO {self.table} (key, body, version, sha256, size, stored_at) "
            f"VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET body = excluded.body, "
            f"version = excluded.version, sha256 = excluded.sha256, size = excluded.size, "
            f"stored_at = excluded.stored_at",
            (key, body, *row),
        )

    @contextmanager
    def _open(self) -> Generator[sqlite3.Connection]:
        """Open the file for one transaction, which is undone when anything is raised."""
        import sqlite3
        from contextlib import closing

        try:
            connection = sqlite3.connect(
                self.path, timeout=self._lock_timeout, isolation_level=None
            )
            with closing(connection), connection:
                yield connection
        except sqlite3.OperationalError as error:
            raise StateError(f"cannot use {self.name}: {error}") from error
        except sqlite3.DatabaseError as error:
            raise StateCorruptError(f"cannot use {self.name}: {error}") from error

    def _is_ready(self, connection: sqlite3.Connection) -> bool:
        """Return whether the table is there, after adding columns it was made without."""
        columns = self._columns(connection)
        if not columns:
            return False
        if not {"key", *_COLUMNS} <= columns:
            connection.execute("BEGIN IMMEDIATE")
            self._make(connection)
            connection.execute("COMMIT")
        return True

    def _make(self, connection: sqlite3.Connection) -> None:
        connection.execute(
            f"CREATE TABLE IF NOT EXISTS {self.table} (key TEXT PRIMARY KEY, body BLOB, "
            f"version TEXT, sha256 TEXT, size INTEGER, stored_at REAL)"
        )
        columns = self._columns(connection)
        if "id" in columns and "key" not in columns:
            connection.execute(f"ALTER TABLE {self.table} RENAME COLUMN id TO key")
        for column, kind in _COLUMNS.items():
            if column not in columns:
                connection.execute(f"ALTER TABLE {self.table} ADD COLUMN {column} {kind}")

    def _columns(self, connection: sqlite3.Connection) -> set[str]:
        rows: list[Any] = connection.execute(f"PRAGMA table_info({self.table})").fetchall()
        return {row[1] for row in rows}


def _version(stored: object) -> str:
    """Return the version of a row; a row from before there were versions has an empty one."""
    return "" if stored is None else str(stored)


def _record(body: object, version: object, sha256: object, stored_at: object) -> Record:
    problem = ""
    content = body if isinstance(body, bytes) else b""
    if not isinstance(body, bytes):
        problem = f"its content is {type(body).__name__}, not bytes"
    elif sha256 is not None and digest_of(body) != sha256:
        problem = "its content does not have the hash that was stored with it"
    at = stored_at if isinstance(stored_at, (int, float)) else 0.0
    return Record(
        body=content, version=_version(version), stored_at=cast("float", at), problem=problem
    )
