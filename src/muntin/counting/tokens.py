"""Token counts that need nothing: the rule of thumb, and sums over any counter.

A counter is any callable from text to a whole number. `count_tokens` is the documented
zero-dependency rule: one token for each Chinese, Japanese or Korean character and one for every
four characters of anything else. It is predictable, the same everywhere, and wrong by design on
dense text (base64, digits, emoji, Thai): `estimate_tokens` and `TiktokenCounter` are for those.
It does not look at words, and it never loads a vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

__all__ = ("CJK_BLOCKS", "TokenCounter", "count_tokens")

TokenCounter = Callable[[str], int]
"""Any callable from a text to its number of tokens."""

CJK_BLOCKS: Final[tuple[tuple[int, int], ...]] = (
    (0x1100, 0x11FF),  # Hangul jamo
    (0x2E80, 0x2FDF),  # Han radicals
    (0x3005, 0x3007),  # Han iteration mark, closing mark, zero
    (0x3021, 0x3029),  # Hangzhou numerals
    (0x3038, 0x303B),  # Hangzhou numerals, vertical iteration mark
    (0x3040, 0x30FF),  # hiragana, katakana
    (0x3100, 0x312F),  # bopomofo
    (0x3130, 0x318F),  # Hangul compatibility jamo
    (0x31A0, 0x31BF),  # bopomofo extended
    (0x31F0, 0x31FF),  # katakana phonetic extensions
    (0x3400, 0x4DBF),  # Han extension A
    (0x4E00, 0x9FFF),  # Han
    (0xA960, 0xA97F),  # Hangul jamo extended A
    (0xAC00, 0xD7FF),  # Hangul syllables, jamo extended B
    (0xF900, 0xFAFF),  # Han compatibility
    (0xFF66, 0xFF9F),  # half-width katakana
    (0xFFA0, 0xFFDC),  # half-width Hangul
    (0x1AFF0, 0x1AFFF),  # kana extended B
    (0x1B000, 0x1B16F),  # kana supplement, extended A, small kana
    (0x20000, 0x2A6DF),  # Han extension B
    (0x2A700, 0x2EE5F),  # Han extensions C, D, E, F, I
    (0x2F800, 0x2FA1F),  # Han compatibility supplement
    (0x30000, 0x323AF),  # Han extensions G, H
)
"""First and last code point of every block of characters that count one token each."""

_WINDOW = 32_768
"""Characters looked at together: memory stays constant however long the text."""


def _cjk_table() -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Mark the code points of the blocks; the last entry is for all higher ones."""
    table = np.zeros(CJK_BLOCKS[-1][1] + 2, dtype=np.bool_)
    for first, last in CJK_BLOCKS:
        table[first : last + 1] = True
    return table


_IS_CJK = _cjk_table()


def count_tokens(text: str | None) -> int:
    """Count tokens by the rule of thumb: one per CJK character, one per four others.

    Args:
        text: What to count. None counts like the empty text.

    Returns:
        Tokens. Never negative; 0 only for an empty text or None.

    Raises:
        TypeError: The text is bytes, or anything else that is not a string.

    ```python
    from muntin import count_tokens

    print(count_tokens("hello world"), count_tokens("日本語テスト"), count_tokens(""))
    #> 3 6 0
    ```
    """
    if text is None:
        return 0
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance] - bytes have a length too
        raise TypeError(f"count_tokens counts text, got {type(text).__name__}: decode it first")
    if text.isascii():
        return (len(text) + 3) // 4
    cjk = sum(_cjk_in(text[start : start + _WINDOW]) for start in range(0, len(text), _WINDOW))
    return cjk + (len(text) - cjk + 3) // 4


def _cjk_in(window: str) -> int:
    codes = np.frombuffer(window.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    return int(np.count_nonzero(_IS_CJK.take(codes, mode="clip")))
