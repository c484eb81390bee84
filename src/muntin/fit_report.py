"""Write the account of a fit out of the draft it was made with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from muntin.counters import counter_name, is_exact
from muntin.message_tokens import REPLY_TOKENS
from muntin.report import AssemblyReport, Decision, Piece, SourceReport
from muntin.report.values import preview_of
from muntin.shapes.blocks import canonical_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from muntin.draft import Draft
    from muntin.report import Reason

__all__ = ("report_of",)


def report_of(
    draft: Draft,
    out: Sequence[Any],
    *,
    budget: int,
    window: int | None,
    reserve: int,
    tools: Sequence[Any],
    replay: Callable[[int], AssemblyReport],
) -> AssemblyReport:
    """Make the report: one decision for every message that was given."""
    decisions = tuple(_decisions(draft))
    roles = list(dict.fromkeys(decision.source for decision in decisions))
    used: dict[str, int] = dict.fromkeys(roles, 0)
    for index, decision in enumerate(decisions):
        used[decision.source] += draft.size[index]
    fixed = {"reply": REPLY_TOKENS}
    if tools:
        fixed = {"tools": draft.overhead - REPLY_TOKENS, **fixed}
    written = {name: tokens for name, tokens in draft.written().items() if tokens}
    return AssemblyReport(
        kind="conversation",
        budget=budget,
        window=window,
        reserve=reserve,
        used=draft.total,
        counter=counter_name(draft.counter),
        exact=is_exact(draft.counter),
        fixed=fixed,
        written=written,
        sources=tuple(
            SourceReport.of(role, [one for one in decisions if one.source == role], used=used[role])
            for role in roles
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


def _decisions(draft: Draft) -> Iterator[Decision]:
    for index, one in enumerate(draft.measured):
        kind, reason = draft.why.get(index) or ("kept", _why_kept(draft, index))
        tokens = one.tokens
        kept = tokens if kind == "kept" else min(draft.size[index], tokens)
        text = one.view.text or " ".join(result.text[:200] for result in one.view.results[:3])
        text = text or ", ".join(call.name for call in one.view.calls[:9])
        yield Decision(
            index=index,
            source=one.view.role,
            kind=kind,
            reason=reason,
            tokens=tokens,
            kept_tokens=kept,
            id=one.view.id or "",
            preview=preview_of(text),
        )


def _why_kept(draft: Draft, index: int) -> Reason:
    if not draft.was_read:
        return "placed"
    if draft.views[index].pinned:
        return "pinned"
    if index in draft.recalled:
        return "recalled"
    return "protected" if draft.is_held(draft.unit_of(index)) else "recent"


def _pieces(draft: Draft, tools: Sequence[Any], out: Sequence[Any]) -> Iterator[Piece]:
    if tools:
        tokens = draft.overhead - REPLY_TOKENS
        yield Piece.of("tools", canonical_json(list(tools)), tokens)
    for position, message in enumerate(out):
        one = draft.counts.measure(message)
        text = canonical_json(one.shape.parts(message))
        yield Piece.of(f"{position} {one.view.role}", text, one.tokens)
