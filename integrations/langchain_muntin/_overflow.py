"""Recognise that a provider refused a request for its size, whatever its package makes of that."""

from __future__ import annotations

import re
from dataclasses import dataclass

from langchain_core import exceptions as core_exceptions

__all__ = ("Overflow", "overflow_of")

_OVERFLOW = getattr(core_exceptions, "ContextOverflowError", None)
_SAYS_SO = re.compile(
    r"context[ _]length|context[ _]window|maximum context|max(?:imum)? (?:input|prompt) (?:tokens|"
    r"length)|prompt is too long|input is too long|too many (?:input )?tokens|exceeds? the (?:"
    r"available |model'?s |maximum )?(?:context|number of tokens|token)|input token count|"
    r"reduce the length of the (?:messages|prompt|input)",
    re.IGNORECASE,
)
_NOT_THAT = re.compile(r"rate limit|per minute|quota|\bTPM\b", re.IGNORECASE)
_NUMBER = re.compile(r"\d[\d,_]{2,}")


@dataclass(frozen=True, slots=True)
class Overflow:
    """What a refusal says."""

    limit: int | None = None
    """Tokens the provider allows; `None` where it does not say."""
    requested: int | None = None
    """Tokens it counted; `None` where it does not say."""


def overflow_of(error: BaseException) -> Overflow | None:
    """Return what an error says about a request that was too large; `None` for other errors."""
    text = str(error)
    named = _OVERFLOW is not None and isinstance(error, _OVERFLOW)
    if not named and (_NOT_THAT.search(text) or not _SAYS_SO.search(text)):
        return None
    found = [int(re.sub(r"[,_]", "", number)) for number in _NUMBER.findall(text)]
    if len(found) < 2 or found[0] == found[1]:
        return Overflow()
    # Every wording names the limit and what was asked for first, in either order.
    return Overflow(limit=min(found[:2]), requested=max(found[:2]))
