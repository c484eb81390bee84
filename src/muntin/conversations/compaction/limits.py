"""Read the limits of a compactor: tokens, a share of the window, or messages."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from muntin.counting import checked_tokens
from muntin.errors import ConfigurationError

__all__ = ("NO_LIMIT", "Limit", "Threshold", "threshold")

Limit: TypeAlias = int | float | tuple[Literal["tokens", "fraction", "messages"], int | float]
"""A number of tokens, a share of the window between 0 and 1, or a pair that names its unit."""

NO_LIMIT = sys.maxsize


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """A limit in one of two units."""

    tokens: int | None = None
    """Tokens of content; `None` where messages count."""
    messages: int | None = None
    """Number of messages; `None` where tokens count."""


def threshold(limit: Limit, name: str, *, window: int | None) -> Threshold:
    """Read a limit.

    Args:
        limit: What the caller gave.
        name: Its parameter, for errors.
        window: Tokens of the model's window; `None` if unknown.

    Raises:
        ConfigurationError: It is none of the forms, out of range, or a share of no window.

    ```python
    from muntin.conversations.compaction.limits import threshold

    print(threshold(("messages", 50), "trigger", window=None).messages)
    #> 50
    print(threshold(0.8, "trigger", window=8000).tokens)
    #> 6400
    ```
    """
    unit, value = _named(limit, name)
    if unit == "fraction":
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 < value <= 1:
            raise ConfigurationError(f"{name} must be a share above 0 and up to 1, got {value!r}")
        if window is None:
            raise ConfigurationError(f"{name}={limit!r} is a share of the window: give window=")
        return Threshold(tokens=int(value * window))
    number = checked_tokens(
        value,
        name,
        least=0 if unit == "tokens" else 1,
        unit="tokens" if unit == "tokens" else "count",
    )
    return Threshold(tokens=number) if unit == "tokens" else Threshold(messages=number)


def _named(limit: object, name: str) -> tuple[str, object]:
    if isinstance(limit, tuple):
        pair = cast("tuple[object, ...]", limit)
        if len(pair) == 2 and pair[0] in ("tokens", "fraction", "messages"):
            return str(pair[0]), pair[1]
        raise ConfigurationError(
            f'{name} must be ("tokens" | "fraction" | "messages", number), got {limit!r}'
        )
    return ("fraction", limit) if isinstance(limit, float) else ("tokens", limit)
