"""Every store of records the core ships passes the suite, and the suite can fail."""

from __future__ import annotations

import resource
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest

from muntin import (
    AgentState,
    ConfigurationError,
    StateCorruptError,
    StateError,
    StateStore,
    ToolResultStore,
    truncate_tool_result,
)
from muntin.stores import FolderRecords, MemoryRecords, Record, RecordStore, SqliteRecords
from muntin.testing import RecordStoreSuite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from conftest import EntryPoint
    from muntin.stores import Entry, Expected


_MADE: dict[tuple[type[RecordStore], Path], RecordStore] = {}
"""Stores in memory by the folder of their test: a second one could not see the first."""


class TestFolder(RecordStoreSuite):
    def make(self, folder: Path, **limits: Any) -> RecordStore:
        return FolderRecords(folder / "records", suffix=".bin", **limits)


class TestSqlite(RecordStoreSuite):
    def make(self, folder: Path, **limits: Any) -> RecordStore:
        return SqliteRecords(folder / "records.db", **limits)


class TestMemory(RecordStoreSuite):
    kind: type[RecordStore] = MemoryRecords

    def make(self, folder: Path, **limits: Any) -> RecordStore:
        return _MADE.setdefault((self.kind, folder), self.kind(**limits))


class _Own(RecordStore):
    """The least an own store needs."""

    def __init__(self, **limits: Any) -> None:
        super().__init__(**limits)
        self.inner = MemoryRecords()

    def read(self, key: str) -> Record | None:
        return self.inner.read(key)

    def write(self, key: str, body: bytes, expected: Expected, also: Mapping[str, bytes]) -> str:
        return self.inner.write(key, body, expected, also)

    def remove(self, key: str) -> bool:
        return self.inner.remove(key)

    def listing(self) -> list[Entry]:
        return self.inner.listing()


class TestOwn(TestMemory):
    kind = _Own


class _Forgetful(_Own):
    """A store that takes every write, whatever version it names."""

    def write(self, key: str, body: bytes, expected: Expected, also: Mapping[str, bytes]) -> str:
        from muntin.stores import ANY

        return self.inner.write(key, body, ANY, also)


def test_the_suite_refuses_a_store_that_overwrites(tmp_path: Path) -> None:
    """A suite that nothing can fail would bless every store."""

    class Wrong(RecordStoreSuite):
        def make(self, folder: Path, **limits: Any) -> RecordStore:
            return _Forgetful(**limits)

    with pytest.raises(AssertionError, match="not refused with StateConflictError"):
        Wrong().test_a_late_write_is_refused(tmp_path)


def test_what_a_store_raises_becomes_a_typed_error(entry_point: EntryPoint) -> None:
    """A caller that catches StateError must not be ended by a driver's own exception."""

    class Dead(_Own):
        def read(self, key: str) -> Record | None:
            raise ConnectionResetError("server closed the connection")

    with pytest.raises(StateError, match="cannot read the store: server closed"):
        entry_point.call(Dead(), "get", "k")
    with pytest.raises(StateError, match="server closed"):
        entry_point.call(StateStore(Dead()), "load")
    with pytest.raises(StateError, match="server closed"):
        entry_point.call(ToolResultStore(Dead()), "get", "tr_" + "0" * 20)


_PLACES: dict[str, Callable[[str, Path], object]] = {
    "results": lambda bad, path: ToolResultStore.directory(path / bad),
    "results.db": lambda bad, path: ToolResultStore.sqlite(path / bad),
    "state": lambda bad, path: StateStore.directory(path / bad),
    "state.db": lambda bad, path: StateStore.sqlite(path / bad),
    "key": lambda bad, path: StateStore.sqlite(path / "s.db", key=bad).save(AgentState()),
    "shared key": lambda bad, path: StateStore(MemoryRecords(), key=bad).load(),
}


@pytest.mark.parametrize("bad", ["a\0b", "\ud83d"])
@pytest.mark.parametrize("place", sorted(_PLACES))
def test_a_path_or_key_that_has_no_bytes_is_refused(place: str, bad: str, tmp_path: Path) -> None:
    """Thread ids come from clients; the raw error of the system named neither cause nor remedy."""
    with pytest.raises(ConfigurationError, match=r"NUL|control|surrogate"):
        _PLACES[place](bad, tmp_path)


@pytest.mark.parametrize("spoiled", [b"changed", b"\xff\xfe", b""])
@pytest.mark.parametrize("kind", ["directory", "sqlite"])
def test_a_changed_original_is_not_returned_under_its_hash(
    kind: str, spoiled: bytes, tmp_path: Path, entry_point: EntryPoint
) -> None:
    """The model would take a changed text for what the tool returned."""
    path = tmp_path / "kept"
    store = getattr(ToolResultStore, kind)(path)
    key = store.put("the original")
    if kind == "directory":
        (path / f"{key}.txt").write_bytes(spoiled)
    else:
        _execute(path, "UPDATE tool_results SET body = ?", spoiled)
    with pytest.raises(StateCorruptError, match="hash"):
        entry_point.call(store, "get", key)
    assert store.put("the original") == key
    assert store.get(key) == "the original"


@pytest.mark.parametrize("body", ["text", 5, None])
def test_a_row_of_another_type_is_reported(
    body: object, tmp_path: Path, entry_point: EntryPoint
) -> None:
    """A row that another program wrote must not end the run with a TypeError."""
    path = tmp_path / "kept.db"
    states, results = StateStore.sqlite(path), ToolResultStore.sqlite(path)
    states.save(AgentState(goal="g"))
    key = results.put("original")
    _execute(path, "UPDATE agent_states SET body = ?", body)
    _execute(path, "UPDATE tool_results SET body = ?", body)
    with pytest.raises(StateCorruptError, match="damaged: its content is"):
        entry_point.call(states, "load")
    with pytest.raises(StateCorruptError, match="damaged: its content is"):
        entry_point.call(results, "get", key)
    states.save(AgentState(goal="new"), overwrite=True)
    assert states.load().goal == "new"


def test_tables_of_the_first_version_are_read_and_written(tmp_path: Path) -> None:
    """An upgrade must not lose the states and originals that are there."""
    path = tmp_path / "old.db"
    original = "an original"
    key = ToolResultStore.in_memory().put(original)
    body = StateStore.directory(tmp_path / "s")
    body.save(AgentState(goal="kept"))
    saved = (tmp_path / "s" / "state.json").read_bytes()
    _execute(path, "CREATE TABLE tool_results (id TEXT PRIMARY KEY, body BLOB)")
    _execute(path, "INSERT INTO tool_results VALUES (?, ?)", key, original.encode())
    _execute(
        path,
        "CREATE TABLE agent_states (key TEXT PRIMARY KEY, body BLOB, previous BLOB, corrupt BLOB)",
    )
    _execute(path, "INSERT INTO agent_states (key, body) VALUES ('agent', ?)", saved)
    results, states = ToolResultStore.sqlite(path), StateStore.sqlite(path)
    assert results.get(str(key)) == original
    state = states.load()
    assert state.goal == "kept"
    states.save(state)
    assert states.load().revision == 2


@pytest.fixture
def no_large_files() -> Iterator[None]:
    """Let files grow to 64 KB and no further, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (65_536, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("kind", ["directory", "sqlite"])
def test_a_result_that_cannot_be_stored_is_cut_and_says_so(
    kind: str, tmp_path: Path, no_large_files: None
) -> None:
    """A full disk must not end the run, and a marker must not promise what is not there."""
    store = getattr(ToolResultStore, kind)(tmp_path / "kept")
    log = "\n".join(f"step {number}: ok" for number in range(20_000))
    with pytest.raises(StateError):
        store.put(log)
    with pytest.warns(UserWarning, match="its original is not stored"):
        text = truncate_tool_result(log, 60, store=store)
    assert "not stored" in text
    assert "tr_" not in text
    assert [entry.key for entry in store.records.entries()] == []


def test_a_dead_store_does_not_end_the_cutting_of_a_marked_result(tmp_path: Path) -> None:
    """The id of an original must not be lost because the store cannot be asked just now."""
    store = ToolResultStore.directory(tmp_path / "kept")
    log = "\n".join(f"step {number}: ok" for number in range(2_000))
    once = truncate_tool_result(log, 200, store=store)

    class Dead(_Own):
        def read(self, key: str) -> Record | None:
            raise ConnectionResetError("gone")

    twice = truncate_tool_result(once, 60, store=ToolResultStore(Dead()))
    assert (store.put(log) or "-") in twice


def test_results_are_deleted_and_bounded_in_every_store(
    tmp_path: Path, entry_point: EntryPoint
) -> None:
    """Originals hold what users sent: they must be removable, and gone after a stated time."""
    now = [tmp_path.stat().st_mtime]
    for store in (
        ToolResultStore.in_memory(max_bytes=1_000),
        ToolResultStore.directory(tmp_path / "kept", max_bytes=1_000),
        ToolResultStore.sqlite(tmp_path / "kept.db", max_bytes=1_000),
    ):
        key = store.put("secret") or ""
        assert entry_point.call(store, "delete", key) is True
        assert entry_point.call(store, "delete", key) is False
        assert entry_point.call(store, "delete", "../x") is False
        assert key not in store
        keys = [store.put(f"{number}" * 90) or "" for number in range(30)]
        assert keys[-1] in store
        assert keys[0] not in store
        assert store.put("x" * 1_001) is None
    aged = ToolResultStore.sqlite(tmp_path / "aged.db", max_age=60, clock=lambda: now[0])
    key = aged.put("old") or ""
    now[0] += 61
    assert key not in aged


def test_a_state_can_be_deleted_with_all_that_is_kept_beside_it(
    tmp_path: Path, entry_point: EntryPoint
) -> None:
    """A backup that survives the deletion is what a user asked to have removed."""
    for store in (
        StateStore.directory(tmp_path / "agent"),
        StateStore.sqlite(tmp_path / "agent.db", key="a"),
        StateStore(MemoryRecords(), key="a"),
    ):
        state = AgentState(goal="secret")
        store.save(state)
        store.save(state)
        assert entry_point.call(store, "delete") is True
        assert entry_point.call(store, "delete") is False
        assert store.records.entries() == []


@pytest.mark.parametrize("limit", [0, -1, True, "5", float("nan"), float("inf")])
def test_a_wrong_limit_is_refused(limit: Any, tmp_path: Path) -> None:
    for name in ("max_bytes", "max_age"):
        with pytest.raises(ConfigurationError, match=f"{name} of at least 1"):
            FolderRecords(tmp_path, **{name: limit})


def test_a_store_is_made_of_records(tmp_path: Path) -> None:
    wrongs: list[Any] = [str(tmp_path), tmp_path, {}, None]
    for wrong in wrongs:
        with pytest.raises(ConfigurationError, match=r"RecordStore|StateStore\.directory"):
            StateStore(wrong)
        with pytest.raises(ConfigurationError, match="needs a RecordStore"):
            ToolResultStore(wrong)
    with pytest.raises(ConfigurationError, match="table must be a name"):
        SqliteRecords(tmp_path / "x", table="a; DROP TABLE b")


def _execute(path: Path, statement: str, *values: object) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(statement, values)
    connection.close()


@pytest.mark.parametrize("kind", ["in_memory", "directory", "sqlite"])
def test_an_original_that_is_stored_again_is_not_written_again(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each step of an agent cuts the same results again; a sync of the disk for each is slow."""
    place = () if kind == "in_memory" else (tmp_path / "kept",)
    store = getattr(ToolResultStore, kind)(*place)
    key = store.put("original")
    written: list[str] = []
    write = store.records.write

    def noted(key: str, *rest: Any) -> str:
        written.append(key)
        return write(key, *rest)

    monkeypatch.setattr(store.records, "write", noted)
    monkeypatch.setattr(store.records, "awrite", None, raising=False)
    assert [store.put("original") for _ in range(3)] == [key] * 3
    assert written == []
    store.put("another")
    assert len(written) == 1
