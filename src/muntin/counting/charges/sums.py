"""Add up the tokens of several texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muntin.counting.checks import checked_counter

if TYPE_CHECKING:
    from muntin.counting.checks import AnyCounter

__all__ = ("tokens_of",)


def tokens_of(*texts: str | None, counter: AnyCounter = None, model: object = None) -> int:
    """Count several texts, each on its own, and add up.

    Counts are not additive: two texts joined may cost more or less than apart, so a budget is
    checked on the joined text, never on this sum.

    Args:
        texts: What to count. None and the empty text count 0 and are not shown to the counter.
        counter: Counts tokens: a function of a text, a model, or the name of a model or an
            encoding. None takes `model`'s counter, else `count_tokens`.
        model: A model or its name, in place of `counter`.

    Returns:
        Tokens.

    Raises:
        ConfigurationError: The counter does not count.

    ```python
    from muntin import tokens_of

    print(tokens_of("abcd", None, "ab"))
    #> 2
    ```
    """
    count = checked_counter(counter, model=model)
    return sum(count(text) for text in texts if text)
