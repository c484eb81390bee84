"""A recap and the form it is saved in.

A recap identifies the messages it covers by the digest of the prefix they form. So it can be saved
and loaded in another process, and is never mistaken for the recap of another conversation.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, cast

from muntin.errors import StateCorruptError, StateVersionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ("SCHEMA", "Recap", "read_recaps", "write_recaps")

SCHEMA = "muntin.recaps/1"
"""Name and version of the format recaps are saved in."""
_REQUIRED, _OPTIONAL = {"digest", "covered", "held", "text"}, {"rules", "framed", "written"}
"""Keys of a saved recap; the optional ones are left out if empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recap:
    """The recap of the first messages of a conversation."""

    digest: str
    """Digest of the covered prefix, as hex."""
    covered: int
    """Messages in the covered prefix; leading system messages and notes are not counted."""
    held: tuple[int, ...] = ()
    """Which of these stay verbatim next to the recap: pinned, unanswered, the open question."""
    text: str
    """The recap without its prefix, frame and rules."""
    rules: tuple[str, ...] = ()
    """Standing rules of the covered messages."""
    framed: bool = False
    """Whether it is written with a frame."""
    written: int = 0
    """Messages there were when it was made, counted as in `covered`; 0 if they held no bound
    reasoning. Reasoning in later ones is bound to the recap, in earlier ones to what it replaced.
    """

    @property
    def key(self) -> bytes:
        """The digest as a trail's chain holds it."""
        return bytes.fromhex(self.digest)


def write_recaps(recaps: Iterable[Recap]) -> dict[str, Any]:
    """Write recaps as plain JSON types."""
    return {
        "schema": SCHEMA,
        "recaps": [_written(recap) for recap in recaps],
    }


def read_recaps(saved: Mapping[str, Any]) -> list[Recap]:
    """Read what `write_recaps` wrote.

    Raises:
        StateVersionError: Another version of the library wrote it.
        StateCorruptError: It is not what was written.
    """
    schema = saved.get("schema")
    if schema != SCHEMA:
        if isinstance(schema, str) and schema.startswith(SCHEMA.partition("/")[0]):
            raise StateVersionError(
                f"recaps were saved as {schema!r}, this version reads {SCHEMA!r}"
            )
        raise StateCorruptError(f"not saved recaps: schema is {schema!r}")
    entries = saved.get("recaps")
    if not isinstance(entries, list):
        raise StateCorruptError("not saved recaps: 'recaps' is not a list")
    return [_read(entry) for entry in cast("list[object]", entries)]


def _written(recap: Recap) -> dict[str, Any]:
    written = {**asdict(recap), "held": list(recap.held), "rules": list(recap.rules)}
    return {key: value for key, value in written.items() if value or key not in _OPTIONAL}


def _read(saved: object) -> Recap:
    shown = repr(saved)[:200]
    entry = cast("dict[str, Any]", saved) if isinstance(saved, dict) else {}
    if not entry.keys() >= _REQUIRED or not entry.keys() <= _REQUIRED | _OPTIONAL:
        raise StateCorruptError(f"not a saved recap: {shown}")
    digest, covered, held, text = (entry[key] for key in ("digest", "covered", "held", "text"))
    if type(covered) is not int or covered < 1:
        raise StateCorruptError(f"a saved recap covers {covered!r} messages")
    if not isinstance(text, str) or not text.strip():
        raise StateCorruptError("a saved recap is empty")
    if not isinstance(digest, str) or not _is_hex(digest):
        raise StateCorruptError(f"a saved recap has the digest {digest!r}")
    places = cast("Sequence[object]", held) if isinstance(held, (list, tuple)) else (None,)
    if not all(isinstance(place, int) and 0 <= place < covered for place in places):
        raise StateCorruptError(f"a saved recap of {covered} messages holds back {held!r}")
    rules, framed = entry.get("rules", []), entry.get("framed", False)
    written = entry.get("written", 0)
    if type(written) is not int or written < 0:
        raise StateCorruptError(f"a saved recap was written after {written!r} messages")
    if not isinstance(rules, list) or not all(
        isinstance(rule, str) for rule in cast("list[object]", rules)
    ):
        raise StateCorruptError(f"a saved recap has the rules {rules!r}")
    if not isinstance(framed, bool):
        raise StateCorruptError(f"framed of a saved recap is {framed!r}, not true or false")
    return Recap(
        digest=digest,
        covered=covered,
        held=cast("tuple[int, ...]", tuple(places)),
        text=text,
        rules=tuple(cast("list[str]", rules)),
        framed=framed,
        written=written,
    )


def _is_hex(digest: str) -> bool:
    try:
        return len(bytes.fromhex(digest)) > 0
    except ValueError:
        return False
