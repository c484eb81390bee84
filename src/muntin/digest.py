"""What old messages leave behind: `label: value` facts, newest last.

Nothing here knows how a message is shaped or where a digest is put.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from muntin.tokens import TokenCounter, count_tokens

__all__ = ("DigestEntry", "Fact", "digest", "facts")


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestEntry:
    """One old message, tool call or tool result, as plain values."""

    text: str = ""
    """What was said, or what the tool returned."""
    role: str = ""
    """`user`, `assistant`, `tool`, ...; empty when unknown."""
    tool: str = ""
    """Name of the tool for a call or a result; empty otherwise."""
    arguments: str = ""
    """Arguments of a call, as JSON; empty for everything that is not a call."""
    is_error: bool = False
    """Whether the result says that the call failed. Error texts are also recognised by their words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One value with the words that name it."""

    label: str
    """The word or key that names the value; empty when nothing does."""
    value: str
    """The value, verbatim."""
    entry: int
    """Index of the entry it was last seen in."""


_VALUE = re.compile(r"[A-Za-z0-9_#][A-Za-z0-9_\-./@#:]*[A-Za-z0-9_]")
_WORDS = re.compile(r"[A-Za-z]{3,}")


def facts(entries: Iterable[DigestEntry]) -> list[Fact]:
    """List the facts of old entries, each pair of label and value once, oldest first."""
    found: dict[tuple[str, str], Fact] = {}
    for at, entry in enumerate(entries):
        text = f"{entry.tool} {entry.arguments} {entry.text}"
        for match in _VALUE.finditer(text):
            value = match[0].strip(".,:;")
            if (
                len(value) < 4
                or len(value) > 60
                or not any(c.isdigit() or c in "/_@" for c in value)
            ):
                continue
            before = _WORDS.findall(text[max(0, match.start() - 40) : match.start()])
            label = before[-1] if before else ""
            found.pop((label, value), None)
            found[label, value] = Fact(label=label, value=value, entry=at)
    return list(found.values())


def digest(
    entries: Sequence[DigestEntry],
    *,
    max_tokens: int,
    counter: TokenCounter = count_tokens,
    known: str = "",
) -> str:
    """Write what old entries leave behind, newest last, never above `max_tokens`.

    Args:
        entries: The old messages, calls and results, oldest first.
        max_tokens: Tokens the digest may take, by `counter` on the whole text.
        counter: Counts the text.
        known: Text that stays in the context anyway: its values are not repeated.

    Returns:
        Lines like `reservation_id: 4XGCCM`; empty when there is no fact or none fits.
    """
    lines = [
        f"{fact.label}: {fact.value}" if fact.label else fact.value
        for fact in facts(entries)
        if fact.value not in known
    ]
    low, high = 0, len(lines)
    while low < high:
        middle = (low + high + 1) // 2
        if counter("\n".join(lines[-middle:])) <= max_tokens:
            low = middle
        else:
            high = middle - 1
    return "\n".join(lines[-low:]) if low else ""
