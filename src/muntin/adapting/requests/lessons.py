"""What providers teach about each model: tokens they charge, limits they name."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from muntin.adapting.requests.truncation import TruncatedByServer, truncated_at
from muntin.counting import AnchoredCounter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from muntin.adapting.requests.facts import RequestFacts

__all__ = ("Lessons",)

_LOWEST = 0.8
"""Usage may enlarge a budget by a quarter at most: some providers leave cached tokens out of what
they report."""


class Lessons:
    """Remember what was learned, by name of the model."""

    def __init__(self) -> None:
        self._anchors: dict[str, AnchoredCounter] = {}
        self._limits: dict[str, int] = {}
        self._accepted: dict[str, int] = {}
        self._suspected: dict[str, int] = {}

    def ratio(self, name: str) -> float:
        """Return the tokens a model's provider charges for one that is counted here."""
        anchor = self._anchors.get(name)
        return 1.0 if anchor is None else max(anchor.ratio, _LOWEST)

    def limit(self, name: str) -> int | None:
        """Return the window that a refusal named; `None` if none did."""
        return self._limits.get(name)

    def remember_limit(self, name: str, tokens: int) -> None:
        """Remember the window that a refusal named."""
        self._limits[name] = tokens

    def accepted(self, name: str) -> int:
        """Return the tokens of the largest prompt that was accepted, by the provider's count."""
        return self._accepted.get(name, 0)

    def learn(self, facts: RequestFacts, counted: int, reported: int, *, accepted: int = 0) -> None:
        """Learn from what a provider charged for a request.

        Args:
            facts: What is known of the request.
            counted: Tokens by our count.
            reported: Tokens the provider charged. A number above what any vocabulary yields for the
                text includes other charges, such as a search of the provider; it is not learned.
            accepted: The same if the request was accepted, 0 if it was refused.
        """
        context = truncated_at(counted * self.ratio(facts.name), accepted) if accepted else None
        suspected = self._suspected.pop(facts.name, None)
        if context is not None:
            # A single case may be chance, or another middleware cut the request further.
            self._suspected[facts.name] = context
            if context == suspected:
                self._truncated(facts, counted, accepted, context)
            return
        self._accepted[facts.name] = max(self._accepted.get(facts.name, 0), accepted)
        if reported <= AnchoredCounter.HIGHEST * counted:
            self._anchor(facts).observe(counted, reported)

    def _truncated(self, facts: RequestFacts, counted: int, reported: int, context: int) -> None:
        """Remember the context of a server that cut a prompt without an error, and warn."""
        self.remember_limit(facts.name, min(context, self.limit(facts.name) or context))
        warnings.warn(
            f"{facts.name!r} reported {reported} input tokens of about {counted} that were sent: "
            f"the server cut the prompt without an error. Its context is taken to be {context} "
            f"tokens from now on; give window={context}, or start the server with a larger one",
            TruncatedByServer,
            stacklevel=3,
        )

    def ratios(self) -> dict[str, float]:
        """Return the ratios that were learned, as a checkpoint can hold them."""
        return {name: round(anchor.ratio, 2) for name, anchor in self._anchors.items()}

    def recall(self, facts: RequestFacts, ratios: Mapping[str, Any] | None) -> bool:
        """Adopt a ratio that another process learned; return whether there was one.

        A ratio that this process learned is newer and is kept.
        """
        known = (ratios or {}).get(facts.name)
        if not isinstance(known, (int, float)) or facts.name in self._anchors:
            return False
        self._anchor(facts).observe(1000, int(1000 * known))
        return True

    def _anchor(self, facts: RequestFacts) -> AnchoredCounter:
        if facts.name not in self._anchors:
            self._anchors[facts.name] = AnchoredCounter(facts.counts.counter, model=facts.name)
        return self._anchors[facts.name]
