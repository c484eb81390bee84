"""What every store does in the same way: checks, limits, typed errors, sync and async methods.

A store keeps bytes under keys and gives each record a version. A write can name the version it
replaces and is refused when another writer came first. An own store subclasses `RecordStore` and
implements four methods: `read`, `write`, `remove` and `listing`.
"""

from __future__ import annotations

import math
import threading
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, cast

from muntin.errors import ConfigurationError, ContextError, StateCorruptError, StateError
from muntin.runtime import aperform, method_call, perform
from muntin.stores.record import ANY, Entry, Expected, Record, check_key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from muntin.runtime import CallFlow

__all__ = ("RecordStore",)

_LOW_WATER = 0.9
"""Share of `max_bytes` that an eviction leaves, so that not every write evicts."""
_FRESH_SECONDS = 60.0
"""Seconds in which a record that is written again with the same content is left as it is."""
_SWEEP_SECONDS = 60.0
"""Seconds between two looks for expired records, and for what other processes wrote."""


class RecordStore(ABC):
    """Keep bytes under keys, each with a version, within limits of size and age.

    Safe to share between threads. Each method has an async twin with an `a` in front.

    An own store implements `read`, `write`, `remove` and `listing`, and may implement async twins
    of them (`aread` and so on), which the async methods then use; without one the plain method runs
    in a thread. Keys and contents are checked before they are called, and what they raise becomes a
    `StateError`. `muntin.testing.RecordStoreSuite` tests one.

    Args:
        max_bytes: Bytes of all contents. Beyond it the records written first are removed, down to
            nine tenths. Several processes that share a store each look at the whole once a minute,
            or when they wrote a tenth of it. `None` sets no limit.
        max_age: Seconds after its last write at which a record is gone. `None` keeps it for ever.
        clock: Returns seconds since the epoch.

    Raises:
        ConfigurationError: A limit is not a number above 0.

    ```python
    from muntin.stores import MemoryRecords

    store = MemoryRecords()
    first = store.put("a", b"one", expected=None)
    second = store.put("a", b"two", expected=first)
    print(store.get("a").body, store.get("b"), first != second)
    #> b'two' None True
    ```
    """

    name: str = "the store"
    """What errors call it."""

    def __init__(
        self,
        *,
        max_bytes: int | None = None,
        max_age: float | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        for limit, value in (("max_bytes", max_bytes), ("max_age", max_age)):
            if value is not None and not _is_above_zero(value):
                raise ConfigurationError(
                    f"a store needs {limit} of at least 1, or None for no limit, got {value!r}"
                )
        self.max_bytes = max_bytes
        self.max_age = max_age
        self._clock = clock
        self._lock = threading.Lock()
        self._bytes = math.inf if max_bytes is not None else 0
        """Bytes it holds as far as this process knows; infinite before it looked."""
        self._next_sweep = -math.inf

    # --- to implement ----------------------------------------------------------------------------

    @abstractmethod
    def read(self, key: str) -> Record | None:
        """Return the record of a key, or None."""

    @abstractmethod
    def write(self, key: str, body: bytes, expected: Expected, also: Mapping[str, bytes]) -> str:
        """Store a record and return its new version.

        Args:
            key: The key.
            body: The whole new content.
            expected: The version to replace, `None` for no record, `ANY` for whatever there is.
            also: Records written after it, whatever version they have; in the same transaction
                where the store has transactions. Not written when the write is refused.

        Raises:
            StateConflictError: The record has another version.
        """

    @abstractmethod
    def remove(self, key: str) -> bool:
        """Remove a record; return whether there was one."""

    @abstractmethod
    def listing(self) -> list[Entry]:
        """Return an entry per record, in the order in which they are removed for lack of space."""

    # --- to use ----------------------------------------------------------------------------------

    def get(self, key: str) -> Record | None:
        """Return the record of a key, or None where there is none or it is older than `max_age`.

        Raises:
            ConfigurationError: It is not a key.
            StateCorruptError: The content is not what was written.
            StateError: The store cannot be read.
        """
        return perform(self.getting(key))

    async def aget(self, key: str) -> Record | None:
        """Return the record of a key; see `get`."""
        return await aperform(self.getting(key))

    def put(
        self,
        key: str,
        body: bytes,
        *,
        expected: Expected = ANY,
        also: Mapping[str, bytes] | None = None,
    ) -> str:
        """Store a record and return its new version.

        Args:
            key: 1 to 255 bytes of UTF-8 without control characters.
            body: The whole new content.
            expected: The version it replaces, `None` where there must be no record. `ANY` replaces
                whatever there is.
            also: More records to write with it, by key, whatever version they have. `None` writes
                none.

        Raises:
            ConfigurationError: It is not a key, or the content is not bytes.
            StateConflictError: The record has another version; nothing was written.
            StateError: It could not be written, or it alone is larger than `max_bytes`.
        """
        return perform(self.putting(key, body, expected=expected, also=also))

    async def aput(
        self,
        key: str,
        body: bytes,
        *,
        expected: Expected = ANY,
        also: Mapping[str, bytes] | None = None,
    ) -> str:
        """Store a record; see `put`."""
        return await aperform(self.putting(key, body, expected=expected, also=also))

    def delete(self, key: str) -> bool:
        """Remove a record; return whether there was one.

        Raises:
            ConfigurationError: It is not a key.
            StateError: The store cannot be written.
        """
        return perform(self.deleting(key))

    async def adelete(self, key: str) -> bool:
        """Remove a record; see `delete`."""
        return await aperform(self.deleting(key))

    def entries(self) -> list[Entry]:
        """Return an entry for each record that is not older than `max_age`, the oldest first.

        Raises:
            StateError: The store cannot be read.
        """
        return perform(self.entering())

    async def aentries(self) -> list[Entry]:
        """Return an entry for each record; see `entries`."""
        return await aperform(self.entering())

    def evict(self) -> int:
        """Remove expired records, and the oldest ones beyond `max_bytes`; return how many went.

        Writes do so by themselves, at the latest a minute after the last time.

        Raises:
            StateError: The store cannot be read or written.
        """
        return perform(self.evicting())

    async def aevict(self) -> int:
        """Remove what is beyond the limits; see `evict`."""
        return await aperform(self.evicting())

    # --- the same as policies, for other policies ------------------------------------------------

    def looking(self, key: str) -> CallFlow[Record | None]:
        """Read a record, also one with a problem."""
        check_key(key)
        record: Record | None = yield from self._asked("read", "read", key)
        if record is not None and self._is_expired(record.stored_at):
            return None
        return record

    def getting(self, key: str) -> CallFlow[Record | None]:
        """Do what `get` does."""
        record = yield from self.looking(key)
        if record is not None and record.problem:
            raise StateCorruptError(f"{self.name} holds {key!r} damaged: {record.problem}")
        return record

    def putting(
        self,
        key: str,
        body: bytes,
        *,
        expected: Expected = ANY,
        also: Mapping[str, bytes] | None = None,
    ) -> CallFlow[str]:
        """Do what `put` does."""
        bodies = {key: body, **(also or {})}
        for name, content in bodies.items():
            check_key(name)
            if not isinstance(cast("object", content), bytes):
                raise ConfigurationError(
                    f"a record must be bytes, got {type(content).__name__} under {name!r}"
                )
        size = sum(map(len, bodies.values()))
        if self.max_bytes is not None and size > self.max_bytes:
            raise StateError(
                f"cannot write {size:,} bytes to {self.name}: it holds {self.max_bytes:,} at most"
            )
        if expected is ANY and not also:
            held: Record | None = yield from self._asked("read", "read", key)
            if held is not None and held.body == body and self._is_fresh(held):
                return held.version
        if expected is not ANY and self.max_age is not None:
            yield from self._drop_expired(key)
        version: str = yield from self._asked(
            "write", "write", key, body, expected, dict(also or {})
        )
        yield from self._keep_limits(size)
        return version

    def deleting(self, key: str) -> CallFlow[bool]:
        """Do what `delete` does."""
        check_key(key)
        return (yield from self._asked("write", "remove", key))

    def entering(self) -> CallFlow[list[Entry]]:
        """Do what `entries` does."""
        found: list[Entry] = yield from self._asked("read", "listing")
        return [entry for entry in found if not self._is_expired(entry.stored_at)]

    def evicting(self) -> CallFlow[int]:
        """Do what `evict` does."""
        removed, held = yield from self._sweeping()
        with self._lock:
            self._bytes = held
            self._next_sweep = time.monotonic() + _SWEEP_SECONDS
        return removed

    # --- inside ----------------------------------------------------------------------------------

    def _sweeping(self) -> CallFlow[tuple[int, int]]:
        """Remove what is beyond the limits; return how many records went and the bytes left."""
        found: list[Entry] = yield from self._asked("read", "listing")
        held = sum(entry.size for entry in found)
        most = self._most_after(held)
        removed = 0
        for entry in found:
            if held > most or self._is_expired(entry.stored_at):
                removed += yield from self._asked("write", "remove", entry.key)
                held -= entry.size
        return removed, held

    def _most_after(self, held: int) -> float:
        """Return the bytes to keep where `held` are there."""
        if self.max_bytes is None or held <= self.max_bytes:
            return math.inf
        return self.max_bytes * _LOW_WATER

    def _asked(self, doing: str, verb: str, *args: Any) -> CallFlow[Any]:
        """Call a method of the store; what it raises of its own becomes a `StateError`."""
        try:
            return (yield method_call(self, verb, *args))
        except ContextError:
            raise
        except Exception as error:
            raise StateError(f"cannot {doing} {self.name}: {_said(error)}") from error

    def _drop_expired(self, key: str) -> CallFlow[None]:
        """Remove an expired record that a new one would conflict with."""
        record: Record | None = yield from self._asked("read", "read", key)
        if record is not None and self._is_expired(record.stored_at):
            yield from self._asked("write", "remove", key)

    def _keep_limits(self, size: int) -> CallFlow[None]:
        if self.max_bytes is None and self.max_age is None:
            return
        with self._lock:
            self._bytes += size
            over = self.max_bytes is not None and self._bytes > self.max_bytes
            due = over or time.monotonic() >= self._next_sweep
            if due:
                self._next_sweep = time.monotonic() + _SWEEP_SECONDS
        if due:
            yield from self.evicting()

    def _is_fresh(self, held: Record) -> bool:
        """Return whether the same content needs no other write: it was written a moment ago.

        A conversation that is fitted at every step stores the same originals at every step.
        """
        moment = _FRESH_SECONDS if self.max_age is None else min(_FRESH_SECONDS, self.max_age / 4)
        return not held.problem and 0 <= self._clock() - held.stored_at < moment

    def _is_expired(self, stored_at: float) -> bool:
        return self.max_age is not None and self._clock() - stored_at >= self.max_age


def _is_above_zero(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < math.inf


def _said(error: Exception) -> str:
    # The error of a database driver inside one of SQLAlchemy, which would quote all contents.
    cause = getattr(error, "orig", None) or error
    return str(cause) or type(error).__name__
