"""The values of a store: a record with its version, an entry of a listing, a valid key."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from muntin.errors import ConfigurationError

__all__ = ("ANY", "Entry", "Expected", "Record", "check_key", "digest_of")

_MOST_KEY_BYTES = 255
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Hold what a store keeps under one key."""

    body: bytes
    """The content."""
    version: str
    """Changes with each write; compared for equality only."""
    stored_at: float
    """When it was written last, in seconds since the epoch, by the clock of the writer."""
    problem: str = ""
    """Why the content is not what was written (its hash differs, it has another type); empty where
    it is intact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Describe one record in a listing."""

    key: str
    """Its key."""
    size: int
    """Bytes of its content."""
    stored_at: float
    """When it was written last, in seconds since the epoch."""


class _Any(Enum):
    ANY = "any version"


ANY: Final = _Any.ANY
"""Write whatever is stored under the key now."""

Expected: TypeAlias = "str | _Any | None"
"""The version a write replaces: that of a record, `None` where there must be none, or `ANY`."""


def check_key(key: object) -> str:
    """Return a key that every store can hold.

    Raises:
        ConfigurationError: It is not a str of 1 to 255 bytes of UTF-8 without control characters.
    """
    if not isinstance(key, str):
        raise ConfigurationError(f"a key must be a str, got {type(key).__name__}")
    control = _CONTROL.search(key)
    if control is not None:
        raise ConfigurationError(
            f"a key must not hold control characters, got {key!r} with {control[0]!r}"
        )
    try:
        size = len(key.encode("utf-8"))
    except UnicodeEncodeError:
        raise ConfigurationError(
            f"a key must be valid Unicode, got {key!r} with a lone surrogate"
        ) from None
    if not 1 <= size <= _MOST_KEY_BYTES:
        raise ConfigurationError(
            f"a key must have 1 to {_MOST_KEY_BYTES} bytes of UTF-8, got {size}: use a hash of it"
        )
    return key


def digest_of(body: bytes) -> str:
    """Return the SHA-256 of a content as hex digits."""
    return hashlib.sha256(body).hexdigest()
