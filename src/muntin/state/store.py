"""Save and load an agent's state: whole or not at all, without overwriting another writer's work.

A state is serialised before anything is opened and replaces the old one in one step, so a reader
meets the old state or the new one, whenever a writer was killed. Each save adds one to the
revision; a save over a state that it was not loaded from is refused (`StateConflictError`) and can
be merged. The state before the last save is kept, and `recover` goes back to it.

A folder holds `state.json` (the state), `PLAN.md` and `findings.md` (for people; never read back),
`state.json.bak` and two lock files. Any other `RecordStore` holds any number of states by key.
"""

from __future__ import annotations

import random
import time
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, cast

from muntin.errors import (
    ConfigurationError,
    StateConflictError,
    StateCorruptError,
    StateNotFound,
    StateVersionError,
)
from muntin.runtime import aperform, perform, sleep_call
from muntin.state.agent_state import AgentState
from muntin.state.records import Held, Keys, parsed, to_bytes
from muntin.state.snapshot import Snapshot
from muntin.stores import LOCK_SECONDS, FolderRecords, RecordStore, SqliteRecords

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike
    from typing import TypeAlias

    from muntin.runtime import CallFlow

    _Path: TypeAlias = str | PathLike[str]

__all__ = ("StateStore", "load_state", "save_state")

_SHORTEST_WAIT, _LONGEST_WAIT = 0.001, 0.1
"""Seconds before a change is tried again after another writer came first."""


class StateStore:
    """Save and load one agent's state.

    Made by `directory(path)` or `sqlite(path)`, or over any `RecordStore`, for instance one in a
    database that several machines share. Stores may be shared by threads and processes. Each method
    has an async twin with an `a` in front.

    Args:
        records: Where the state is kept. Its `max_age` ends a state that long after its last save.
        key: Which of the states in it this is. One that comes from a user is 1 to 240 bytes of
            UTF-8 without control characters.
        timeout: Seconds for which `update` and `merge` try again when other writers come first.

    Raises:
        ConfigurationError: `records` is not a `RecordStore`.

    ```python
    import tempfile

    from muntin import AgentState, StateStore

    with tempfile.TemporaryDirectory() as folder:
        store = StateStore.directory(folder)
        store.save(AgentState(goal="Move the archive"))
        state = store.load()
        state.key_findings.append("disk 3 is full")
        store.save(state)
        print(store.load().key_findings, store.load().revision)
    #> ['disk 3 is full'] 2
    ```
    """

    def __init__(
        self, records: RecordStore, *, key: str = "agent", timeout: float = LOCK_SECONDS
    ) -> None:
        if isinstance(cast("object", records), (str, PurePath)):
            raise ConfigurationError(
                f"say how {records} is kept: StateStore.directory(...) or StateStore.sqlite(...)"
            )
        if not isinstance(cast("object", records), RecordStore):
            raise ConfigurationError(
                f"a StateStore needs a RecordStore, got {type(records).__name__}"
            )
        self.records = records
        self.name = f"{records.name} under {key!r}"
        self._timeout = timeout
        self._keys = Keys(state=key, backup=f"{key}.previous", corrupt=f"{key}.corrupt")

    @staticmethod
    def directory(path: _Path, *, lock_timeout: float = LOCK_SECONDS) -> StateStore:
        """Keep one state in a folder, which is made when missing.

        Args:
            path: The folder.
            lock_timeout: Seconds to wait for another writer.

        Raises:
            ConfigurationError: The path holds a NUL or a lone surrogate.
        """
        records = FolderRecords(path, lock_timeout=lock_timeout)
        store = StateStore(records, timeout=lock_timeout)
        store.name = str(records.path / "state.json")
        store._keys = Keys(
            state="state.json",
            backup="state.json.bak",
            corrupt="state.json.corrupt",
            plan="PLAN.md",
            findings="findings.md",
        )
        return store

    @staticmethod
    def sqlite(
        path: _Path, *, key: str = "agent", lock_timeout: float = LOCK_SECONDS
    ) -> StateStore:
        """Keep a state under a key in a SQLite file, which is made when missing.

        Args:
            path: The file.
            key: Which of its states this is.
            lock_timeout: Seconds to wait for another writer.

        Raises:
            ConfigurationError: The path holds a NUL or a lone surrogate.
        """
        records = SqliteRecords(path, table="agent_states", lock_timeout=lock_timeout)
        return StateStore(records, key=key, timeout=lock_timeout)

    def load(self) -> AgentState:
        """Return the saved state.

        Raises:
            StateNotFound: None was saved.
            StateCorruptError: What is there cannot be read; `recover` may go back one save.
            StateVersionError: It was written by another version of the format.
            StateError: It could not be reached.
        """
        return perform(self._loading())

    async def aload(self) -> AgentState:
        """Return the saved state; see `load`."""
        return await aperform(self._loading())

    def save(self, state: AgentState, *, overwrite: bool = False) -> None:
        """Save a state, and set its `revision` to the number of this save.

        Args:
            state: What to save. Nothing but its `revision` is changed.
            overwrite: Whether to save over a state that this one was not loaded from.

        Raises:
            ConfigurationError: The state holds what cannot be saved.
            StateConflictError: Another writer saved since it was loaded.
            StateCorruptError: What is there cannot be read, so it is not replaced unasked.
            StateVersionError: What is there is of another version of the format.
            StateError: It could not be written; what was there is as it was.
        """
        perform(self._saving(state, overwrite=overwrite))

    async def asave(self, state: AgentState, *, overwrite: bool = False) -> None:
        """Save a state; see `save`."""
        await aperform(self._saving(state, overwrite=overwrite))

    def update(self, change: Callable[[AgentState], object]) -> AgentState:
        """Load, change and save so that no save of another writer is lost.

        Args:
            change: Changes the state it is given in place. It is called again, with the newer
                state, when another writer saved meanwhile, so it should be quick and have no other
                effect. If it raises, nothing is saved.

        Returns:
            The state as saved; a new one where none was saved before.

        Raises:
            StateConflictError: Other writers came first for the whole timeout.
            StateError: As in `save`.
        """
        return perform(self._updating(change))

    async def aupdate(self, change: Callable[[AgentState], object]) -> AgentState:
        """Load, change and save; see `update`. `change` runs on the event loop."""
        return await aperform(self._updating(change))

    def merge(self, state: AgentState) -> AgentState:
        """Save a state together with what others saved meanwhile.

        Args:
            state: This writer's state; it is not changed. `AgentState.merged_with` decides what
                holds where both differ.

        Returns:
            The united state as saved, to go on with.

        Raises:
            StateConflictError: Other writers came first for the whole timeout.
            StateError: As in `save`.
        """
        return perform(self._merging(state))

    async def amerge(self, state: AgentState) -> AgentState:
        """Save a state together with what others saved meanwhile; see `merge`."""
        return await aperform(self._merging(state))

    def recover(self) -> AgentState:
        """Go back to the state before the last save where the last one cannot be read.

        What could not be read is set aside (`state.json.corrupt`, or the key with `.corrupt`). A
        state that can be read is returned as it is.

        Raises:
            StateNotFound: Nothing was saved.
            StateCorruptError: The state before cannot be read either.
            StateVersionError: It is of another version of the format.
            StateError: It could not be reached.
        """
        return perform(self._recovering())

    async def arecover(self) -> AgentState:
        """Go back to the state before the last save; see `recover`."""
        return await aperform(self._recovering())

    def delete(self) -> bool:
        """Remove the state and everything kept with it; return whether there was one.

        Raises:
            StateError: It could not be removed.
        """
        return perform(self._deleting())

    async def adelete(self) -> bool:
        """Remove the state; see `delete`."""
        return await aperform(self._deleting())

    # --- policies --------------------------------------------------------------------------------

    def _loading(self) -> CallFlow[AgentState]:
        held = yield from self._held()
        if held.snapshot is None:
            raise StateNotFound(f"no state was saved in {self.name}: save() one first")
        return AgentState.of(held.snapshot)

    def _saving(self, state: AgentState, *, overwrite: bool) -> CallFlow[None]:
        snapshot = state.snapshot()

        def next_of(held: Held) -> Snapshot:
            if not overwrite and held.revision != snapshot.revision:
                raise StateConflictError(
                    f"{self.name} holds revision {held.revision}, this state goes back to revision "
                    f"{snapshot.revision}: merge() it, or load() and change again"
                )
            return replace(snapshot, revision=max(held.revision, snapshot.revision) + 1)

        saved = yield from self._replacing(next_of, overwrite=overwrite)
        state.revision = saved.revision

    def _updating(self, change: Callable[[AgentState], object]) -> CallFlow[AgentState]:
        def next_of(held: Held) -> Snapshot:
            state = AgentState.of(held.snapshot or Snapshot())
            change(state)
            return replace(state.snapshot(), revision=held.revision + 1)

        return AgentState.of((yield from self._replacing(next_of)))

    def _merging(self, state: AgentState) -> CallFlow[AgentState]:
        mine = state.snapshot()

        def next_of(held: Held) -> Snapshot:
            merged = mine.merged_with(held.snapshot) if held.snapshot else mine
            return replace(merged, revision=held.revision + 1)

        return AgentState.of((yield from self._replacing(next_of)))

    def _recovering(self) -> CallFlow[AgentState]:
        record = yield from self.records.looking(self._keys.state)
        try:
            held = yield from self._held()
        except StateCorruptError:
            if record is None:
                raise
            backup = yield from self.records.looking(self._keys.backup)
            before = parsed(backup, "the state before it")
            yield from self.records.putting(
                self._keys.state,
                to_bytes(before),
                expected=record.version,
                also={self._keys.corrupt: record.body},
            )
            return AgentState.of(before)
        if held.snapshot is None:
            raise StateNotFound(f"no state was saved in {self.name}: save() one first")
        return AgentState.of(held.snapshot)

    def _deleting(self) -> CallFlow[bool]:
        found = False
        for key in self._keys.all():
            removed = yield from self.records.deleting(key)
            found = found or (removed and key == self._keys.state)
        return found

    def _replacing(
        self, next_of: Callable[[Held], Snapshot], *, overwrite: bool = False
    ) -> CallFlow[Snapshot]:
        """Replace what is stored by what follows from it, again if another writer came first."""
        until = time.monotonic() + self._timeout
        wait = _SHORTEST_WAIT
        while True:
            held = yield from self._held(overwrite=overwrite)
            saved = next_of(held)
            try:
                yield from self.records.putting(
                    self._keys.state,
                    to_bytes(saved),
                    expected=held.version,
                    also=self._also(saved, held),
                )
            except StateConflictError as error:
                if time.monotonic() >= until:
                    raise StateConflictError(
                        f"other writers changed {self.name} first for {self._timeout:g} s"
                    ) from error
            else:
                return saved
            yield sleep_call(random.uniform(0, wait))
            wait = min(2 * wait, _LONGEST_WAIT)

    def _also(self, saved: Snapshot, held: Held) -> dict[str, bytes]:
        """Return what is written together with a state: the one before it, and words for people."""
        from muntin.state.render import state_text

        also: dict[str, bytes] = {}
        if held.record is not None and held.snapshot is not None:
            also[self._keys.backup] = held.record.body
        if self._keys.plan is not None:
            plan = replace(saved, findings=(), failures=())
            also[self._keys.plan] = f"{state_text(plan)}\n".encode()
        if self._keys.findings is not None:
            found = Snapshot(findings=saved.findings, failures=saved.failures)
            also[self._keys.findings] = f"{state_text(found)}\n".encode()
        return also

    def _held(self, *, overwrite: bool = False) -> CallFlow[Held]:
        """Return what is stored; without its state if that cannot be read and may be replaced."""
        record = yield from self.records.looking(self._keys.state)
        if record is None:
            return Held(None, None)
        try:
            return Held(record, parsed(record, self.name))
        except StateCorruptError as error:
            if overwrite:
                return Held(record, None)
            remedy = yield from self._remedy()
            raise StateCorruptError(f"{error}. {remedy}") from error
        except StateVersionError:
            if overwrite:
                return Held(record, None)
            raise

    def _remedy(self) -> CallFlow[str]:
        try:
            backup = yield from self.records.looking(self._keys.backup)
            before = parsed(backup, "")
        except (StateCorruptError, StateVersionError):
            return "There is no readable state from before it"
        return f"recover() goes back to revision {before.revision}, the state before it"


def save_state(state: AgentState, path: _Path = ".agent") -> None:
    """Save a state into a folder; see `StateStore.save`."""
    StateStore.directory(path).save(state)


def load_state(path: _Path = ".agent") -> AgentState:
    """Load the state of a folder; see `StateStore.load`."""
    return StateStore.directory(path).load()
