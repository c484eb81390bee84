"""Choose which old units go and which stay, so that a conversation comes to its target.

Tool rounds go before other messages, and documents of the user last of all. Units go whole, oldest
first; the last one is cut to the space that is left. What the question asks for stays word for
word.

Cuts move in steps. While a conversation grows, most calls cut where the call before did and write
the same note, so that the provider's cache keeps the beginning of the prompt.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from muntin.conversations.fitting.note import (
    facts_of_units,
    overhead_of_note,
    write_note,
    write_recap,
)
from muntin.conversations.fitting.recalling import (
    RECALL_SHARE,
    is_talk,
    matching,
    not_recalled,
    question_of,
)
from muntin.conversations.fitting.rule_section import tokens_of_rules
from muntin.conversations.fitting.shortening import cap_for, cut_results, in_steps
from muntin.conversations.fitting.units import cut_unit, least_of
from muntin.conversations.recall import Newest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from muntin.conversations.fitting.draft import Draft, Plan
    from muntin.messages import Unit
    from muntin.runtime import Flow

__all__ = ("fold", "fold_everything")

_TALK_AHEAD = 1.0
"""Shares of the budget by which messages of people and of the assistant count as newer than they
are: tool results go before them."""
_DOCUMENT, _DOCUMENT_AHEAD = 500, 4.0
"""Tokens of a user message that holds a document, and how much newer still it counts: nobody but
the user can bring it again."""
_DIGEST = 0.5
"""Share of the space the digest may take."""
_LEAST_DIGEST = 0.2
"""Share of the space the digest may take at least, next to however large a round in flight."""
_DIGEST_TOKENS = 4_000
"""Tokens the digest may take at most: beyond that, messages are worth more than facts."""
_CLOSE = 6
"""Parts of a step: less space than one of them is not worth another digest."""
_CAP_IN_TAIL = 0.20
"""Share of the space one old result may take when units are folded as well."""
_TRIES = 4
"""How often a cut is chosen anew when its note takes less than expected."""


def fold(draft: Draft, plan: Plan, target: int, room: int, step: int) -> Flow[None]:
    """Drop old units and leave a note, so that the draft comes to `target` if it can."""
    for index in [i for i in draft.changed if draft.may_be_restored(i)]:
        draft.restore(index)
    marked = draft.loose()
    if not marked.any():
        return
    cap = cap_for(_CAP_IN_TAIL, room)
    asked = question_of(draft, plan)
    allowance = min(int(_DIGEST * room), _DIGEST_TOKENS)
    # The round in flight comes before the facts of old messages, except the most important ones.
    held = draft.total - int(draft.sizes_of_units()[draft.loose()].sum())
    least, fine = int(_LEAST_DIGEST * room), max(step // 4, 1)
    draft.allowance = min(allowance, max((target - held) // fine * fine, least))
    rules = tokens_of_rules(draft, plan, marked.tolist())
    choice = _choose(draft, plan, marked, target - rules, cap, step, asked)
    draft.drop(choice.gone, "summarised", "digested")
    _cut_long(draft, plan, choice.kept, cap)
    if choice.parted is not None:
        cut_unit(draft, plan, choice.parted, choice.size)
    text = choice.text
    if plan.summarizer is not None:
        text = yield from write_recap(draft, plan, text)
    write_note(draft, plan, text)
    # The sizes were estimates. What is still too much goes the same way.
    over = 0
    while draft.total > target and over < len(choice.kept):
        draft.drop([choice.kept[over]], "summarised", "digested")
        over += 1
    if over:  # the note counts what is gone, and holds its rules
        write_note(draft, plan, text)


def _cut_long(draft: Draft, plan: Plan, kept: Sequence[Unit], cap: int) -> None:
    """Cut the results over `cap` of the units that stay."""
    long = [i for i in draft.results_over(cap + draft.counts.framing) if i not in draft.changed]
    if not long:
        return
    may_be_cut = {unit.first for unit in kept}
    for index in draft.shortenable(long):
        if draft.unit_of(index).first in may_be_cut:
            cut_results(draft, plan, index, cap)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """Which units go, and the one that is cut to the rest of the space."""

    gone: Sequence[Unit]
    kept: Sequence[Unit]
    """Units that stay, in the order in which they would go next."""
    parted: Unit | None = None
    """The first of `kept` when only a part of it fits."""
    size: int = 0
    """Tokens that part may take."""
    text: str = ""
    """Facts of the units that go."""


def _choose(
    draft: Draft,
    plan: Plan,
    marked: NDArray[np.bool_],
    target: int,
    cap: int,
    step: int,
    asked: str,
) -> _Choice:
    """Choose the units that go and those that stay, and write what the former leave behind."""
    order, sizes = _order(draft, plan, marked, cap)
    expected = int(sizes.sum())
    base = draft.total - int(draft.sizes_of_units()[marked].sum())
    noted = draft.earlier_notes()
    notes = sum(unit.first in noted for unit in order) if noted else 0
    size_of = {unit.first: int(size) for unit, size in zip(order, sizes, strict=True)}

    # A recap is paid for: what it retells must not change with every question.
    by_value = bool(asked) and is_talk(draft) and plan.summarizer is None
    if by_value and isinstance(plan.question, Newest):
        by_value = bool(matching(draft, asked, order[notes:]))

    def chosen(note: int) -> _Choice:
        excess = base + expected + note - target
        if by_value:
            said = sorted(order[notes:], key=lambda unit: unit.first)
            costs = [size_of[unit.first] for unit in said]
            gone, stay = not_recalled(draft, asked, said, costs, expected - max(excess, 0))
            return _Choice(gone=[*order[:notes], *gone], kept=stay)
        choice = _cut_in(draft, order, sizes, in_steps(excess, step), notes)
        wanted = matching(draft, asked, choice.gone[notes:]) if asked else []
        if not wanted:
            return choice
        costs = [size_of[unit.first] for unit in wanted]
        most = min(int(RECALL_SHARE * (plan.budget - draft.overhead)), sum(costs))
        choice = _cut_in(draft, order, sizes, in_steps(excess + most, step), notes)
        return _with_recalled(draft, choice, wanted, size_of, most)

    spent = draft.allowance
    choice = chosen(spent)
    text, tokens = facts_of_units(draft, plan, choice.gone, draft.allowance)
    for _ in range(_TRIES):
        # The old part may hold fewer facts than there is space for: keep more of it word for word.
        # Where this ends depends on the old part alone, so the cut moves in whole steps.
        needed = tokens + overhead_of_note(draft, plan, choice.gone)
        if spent - needed < (step if is_talk(draft) else step // _CLOSE):
            break
        more = chosen(needed)
        if len(more.gone) == len(choice.gone) and more.size == choice.size:
            break
        more_text, more_tokens = facts_of_units(draft, plan, more.gone, draft.allowance)
        if more_tokens > tokens:
            break
        spent, choice, text, tokens = needed, more, more_text, more_tokens
    return replace(choice, text=text)


def _with_recalled(
    draft: Draft, choice: _Choice, wanted: Sequence[Unit], size_of: dict[int, int], room: int
) -> _Choice:
    """Keep as many of the wanted units as fit into `room`, best first."""
    back: set[int] = set()
    for unit in wanted:
        if size_of[unit.first] <= room:
            room -= size_of[unit.first]
            back.add(unit.first)
    draft.recalled = {i for unit in choice.gone if unit.first in back for i in unit.indices}
    gone = [unit for unit in choice.gone if unit.first not in back]
    recalled = [unit for unit in choice.gone if unit.first in back]
    return replace(choice, gone=gone, kept=[*choice.kept, *recalled])


def _order(
    draft: Draft, plan: Plan, marked: NDArray[np.bool_], cap: int
) -> tuple[list[Unit], NDArray[np.int64]]:
    """List the units that may go in the order in which they go, and what each costs at most.

    The note of an earlier fit goes first, wherever it is: this fit writes the one note. Then tool
    rounds and messages go oldest first, where messages of people and the assistant count as newer
    than it is.
    """
    units = draft.pick(marked)
    sizes = draft.sizes_of_units(cap + draft.counts.framing)[marked]
    space = plan.budget - draft.overhead
    place = sizes.cumsum().astype(np.float64)
    kinds = np.array([unit.kind for unit in units])
    place[(kinds == "user") | (kinds == "assistant")] += _TALK_AHEAD * space
    place[(kinds == "user") & (sizes > _DOCUMENT)] += _DOCUMENT_AHEAD * space
    noted, released = draft.earlier_notes(), draft.released
    if noted or released:
        place[[at for at, unit in enumerate(units) if unit.first in noted]] = -1
        place[[at for at, unit in enumerate(units) if unit.first in released]] += np.inf
    order = np.argsort(place, kind="stable")
    return [units[at] for at in order.tolist()], sizes[order]


def _cut_in(
    draft: Draft, order: Sequence[Unit], sizes: NDArray[np.int64], wanted: int, least: int
) -> _Choice:
    """Cut so that `wanted` tokens are freed: whole units, and a part of the next one."""
    if wanted <= 0:
        return _Choice(gone=order[:least], kept=order[least:])
    ends = sizes.cumsum()
    at = max(int(np.searchsorted(ends, wanted)), least)
    if at >= len(order):
        return _Choice(gone=order, kept=[])
    size = int(ends[at]) - wanted
    if size >= least_of(draft, order[at]):
        return _Choice(gone=order[:at], kept=order[at:], parted=order[at], size=size)
    return _Choice(gone=order[: at + 1], kept=order[at + 1 :])


def fold_everything(draft: Draft, plan: Plan) -> None:
    """Drop every unit that is not held."""
    gone = draft.pick(draft.loose())
    if draft.note_text:
        draft.drop(gone, "summarised", "digested")
    else:
        draft.drop(gone, "dropped", "over_budget")
    write_note(draft, plan, draft.note_text)
