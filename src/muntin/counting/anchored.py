"""A counter that learns from the token usage that providers report.

It rescales a base counter, per model. It is for adapters that see usage; it makes no requests.
"""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING, Final, Self, cast

from muntin.counting.counters import counter_name
from muntin.counting.framing import framing_of
from muntin.counting.tokens import count_tokens
from muntin.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from muntin.counting.tokens import TokenCounter

__all__ = ("AnchoredCounter",)


class AnchoredCounter:
    """A counter rescaled to the token usage a provider reports, per model.

    Local counts and reported usage are two scales. This counter keeps to one: it returns the
    base counter's number times a ratio learned from pairs of both, rounded up. The ratio is the
    quotient of two sums in which older pairs fade, so large prompts weigh more than small ones,
    and one outlier cannot throw it far.

    ```python
    from muntin import AnchoredCounter, count_tokens

    counter = AnchoredCounter(count_tokens)
    counter.observe(1_000, 1_300)
    print(counter.ratio, counter("a" * 400))
    #> 1.3 130
    ```
    """

    LOWEST: Final = 0.5
    """The ratio never falls below this, whatever is reported."""

    HIGHEST: Final = 4.0
    """The ratio never rises above this, whatever is reported."""

    FADE: Final = 0.75
    """Factor by which the weight of older pairs shrinks with each new pair."""

    def __init__(self, counter: TokenCounter = count_tokens, *, model: str = "") -> None:
        """Start at a ratio of 1.

        Args:
            counter: The base counter; its numbers are what `observe` takes as estimated.
            model: Name of the model of which usage is reported; "" when there is only one.
        """
        self.counter = counter
        self.model = model
        self._sums: dict[str, tuple[float, float]] = {}
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """Name of the counter, for reports."""
        return f"anchored:{counter_name(self.counter)}"

    @property
    def exact(self) -> bool:
        """Always False: the ratio is learned."""
        return False

    @property
    def framing(self) -> int:
        """Tokens around one message, as the base counter charges them."""
        return framing_of(self.counter)

    @property
    def ratio(self) -> float:
        """Tokens reported per token the base counter estimates; 1 before the first pair."""
        estimated, reported = self._sums.get(self.model, (1.0, 1.0))
        return min(self.HIGHEST, max(self.LOWEST, reported / estimated))

    def __call__(self, text: str) -> int:
        """Count the tokens of a text on the provider's scale, rounded up."""
        return self.scaled(self.counter(text))

    def scaled(self, estimated: int) -> int:
        """Convert a number of the base counter to the provider's scale, rounded up."""
        return math.ceil(estimated * self.ratio - 1e-9)

    def observe(self, estimated: int, reported: int) -> float:
        """Learn from one call: the number of the base counter and the number the provider charged.

        Args:
            estimated: Tokens by the base counter (`counter.counter`), not by this one.
            reported: Input tokens the provider reported for the same text.

        Returns:
            The new ratio. A pair with a zero teaches nothing: usage was not reported.

        Raises:
            ConfigurationError: A number is negative or not finite.
        """
        if not (0 <= estimated < math.inf and 0 <= reported < math.inf):
            raise ConfigurationError(
                f"observe needs two token counts, got estimated={estimated}, reported={reported}"
            )
        if not estimated or not reported:
            return self.ratio
        bounded = min(self.HIGHEST * estimated, max(self.LOWEST * estimated, float(reported)))
        with self._lock:
            before = self._sums.get(self.model, (0.0, 0.0))
            self._sums[self.model] = (
                before[0] * self.FADE + estimated,
                before[1] * self.FADE + bounded,
            )
        return self.ratio

    def for_model(self, model: str) -> AnchoredCounter:
        """Return the counter for another model: same base counter and memory, its own ratio."""
        other = AnchoredCounter(self.counter, model=model)
        other._sums, other._lock = self._sums, self._lock
        return other

    def to_dict(self) -> dict[str, object]:
        """Return what was learned, in plain JSON types."""
        with self._lock:
            sums = {model: list(pair) for model, pair in sorted(self._sums.items())}
        return {"counter": counter_name(self.counter), "model": self.model, "sums": sums}

    @classmethod
    def from_dict(cls, saved: Mapping[str, object], counter: TokenCounter = count_tokens) -> Self:
        """Rebuild from `to_dict` and the same base counter.

        Raises:
            ConfigurationError: It was saved with another base counter, or is not what was saved.
        """
        if saved.get("counter") != counter_name(counter):
            raise ConfigurationError(
                f"what was learned belongs to counter {saved.get('counter')!r}, "
                f"not to {counter_name(counter)!r}: the scales differ"
            )
        restored = cls(counter, model=str(saved.get("model", "")))
        try:
            sums = cast("Mapping[str, tuple[float, float]]", saved["sums"])
            restored._sums = {model: (float(a), float(b)) for model, (a, b) in sums.items()}
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ConfigurationError(f"not what to_dict gives: {error}") from error
        return restored

    def __repr__(self) -> str:
        return f"AnchoredCounter({counter_name(self.counter)}, ratio={self.ratio:.3f})"

    def __getstate__(self) -> dict[str, object]:
        return {"counter": self.counter, "model": self.model, "_sums": dict(self._sums)}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()
