"""The account of a compaction as a report, so that it is shown and compared like any other.

Where no window is known, the budget of such a report is what the conversation took before: what is
idle was saved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from muntin.counting import REPLY_TOKENS, count_tools, counter_name, counts_for, is_exact
from muntin.messages import canonical_json
from muntin.report import AssemblyReport, Decision, Event, Piece, SourceReport, preview_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from muntin.cli.conversations.chat_file import Chat
    from muntin.cli.terminal.limits import Limits
    from muntin.conversations import Compaction
    from muntin.counting import Measured

__all__ = ("account_of",)


def account_of(chat: Chat, done: Compaction, limits: Limits) -> AssemblyReport:
    """Make the report of one compaction: one decision for every message that was given."""
    counter = limits.counter
    counts = counts_for(counter)
    given = counts.measure_all(chat.messages)
    kept = set(map(id, done.messages))
    decisions = tuple(
        _decision(index, one, kept=id(message) in kept)
        for index, (message, one) in enumerate(zip(chat.messages, given, strict=True))
    )
    mine = set(map(id, chat.messages))
    recap = sum(counts.measure(one).tokens for one in done.messages if id(one) not in mine)
    fixed = {"reply": REPLY_TOKENS}
    if chat.tools:
        fixed = {"tools": count_tools(chat.tools, counter=counter), **fixed}
    used = sum(fixed.values()) + recap + sum(one.kept_tokens for one in decisions)
    before = sum(fixed.values()) + sum(one.tokens for one in given)
    is_known = limits.budget is not None and used <= limits.budget
    return AssemblyReport(
        kind="conversation",
        budget=limits.budget if is_known and limits.budget else max(before, used),
        window=limits.window if is_known else None,
        reserve=limits.reserve if is_known else 0,
        used=used,
        counter=counter_name(counter),
        exact=is_exact(counter),
        fixed=fixed,
        written={"recap": recap} if recap else {},
        sources=tuple(_sources(decisions)),
        decisions=decisions,
        events=tuple(_events(done, before, used)),
        pieces=tuple(_pieces(done, counts.measure_all(done.messages))),
    )


def _decision(index: int, one: Measured, *, kept: bool) -> Decision:
    view = one.view
    text = view.text or " ".join(result.text[:200] for result in view.results[:3])
    text = text or ", ".join(call.name for call in view.calls[:9])
    return Decision(
        index=index,
        source=view.role,
        kind="kept" if kept else "summarised",
        reason="recent" if kept else "compacted",
        tokens=one.tokens,
        kept_tokens=one.tokens if kept else 0,
        id=view.id or "",
        preview=preview_of(text),
    )


def _sources(decisions: tuple[Decision, ...]) -> Iterator[SourceReport]:
    for role in dict.fromkeys(one.source for one in decisions):
        of_role = [one for one in decisions if one.source == role]
        yield SourceReport.of(role, of_role, used=sum(one.kept_tokens for one in of_role))


def _events(done: Compaction, before: int, after: int) -> Iterator[Event]:
    outcome = done.outcome
    yield Event(
        what="compaction",
        before=before,
        after=after,
        covered=outcome.covered,
        detail=outcome.reason.replace("_", " ") + (f": {outcome.error}" if outcome.error else ""),
    )


def _pieces(done: Compaction, measured: list[Measured]) -> Iterator[Piece]:
    for position, (message, one) in enumerate(zip(done.messages, measured, strict=True)):
        text = canonical_json(one.shape.parts(message))
        yield Piece.of(f"{position} {one.view.role}", text, one.tokens)
