"""Write the report of an assembly from the values that the assembly used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from muntin.counting import counter_name, is_exact
from muntin.report import AssemblyReport, Decision, Piece, SourceReport, preview_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from muntin.passages.layout import Item, Rendering
    from muntin.passages.placing import Frame, Placement
    from muntin.passages.selecting import Ranking

__all__ = ("Totals", "account_for")


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Hold what the report needs besides the placed items."""

    query: str
    """The question."""
    budget: int
    """Tokens the text could take."""
    reserve: int
    """Tokens withheld for the answer and for what is sent besides the text."""
    notes: tuple[str, ...]
    """Sentences for the reader."""
    replay: Callable[[int], AssemblyReport]
    """Assembles the same within another budget."""


def account_for(
    totals: Totals,
    ranking: Ranking,
    items: Sequence[Item],
    placement: Placement,
    frame: Frame,
    rendering: Rendering,
) -> AssemblyReport:
    """Make the report of one assembly."""
    decisions = tuple(_decisions(ranking, items, placement, frame))
    fixed = {"system": frame.system, "question": frame.question}
    return AssemblyReport(
        kind="context",
        budget=totals.budget,
        used=placement.tokens,
        counter=counter_name(rendering.counter),
        exact=is_exact(rendering.counter),
        reserve=totals.reserve,
        fixed={name: rendering.counter(text) for name, text in fixed.items() if text},
        sources=tuple(_sources(decisions, placement, frame, rendering)),
        decisions=decisions,
        notes=(*totals.notes, *ranking.notes),
        pieces=tuple(_pieces(placement, rendering)),
        question=preview_of(totals.query),
        replay=totals.replay,
    )


def _decisions(
    ranking: Ranking, items: Sequence[Item], placement: Placement, frame: Frame
) -> Iterator[Decision]:
    placed_for = {one: number for number in placement.items for one in ranking.covers(number)}
    for number, offer in enumerate(ranking.offers):
        common = {
            "index": offer.index,
            "source": offer.source,
            "id": offer.id,
            "tokens": items[number].tokens,
            "score": None if offer.candidate.score is None else float(offer.candidate.score),
            "mmr_score": ranking.marginal.get(number),
            "preview": preview_of(offer.candidate.content),
            "text": offer.candidate.content,
        }
        by = next((placed_for[one] for one in ranking.covers(number) if one in placed_for), None)
        if by is not None and number not in placement.items:
            fate = _duplicate(number, by, ranking)
        elif offer.is_empty:
            fate = {"kind": "dropped", "reason": "empty"}
        elif number in ranking.given:
            fate = {"kind": "dropped", "reason": "already_given"}
        else:
            fate = _fate(number, ranking, items, placement, frame)
        yield Decision(**common, **fate)  # pyright: ignore[reportArgumentType] - two halves of one value


def _duplicate(number: int, by: int, ranking: Ranking) -> dict[str, object]:
    """Record the passage as a duplicate of a placed one."""
    own, other = ranking.refused.get(number), ranking.refused.get(by)
    same = own is not None and own.reason == "exact_duplicate" and own.nearest == by
    similarity = own.similarity if own is not None and own.nearest == by else None
    if similarity is None and other is not None and other.nearest == number:
        similarity = other.similarity
    return {
        "kind": "dropped",
        "reason": "exact_duplicate" if same else "near_duplicate",
        "nearest": ranking.offers[by].label,
        "similarity": similarity,
    }


def _fate(
    number: int, ranking: Ranking, items: Sequence[Item], placement: Placement, frame: Frame
) -> dict[str, object]:
    if number in placement.shortened:
        tokens = placement.items[number].tokens
        return {"kind": "shortened", "reason": "over_quota", "kept_tokens": tokens}
    if number in placement.items:
        kept: dict[str, object] = {
            "kind": "kept",
            "reason": "placed",
            "kept_tokens": items[number].tokens,
        }
        link = ranking.links.get(number)
        if items[number].candidate.pinned:
            return {**kept, "reason": "pinned"}
        if link is not None:
            by = None if link.by is None else ranking.offers[link.by].label
            return {**kept, "reason": link.kind, "nearest": by}
        return kept
    if number in placement.overflowed:
        return {"kind": "dropped", "reason": "join_overflow"}
    too_large = items[number].tokens > frame.region
    return {"kind": "dropped", "reason": "does_not_fit" if too_large else "over_quota"}


def _sources(
    decisions: Sequence[Decision], placement: Placement, frame: Frame, rendering: Rendering
) -> Iterator[SourceReport]:
    by_source: dict[str, list[Decision]] = {name: [] for name in frame.sources}
    for decision in decisions:
        by_source[decision.source].append(decision)
    allocation = placement.allocation
    for name in rendering.layout.arranged(frame.sources):
        if name in by_source:
            share = allocation.shares[name]
            yield SourceReport.of(
                name,
                by_source[name],
                used=share.used,
                quota=share.quota,
                lent=allocation.lent(name),
                borrowed=share.borrowed,
            )


def _pieces(placement: Placement, rendering: Rendering) -> Iterator[Piece]:
    """Cut the text at its blocks and items; the pieces, joined, are the text."""
    number_of: Mapping[int, int] = {id(item): n for n, item in placement.items.items()}
    count = rendering.counter
    gap = ""
    for block in placement.parts.blocks:
        if block.section is None:
            text = gap + block.text
            yield Piece.of(block.name, text, count(text))
        else:
            opening = gap + block.section.opening
            yield Piece.of(f"{block.name} heading", opening, count(opening))
            for item in block.section.items:
                label = f"{block.name} {number_of[id(item)]}"
                yield Piece.of(label, "\n" + item.text, item.tokens)
            if block.section.closing:
                closing = "\n" + block.section.closing
                yield Piece.of(f"{block.name} end", closing, count(closing))
        gap = "\n\n"
