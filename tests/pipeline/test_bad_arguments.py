"""Every entry point of the core refuses a wrong counter or number of tokens, by name and typed.

The tables hold entry points on one side and wrong values on the other, so that a new entry point is
one line and meets everything that went wrong elsewhere.
"""

from __future__ import annotations

import inspect
import math
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import muntin
from muntin import (
    AgentState,
    CallableSource,
    Candidate,
    ConfigurationError,
    ContextBudget,
    ContextBuilder,
    ContextConfig,
    ContextRetriever,
    ExtractiveSummarizer,
    HistoryCompactor,
    ToolResultStore,
    count_message,
    count_messages,
    fit_messages,
    read_tool_result,
    reinject,
    resolve_window,
    tokens_of,
    truncate_to_tokens,
    truncate_tool_result,
)
from muntin.conversations.trajectory import (
    reduce_agent_sync,
    reduce_plan_sync,
    reduce_reflection_sync,
)
from muntin.tool_results import truncate_batch

if TYPE_CHECKING:
    from collections.abc import Callable

TEXT = "The parcel left the depot at nine and reached the harbour at noon. " * 12
HISTORY = [
    {"role": role, "content": f"{n}: {TEXT}"} for n in range(8) for role in ("user", "assistant")
] + [{"role": "user", "content": "Where is it now?"}]
STEPS = [f"{n}: {TEXT}" for n in range(6)]
CRITIQUES = [{"kind": "critique", "text": step} for step in STEPS]
REFLECTION = [{"kind": "draft", "text": TEXT}, *CRITIQUES, {"kind": "refine", "text": "At noon."}]
CONFIG = ContextConfig.for_window(8000)
STORE = ToolResultStore.in_memory()
KEY = STORE.put(TEXT) or ""


class Interactions:
    """A store of interactions that holds one text."""

    def similarity_search(self, query: str, k: int) -> list[str]:
        return [TEXT][:k]

    def add_texts(self, texts: list[str], metadatas: list[dict[str, Any]]) -> None:
        raise NotImplementedError


def _state() -> AgentState:
    state = AgentState()
    state.goal, state.key_findings = "Deliver the parcel", [TEXT]
    return state


def _sources() -> list[CallableSource]:
    return [CallableSource("rag", lambda query: [Candidate(TEXT, 0.9)])]


def _said(text: str, instruction: str) -> str:
    return "The parcel reached the harbour."


NOT_COUNTING = ("AnchoredCounter", "AssemblyReport")
"""What has a counter that counted, and is told of it."""

COUNTER_TAKERS: dict[str, Callable[[Any], object]] = {
    "ContextBuilder": lambda c: ContextBuilder(CONFIG, counter=c).build(
        "Where?", sources=_sources()
    ),
    "HistoryCompactor": lambda c: HistoryCompactor(None, counter=c).compact(HISTORY),
    "fit_messages": lambda c: fit_messages(HISTORY, budget=600, counter=c),
    "count_message": lambda c: count_message(HISTORY[0], counter=c),
    "count_messages": lambda c: count_messages(HISTORY, counter=c),
    "tokens_of": lambda c: tokens_of(TEXT, counter=c),
    "truncate_to_tokens": lambda c: truncate_to_tokens(TEXT, 40, c),
    "truncate_tool_result": lambda c: truncate_tool_result(TEXT, 60, counter=c),
    "truncate_batch": lambda c: truncate_batch([TEXT, TEXT], 120, counter=c),
    "read_tool_result": lambda c: read_tool_result(KEY, max_tokens=90, store=STORE, counter=c),
    "AgentState.to_context": lambda c: _state().to_context(90, counter=c),
    "reinject": lambda c: reinject(_state(), HISTORY, max_tokens=120, counter=c),
    "ContextRetriever": lambda c: ContextRetriever(Interactions(), counter=c).get_relevant_context(
        "Where?", max_tokens=60
    ),
    "ExtractiveSummarizer": lambda c: ExtractiveSummarizer(max_tokens=40, counter=c)(TEXT, ""),
    "reduce_agent": lambda c: reduce_agent_sync(HISTORY, summarize=_said, budget=900, counter=c),
    "reduce_plan": lambda c: reduce_plan_sync(STEPS, summarize=_said, budget=750, counter=c),
    "reduce_reflection": lambda c: reduce_reflection_sync(
        REFLECTION, summarize=_said, budget=300, counter=c
    ),
}


async def _waits(text: str) -> int:
    return len(text)


WRONG_COUNTERS: dict[str, Callable[[Any], Any] | object] = {
    "a number": 7,
    "a mapping": {},
    "a counter that returns None": lambda text: None,
    "a counter that returns text": lambda text: "3",
    "a counter that returns a float": lambda text: len(text) / 4,
    "a counter that returns NaN": lambda text: math.nan,
    "a counter that returns a negative number": lambda text: -2,
    "a counter that returns a bool": lambda text: True,
    "a counter that returns more than any window": lambda text: 10**30,
    "a counter that raises": lambda text: text.no_such_attribute,
    "a counter that is awaited": _waits,
}


@pytest.mark.parametrize("wrong", WRONG_COUNTERS)
@pytest.mark.parametrize("entry", COUNTER_TAKERS)
def test_a_wrong_counter_is_refused_by_name(entry: str, wrong: str) -> None:
    """A counter that is silently misread lets every budget of the run overflow."""
    with pytest.raises(ConfigurationError, match="counter"):
        COUNTER_TAKERS[entry](WRONG_COUNTERS[wrong])


@pytest.mark.parametrize("name", [one for one in muntin.__all__ if one not in NOT_COUNTING])
def test_a_model_is_taken_wherever_a_counter_is(name: str) -> None:
    """People know the name of their model, not that of its tokenizer."""
    given = getattr(muntin, name)
    taken = [given] if callable(given) else []
    if isinstance(given, type):
        taken += [made for key, made in vars(given).items() if not key.startswith("_")]
    for one in filter(callable, taken):
        with suppress(TypeError, ValueError):  # an alias of types has no signature
            parameters = inspect.signature(one).parameters
            assert ("counter" in parameters) <= ("model" in parameters), one


RIGHT_COUNTERS: dict[str, Callable[[Any], Any] | str] = {
    "the name of a model": "gpt-4o",
    "the name of an encoding": "cl100k_base",
    "numpy integers": lambda text: np.int64(len(text) // 4 + 1),
    "a counter of messages": lambda messages: sum(len(m.content) // 4 + 3 for m in messages),
    "a counter of one message": lambda message: len(message.content) // 4 + 3,
    "a counter of message dicts": lambda messages: sum(len(m["content"]) for m in messages) // 4,
}


@pytest.mark.parametrize("right", RIGHT_COUNTERS)
@pytest.mark.parametrize("entry", COUNTER_TAKERS)
def test_names_and_counters_of_messages_are_accepted(entry: str, right: str) -> None:
    """Frameworks count messages, and users pass on what their framework gave them."""
    COUNTER_TAKERS[entry](RIGHT_COUNTERS[right])


TOKEN_TAKERS: dict[str, Callable[[Any], object]] = {
    "fit_messages budget": lambda n: fit_messages(HISTORY, budget=n),
    "fit_messages window": lambda n: fit_messages(HISTORY, window=n),
    "ContextBuilder.build_block budget": lambda n: ContextBuilder().build_block(
        "Where?", sources=_sources(), budget=n
    ),
    "ContextConfig max_tokens": lambda n: ContextConfig(max_tokens=n),
    "ContextConfig.for_window": lambda n: ContextConfig.for_window(n),
    "ContextBudget max_tokens": lambda n: ContextBudget(n),
    "resolve_window": lambda n: resolve_window(n),
    "resolve_window fallback": lambda n: resolve_window(None, fallback=n),
    "truncate_to_tokens": lambda n: truncate_to_tokens(TEXT, n),
    "truncate_tool_result": lambda n: truncate_tool_result(TEXT, n),
    "truncate_batch": lambda n: truncate_batch([TEXT], n),
    "read_tool_result limit": lambda n: read_tool_result(KEY, limit=n, store=STORE),
    "read_tool_result max_tokens": lambda n: read_tool_result(KEY, max_tokens=n, store=STORE),
    "AgentState.to_context": lambda n: _state().to_context(n),
    "reinject": lambda n: reinject(_state(), HISTORY, max_tokens=n),
    "ContextRetriever k": lambda n: ContextRetriever(Interactions()).get_relevant_context(
        "Where?", n
    ),
    "ContextRetriever max_tokens": lambda n: ContextRetriever(Interactions()).get_relevant_context(
        "Where?", max_tokens=n
    ),
    "HistoryCompactor trigger_tokens": lambda n: HistoryCompactor(None, trigger_tokens=n),
    "HistoryCompactor keep_recent": lambda n: HistoryCompactor(None, keep_recent=n),
    "HistoryCompactor max_summary_tokens": lambda n: HistoryCompactor(None, max_summary_tokens=n),
    "ExtractiveSummarizer": lambda n: ExtractiveSummarizer(max_tokens=n)(TEXT, ""),
    "reduce_agent": lambda n: reduce_agent_sync(HISTORY, summarize=_said, budget=n),
    "reduce_plan": lambda n: reduce_plan_sync(STEPS, summarize=_said, budget=n),
    "reduce_reflection": lambda n: reduce_reflection_sync(REFLECTION, summarize=_said, budget=n),
}

OPTIONAL = {
    "fit_messages budget",
    "fit_messages window",
    "ContextBuilder.build_block budget",
    "read_tool_result max_tokens",
    "AgentState.to_context",
    "reinject",
    "ContextRetriever max_tokens",
    "resolve_window fallback",
    "ContextConfig max_tokens",
    "ContextConfig.for_window",
}
"""Entry points whose parameter may be None; some then ask for another parameter."""

ACCEPTED = {("ContextBuilder.build_block budget", "a negative number")}
"""A block whose budget was spent elsewhere is empty, as in agentmaker."""

WRONG_TOKENS: dict[str, Any] = {
    "None": None,
    "text": "300",
    "a float": 300.5,
    "NaN": math.nan,
    "infinity": math.inf,
    "a negative number": -5,
    "a bool": True,
    "a list": [300],
}


@pytest.mark.parametrize("wrong", WRONG_TOKENS)
@pytest.mark.parametrize("entry", TOKEN_TAKERS)
def test_a_wrong_number_of_tokens_is_refused(entry: str, wrong: str) -> None:
    """A budget of the wrong type fails deep inside, or counts as 1."""
    if (wrong == "None" and entry in OPTIONAL) or (entry, wrong) in ACCEPTED:
        return
    with pytest.raises(ConfigurationError):
        TOKEN_TAKERS[entry](WRONG_TOKENS[wrong])


@pytest.mark.parametrize("entry", TOKEN_TAKERS)
def test_numpy_integers_are_numbers_of_tokens(entry: str) -> None:
    """Budgets that were computed with numpy are integers too."""
    TOKEN_TAKERS[entry](np.int64(900))
