"""One text with which a provider refuses a request: its pattern and what it means."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

__all__ = ("RefusalKind", "Wording", "row")

RefusalKind = Literal["window", "rate", "thinking", "history"]
"""Why a request was refused: it is larger than the window or than the whole quota of a minute, its
signed thinking belongs to another conversation, or its messages break a rule of the provider."""

_NUMBER = r"(?<![\w.\-/])(?P<{}>\d[\d,_]*)(?![\w]|[-/.]\w)"
_NAMES = ("limit", "prompt", "total", "answer", "over")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """One text of one provider."""

    provider: str
    """Provider or server that writes it."""
    kind: RefusalKind = "window"
    """What it means."""
    says: str
    """Regular expression in which `{limit}` and the like match numbers."""
    example: str
    """The text as the provider sends it."""
    pattern: re.Pattern[str] = field(init=False, repr=False, compare=False)
    """`says`, compiled."""

    def __post_init__(self) -> None:
        says = self.says
        for name in _NAMES:
            says = says.replace("{" + name + "}", _NUMBER.format(name))
        object.__setattr__(self, "pattern", re.compile(says, re.IGNORECASE | re.DOTALL))


def row(provider: str, example: str, says: str, *, kind: RefusalKind = "window") -> Wording:
    """Return a row of the table."""
    return Wording(provider=provider, kind=kind, says=says, example=example)
