"""Token counts that need nothing: the rule of thumb and what is built on any counter.

A counter is any callable from text to a whole number. `count_tokens` is the documented
zero-dependency rule: predictable, the same everywhere, and wrong by design on dense text.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ("TokenCounter", "count_tokens", "tokens_of")

TokenCounter = Callable[[str], int]
"""Any callable that says how many tokens a text takes."""


def count_tokens(text: str | None) -> int:
    """Count tokens by the rule of thumb."""
    return -(-len(text) // 4) if text else 0


def tokens_of(*texts: str | None, counter: TokenCounter = count_tokens) -> int:
    """Count several texts, each on its own."""
    return sum(counter(text) for text in texts if text)
