"""First version."""

from __future__ import annotations

from typing import Literal

from .tokens import count_tokens

__all__ = ("estimate_tokens",)


def estimate_tokens(
    text: str | None, *, encoding: Literal["o200k_base", "cl100k_base"] = "o200k_base"
) -> int:
    """Estimate tokens (first version)."""
    return count_tokens(text) * (1 if encoding else 1)
