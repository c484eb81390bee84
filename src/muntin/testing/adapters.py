"""Conformance suites for adapters: a retriever and a summariser of any framework.

Subclass one and implement how to use the adapter; the tests compare it with the adapter kit.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from muntin.adapting import PassagePolicy
from muntin.config import ContextConfig
from muntin.counting import count_tokens
from muntin.errors import SummaryError
from muntin.passages import Candidate, Gathered
from muntin.runtime import SummaryRequest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from muntin.report import AssemblyReport
    from muntin.runtime import Summarizer

__all__ = ("RetrieverSuite", "SummarizerSuite")

_LONG = " ".join(f"The long parcel note has sentence {n}." for n in range(12))
_OFFERED = {
    "manual": (
        Candidate("Parcels for Lund ship on Monday at nine.", 0.95, id="a"),
        Candidate("Parcels for Lund ship on Monday at nine!", 0.94, id="b"),
        Candidate(_LONG, 0.93, id="c"),
        Candidate("Depot Lund opens at seven and closes at six.", 0.9, id="d"),
    ),
    "memory": (
        Candidate("Ada asked for parcels to be left at the depot.", 0.4, id="e"),
        Candidate("Depot Lund opens at seven and closes at six.", 0.35, id="f"),
        Candidate("  ", 0.99, id="g"),
    ),
}
_CONFIGS = (
    None,
    ContextConfig(source_ratios={"manual": 0.1, "memory": 0.9}),
    ContextConfig(source_ratios={"manual": 0.1, "memory": 0.9}, allow_borrow=False),
    ContextConfig(source_ratios={"manual": 0.9, "memory": 0.1}, shorten=True),
    ContextConfig(source_ratios={"manual": 0.9, "memory": 0.1}, fill=False),
    ContextConfig(source_ratios={"manual": 0.5, "memory": 0.5}, dedup_threshold=1.1),
)


class RetrieverSuite(ABC):
    """What a retriever over several sources must do: return what `PassagePolicy` chooses.

    ```python
    from muntin import count_tokens
    from muntin.adapting import PassagePolicy
    from muntin.passages import Gathered
    from muntin.testing import RetrieverSuite

    class TestMyRetriever(RetrieverSuite):
        def retrieve(self, sources, budget, config):
            policy = PassagePolicy(budget=budget, config=config, counter=count_tokens)
            chosen = policy.choose(Gathered(candidates=sources), "when?")
            return [one.content for one in chosen.candidates], chosen.report

    TestMyRetriever().test_it_returns_what_the_policy_chooses()
    ```
    """

    @abstractmethod
    def retrieve(
        self,
        sources: Mapping[str, Sequence[Candidate]],
        budget: int,
        config: ContextConfig | None,
    ) -> tuple[list[str], AssemblyReport]:
        """Retrieve through the adapter, counting with `count_tokens`.

        Args:
            sources: Passages by source.
            budget: Tokens of the passages, joined by blank lines.
            config: Options; `None` for the defaults.

        Returns:
            The texts in the order in which they are returned, and the report.
        """

    def test_it_returns_what_the_policy_chooses(self) -> None:
        """The framework must not decide which passages the model reads."""
        for config in _CONFIGS:
            for budget in (12, 30, 60, 90, 400):
                policy = PassagePolicy(budget=budget, config=config, counter=count_tokens)
                chosen = policy.choose(Gathered(candidates=_OFFERED), "when?")
                texts, report = self.retrieve(_OFFERED, budget, config)
                expected = [candidate.content for candidate in chosen.candidates]
                assert texts == expected, f"{budget} tokens, {config}: {texts} is not {expected}"
                assert report.used == chosen.report.used, f"{budget} tokens, {config}"

    def test_the_budget_holds_for_the_joined_text(self) -> None:
        """Tokens are not additive: the joined text is what has to fit."""
        for budget in range(4, 120, 7):
            texts, _ = self.retrieve(_OFFERED, budget, None)
            assert count_tokens("\n\n".join(texts)) <= budget, f"{budget} tokens: {texts}"

    def test_every_passage_is_in_the_report_once(self) -> None:
        """A passage without a reason cannot be looked for."""
        _, report = self.retrieve(_OFFERED, 60, None)
        offered = sum(len(candidates) for candidates in _OFFERED.values())
        found = {(one.source, one.index) for one in report.decisions}
        assert len(report.decisions) == len(found) == offered


class SummarizerSuite(ABC):
    """What a summariser of a framework's model must do: answer sync and async calls, in time."""

    @abstractmethod
    def make(self, reply: str) -> Summarizer:
        """Return a summariser whose model answers `reply`."""

    @abstractmethod
    def make_slow(self, seconds: float) -> Summarizer:
        """Return a summariser whose model answers after so many seconds."""

    def test_sync_and_async_calls_return_the_same(self) -> None:
        """An async application must not get other summaries than a sync one."""
        request = SummaryRequest(text="a long story", instruction="Shorten.", max_tokens=50)
        assert self.make("short").answer(request) == "short"
        assert asyncio.run(self.make("short").aanswer(request)) == "short"

    def test_a_timeout_ends_both(self) -> None:
        """A model that hangs must not hold up the conversation."""
        request = SummaryRequest(text="a long story", instruction="Shorten.", max_tokens=50)
        slow = self.make_slow(0.5).within(0.02)
        for ask in (lambda: slow.answer(request), lambda: asyncio.run(slow.aanswer(request))):
            try:
                ask()
            except SummaryError as error:
                assert isinstance(error.__cause__, TimeoutError), error  # noqa: PT017 - not pytest's
            else:
                raise AssertionError("a summary that came too late was returned")
