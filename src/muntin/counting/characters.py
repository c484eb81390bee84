"""Which class of characters a code point belongs to, for the estimate of tokens.

A tokenizer treats the characters of one class alike: the letters of a script, its marks, a block of
symbols. Letters of the Latin and Russian alphabets and ASCII punctuation are classes of their own,
because pairs of them distinguish words, languages and notations. Han characters and Hangul
syllables fall into two classes each, those that are one token by themselves and those that are not.
This module only sorts; what a pair of classes costs is fitted, see `estimate`.
"""

from __future__ import annotations

import string
import unicodedata
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("CLASSES", "EDGE", "LETTER_CLASSES", "ONE_TOKEN_RANGES", "SIGNS", "class_table")

_CODE_POINTS: Final = 0x3_3480
"""Code points with an entry of their own; every higher one is of the class of the last."""

ONE_TOKEN_RANGES: Final[Mapping[str, tuple[int, int]]] = {
    "han": (0x4E00, 0x9FFF),
    "hangul": (0xAC00, 0xD7A3),
}
"""Classes for the characters of a range that are one token each in a vocabulary; inclusive."""

_LETTER_RANGES: Final = (
    ("latin-1", 0x00C0, 0x00FF),
    ("latin-extended", 0x0100, 0x024F),
    ("ipa", 0x0250, 0x02AF),
    ("modifier", 0x02B0, 0x02FF),
    ("combining", 0x0300, 0x036F),
    ("greek", 0x0370, 0x03FF),
    ("cyrillic-other", 0x0400, 0x040F),
    ("cyrillic-upper", 0x0410, 0x042F),
    ("cyrillic-other", 0x0450, 0x052F),
    ("armenian", 0x0530, 0x058F),
    ("hebrew", 0x0591, 0x05F4),
    ("arabic", 0x0621, 0x064A),
    ("arabic-other", 0x064B, 0x065F),
    ("arabic-other", 0x066E, 0x06EF),
    ("arabic-other", 0x06FA, 0x06FF),
    ("syriac-thaana-nko", 0x0700, 0x08FF),
    ("devanagari", 0x0900, 0x097F),
    ("bengali", 0x0980, 0x09FF),
    ("gurmukhi", 0x0A00, 0x0A7F),
    ("gujarati", 0x0A80, 0x0AFF),
    ("oriya", 0x0B00, 0x0B7F),
    ("tamil", 0x0B80, 0x0BFF),
    ("telugu", 0x0C00, 0x0C7F),
    ("kannada", 0x0C80, 0x0CFF),
    ("malayalam", 0x0D00, 0x0D7F),
    ("sinhala", 0x0D80, 0x0DFF),
    ("thai", 0x0E00, 0x0E7F),
    ("lao", 0x0E80, 0x0EFF),
    ("tibetan", 0x0F00, 0x0FFF),
    ("myanmar", 0x1000, 0x109F),
    ("script-3-bytes", 0x10A0, 0x10CF),
    ("georgian", 0x10D0, 0x10FF),
    ("jamo", 0x1100, 0x11FF),
    ("ethiopic", 0x1200, 0x139F),
    ("script-3-bytes", 0x13A0, 0x177F),
    ("khmer", 0x1780, 0x17FF),
    ("script-3-bytes", 0x1800, 0x1DFF),
    ("latin-additional", 0x1E00, 0x1EFF),
    ("greek-extended", 0x1F00, 0x1FFF),
    ("script-3-bytes", 0x2C00, 0x2DFF),
    ("radical", 0x2E80, 0x2FDF),
    ("hiragana", 0x3041, 0x309F),
    ("katakana", 0x30A1, 0x30FF),
    ("bopomofo", 0x3100, 0x312F),
    ("jamo", 0x3130, 0x318F),
    ("han-extended", 0x3400, 0x4DBF),
    ("han-rare", 0x4E00, 0x9FFF),
    ("yi", 0xA000, 0xA4CF),
    ("script-3-bytes", 0xA4D0, 0xABFF),
    ("hangul-rare", 0xAC00, 0xD7A3),
    ("jamo", 0xD7B0, 0xD7FF),
    ("han-extended", 0xF900, 0xFAFF),
    ("arabic-other", 0xFB1D, 0xFDFF),
    ("arabic-other", 0xFE70, 0xFEFE),
    ("half-width", 0xFF66, 0xFFDC),
    ("script-4-bytes", 0x1_0000, 0x1_CFFF),
    ("script-4-bytes", 0x1_E000, 0x1_EFFF),
    ("han-extended", 0x2_0000, _CODE_POINTS - 1),
)
"""Letters and marks of every script; words are made of these. Digits are taken out below."""

_SYMBOL_RANGES: Final = (
    ("2-bytes", 0x0080, 0x07FF),
    ("3-bytes", 0x0800, 0xFFFF),
    ("4-bytes", 0x1_0000, _CODE_POINTS - 1),
    ("control", 0x0000, 0x001F),
    ("control", 0x007F, 0x009F),
    ("latin-symbol", 0x00A0, 0x00BF),
    ("arabic-symbol", 0x0600, 0x0620),
    ("quotes-and-dashes", 0x2010, 0x2027),
    ("general-punctuation", 0x2030, 0x205E),
    ("super-and-subscript", 0x2070, 0x209F),
    ("currency", 0x20A0, 0x20CF),
    ("letter-like", 0x2100, 0x218F),
    ("arrow", 0x2190, 0x21FF),
    ("mathematical", 0x2200, 0x22FF),
    ("technical", 0x2300, 0x24FF),
    ("box", 0x2500, 0x257F),
    ("block", 0x2580, 0x25FF),
    ("pictograph", 0x2600, 0x27BF),
    ("cjk-punctuation", 0x3001, 0x303F),
    ("private", 0xE000, 0xF8FF),
    ("full-width", 0xFF01, 0xFF65),
    ("tile", 0x1_F000, 0x1_F2FF),
    ("emoji-object", 0x1_F300, 0x1_F5FF),
    ("emoji-face", 0x1_F600, 0x1_F64F),
    ("emoji-object", 0x1_F650, 0x1_F8FF),
    ("emoji-new", 0x1_F900, 0x1_FAFF),
    ("emoji-flag", 0x1_F1E6, 0x1_F1FF),
    ("emoji-skin", 0x1_F3FB, 0x1_F3FF),
)
"""Everything but letters; later rows overrule earlier ones."""

_SINGLES: Final = (
    ("zero-width", "\u200b\u200c\u200e\u200f\u2060\ufeff"),
    ("joiner", "\u200d"),
    ("variation", "".join(map(chr, range(0xFE00, 0xFE10)))),
    ("wide-space", "\u2000\u2002\u2003\u2009\u202f\u205f\u3000\u2028\u2029"),
    ("cjk-punctuation", "！（），：；？"),
    ("cyrillic-other", "ё"),
    ("\0", "\0"),
    ("\ufffd", "\ufffd"),
    *((letter, letter) for letter in "абвгдежзийклмнопрстуфхцчшщъыьэюя"),
    *((sign, sign) for sign in string.ascii_letters + " \n\r\t"),
    ("digit", string.digits),
    *((sign, sign) for sign in string.punctuation),
)
"""Characters sorted by hand, last."""

_MARKED: Final = (
    "hebrew",
    "devanagari",
    "bengali",
    "gurmukhi",
    "gujarati",
    "oriya",
    "tamil",
    "telugu",
    "kannada",
    "malayalam",
    "sinhala",
    "thai",
    "lao",
    "myanmar",
    "khmer",
)
"""Scripts in which marks cost something other than letters."""

_MIXED_BELOW: Final = 0x2E80
"""Letter ranges before this code point also hold marks, digits and signs; later ones do not."""

_LETTER_CLASSES: Final = (
    *ONE_TOKEN_RANGES,
    *dict.fromkeys(name for name, _, _ in _LETTER_RANGES),
    "latin-1-upper",
    *(f"{name}-mark" for name in _MARKED),
    *(name for name, _ in _SINGLES if len(name) == 1 and name.isalpha()),
)

CLASSES: Final[tuple[str, ...]] = (
    *_LETTER_CLASSES,
    "edge",
    "script-digit",
    "script-sign",
    *dict.fromkeys(name for name, _, _ in _SYMBOL_RANGES),
    *(name for name, _ in _SINGLES if name not in _LETTER_CLASSES and name != "cjk-punctuation"),
)
"""Names of all classes, those of letters and marks first; a class is its index here."""

LETTER_CLASSES: Final = len(_LETTER_CLASSES)
"""Classes below this are letters and marks: words are made of them."""

EDGE: Final = CLASSES.index("edge")
"""The class before the first character of a text."""

SIGNS: Final = CLASSES.index(string.punctuation[0])
"""Classes from here to the last are the ASCII punctuation marks, one each."""


@cache
def class_table() -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """Return the class of every code point; the last entry is for all higher ones.

    ```python
    from muntin.counting.characters import CLASSES, class_table

    print(CLASSES[class_table()[ord("ไ")]], CLASSES[class_table()[ord("7")]])
    #> thai digit
    ```
    """
    number = {name: index for index, name in enumerate(CLASSES)}
    table = np.zeros(_CODE_POINTS, dtype=np.uint8)
    for name, first, last in (*_SYMBOL_RANGES, *_LETTER_RANGES):
        table[first : last + 1] = number[name]
    for name, first, last in _LETTER_RANGES:
        if first < _MIXED_BELOW:
            for code in range(first, last + 1):
                table[code] = number[_finer(name, chr(code))]
    for name, characters in _SINGLES:
        table[[ord(character) for character in characters]] = number[name]
    table.flags.writeable = False
    return table


def _finer(name: str, character: str) -> str:
    """Sort a character of a mixed range."""
    category = unicodedata.category(character)
    if category[0] == "N":
        return "script-digit"
    if category[0] in "PS":
        return "script-sign"
    if category[0] == "M" and name in _MARKED:
        return f"{name}-mark"
    if name == "latin-1" and category == "Lu":
        return "latin-1-upper"
    return name
