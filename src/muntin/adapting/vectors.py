"""Remember the vectors that an embedding model computed, by text.

Retrieved passages come again with every question. Computing their vectors again costs a request
each time, so an adapter keeps one cache and computes only what is missing.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from muntin.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from muntin.passages import Candidate, Embedding, Gathered

__all__ = ("VectorCache",)

_CAPACITY = 20_000


class VectorCache:
    """Keep vectors by text; the oldest are removed first. Safe between threads.

    Args:
        capacity: Most vectors to keep.

    ```python
    from muntin.adapting import VectorCache

    vectors = VectorCache()
    vectors.remember(["a"], [[1.0, 0.0]])
    print(vectors.missing(["a", "b", "b"]))
    #> ['b']
    ```
    """

    def __init__(self, capacity: int = _CAPACITY) -> None:
        self.capacity = capacity
        self._known: OrderedDict[str, Embedding] = OrderedDict()
        self._lock = threading.Lock()

    def missing(self, texts: Iterable[str]) -> list[str]:
        """Return the texts that have no vector yet, each once, without empty ones."""
        with self._lock:
            return [text for text in dict.fromkeys(texts) if text and text not in self._known]

    def remember(self, texts: Sequence[str], vectors: Sequence[Sequence[float]]) -> None:
        """Keep the vectors of texts, one for each.

        Raises:
            ConfigurationError: There are more or fewer vectors than texts.
        """
        if len(vectors) != len(texts):
            raise ConfigurationError(
                f"the embeddings returned {len(vectors)} vectors for {len(texts)} texts: they must "
                f"return one for each, in the order of the texts"
            )
        # 32 bits: half a gigabyte less for a full cache, and selection computes in them anyway.
        kept = [np.asarray(vector, dtype=np.float32) for vector in vectors]
        with self._lock:
            self._known.update(zip(texts, kept, strict=True))
            while len(self._known) > self.capacity:
                self._known.popitem(last=False)

    def get(self, text: str) -> Embedding | None:
        """Return the vector of a text; `None` if it is not known."""
        with self._lock:
            return self._known.get(text)

    def missing_of(self, gathered: Gathered) -> list[str]:
        """Return the texts of gathered passages that have no vector yet."""
        return self.missing(
            candidate.content
            for candidates in gathered.candidates.values()
            for candidate in candidates
            if candidate.embedding is None
        )

    def added_to(self, gathered: Gathered) -> Gathered:
        """Return the passages with the vectors that are known."""

        def one(candidate: Candidate) -> Candidate:
            if candidate.embedding is not None:
                return candidate
            return replace(candidate, embedding=self.get(candidate.content))

        return replace(
            gathered,
            candidates={
                name: tuple(one(candidate) for candidate in candidates)
                for name, candidates in gathered.candidates.items()
            },
        )

    def __getstate__(self) -> dict[str, Any]:
        return {"capacity": self.capacity}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["capacity"])
