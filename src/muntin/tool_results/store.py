"""Keep the originals of shortened tool results under the hash of their content.

Storing a text again changes nothing, and an id never means two texts: a text that no longer has the
hash in its id is reported as damaged. Where originals are kept, and for how long, is decided by the
`RecordStore` they are kept in.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any, cast

from muntin.errors import ConfigurationError, StateCorruptError, ToolResultNotFound
from muntin.runtime import aperform, perform
from muntin.stores import FolderRecords, MemoryRecords, RecordStore, SqliteRecords, digest_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike

    from muntin.runtime import CallFlow

__all__ = ("RESULT_ID", "ToolResultStore")

RESULT_ID = r"tr_[0-9a-f]{20}"
"""Pattern of an id: 80 bits of the SHA-256 of the original."""

_WHOLE_ID = re.compile(RESULT_ID)
_BYTES_IN_MEMORY = 64 * 1024 * 1024


class ToolResultStore:
    """Keep texts under the hash of their content.

    Made by `in_memory()`, `directory(path)` or `sqlite(path)`, or over any `RecordStore`, for
    instance one in a database that several machines share. Safe to share between threads, and
    between processes where the records are.

    Args:
        records: Where the texts are kept. Give each tenant records of its own (a folder, a
            namespace): a caller with an id can read its text. The `max_bytes` and `max_age` of the
            records bound the store.

    Raises:
        ConfigurationError: `records` is not a `RecordStore`.

    ```python
    from muntin import ToolResultStore

    store = ToolResultStore.in_memory()
    key = store.put("a long result")
    print(key, store.get(key))
    #> tr_c67cfa339a6ef7c2c73c a long result
    ```
    """

    def __init__(self, records: RecordStore) -> None:
        if not isinstance(cast("object", records), RecordStore):
            raise ConfigurationError(
                f"a ToolResultStore needs a RecordStore, got {type(records).__name__}: use "
                f"ToolResultStore.directory(path) for a folder, or a class of muntin.stores"
            )
        self.records = records

    @staticmethod
    def in_memory(
        *, max_bytes: int = _BYTES_IN_MEMORY, max_age: float | None = None
    ) -> ToolResultStore:
        """Make a store that lives as long as the process.

        Args:
            max_bytes: Bytes of all texts; beyond it the least recently used ones are removed.
            max_age: Seconds that a text is kept after it was stored last; `None` sets no limit.

        Raises:
            ConfigurationError: A limit is below 1.
        """
        return ToolResultStore(MemoryRecords(max_bytes=max_bytes, max_age=max_age))

    @staticmethod
    def directory(
        path: str | PathLike[str],
        *,
        max_bytes: int | None = None,
        max_age: float | None = None,
        clock: Callable[[], float] = time.time,
    ) -> ToolResultStore:
        """Make a store that keeps one file per result; the folder is made when missing.

        Args:
            path: The folder.
            max_bytes: Bytes of all texts; beyond it those stored first are removed. `None` sets no
                limit.
            max_age: Seconds that a text is kept after it was stored last; `None` sets no limit.
            clock: Returns seconds since the epoch.

        Raises:
            ConfigurationError: The path holds a NUL, or a limit is not above 0.
        """
        return ToolResultStore(
            FolderRecords(path, suffix=".txt", max_bytes=max_bytes, max_age=max_age, clock=clock)
        )

    @staticmethod
    def sqlite(
        path: str | PathLike[str],
        *,
        max_bytes: int | None = None,
        max_age: float | None = None,
        clock: Callable[[], float] = time.time,
    ) -> ToolResultStore:
        """Make a store that keeps results in one table of a SQLite file.

        Args:
            path: The file, which is made when missing.
            max_bytes: As in `directory`.
            max_age: As in `directory`.
            clock: Returns seconds since the epoch.

        Raises:
            ConfigurationError: As in `directory`.
        """
        return ToolResultStore(
            SqliteRecords(
                path, table="tool_results", max_bytes=max_bytes, max_age=max_age, clock=clock
            )
        )

    def put(self, text: str) -> str | None:
        """Store a text and return its id; storing it again renews its age.

        Returns:
            The id, or None where the text alone is larger than the whole store may be.

        Raises:
            ConfigurationError: It is not a str.
            StateError: It could not be written.
        """
        return perform(self._putting(text))

    async def aput(self, text: str) -> str | None:
        """Store a text and return its id; see `put`."""
        return await aperform(self._putting(text))

    def get(self, result_id: str) -> str:
        """Return the text that was stored, character for character.

        Raises:
            ToolResultNotFound: No text has this id here, or it was removed.
            StateCorruptError: The stored text was changed: it does not have the hash in its id.
            StateError: It could not be read.
        """
        return perform(self._getting(result_id))

    async def aget(self, result_id: str) -> str:
        """Return the text that was stored; see `get`."""
        return await aperform(self._getting(result_id))

    def delete(self, result_id: str) -> bool:
        """Remove a text; return whether it was there.

        Raises:
            StateError: The store cannot be written.
        """
        return _is_id(result_id) and self.records.delete(result_id)

    async def adelete(self, result_id: str) -> bool:
        """Remove a text; see `delete`."""
        return _is_id(result_id) and await self.records.adelete(result_id)

    def __contains__(self, result_id: object) -> bool:
        return _is_id(result_id) and self.records.get(cast("str", result_id)) is not None

    def _putting(self, text: str) -> CallFlow[str | None]:
        if not isinstance(cast("object", text), str):
            raise ConfigurationError(f"a tool result must be a str, got {type(text).__name__}")
        data = text.encode("utf-8", "surrogatepass")
        most = self.records.max_bytes
        if most is not None and len(data) > most:
            return None
        result_id = _id_of(data)
        yield from self.records.putting(result_id, data)
        return result_id

    def _getting(self, result_id: str) -> CallFlow[str]:
        record = (yield from self.records.getting(result_id)) if _is_id(result_id) else None
        if record is None:
            raise ToolResultNotFound(
                f"no tool result has the id {result_id!r}: {self._why_missing()}; "
                f"ids are 'tr_' and 20 hex digits, copied from a shortened result"
            )
        if _id_of(record.body) != result_id:
            raise StateCorruptError(
                f"the tool result {result_id} in {self.records.name} was changed after it was "
                f"stored: its content has another hash. Run the tool again, or delete() it"
            )
        return record.body.decode("utf-8", "surrogatepass")

    def _why_missing(self) -> str:
        where = self.records.name
        limits: list[str] = []
        if self.records.max_bytes is not None:
            limits.append(f"holds {self.records.max_bytes:,} bytes")
        if self.records.max_age is not None:
            limits.append(f"keeps texts for {self.records.max_age:g} s")
        if not limits:
            return f"it was never stored in {where}"
        return (
            f"it was never stored in {where} or has made room for newer ones "
            f"(this store {' and '.join(limits)})"
        )


def _is_id(result_id: Any) -> bool:
    """Return whether this is an id: only an id reaches a path or a query."""
    return isinstance(result_id, str) and _WHOLE_ID.fullmatch(result_id) is not None


def _id_of(data: bytes) -> str:
    return f"tr_{digest_of(data)[:20]}"
