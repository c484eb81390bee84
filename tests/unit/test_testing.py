"""The conformance suites hold what the library ships to its promises; the doubles are honest."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from muntin import (
    CallableSource,
    StateStore,
    SummaryError,
    TiktokenCounter,
    ToolResultStore,
    count_tokens,
    estimate_tokens,
)
from muntin.testing import (
    CounterSuite,
    FailingSummarizer,
    FakeEmbedder,
    ScriptedLLM,
    SlowSummarizer,
    SourceSuite,
    StateStoreSuite,
    ToolResultStoreSuite,
)

if TYPE_CHECKING:
    from pathlib import Path

    from muntin import ContextSource, TokenCounter


class TestTheRule(CounterSuite):
    def make(self) -> TokenCounter:
        return count_tokens


class TestTheEstimate(CounterSuite):
    def make(self) -> TokenCounter:
        return estimate_tokens


class TestTheExactCounter(CounterSuite):
    def make(self) -> TokenCounter:
        return TiktokenCounter("o200k_base")


class TestCallableSource(SourceSuite):
    def make(self) -> ContextSource:
        return CallableSource("rag", lambda query: [f"about {query}", "more"])


class TestAsyncCallableInAThread(SourceSuite):
    def make(self) -> ContextSource:
        def generator(query: str) -> object:
            yield f"about {query}"

        return CallableSource("rag", generator)


class TestResultsInMemory(ToolResultStoreSuite):
    def make(self, folder: Path) -> ToolResultStore:
        return ToolResultStore.in_memory()


class TestResultsInAFolder(ToolResultStoreSuite):
    def make(self, folder: Path) -> ToolResultStore:
        return ToolResultStore.directory(folder / "results")


class TestResultsInSqlite(ToolResultStoreSuite):
    def make(self, folder: Path) -> ToolResultStore:
        return ToolResultStore.sqlite(folder / "results.db")


class TestStateInAFolder(StateStoreSuite):
    def make(self, folder: Path) -> StateStore:
        return StateStore.directory(folder / "agent")


class TestStateInSqlite(StateStoreSuite):
    def make(self, folder: Path) -> StateStore:
        return StateStore.sqlite(folder / "agent.db")


class _Wrong(CounterSuite):
    def make(self) -> TokenCounter:
        return lambda text: len(text) - 1


def test_a_suite_refuses_what_breaks_the_promise() -> None:
    """A suite that nothing can fail would bless every store."""
    with pytest.raises(AssertionError):
        _Wrong().test_no_text_is_no_tokens()


def test_a_scripted_model_says_its_lines_and_runs_out_loudly() -> None:
    llm = ScriptedLLM(["one", LookupError("no line")], context_window=100)
    assert asyncio.run(llm.chat(["hi"])).content == "one"
    with pytest.raises(LookupError):
        asyncio.run(llm.chat([]))
    with pytest.raises(AssertionError, match="asked 3 times and has 2"):
        asyncio.run(llm.chat([]))
    assert llm.requests == [["hi"], [], []]


def test_a_fake_embedder_knows_equal_from_different() -> None:
    embedder = FakeEmbedder(dim=64)
    first, again, other = embedder.embed_documents(["a", "a", "b"])
    assert first == again == embedder.embed_query("a")
    assert abs(sum(x * y for x, y in zip(first, other, strict=True))) < 0.5


def test_failing_and_slow_summarisers_fail_and_are_slow() -> None:
    failing = FailingSummarizer()
    with pytest.raises(SummaryError):
        failing("text", "instruction")
    waited: list[float] = []
    slow = SlowSummarizer(3.0, sleep=waited.append)
    assert (slow("text", "instruction"), waited, failing.calls, slow.calls) == (
        "a summary",
        [3.0],
        1,
        1,
    )
