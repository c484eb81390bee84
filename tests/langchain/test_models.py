# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# Functions given to LangChain's runnables have parameters that only the chain knows.
"""What a model says of itself is found through whatever it is wrapped in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("langchain_core")

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import RunnableLambda, RunnableParallel
from pydantic import create_model

from langchain_agents import prose
from langchain_muntin import ContextAssembler, ModelSummarizer, compact_messages
from langchain_muntin._values.models import ModelFacts
from langchain_muntin.testing import StrictChatModel
from muntin import WindowBudgetConfig

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import EntryPoint

FIELDS: dict[str, Any] = {f"field_number_{at}": (str, ...) for at in range(150)}
LARGE: Any = create_model("LARGE", **FIELDS)
TALK: list[BaseMessage] = [
    *((HumanMessage, AIMessage)[at % 2](prose(60, at)) for at in range(80)),
    HumanMessage("And now?"),
]

WRAPS: dict[str, Callable[[StrictChatModel], Any]] = {
    "alone": lambda model: model,
    "bound": lambda model: model.bind(stop=["."]),
    "configured": lambda model: model.with_config(tags=["x"]),
    "retried": lambda model: model.with_retry(),
    "structured": lambda model: model.with_structured_output(LARGE),
    "structured, raw": lambda model: model.with_structured_output(LARGE, include_raw=True),
    "structured, retried": lambda model: model.with_structured_output(LARGE).with_retry(),
    "parsed": lambda model: model | StrOutputParser(),
    "with a fallback": lambda model: model.with_fallbacks([model]),
    "structured, with a fallback": lambda model: model.with_structured_output(LARGE).with_fallbacks(
        [model.with_structured_output(LARGE)]
    ),
}


@pytest.mark.parametrize("wrap", WRAPS.values(), ids=WRAPS)
def test_a_wrapped_model_is_sent_no_more_than_its_window_holds(
    entry_point: EntryPoint, wrap: Callable[[StrictChatModel], Any]
) -> None:
    """Whatever is bound to a model is sent with every request, schemas of answers among it."""
    model = StrictChatModel(window=6000, max_tokens=500)
    wrapped = wrap(model)
    for short in (
        ContextAssembler(model=wrapped),
        compact_messages(model=wrapped),
        compact_messages(model=wrapped, budget=4000),
    ):
        chain: Any = short | wrapped
        entry_point(chain.invoke, chain.ainvoke, TALK)

    assert model.refused == []
    assert all(len(sent.messages) > 10 for sent in model.sent)
    assert model.sent[-1].tokens <= 4000


def test_what_is_no_model_says_nothing() -> None:
    """A chain that begins with something else is asked with more than it is given."""
    prompted = RunnableLambda(lambda text: f"Be brief: {text}") | StrictChatModel(window=6000)
    forked: Any = RunnableParallel(a=StrictChatModel(window=6000), b=StrictChatModel(window=6000))

    assert ModelFacts.of(prompted).window(None) is None
    assert ModelFacts.of(forked | StrOutputParser()).window(None) is None


@pytest.mark.parametrize("key", ["response_format", "response_schema", "format", "output_format"])
@pytest.mark.parametrize("schema", [LARGE, LARGE.model_json_schema()], ids=["class", "schema"])
def test_the_schema_of_an_answer_is_charged_wherever_it_is_bound(key: str, schema: Any) -> None:
    """Integrations that answer in a format of their provider's bind no tool for it."""
    model = StrictChatModel(window=8000).bind(**{key: schema})

    assert ContextAssembler(model=model).invoke("Hi.").report.fixed["tools"] > 1000


@pytest.mark.parametrize(
    "made",
    [
        lambda large, small: large.with_fallbacks([small]),
        lambda large, small: small.with_fallbacks([large]),
        lambda large, small: large.with_fallbacks([large, small.bind(stop=["."])]),
        lambda large, small: large.with_fallbacks([large.with_fallbacks([small])]),
        lambda large, small: large.with_fallbacks([small]).bind(stop=["."]),
        lambda large, small: large.with_fallbacks([small]) | StrOutputParser(),
    ],
)
def test_a_request_fits_every_model_that_may_have_to_answer(
    made: Callable[[StrictChatModel, StrictChatModel], Any],
) -> None:
    """The day the first model is down is no day to find out that the second holds less."""

    def is_down(_: Any) -> str:
        raise RuntimeError("503")

    large, small = StrictChatModel(window=20_000, replies=is_down), StrictChatModel(window=1500)
    model = made(large, small)

    assert ContextAssembler(model=model).invoke(TALK).report.window == 1500
    (ContextAssembler(model=model) | model).invoke(TALK)
    (compact_messages(model=model) | model).invoke(TALK)
    assert len(small.sent) == 2
    assert small.refused == []
    assert ModelSummarizer(model).context_window == 1500


def test_the_model_with_the_least_room_divides_the_window() -> None:
    """A larger window of which more is kept free may hold less."""
    wordy = StrictChatModel(window=8000, max_tokens=6000)
    brief = StrictChatModel(window=5000, max_tokens=500)
    divided = ModelFacts.of(brief.with_fallbacks([wordy])).division(None, WindowBudgetConfig())

    assert divided is not None
    assert (divided[0].tokens, divided[1]) == (8000, 6000)
    unknown = StrictChatModel(says_window=False)
    assert ContextAssembler(model=unknown.with_fallbacks([brief])).invoke("Hi.").report.window == (
        5000
    )
