"""Decides what in a stable text would break a prompt cache: dates, clock times, random ids.

A prompt cache reuses a prompt up to its first changed token, so "Today is 2024-01-17, 09:41" at the
head of a system prompt makes every call pay for everything behind it. This finds such places; it
cannot know whether they really change, so it warns and changes nothing.
"""

from __future__ import annotations

import re

__all__ = ("cache_warnings",)

_MOVING = re.compile(
    r"""
      (?P<id>\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b)
    | (?P<date>\b(?:19|20)\d\d-[01]\d-[0-3]\d(?:[T ][0-2]\d:[0-5]\d(?::[0-5]\d)?)?
        | \b[0-3]?\d[./][01]?\d[./](?:19|20)\d\d\b)
    | (?P<time>\b[0-2]?\d:[0-5]\d(?::[0-5]\d)?(?:\s?[ap]m)?\b)
    """,
    re.VERBOSE,
)
_WHAT = {"id": "a random id", "date": "a date", "time": "a clock time"}


def cache_warnings(text: str, *, most: int = 5) -> tuple[str, ...]:
    """Find what would move in a text that is meant to stay the same from call to call.

    Args:
        text: The stable part of a prompt: a system prompt, instructions, tool descriptions.
        most: Warnings to give at most; the first ones matter, for nothing behind them is reused.

    Returns:
        One sentence for each place, in order; empty when nothing was found.

    ```python
    from muntin.report import cache_warnings

    for warning in cache_warnings("You are a travel assistant. Now: 2024-01-17 09:41."):
        print(warning)
        #> a date at character 33 ('2024-01-17 09:41'): a prompt cache ends here when it changes
    ```
    """
    warnings: list[str] = []
    for found in _MOVING.finditer(text):
        if len(warnings) == most:
            break
        what = _WHAT[found.lastgroup or "date"]
        warnings.append(
            f"{what} at character {found.start()} ({found.group()!r}): "
            f"a prompt cache ends here when it changes"
        )
    return tuple(warnings)
