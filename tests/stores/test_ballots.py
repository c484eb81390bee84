"""Versions over a store that only puts, lists and deletes: no write is lost, whoever stops when."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from muntin import StateConflictError, StateCorruptError
from muntin.stores import ANY, DocumentRecords, Documents, RecordStore
from muntin.testing import RecordStoreSuite

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from pathlib import Path

    from muntin.runtime import Call


class Shelves(DocumentRecords):
    """The least a document store does, in a dict that stands for a server."""

    def __init__(self, groups: dict[str, dict[str, dict[str, Any]]], **limits: Any) -> None:
        super().__init__(**limits)
        self.groups = groups

    def document(self, name: str) -> Mapping[str, Any] | None:
        return self.groups.get("", {}).get(name)

    def documents(self, group: str) -> Documents:
        return dict(self.groups.get(group, {}))

    def put_document(self, group: str, name: str, document: dict[str, Any]) -> None:
        self.groups.setdefault(group, {})[name] = dict(document)

    def delete_document(self, group: str, name: str) -> None:
        self.groups.get(group, {}).pop(name, None)


_SERVERS: dict[Path, dict[str, dict[str, dict[str, Any]]]] = {}


class TestDocuments(RecordStoreSuite):
    def make(self, folder: Path, **limits: Any) -> RecordStore:
        return Shelves(_SERVERS.setdefault(folder, {}), **limits)


class Writer:
    """A writer that reads, adds its word and writes, one call to the server at a time."""

    def __init__(self, server: dict[str, dict[str, dict[str, Any]]], word: str) -> None:
        self.word = word
        self.done = False
        self._store = Shelves(server)
        self._steps = self._appending()

    def _appending(self) -> Generator[Call, Any, None]:
        while True:
            record = yield from self._store.getting("log")
            body = b"" if record is None else record.body
            version = None if record is None else record.version
            try:
                yield from self._store.putting(
                    "log", body + f"{self.word} ".encode(), expected=version
                )
            except StateConflictError:
                continue
            return

    def step(self, answer: Any) -> Call | None:
        """Go on with an answer to the next call; None at the end."""
        try:
            return self._steps.send(answer)
        except StopIteration:
            self.done = True
            return None


def interleave(seed: int, writers: int, stops: float) -> tuple[list[Writer], list[str]]:
    """Run writers one call at a time in a random order; some stop for good at a random call."""
    moves = random.Random(seed)
    server: dict[str, dict[str, dict[str, Any]]] = {}
    at_work = {Writer(server, f"w{number}"): None for number in range(writers)}
    everyone = list(at_work)
    calls: dict[Writer, Call | None] = {writer: writer.step(None) for writer in everyone}
    for _ in range(20_000):
        alive = [writer for writer in everyone if calls[writer] is not None]
        if not alive:
            break
        writer = moves.choice(alive)
        call = calls[writer]
        assert call is not None
        if stops and moves.random() < stops and len(alive) > 1:
            calls[writer] = None
            continue
        is_wait = call.twin is not None and "sleep" in repr(call.plain)
        calls[writer] = writer.step(None if is_wait else call.plain())
    record = Shelves(server).get("log")
    return everyone, [] if record is None else record.body.decode().split()


@pytest.mark.parametrize("seed", range(60))
def test_every_finished_write_is_there_once_in_any_interleaving(seed: int) -> None:
    """Two writers that both believe they were first lose one of the two findings."""
    writers, words = interleave(seed, writers=2 + seed % 3, stops=0.0)
    assert all(writer.done for writer in writers)
    assert sorted(words) == sorted(writer.word for writer in writers)


@pytest.mark.parametrize("seed", range(60))
def test_writers_that_are_killed_block_nobody_and_undo_nothing(seed: int) -> None:
    """A deploy kills a worker between any two calls; the others must go on with what was saved."""
    writers, words = interleave(1_000 + seed, writers=4, stops=0.03)
    assert len(words) == len(set(words))
    finished = {writer.word for writer in writers if writer.done}
    assert finished <= set(words)


def test_a_write_during_which_the_record_is_deleted_is_refused() -> None:
    """A slow worker must not bring back what a user had removed meanwhile."""

    class Slow(Shelves):
        def put_document(self, group: str, name: str, document: dict[str, Any]) -> None:
            super().put_document(group, name, document)
            if group and name.startswith("ballot"):
                Shelves(self.groups).delete("k")

    server: dict[str, dict[str, dict[str, Any]]] = {}
    version = Shelves(server).put("k", b"secret", expected=None)
    with pytest.raises(StateConflictError):
        Slow(server).put("k", b"secret and more", expected=version)
    assert Shelves(server).get("k") is None


def test_a_plain_record_becomes_a_versioned_one() -> None:
    store = Shelves({})
    version = store.put("k", b"plain")
    store.put("k", b"second", expected=version)
    with pytest.raises(StateConflictError):
        store.put("k", b"late", expected=version)
    store.put("k", b"third", expected=ANY)
    record = store.get("k")
    assert record is not None
    assert record.body == b"third"
    assert [entry.size for entry in store.entries()] == [5]


def test_old_versions_and_ballots_do_not_pile_up() -> None:
    """A state that is saved a thousand times must not keep a thousand copies."""
    server: dict[str, dict[str, dict[str, Any]]] = {}
    store = Shelves(server)
    version = store.put("k", b"0", expected=None)
    for number in range(30):
        version = store.put("k", f"{number}".encode(), expected=version)
    assert sum(map(len, server.values())) <= 7
    store.delete("k")
    assert sum(map(len, server.values())) == 0


@pytest.mark.parametrize(
    "spoiled",
    [
        {"body": "changed"},
        {"body": 5},
        {"body": "%%%", "encoding": "base64"},
        {"sha256": "0" * 64},
        {"body": None},
    ],
)
def test_a_changed_document_is_reported(spoiled: dict[str, Any]) -> None:
    """A foreign program that edits the table must not change what a model is told in silence."""
    server: dict[str, dict[str, dict[str, Any]]] = {}
    store = Shelves(server)
    store.put("plain", b"x" * 50)
    store.put("versioned", b"x" * 50, expected=None)
    for group, key in (("", "plain"), (store.group_of("versioned"), "versioned")):
        for document in server[group].values():
            document.update(spoiled)
        with pytest.raises(StateCorruptError, match="damaged"):
            store.get(key)
        store.put(key, b"new")
        record = store.get(key)
        assert record is not None
        assert record.body == b"new"
