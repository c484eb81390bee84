"""Records in the memory of this process; what was not used for longest goes first."""

from __future__ import annotations

import itertools
import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING

from muntin.errors import StateConflictError
from muntin.stores.base import RecordStore
from muntin.stores.record import ANY, Entry, Expected, Record

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

__all__ = ("MemoryRecords",)


class MemoryRecords(RecordStore):
    """Keep records as long as the process lives.

    Args:
        max_bytes: Bytes of all contents; beyond it the least recently used records are removed.
            `None` sets no limit.
        max_age: Seconds after its last write at which a record is gone; `None` keeps it.
        clock: Returns seconds since the epoch.

    Raises:
        ConfigurationError: A limit is not a number above 0.
    """

    name = "the memory of this process"

    def __init__(
        self,
        *,
        max_bytes: int | None = None,
        max_age: float | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(max_bytes=max_bytes, max_age=max_age, clock=clock)
        self._records: OrderedDict[str, Record] = OrderedDict()
        self._access = threading.Lock()
        self._numbers = itertools.count(1)

    def __getstate__(self) -> dict[str, Any]:
        """Copy the records; the copy and the original do not see each other's writes."""
        with self._access:
            records = list(self._records.items())
        limits = {"max_bytes": self.max_bytes, "max_age": self.max_age, "clock": self._clock}
        return {"limits": limits, "records": records}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state["limits"])
        self._records.update(state["records"])
        newest = max((int(record.version) for record in self._records.values()), default=0)
        self._numbers = itertools.count(newest + 1)
        self._bytes = sum(len(record.body) for record in self._records.values())

    def read(self, key: str) -> Record | None:
        """Return the record of a key; see `RecordStore.read`."""
        with self._access:
            if key in self._records:
                self._records.move_to_end(key)
            return self._records.get(key)

    async def aread(self, key: str) -> Record | None:
        """Return the record of a key; see `RecordStore.read`."""
        return self.read(key)

    def write(self, key: str, body: bytes, expected: Expected, also: Mapping[str, bytes]) -> str:
        """Store a record; see `RecordStore.write`."""
        with self._access:
            held = self._records.get(key)
            if expected is not ANY and expected != (held.version if held else None):
                raise StateConflictError(f"another writer changed {key!r} in {self.name}")
            for name, content in {**also, key: body}.items():
                self._records[name] = Record(
                    body=content, version=str(next(self._numbers)), stored_at=self._clock()
                )
                self._records.move_to_end(name)
            return self._records[key].version

    async def awrite(
        self, key: str, body: bytes, expected: Expected, also: Mapping[str, bytes]
    ) -> str:
        """Store a record; see `RecordStore.write`."""
        return self.write(key, body, expected, also)

    def remove(self, key: str) -> bool:
        """Remove a record; see `RecordStore.remove`."""
        with self._access:
            return self._records.pop(key, None) is not None

    def listing(self) -> list[Entry]:
        """List the records; see `RecordStore.listing`."""
        with self._access:
            return [
                Entry(key=key, size=len(record.body), stored_at=record.stored_at)
                for key, record in self._records.items()
            ]
