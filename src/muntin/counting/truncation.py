"""Cut a text to a budget: keep the longest beginning that fits, or both ends.

The cut is found by bisection over grapheme borders and *every accepted cut has been counted*, the
marker joined on: tokens are not additive, and a counter may not be monotone. Of a long text, only a
multiple of the budget is counted. The cut does not depend on the content; a summariser selects by
content.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from muntin.counting.checks import checked_counter, checked_tokens
from muntin.errors import ConfigurationError
from muntin.runtime import largest_within
from muntin.text import clean_text, grapheme_end, grapheme_start

if TYPE_CHECKING:
    from collections.abc import Callable

    from muntin.counting.checks import AnyCounter
    from muntin.counting.tokens import TokenCounter

__all__ = ("cut_to_tokens", "truncate_to_tokens")

_CHARACTERS_PER_TOKEN = 8
"""First guess at how much text a token can hold; doubled while it is too little."""
_LEAST_WINDOW = 64
_AHEAD = 8
"""Characters past the bisected cut that are tried too."""


def truncate_to_tokens(
    text: str | None,
    max_tokens: int,
    counter: AnyCounter = None,
    *,
    model: object = None,
    keep: Literal["head", "ends"] = "head",
    marker: str = "…",
) -> str:
    """Cut a text to the longest part that fits, marker included.

    Args:
        text: What to cut. None is the empty text. Lone surrogates are replaced.
        max_tokens: Tokens the result may take, by `counter`, on the joined result.
        counter: Counts tokens: a function of a text, a model, or the name of a model or an
            encoding. None takes `model`'s counter, else `count_tokens`. It need not be
            monotone: the returned text is counted.
        model: A model or its name, in place of `counter`.
        keep: "head" keeps the beginning, "ends" the beginning and the end.
        marker: Put where text was left out. Left out itself when it does not fit, or when
            without it some text would.

    Returns:
        The same object when it fits; the empty text when not even one character does.

    Raises:
        ConfigurationError: `max_tokens` is not an int of at least 0, `counter` does not count, or
            `keep` is unknown.

    ```python
    from muntin import truncate_to_tokens

    print(truncate_to_tokens("one two three four five", 4))
    #> one two three f…
    print(truncate_to_tokens("one two three four five", 4, keep="ends"))
    #> one two …ur five
    ```
    """
    max_tokens = checked_tokens(max_tokens, "max_tokens", least=0)
    counter = checked_counter(counter, model=model)
    if keep not in ("head", "ends"):
        raise ConfigurationError(f"keep must be 'head' or 'ends', got {keep!r}")
    return cut_to_tokens(text, max_tokens, counter, keep=keep, marker=marker)


def cut_to_tokens(
    text: str | None,
    max_tokens: int,
    counter: TokenCounter,
    *,
    keep: Literal["head", "ends"] = "head",
    marker: str = "…",
) -> str:
    """Cut a text as `truncate_to_tokens` does, with arguments that were checked already."""
    if not text or max_tokens == 0:
        return ""
    text = clean_text(text)
    cut = _head if keep == "head" else _ends
    size = _window(text, max_tokens, counter, cut)
    if size is None:
        return text
    for mark in (marker, "") if marker else ("",):
        longest = _longest(size, lambda kept, mark=mark: cut(text, kept, mark), max_tokens, counter)
        if longest:
            return longest
    return marker if marker and counter(marker) <= max_tokens else ""


def _window(
    text: str, max_tokens: int, counter: TokenCounter, cut: Callable[[str, int, str], str]
) -> int | None:
    """Find how many characters are certainly too many; None when the whole text fits."""
    size = max(_LEAST_WINDOW, _CHARACTERS_PER_TOKEN * max_tokens)
    while size < len(text):
        if counter(cut(text, size, "")) > max_tokens:
            return size
        size *= 2
    return None if counter(text) <= max_tokens else len(text)


def _longest(size: int, cut: Callable[[int], str], max_tokens: int, counter: TokenCounter) -> str:
    """Find the most characters, fewer than `size`, that fit; the empty text when none do."""
    found = largest_within(max_tokens, lambda kept: counter(cut(kept)), low=0, high=size - 1)
    best = cut(found) if found else ""
    if not best:
        return ""
    # A whole word can cost less than its part, so look a little past where bisection ends.
    for kept in range(min(found + 1 + _AHEAD, size) - 1, found, -1):
        candidate = cut(kept)
        if len(candidate) > len(best) and counter(candidate) <= max_tokens:
            return candidate
    return best


def _head(text: str, kept: int, marker: str) -> str:
    """Keep at most so many characters of the beginning; nothing when no grapheme fits."""
    end = grapheme_start(text, kept)
    return text[:end] + marker if end else ""


def _ends(text: str, kept: int, marker: str) -> str:
    """Keep at most so many characters of both ends together, the beginning a little more."""
    end = grapheme_start(text, kept - kept // 2)
    if not end:
        return ""
    start = grapheme_end(text, len(text) - kept // 2)
    return text[:end] + marker + text[max(start, end) :]
