"""Rank the candidates of all sources in one order.

The sources are pooled before selection, so that a passage found by memory and retrieval is kept
once, in its better-scored or longer copy, with the other source noted in its metadata. Relevance is
put on one scale first: scores that all lie within [0, 1] are compared as they are.
Otherwise the scores of each source are scaled within the source, because a BM25 score of 12 and a
cosine of 0.8 cannot be compared. Sources are sorted by name, so the order in which they were given
changes nothing. A candidate without text is not ranked.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from muntin.passages.given import given_among
from muntin.passages.selecting.links import Link
from muntin.passages.selecting.selection import relevance_of, select

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from muntin.config import ContextConfig
    from muntin.passages.candidates import Candidate, Embedding
    from muntin.passages.selecting.selection import DropReason, Selection

__all__ = ("Offer", "Ranking", "Refusal", "rank")

_HIDDEN_IDS = ("_id", "id", "chunk_id", "doc_id", "document_id")
"""Metadata keys under which stores keep the id of a passage."""

_LEAST_DISTANCES = 3
"""Scores of a source from which a rise along the whole list is not an accident."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """Hold one candidate and where it came from."""

    source: str
    """Name of its source."""
    index: int
    """Its position in what the source returned."""
    candidate: Candidate
    """The candidate; copies in other sources are listed in its metadata."""

    @property
    def given_id(self) -> str:
        """The id of the candidate, also where a store hides it in the metadata; else `""`."""
        if self.candidate.id:
            return self.candidate.id
        hidden = (self.candidate.metadata.get(key) for key in _HIDDEN_IDS)
        return next((str(value) for value in hidden if value not in (None, "")), "")

    @property
    def id(self) -> str:
        """The given id, else one made from the text, so that it is the same in every request."""
        return self.given_id or made_id(self.candidate.content)

    @property
    def label(self) -> str:
        """The id; source and position if there is no text either."""
        return self.id or f"{self.source}:{self.index}"

    @property
    def is_empty(self) -> bool:
        """Whether there is no text in it."""
        return not self.candidate.content.strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Explain why selection refused an offer."""

    reason: DropReason
    """Why."""
    nearest: int | None
    """Number of the kept offer it resembles; `None` where none was compared."""
    similarity: float | None
    """How much it does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Hold all offers and the order in which they deserve a place."""

    offers: tuple[Offer, ...]
    """Everything offered; the other fields refer to it by number."""
    order: tuple[int, ...]
    """Numbers of the selected offers, the best first; those without text are in no order."""
    marginal: Mapping[int, float]
    """Marginal relevance of each selected offer when it was picked."""
    refused: Mapping[int, Refusal]
    """The rest, with reasons."""
    line: tuple[int, ...] = ()
    """Numbers of all that may be placed, the best first: the selected offers, and behind each those
    that may replace it if it does not fit."""
    covered: Mapping[int, frozenset[int]] = field(default_factory=dict[int, frozenset[int]])
    """Numbers of the offers that an offer repeats or contains; others cover only themselves."""
    links: Mapping[int, Link] = field(default_factory=dict[int, Link])
    """Why offers were raised by links or coverage, by number; those that were not are absent."""
    question: str = ""
    """The question; `""` where none was given."""
    given: frozenset[int] = frozenset()
    """Numbers of the offers that the model has already; they are in no order."""
    notes: tuple[str, ...] = ()
    """What the reader of a report should know."""

    def covers(self, number: int) -> frozenset[int]:
        """Return the ids this passage covers; of passages sharing an id only one is placed."""
        return self.covered.get(number) or frozenset((number,))

    def waiting(self, placed: Collection[int]) -> list[int]:
        """Return the offers that duplicate no placed one, the best first."""
        covered = {one for number in placed for one in self.covers(number)}
        return [
            number
            for number in self.line
            if number not in placed and covered.isdisjoint(self.covers(number))
        ]

    def order_without(self, giants: Collection[int]) -> tuple[int, ...]:
        """Return the order without oversized passages, their duplicates taking their rank."""
        order: list[int] = []
        covered: set[int] = set()
        for number in self.line:
            pinned = self.offers[number].candidate.pinned
            if (pinned or number not in giants) and covered.isdisjoint(self.covers(number)):
                order.append(number)
                covered |= self.covers(number)
        return tuple(order)


def made_id(content: str) -> str:
    """Return an id of a text: `text-` and a hash of it; `""` where there is no text."""
    if not content.strip():
        return ""
    digest = hashlib.blake2b(content.encode("utf-8", "surrogatepass"), digest_size=6)
    return f"text-{digest.hexdigest()}"


def rank(
    gathered: Mapping[str, Sequence[Candidate]],
    config: ContextConfig,
    *,
    question: str = "",
    query_embedding: Embedding | None = None,
    given: Sequence[str] = (),
) -> Ranking:
    """Select over all sources and put what is selected in one order.

    Args:
        gathered: Candidates by source, each source's in its own order.
        config: The options of selection.
        question: The question, for links and coverage; `""` for none.
        query_embedding: Vector of the question, shape `(d,)`; `None` trusts the scores.
        given: Texts that the model has already; passages in them are not ranked, unless pinned.

    Raises:
        ConfigurationError: A score is not finite.
    """
    offers = [
        Offer(source=source, index=index, candidate=candidate)
        for source in sorted(gathered)
        for index, candidate in enumerate(gathered[source])
    ]
    distances = [name for name in sorted(gathered) if _are_distances(gathered[name])]
    if distances and config.fill:
        scored = {
            name: [replace(one, score=None) for one in found] if name in distances else found
            for name, found in gathered.items()
        }
    else:
        scored, distances = gathered, []
    worth = _worth(scored, query_embedding, pooled=config.fill)
    already = _given(offers, given)
    readable = [
        number
        for number, offer in enumerate(offers)
        if not offer.is_empty and number not in already
    ]
    pools = [readable]
    if not config.dedup_across_sources:
        pools = [
            [number for number in readable if offers[number].source == source]
            for source in sorted(gathered)
        ]
    marginal: dict[int, float] = {}
    refused: dict[int, Refusal] = {}
    covered: dict[int, frozenset[int]] = {}
    line: list[tuple[float, int]] = []
    links: dict[int, Link] = {}
    ignored = 0
    for pool in pools:
        chosen = select(
            [offers[number].candidate for number in pool],
            lambda_=config.mmr_lambda,
            dedup_threshold=config.dedup_threshold,
            similarity=config.similarity,
            relevance=[worth[number] for number in pool],
            query_embedding=query_embedding,
            question=question,
            link_weight=config.link_weight,
            coverage_weight=config.coverage_weight,
        )
        ignored += len(chosen.ignored_embeddings)
        _record(chosen, pool, marginal, refused)
        covered.update(_covered(chosen, pool))
        for position, link in chosen.links.items():
            by = None if link.by is None else pool[link.by]
            links[pool[position]] = replace(link, by=by)
        line += _line(chosen, pool, marginal)
    order = list(marginal)
    if len(pools) > 1:
        line.sort(key=lambda place: -place[0])  # stable: a pool keeps its own order
        position = {number: at for at, (_, number) in enumerate(line)}
        order.sort(key=position.__getitem__)
    return Ranking(
        offers=tuple(_with_provenance(offers, refused)),
        order=tuple(order),
        marginal=marginal,
        refused=refused,
        line=tuple(number for _, number in line),
        covered=covered,
        links=links,
        question=question,
        given=already,
        notes=tuple(_notes(ignored, distances)),
    )


def _given(offers: Sequence[Offer], texts: Sequence[str]) -> frozenset[int]:
    """Return the numbers of the offers whose text the model has already.

    An id in front of the text is not compared: it is not part of the passage.
    """
    contents = [offer.candidate.content.removeprefix(offer.given_id) for offer in offers]
    found = given_among(contents, texts)
    return frozenset(
        number
        for number, is_given in enumerate(found)
        if is_given and not offers[number].candidate.pinned
    )


def _worth(
    gathered: Mapping[str, Sequence[Candidate]],
    query_embedding: Embedding | None,
    *,
    pooled: bool,
) -> list[float]:
    """Return relevance; `pooled` puts all sources on one scale if their scores share one.

    Without `fill` each source fills its own quota, so only the order within it matters.
    """
    every = [one for source in sorted(gathered) for one in gathered[source]]
    apart = [list(gathered[source]) for source in sorted(gathered)]
    groups = [every] if pooled and _on_one_scale(every) else apart
    parts = [relevance_of(group, query_embedding=query_embedding) for group in groups]
    return np.concatenate(parts).tolist() if parts else []


def _on_one_scale(candidates: Sequence[Candidate]) -> bool:
    """Return whether all scores are known and lie within [0, 1]."""
    try:
        scores = np.array([candidate.score for candidate in candidates], dtype=np.float64)
    except (TypeError, ValueError):  # not numbers: `relevance_of` names the source
        return False
    return bool(((scores >= 0) & (scores <= 1)).all())


def _record(
    chosen: Selection,
    pool: Sequence[int],
    marginal: dict[int, float],
    refused: dict[int, Refusal],
) -> None:
    for position, score in zip(chosen.indices, chosen.scores, strict=True):
        marginal[pool[position]] = score
    for dropped in chosen.dropped:
        refused[pool[dropped.index]] = Refusal(
            reason=dropped.reason,
            nearest=None if dropped.nearest is None else pool[dropped.nearest],
            similarity=dropped.similarity,
        )


def _covered(chosen: Selection, pool: Sequence[int]) -> dict[int, frozenset[int]]:
    """Return what each offer covers besides itself: what it repeats or contains."""
    inner: dict[int, list[int]] = {}
    for held, holder in chosen.holders.items():
        inner.setdefault(holder, []).append(held)
    covered = {
        pool[dropped.index]: frozenset(pool[one] for one in dropped.repeats)
        for dropped in chosen.dropped
        if dropped.repeats
    }
    for holder in inner:
        found = [holder]
        for one in found:  # grows while it is read: what is held may hold others
            found += inner.get(one, ())
        covered[pool[holder]] = frozenset(pool[one] for one in found)
    return covered


def _line(
    chosen: Selection, pool: Sequence[int], marginal: Mapping[int, float]
) -> list[tuple[float, int]]:
    """Give each offer that may be placed the lowest marginal relevance up to it.

    Marginal relevance can rise from one pick to the next (a bonus for diversity); the running
    minimum keeps the order of selection when several pools are merged.
    """
    worth, line = float("inf"), list[tuple[float, int]]()
    for position in chosen.line:
        worth = min(worth, marginal.get(pool[position], worth))
        line.append((worth, pool[position]))
    return line


def _with_provenance(offers: Sequence[Offer], refused: Mapping[int, Refusal]) -> list[Offer]:
    """Note on each kept candidate where its copies were found.

    `also_in` names the other sources, and `copies` holds source, id and metadata of each copy.
    """
    copies: dict[int, list[Offer]] = {}
    for number, refusal in refused.items():
        if refusal.nearest is not None:
            copies.setdefault(refusal.nearest, []).append(offers[number])
    noted = list(offers)
    for number, found in copies.items():
        offer = noted[number]
        others = sorted({one.source for one in found} - {offer.source})
        metadata = {
            **offer.candidate.metadata,
            **({"also_in": tuple(others)} if others else {}),
            "copies": tuple(
                {"source": one.source, "id": one.id, "metadata": one.candidate.metadata}
                for one in found
            ),
        }
        noted[number] = replace(offer, candidate=replace(offer.candidate, metadata=metadata))
    return noted


def _are_distances(candidates: Sequence[Candidate]) -> bool:
    """Return whether scores rise along a list that is ordered best first, so are distances.

    Two scores rise by chance too often, so at least three are needed. A score that its metadata
    calls `relevance_score` is not a distance, and its list may have any order.
    """
    if any("relevance_score" in one.metadata for one in candidates):
        return False
    scores = [one.score for one in candidates]
    if len(scores) < _LEAST_DISTANCES:
        return False
    known = [float(score) for score in scores if isinstance(score, (int, float))]
    if len(known) < len(scores) or not all(map(math.isfinite, known)):
        return False
    return known[0] >= 0 and known[0] < known[-1] and known == sorted(known)


def _notes(ignored: int, distances: Sequence[str]) -> Iterator[str]:
    if ignored:
        what = "1 embedding was" if ignored == 1 else f"{ignored} embeddings were"
        yield f"{what} not finite or not a vector and counted as none"
    for name in distances:
        yield (
            f"the scores of source {name!r} rise from its first passage to its last, so they were "
            f"read as distances: the order of its passages counts"
        )
