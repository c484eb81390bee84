"""Remember the answers of a recall until something is written or they are too old.

An answer is valid for one generation of the store it came from. A write begins a new generation in
this process and, where a shared record store is given, in every process that uses it.
"""

from __future__ import annotations

import threading
import time
import uuid
import warnings
import weakref
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from muntin.errors import ConfigurationError, StateError
from muntin.stores import RecordStore

if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping

    from muntin.runtime import CallFlow

__all__ = ("RecallCache",)

_GENERATION = "recall.generation"
"""Key of the shared record that each write replaces."""

_Generation: TypeAlias = "tuple[int, int, str]"
"""Clearings of the cache, writes to the store in this process, version of the shared record."""


class RecallCache:
    """Remember answers: the least recently used are removed first, and each has a longest life.

    Args:
        max_entries: Most answers; 0 remembers none.
        ttl_seconds: Seconds an answer lives at most.
        clock: Returns seconds; only differences matter.
        shared: A record store that all processes over the same data share, e.g. in their database:
            a write in one of them ends the answers of all, for one small read per recall. `None`
            sees writes of other processes when answers reach `ttl_seconds`.

    Raises:
        ConfigurationError: `max_entries` is below 0, `ttl_seconds` is not above 0, or `shared` is
            not a `RecordStore`.

    ```python
    from muntin.interactions import RecallCache

    now = [0.0]
    cache = RecallCache(max_entries=2, ttl_seconds=60, clock=lambda: now[0])
    cache.keep("question", "answer", (0, 0, ""))
    now[0] = 61.0
    print(cache.look("question", (0, 0, "")))
    #> None
    ```
    """

    def __init__(
        self,
        *,
        max_entries: int = 128,
        ttl_seconds: float = 300.0,
        clock: Callable[[], float] = time.monotonic,
        shared: RecordStore | None = None,
    ) -> None:
        if max_entries < 0 or not ttl_seconds > 0:
            raise ConfigurationError(
                f"a cache needs max_entries >= 0 (0 caches nothing) and ttl_seconds > 0, "
                f"got {max_entries} and {ttl_seconds}"
            )
        if shared is not None and not isinstance(cast("object", shared), RecordStore):
            raise ConfigurationError(f"shared must be a RecordStore, got {type(shared).__name__}")
        self._max_entries = max_entries
        self._ttl_seconds = ttl_seconds
        self._clock = clock
        self._shared = shared
        self._entries: OrderedDict[object, tuple[float, _Generation, str]] = OrderedDict()
        self._lock = threading.Lock()
        self._clearings = 0

    def __len__(self) -> int:
        return len(self._entries)

    def look(self, key: object, generation: _Generation) -> str | None:
        """Return an answer of this generation that is not too old."""
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                return None
            if self._clock() - found[0] >= self._ttl_seconds or found[1] != generation:
                del self._entries[key]
                return None
            self._entries.move_to_end(key)
            return found[2]

    def keep(self, key: object, answer: str, generation: _Generation) -> None:
        """Remember an answer that was asked for in a generation, unless it is empty.

        An empty answer costs little to ask for again, and another process may add to the store at
        any moment.
        """
        if not answer:
            return
        with self._lock:
            if generation[0] != self._clearings:
                return
            self._entries[key] = (self._clock(), generation, answer)
            self._entries.move_to_end(key)
            while len(self._entries) > self._max_entries:
                self._entries.popitem(last=False)

    def clear(self) -> None:
        """Forget all answers, also those that are being asked for."""
        with self._lock:
            self._entries.clear()
            self._clearings += 1

    def generation(self, store: object) -> CallFlow[_Generation | None]:
        """Return the generation of a store; `None` where the shared record cannot be read."""
        shared = ""
        if self._shared is not None:
            try:
                record = yield from self._shared.getting(_GENERATION)
            except StateError as error:
                warnings.warn(f"recall answers without its cache: {error}", stacklevel=2)
                return None
            shared = "" if record is None else record.version
        return (self._clearings, _writes.count(store), shared)

    def written(self, store: object) -> CallFlow[None]:
        """Begin a new generation of a store after a write to it."""
        _writes.add(store)
        self.clear()
        if self._shared is None:
            return
        try:
            yield from self._shared.putting(_GENERATION, uuid.uuid4().bytes)
        except StateError as error:
            warnings.warn(
                f"other processes see this write when their answers age: {error}", stacklevel=2
            )


class _Writes:
    """Count the writes to each store object, so that all retrievers of this process see them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: MutableMapping[Any, int] = weakref.WeakKeyDictionary()

    def count(self, store: object) -> int:
        try:
            return self._counts.get(store, 0)
        except TypeError:  # it cannot be a key: its writes are seen by the retriever that made them
            return 0

    def add(self, store: object) -> None:
        try:
            with self._lock:
                self._counts[store] = self._counts.get(store, 0) + 1
        except TypeError:
            return


_writes = _Writes()
