"""Measure how much two candidates resemble each other: by vectors, by words, or by both.

Vectors are compared by cosine on unit rows. Words are compared by the containment of their shingles
(Broder 1997), `|A ∩ B| / min(|A|, |B|)`, which sees a passage that lies inside a longer one and
windows that overlap, and needs no vector: most stores return none.

A measure returns the similarity of candidate `i` to all candidates as a row of n numbers, and from
such a row the near-duplicates of `i` and the longer candidates that contain it. One row is read per
selected candidate. An n x n matrix is kept only if it is small and most rows will be read.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

import numpy as np

from muntin.passages.selecting.numerals import Numerals
from muntin.text import shingles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from muntin.passages.candidates import Candidate, Embedding

    Row = NDArray[np.floating[Any]]
    """Numbers of one candidate against all, shape `(n,)`; or unit rows, shape `(n, d)`."""
    Mask = NDArray[np.bool_]
    """Which candidates, shape `(n,)`."""

__all__ = (
    "Cosines",
    "Measure",
    "Similarity",
    "WordOverlap",
    "cosines_to",
    "measure_of",
    "unit_rows",
)

Similarity = Literal["auto", "embedding", "lexical"]
"""How candidates are compared: by both, vectors alone, or words alone."""

_EXACT_SIZE = 1 << 16
"""Up to this many numbers rows are kept in double precision, where it costs nothing: small cases
then agree to the last digit with a plain computation."""

_MATRIX_ROWS = 4096
"""Up to this many candidates all similarities are computed in one matrix product (64 MiB)."""

_MARK = 16
"""Numbers of a row that are compared first."""

_ROUNDING = 1e-6
"""What single precision may lose of a cosine: one this close to the threshold has reached it."""

_WORDS_PER_COSINE = 6
"""A threshold `t` for cosines is `t ** 6` for shared words: edits cost words faster than they cost
cosine. At the default, windows that share three quarters of their text are duplicates."""

_SPREAD = 0.5
"""Mean cosine of all pairs up to which a threshold is taken as it is."""

_LEAST_CALIBRATED = 8
"""Vectors from which their mean cosine says something about the model."""

_SHINGLE_WORDS = 3
"""Words per shingle."""

_NO_NUMBERS = (TypeError, ValueError, OverflowError)
"""What numpy raises for something that is not a vector of numbers."""


class Measure(Protocol):
    """A measure of how much one candidate resembles all others."""

    sees_parts: bool
    """Whether it can find that one candidate contains another."""

    def row(self, index: int) -> Row:
        """Return the similarity of candidate `index` to every candidate, shape `(n,)`."""
        ...

    def repeats(self, index: int, row: Row, threshold: float, /) -> tuple[Mask | None, Mask | None]:
        """Return the near-duplicates of `index` and the longer candidates that contain it.

        `index` repeats itself; what it contains does not repeat it. `None` means no other.
        """
        ...


class Cosines:
    """Compare candidates by the cosine of their embeddings; 0 where either has none."""

    sees_parts = False

    def __init__(self, embeddings: Sequence[Embedding | None], *, expected_rows: int) -> None:
        self.count = len(embeddings)
        self.groups, self.ignored = unit_rows(embeddings)
        self._group = np.full(self.count, -1, dtype=np.intp)
        self._position = np.zeros(self.count, dtype=np.intp)
        for number, (members, _) in enumerate(self.groups):
            self._group[members] = number
            self._position[members] = np.arange(len(members))
        self.present = self._group >= 0
        """Which candidates have an embedding that can be used, shape `(n,)`."""
        self.complete = bool(self.present.all())
        """Whether every candidate has one."""
        self._backgrounds: dict[int, float] = {}
        self._twins = [_twins(rows) for _, rows in self.groups]
        small = self.count <= _MATRIX_ROWS
        whole = small and 4 * expected_rows >= self.count and expected_rows > 32
        self._products = [rows @ rows.T if whole else None for _, rows in self.groups]
        alike = self.complete and len(self.groups) == 1 and self._twins[0] is None
        self._direct = self._products[0] if alike else None  # the usual case, read off as it is
        self._nearest = None if self._direct is None else _nearest(self._direct)

    def row(self, index: int) -> Row:
        """Return the cosine of candidate `index` with every candidate, shape `(n,)`."""
        if self._direct is not None:
            return self._direct[index]
        group, position = int(self._group[index]), int(self._position[index])
        if group < 0:
            return np.zeros(self.count)
        members, rows = self.groups[group]
        product = self._products[group]
        found = product[position] if product is not None else rows @ rows[position]
        twins = self._twins[group]
        if twins is not None:  # equal vectors tie exactly, whatever the order of summation
            found = found[twins]
            found[twins == twins[position]] = 1.0
        if len(members) == self.count:
            return found
        spread = np.zeros(self.count, dtype=found.dtype)
        spread[members] = found
        return spread

    def repeats(self, index: int, row: Row, threshold: float) -> tuple[Mask | None, None]:
        """Return which have a cosine with `index` at the threshold or above, within rounding."""
        least = threshold - _ROUNDING
        if self._nearest is not None and self._nearest[index] < least:
            return None, None
        return row >= least, None

    def calibrated(self, index: int, threshold: float) -> float:
        """Return the threshold in terms of the model that made the vector of `index`.

        Some models put all cosines between 0.7 and 1, so that different passages reach 0.95. There
        the distance `1 - threshold` is scaled by the mean distance of all pairs, which a direction
        that all vectors share shrinks by the same factor.
        """
        group = int(self._group[index])
        background = self._background(group) if group >= 0 else 0.0
        if background <= _SPREAD or threshold > 1:
            return threshold
        return 1 - (1 - threshold) * (1 - background) / (1 - _SPREAD)

    def _background(self, group: int) -> float:
        """Return the mean cosine of all pairs of different vectors of a group."""
        known = self._backgrounds.get(group)
        if known is None:
            rows = self.groups[group][1]
            count = len(rows)
            known = 0.0
            if count >= _LEAST_CALIBRATED:
                total = rows.sum(axis=0, dtype=np.float64)
                known = float((total @ total - count) / (count * (count - 1)))
            self._backgrounds[group] = known
        return known


class WordOverlap:
    """Compare candidates by the containment of their word shingles."""

    sees_parts = True

    def __init__(self, texts: Sequence[str]) -> None:
        hashes, owners = shingles(texts, size=_SHINGLE_WORDS)
        self.count = len(texts)
        self._numerals = Numerals(texts)
        self._sizes = np.bincount(owners, minlength=self.count)
        starts = np.flatnonzero(np.concatenate([[True], hashes[1:] != hashes[:-1]]))
        sizes = np.diff(np.append(starts, len(hashes)))
        number = np.repeat(np.arange(len(sizes)), sizes)
        shared = sizes[number] > 1  # a shingle of one candidate cannot overlap
        self._holders, self._starts, self._ends = owners, starts, starts + sizes
        by_owner = np.argsort(owners[shared], kind="stable")
        borders = np.searchsorted(owners[shared][by_owner], np.arange(1, self.count))
        self._own = np.split(number[shared][by_owner], borders)

    def overlaps(self, index: int) -> bool:
        """Return whether candidate `index` shares a shingle with another."""
        return len(self._own[index]) > 0

    def row(self, index: int) -> Row:
        """Return the share of shingles candidate `index` has in common with each, shape `(n,)`."""
        common = np.zeros(self.count)
        if self.overlaps(index):
            spans = [self._holders[self._starts[n] : self._ends[n]] for n in self._own[index]]
            common = np.bincount(np.concatenate(spans), minlength=self.count).astype(np.float64)
            smaller = np.minimum(self._sizes, self._sizes[index])
            np.divide(common, smaller, out=common, where=smaller > 0)
        if self._sizes[index]:
            common[index] = 1.0
        return common

    def repeats(self, index: int, row: Row, threshold: float) -> tuple[Mask, Mask | None]:
        """Return the candidates that share enough words with `index` for `threshold`.

        If these are enough of the shorter text but not of the longer one, the longer one contains
        the shorter.
        """
        near, wider, _ = self.parted(index, row, threshold)
        return self.without_other_numbers(index, near), wider

    def parted(self, index: int, row: Row, threshold: float) -> tuple[Mask, Mask, Mask]:
        """Return which repeat `index`, which contain it, and which it contains."""
        least = threshold**_WORDS_PER_COSINE
        alike, own = row >= least, self._sizes[index]
        wider = alike & (row * own < least * self._sizes)
        narrower = alike & (row * self._sizes < least * own)
        return alike & ~wider & ~narrower, wider, narrower

    def without_other_numbers(self, index: int, near: Mask) -> Mask:
        """Remove candidates that differ from `index` in a number."""
        for other in np.flatnonzero(near).tolist():
            if other != index and self._numerals.differ(index, other):
                near[other] = False
        return near


class _Both:
    """Compare by vectors where both candidates have one, by words otherwise.

    Words have a vote on duplicates in any case: overlapping windows of one document share most of
    their words and yet have vectors that differ.
    """

    sees_parts = True

    def __init__(self, cosines: Cosines, overlap: WordOverlap) -> None:
        self._cosines, self._overlap = cosines, overlap
        self._present = cosines.present

    def row(self, index: int) -> Row:
        if not self._present[index]:
            return self._overlap.row(index)
        if self._cosines.complete:
            return self._cosines.row(index)
        return np.where(self._present, self._cosines.row(index), self._overlap.row(index))

    def repeats(self, index: int, row: Row, threshold: float) -> tuple[Mask | None, Mask | None]:
        like: Mask | None = None
        if self._present[index]:
            like, _ = self._cosines.repeats(index, row, self._cosines.calibrated(index, threshold))
        if not self._overlap.overlaps(index):
            return None if like is None else like & self._present, None
        words = self._overlap.row(index)
        near, wider, narrower = self._overlap.parted(index, words, threshold)
        if like is not None:  # the longer text holds more, whatever the vectors
            near |= like & self._present & ~wider & ~narrower
        return self._overlap.without_other_numbers(index, near), wider


def measure_of(
    candidates: Sequence[Candidate], *, similarity: Similarity, expected_rows: int
) -> tuple[Measure, tuple[int, ...]]:
    """Return the measure for these candidates, and whose embeddings had to be ignored.

    Args:
        candidates: Candidates to compare.
        similarity: What to compare.
        expected_rows: How many rows will be asked for, at most.
    """
    if similarity == "lexical":
        return WordOverlap([candidate.content for candidate in candidates]), ()
    vectors = [candidate.embedding for candidate in candidates]
    cosines = Cosines(vectors, expected_rows=expected_rows)
    if similarity == "embedding":
        return cosines, cosines.ignored
    words = WordOverlap([candidate.content for candidate in candidates])
    return _Both(cosines, words), cosines.ignored


def cosines_to(query: Embedding, embeddings: Sequence[Embedding | None]) -> Row:
    """Return each candidate's cosine with a query vector, NaN where there is none to compute.

    For a query vector that is zero or not finite all are NaN.
    """
    asked, _ = unit_rows([query])
    found = np.full(len(embeddings), np.nan)
    if not asked:
        return found
    direction = asked[0][1][0]
    for members, rows in unit_rows(embeddings)[0]:
        if rows.shape[1] == len(direction):
            found[members] = rows @ direction.astype(rows.dtype)
    return found


def unit_rows(
    embeddings: Sequence[Embedding | None],
) -> tuple[list[tuple[NDArray[np.intp], Row]], tuple[int, ...]]:
    """Normalise vectors to length 1, grouped by dimension.

    Returns:
        Pairs of candidate indices and their unit rows of shape `(m, d)`, one pair per dimension;
        and the indices whose vector was ragged or not finite and so counts as none. A zero vector
        has no direction and counts as none too, without being reported: it is not a mistake.
    """
    uniform = _uniform(embeddings)
    if uniform is not None:
        usable, rows, broken = _normalised(uniform)
        groups = [(np.flatnonzero(usable), rows)] if len(rows) else []
        return groups, tuple(np.flatnonzero(broken).tolist())
    return _by_dimension(embeddings)


def _uniform(embeddings: Sequence[Embedding | None]) -> Row | None:
    """Stack vectors that are all there and all of one length, the usual case, in one go."""
    rows = _from_lists(embeddings)
    if rows is not None:
        return rows
    try:
        rows = np.array(embeddings)  # a copy, which may be scaled in place
        rows = rows if rows.dtype == np.float32 else rows.astype(np.float64)
    except _NO_NUMBERS:  # one is missing, ragged or not numbers
        return None
    return rows if rows.ndim == 2 and rows.size else None


def _from_lists(embeddings: Sequence[Embedding | None]) -> Row | None:
    """Stack lists of numbers of one length; `None` where they are anything else.

    `struct` reads a list of floats three times as fast as numpy, which first asks each of them
    what it is.
    """
    if not {type(embedding) for embedding in embeddings} <= {list, tuple}:
        return None
    lists = cast("Sequence[Sequence[float]]", embeddings)
    dimension = len(lists[0]) if lists else 0
    if not dimension:
        return None
    pack = struct.Struct(f"{dimension}d").pack
    try:
        packed = bytearray().join([pack(*numbers) for numbers in lists])
    except (struct.error, OverflowError):  # ragged, not numbers, or beyond any float
        return None
    return np.frombuffer(packed, dtype=np.float64).reshape(-1, dimension)


def _by_dimension(
    embeddings: Sequence[Embedding | None],
) -> tuple[list[tuple[NDArray[np.intp], Row]], tuple[int, ...]]:
    vectors: dict[int, list[tuple[int, Any]]] = {}
    ignored: list[int] = []
    for index, embedding in enumerate(embeddings):
        if embedding is None or len(embedding) == 0:
            continue
        array = _vector(embedding)
        if array is None:
            ignored.append(index)
        else:
            vectors.setdefault(len(array), []).append((index, array))
    groups: list[tuple[NDArray[np.intp], Row]] = []
    for dimension in sorted(vectors):
        members = np.array([index for index, _ in vectors[dimension]], dtype=np.intp)
        rows = np.stack([array for _, array in vectors[dimension]])
        usable, rows, broken = _normalised(rows)
        ignored += members[broken].tolist()
        if len(rows):
            groups.append((members[usable], rows))
    return groups, tuple(sorted(ignored))


def _vector(embedding: Embedding) -> NDArray[np.floating[Any]] | None:
    listed = _from_lists([embedding])
    if listed is not None:
        return listed[0]
    try:
        array = np.asarray(embedding)
        if array.dtype != np.float32:
            array = array.astype(np.float64)
    except _NO_NUMBERS:  # nested, ragged, or not numbers
        return None
    return array if array.ndim == 1 else None


def _normalised(rows: Row) -> tuple[NDArray[np.bool_], Row, NDArray[np.bool_]]:
    """Scale rows to length 1, in place; return which have a direction and which are not finite."""
    if rows.size <= _EXACT_SIZE:
        rows = rows.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        odd = ~(np.isfinite(lengths) & (lengths > 1e-18))
        broken = np.zeros(len(rows), dtype=bool)
        if odd.any():  # too large or too small to square: scale by the largest entry first
            peaks = np.abs(rows[odd]).max(axis=1, keepdims=True)
            broken[odd] = ~np.isfinite(peaks[:, 0])
            peaks[~np.isfinite(peaks) | (peaks == 0)] = 1.0
            rows[odd] = rows[odd] / peaks
            lengths[odd] = np.sqrt(np.einsum("ij,ij->i", rows[odd], rows[odd]))
        usable = np.isfinite(lengths) & (lengths > 0) & ~broken
        if not usable.all():
            rows, lengths = rows[usable], lengths[usable]
        rows /= lengths[:, None]
    return usable, rows if rows.size <= _EXACT_SIZE else rows.astype(np.float32, copy=False), broken


def _nearest(product: Row) -> list[float]:
    """Return how much each candidate resembles the one nearest to it, itself left out."""
    own = product.diagonal().copy()
    np.fill_diagonal(product, -np.inf)
    nearest = product.max(axis=1, initial=-np.inf).tolist()
    np.fill_diagonal(product, own)
    return nearest


def _twins(rows: Row) -> NDArray[np.intp] | None:
    """Give equal rows the index of the first of them, or `None` where all differ."""
    marks = np.bitwise_xor.reduce(np.ascontiguousarray(rows[:, :_MARK]).view(np.uint32), axis=1)
    marks.sort()
    if not (marks[1:] == marks[:-1]).any():
        return None
    first: dict[bytes, int] = {}
    return np.array([first.setdefault(row.tobytes(), at) for at, row in enumerate(rows)])
