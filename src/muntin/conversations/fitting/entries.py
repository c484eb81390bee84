"""Read messages of a draft as entries of a digest or lines of a transcript."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muntin.conversations.digest import DigestEntry
from muntin.conversations.fitting.shortening import ends_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from muntin.conversations.fitting.draft import Draft

__all__ = (
    "CHARACTERS_PER_TOKEN",
    "digested",
    "entries_of",
    "indented",
    "newest_entries",
    "transcript_line",
)

_ENTRY_CHARACTERS = 20_000
"""Characters of one message that are read where nothing else bounds them."""
CHARACTERS_PER_TOKEN = 100
"""Characters of old text read for each token that may be written about it."""
_DIGESTED_CHARACTERS = 100_000
"""Characters of old text that a digest reads at most, next to the first request."""


def digested(draft: Draft, indices: Sequence[int], tokens: int) -> list[DigestEntry]:
    """Read messages for a digest of `tokens`."""
    return newest_entries(draft, indices, min(tokens * CHARACTERS_PER_TOKEN, _DIGESTED_CHARACTERS))


def newest_entries(draft: Draft, indices: Sequence[int], characters: int) -> list[DigestEntry]:
    """Read messages newest first until enough is seen, and the first request; oldest first out."""
    entries: list[DigestEntry] = []
    newest_first = sorted(indices, reverse=True)
    for at, index in enumerate(newest_first):
        if characters <= 0:
            # The first request is read however long ago it was.
            first = draft.outline.first_user
            if first in newest_first[at:]:
                entries += reversed(list(_read(draft, first, _ENTRY_CHARACTERS)))
            break
        found = list(_read(draft, index, characters))
        characters -= sum(len(entry.text) + len(entry.arguments) for entry in found)
        entries += reversed(found)
    entries.reverse()
    return entries


def entries_of(draft: Draft, indices: Iterable[int]) -> list[DigestEntry]:
    """Read messages as entries, oldest first, each up to a sane length."""
    return [entry for index in indices for entry in _read(draft, index, _ENTRY_CHARACTERS)]


def _read(draft: Draft, index: int, characters: int) -> Iterator[DigestEntry]:
    view = draft.views[index]
    # The heading of a note from an earlier fit is not a fact.
    text = draft.body(view)
    stubs = [] if view.results else [thing.stub for thing in view.media]
    if text or stubs:
        yield DigestEntry(text=ends_of("\n".join([text, *stubs]), characters), role=view.role)
    for call in view.calls:
        yield DigestEntry(
            tool=call.name, arguments=ends_of(call.arguments, characters), call_id=call.id
        )
    for result in view.results:
        yield DigestEntry(
            text=ends_of(result.text, characters),
            role="tool",
            tool=view.name or "",
            call_id=result.call_id,
            is_error=result.is_error,
        )


def transcript_line(entry: DigestEntry) -> str:
    """Write an entry as one line of a transcript; no text in it can start a line of its own."""
    return f"{entry.tool or entry.role}: {indented(entry.arguments or entry.text)}"


def indented(text: str) -> str:
    """Indent continuation lines, so that no text starts a line where a speaker would."""
    # Every Unicode line separator counts as a line break.
    return "\n  ".join(text.splitlines())
