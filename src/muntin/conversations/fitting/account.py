"""Write the account of a fit out of the draft it was made with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from muntin.counting import REPLY_TOKENS, counter_name, is_exact
from muntin.messages import canonical_json
from muntin.report import AssemblyReport, Decision, Piece, SourceReport, preview_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from muntin.conversations.fitting.draft import Draft
    from muntin.counting import Measured
    from muntin.report import DecisionKind, Reason

__all__ = ("report_of",)


def report_of(
    draft: Draft,
    out: Sequence[Any],
    *,
    given: Sequence[Any],
    origins: Sequence[int | None],
    budget: int,
    window: int | None,
    reserve: int,
    tools: Sequence[Any],
    replay: Callable[[int], AssemblyReport],
) -> AssemblyReport:
    """Make the report: one decision for every message that was given.

    Args:
        draft: The fit.
        out: The messages that are sent.
        given: The messages as they came, before anything was mended.
        origins: For each message of the draft its position in `given`; `None` for a note that
            mending added.
        budget: Tokens the request may take.
        window: Tokens of the window; `None` when unknown.
        reserve: Tokens set aside for the answer.
        tools: Tool schemas that are sent along.
        replay: Makes the report of another budget.
    """
    decisions = tuple(_decisions(draft, given, origins))
    used: dict[str, int] = dict.fromkeys([decision.source for decision in decisions], 0)
    added = 0
    for place, origin in enumerate(origins):
        if origin is None:
            added += draft.size[place]
        else:
            used[decisions[origin].source] += draft.size[place]
    fixed = {"reply": REPLY_TOKENS}
    if tools:
        fixed = {"tools": draft.tool_tokens, **fixed}
    if draft.instruction_tokens:
        fixed["instructions"] = draft.instruction_tokens
    written = {**draft.written(), "repair": added}
    return AssemblyReport(
        kind="conversation",
        budget=budget,
        window=window,
        reserve=reserve,
        used=draft.total,
        counter=counter_name(draft.counter),
        exact=is_exact(draft.counter),
        fixed=fixed,
        written={name: tokens for name, tokens in written.items() if tokens},
        sources=tuple(
            SourceReport.of(role, [one for one in decisions if one.source == role], used=used[role])
            for role in used
        ),
        decisions=decisions,
        events=tuple(draft.events),
        notes=tuple(draft.notes),
        pieces=tuple(_pieces(draft, tools, out)),
        question=preview_of(_question(draft)),
        replay=replay,
    )


def _question(draft: Draft) -> str:
    for one in reversed(draft.measured):
        if one.view.is_user_turn:
            return one.view.text
    return ""


def _decisions(
    draft: Draft, given: Sequence[Any], origins: Sequence[int | None]
) -> Iterator[Decision]:
    place_of = {origin: place for place, origin in enumerate(origins) if origin is not None}
    for index, message in enumerate(given):
        place = place_of.get(index)
        if place is None:
            one = draft.counts.measure(message)
            if index in draft.compacted:
                yield _decision(one, index, ("summarised", "compacted"), 0)
                continue
            lost = index in draft.unbound
            yield _decision(one, index, ("dropped", "unbound" if lost else "orphaned"), 0)
        elif draft.messages[place] is message:
            why = draft.why.get(place) or ("kept", _why_kept(draft, place))
            yield _decision(draft.measured[place], index, why, draft.size[place])
        else:
            yield _mended(draft, draft.counts.measure(message), index, place)


def _mended(draft: Draft, before: Measured, index: int, place: int) -> Decision:
    """Decide on a message that was mended before anything else."""
    now = draft.size[place]
    lost = draft.measured[place].tokens < before.tokens
    if index in draft.unbound:
        why = draft.why.get(place) or ("shortened", "unbound")
    else:
        why = draft.why.get(place) or ("shortened" if lost else "kept", "repaired")
    return _decision(before, index, why, now)


def _decision(one: Measured, index: int, why: tuple[DecisionKind, Reason], now: int) -> Decision:
    kind, reason = why
    whole = one.view.text or "\n".join(result.text for result in one.view.results)
    text = one.view.text or " ".join(result.text[:200] for result in one.view.results[:3])
    text = text or ", ".join(call.name for call in one.view.calls[:9])
    return Decision(
        index=index,
        source=one.view.role,
        kind=kind,
        reason=reason,
        tokens=one.tokens,
        kept_tokens=one.tokens if kind == "kept" else min(now, one.tokens),
        id=one.view.id or "",
        preview=preview_of(text),
        text=whole or None,
    )


def _why_kept(draft: Draft, index: int) -> Reason:
    if not draft.was_read:
        return "placed"
    if draft.views[index].pinned and not draft.views[index].compacts:
        return "pinned"
    if index in draft.recalled:
        return "recalled"
    return "protected" if draft.is_held(draft.unit_of(index)) else "recent"


def _pieces(draft: Draft, tools: Sequence[Any], out: Sequence[Any]) -> Iterator[Piece]:
    if tools:
        yield Piece.of("tools", canonical_json(list(tools)), draft.tool_tokens)
    told = next((m.view.instructions for m in reversed(draft.measured) if m.view.instructions), "")
    if told:
        yield Piece.of("instructions", told, draft.instruction_tokens)
    for position, message in enumerate(out):
        one = draft.counts.measure(message)
        text = canonical_json(one.shape.parts(message))
        yield Piece.of(f"{position} {one.view.role}", text, one.tokens)
