"""Estimate the tokens of a text offline: without a vocabulary, in linear time.

The idea: a token starts at each character with a probability that depends on its class and on the
class before it. Outside words (digits, punctuation, white space, symbols) these rates add up.
Inside a word they add up to how *unfamiliar* the word looks. A familiar word is one token however
long it is, so the sum passes a ramp that stays near zero until a word looks unfamiliar and then
rises one for one. All numbers are fitted to what the tokenizers do on text of many languages and
notations; `benchmarks/fit_estimator.py` prints them into `rates/<encoding>.json`.

It knows shapes, not words: a single text may be off by a tenth or two. It never loads a
vocabulary; `TiktokenCounter` does, and counts exactly.

Texts are looked up in tables of arrays, a window at a time. Arrays cost some 20 microseconds before
the first character, so a short ASCII text is instead added up word by word, and what a word costs
is remembered; the sum is the same.
"""

from __future__ import annotations

import base64
import json
import math
import zlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypedDict, get_args

import numpy as np

from muntin.counting.characters import (
    CLASSES,
    EDGE,
    LETTER_CLASSES,
    ONE_TOKEN_RANGES,
    SIGNS,
    class_table,
)
from muntin.errors import ConfigurationError
from muntin.text import clean_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ("EstimatedEncoding", "estimate_tokens")

EstimatedEncoding = Literal["o200k_base", "cl100k_base"]
"""Encodings with fitted rates."""

_ENCODINGS: Final = get_args(EstimatedEncoding)

_TWICE: Final = (" ", "\n", "\t", "digit", "han-rare")
"""Classes of which the third character in a row has another cost than the second."""

CONTEXTS: Final = (
    *CLASSES,
    *(f"{sign} after a sign" for sign in CLASSES[SIGNS:]),
    *(f"{name} twice" for name in _TWICE),
    "deep",
)
"""Contexts of a character: mostly the class before it; in clusters and runs, more of them."""

DEEP: Final = CONTEXTS.index("deep")
"""The context deep inside a run of one class."""

UNIT: Final = 1_000
"""Rates are whole thousandths of a token, so that sums are the same on every machine."""

DEPTH: Final = 16
"""Characters of one class that go before a character deep in their run."""

_WINDOW: Final = 32_768
"""Characters looked at together: memory stays constant however long the text."""

_SHORT: Final = 300
"""Characters up to which a text is added up word by word."""

_WORD_LENGTH: Final = 16
"""Characters per space up to which a text has words; a hash or a path does not come twice."""

_REMEMBERED: Final = 1 << 14
"""Words remembered; when there are more, all are forgotten."""

_LONGEST: Final = 24
"""Characters up to which a word is remembered."""

DEEP_BLANK: Final = " " * (DEPTH + 1)
"""A run in which a space is deep: other runs of a class have no space inside."""

_ROW: Final = 256
"""Length of a row of the rates in memory, indexed by a class byte and a context byte."""

_FIRST_SIGN: Final = LETTER_CLASSES * _ROW
"""Cells below this are letters."""


def estimate_tokens(text: str | None, *, encoding: EstimatedEncoding = "o200k_base") -> int:
    """Estimate the tokens of a text, for any model, offline.

    The guide's page on counting has the factors measured per kind of text. Where a text is unlike
    anything fitted, the rates lean towards counting too much.

    Args:
        text: Any text, lone surrogates included. None counts like the empty text.
        encoding: Encoding to estimate. Models of other makers are nearer to o200k_base.

    Returns:
        Tokens, rounded up; 0 only for an empty text or None.

    Raises:
        ConfigurationError: No rates are fitted for this encoding.
        TypeError: The text is not a string.

    ```python
    from muntin import estimate_tokens

    print(estimate_tokens("The window is divided into panes."))
    #> 8
    print(estimate_tokens("9f86d081884c7d659a2feaa0c55ad015"))
    #> 20
    ```
    """
    if encoding not in _ENCODINGS:
        raise ConfigurationError(f"no rates for encoding {encoding!r}, only for {_ENCODINGS}")
    if text is None or text == "":
        return 0
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance] - callers err
        raise TypeError(f"estimate_tokens reads text, got {type(text).__name__}: decode it first")
    if len(text) <= _SHORT and _has_words(text):
        return max(1, -(-short_texts(encoding).thousandths(text) // UNIT))
    rates = rates_of(encoding)
    try:
        total = thousandths(text, rates)
    except UnicodeEncodeError:
        total = thousandths(clean_text(text), rates)
    return max(1, -(-total // UNIT))


class SavedRates(TypedDict):
    """What a file of rates holds, as JSON."""

    encoding: str
    """The encoding the rates are fitted to."""

    ramp: int
    """Width of the ramp's bend, in thousandths of a token."""

    one_token: dict[str, str]
    """By class, which characters of its range are one token each: base64 of a zlib bit map."""

    starts: dict[str, dict[str, int]]
    """Thousandths of a token that start at a class, by context; "any" for those not named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """What is fitted for one encoding, as tables."""

    classes: NDArray[np.uint8]
    """Class of each code point; the last entry is for all higher ones."""

    starts: NDArray[np.int32]
    """Thousandths of a token that start at a character, at `256 * class + context`."""

    ramp: int
    """Width of the ramp's bend, in thousandths of a token."""


def cells(text: str, classes: NDArray[np.uint8]) -> NDArray[np.uint16]:
    """Sort each character, together with its predecessor.

    Args:
        text: Text without lone surrogates.
        classes: Class of each code point.

    Returns:
        For each character `256 * class + context`.
    """
    codes = np.frombuffer(text.encode("utf-32-le"), dtype="<u4")
    length = len(codes)
    row = np.empty(length + 2, dtype=np.uint8)
    row[:2] = EDGE
    own = row[2:]
    classes.take(codes, mode="clip", out=own)
    # Overlapping views: each class together with the next one, without computing anything.
    pairs = np.ndarray((length + 1,), dtype="<u2", buffer=row, strides=(1,))
    context = _context_table().take(pairs[:-1])
    if length > DEPTH:
        run = own[1:] == own[:-1]
        for step in (1, 2, 4, 8):  # a run of 2, 3, 5, 9, then 17 characters
            run = run[step:] & run[:-step]
        context[DEPTH:][run] = DEEP
    found = np.left_shift(own, 8, dtype=np.uint16)
    found |= context
    return found


@cache
def _context_table() -> NDArray[np.uint8]:
    """Return the context of two classes, at `first + 256 * second`."""
    table = np.repeat(np.arange(_ROW, dtype=np.uint8), _ROW).reshape(_ROW, _ROW)
    signs = np.arange(SIGNS, len(CLASSES))
    table[SIGNS : len(CLASSES), SIGNS : len(CLASSES)] = (signs + len(signs))[:, None]
    for name in _TWICE:
        own = CLASSES.index(name)
        table[own, own] = CONTEXTS.index(f"{name} twice")
    return table.ravel()


def thousandths(text: str, rates: Rates) -> int:
    """Estimate a text without lone surrogates, in thousandths of a token."""
    return sum(
        _tokens_in(text[start : start + _WINDOW], rates) for start in range(0, len(text), _WINDOW)
    )


def _tokens_in(text: str, rates: Rates) -> int:
    """Estimate a window, in thousandths of a token."""
    found = cells(text, rates.classes)
    starts = rates.starts.take(found)
    in_word = found < _FIRST_SIGN
    border = np.empty(len(found), dtype=np.bool_)
    border[0] = True
    np.not_equal(in_word[1:], in_word[:-1], out=border[1:])
    sums = np.add.reduceat(starts, border.nonzero()[0])
    words = sums[0 if in_word[0] else 1 :: 2]
    # Outside words the sums count as they are; a word's sum x as (x + sqrt(x² + ramp²)) / 2.
    bent = float(np.hypot(words, rates.ramp).sum()) - int(words.sum())
    return int(starts.sum()) + round(bent / 2)


def _has_words(text: str) -> bool:
    """Whether a text is ASCII and falls into words at its spaces."""
    if not text.isascii() or DEEP_BLANK in text:
        return False
    return len(text) <= _WORD_LENGTH * (text.count(" ") + 2)


class _Words(dict[str, tuple[int, float, int, "_Words"]]):
    """Cost of words after two given classes.

    Of each word: thousandths of it and a space behind it; what bending adds to twice that;
    thousandths of that space alone; and the words behind it.
    """

    __slots__ = ("after",)

    def __init__(self, *after: int) -> None:
        super().__init__()
        self.after = after


class ShortTexts:
    """Add up short texts of ASCII, and caches what is between spaces.

    The cost of a word depends only on what precedes it: nothing, one space or two. Threads may
    share it: a word that two of them learn at once is learnt twice, with one result.
    """

    def __init__(self, rates: Rates) -> None:
        self._classes = rates.classes[:_ROW].tobytes()
        self._contexts = _context_table().tobytes()
        self._starts: list[int] = rates.starts.tolist()
        self._ramp = rates.ramp
        self._blank = self._classes[ord(" ")]
        self._first = _Words(EDGE, EDGE)
        self._behind = _Words(EDGE, self._blank)
        self._apart = _Words(self._blank, self._blank)

    @property
    def remembered(self) -> int:
        """Count the words of the largest table."""
        return max(len(self._first), len(self._behind), len(self._apart))

    def thousandths(self, text: str) -> int:
        """Return what `thousandths` does, for ASCII without a deep blank."""
        words = self._first
        total = behind = 0
        bent = 0.0
        for word in text.split(" "):
            own, more, behind, words = words.get(word) or self._learn(word, words)
            total += own
            bent += more
        return total - behind + round(bent / 2)

    def _learn(self, word: str, words: _Words) -> tuple[int, float, int, _Words]:
        follows = self._behind if word or words is self._first else self._apart
        cost = (*self._cost(word, words.after), follows)
        if len(word) <= _LONGEST:
            if len(words) >= _REMEMBERED:
                words.clear()
            words[word] = cost
        return cost

    def _cost(self, word: str, after: Sequence[int]) -> tuple[int, float, int]:
        """Add up a word, one character at a time."""
        starts, contexts = self._starts, self._contexts
        total = letters = run = 0
        bent = 0.0
        inside = False
        earlier, last = after
        for own in word.encode().translate(self._classes):
            if inside and own >= LETTER_CLASSES:
                bent += math.hypot(letters, self._ramp) - letters
                letters = 0
            inside = own < LETTER_CLASSES
            run = run + 1 if own == last else 0
            context = DEEP if run >= DEPTH else contexts[earlier + _ROW * last]
            start = starts[own * _ROW + context]
            total += start
            if inside:
                letters += start
            earlier, last = last, own
        if inside:
            bent += math.hypot(letters, self._ramp) - letters
        space = starts[self._blank * _ROW + contexts[earlier + _ROW * last]]
        return total + space, bent, space


@cache
def short_texts(encoding: str) -> ShortTexts:
    """Return the counter of short texts of an encoding, one for the whole process."""
    return ShortTexts(rates_of(encoding))


@cache
def rates_of(encoding: str) -> Rates:
    """Read the rates of an encoding, once."""
    path = Path(__file__).with_name("rates") / f"{encoding}.json"
    return parse_rates(json.loads(path.read_text(encoding="utf-8")))


def parse_rates(saved: SavedRates) -> Rates:
    """Turn saved rates into tables to look up in."""
    classes = class_table().copy()
    for name, (first, last) in ONE_TOKEN_RANGES.items():
        packed = zlib.decompress(base64.b64decode(saved["one_token"][name]))
        alone = np.unpackbits(np.frombuffer(packed, dtype=np.uint8), count=last + 1 - first)
        classes[first : last + 1][alone == 1] = CLASSES.index(name)
    number = {name: index for index, name in enumerate(CONTEXTS)}
    starts = np.zeros((_ROW, _ROW), dtype=np.int32)
    for own, name in enumerate(CLASSES):
        row = saved["starts"][name]
        starts[own] = row["any"]
        for context, value in row.items():
            if context != "any":
                starts[own, number[context]] = value
    return Rates(classes=classes, starts=starts.ravel(), ramp=saved["ramp"])
