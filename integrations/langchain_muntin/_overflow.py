"""Recognise that a provider refused a request for its size, whatever its package makes of that."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_core import exceptions as core_exceptions

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("Overflow", "allowed", "overflow_of")

_SMALLER = 0.75
"""Share of a refused request's tokens that the second try may take, where the refusal does not say
how much is allowed."""
_LESS = 0.95
"""Share that it may take at most."""

_OVERFLOW = getattr(core_exceptions, "ContextOverflowError", None)
_SAYS_SO = re.compile(
    r"context[ _](?:length|window|limit)|maximum (?:context|model length)|max(?:imum)? (?:input|"
    r"prompt) (?:tokens|length)|prompt is too long|input is too long|too many (?:input )?tokens|"
    r"exceeds? the (?:available |model'?s |maximum )?(?:context|number of tokens|token)|"
    r"input token count|max_new_tokens`? must be|"
    r"reduce the length of the (?:messages|prompt|input)",
    re.IGNORECASE,
)
_NOT_THAT = re.compile(r"rate limit|per minute|quota|\bTPM\b", re.IGNORECASE)
_STATUS = re.compile(
    r"(?:code|status|response|error|http\S*)\W{0,4}[1-5]\d\d\b|^[1-5]\d\d (?=[A-Z{])",
    re.IGNORECASE,
)
_FIGURE = r"(?<![\w.\-/])(\d[\d,_]{2,})(?!\w|[-/.]\w)"
"""A number that is no part of a name, a date, a version or an address."""


def _saying(*patterns: str) -> tuple[re.Pattern[str], ...]:
    """Compile patterns in which `#` stands for a number."""
    return tuple(re.compile(one.replace("#", _FIGURE), re.IGNORECASE) for one in patterns)


_ANY = _saying("#")
_LIMIT = _saying(
    r"(?:>|<=) *#",
    r"# maximum",
    r'n_ctx"?: *#',
    r'(?:maximum|max|context|limit|allowed|supports|exceed)\b[^\d.;:"{]{0,40}:? ?\(?#',
)
_ANSWER = _saying(
    r"# (?:tokens )?(?:in|for) the (?:completion|output)",
    r"# (?:output tokens|`max_new_tokens)",
    r"\+ #",
)
_TOGETHER = _saying(r"requested (?:about )?#", r"# (?:tokens )?(?:were|was) requested")


@dataclass(frozen=True, slots=True)
class Overflow:
    """What a refusal says."""

    limit: int | None = None
    """Tokens the provider allows; `None` where it does not say."""
    requested: int | None = None
    """Tokens it counted, those for the answer included; `None` where it does not say."""
    answer: int | None = None
    """Tokens among them for the answer: 0 where the prompt alone is counted; `None` where it does
    not say."""


def overflow_of(error: BaseException) -> Overflow | None:
    """Return what an error says about a request that was too large; `None` for other errors."""
    text = str(error)
    named = _OVERFLOW is not None and isinstance(error, _OVERFLOW)
    if not named and (_NOT_THAT.search(text) or not _SAYS_SO.search(text)):
        return None
    text = _STATUS.sub("", text)
    limit = next(_figures(_LIMIT, text), None)
    answer = next(_figures(_ANSWER, text), None)
    counted = next((one for one in _figures(_ANY, text) if one not in (limit, answer)), None)
    if limit is None or counted is None:
        return Overflow(limit)
    if counted in _figures(_TOGETHER, text):
        said = Overflow(limit, counted, answer)
    else:
        said = Overflow(limit, counted + (answer or 0), answer or 0)
    return said if counted + (answer or 0) > limit else Overflow(limit)


def allowed(said: Overflow, tokens: int, reserve: int) -> tuple[int, int | None]:
    """Say how large a second try may be.

    Args:
        said: What the refusal says.
        tokens: What the refused request costs by the count made here.
        reserve: Tokens kept free for the answer, by the provider's count.

    Returns:
        The tokens it may take by the count made here, and what the provider counted of the prompt
        that was refused; `None` where it does not say.
    """
    answer = reserve if said.answer is None else said.answer
    charged = 0 if said.requested is None else said.requested - answer
    room = 0 if said.limit is None else said.limit - max(answer, reserve)
    if room < 1:
        return int(_SMALLER * tokens), max(charged, 0) or None
    if charged < 1:
        return min(int(_SMALLER * tokens), room), None
    # The provider counts more than is counted here: by how much, it has just said.
    return int(tokens * min(room / charged, _LESS)), charged


def _figures(patterns: tuple[re.Pattern[str], ...], text: str) -> Iterator[int]:
    """List the numbers that patterns find, pattern by pattern."""
    for pattern in patterns:
        for found in pattern.finditer(text):
            yield int(re.sub(r"[,_]", "", found[1]))
