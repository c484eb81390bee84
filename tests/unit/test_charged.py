"""What is sent is charged: blocks with unknown keys, tools in every form, framing, margins."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from typing import Any, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from muntin import (
    count_message,
    count_messages,
    count_tokens,
    counter_for,
    fit_messages,
    resolve_window,
)
from muntin.counting import (
    AnchoredCounter,
    EstimateCounter,
    count_tools,
    framing_of,
    with_framing,
)
from muntin.errors import ConfigurationError, ContextWindowExceeded
from muntin.messages import shape_of, view

WORDS = "The parcel left the depot at nine and reached the harbour by noon. " * 8
COST = count_tokens(WORDS)


def charged(message: dict[str, Any]) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return count_message(message)


# --- blocks and keys -----------------------------------------------------------------------------

BLOCKS = [
    "text", "input_text", "output_text", "refusal", "summary_text", "reasoning", "thinking",
    "tool_call", "tool_use", "function_call", "tool_result", "brand_new",
]  # fmt: skip


@pytest.mark.parametrize("key", ["value", "body", "payload"])
@pytest.mark.parametrize("kind", BLOCKS)
def test_a_known_block_with_its_text_under_another_key_is_charged(kind: str, key: str) -> None:
    """It counted 0 tokens and was called exact, so the request overran its window."""
    message = {"role": "assistant", "content": [{"type": kind, key: WORDS}]}

    assert charged(message) >= COST


def test_a_block_with_an_unknown_key_warns_once() -> None:
    """The count is an assumption; the user should know about it."""
    message = {"role": "user", "content": [{"type": "text", "value": "unique words of this test"}]}

    with pytest.warns(UserWarning, match="unknown type 'text'"):
        count_message(message)


BESIDE = {
    "parts": [{"text": WORDS}],
    "reasoning_content": WORDS,
    "reasoning": WORDS,
    "reasoning_details": [{"type": "reasoning.text", "text": WORDS}],
    "refusal": WORDS,
    "tool_calls": [{"id": "c1", "function": {"name": "f", "arguments": json.dumps({"a": WORDS})}}],
    "function_call": {"name": "f", "arguments": json.dumps({"a": WORDS})},
}


@pytest.mark.parametrize("content", ["", None, "Hello."])
@pytest.mark.parametrize("key", BESIDE)
def test_what_stands_beside_the_content_is_charged(key: str, content: str | None) -> None:
    """Servers take these keys back, so they are part of the prompt."""
    assert charged({"role": "assistant", "content": content, key: BESIDE[key]}) >= COST


def test_parts_that_repeat_the_content_are_charged_once() -> None:
    """User interfaces store a text twice; it is sent once."""
    message = {"role": "user", "content": WORDS, "parts": [{"type": "text", "text": WORDS}]}

    assert charged(message) == charged({"role": "user", "content": WORDS})


def test_tools_added_in_mid_thread_are_charged() -> None:
    """A schema of 860 tokens was charged 12, and the request overran its budget."""
    schema = {"type": "object", "properties": {"order": {"type": "string", "description": WORDS}}}
    tool = {"type": "function", "name": "look_up", "parameters": schema}

    assert charged({"type": "additional_tools", "role": "developer", "tools": [tool]}) >= COST


def test_an_answer_of_anthropic_is_read_as_anthropic() -> None:
    """Read as a Responses item its calls vanish, and the question with them."""
    answer: dict[str, Any] = {
        "id": "msg_1", "type": "message", "role": "assistant", "stop_reason": "tool_use",
        "content": [{"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": "t1", "name": "look", "input": {}}],
    }  # fmt: skip

    assert shape_of(answer).name == "anthropic"
    bare = {key: answer[key] for key in ("type", "role", "content")}
    assert shape_of(bare).name == "anthropic"
    assert [call.id for call in view(answer).calls] == ["t1"]
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]}
    assert shape_of(item).name == "openai-responses"


# --- tools ---------------------------------------------------------------------------------------


class FindOrder(BaseModel):
    """Find an order by its number and the depot it left."""

    number: str = Field(description="Number of the order, such as A-1025")
    depot: str = Field(default="north", description="Name of the depot it left")


class OrderDict(TypedDict):
    number: str
    depot: str


@dataclass
class OrderData:
    number: str
    depot: str = "north"


def find_order(number: str, depot: str = "north") -> str:
    """Find an order by its number and the depot it left."""
    return number + depot


PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "number": {"type": "string", "description": "Number of the order, such as A-1025"},
        "depot": {"type": "string", "description": "Name of the depot it left"},
    },
    "required": ["number"],
}
DESCRIPTION = "Find an order by its number and the depot it left."
PLAIN = {"name": "find_order", "description": DESCRIPTION, "parameters": PARAMETERS}


class McpTool:
    name = "find_order"
    description = DESCRIPTION
    inputSchema = PARAMETERS  # noqa: N815 - its name in MCP


def forms() -> dict[str, Any]:
    return {
        "OpenAI": {"type": "function", "function": PLAIN},
        "Responses": {"type": "function", **PLAIN},
        "Anthropic": {"name": "find_order", "description": DESCRIPTION, "input_schema": PARAMETERS},
        "MCP dict": {"name": "find_order", "description": DESCRIPTION, "inputSchema": PARAMETERS},
        "MCP tool": McpTool(),
        "Bedrock": {
            "toolSpec": {"name": "find_order", "description": DESCRIPTION,
                         "inputSchema": {"json": PARAMETERS}},
        },
        "Gemini": {"functionDeclarations": [PLAIN]},
        "JSON text": json.dumps(PLAIN),
        "JSON text of a list": json.dumps([{"type": "function", "function": PLAIN}]),
        "functions": {"functions": [PLAIN]},
    }  # fmt: skip


@pytest.mark.parametrize("form", forms())
def test_a_tool_costs_the_same_in_every_form(form: str) -> None:
    """Read under another key, a schema of 116 tokens was charged 38."""
    expected = count_tools([PLAIN], counter=count_tokens)
    tool = forms()[form]

    assert count_tools([tool], counter=count_tokens) == expected
    assert count_tools(tool, counter=count_tokens) == expected
    alone = count_messages([])
    assert count_messages([], tool) == alone + expected


@pytest.mark.parametrize("tool", [FindOrder, OrderDict, OrderData, find_order, find_order.__get__])
def test_python_objects_are_charged_by_their_schema(tool: Any) -> None:
    """A class raised TypeError, and a function cost its repr with a memory address."""
    tokens = count_tools([tool], counter=count_tokens)

    assert tokens >= 30
    assert tokens == count_tools([tool], counter=count_tokens)
    if tool in (FindOrder, find_order):
        plain = count_tools([PLAIN], counter=count_tokens)
        assert 0.6 * plain <= tokens <= 1.6 * plain


def test_tools_of_llama_index_and_langchain_are_charged_as_they_are_sent() -> None:
    """A FunctionTool of 80 tokens was charged 19."""
    tools = pytest.importorskip("llama_index.core.tools")
    core = pytest.importorskip("langchain_core.tools")
    from langchain_core.utils.function_calling import convert_to_openai_tool

    of_llama: Any = tools.FunctionTool.from_defaults(find_order)
    of_langchain: Any = core.tool(find_order)
    for tool, sent in (
        (of_llama, of_llama.metadata.to_openai_tool()),
        (of_langchain, convert_to_openai_tool(of_langchain)),
    ):
        wire = count_tools([sent], counter=count_tokens)
        assert wire <= count_tools([tool], counter=count_tokens) <= 1.3 * wire


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"inner": schema}}
    return schema


def circular() -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    schema["properties"]["itself"] = schema
    return schema


@pytest.mark.parametrize("schema", [nested(100_000), circular()], ids=["deep", "circular"])
def test_a_schema_that_cannot_be_written_is_a_typed_error(schema: dict[str, Any]) -> None:
    """A raw RecursionError names neither the tool nor what to do."""
    with pytest.raises(ConfigurationError, match="nested too deep"):
        count_tools([{"name": "f", "parameters": schema}], counter=count_tokens)
    with pytest.raises(ConfigurationError, match="nested too deep"):
        charged({"role": "user", "content": [{"type": "brand_new", "of": schema}]})


@pytest.mark.parametrize("tool", [object(), 3])
def test_what_is_not_a_tool_is_a_typed_error(tool: Any) -> None:
    """Its repr has nothing to do with what would be sent."""
    with pytest.raises(ConfigurationError, match="a tool must be a dict"):
        count_tools([tool], counter=count_tokens)


# --- framing and margin --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "framing"),
    [("gpt-4o", 4), ("claude-sonnet-4-5", 4), ("qwen3:8b", 5), ("meta-llama/Llama-3.1-8B", 5),
     ("our-own-model", 6)],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::muntin.counting.counters.CounterWarning")
def test_the_framing_follows_the_family_of_the_model(model: str, framing: int) -> None:
    """Templates add five or six tokens to each message where OpenAI adds four."""
    counter = counter_for(model)

    assert framing_of(counter) == framing
    assert framing_of(AnchoredCounter(counter)) == framing
    assert framing_of(counter_for(model, framing=7)) == 7


@given(framing=st.integers(0, 50), messages=st.lists(st.text(max_size=20), max_size=8))
def test_framing_is_charged_per_message(framing: int, messages: list[str]) -> None:
    """It is given beside the counter, and changes nothing else."""
    chat = [{"role": "user", "content": text} for text in messages]

    plain = count_messages(chat)
    assert count_messages(chat, framing=framing) == plain + (framing - 4) * len(chat)
    assert sum(count_message(one, framing=framing) for one in chat) + 3 == count_messages(
        chat, framing=framing
    )


@pytest.mark.parametrize("framing", [-1, 2.5, True, "6"])
def test_a_framing_that_is_no_number_of_tokens_is_refused(framing: Any) -> None:
    """A negative framing would let a request overrun its budget."""
    with pytest.raises(ConfigurationError, match="framing must be an int of at least 0"):
        with_framing(count_tokens, framing)


@pytest.mark.parametrize("framing", [0, 6, 12])
def test_a_fit_keeps_its_budget_with_another_framing(framing: int) -> None:
    """The budget is checked with the framing of the counter in use."""
    counter = with_framing(EstimateCounter(margin=0.15), framing)
    chat = [
        {"role": "user" if at % 2 == 0 else "assistant", "content": f"parcel {at} {WORDS[:80]}"}
        for at in range(41)
    ]
    whole = count_messages(chat, counter=counter)
    for budget in range(60, whole, 37):
        try:
            fitted = fit_messages(chat, budget=budget, counter=counter)
        except ContextWindowExceeded:
            continue
        assert count_messages(fitted.messages, counter=counter) <= budget


@pytest.mark.filterwarnings("ignore::muntin.counting.counters.CounterWarning")
def test_usage_takes_the_margin_away() -> None:
    """The margin stands for what is unknown; what is learned replaces it."""
    counter = counter_for("our-own-model-with-usage")
    anchor = AnchoredCounter(counter)
    real = EstimateCounter()(WORDS)

    assert counter(WORDS) > 1.14 * real
    anchor.observe(counter(WORDS), real)
    assert anchor(WORDS) == pytest.approx(real, abs=1)


# --- windows by name -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["gpt-4o", "openai:gpt-4o", "azure/gpt-4o", "gpt-4o-2024-08-06", "openrouter/openai/gpt-4o"],
)
def test_a_name_finds_its_window_offline(name: str) -> None:
    """A prefix, a date or a tag does not make another model of it."""
    pytest.importorskip("genai_prices")
    window = resolve_window(name)

    assert (window.tokens, window.provenance) == (128_000, "genai-prices")


def test_a_name_that_is_not_listed_has_no_window() -> None:
    """A window that is guessed too large makes every request fail."""
    pytest.importorskip("genai_prices")
    with pytest.raises(ConfigurationError, match="'our-own-model' is unknown"):
        resolve_window("our-own-model")
    assert resolve_window("our-own-model", fallback=4096).provenance == "fallback"


def test_of_several_windows_the_smallest_counts() -> None:
    """Providers serve one model with different windows."""
    snapshot = pytest.importorskip("genai_prices.data_snapshot")
    listed = [
        model.context_window
        for provider in snapshot.get_snapshot().providers
        for model in provider.models
        if model.context_window and model.is_match("gpt-4o")
    ]

    assert resolve_window("gpt-4o").tokens == min(listed)


def deferred_tools() -> dict[str, Any]:
    """Write a tool whose loading is deferred in every form that providers take."""
    schema = {"type": "object", "properties": {"a": {"type": "string", "description": "x " * 99}}}
    forms: dict[str, Any] = {
        "anthropic": {"name": "look", "input_schema": schema, "defer_loading": True},
        "responses": {
            "type": "function", "name": "look", "parameters": schema, "defer_loading": True
        },
        "chat": {
            "type": "function", "function": {"name": "look", "parameters": schema},
            "defer_loading": True,
        },
    }  # fmt: skip
    return forms


@pytest.mark.parametrize("form", ["anthropic", "responses", "chat"])
def test_a_deferred_tool_is_charged_by_its_name(form: str) -> None:
    """A hundred deferred tools would seem to fill the window that they are kept out of."""
    tool = deferred_tools()[form]

    assert count_tools([tool], counter=count_tokens) == count_tokens("look")
    assert count_tools([{**tool, "defer_loading": False}], counter=count_tokens) > 50


def test_a_deferred_tool_of_langchain_is_charged_by_its_name() -> None:
    """The middleware for tool search marks the tool object, not its schema."""
    tools: Any = pytest.importorskip("langchain_core.tools")

    def look(parcel: str) -> str:
        """Return where a parcel is, and what it holds, and where it goes."""
        return parcel

    plain = tools.StructuredTool.from_function(look)
    deferred = plain.model_copy(update={"extras": {"defer_loading": True}})

    assert count_tools([deferred], counter=count_tokens) == count_tokens("look")
    assert count_tools([plain], counter=count_tokens) > 20
