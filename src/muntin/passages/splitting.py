"""Split a text that was given as one string into its paragraphs.

A chain often joins its documents into one string before it assembles a context. If this string is
too large for the budget, its paragraphs become candidates of their own, in their order.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from muntin.passages.candidates import Candidate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ("paragraphs", "split_strings")

_BLANK_LINES = re.compile(r"(?:\r\n|\r|\n)[ \t]*(?:\r\n|\r|\n)\s*")
_LONGEST_HEADING = 120
_SENTENCE_END = (".", "!", "?", "。", "！", "？", ":", ";")
_FENCE = "```"


def paragraphs(text: str) -> list[str]:
    r"""Return the paragraphs of a text; a heading stays with the paragraph it opens.

    Blank lines inside a fenced code block do not split.

    ```python
    from muntin.passages.splitting import paragraphs

    print(paragraphs("Returns\n\nThey are free.\n\nParcels leave at nine."))
    #> ['Returns\n\nThey are free.', 'Parcels leave at nine.']
    ```
    """
    found: list[str] = []
    waiting = ""
    for piece in _BLANK_LINES.split(text):
        if not piece.strip():
            continue
        waiting = f"{waiting}\n\n{piece}" if waiting else piece
        if waiting.count(_FENCE) % 2 == 0 and not _is_heading(piece):
            found.append(waiting)
            waiting = ""
    return [*found, waiting] if waiting else found


def split_strings(
    gathered: Mapping[str, Sequence[Candidate]], fits: Callable[[str, Candidate], bool]
) -> tuple[dict[str, tuple[Candidate, ...]], tuple[str, ...]]:
    """Split the only candidate of a source where it is a plain string that does not fit.

    Args:
        gathered: Candidates by source.
        fits: Whether a candidate of a source fits the budget whole.

    Returns:
        Candidates by source, and a note for each source that was split.
    """
    split: dict[str, tuple[Candidate, ...]] = {}
    notes: list[str] = []
    for name, candidates in gathered.items():
        split[name] = tuple(candidates)
        if len(candidates) != 1 or not _is_plain_string(candidates[0]) or fits(name, candidates[0]):
            continue
        pieces = paragraphs(candidates[0].content)
        if len(pieces) > 1:
            split[name] = tuple(Candidate(piece, source=candidates[0].source) for piece in pieces)
            notes.append(
                f"the text of source {name!r} does not fit whole and was split into "
                f"{len(pieces)} paragraphs"
            )
    return split, tuple(notes)


def _is_heading(piece: str) -> bool:
    line = piece.strip()
    return len(line) <= _LONGEST_HEADING and "\n" not in line and not line.endswith(_SENTENCE_END)


def _is_plain_string(candidate: Candidate) -> bool:
    return (
        candidate.score is None
        and not candidate.id
        and not candidate.metadata
        and candidate.embedding is None
        and not candidate.pinned
    )
