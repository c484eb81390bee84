"""Cut a whole unit to a size: its results to a fair share each, and the texts next to them.

A unit is worth keeping in part when each of its results and texts still shows a little of itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from muntin.conversations.fitting.requests import cut_text
from muntin.conversations.fitting.shortening import cut_results, fair_limit

if TYPE_CHECKING:
    from muntin.conversations.fitting.draft import Draft, Plan
    from muntin.messages import Unit

__all__ = ("cut_unit", "least_of")

LEAST_SHOWN, LEAST_SAID = 24, 48
"""Tokens of a result and of a text below which a part of it is useless."""


def least_of(draft: Draft, unit: Unit) -> int:
    """Count the tokens of a unit in which everything in it still shows a little of itself."""
    fixed, parts = _parts(draft, unit)
    least = LEAST_SHOWN if unit.kind == "tools" else LEAST_SAID
    return fixed + sum(min(size, least) for size in parts)


def cut_unit(draft: Draft, plan: Plan, unit: Unit, size: int) -> None:
    """Cut the results and texts of a unit so that all of it costs about `size` tokens."""
    fixed, parts = _parts(draft, unit)
    limit = fair_limit(parts, size - fixed)
    for index in unit.indices:
        results = draft.result_sizes(index) if draft.shortenable((index,)) else ()
        if results and max(results) > limit:
            cut_results(draft, plan, index, sum(min(one, limit) for one in results))
        elif draft.may_cut_text(index):
            framing = draft.measured[index].tokens - draft.text_tokens(index)
            cut_text(draft, plan, index, limit + framing)


def _parts(draft: Draft, unit: Unit) -> tuple[int, list[int]]:
    """Return what cannot be cut in a unit, and the sizes of what can."""
    parts: list[int] = []
    for index in unit.indices:
        if draft.shortenable((index,)):
            parts += draft.result_sizes(index)
        elif draft.may_cut_text(index):
            parts.append(draft.text_tokens(index))
    return sum(draft.measured[index].tokens for index in unit.indices) - sum(parts), parts
