"""Versions for key-value stores that only put, list and delete documents.

Such a store (LangGraph's, LlamaIndex's) has no "replace only if unchanged". So writers agree: each
revision of a record is decided by ballots among the writers that propose one, each of which writes
only documents of its own. This is Disk Paxos (Gafni and Lamport, 2003) on one disk. A writer that
is killed or stopped at any moment neither blocks the others nor undoes what was decided; its
proposal is then decided by another writer, or never.

It needs a store whose readers see every finished write: one primary server, or one process. A
record with versions takes about six times its size there, and a write about ten calls.
"""

from __future__ import annotations

import base64
import random
import uuid
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from muntin.errors import StateConflictError, StateError
from muntin.runtime import perform, sleep_call
from muntin.stores.base import RecordStore
from muntin.stores.record import ANY, Entry, Expected, Record, digest_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from muntin.runtime import CallFlow

__all__ = ("DocumentRecords", "Documents")

Documents: TypeAlias = "Mapping[str, Mapping[str, Any]]"
"""Documents of one group, by name."""

_WINNERS = 100
"""Decided proposals that a record names, so that a slow writer learns that its own was decided."""
_KEPT_SLOTS = 2
"""Revisions whose documents are kept. Some stores list their documents one after the other: a
writer that lists them while others decide must still meet their ballots, or what they decided."""
_ROUNDS = 60
"""Ballots a writer takes part in before it gives up."""
_SHORTEST_WAIT, _LONGEST_WAIT = 0.002, 0.25
"""Seconds a writer waits after a ballot that another one disturbed."""
_DECIDED = "decided-"
_BALLOT = "ballot-"


class DocumentRecords(RecordStore):
    """Keep records in a store of JSON documents.

    An adapter implements `document`, `documents`, `put_document` and `delete_document`, plain or
    async (with an `a` in front) or both. The group `""` holds one document per record. A record
    that is written with an expected version has a group of its own, named by `group_of`.
    """

    @abstractmethod
    def document(self, name: str) -> Mapping[str, Any] | None:
        """Return one document of the group `""`, or None."""

    @abstractmethod
    def documents(self, group: str) -> Documents:
        """Return all documents of a group, as they are at one moment."""

    @abstractmethod
    def put_document(self, group: str, name: str, document: dict[str, Any]) -> None:
        """Store a document in place of the one of the same name, if any."""

    @abstractmethod
    def delete_document(self, group: str, name: str) -> None:
        """Delete a document, if it is there."""

    @staticmethod
    def group_of(key: str) -> str:
        """Return the group that holds the versions of a record: 32 hex digits."""
        return digest_of(key.encode("utf-8"))[:32]

    # --- the methods of a store are policies here ------------------------------------------------

    def _asked(self, doing: str, verb: str, *args: Any) -> CallFlow[Any]:
        policies: dict[str, Callable[..., CallFlow[Any]]] = {
            "read": self._reading,
            "write": self._writing,
            "remove": self._removing,
            "listing": self._listing,
        }
        if verb not in policies:
            return (yield from super()._asked(doing, verb, *args))
        return (yield from policies[verb](*args))

    def read(self, key: str) -> Record | None:
        """Return the record of a key; see `RecordStore.read`."""
        return perform(self._reading(key))

    def write(self, key: str, body: bytes, expected: Expected, also: Mapping[str, bytes]) -> str:
        """Store a record; see `RecordStore.write`."""
        return perform(self._writing(key, body, expected, also))

    def remove(self, key: str) -> bool:
        """Remove a record; see `RecordStore.remove`."""
        return perform(self._removing(key))

    def listing(self) -> list[Entry]:
        """List the records; see `RecordStore.listing`."""
        return perform(self._listing())

    def _reading(self, key: str) -> CallFlow[Record | None]:
        document = yield from self._asked("read", "document", key)
        if document is None:
            return None
        if not _is_versioned(document):
            return _record(document)
        head = _head((yield from self._asked("read", "documents", self.group_of(key))))
        return head.record

    def _writing(
        self, key: str, body: bytes, expected: Expected, also: Mapping[str, bytes]
    ) -> CallFlow[str]:
        document = yield from self._asked("read", "document", key)
        if expected is ANY and (document is None or not _is_versioned(document)):
            version = yield from self._put_plain(key, body, document)
        else:
            if document is None or not _is_versioned(document):
                if expected != (None if document is None else _record(document).version):
                    raise _conflict(key, self.name)
                yield from self._begin_versions(key, document)
            version = yield from self._proposing(key, body, expected)
        for name, content in also.items():
            known = yield from self._asked("read", "document", name)
            if known is not None and _is_versioned(known):
                yield from self._proposing(name, content, ANY)
            else:
                yield from self._put_plain(name, content, known)
        return version

    def _removing(self, key: str) -> CallFlow[bool]:
        document = yield from self._asked("read", "document", key)
        if document is None:
            return False
        if _is_versioned(document):
            group = self.group_of(key)
            found = yield from self._asked("read", "documents", group)
            for name in found:
                yield from self._asked("write", "delete_document", group, name)
        yield from self._asked("write", "delete_document", "", key)
        return True

    def _listing(self) -> CallFlow[list[Entry]]:
        found: Documents = yield from self._asked("read", "documents", "")
        entries: list[Entry] = []
        for key, one in found.items():
            size, stored_at = _number(one, "size"), _number(one, "stored_at")
            if one.get("absent"):  # no version was decided, or a slow writer wrote this too late
                record = yield from self._reading(key)
                if record is None:
                    continue
                size, stored_at = len(record.body), record.stored_at
            entries.append(Entry(key=key, size=size, stored_at=stored_at))
        return sorted(entries, key=lambda entry: entry.stored_at)

    # --- records without versions ----------------------------------------------------------------

    def _put_plain(self, key: str, body: bytes, known: Mapping[str, Any] | None) -> CallFlow[str]:
        """Store a record that was never written with an expected version."""
        document = self._document(body)
        if known is not None and known.get("sha256") == document["sha256"]:
            document["version"] = known.get("version", document["version"])
        yield from self._asked("write", "put_document", "", key, document)
        return document["version"]

    def _document(self, body: bytes) -> dict[str, Any]:
        encoding, text = _encoded(body)
        return {
            "body": text,
            "encoding": encoding,
            "sha256": digest_of(body),
            "size": len(body),
            "stored_at": self._clock(),
            "version": uuid.uuid4().hex,
        }

    # --- records with versions -------------------------------------------------------------------

    def _begin_versions(self, key: str, document: Mapping[str, Any] | None) -> CallFlow[None]:
        """Mark a record as one with versions, before the first of them is decided."""
        if document is not None:  # one that was stored without versions becomes the first of them
            at_first: dict[str, Any] = {"revision": 0, "winners": []}
            first = {**document, **at_first, "id": document.get("version", "")}
            group = self.group_of(key)
            yield from self._asked("write", "put_document", group, _decided(0), first)
        absent = {"absent": True, "size": 0, "stored_at": self._clock()}
        kept = {name: document[name] for name in ("size", "stored_at")} if document else absent
        yield from self._asked("write", "put_document", "", key, {"versioned": True, **kept})

    def _proposing(self, key: str, body: bytes, expected: Expected) -> CallFlow[str]:
        """Propose a content for the next revision until it is decided or another one is."""
        mine = uuid.uuid4().hex
        proposal = {**self._document(body), "id": mine, "version": mine}
        wait = _SHORTEST_WAIT
        for _ in range(_ROUNDS):
            decided = yield from self._balloting(key, mine, proposal, expected)
            if decided:
                return mine
            yield sleep_call(random.uniform(0, wait))
            wait = min(2 * wait, _LONGEST_WAIT)
        raise StateError(f"cannot write {key!r} to {self.name}: too many writers at once")

    def _balloting(
        self, key: str, mine: str, proposal: dict[str, Any], expected: Expected
    ) -> CallFlow[bool]:
        """Take part in one ballot; return whether the own proposal was decided."""
        group = self.group_of(key)
        found: Documents = yield from self._asked("read", "documents", group)
        head = _head(found)
        if mine in head.winners:
            return True
        if expected is not ANY and expected != head.version:
            raise _conflict(key, self.name)
        slot = head.revision + 1
        own = _ballot(slot, mine)
        ballots = _ballots(found, slot)
        # The first phase: announce a number above all others, then see what others proposed.
        number = 1 + max((_number(one, "number") for one in ballots.values()), default=0)
        voted = {**ballots.get(own, {}), "number": number}
        yield from self._asked("write", "put_document", group, own, voted)
        found = yield from self._asked("read", "documents", group)
        if _is_disturbed(found, slot, own, number):
            return False
        votes = {
            (_number(one, "voted"), name): one["proposal"]
            for name, one in _ballots(found, slot).items()
            if "proposal" in one
        }
        chosen: dict[str, Any] = dict(votes[max(votes)]) if votes else proposal
        # The second phase: vote for it, unless a higher number was announced meanwhile.
        vote = {"number": number, "voted": number, "proposal": chosen}
        yield from self._asked("write", "put_document", group, own, vote)
        found = yield from self._asked("read", "documents", group)
        if _is_disturbed(found, slot, own, number):
            return False
        yield from self._decide(key, slot, chosen, head.winners, found)
        return chosen["id"] == mine

    def _decide(
        self,
        key: str,
        slot: int,
        chosen: dict[str, Any],
        winners: list[str],
        found: Documents,
    ) -> CallFlow[None]:
        """Store what was decided, and delete what led to older revisions."""
        group = self.group_of(key)
        decided = {**chosen, "revision": slot, "winners": [*winners, chosen["id"]][-_WINNERS:]}
        yield from self._asked("write", "put_document", group, _decided(slot), decided)
        for name in found:
            if _slot(name) <= slot - _KEPT_SLOTS:
                yield from self._asked("write", "delete_document", group, name)
        known = {"versioned": True, "size": chosen["size"], "stored_at": chosen["stored_at"]}
        yield from self._asked("write", "put_document", "", key, known)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Head:
    """The newest decided revision of a record."""

    revision: int
    record: Record | None
    winners: list[str]

    @property
    def version(self) -> str | None:
        return None if self.record is None else self.record.version


def _head(found: Documents) -> _Head:
    names = [name for name in found if name.startswith(_DECIDED)]
    if not names:
        return _Head(revision=0, record=None, winners=[])
    newest = found[max(names)]
    winners = cast("list[str]", newest.get("winners") or [])
    return _Head(
        revision=_number(newest, "revision"), record=_record(newest), winners=list(winners)
    )


def _is_disturbed(found: Documents, slot: int, own: str, number: int) -> bool:
    """Return whether a ballot has to be given up: decided, deleted, or overtaken by another."""
    if own not in found or _decided(slot) <= max(
        (name for name in found if name.startswith(_DECIDED)), default=""
    ):
        return True
    return any(
        (_number(one, "number"), name) > (number, own)
        for name, one in _ballots(found, slot).items()
    )


def _ballots(found: Documents, slot: int) -> dict[str, Mapping[str, Any]]:
    return {name: one for name, one in found.items() if name.startswith(_ballot(slot, ""))}


def _ballot(slot: int, writer: str) -> str:
    return f"{_BALLOT}{slot:012}-{writer}"


def _slot(name: str) -> int:
    """Return the revision that a document of a group belongs to."""
    number = name.split("-")[1]
    return int(number) if number.isdecimal() else 0


def _decided(revision: int) -> str:
    return f"{_DECIDED}{revision:012}"


def _is_versioned(document: Mapping[str, Any]) -> bool:
    return document.get("versioned") is True


def _conflict(key: str, name: str) -> StateConflictError:
    return StateConflictError(f"another writer changed {key!r} in {name}")


def _number(document: Mapping[str, Any], name: str) -> Any:
    """Return a number of a document; 0 where another program wrote something else."""
    value = document.get(name)
    return value if isinstance(value, (int, float)) else 0


def _encoded(body: bytes) -> tuple[str, str]:
    """Write a content as JSON text: readable where it is text without NULs, else base64."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:  # PostgreSQL takes no NUL in JSON
        return "base64", base64.b64encode(body).decode("ascii")
    return "utf-8", text


def _record(document: Mapping[str, Any]) -> Record:
    body, problem = _decoded(document)
    if not problem and digest_of(body) != document.get("sha256"):
        problem = "its content does not have the hash that was stored with it"
    return Record(
        body=body,
        version=str(document.get("version", "")),
        stored_at=float(_number(document, "stored_at")),
        problem=problem,
    )


def _decoded(document: Mapping[str, Any]) -> tuple[bytes, str]:
    text = document.get("body")
    if not isinstance(text, str):
        return b"", f"its content is {type(text).__name__}, not text"
    try:
        if document.get("encoding") == "base64":
            return base64.b64decode(text, validate=True), ""
        return text.encode("utf-8"), ""
    except ValueError as error:
        return b"", f"its content cannot be decoded: {error}"
