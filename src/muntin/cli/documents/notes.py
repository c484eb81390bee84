"""How notes, conversations and tool results become candidates of a context.

A note is an item or paragraph under its heading; a message is one candidate, a tool result another.
They are scored by the words they share with the question, messages also by how new they are.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from muntin.messages import view
from muntin.passages import Candidate
from muntin.text import bm25_scores

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from muntin.cli.forms.message import FileMessage

__all__ = ("from_messages", "from_notes", "from_texts")

_ITEM = re.compile(r"(?:[-*+]|\d+[.)]) +")
_HEADING = re.compile(r"#{1,6} +(.*)")


def from_notes(text: str, question: str) -> list[Candidate]:
    r"""Make a candidate of every item or paragraph of a Markdown file.

    ```python
    from muntin.cli.documents.notes import from_notes

    notes = "# Travel\n- Prefers an aisle seat.\n- Flies from Oslo.\n"
    for note in from_notes(notes, "which airport?"):
        print(note.content)
        #> Travel: Prefers an aisle seat.
        #> Travel: Flies from Oslo.
    ```
    """
    return _scored(list(_notes(text)), question, "memory")


def from_messages(messages: Sequence[FileMessage], question: str) -> list[Candidate]:
    """Make a candidate of every text of a user or a model, in order."""
    views = [view(message) for message in messages]
    said = [
        (at, f"{one.name or one.role}: {one.text.strip()}")
        for at, one in enumerate(views)
        if one.role in ("user", "assistant") and one.text.strip()
    ]
    found = _scored([text for _, text in said], question, "history")
    return [
        Candidate(
            one.content,
            ((one.score or 0.0) + (order + 1) / len(said)) / 2,
            source="history",
            id=f"message {at}",
        )
        for order, (one, (at, _)) in enumerate(zip(found, said, strict=True))
    ]


def from_texts(texts: Sequence[tuple[Path, str]]) -> list[Candidate]:
    """Make a candidate of every text whole; its file is its id."""
    return [
        Candidate(text.strip(), source="tool", id=str(path)) for path, text in texts if text.strip()
    ]


def _scored(texts: Sequence[str], question: str, source: str) -> list[Candidate]:
    scores = bm25_scores(question, texts)
    top = float(scores.max()) if len(texts) else 0.0
    return [
        Candidate(text, float(score) / top if top else 0.0, source=source, id=f"{source} {at + 1}")
        for at, (text, score) in enumerate(zip(texts, scores, strict=True))
    ]


def _notes(text: str) -> Iterator[str]:
    """Cut notes at blank lines and at items; a heading goes in front of the text under it."""
    heading, held = "", ""
    for line in [*text.splitlines(), ""]:
        title = _HEADING.match(line)
        item = _ITEM.match(line)
        if held and (title or item or not line.strip()):
            yield f"{heading}: {held}" if heading else held
            held = ""
        if title:
            heading = title[1].strip().rstrip("#").strip()
        elif line.strip():
            said = line[item.end() :] if item else line
            held = f"{held}\n{said.strip()}" if held else said.strip()
