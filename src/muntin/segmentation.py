"""Where a text may be parted: at graphemes, at sentences, and where it can be encoded at all.

A reader's character may be many code points (a family emoji is seven, a flag two), so a cut falls
on a grapheme border of Unicode Annex 29. A sentence ends at its full stop in any of the large
scripts, or at a line break. Nothing here counts tokens, and nothing rewrites what it parts, except
that `clean_text` replaces the halves of surrogate pairs, which no encoder accepts.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import regex

__all__ = ("clean_text", "grapheme_start", "sentences")

_SURROGATE = re.compile("[\ud800-\udfff]")
_LONE_SURROGATE = re.compile(
    "(?<![\ud800-\udbff])[\udc00-\udfff]|[\ud800-\udbff](?![\udc00-\udfff])"
)
_LOOK_BACK = 8_192
"""Code points searched backwards for a certain border. Longer ones are nobody's character."""

_SENTENCE_END = re.compile(
    r"""
    [.!?…‽։।॥۔؟።᙮⁇⁈⁉]+ ["'”’»)\]]* (?=\s) \s+   # a stop, what closes after it, white space
    | [。！？｡︒]+ ["'”’»)\]」』）】〉》]*\s*         # a stop that needs no white space
    | [^\S\n]*\n\s*                                  # a line
    """,
    re.VERBOSE,
)
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\[“\"])(?:[A-Z]|[Mm]rs?|[Mm]s|[Dd]r|[Pp]rof|[Ss]t|[Jj]r|[Ss]r|vs|etc|cf|al|approx|"
    r"[Nn]o|[Ff]igs?|[Ee]q|[Vv]ol|pp?|[Dd]ept|[Ii]nc|[Ll]td|[Cc]o|e\.g|i\.e|a\.m|p\.m|z\.B|d\.h|"
    r"bzw|ca|Nr|[A-Z]\.[A-Z])$"
)
_ABBREVIATION_REACH = 12
"""Characters before a stop that may belong to an abbreviation."""


def clean_text(text: str) -> str:
    r"""Replace lone surrogates, which no encoder accepts, by U+FFFD; join paired ones.

    Args:
        text: Any text.

    Returns:
        Text that encodes to UTF-8; the same object when it already does.

    ```python
    from muntin.segmentation import clean_text

    print(ascii(clean_text("half \ud83d")))
    #> 'half \ufffd'
    ```
    """
    if text.isascii() or not _SURROGATE.search(text):
        return text
    paired = _LONE_SURROGATE.sub("\ufffd", text)
    return paired.encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def grapheme_start(text: str, index: int) -> int:
    """Find the largest grapheme border at or before an index.

    Args:
        text: Any text, lone surrogates included.
        index: Code points from the start. Outside the text it is drawn to the nearer end.

    Returns:
        Code points from the start; cutting there parts no character a reader sees.

    ```python
    from muntin.segmentation import grapheme_start

    print(grapheme_start("ok 👩‍👩‍👧", 5), grapheme_start("plain", 3))
    #> 3 3
    ```
    """
    if index <= 0:
        return 0
    if index >= len(text):
        return len(text)
    if _certain_border(text, index):
        return index
    start = index - 1
    floor = max(0, index - _LOOK_BACK)
    while start > floor and not _certain_border(text, start):
        start -= 1
    for match in _grapheme().finditer(text, start):
        if match.end() == index:
            return index
        if match.end() > index:
            return match.start()
    return index


def sentences(text: str) -> list[str]:
    """Part a text into sentences and lines.

    Works on prose in most scripts, on code and logs (line by line), and tolerates common
    abbreviations and initials.

    Args:
        text: Any text.

    Returns:
        The pieces in order, white space after each included: joined they are the text again.

    ```python
    from muntin.segmentation import sentences

    print(sentences("Dr. Li came. 你好。再见！"))
    #> ['Dr. Li came. ', '你好。', '再见！']
    ```
    """
    pieces: list[str] = []
    start = 0
    for match in _SENTENCE_END.finditer(text):
        if _goes_on(text, match):
            continue
        pieces.append(text[start : match.end()])
        start = match.end()
    if start < len(text):
        pieces.append(text[start:])
    return pieces


def _goes_on(text: str, match: re.Match[str]) -> bool:
    """Whether the sentence continues after what looked like its end."""
    if not match[0].startswith("."):
        # Blank lines at the head of a text are no sentence of their own.
        return not text[: match.start()].strip() and match.start() < _ABBREVIATION_REACH
    if "\n" in match[0]:
        return False
    if text[match.end() : match.end() + 1].islower():
        return True
    before = text[max(0, match.start() - _ABBREVIATION_REACH) : match.start()]
    return _ABBREVIATION.search(before) is not None


def _certain_border(text: str, index: int) -> bool:
    """Whether two plain characters meet here, so that no rule of the annex can join them."""
    before, after = text[index - 1], text[index]
    if before.isascii() and after.isascii():
        return not (before == "\r" and after == "\n")
    return _plain(before) and _plain(after)


def _plain(character: str) -> bool:
    """Whether a character neither extends its neighbours nor is extended by rule."""
    if "\u1100" <= character <= "\u11ff" or "\ua960" <= character <= "\ua97f":
        return False  # jamo compose syllables
    if "\uac00" <= character <= "\ud7ff":
        return False
    return unicodedata.category(character)[0] in "LNPZ"


@cache
def _grapheme() -> regex.Pattern[str]:
    import regex

    return regex.compile(r"\X")
