"""Find the largest size that stays within a limit, by doubling and bisection.

Costs of texts (tokens) grow with their length nearly everywhere, so the search assumes that what is
longer costs no less. It calls the cost function about `2 * log2(result)` times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("largest_within", "longest_text")


def largest_within(
    limit: int,
    cost: Callable[[int], int],
    *,
    low: int,
    high: int,
    start: int | None = None,
    tolerance: float = 0.0,
) -> int:
    """Return the largest size in `(low, high]` whose cost is at most `limit`, else `low`.

    Args:
        limit: Most that the result may cost, in the unit of `cost`.
        cost: Cost of a size. Assumed not to fall as the size grows.
        low: A size that is known to fit; it is not tried.
        high: Largest size to try.
        start: Size to try first; it is doubled until one is too large. `None` bisects at once.
        tolerance: Stop when the result is known to this share of itself (ratio, 0 is exact).

    ```python
    from muntin.runtime import largest_within

    print(largest_within(50, lambda n: n * n, low=0, high=100))
    #> 7
    ```
    """
    below, above = 0, limit + 1
    bad = high + 1
    size = start if start is not None else high + 1
    while low < size <= high and bad > high:
        reached = cost(size)
        if reached <= limit:
            low, below = size, reached
            size = high if low < high < 2 * size else 2 * size
        else:
            bad, above = size, reached
    is_even = start is not None
    while bad - low > 1 + int(low * tolerance):
        middle = (low + bad) // 2
        if is_even and bad <= high and below and above > below:
            # Costs grow about evenly, so every other step goes where the limit is expected.
            expected = low + (limit - below) * (bad - low) // (above - below)
            middle = min(max(expected, low + 1), bad - 1)
        is_even = start is not None and not is_even
        reached = cost(middle)
        if reached <= limit:
            low, below = middle, reached
        else:
            bad, above = middle, reached
    return low


def longest_text(
    write: Callable[[int], str],
    max_tokens: int,
    counter: Callable[[str], int],
    *,
    low: int,
    high: int,
    start: int | None = None,
    tolerance: float = 0.0,
) -> str:
    """Return the text of the largest size in `(low, high]` within `max_tokens`, else of `low`.

    Args:
        write: Write the text of a size.
        max_tokens: Most tokens that the text may cost.
        counter: Count the tokens of a text.
        low: A size that is known to fit.
        high: Largest size to try.
        start: As in `largest_within`.
        tolerance: As in `largest_within`.

    ```python
    from muntin import count_tokens
    from muntin.runtime import longest_text

    print(longest_text(lambda n: "ab " * n, 3, count_tokens, low=0, high=9))
    #> ab ab ab ab
    ```
    """
    best: tuple[int, str] | None = None

    def cost(size: int) -> int:
        nonlocal best
        text = write(size)
        tokens = counter(text)
        if tokens <= max_tokens and (best is None or size > best[0]):
            best = size, text
        return tokens

    size = largest_within(max_tokens, cost, low=low, high=high, start=start, tolerance=tolerance)
    return best[1] if best is not None and best[0] == size else write(size)
