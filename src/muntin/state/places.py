"""Where a state can lie: in a folder of files, or in a row of a SQLite file.

A place is opened for reading or for writing; while it is open for writing nobody else writes, and
what is written is there whole or not at all. Places know bytes and what readers want to see; what
a state means, and who may overwrite it, is `state_store`'s business.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from muntin.errors import StateCorruptError, StateError, StateNotFound
from muntin.state.snapshot import Snapshot

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Generator
    from contextlib import AbstractContextManager
    from pathlib import Path

__all__ = ("Folder", "Place", "Row", "Slot")


class Slot(Protocol):
    """Hold a place while it is open."""

    def read(self) -> bytes | None:
        """Return what is saved, or None."""
        ...

    def read_backup(self) -> bytes | None:
        """Return what was saved before that, or None."""
        ...

    def write(self, snapshot: Snapshot, *, keep: bool) -> None:
        """Replace what is saved; `keep` makes it the backup."""
        ...

    def restore(self) -> None:
        """Set what is saved aside and put the backup in its place."""
        ...


class Place(Protocol):
    """Open one state's place. Everything that goes wrong there is a `StateError`."""

    name: str
    """What errors call it."""

    def reading(self) -> AbstractContextManager[Slot]:
        """Open it to look."""
        ...

    def writing(self) -> AbstractContextManager[Slot]:
        """Open it alone among all threads and processes."""
        ...


def _to_bytes(snapshot: Snapshot) -> bytes:
    from muntin.state.codec import to_saved

    return json.dumps(to_saved(snapshot), ensure_ascii=False, indent=2).encode("utf-8") + b"\n"


class Folder:
    """Keep a state in a folder that also holds it in words, for readers."""

    def __init__(self, path: Path, lock_timeout: float) -> None:
        self._path = path
        self._lock_timeout = lock_timeout
        self.name = str(path / "state.json")

    @contextmanager
    def reading(self) -> Generator[Slot]:
        """Look at the files; no lock, since each is always whole."""
        try:
            yield _Files(self._path)
        except OSError as error:
            raise StateError(f"cannot read {self.name}: {error}") from error

    @contextmanager
    def writing(self) -> Generator[Slot]:
        """Hold the folder's lock."""
        from muntin.runtime import discard_leftovers, exclusive

        try:
            self._path.mkdir(parents=True, exist_ok=True)
            with exclusive(self._path / ".lock", timeout=self._lock_timeout):
                slot = _Files(self._path)
                for path in slot.written:
                    discard_leftovers(path)
                yield slot
        except OSError as error:
            raise StateError(
                f"cannot write {self.name}: {error}. What was saved before is as it was"
            ) from error


class _Files:
    def __init__(self, folder: Path) -> None:
        self._state = folder / "state.json"
        self._backup = folder / "state.json.bak"
        self._plan = folder / "PLAN.md"
        self._findings = folder / "findings.md"
        self.written = (self._state, self._backup, self._plan, self._findings)

    def read(self) -> bytes | None:
        return _bytes_of(self._state)

    def read_backup(self) -> bytes | None:
        return _bytes_of(self._backup)

    def write(self, snapshot: Snapshot, *, keep: bool) -> None:
        from muntin.runtime import keep_copy, replacing
        from muntin.state.render import state_text

        plan = replace(snapshot, findings=(), failures=())
        found = Snapshot(findings=snapshot.findings, failures=snapshot.failures)
        contents = {
            self._state: _to_bytes(snapshot),
            self._plan: f"{state_text(plan)}\n".encode(),
            self._findings: f"{state_text(found)}\n".encode(),
        }
        with replacing(contents):
            if keep:
                keep_copy(self._state, self._backup)

    def restore(self) -> None:
        from muntin.runtime import keep_copy, replace_file

        keep_copy(self._state, self._state.with_name("state.json.corrupt"))
        replace_file(self._state, self._backup.read_bytes(), like=self._backup)


def _bytes_of(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


class Row:
    """Keep a state under a key in a SQLite file."""

    def __init__(self, path: Path, key: str, lock_timeout: float) -> None:
        self._path = path
        self._key = key
        self._lock_timeout = lock_timeout
        self.name = f"{path} under {key!r}"

    @contextmanager
    def reading(self) -> Generator[Slot]:
        """Look at the row; neither file nor table is made for it."""
        if not self._path.exists():
            raise StateNotFound(f"no state was saved in {self.name}: save() one first")
        with self._connection() as connection:
            yield _Columns(connection, self._key)

    @contextmanager
    def writing(self) -> Generator[Slot]:
        """Hold SQLite's write lock; the table is made when missing."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StateError(f"cannot write {self.name}: {error}") from error
        with self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(
                "CREATE TABLE IF NOT EXISTS agent_states "
                "(key TEXT PRIMARY KEY, body BLOB, previous BLOB, corrupt BLOB)"
            )
            yield _Columns(connection, self._key)

    @contextmanager
    def _connection(self) -> Generator[sqlite3.Connection]:
        """Open the file for one transaction, which is undone when anything is raised."""
        import sqlite3
        from contextlib import closing

        try:
            connection = sqlite3.connect(
                self._path, timeout=self._lock_timeout, isolation_level=None
            )
            with closing(connection), connection:
                yield connection
        except sqlite3.OperationalError as error:
            raise StateError(f"cannot use {self.name}: {error}") from error
        except sqlite3.DatabaseError as error:
            raise StateCorruptError(f"cannot use {self.name}: {error}") from error


class _Columns:
    def __init__(self, connection: sqlite3.Connection, key: str) -> None:
        self._connection = connection
        self._key = key

    def read(self) -> bytes | None:
        return self._column("body")

    def read_backup(self) -> bytes | None:
        return self._column("previous")

    def write(self, snapshot: Snapshot, *, keep: bool) -> None:
        previous = self.read() if keep else self.read_backup()
        self._connection.execute(
            "INSERT INTO agent_states (key, body, previous) VALUES (?, ?, ?) "
            "ON CONFLICT (key) DO UPDATE SET body = excluded.body, previous = excluded.previous",
            (self._key, _to_bytes(snapshot), previous),
        )

    def restore(self) -> None:
        self._connection.execute(
            "UPDATE agent_states SET corrupt = body, body = previous WHERE key = ?", (self._key,)
        )

    def _column(self, name: str) -> bytes | None:
        made = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'agent_states'"
        if self._connection.execute(made).fetchone() is None:
            return None
        found: Any = self._connection.execute(
            f"SELECT {name} FROM agent_states WHERE key = ?", (self._key,)
        ).fetchone()
        return found[0] if found else None
