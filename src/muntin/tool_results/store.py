"""Keep the originals of shortened tool results, and read them back in bounded pieces.

An original is stored under a hash of its content, so storing it again changes nothing and an id
never means two texts. What the model sees carries the id; `read_tool_result` hands out a range or
the places a pattern matches, and `read_tool` makes that a tool any framework can register.

It does not decide what is shortened, nor when an original may be forgotten, except that the store
in memory forgets what was not read for longest when it is full.
"""

from __future__ import annotations

import hashlib
import re
import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING

from muntin.errors import ConfigurationError, StateError, ToolResultNotFound

if TYPE_CHECKING:
    from os import PathLike

__all__ = ("RESULT_ID", "ToolResultStore")

RESULT_ID = r"tr_[0-9a-f]{20}"
"""Pattern of an id: 80 bits of the SHA-256 of the original."""

_WHOLE_ID = re.compile(RESULT_ID)
_BYTES_IN_MEMORY = 64 * 1024 * 1024


class ToolResultStore(ABC):
    """Keep texts under the hash of their content.

    Three are built in: `in_memory()`, `directory(path)` and `sqlite(path)`. All may be shared by
    threads, the last two by processes. Another one subclasses this and implements `write`, `read`
    and `has`; ids are made and checked here, so no foreign text reaches a path or a query.

    ```python
    from muntin import ToolResultStore

    store = ToolResultStore.in_memory()
    key = store.put("a long result")
    print(key, store.get(key))
    #> tr_c67cfa339a6ef7c2c73c a long result
    ```
    """

    @staticmethod
    def in_memory(*, max_bytes: int = _BYTES_IN_MEMORY) -> ToolResultStore:
        """Make a store that lives as long as the process and holds at most so many bytes.

        Raises:
            ConfigurationError: `max_bytes` is below 1.
        """
        return _MemoryResults(max_bytes)

    @staticmethod
    def directory(path: str | PathLike[str]) -> ToolResultStore:
        """Make a store that keeps one file per result; the folder is made when missing."""
        return _DirectoryResults(Path(path))

    @staticmethod
    def sqlite(path: str | PathLike[str]) -> ToolResultStore:
        """Make a store that keeps results in one table of a SQLite file."""
        return _SqliteResults(Path(path))

    def put(self, text: str) -> str | None:
        """Store a text and return its id; storing it again changes nothing.

        Returns:
            The id, or None where the text alone is larger than the whole store.

        Raises:
            ConfigurationError: It is no text.
            StateError: It could not be written.
        """
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance] - callers' own
            raise ConfigurationError(
                f"a tool result is stored as text, not as {type(text).__name__}"
            )
        data = text.encode("utf-8", "surrogatepass")
        result_id = f"tr_{hashlib.sha256(data).hexdigest()[:20]}"
        return result_id if self.write(result_id, data) else None

    def get(self, result_id: str) -> str:
        """Return the text that was stored, character for character.

        Raises:
            ToolResultNotFound: No text has this id here.
            StateError: It could not be read.
        """
        data = self.read(result_id) if _WHOLE_ID.fullmatch(result_id) else None
        if data is None:
            raise ToolResultNotFound(
                f"no tool result has the id {result_id!r}: {self.holds}; "
                f"ids are 'tr_' and 20 hex digits, copied from a shortened result"
            )
        return data.decode("utf-8", "surrogatepass")

    def __contains__(self, result_id: object) -> bool:
        return (
            isinstance(result_id, str)
            and _WHOLE_ID.fullmatch(result_id) is not None
            and self.has(result_id)
        )

    holds: str = "it was never stored here"
    """What an error says about why an id may be missing."""

    @abstractmethod
    def write(self, result_id: str, data: bytes) -> bool:
        """Store bytes under a checked id; say whether they are stored now."""

    @abstractmethod
    def read(self, result_id: str) -> bytes | None:
        """Return the bytes stored under a checked id, or None."""

    @abstractmethod
    def has(self, result_id: str) -> bool:
        """Say whether a checked id is stored."""


class _MemoryResults(ToolResultStore):
    """Hold results in memory, least recently used out first."""

    def __init__(self, max_bytes: int) -> None:
        if max_bytes < 1:
            raise ConfigurationError(f"a store needs max_bytes of at least 1, got {max_bytes}")
        self.max_bytes = max_bytes
        self.holds = (
            f"it was never stored here or has made room for newer ones "
            f"(this store holds {max_bytes:,} bytes)"
        )
        self._texts: OrderedDict[str, bytes] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def write(self, result_id: str, data: bytes) -> bool:
        if len(data) > self.max_bytes:
            return False
        with self._lock:
            if result_id in self._texts:
                self._texts.move_to_end(result_id)
                return True
            self._texts[result_id] = data
            self._bytes += len(data)
            while self._bytes > self.max_bytes:
                _, oldest = self._texts.popitem(last=False)
                self._bytes -= len(oldest)
        return True

    def read(self, result_id: str) -> bytes | None:
        with self._lock:
            if result_id in self._texts:
                self._texts.move_to_end(result_id)
            return self._texts.get(result_id)

    def has(self, result_id: str) -> bool:
        return result_id in self._texts


class _DirectoryResults(ToolResultStore):
    """Hold each result in a file that is there whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.holds = f"it was never stored in {folder}"

    def write(self, result_id: str, data: bytes) -> bool:
        from muntin.runtime import replace_file

        try:
            if not self.has(result_id):
                self.folder.mkdir(parents=True, exist_ok=True)
                replace_file(self._file(result_id), data)
        except OSError as error:
            raise StateError(f"cannot store a tool result in {self.folder}: {error}") from error
        return True

    def read(self, result_id: str) -> bytes | None:
        try:
            return self._file(result_id).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StateError(f"cannot read a tool result in {self.folder}: {error}") from error

    def has(self, result_id: str) -> bool:
        return self._file(result_id).is_file()

    def _file(self, result_id: str) -> Path:
        return self.folder / f"{result_id}.txt"


class _SqliteResults(ToolResultStore):
    """Hold results in a table; each call opens its own connection, so any thread may call."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.holds = f"it was never stored in {path}"

    def write(self, result_id: str, data: bytes) -> bool:
        self._query(
            "INSERT OR IGNORE INTO tool_results (id, body) VALUES (?, ?)", (result_id, data)
        )
        return True

    def read(self, result_id: str) -> bytes | None:
        row = self._query("SELECT body FROM tool_results WHERE id = ?", (result_id,))
        return None if row is None else row[0]

    def has(self, result_id: str) -> bool:
        return self._query("SELECT 1 FROM tool_results WHERE id = ?", (result_id,)) is not None

    def _query(self, query: str, values: tuple[str | bytes, ...]) -> tuple[bytes, ...] | None:
        import sqlite3
        from contextlib import closing

        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self.path, timeout=10)) as connection, connection:
                connection.execute(
                    "CREATE TABLE IF NOT EXISTS tool_results (id TEXT PRIMARY KEY, body BLOB)"
                )
                return connection.execute(query, values).fetchone()
        except (OSError, sqlite3.Error) as error:
            raise StateError(f"cannot reach the tool results in {self.path}: {error}") from error
