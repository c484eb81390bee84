"""Bring a conversation inside its budget, with the least loss first.

The steps, each only when the ones before were not enough: results that are repeated later, old
results that are too long, old units folded into a note of facts, results of the round in flight.
What is protected is never touched; when it alone is over the budget, `require_room` raises before
anything is done. A low-water mark (`_SLACK`) leaves space for the steps that follow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from muntin.conversations.fitting.folding import fold, fold_everything
from muntin.conversations.fitting.note import reserve_for_note, retell, tell_less, write_note
from muntin.conversations.fitting.refill import refill
from muntin.conversations.fitting.requests import limit_open_request, shorten_open_request
from muntin.conversations.fitting.shortening import (
    LEAST_TEXT,
    drop_repeats,
    room_for_held,
    shorten_held,
    shorten_old,
)
from muntin.errors import ContextWindowExceeded

if TYPE_CHECKING:
    from muntin.conversations.fitting.draft import Draft, Plan
    from muntin.messages import Unit
    from muntin.runtime import Flow

__all__ = ("require_room", "shrink")

_SLACK, _STEP = 0.005, 0.06
"""Shares of the space that stay free after a cut, and by which a cut moves: together they leave
less than 7 % of it idle."""


def require_room(draft: Draft, plan: Plan) -> int:
    """Count what must stay at least, and refuse a budget below it.

    Raises:
        ContextWindowExceeded: The protected part alone is over the budget.
    """
    parts: dict[str, int] = {}
    for unit in draft.required:
        for index in unit.indices:
            name = _part_name(draft, unit, index)
            parts[name] = parts.get(name, 0) + _least(draft, index)
    parts["tools and framing"] = draft.overhead
    needed = sum(parts.values())
    if needed > plan.budget:
        raise ContextWindowExceeded(
            "the protected messages", needed=needed, available=plan.budget, parts=parts
        )
    return needed


def _least(draft: Draft, index: int) -> int:
    """Count the least a held message can be cut to."""
    one = draft.measured[index]
    if not draft.shortenable((index,)):
        return one.tokens
    least = draft.counter(LEAST_TEXT)
    return one.tokens - sum(max(tokens - least, 0) for tokens in draft.result_sizes(index))


def _part_name(draft: Draft, unit: Unit, index: int) -> str:
    if index < draft.leading:
        return "system"
    if index == draft.question:
        return "newest user message"
    if draft.views[index].compacts:
        return "summary of the provider"
    if draft.views[index].pinned:
        return "pinned"
    return "tool round in flight" if unit is draft.tail else "bound to protected messages"


def shrink(draft: Draft, plan: Plan) -> Flow[None]:
    """Shrink a draft until it is inside the budget.

    Raises:
        ContextWindowExceeded: The protected part alone is over the budget.
    """
    floor = require_room(draft, plan)
    draft.drop_broken(plan.budget)
    fixed = draft.overhead + sum(draft.size[: draft.leading])
    room = max(plan.budget - fixed, 0)
    target = max(plan.budget - int(_SLACK * room), floor)
    step = max(1, int(_STEP * room))
    if draft.total > target:
        drop_repeats(draft, plan)
    if draft.total > target:
        shorten_old(draft, plan, target, room, step)
    if draft.total > target:
        limit_open_request(draft, plan, room)
        yield from fold(draft, plan, target, room, step)
    if draft.total > plan.budget:
        _shorten_last(draft, plan, target)
    elif target - draft.total >= step:
        refill(draft, plan, (target - draft.total) // step * step)


def _shorten_last(draft: Draft, plan: Plan, target: int) -> None:
    """Cut what is in flight; then drop, one by one, what is not protected."""
    # The space of the note must not depend on how its facts fill it: a result of the round in
    # flight would show less at a larger budget, because one more fact had room.
    space = room_for_held(draft, target) + draft.note_tokens
    reserved = min(reserve_for_note(draft, plan), max(space, 0))
    if draft.note_tokens > reserved:
        tell_less(draft, plan, reserved)
    spare = max(reserved - draft.note_tokens, 0) if draft.note is not None else 0
    cut = shorten_held(draft, plan, target - spare)
    retell(draft, plan, cut, target - draft.total)
    if draft.total > plan.budget:
        fold_everything(draft, plan)
    if draft.total > plan.budget and draft.note_text:
        write_note(draft, plan, "")
    if draft.total > plan.budget and draft.pending is not None:
        draft.drop([draft.pending], "dropped", "interrupted")
    if draft.total > plan.budget:
        shorten_open_request(draft, plan, plan.budget)
    if draft.total > plan.budget:
        draft.write_note(None)
    if draft.total > plan.budget:
        shorten_open_request(draft, plan, plan.budget)
    if draft.total > plan.budget or draft.note is None:
        shorten_held(draft, plan, plan.budget)
