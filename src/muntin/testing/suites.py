"""Conformance suites: subclass one, return the object to test, and its promises are tested.

The methods are named for pytest, but nothing here imports it. A suite holds what the rest of the
library relies on and nothing more.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from muntin.errors import StateConflictError, StateNotFound, ToolResultNotFound
from muntin.passages import Candidate
from muntin.state import AgentState

if TYPE_CHECKING:
    from pathlib import Path

    from muntin.counting import TokenCounter
    from muntin.passages import ContextSource
    from muntin.state import StateStore
    from muntin.tool_results import ToolResultStore

__all__ = ("CounterSuite", "SourceSuite", "StateStoreSuite", "ToolResultStoreSuite")

_TEXTS = (
    "",
    " ",
    "hello world",
    "中文",
    "a\n\nb",
    "<|endoftext|>",
    "\ud83d",
    "\0",
    "👩‍👩‍👧‍👦",
    "x" * 5000,
)


class CounterSuite(ABC):
    """What a token counter must do: return the same non-negative number for a text each time.

    ```python
    from muntin import count_tokens
    from muntin.testing import CounterSuite

    class TestMyCounter(CounterSuite):
        def make(self):
            return count_tokens

    TestMyCounter().test_it_answers_for_every_text()
    ```
    """

    @abstractmethod
    def make(self) -> TokenCounter:
        """Return the counter to test."""

    def test_it_answers_for_every_text(self) -> None:
        """Special tokens, lone surrogates and NULs are text like any other."""
        count = self.make()
        for text in _TEXTS:
            tokens = count(text)
            assert isinstance(tokens, int), f"{text[:20]!r} counts {tokens!r}"
            assert tokens >= 0, f"{text[:20]!r} counts {tokens}"

    def test_no_text_is_no_tokens(self) -> None:
        """An empty part must not cost anything."""
        assert self.make()("") == 0

    def test_the_same_text_counts_the_same(self) -> None:
        """A budget that holds once must hold again."""
        count = self.make()
        assert [count(text) for text in _TEXTS] == [count(text) for text in _TEXTS]


class SourceSuite(ABC):
    """What a source must do: a name, candidates for any question, the same sync and async."""

    @abstractmethod
    def make(self) -> ContextSource:
        """Return the source to test."""

    def test_it_has_a_name(self) -> None:
        """The name is the key of its quota."""
        assert isinstance(self.make().name, str)
        assert self.make().name

    def test_it_returns_candidates(self) -> None:
        """The candidates for every question can be placed in a context."""
        for query in ("what is a muntin?", "", "zzzz"):
            for candidate in self.make().fetch(query):
                assert isinstance(candidate, Candidate)

    def test_both_doors_return_the_same(self) -> None:
        """An async application must not see other passages than a sync one."""
        sync = list(self.make().fetch("what is a muntin?"))
        found = asyncio.run(self._afetch("what is a muntin?"))
        assert sync == found

    async def _afetch(self, query: str) -> list[Candidate]:
        return list(await self.make().afetch(query))


class ToolResultStoreSuite(ABC):
    """What a store of tool results must do: return exactly what was put, under one id."""

    @abstractmethod
    def make(self, folder: Path) -> ToolResultStore:
        """Return an empty store; `folder` is there for its files."""

    def test_what_was_put_comes_back(self, tmp_path: Path) -> None:
        """A shortened result promises a readable original."""
        store = self.make(tmp_path)
        for text in ("short", "中文\n" * 500, "👩‍👩‍👧‍👦"):
            result_id = store.put(text)
            assert result_id is not None
            assert store.get(result_id) == text

    def test_the_same_text_has_one_id(self, tmp_path: Path) -> None:
        """Storing twice must not cost twice, nor change the marker a cached prompt holds."""
        store = self.make(tmp_path)
        assert store.put("same") == store.put("same")

    def test_an_unknown_id_says_so(self, tmp_path: Path) -> None:
        """A made-up id must raise `ToolResultNotFound`, not another error."""
        try:
            self.make(tmp_path).get("0" * 16)
        except ToolResultNotFound:
            return
        raise AssertionError("an unknown id was found")


class StateStoreSuite(ABC):
    """What a store of agent state must do: whole states, and no silent overwriting."""

    @abstractmethod
    def make(self, folder: Path) -> StateStore:
        """Return an empty store; `folder` is there for its files."""

    def test_nothing_saved_says_so(self, tmp_path: Path) -> None:
        """A first start must be distinguishable from a lost state."""
        try:
            self.make(tmp_path).load()
        except StateNotFound:
            return
        raise AssertionError("a state was loaded that was never saved")

    def test_what_was_saved_comes_back(self, tmp_path: Path) -> None:
        """Plan and findings survive a restart."""
        state = AgentState()
        state.goal = "find the leak"
        state.plan = ["read the log", "bisect"]
        store = self.make(tmp_path)
        store.save(state)
        loaded = store.load()
        assert loaded.goal == "find the leak"
        assert loaded.to_dict() == state.to_dict()

    def test_a_stale_writer_is_refused(self, tmp_path: Path) -> None:
        """Two agents that both loaded the state must not erase each other's findings."""
        store = self.make(tmp_path)
        state = AgentState()
        store.save(state)
        first, second = store.load(), store.load()
        first.goal = "first"
        store.save(first)
        second.goal = "second"
        try:
            store.save(second)
        except StateConflictError:
            return
        raise AssertionError("a stale state overwrote a newer one")
