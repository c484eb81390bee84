# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportArgumentType=false, reportUnknownVariableType=false
# Wrong values are given on purpose, and `create_agent` has parts without types.
"""One vocabulary: the same words mean the same at every entry point, and wrong ones are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

pytest.importorskip("langchain.agents")

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.messages.utils import count_tokens_approximately

from langchain_agents import prose
from langchain_muntin import (
    AssembledRetriever,
    BudgetCompressor,
    CompactingChatMessageHistory,
    ContextAssembler,
    ContextWindowMiddleware,
    compact_messages,
    context_window_node,
)
from langchain_muntin.testing import StrictChatModel
from muntin import (
    ConfigurationError,
    ToolResultStore,
    WindowBudgetConfig,
    count_messages,
    counter_for,
    fit_messages,
)

if TYPE_CHECKING:
    from collections.abc import Callable

SOURCES = {"rag": lambda question: ["Parcels ship daily."]}
HISTORY: list[Any] = [
    SystemMessage("Be brief."),
    *(
        message
        for at in range(60)
        for message in (HumanMessage(prose(60, at)), AIMessage(prose(60, 500 + at)))
    ),
    HumanMessage("And now?"),
]

WINDOWED: dict[str, Callable[..., Any]] = {
    "middleware": ContextWindowMiddleware,
    "assembler": lambda **more: ContextAssembler(sources=SOURCES, **more),
    "compact_messages": compact_messages,
    "node": context_window_node,
}
BUDGETED: dict[str, Callable[..., Any]] = {
    **WINDOWED,
    "retriever": lambda **more: AssembledRetriever(sources=SOURCES, **more),
    "compressor": BudgetCompressor,
}
_WRONG: list[Any] = ["300", 0, -5, 1.5, float("nan"), float("inf"), True, [300], {}]


@pytest.mark.parametrize("way", BUDGETED.values(), ids=BUDGETED)
@pytest.mark.parametrize("wrong", _WRONG, ids=str)
def test_a_budget_that_is_no_number_of_tokens_is_refused_by_name(
    way: Callable[..., Any], wrong: Any
) -> None:
    """It was found out by an AttributeError at the first call, or never."""
    if wrong == {} and way is WINDOWED["assembler"]:
        pytest.skip("a mapping is how a written division is read back")
    with pytest.raises(ConfigurationError, match="budget"):
        way(budget=wrong)


@pytest.mark.parametrize("way", WINDOWED.values(), ids=WINDOWED)
@pytest.mark.parametrize("wrong", _WRONG, ids=str)
@pytest.mark.parametrize("name", ["window", "reserve"])
def test_a_window_that_is_no_number_of_tokens_is_refused_by_name(
    way: Callable[..., Any], wrong: Any, name: str
) -> None:
    """`window="8000"` must not wait for the first request."""
    if name == "reserve" and repr(wrong) == "0":
        way(window=8000, reserve=0)
        return
    given = {"window": 8000, name: wrong}
    with pytest.raises(ConfigurationError, match=name):
        way(**given)


@pytest.mark.parametrize("way", BUDGETED.values(), ids=BUDGETED)
def test_numbers_of_numpy_are_ints(way: Callable[..., Any]) -> None:
    """Budgets come out of computations."""
    assert way(budget=np.int64(300)) is not None


@pytest.mark.parametrize("way", BUDGETED.values(), ids=BUDGETED)
def test_an_unknown_keyword_is_refused_with_the_nearest_known_one(way: Callable[..., Any]) -> None:
    """A misspelt budget is no budget."""
    with pytest.raises(ConfigurationError, match=r"no argument 'budgett': did you mean 'budget'"):
        way(budgett=300)


@pytest.mark.parametrize("way", BUDGETED.values(), ids=BUDGETED)
def test_an_earlier_name_is_an_alias_and_both_are_refused(way: Callable[..., Any]) -> None:
    """Two numbers for one thing: which one held?"""
    assert way(max_tokens=300) is not None
    with pytest.raises(ConfigurationError, match="its alias 'max_tokens'"):
        way(budget=300, max_tokens=400)


def _budget_of_middleware(**more: Any) -> int:
    model = StrictChatModel(window=8000, says_window=False)
    middleware = ContextWindowMiddleware(**more)
    agent: Any = create_agent(model, middleware=[middleware])
    agent.invoke({"messages": [HumanMessage("Hi")]})
    account = middleware.report("")
    assert account is not None
    return account.budget


def _budget_of_assembler(**more: Any) -> int:
    return ContextAssembler(**more).invoke("Hi").report.budget


def _tokens_of_node(**more: Any) -> int:
    sent = context_window_node(target=1.0, **more).invoke({"messages": HISTORY})
    return count_messages(sent["llm_input_messages"], counter=counter_for(None))


def test_one_window_is_one_budget_at_every_entry_point() -> None:
    """`window=8000` left 4,000 tokens here and 3,200 there."""
    core = fit_messages(HISTORY, window=8000).report.budget

    assert _budget_of_middleware(window=8000) == _budget_of_assembler(window=8000) == core
    for more in (
        {"reserve": 1000},
        {"budget": 900},
        {"division": WindowBudgetConfig(desired_output_tokens=500)},
    ):
        given = {"window": 8000, **more}
        expected = {"reserve": 7000, "budget": 900, "division": 7500}[next(iter(more))]
        assert _budget_of_middleware(**given) == _budget_of_assembler(**given) == expected
    kept = compact_messages(HISTORY, window=3000)
    assert count_messages(kept, counter=counter_for(None)) <= 1500
    assert _tokens_of_node(window=3000) <= 1500


# --- counters ------------------------------------------------------------------------------------

COUNTERS: dict[str, Any] = {
    "messages": count_tokens_approximately,
    "model's": StrictChatModel(window=8000).get_num_tokens_from_messages,
    "lambda of messages": lambda messages: sum(len(m.content) for m in messages) // 4,
    "lambda of a message": lambda message: len(message.content) // 4,
    "name": "gpt-4o",
    "model": StrictChatModel(window=8000),
}


@pytest.mark.parametrize("counter", COUNTERS.values(), ids=COUNTERS)
@pytest.mark.parametrize("way", BUDGETED.values(), ids=BUDGETED)
def test_counters_of_every_kind_are_adapted(way: Callable[..., Any], counter: Any) -> None:
    """A counter of messages kept two of eleven messages, without a word."""
    if counter is COUNTERS["model's"]:
        pytest.importorskip("transformers", reason="the base class counts with transformers")
    assert way(budget=3000, counter=counter) is not None


@pytest.mark.parametrize("counter", [{}, 3, lambda text: None, lambda text: "3", lambda text: -1])
@pytest.mark.parametrize("way", BUDGETED.values(), ids=BUDGETED)
def test_what_does_not_count_is_refused_when_it_is_given(
    way: Callable[..., Any], counter: Any
) -> None:
    """A counter that returns None fails inside a sum, three calls deep, in production."""
    with pytest.raises(ConfigurationError, match="counter"):
        way(budget=3000, counter=counter)


def test_a_counter_of_messages_counts_what_it_would() -> None:
    """Adapted is not approximated: the same number decides."""
    kept = compact_messages(HISTORY, budget=1500, counter=count_tokens_approximately)

    assert count_tokens_approximately(kept) <= 1500
    assert len(kept) > 8


# --- the arguments of trim_messages --------------------------------------------------------------

_TAKEN: list[dict[str, Any]] = [
    {"strategy": "last"},
    {"include_system": True},
    {"allow_partial": False},
    {"start_on": "human"},
    {"start_on": ("human", "tool")},
    {"start_on": HumanMessage},
    {"end_on": ("human", "tool")},
    {"text_splitter": None},
    {"token_counter": count_tokens_approximately},
    {"token_counter": "approximate"},
]


@pytest.mark.parametrize(
    "taken",
    [one for one in _TAKEN if one.get("token_counter") != "approximate"],
    ids=lambda given: "-".join(given),
)
def test_arguments_of_trim_messages_are_taken(taken: dict[str, Any]) -> None:
    """`called the same way` has to be true of the way people call it."""
    kept = compact_messages(HISTORY, max_tokens=1500, **taken)

    assert kept[0].text == "Be brief."
    assert kept[-1].text == "And now?"
    assert compact_messages(max_tokens=1500, **taken).invoke(HISTORY) == kept


@pytest.mark.parametrize(
    "refused",
    [
        {"strategy": "first"},
        {"include_system": False},
        {"allow_partial": True},
        {"start_on": "tool"},
        {"text_splitter": lambda text: [text]},
        {"token_counter": len},
        {"end_on": 3},
    ],
    ids=lambda given: "-".join(given),
)
def test_what_cannot_be_obeyed_is_refused_with_the_way_to_say_it(refused: dict[str, Any]) -> None:
    """An argument that is ignored is worse than one that is refused."""
    (name,) = refused
    with pytest.raises(ConfigurationError, match=name):
        compact_messages(HISTORY, max_tokens=1500, **refused)


def test_end_on_is_obeyed() -> None:
    """Some models refuse a conversation that ends with their own words."""
    kept = compact_messages([*HISTORY, AIMessage("So.")], max_tokens=1500, end_on="human")

    assert kept[-1].type == "human"


def test_a_store_may_be_called_results() -> None:
    """The other adapter called it so."""
    store = ToolResultStore.in_memory()

    assert ContextWindowMiddleware(results=store).store is store
    with pytest.raises(ConfigurationError, match="its alias"):
        ContextWindowMiddleware(results=store, store=store)


def test_a_history_refuses_unknown_keywords_by_name() -> None:
    """`trigger_token=` was a TypeError of another class."""
    from langchain_core.chat_history import BaseChatMessageHistory

    class Kept(BaseChatMessageHistory):
        def __init__(self) -> None:
            self.messages = []

        def clear(self) -> None:
            self.messages.clear()

    with pytest.raises(ConfigurationError, match="trigger_token"):
        CompactingChatMessageHistory(Kept(), trigger_token=50)
