"""The records of one state: their keys, what is stored now, and how a state becomes bytes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from muntin.errors import StateCorruptError, StateVersionError

if TYPE_CHECKING:
    from muntin.state.snapshot import Snapshot
    from muntin.stores import Expected, Record

__all__ = ("Held", "Keys", "parsed", "to_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """Name the records of one state."""

    state: str
    backup: str
    """The state before the last save."""
    corrupt: str
    """What `recover` set aside."""
    plan: str | None = None
    """The plan in words, for people; `None` writes none."""
    findings: str | None = None
    """Findings and failures in words; `None` writes none."""

    def all(self) -> list[str]:
        """Return those that are used."""
        found = (self.state, self.backup, self.corrupt, self.plan, self.findings)
        return [key for key in found if key is not None]


class Held(NamedTuple):
    """What is stored now: the record as it is, and the state in it where it can be read."""

    record: Record | None
    snapshot: Snapshot | None

    @property
    def version(self) -> Expected:
        """The version a write has to replace."""
        return None if self.record is None else self.record.version

    @property
    def revision(self) -> int:
        """The revision of the state, 0 where there is none."""
        return 0 if self.snapshot is None else self.snapshot.revision


def parsed(record: Record | None, what: str) -> Snapshot:
    """Read the state in a record, strictly; `what` is its name in errors.

    Raises:
        StateCorruptError: It is missing, damaged, empty, or not a whole state.
        StateVersionError: It was written by another version of the format.
    """
    from muntin.state.codec import from_saved

    if record is None:
        raise StateCorruptError(f"{what} is missing")
    if record.problem:
        raise StateCorruptError(f"{what} is damaged: {record.problem}")
    if not record.body:
        raise StateCorruptError(f"{what} is empty")
    try:
        return from_saved(json.loads(record.body.decode("utf-8")))
    except (ValueError, RecursionError) as error:
        raise StateCorruptError(f"{what} is not whole JSON: {error}") from error
    except StateVersionError as error:
        raise StateVersionError(f"{what}: {error}") from error
    except StateCorruptError as error:
        raise StateCorruptError(f"{what}: {error}") from error


def to_bytes(snapshot: Snapshot) -> bytes:
    """Write a state as the bytes that are stored."""
    from muntin.state.codec import to_saved

    saved: Any = to_saved(snapshot)
    return json.dumps(saved, ensure_ascii=False, indent=2).encode("utf-8") + b"\n"
