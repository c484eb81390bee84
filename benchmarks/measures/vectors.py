"""Vectors of other models for the passages of `blocks`: each of them must find the duplicates."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from benchmarks._harness import peer
from benchmarks.measures.blocks import offers, questions

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.measures.blocks import Offer

    Embed: TypeAlias = Callable[[Offer], Any]
    """Gives the vector of a passage, in place of the one in the data."""

__all__ = ("mean_cosine", "of_data", "shifted", "wordllama")


def of_data(offer: Offer) -> Any:
    """Return the vector of the data."""
    return offer.vector


def shifted(length: float) -> Embed:
    """Return the vectors of the data with one direction added to all, which narrows all cosines."""

    def embed(offer: Offer) -> Any:
        if offer.vector is None:
            return None
        vector = np.asarray(offer.vector, np.float32)
        return np.append(vector / max(float(np.linalg.norm(vector)), 1e-9), np.float32(length))

    return embed


def wordllama() -> Embed | None:
    """Return the vectors of wordllama, whose weights are in its package; `None` without it."""
    package = peer("wordllama")
    if package is None:
        return None
    folder = Path(str(package.__file__)).parent
    model = package.WordLlama.load(cache_dir=folder, disable_download=True)

    @cache
    def of(text: str) -> Any:
        return model.embed([text])[0]

    return lambda offer: of(offer.text)


def mean_cosine(embed: Embed) -> float:
    """Return the mean cosine of two passages that were found for one question."""
    means: list[float] = []
    for record in questions():
        found = [one for some in offers(record, "plain").values() for one in some]
        rows = np.stack([embed(one) for one in found])
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        total = rows.sum(axis=0)
        means.append(float(total @ total - len(rows)) / (len(rows) * (len(rows) - 1)))
    return sum(means) / len(means)
