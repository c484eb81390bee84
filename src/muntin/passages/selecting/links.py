"""Raise candidates that are named in the question or linked with a chosen passage.

Two bonuses are added to relevance while passages are picked:

* a link: the name of the candidate occurs in the question or in a passage picked before, or, at a
  fifth of the weight, the candidate mentions the name of a passage picked before;
* coverage: the candidate has words of the question that no picked passage has. A word weighs
  `1 / (1 + number of texts with it)`, so rare words decide.

Names that many texts mention point to none of them and weigh less. No vectors and no model are
needed; texts are compared as phrases of `names`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from muntin.passages.selecting.names import names_of, phrase
from muntin.text import content_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from muntin.passages.candidates import Candidate

    Bonus = NDArray[np.float64]

__all__ = ("Link", "LinkKind", "Links")

LinkKind = Literal["named_in_question", "named_in_chosen", "names_chosen", "covers_question"]
"""Why a candidate was raised."""

_LINKING = 8
"""Picked passages whose text and names are searched: links of later ones changed nothing."""

_MENTION = 0.2
"""Weight of a candidate that mentions a picked passage, relative to one that is named there."""

_COMMON = 0.25
"""Share of all texts from which a name that they mention counts as common."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Explain why one candidate was raised."""

    kind: LinkKind
    """What was found."""
    by: int | None = None
    """Position of the picked candidate it is linked with; `None` for the question."""


class Links:
    """Bonuses of the candidates of one pool, kept up to date while passages are picked.

    Args:
        candidates: The pool.
        question: The question; `""` leaves only links between passages.
        link_weight: Bonus of a named candidate, in units of relevance, which is at most 1.
        coverage_weight: Bonus of a candidate that has all words of the question.
        after: Number of passages that are picked without a bonus.

    ```python
    from muntin import Candidate
    from muntin.passages.selecting.links import Links

    pool = [Candidate("Scott Derrickson directed Sinister."), Candidate("Sinister is a film.")]
    links = Links(pool, "Who is Scott Derrickson?", link_weight=0.6, coverage_weight=0.0)
    print(links.bonus.tolist(), links.picked(0).tolist())
    #> [0.0, 0.0] [0.0, 0.6]
    ```
    """

    def __init__(
        self,
        candidates: Sequence[Candidate],
        question: str,
        *,
        link_weight: float,
        coverage_weight: float,
        after: int = 0,
    ) -> None:
        self._after = after
        self._count = len(candidates)
        self._link_weight = link_weight
        self._texts = [phrase(candidate.content) for candidate in candidates]
        self._names: dict[str, list[int]] = {}
        for index, candidate in enumerate(candidates if link_weight else ()):
            for name in names_of(candidate):
                self._names.setdefault(name, []).append(index)
        self._weights: dict[str, float] = {}
        self._searched = 0
        self._linked = np.zeros(self._count)
        self._covered = np.zeros(self._count)
        self._words = self._missing_words(question, coverage_weight) if coverage_weight else {}
        for has, weight in self._words.values():
            self._covered += has * weight
        self._done: set[int] = set()
        self.found: dict[int, Link] = {}
        """The strongest link of each linked candidate, as it was when it was picked."""
        if link_weight and question:
            self._raise_named(phrase(question), Link(kind="named_in_question"))

    @property
    def bonus(self) -> Bonus:
        """Return the bonus of every candidate now, shape `(n,)`."""
        if len(self._done) < self._after:
            return np.zeros(self._count)
        return self._linked + self._covered

    def covers(self, index: int) -> bool:
        """Return whether a candidate has words of the question that nothing picked has."""
        return bool(self._covered[index] > 0)

    def picked(self, index: int) -> Bonus | None:
        """Note that a candidate was picked; return the change of the bonuses, `None` for none."""
        starts = len(self._done) + 1 == self._after
        searches = self._link_weight > 0 and self._searched < _LINKING
        covered = [word for word, (has, _) in self._words.items() if has[index]]
        if not searches and not covered and not starts:
            self._done.add(index)
            return None
        before, changed = self.bonus, bool(covered) or starts
        self._done.add(index)
        for word in covered:
            has, weight = self._words.pop(word)
            self._covered -= has * weight
        if searches:
            self._searched += 1
            changed |= self._raise_named(
                self._texts[index], Link(kind="named_in_chosen", by=index), but=index
            )
            changed |= self._raise_mentions(index)
        return self.bonus - before if changed else None

    def _missing_words(
        self, question: str, coverage_weight: float
    ) -> dict[str, tuple[NDArray[np.bool_], float]]:
        """Return the words of the question with the texts that have them and their weight."""
        asked = dict.fromkeys(phrase(" ".join(content_words(question))).split())
        found: dict[str, NDArray[np.bool_]] = {}
        for word in asked:
            has = np.array([f" {word} " in text for text in self._texts], dtype=bool)
            if has.any():
                found[word] = has
        weights = {word: 1 / (1 + float(np.count_nonzero(has))) for word, has in found.items()}
        total = sum(weights.values())
        return {word: (has, coverage_weight * weights[word] / total) for word, has in found.items()}

    def _raise_named(self, text: str, link: Link, but: int = -1) -> bool:
        """Raise the candidates one of whose names occurs in a text; return whether any was."""
        changed = False
        for name in [name for name in self._names if name in text]:
            worth = self._weight(name)
            for index in self._names[name]:
                changed |= index != but and self._raise(index, worth, link)
        return changed

    def _raise_mentions(self, picked: int) -> bool:
        """Raise the candidates that mention a name of a picked one."""
        changed = False
        link = Link(kind="names_chosen", by=picked)
        for name in [name for name, owners in self._names.items() if picked in owners]:
            worth = _MENTION * self._weight(name)
            for index in [at for at, text in enumerate(self._texts) if name in text]:
                changed |= index != picked and self._raise(index, worth, link)
        return changed

    def _raise(self, index: int, worth: float, link: Link) -> bool:
        if worth <= self._linked[index] or index in self._done:
            return False
        self._linked[index] = worth
        self.found[index] = link
        return True

    def _weight(self, name: str) -> float:
        """Return the weight of a link by a name: less where many texts mention the name."""
        known = self._weights.get(name)
        if known is None:
            mentions = sum(name in text for text in self._texts)
            common = max(_COMMON * self._count, 3.0)
            known = self._link_weight * min(1.0, common / max(mentions, 1))
            self._weights[name] = known
        return known
