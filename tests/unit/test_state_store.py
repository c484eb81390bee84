"""Saved state: whole or not at all, and nobody's work overwritten."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sqlite3
from typing import TYPE_CHECKING

import pytest

from muntin import (
    AgentState,
    StateConflictError,
    StateCorruptError,
    StateError,
    StateNotFound,
    StateStore,
    StateVersionError,
)
from muntin.errors import ConfigurationError
from muntin.runtime import exclusive
from muntin.state.store import load_state, save_state

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import EntryPoint


@pytest.fixture(params=["directory", "sqlite"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], StateStore]:
    """A maker of stores that share one place, as processes do."""
    if request.param == "directory":
        return lambda: StateStore.directory(tmp_path / "new" / "agent")
    return lambda: StateStore.sqlite(tmp_path / "new" / "states.db")


def test_what_was_saved_is_loaded_by_anybody(
    make: Callable[[], StateStore], entry_point: EntryPoint
) -> None:
    state = AgentState(goal="g", plan=["a", "b"], completed_steps=["a"], key_findings=["f"])
    entry_point.call(make(), "save", state)
    loaded = entry_point.call(make(), "load")
    assert isinstance(loaded, AgentState)
    assert loaded == state
    assert (loaded.plan, loaded.completed_steps) == (["a", "b"], ["a"])
    assert loaded.revision == state.revision == 1


def test_nothing_saved_is_said_and_makes_no_files(
    make: Callable[[], StateStore], entry_point: EntryPoint, tmp_path: Path
) -> None:
    with pytest.raises(StateNotFound, match="save\\(\\) one first"):
        entry_point.call(make(), "load")
    assert not list(tmp_path.iterdir())


def test_the_second_of_two_writers_is_told_and_can_merge(
    make: Callable[[], StateStore], entry_point: EntryPoint
) -> None:
    """A slow model call between load and save must not erase what others found meanwhile."""
    make().save(AgentState(goal="g", plan=["a", "b"]))
    mine, theirs = make().load(), make().load()
    theirs.key_findings.append("theirs")
    theirs.mark("a", "done")
    make().save(theirs)
    mine.key_findings.append("mine")
    with pytest.raises(StateConflictError, match="holds revision 2, this state goes"):
        entry_point.call(make(), "save", mine)
    merged = entry_point.call(make(), "merge", mine)
    assert isinstance(merged, AgentState)
    assert sorted(map(str, merged.key_findings)) == ["mine", "theirs"]
    assert merged.completed_steps == ["a"]
    assert make().load() == merged
    assert merged.revision == 3
    make().save(merged)


def test_a_fresh_state_does_not_replace_an_old_one_unasked(make: Callable[[], StateStore]) -> None:
    """A restarted script that begins with an empty state would erase a day's work."""
    make().save(AgentState(goal="old"))
    with pytest.raises(StateConflictError):
        make().save(AgentState(goal="new"))
    make().save(AgentState(goal="new"), overwrite=True)
    assert (make().load().goal, make().load().revision) == ("new", 2)


def test_an_update_is_one_step_and_its_errors_are_its_own(
    make: Callable[[], StateStore], entry_point: EntryPoint
) -> None:
    def adds(text: str) -> Callable[[AgentState], None]:
        return lambda state: state.key_findings.append(text)

    entry_point.call(make(), "update", adds("one"))
    entry_point.call(make(), "update", adds("two"))
    assert make().load().key_findings == ["one", "two"]

    def fails(state: AgentState) -> None:
        state.key_findings.append("three")
        raise FileNotFoundError("not the store's")

    with pytest.raises(FileNotFoundError, match="not the store's"):
        entry_point.call(make(), "update", fails)
    assert make().load().key_findings == ["one", "two"]


def test_what_cannot_be_saved_is_refused_before_anything_is_opened(
    make: Callable[[], StateStore],
) -> None:
    """A half-written file is what an unserialisable value leaves behind elsewhere."""
    make().save(AgentState(goal="good"))
    broken = make().load()
    broken.plan.append({1, 2})  # pyright: ignore[reportArgumentType] - what must be refused
    with pytest.raises(ConfigurationError, match="a plan holds strings or Steps"):
        make().save(broken)
    assert make().load().goal == "good"


def spoil(store_path: Path, data: bytes) -> None:
    """Replace what is saved by other bytes."""
    if store_path.suffix == ".db":
        with sqlite3.connect(store_path) as connection:
            connection.execute("UPDATE agent_states SET body = ? WHERE key = 'agent'", (data,))
        connection.close()
    else:
        (store_path / "state.json").write_bytes(data)


GOOD = json.dumps(AgentState(goal="g").to_dict()).encode()
RUINS = {
    "empty": b"",
    "torn": GOOD[:-9],
    "twice": GOOD + b"}",
    "not utf-8": b"\xff\xfe",
    "not an object": b"[]",
    "deep": b"[" * 100_000,
    "unknown key": GOOD.replace(b'"goal"', b'"to_context"'),
    "extra key": GOOD.replace(b"{", b'{"x": 1, ', 1),
    "wrong type": GOOD.replace(b'"plan": []', b'"plan": "notalist"'),
    "wrong status": GOOD.replace(b'"plan": []', b'"plan": [{"id":"a","text":"a","status":"x"}]'),
    "wrong number": GOOD.replace(b'"revision": 0', b'"revision": "0"'),
}


@pytest.mark.parametrize("kind", sorted(RUINS))
@pytest.mark.parametrize("place", ["agent", "states.db"])
def test_ruins_are_named_kept_and_recovered_from(tmp_path: Path, kind: str, place: str) -> None:
    """Starting over in silence is the worst answer to a torn file; crashing for good is next."""
    path = tmp_path / place
    store = StateStore.sqlite(path) if path.suffix else StateStore.directory(path)
    state = AgentState(goal="first")
    store.save(state)
    state.goal = "second"
    store.save(state)
    spoil(path, RUINS[kind])
    with pytest.raises(StateCorruptError, match=r"recover\(\) goes back to revision 1"):
        store.load()
    with pytest.raises(StateCorruptError):
        store.save(state)
    assert store.recover().goal == "first"
    assert store.load().goal == "first"
    assert store.recover().goal == "first"
    if not path.suffix:
        assert (path / "state.json.corrupt").read_bytes() == RUINS[kind]


def test_ruins_without_a_state_before_them_say_so(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_bytes(b"")
    store = StateStore.directory(tmp_path)
    with pytest.raises(
        StateCorruptError, match=r"is empty\. There is no readable state from before"
    ):
        store.load()
    with pytest.raises(StateCorruptError, match="the state before it is missing"):
        store.recover()
    store.save(AgentState(goal="new"), overwrite=True)
    assert store.load().goal == "new"


@pytest.mark.parametrize("version", [2, 0, "1", True, None, 10**30])
def test_a_state_of_another_version_is_left_alone(tmp_path: Path, version: object) -> None:
    """A newer program's file must survive an older program."""
    data = json.dumps({**AgentState(goal="g").to_dict(), "schema_version": version}).encode()
    (tmp_path / "state.json").write_bytes(data)
    store = StateStore.directory(tmp_path)
    for act in (store.load, store.recover, lambda: store.save(AgentState())):
        with pytest.raises(StateVersionError, match="reads 1: upgrade muntin"):
            act()
    assert (tmp_path / "state.json").read_bytes() == data


def test_attributes_written_out_as_they_are_can_be_read(tmp_path: Path) -> None:
    """States saved before there was a format must not be lost."""
    plain = {
        "goal": "g",
        "plan": ["a", "b"],
        "completed_steps": ["a"],
        "current_step": None,
        "key_findings": ["f"],
        "failed_approaches": [],
        "open_questions": [],
    }
    (tmp_path / "state.json").write_text(json.dumps(plain), encoding="utf-8")
    state = load_state(tmp_path)
    assert [step.status for step in state.steps()] == ["done", "current"]
    save_state(state, tmp_path)
    assert load_state(tmp_path).revision == 1
    (tmp_path / "state.json").write_text(json.dumps({**plain, "to_context": 1}), encoding="utf-8")
    with pytest.raises(StateCorruptError, match="to_context: extra inputs"):
        load_state(tmp_path)


def test_a_folder_holds_the_state_in_words_too(tmp_path: Path) -> None:
    state = AgentState(goal="g", plan=["a"], key_findings=["f"], failed_approaches=["x"])
    save_state(state, tmp_path)
    assert (tmp_path / "PLAN.md").read_text() == "## Current Goal\ng\n\n## Plan\n[CURRENT] a\n"
    assert "- f" in (tmp_path / "findings.md").read_text()
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {".lock", ".lock.queue", "PLAN.md", "findings.md", "state.json"}


def test_an_unwritable_folder_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    for store in (
        StateStore.directory(tmp_path / "file" / "agent"),
        StateStore.sqlite(tmp_path / "file" / "states.db"),
    ):
        with pytest.raises(StateError, match="cannot"):
            store.save(AgentState())
    (tmp_path / "states.db").write_bytes(b"no database" * 100)
    with pytest.raises(StateCorruptError, match="file is not a database"):
        StateStore.sqlite(tmp_path / "states.db").load()


@pytest.fixture
def no_large_files() -> object:
    """Let files grow to 64 KB and no further, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (65_536, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_leaves_the_old_state(
    make: Callable[[], StateStore], no_large_files: object, tmp_path: Path
) -> None:
    """The disk is full exactly when the logs say that something went wrong."""
    state = AgentState(goal="small")
    make().save(state)
    state.key_findings.append("x" * 200_000)
    with pytest.raises(StateError):
        make().save(state)
    assert state.revision == 1
    assert make().load().key_findings == []
    assert not [path for path in tmp_path.rglob("*") if path.suffix == ".tmp"]
    state.key_findings.clear()
    make().save(state)


def test_a_disk_that_fails_to_sync_leaves_the_old_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = StateStore.directory(tmp_path)
    state = AgentState(goal="old")
    store.save(state)

    def fails(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fails)
    state.goal = "new"
    with pytest.raises(StateError, match="No space left on device"):
        store.save(state)
    assert store.load().goal == "old"


def test_a_lock_that_is_held_is_waited_for_and_then_said(tmp_path: Path) -> None:
    store = StateStore.directory(tmp_path, lock_timeout=0.05)
    with (
        exclusive(tmp_path / ".lock", timeout=1),
        pytest.raises(StateError, match=r"locked by another writer for 0\.05 s"),
    ):
        store.save(AgentState())
    store.save(AgentState())


def test_what_killed_writers_left_is_cleared_away(tmp_path: Path) -> None:
    (tmp_path / ".state.json.abc.tmp").write_text("half")
    (tmp_path / "mine.tmp").write_text("not ours")
    save_state(AgentState(goal="g"), tmp_path)
    assert {path.name for path in tmp_path.glob("*.tmp")} == {"mine.tmp"}
    assert not list(tmp_path.glob(".state.json.*.tmp"))


def test_links_that_the_disk_does_not_know_are_copies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*names: object) -> None:
        raise OSError("no links here")

    monkeypatch.setattr(os, "link", fails)
    store = StateStore.directory(tmp_path)
    state = AgentState(goal="first")
    store.save(state)
    state.goal = "second"
    store.save(state)
    assert json.loads((tmp_path / "state.json.bak").read_text())["goal"] == "first"


def test_two_states_of_one_database_do_not_meet(tmp_path: Path) -> None:
    one, two = (StateStore.sqlite(tmp_path / "s.db", key=key) for key in ("one", "two"))
    one.save(AgentState(goal="1"))
    with pytest.raises(StateNotFound):
        two.load()
    two.save(AgentState(goal="2"))
    assert (one.load().goal, two.load().goal) == ("1", "2")


def test_async_saves_do_not_block_each_other_into_losing(tmp_path: Path) -> None:
    store = StateStore.directory(tmp_path)

    async def add(number: int) -> None:
        await store.aupdate(lambda state: state.key_findings.append(f"f{number}"))

    async def all_at_once() -> None:
        await asyncio.gather(*(add(number) for number in range(12)))

    asyncio.run(all_at_once())
    assert sorted(map(str, store.load().key_findings)) == sorted(f"f{n}" for n in range(12))
    assert store.load().revision == 12


def test_a_path_alone_does_not_say_how_a_state_is_kept(tmp_path: Path) -> None:
    for place in (tmp_path, str(tmp_path)):
        with pytest.raises(ConfigurationError, match=r"StateStore\.directory"):
            StateStore(place)  # pyright: ignore[reportArgumentType] - what people write first
