"""Read why a provider refused a request, and decide how large the next one may be.

`refusal_of` matches the text of an error against the table of `refusal_texts`, then against general
phrases. `second_try` turns what was read into a budget. A number counts as a limit only if it is
plausible: called tokens, larger than every request that was accepted before, and not far below the
window that is known. Otherwise the request shrinks by a quarter.

It does not send anything, and it remembers nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from muntin.adapting.refusal_texts import WORDINGS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from muntin.adapting.refusal_wording import RefusalKind, Wording

__all__ = ("Refusal", "Retry", "refusal_of", "second_try")

_SMALLER = 0.75
"""Share of the refused request that the next one may take where no limit is known."""
_LESS = 0.95
"""Share that it may take at most."""
_FAR_BELOW = 0.25
"""Share of the known window below which a number in an unknown text is not a limit."""
_FACTOR = 8
"""A reported count more than this many times larger or smaller than ours is not of this request."""
_CAUSES = 4
"""Errors of a chain that are read: the error itself and its causes."""

_CLASSES = frozenset({"ContextOverflowError", "ContextWindowExceededError"})
"""Error classes of LangChain and LiteLLM that mean an overflow."""
_GENERAL = re.compile(
    r"context[ _](?:length|window|limit|size)|maximum (?:context|model length)|"
    r"max(?:imum)? (?:input|prompt) (?:tokens|length)|(?:prompt|input) is too long|"
    r"too many (?:input )?tokens|input token count|max_new_tokens`? must be|"
    r"exceeds? the (?:available |model'?s |maximum )?(?:context|number of tokens|token)|"
    r"reduce the length of the (?:messages|prompt|input)",
    re.IGNORECASE,
)
_CURABLE = re.compile(r"rate limit|per minute|quota|\bTPM\b|try again in", re.IGNORECASE)
"""Waiting helps; the request itself is not too large."""
_FIGURE = r"(?<![\w.\-/])(\d[\d,_]{2,})(?!\w|[-/.]\w)"
"""A number that is not part of a name, a date, a version or an address."""
_TOKENS_NAMED = (
    re.compile(_FIGURE + r"(?: [a-z]+){0,2}[ -]tokens?\b", re.IGNORECASE),
    re.compile(r"\btokens?\b[^\d.;:\"{]{0,40}:? ?\(?" + _FIGURE, re.IGNORECASE),
)
_LIMITING = re.compile(
    r"(?:maximum|max|limit|allowed|supports|up to|at most|only)\b[^\d.;\"{]{0,40}$", re.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The content of a refusal."""

    kind: RefusalKind = "window"
    """Why the request was refused."""
    limit: int | None = None
    """Tokens the provider allows; `None` if unknown."""
    requested: int | None = None
    """Tokens it counted, those for the answer included; `None` if unknown."""
    answer: int | None = None
    """Tokens among them for the answer: 0 if only the prompt was counted; `None` if unknown."""
    wording: Wording | None = None
    """Row of the table that matched; `None` for a text that is in no row."""

    @property
    def is_overflow(self) -> bool:
        """Whether a smaller request may succeed where waiting would not help."""
        return self.kind in ("window", "rate")


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """How large the next request may be, and what the refusal teaches."""

    budget: int
    """Tokens the next request may take, by our count."""
    charged: int | None = None
    """Tokens the provider counted for the refused prompt; `None` if unknown."""
    limit: int | None = None
    """Tokens of prompt and answer the provider allows; `None` if no plausible limit was named."""


def refusal_of(error: BaseException, *, tokens: int | None = None) -> Refusal | None:
    """Return why a request was refused, as far as the error names it; `None` for every other error.

    A request above a quota per minute counts as an overflow only if it is larger than the whole
    quota: then no waiting helps.

    Args:
        error: What the client raised. Its causes are read too.
        tokens: Tokens of the request by our count; decides about a quota if the text does not
            name what was requested. `None` leaves that to waiting.

    ```python
    from muntin.adapting import refusal_of

    said = refusal_of(ValueError("prompt is too long: 210043 tokens > 200000 maximum"))
    print(said.limit, said.requested, refusal_of(ValueError("invalid api key")))
    #> 200000 210043 None
    ```
    """
    texts = [str(one) for one in _chain(error)]
    for text in texts:
        for wording in WORDINGS:
            found = wording.pattern.search(text)
            if found is not None:
                return _read(wording, found, tokens)
    named = any(type(one).__name__ in _CLASSES for one in _chain(error))
    for text in texts:
        if named or (_GENERAL.search(text) and not _CURABLE.search(text)):
            return _general(text)
    return None


def second_try(
    said: Refusal, tokens: int, *, reserve: int, window: int | None = None, accepted: int = 0
) -> Retry:
    """Decide how large the request after a refusal may be.

    Args:
        said: The content of the refusal.
        tokens: What the refused request costs by our count.
        reserve: Tokens kept free for the answer, by the provider's count.
        window: Tokens of the window as far as known; `None` if unknown.
        accepted: Tokens of the largest prompt that was accepted before, by the provider's count.

    Returns:
        A budget below `tokens`, never negative.
    """
    limit = said.limit if _is_plausible(said, window, accepted) else None
    answer = reserve if said.answer is None else said.answer
    charged = None if said.requested is None else said.requested - answer
    if charged is not None and not tokens / _FACTOR <= charged <= tokens * _FACTOR:
        charged = None
    available = 0 if limit is None else limit - max(answer, reserve)
    if available < 1 or (limit is not None and charged is not None and charged <= available):
        return Retry(budget=int(_SMALLER * tokens), charged=charged, limit=limit)
    if charged is None:
        return Retry(budget=min(int(_SMALLER * tokens), available), limit=limit)
    # The provider counts differently; the refusal contains its count.
    return Retry(budget=int(tokens * min(available / charged, _LESS)), charged=charged, limit=limit)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes."""
    one: BaseException | None = error
    for _ in range(_CAUSES):
        if one is None:
            return
        yield one
        one = one.__cause__


def _read(wording: Wording, found: re.Match[str], tokens: int | None) -> Refusal | None:
    """Return the numbers of a matched row; `None` for a quota that waiting can cure."""
    numbers = {
        name: int(re.sub(r"[,_]", "", text))
        for name, text in found.groupdict().items()
        if text is not None
    }
    limit, answer = numbers.get("limit"), numbers.get("answer")
    if not wording.pattern.groups and wording.kind == "window":
        return replace(_general(found.string), wording=wording)
    requested = numbers.get("total")
    if requested is None and "prompt" in numbers:
        answer = answer or 0
        requested = numbers["prompt"] + answer
    elif requested is None and "over" in numbers and limit is not None:
        requested, answer = limit + numbers["over"], 0
    if wording.kind == "rate" and (requested or tokens or 0) <= (limit or 0):
        return None
    if requested is not None and limit is not None and requested <= limit:
        requested = answer = None
    return Refusal(
        kind=wording.kind, limit=limit, requested=requested, answer=answer, wording=wording
    )


def _general(text: str) -> Refusal:
    """Read a text that is in no row: numbers called tokens, the limit behind a limiting word."""
    numbers = [
        (found.start(1), int(re.sub(r"[,_]", "", found[1])))
        for pattern in _TOKENS_NAMED
        for found in pattern.finditer(text)
    ]
    limits = [number for start, number in numbers if _LIMITING.search(text[:start])]
    limit = min(limits, default=None)
    above = [number for _, number in numbers if limit is not None and number > limit]
    return Refusal(limit=limit, requested=max(above, default=None))


def _is_plausible(said: Refusal, window: int | None, accepted: int) -> bool:
    if said.limit is None or said.limit <= accepted:
        return False
    if said.wording is not None and said.wording.pattern.groups:
        return True
    return window is None or said.limit >= _FAR_BELOW * window
