"""Keep an agent's state where it survives: whole or not at all, and nobody's work overwritten.

A save is serialised before anything is opened, written beside the old state and put in its place in
one step, so whoever loads meets the old state or the new one, whenever a writer was killed. Every
save counts up a revision; who saves over one it has not seen is told so (`StateConflictError`) and
can `merge`. The state before the last save is kept, and `recover` goes back to it.

A folder holds `state.json` (the truth), `PLAN.md` and `findings.md` (for readers; never read back),
`state.json.bak` and two lock files. A SQLite file holds any number of states by key.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from muntin.errors import (
    ConfigurationError,
    StateConflictError,
    StateCorruptError,
    StateNotFound,
    StateVersionError,
)
from muntin.state.agent_state import AgentState
from muntin.state.places import Folder, Row
from muntin.state.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike
    from typing import TypeAlias

    from muntin.state.places import Place, Slot

    _Path: TypeAlias = str | PathLike[str]

__all__ = ("StateStore", "load_state", "save_state")

_LOCK_SECONDS = 10.0


class StateStore:
    """Save and load one agent's state.

    Stores may be shared by threads and processes. The async twins (`aload`, `asave`, `aupdate`,
    `amerge`) do the same in a thread.

    ```python
    import tempfile

    from muntin import AgentState, StateStore

    with tempfile.TemporaryDirectory() as folder:
        store = StateStore.directory(folder)
        store.save(AgentState(goal="Rebook the flight"))
        state = store.load()
        state.key_findings.append("seat 14C is free")
        store.save(state)
        print(store.load().key_findings, store.load().revision)
    #> ['seat 14C is free'] 2
    ```
    """

    def __init__(self, place: Place) -> None:
        if isinstance(place, (str, PurePath)):
            raise ConfigurationError(
                f"say how {place} is kept: StateStore.directory(...) or StateStore.sqlite(...)"
            )
        self._place = place
        self.name = place.name

    @staticmethod
    def directory(path: _Path, *, lock_timeout: float = _LOCK_SECONDS) -> StateStore:
        """Keep one state in a folder, which is made when missing.

        Args:
            path: The folder.
            lock_timeout: Seconds to wait for another writer.
        """
        return StateStore(Folder(Path(path), lock_timeout))

    @staticmethod
    def sqlite(
        path: _Path, *, key: str = "agent", lock_timeout: float = _LOCK_SECONDS
    ) -> StateStore:
        """Keep a state under a key in a SQLite file, which is made when missing.

        Args:
            path: The file.
            key: Which of its states this is.
            lock_timeout: Seconds to wait for another writer.
        """
        return StateStore(Row(Path(path), key, lock_timeout))

    def load(self) -> AgentState:
        """Return the saved state.

        Raises:
            StateNotFound: None was saved.
            StateCorruptError: What is there cannot be read; `recover` may go back one save.
            StateVersionError: It was written by another version of the format.
            StateError: It could not be reached.
        """
        with self._place.reading() as slot:
            return AgentState.of(self._snapshot(slot))

    def save(self, state: AgentState, *, overwrite: bool = False) -> None:
        """Save a state, and set its `revision` to the number of this save.

        Args:
            state: What to save. Nothing but its `revision` is changed.
            overwrite: Whether to save over a state that this one was not loaded from.

        Raises:
            ConfigurationError: The state holds what cannot be saved.
            StateConflictError: Somebody else saved since it was loaded.
            StateCorruptError: What is there cannot be read, so it is not replaced unasked.
            StateVersionError: What is there is of another version of the format.
            StateError: It could not be written; what was there is as it was.
        """
        snapshot = state.snapshot()
        with self._place.writing() as slot:
            held = self._held(slot, overwrite=overwrite)
            found = held.revision if held else 0
            if not overwrite and found != snapshot.revision:
                raise StateConflictError(
                    f"{self.name} holds revision {found}, this state goes back to revision "
                    f"{snapshot.revision}: merge() it, or load() and change again"
                )
            saved = replace(snapshot, revision=max(found, snapshot.revision) + 1)
            slot.write(saved, keep=held is not None)
        state.revision = saved.revision

    def update(self, change: Callable[[AgentState], object]) -> AgentState:
        """Load, change and save in one step that no other writer can come between.

        Args:
            change: Changes the state it is given in place. Nobody else can save while it runs, so
                it should not wait for a model; if it raises, nothing is saved.

        Returns:
            The state as saved; a new one where none was saved before.

        Raises:
            StateError: As in `save`, except that there is no conflict.
        """
        with self._place.writing() as slot:
            held = self._held(slot, overwrite=False)
            state = AgentState.of(held or Snapshot())
            try:
                change(state)
            except Exception as error:  # noqa: BLE001 - raised below, not to pass for the store's own
                failure = error
            else:
                return self._replace(slot, state.snapshot(), held)
        raise failure

    def merge(self, state: AgentState) -> AgentState:
        """Save a state together with what others saved meanwhile.

        Args:
            state: This writer's state; it is not changed. `AgentState.merged_with` says who wins.

        Returns:
            The united state as saved, to go on with.

        Raises:
            StateError: As in `save`, except that there is no conflict.
        """
        mine = state.snapshot()
        with self._place.writing() as slot:
            held = self._held(slot, overwrite=False)
            return self._replace(slot, mine.merged_with(held) if held else mine, held)

    def recover(self) -> AgentState:
        """Go back to the state before the last save where the last one cannot be read.

        What could not be read is set aside (`state.json.corrupt`, or the column `corrupt`). A state
        that can be read is returned as it is.

        Raises:
            StateNotFound: Nothing was saved.
            StateCorruptError: The state before cannot be read either.
            StateVersionError: It is of another version of the format.
            StateError: It could not be reached.
        """
        with self._place.writing() as slot:
            try:
                return AgentState.of(self._snapshot(slot))
            except StateCorruptError:
                before = self._parse(slot.read_backup(), "the state before it")
                slot.restore()
                return AgentState.of(before)

    async def aload(self) -> AgentState:
        """Return the saved state; see `load`."""
        import asyncio

        return await asyncio.to_thread(self.load)

    async def asave(self, state: AgentState, *, overwrite: bool = False) -> None:
        """Save a state; see `save`."""
        import asyncio

        await asyncio.to_thread(self.save, state, overwrite=overwrite)

    async def aupdate(self, change: Callable[[AgentState], object]) -> AgentState:
        """Load, change and save in one step; see `update`. `change` runs in a thread."""
        import asyncio

        return await asyncio.to_thread(self.update, change)

    async def amerge(self, state: AgentState) -> AgentState:
        """Save a state together with what others saved meanwhile; see `merge`."""
        import asyncio

        return await asyncio.to_thread(self.merge, state)

    def _snapshot(self, slot: Slot) -> Snapshot:
        data = slot.read()
        if data is None:
            raise StateNotFound(f"no state was saved in {self.name}: save() one first")
        try:
            return self._parse(data, self.name)
        except StateCorruptError as error:
            raise StateCorruptError(f"{error}. {self._remedy(slot)}") from error

    def _held(self, slot: Slot, *, overwrite: bool) -> Snapshot | None:
        """Return what is saved now; None for nothing, or for ruins that may be overwritten."""
        try:
            return self._snapshot(slot)
        except StateNotFound:
            return None
        except (StateCorruptError, StateVersionError):
            if overwrite:
                return None
            raise

    def _replace(self, slot: Slot, snapshot: Snapshot, held: Snapshot | None) -> AgentState:
        saved = replace(snapshot, revision=(held.revision if held else 0) + 1)
        slot.write(saved, keep=held is not None)
        return AgentState.of(saved)

    def _remedy(self, slot: Slot) -> str:
        try:
            before = self._parse(slot.read_backup(), "")
        except (StateCorruptError, StateVersionError):
            return "There is no readable state from before it"
        return f"recover() goes back to revision {before.revision}, the state before it"

    def _parse(self, data: bytes | None, what: str) -> Snapshot:
        from muntin.state.codec import from_saved

        if not data:
            raise StateCorruptError(f"{what} is {'missing' if data is None else 'empty'}")
        try:
            return from_saved(json.loads(data.decode("utf-8")))
        except (ValueError, RecursionError) as error:
            raise StateCorruptError(f"{what} is not whole JSON: {error}") from error
        except StateVersionError as error:
            raise StateVersionError(f"{what}: {error}") from error
        except StateCorruptError as error:
            raise StateCorruptError(f"{what}: {error}") from error


def save_state(state: AgentState, path: _Path = ".agent") -> None:
    """Save a state into a folder; see `StateStore.save`."""
    StateStore.directory(path).save(state)


def load_state(path: _Path = ".agent") -> AgentState:
    """Load the state of a folder; see `StateStore.load`."""
    return StateStore.directory(path).load()
