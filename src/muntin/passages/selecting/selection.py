"""Select relevant candidates that are not duplicates.

Maximal marginal relevance (Carbonell and Goldstein 1998) picks one candidate at a time, the one
with the largest

    lambda * relevance - (1 - lambda) * max similarity to what is already picked,

and drops what resembles a picked one too much. A passage that contains a note is kept instead, with
the higher score.

It does not decide how much fits. It uses the scores of retrieval, fused with the cosine to the
question if the question's vector is given.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, cast

import numpy as np

from muntin.errors import ConfigurationError
from muntin.passages.candidates import Candidate, candidate_of
from muntin.passages.selecting.links import Link, Links
from muntin.passages.selecting.picking import Picking
from muntin.passages.selecting.similarity import cosines_to, measure_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from muntin.passages.candidates import Embedding
    from muntin.passages.selecting.picking import Course
    from muntin.passages.selecting.similarity import Row, Similarity

    Relevance = NDArray[np.float64]

__all__ = ("Dropped", "Selection", "mmr_select", "relevance_of", "select")

DropReason = Literal["exact_duplicate", "near_duplicate", "beyond_top_k"]
"""Why selection refuses a candidate."""

_ROUNDING = 1e-6
"""Cosines closer than this are equal."""

_QUESTION_WEIGHT = 0.9
"""Share of the question's own cosine in a fused relevance (`docs/decisions/`)."""

_BY_VECTOR = 2
"""Candidates that are selected without links if the question's vector is known: single passages
are then found by the vector, and links add the second step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """Explain why one candidate was not selected."""

    candidate: Candidate
    """The candidate itself."""
    index: int
    """Its position in the input."""
    reason: DropReason
    """Why it was refused."""
    nearest: int | None
    """Input position of the kept candidate it resembles most; `None` where none was compared."""
    similarity: float | None
    """How much it resembles that one, at most 1; `None` where none was compared."""
    repeats: tuple[int, ...] = ()
    """Input positions of all that it repeats, the one that refused it first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Hold what was selected, in that order, and what was dropped and why."""

    kept: tuple[Candidate, ...]
    """The selected candidates, the best first: the very objects that were given."""
    indices: tuple[int, ...]
    """Input position of each kept one."""
    scores: tuple[float, ...]
    """Marginal relevance of each kept one at the moment it was picked."""
    dropped: tuple[Dropped, ...]
    """Everything else, in input order."""
    line: tuple[int, ...] = ()
    """Input positions in the order in which they deserve a place where a kept one finds no space:
    the kept ones and those they contain, each followed by its copies and near-duplicates."""
    holders: Mapping[int, int] = field(default_factory=dict[int, int], hash=False)
    """The longer kept candidate that contains a candidate, by input position."""
    links: Mapping[int, Link] = field(default_factory=dict[int, Link], hash=False)
    """Why candidates were raised by links or coverage, by input position; those that were not are
    absent."""
    ignored_embeddings: tuple[int, ...] = ()
    """Input positions whose embedding was not finite or not a vector, and counted as none."""


def mmr_select(
    candidates: Sequence[Candidate] | None,
    *,
    top_k: int | None = None,
    lambda_: float = 0.7,
    dedup_threshold: float = 0.95,
) -> list[Candidate]:
    """Select candidates that are relevant and mutually distinct, by their embeddings.

    A candidate without an embedding resembles nothing. Exact copies are kept once, at their best
    score. Ties go to the earliest. See `select` for the reasons and for other measures.

    Args:
        candidates: What there is, in retrieval order. `None` is none.
        top_k: Most to select; `None` selects all that are not duplicates.
        lambda_: Relevance against diversity in [0, 1]; 1 is pure relevance.
        dedup_threshold: Cosine from which a candidate is a near-duplicate; above 1 none is.

    Raises:
        ConfigurationError: An argument is out of range or NaN, or a score is not finite.

    ```python
    from muntin import Candidate, mmr_select

    passages = [
        Candidate("Cats are great pets.", 0.9, embedding=[1.0, 0.0]),
        Candidate("Cats make wonderful pets.", 0.8, embedding=[0.99, 0.01]),
        Candidate("The Eiffel Tower is in Paris.", 0.6, embedding=[0.0, 1.0]),
    ]
    print([passage.score for passage in mmr_select(passages, top_k=2)])
    #> [0.9, 0.6]
    ```
    """
    offered = _read(candidates or ())
    _check(top_k, lambda_, dedup_threshold)
    distinct, _ = _without_copies(offered)
    pool = [offered[index] for index in distinct]
    course, _ = _greedy(
        pool, relevance_of(pool), top_k, (lambda_, dedup_threshold), similarity="embedding"
    )
    return [pool[position] for position, _ in course.kept()]


def _read(offered: Sequence[Candidate]) -> Sequence[Candidate]:
    """Return what was offered as candidates; objects of other libraries are converted."""
    if all(isinstance(cast("object", one), Candidate) for one in offered):
        return offered
    read = [candidate_of(one) for one in offered]
    for one, candidate in zip(offered, read, strict=True):
        if candidate is None:
            raise ConfigurationError(f"a candidate must have a text and a score, got {one!r:.60}")
    return [candidate for candidate in read if candidate is not None]


def select(
    candidates: Sequence[Candidate],
    *,
    top_k: int | None = None,
    lambda_: float = 0.7,
    dedup_threshold: float = 0.95,
    similarity: Similarity = "auto",
    query_embedding: Embedding | None = None,
    relevance: Sequence[float] | None = None,
    question: str = "",
    link_weight: float = 0.0,
    coverage_weight: float = 0.0,
) -> Selection:
    """Select candidates that are relevant and mutually distinct, and return why the rest is not.

    Args:
        candidates: What there is, in retrieval order. Pinned ones are selected first, always.
        top_k: Most to select; `None` selects all that are not duplicates.
        lambda_: Relevance against diversity in [0, 1]; 1 is pure relevance.
        dedup_threshold: Similarity from which a candidate is a near-duplicate; above 1 none is.
            It is a cosine; shared words are held to `dedup_threshold ** 6`.
        similarity: What to compare; `auto` uses vectors where both candidates have one and
            words otherwise.
        query_embedding: Vector of the question, shape `(d,)`. Where it is given, relevance is
            the score fused with the candidate's cosine to the question.
        relevance: Relevance of each candidate, in place of the one computed from the scores.
        question: The question, for links and coverage.
        link_weight: Bonus, in units of relevance, of a candidate whose name occurs in the question
            or in a candidate selected before; 0 switches links off. See `ContextConfig`.
        coverage_weight: Bonus of a candidate that has all words of the question which nothing
            selected before has; 0 switches coverage off. With a vector of the question, coverage
            is off and the first two candidates are selected without links.

    Raises:
        ConfigurationError: An argument is out of range or NaN, or a score is not finite.

    ```python
    from muntin import Candidate, select

    chosen = select([Candidate("the cat sat on the mat"), Candidate("The cat sat on the mat.")])
    print(len(chosen.kept), chosen.dropped[0].reason, chosen.dropped[0].similarity)
    #> 1 near_duplicate 1.0
    ```
    """
    _check(top_k, lambda_, dedup_threshold)
    candidates = _read(candidates)
    distinct, copies = _without_copies(candidates)
    pool = [candidates[index] for index in distinct]
    if relevance is None:
        worth = relevance_of(pool, query_embedding=query_embedding)
    else:
        worth = np.array([relevance[index] for index in distinct], dtype=np.float64)
    links = None
    if link_weight or coverage_weight:
        links = Links(
            pool,
            question,
            link_weight=link_weight,
            coverage_weight=coverage_weight if query_embedding is None else 0.0,
            after=0 if query_embedding is None else _BY_VECTOR,
        )
    mmr = (lambda_, dedup_threshold)
    course, ignored = _greedy(pool, worth, top_k, mmr, similarity=similarity, links=links)
    return _explained(candidates, distinct, copies, course, ignored)


def relevance_of(
    candidates: Sequence[Candidate], *, query_embedding: Embedding | None = None
) -> Relevance:
    """Return each candidate's relevance on one scale, shape `(n,)`, at most 1.

    Scores that are all equal are worth 1 each; scores >= 0 are divided by the largest; otherwise
    they are shifted and scaled to [0, 1]. An unknown score takes its rank's place: that of the
    known candidate before it, or an even slope where none is known.

    Args:
        candidates: Candidates in retrieval order.
        query_embedding: Vector of the question, shape `(d,)`. Where given, relevance is the scaled
            score at one tenth and the cosine to the question, stretched over [0, 1], at nine
            tenths; a candidate without an embedding keeps its score.

    Raises:
        ConfigurationError: A score is NaN, infinite or not a number; the candidate is named.
    """
    scores = _scaled(_known_scores(candidates))
    if query_embedding is None or not len(scores):
        return scores
    cosines = cosines_to(query_embedding, [candidate.embedding for candidate in candidates])
    known = ~np.isnan(cosines)
    votes = scores.copy()
    votes[known] = _stretched(cosines[known])
    return (1 - _QUESTION_WEIGHT) * scores + _QUESTION_WEIGHT * votes


def _stretched(cosines: Row) -> Row:
    """Stretch cosines over [0, 1]: scores use the whole range, cosines to a question do not."""
    if not len(cosines) or cosines.max() - cosines.min() < _ROUNDING:
        return np.ones(len(cosines))
    return (cosines - cosines.min()) / (cosines.max() - cosines.min())


def _check(top_k: int | None, lambda_: float, dedup_threshold: float) -> None:
    if top_k is not None and top_k < 0:
        raise ConfigurationError(f"top_k must be >= 0 or None, not {top_k}")
    if not 0 <= lambda_ <= 1:
        raise ConfigurationError(f"lambda_ must be in [0, 1], not {lambda_}")
    if not dedup_threshold >= 0:
        raise ConfigurationError(f"dedup_threshold must be >= 0, not {dedup_threshold}")


def _known_scores(candidates: Sequence[Candidate]) -> Relevance:
    scores = [candidate.score for candidate in candidates]
    try:
        given = np.array(scores, dtype=np.float64)  # an unknown score becomes NaN
    except (TypeError, ValueError):
        given = np.full(len(scores), np.nan)
    if np.isfinite(given).all():
        return given
    for candidate, number in zip(candidates, given.tolist(), strict=True):
        if candidate.score is not None and not math.isfinite(number):
            name = candidate.id or candidate.content[:40]
            raise ConfigurationError(
                f"candidate {name!r} of source {candidate.source!r} has the score "
                f"{candidate.score!r}: give a finite number, or None where it is unknown"
            )
    known = np.flatnonzero(np.isfinite(given))
    if not len(known):
        return np.linspace(1.0, 0.0, len(given), endpoint=False)
    before = np.searchsorted(known, np.arange(len(given)), side="right") - 1
    return given[known[np.maximum(before, 0)]]


def _scaled(scores: Relevance) -> Relevance:
    if not len(scores):
        return scores
    low, high = float(scores.min()), float(scores.max())
    if low == high:
        return np.ones(len(scores))
    if low >= 0:
        return scores / high
    peak = max(-low, high)  # scaled first: the difference of two large scores may overflow
    return (scores / peak - low / peak) / (high / peak - low / peak)


def _without_copies(candidates: Sequence[Candidate]) -> tuple[list[int], dict[int, int]]:
    """Keep one of equal texts: the pinned one, else the best scored, else the first.

    Returns:
        The positions that stay, in the order in which their texts first appear; and for each
        other position the one that stays for it.
    """
    if len({candidate.content for candidate in candidates}) == len(candidates):
        return list(range(len(candidates))), {}
    groups: dict[str, list[int]] = {}
    for index, candidate in enumerate(candidates):
        groups.setdefault(candidate.content, []).append(index)
    distinct: list[int] = []
    copies: dict[int, int] = {}
    for members in groups.values():
        best = max(members, key=lambda index: _priority(candidates[index]))  # the first of equals
        distinct.append(best)
        copies.update((index, best) for index in members if index != best)
    return distinct, copies


def _priority(candidate: Candidate) -> tuple[bool, float]:
    return candidate.pinned, -math.inf if candidate.score is None else candidate.score


def _greedy(
    pool: Sequence[Candidate],
    worth: Relevance,
    top_k: int | None,
    mmr: tuple[float, float],
    *,
    similarity: Similarity,
    links: Links | None = None,
) -> tuple[Course, tuple[int, ...]]:
    """Pick one by one; `mmr` is lambda and the threshold.

    Returns:
        The course, and the positions whose embeddings had to be ignored.
    """
    limit = len(pool) if top_k is None else min(top_k, len(pool))
    compares = mmr[0] < 1 or mmr[1] <= 1
    measure, ignored = measure_of(pool, similarity=similarity, expected_rows=limit * compares)
    pinned = [candidate.pinned for candidate in pool]
    return Picking(pinned, worth, measure, mmr, links).run(limit), ignored


def _explained(
    candidates: Sequence[Candidate],
    distinct: list[int],
    copies: dict[int, int],
    course: Course,
    ignored: tuple[int, ...],
) -> Selection:
    """Return the result of the loop in input positions, with a reason for each refused one."""
    kept = {distinct[position]: value for position, value in course.kept()}
    place = {index: position for position, index in enumerate(distinct)}
    doubles: dict[int, list[int]] = {}
    dropped: list[Dropped] = []
    for index, candidate in enumerate(candidates):
        if index in copies:
            doubles.setdefault(copies[index], []).append(index)
        if index not in kept:
            position = place[copies.get(index, index)]
            own = (position,) if index in copies else ()
            repeats = tuple(distinct[pick] for pick in course.repeats.get(position, own))
            nearest = distinct[course.kept_for(position)]
            reason: DropReason = "near_duplicate"
            if nearest not in kept:
                reason = "beyond_top_k"
            elif nearest == copies.get(index):
                reason = "exact_duplicate"
            out = reason == "beyond_top_k"
            dropped.append(
                Dropped(
                    candidate=candidate,
                    index=index,
                    reason=reason,
                    nearest=None if out else nearest,
                    similarity=None if out else course.similarity.get(position, 1.0),
                    repeats=() if out else repeats,
                )
            )
    line = (distinct[position] for position in course.line())
    return Selection(
        kept=tuple(candidates[index] for index in kept),
        indices=tuple(kept),
        scores=tuple(kept.values()),
        dropped=tuple(dropped),
        line=tuple(one for index in line for one in (index, *doubles.get(index, ()))),
        links={
            distinct[position]: link if link.by is None else replace(link, by=distinct[link.by])
            for position, link in course.links.items()
        },
        holders={distinct[inner]: distinct[outer] for inner, outer in course.held.items()},
        ignored_embeddings=tuple(distinct[position] for position in ignored),
    )
