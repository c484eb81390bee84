"""Use space that a cut left idle: grow what was cut, then bring back the newest units.

Caps and whole units can free more than was needed. What is brought back is rounded down to whole
steps, so that it stays the same while a conversation grows by less than a step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from muntin.conversations.fitting.note import rewrite_count
from muntin.conversations.fitting.units import cut_unit, least_of

if TYPE_CHECKING:
    from muntin.conversations.fitting.draft import Draft, Plan
    from muntin.messages import Unit

__all__ = ("refill",)

_LOOKED_AT = 200
"""Units tried, newest first: older ones are hardly worth the search."""


def refill(draft: Draft, plan: Plan, idle: int) -> None:
    """Grow cut units and bring back dropped ones, newest first, within `idle` tokens."""
    limit = draft.total + idle
    for unit in _cut_units(draft):
        if not _grow(draft, plan, unit, limit):
            return
    brought = False
    for unit in _dropped_units(draft):
        left = limit - draft.total
        if left <= 0:
            break
        size = sum(draft.measured[index].tokens for index in unit.indices)
        if size > left and least_of_dropped(draft, unit) > left:
            continue
        draft.bring_back(unit)
        brought = True
        if size > left:
            cut_unit(draft, plan, unit, left)
            if draft.total > limit:
                draft.drop([unit], "summarised", "digested")
    if brought:
        rewrite_count(draft, plan)


def _grow(draft: Draft, plan: Plan, unit: Unit, limit: int) -> bool:
    """Let a cut unit take what is left; return whether anything is left after it."""
    before = sum(draft.size[index] for index in unit.indices)
    left = limit - draft.total
    if left <= 0:
        return False
    changed = {index: draft.changed[index] for index in unit.indices if index in draft.changed}
    why = {index: draft.why[index] for index in changed}
    for index in changed:
        draft.restore(index)
    if draft.total > limit:
        cut_unit(draft, plan, unit, before + left)
    if draft.total > limit:
        draft.put_back(changed, why)
    return True


def _cut_units(draft: Draft) -> list[Unit]:
    cut = {
        draft.outline.unit_at[index]
        for index in draft.changed
        if draft.why[index][1] == "oversized"
    }
    return [draft.units[place] for place in sorted(cut, reverse=True)]


def _dropped_units(draft: Draft) -> list[Unit]:
    return [
        unit
        for unit in reversed(draft.folded()[-_LOOKED_AT:])
        if draft.why[unit.first][1] == "digested" and unit.first not in draft.earlier_notes()
    ]


def least_of_dropped(draft: Draft, unit: Unit) -> int:
    """Count the least a dropped unit would take if it came back."""
    draft.bring_back(unit)
    least = least_of(draft, unit)
    draft.drop([unit], "summarised", "digested")
    return least
