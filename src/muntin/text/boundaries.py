"""Find where a text may be cut: at graphemes and at sentences. Make it encodable.

A character may be many code points (a family emoji is seven, a flag two), so cuts fall on grapheme
boundaries of Unicode Annex 29. A sentence ends at its full stop in any of the large scripts, or at
a line break, but not behind the number of a list item. Nothing here counts tokens or changes text,
except that `clean_text` replaces lone surrogates, which no encoder accepts.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import regex

__all__ = ("clean_text", "grapheme_end", "grapheme_start", "sentences")

_SURROGATE = re.compile("[\ud800-\udfff]")
_SURROGATES = re.compile("[\ud800-\udbff][\udc00-\udfff]|[\ud800-\udfff]")
_LOOK_BACK = 1_024
"""Code points searched backwards for a certain border. Longer clusters are split."""

_JOINING = frozenset(
    "\u0d4e\u0e33\u0eb3\uff9e\uff9f\U000111c2\U000111c3\U0001193f\U00011941\U00011a84"
    "\U00011a85\U00011a86\U00011a87\U00011a88\U00011a89\U00011d46"
)
"""Letters that join their neighbours, although their category does not show it."""

# Looking back for the head of a run keeps the search linear: without, each of a million dots is
# tried as the first.
_SENTENCE_END = re.compile(
    r"""
    (?<![.!?…‽։।॥۔؟።᙮⁇⁈⁉]) [.!?…‽։।॥۔؟።᙮⁇⁈⁉]++ ["'”’»)\]]*+ \s+  # a stop, white space
    | [。！？｡︒]+ ["'”’»)\]」』）】〉》]*\s*                          # a stop that needs none
    | (?<![^\S\n]) [^\S\n]*+ \n \s*                               # a line
    """,
    re.VERBOSE,
)
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\[“\"])(?:[A-Z]|[Mm]rs?|[Mm]s|[Dd]r|[Pp]rof|[Ss]t|[Jj]r|[Ss]r|vs|etc|cf|al|approx|"
    r"[Ff]igs?|[Ee]q|[Vv]ol|pp?|[Dd]ept|[Ii]nc|[Ll]td|[Cc]o|e\.g|i\.e|a\.m|p\.m|z\.B|d\.h|"
    r"bzw|ca|Nr|[A-Z]\.[A-Z])$"
)
_ENUMERATOR = re.compile(
    r"[\s#>*_+(\[-]*(?:\d{1,3}|[A-Za-z]|[ivx]{1,4}|[IVX]{1,4})[.)]?[)\].:*_]*\s+"
)
"""The number of a list item: the item goes on behind it."""
_ABBREVIATION_REACH = 12
"""Characters before a stop that may belong to an abbreviation."""


def clean_text(text: str) -> str:
    r"""Replace lone surrogates, which no encoder accepts, by U+FFFD; join paired ones.

    Args:
        text: Any text.

    Returns:
        Text that encodes to UTF-8; the same object when it already does.

    ```python
    from muntin.text.boundaries import clean_text

    print(ascii(clean_text("half \ud83d")))
    #> 'half \ufffd'
    ```
    """
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return _SURROGATES.sub(_joined, text)


def _joined(surrogates: re.Match[str]) -> str:
    """Join a pair to the character it spells; a lone one spells none."""
    pair = surrogates[0]
    if len(pair) == 1:
        return "\ufffd"
    return chr(0x10000 + ((ord(pair[0]) - 0xD800) << 10) + ord(pair[1]) - 0xDC00)


def grapheme_start(text: str, index: int) -> int:
    """Find the largest grapheme border at or before an index.

    Args:
        text: Any text, lone surrogates included.
        index: Code points from the start. Outside the text it is drawn to the nearer end.

    Returns:
        Code points from the start; cutting there parts no character a reader sees.

    ```python
    from muntin.text.boundaries import grapheme_start

    print(grapheme_start("ok 👩‍👩‍👧", 5), grapheme_start("plain", 3))
    #> 3 3
    ```
    """
    return _borders_round(text, index)[0]


def grapheme_end(text: str, index: int) -> int:
    """Find the smallest grapheme border at or after an index.

    Args:
        text: Any text, lone surrogates included.
        index: Code points from the start. Outside the text it is drawn to the nearer end.

    Returns:
        Code points from the start.

    ```python
    from muntin.text.boundaries import grapheme_end

    print(grapheme_end("👩‍👩‍👧 ok", 2))
    #> 5
    ```
    """
    return _borders_round(text, index)[1]


def sentences(text: str) -> list[str]:
    """Part a text into sentences and lines.

    Works on prose in most scripts, on code and logs (line by line), and tolerates common
    abbreviations and initials.

    Args:
        text: Any text.

    Returns:
        The pieces in order, white space after each included: joined they are the text again.

    ```python
    from muntin.text.boundaries import sentences

    print(sentences("Dr. Li came. 你好。再见！"))
    #> ['Dr. Li came. ', '你好。', '再见！']
    ```
    """
    pieces: list[str] = []
    start = 0
    for match in _SENTENCE_END.finditer(text):
        if _goes_on(text, match) or _ENUMERATOR.fullmatch(text, start, match.end()):
            continue
        pieces.append(text[start : match.end()])
        start = match.end()
    if start < len(text):
        pieces.append(text[start:])
    return pieces


def _goes_on(text: str, match: re.Match[str]) -> bool:
    """Whether the sentence continues after what looked like its end."""
    if not match[0].startswith("."):
        # Blank lines at the head of a text are not a sentence.
        return not text[: match.start()].strip() and match.start() < _ABBREVIATION_REACH
    if "\n" in match[0]:
        return False
    if text[match.end() : match.end() + 1].islower():
        return True
    if not match[0].rstrip().endswith("."):
        return False  # what closes a quotation closes its sentence
    before = text[max(0, match.start() - _ABBREVIATION_REACH) : match.start()]
    return _ABBREVIATION.search(before) is not None


def _borders_round(text: str, index: int) -> tuple[int, int]:
    """Find the borders on both sides of an index; twice the index when it is one itself."""
    index = min(max(index, 0), len(text))
    if index in (0, len(text)) or _certain_border(text, index):
        return index, index
    start = index - 1
    floor = max(0, index - _LOOK_BACK)
    while start > floor and not _certain_border(text, start):
        start -= 1
    # A slice, because flags are paired from the head of what is searched, again at each match.
    for match in _grapheme().finditer(text[start : index + _LOOK_BACK]):
        end = start + match.end()
        if end == index:
            break
        if end > index:
            return start + match.start(), end
    return index, index


def _certain_border(text: str, index: int) -> bool:
    """Whether two plain characters meet here, so that no rule of the annex can join them."""
    before, after = text[index - 1], text[index]
    if before.isascii() and after.isascii():
        return not (before == "\r" and after == "\n")
    if "\uac00" <= before <= "\ud7a3" and "\uac00" <= after <= "\ud7a3":
        return True  # whole Hangul syllables; only loose jamo compose
    return _plain(before) and _plain(after)


def _plain(character: str) -> bool:
    """Whether a character neither extends its neighbours nor is extended by rule."""
    if character in _JOINING or "\u1100" <= character <= "\u11ff":
        return False
    if "\ua960" <= character <= "\ua97f" or "\uac00" <= character <= "\ud7ff":
        return False
    return unicodedata.category(character)[0] in "LNPZ"


@cache
def _grapheme() -> regex.Pattern[str]:
    import regex

    return regex.compile(r"\X")
