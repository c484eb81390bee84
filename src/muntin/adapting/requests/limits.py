"""When a conversation is compacted and how much of it stays: tokens, a share, or messages."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from muntin.counting import checked_tokens
from muntin.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ("BeforeCompaction", "Limit", "RequestPlan", "limit_of")

LimitKind = Literal["tokens", "fraction", "messages"]
Reason = Literal["over_budget", "trigger", "asked"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A size of a conversation."""

    kind: LimitKind
    """Unit of the amount."""
    amount: float
    """Tokens, a share of the window in (0, 1], or messages."""


def limit_of(given: Any, name: str) -> Limit | None:
    """Read a limit: an int is tokens, a float a share of the window, a pair names its kind.

    Args:
        given: For example `4000`, `0.8`, `("tokens", 4000)`, `("fraction", 0.8)` or
            `("messages", 40)`; `None` sets no limit.
        name: Name of the argument, for errors.

    Raises:
        ConfigurationError: It is none of these, or out of range.
    """
    if given is None or isinstance(given, Limit):
        return given
    kind, amount = _pair(given)
    if kind == "fraction" and isinstance(amount, (int, float)) and 0 < amount <= 1:
        return Limit(kind="fraction", amount=float(amount))
    if kind == "tokens" or kind == "messages":
        return Limit(kind=kind, amount=checked_tokens(amount, name))
    raise ConfigurationError(
        f"{name} must be an int (tokens), a float in (0, 1] (share of the window), or a pair such "
        f"as ('tokens', 4000), ('fraction', 0.8) or ('messages', 40), got {given!r:.80}"
    )


def _pair(given: Any) -> tuple[Any, Any]:
    if isinstance(given, (tuple, list)):
        pair = tuple(cast("Sequence[Any]", given))
        return (pair[0], pair[1]) if len(pair) == 2 else (None, None)
    if isinstance(given, float):
        return "fraction", given
    return "tokens", given


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestPlan:
    """A compaction that is about to happen; the hook `before_compaction` may change or refuse it.

    Use `dataclasses.replace` to change it.
    """

    messages: tuple[Any, ...]
    """The conversation, system message included."""
    reason: Reason
    """Why: the request is over the budget, the trigger was reached, or it was asked for."""
    tokens: int
    """Tokens of the request as it would be sent now."""
    budget: int
    """Tokens the request may take."""
    keep: int
    """Tokens to bring it down to; may be changed, up to `budget`."""
    keep_whole: frozenset[int] = field(default_factory=frozenset[int])
    """Positions of messages that stay word for word; may be extended."""
    thread: str = ""
    """Thread of the conversation; `""` where there is none."""


BeforeCompaction: TypeAlias = "Callable[[RequestPlan], RequestPlan | None]"
"""Looks at a plan and returns it, a changed one, or `None` to refuse it."""
