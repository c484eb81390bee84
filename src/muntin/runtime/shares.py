"""Divide whole numbers: in proportion to weights, or max-min fairly.

Tokens and characters are whole, and a division that loses some of them leaves space idle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ("fair_limit", "fair_shares", "split")

K = TypeVar("K", str, int)


def split(total: int, weights: Mapping[K, float]) -> dict[K, int]:
    """Divide a whole number in proportion to weights, by the largest remainder.

    The parts sum to `total` exactly (to 0 where all weights are 0); ties go by key.

    ```python
    from muntin.runtime import split

    print(split(10, {"a": 1, "b": 1, "c": 1}))
    #> {'a': 4, 'b': 3, 'c': 3}
    ```
    """
    whole = sum(weights.values())
    if not whole or total <= 0:
        return dict.fromkeys(weights, 0)
    exact = {key: total * (weight / whole) for key, weight in weights.items()}
    parts = {key: int(value) for key, value in exact.items()}
    rest = total - sum(parts.values())
    wanting = [key for key in weights if weights[key] > 0]
    by_remainder = sorted(wanting, key=lambda key: (parts[key] - exact[key], key))
    for turn in range(rest):
        parts[by_remainder[turn % len(by_remainder)]] += 1
    return parts


def fair_shares(wants: Sequence[int], total: int) -> list[int]:
    """Divide a total max-min fairly: small wants are met whole, large ones share the rest evenly.

    Args:
        wants: What each party can use, 0 or more. No share is larger than its want.
        total: What there is to divide.

    ```python
    from muntin.runtime import fair_shares

    print(fair_shares([5, 100, 100], 65))
    #> [5, 30, 30]
    ```
    """
    shares = [0] * len(wants)
    left = max(0, total)
    for rank, at in enumerate(sorted(range(len(wants)), key=wants.__getitem__)):
        shares[at] = min(wants[at], left // (len(wants) - rank))
        left -= shares[at]
    return shares


def fair_limit(sizes: Sequence[int], total: int) -> int:
    """Return the size to which the larger ones are cut so that all stay within `total`.

    It is the smallest of the max-min fair shares that is not a whole size, or the largest size
    where all fit.

    ```python
    from muntin.runtime import fair_limit

    print(fair_limit([10, 500, 500], 210))
    #> 100
    ```
    """
    shares = zip(fair_shares(sizes, total), sizes, strict=True)
    return min((share for share, size in shares if share < size), default=max(sizes, default=0))
