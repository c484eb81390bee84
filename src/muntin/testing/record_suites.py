"""The conformance suite for stores of records: what states, originals and recall rely on."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from muntin.errors import ConfigurationError, StateConflictError, StateCorruptError, StateError
from muntin.tool_results import ToolResultStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from muntin.stores import Record, RecordStore

__all__ = ("RecordStoreSuite",)

_BODIES = (
    b"",
    b"plain",
    b"\x00\xff\xfe",
    "中文 👩‍👩‍👧\r\n".encode(),
    b"half \xed\xa0\xbd",
    b"x" * 200_000,
)
_KEYS = ("a", "a b", "../up", "C:\\x", "%41", "名", ".hidden", "x'; --", "a/b", "Å")


class RecordStoreSuite(ABC):
    """What a store of records must do: return what was put, and refuse a write that comes late.

    ```python
    from muntin.stores import MemoryRecords
    from muntin.testing import RecordStoreSuite

    class TestMine(RecordStoreSuite):
        def make(self, folder, **limits):
            return MemoryRecords(**limits)

    TestMine().test_a_late_write_is_refused(None)
    ```
    """

    @abstractmethod
    def make(self, folder: Path, **limits: object) -> RecordStore:
        """Return a store over the one place of this test, which is empty at first.

        Args:
            folder: For its files. A second call with the same folder opens the same place.
            limits: `max_bytes`, `max_age` and `clock`, to pass on.
        """

    async def aclose(self, store: RecordStore) -> None:
        """Close what the async methods of a store hold in this event loop; nothing by default."""
        del store

    def test_what_was_put_comes_back(self, tmp_path: Path) -> None:
        """A content that comes back changed is a wrong state or a wrong original."""
        store = self.make(tmp_path)
        for number, body in enumerate(_BODIES):
            version = store.put(f"k{number}", body)
            record = store.get(f"k{number}")
            assert record is not None
            assert (record.body, record.version) == (body, version)
        assert store.get("missing") is None

    def test_every_valid_key_is_a_key_of_its_own(self, tmp_path: Path) -> None:
        """Keys come from users and models: none may reach another record, a path or a query."""
        store = self.make(tmp_path)
        for key in _KEYS:
            store.put(key, key.encode())
        for key in _KEYS:
            record = store.get(key)
            assert record is not None
            assert record.body == key.encode()
        assert sorted(entry.key for entry in store.entries()) == sorted(_KEYS)

    def test_what_is_no_key_or_no_content_is_refused(self, tmp_path: Path) -> None:
        """A NUL ends strings in C, a lone surrogate cannot be encoded: databases fail on both."""
        store = self.make(tmp_path)
        for key in ("", "a\0b", "\ud83d", "x" * 256, "a\nb", 5, None):
            _refuses(ConfigurationError, store.get, key)
            _refuses(ConfigurationError, store.delete, key)
            _refuses(ConfigurationError, store.put, key, b"x")
        _refuses(ConfigurationError, store.put, "k", "text")
        assert store.entries() == []

    def test_a_late_write_is_refused(self, tmp_path: Path) -> None:
        """Two workers that both read a state must not erase each other's work."""
        store = self.make(tmp_path)
        first = store.put("k", b"one", expected=None)
        second = store.put("k", b"two", expected=first)
        for stale in (None, first, "no such version"):
            _refuses(StateConflictError, store.put, "k", b"late", expected=stale)
        assert _body(store, "k") == b"two"
        store.put("k", b"three")
        assert _body(store, "k") == b"three"
        _refuses(StateConflictError, store.put, "k", b"late", expected=second)
        _refuses(StateConflictError, store.put, "new", b"late", expected=second)
        assert store.get("new") is None

    def test_records_beside_it_are_written_with_it_or_not_at_all(self, tmp_path: Path) -> None:
        """A refused write must not replace the backup of the state that stays."""
        store = self.make(tmp_path)
        store.put("k", b"one", expected=None, also={"k.previous": b"zero"})
        assert (_body(store, "k"), _body(store, "k.previous")) == (b"one", b"zero")
        late = {"k.previous": b"late"}
        _refuses(StateConflictError, store.put, "k", b"late", expected=None, also=late)
        assert _body(store, "k.previous") == b"zero"

    def test_what_was_deleted_is_gone_and_can_come_again(self, tmp_path: Path) -> None:
        """A deletion that a user asked for must remove everything."""
        store = self.make(tmp_path)
        version = store.put("k", b"one", expected=None)
        assert store.delete("k")
        assert not store.delete("k")
        assert store.get("k") is None
        assert store.entries() == []
        _refuses(StateConflictError, store.put, "k", b"late", expected=version)
        store.put("k", b"again", expected=None)
        assert _body(store, "k") == b"again"

    def test_another_store_over_the_same_place_sees_the_same(self, tmp_path: Path) -> None:
        """What one worker wrote is read by the next."""
        store = self.make(tmp_path)
        version = store.put("k", b"one", expected=None)
        other = self.make(tmp_path)
        assert other.get("k") == store.get("k")
        other.put("k", b"two", expected=version)
        assert _body(store, "k") == b"two"

    def test_concurrent_writers_lose_nothing(self, tmp_path: Path) -> None:
        """Each writer reads, adds and writes; a lost write would lose a finding."""
        problems: list[BaseException] = []

        def work(number: int) -> None:
            try:
                store = self.make(tmp_path)
                for turn in range(5):
                    _append(store, f"{number}.{turn}")
            except BaseException as error:  # noqa: BLE001 - shown by the test
                problems.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert problems == []
        found = _body(self.make(tmp_path), "log").decode().split()
        assert sorted(found) == sorted(f"{n}.{turn}" for n in range(4) for turn in range(5))

    def test_size_is_bounded_and_the_oldest_go_first(self, tmp_path: Path) -> None:
        """A store that only grows fills the disk of a service that runs for a year."""
        store = self.make(tmp_path, max_bytes=1_000)
        for number in range(40):
            store.put(f"k{number:02}", b"x" * 100)
        assert sum(entry.size for entry in store.entries()) <= 1_000
        assert store.get("k39") is not None
        assert store.get("k00") is None
        _refuses(StateError, store.put, "large", b"x" * 1_001)

    def test_what_is_too_old_is_gone(self, tmp_path: Path) -> None:
        """Retention must not depend on a job that may not run."""
        import time

        now = [time.time()]
        store = self.make(tmp_path, max_age=60.0, clock=lambda: now[0])
        store.put("old", b"x", expected=None)
        assert store.get("old") is not None
        now[0] += 61.0
        assert store.get("old") is None
        assert store.entries() == []
        assert store.evict() == 1

    def test_an_original_is_returned_only_for_its_hash(self, tmp_path: Path) -> None:
        """A model that asks for an original must never read another text under its id."""
        store = self.make(tmp_path)
        results = ToolResultStore(store)
        kept = results.put("what the tool returned")
        assert kept is not None
        assert results.get(kept) == "what the tool returned"
        [entry] = store.entries()
        store.put(entry.key, b"something else")
        _refuses(StateCorruptError, results.get, kept)
        assert results.delete(kept)
        assert store.entries() == []

    def test_limits_hold_for_async_writes_too(self, tmp_path: Path) -> None:
        """A service that only awaits must not fill the disk, nor keep what is too old."""
        import time

        now = [time.time()]

        async def go() -> None:
            store = self.make(tmp_path, max_bytes=1_000, max_age=60.0, clock=lambda: now[0])
            for number in range(20):
                now[0] += 1.0  # records of one moment have no order
                await store.aput(f"k{number:02}", b"x" * 100)
            assert sum(entry.size for entry in await store.aentries()) <= 1_000
            assert await store.aget("k00") is None
            now[0] += 61.0
            assert await store.aget("k19") is None
            assert await store.aentries() == []
            await self.aclose(store)

        asyncio.run(go())

    def test_async_methods_do_the_same(self, tmp_path: Path) -> None:
        """An async service must get the same results as a sync one."""

        async def go() -> None:
            store = self.make(tmp_path)
            version = await store.aput("k", b"one", expected=None, also={"b": b"also"})
            record = await store.aget("k")
            assert record is not None
            assert (record.body, record.version) == (b"one", version)
            try:
                await store.aput("k", b"late", expected=None)
            except StateConflictError:
                pass
            else:
                raise AssertionError("a late write was not refused")
            assert sorted(entry.key for entry in await store.aentries()) == ["b", "k"]
            assert await store.adelete("k")
            assert await store.aget("k") is None
            assert await store.aevict() == 0
            await self.aclose(store)

        asyncio.run(go())


def _refuses(
    kind: type[Exception], act: Callable[..., object], *args: object, **kwargs: object
) -> None:
    try:
        act(*args, **kwargs)
    except kind:
        return
    raise AssertionError(f"{args!r} {kwargs!r} was not refused with {kind.__name__}")


def _body(store: RecordStore, key: str) -> bytes:
    record = store.get(key)
    assert record is not None, f"{key!r} is missing"
    return record.body


def _append(store: RecordStore, word: str) -> None:
    """Add a word to a record; retry if another writer was first."""
    while True:
        record: Record | None = store.get("log")
        body = b"" if record is None else record.body
        version = None if record is None else record.version
        try:
            store.put("log", body + f"{word} ".encode(), expected=version)
        except StateConflictError:
            continue
        return
