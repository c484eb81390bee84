# pyright: reportPrivateUsage=false, reportUnknownVariableType=false
# What was learned of a model is private, and `create_agent` has parts without types.
"""What refusals for size say, and what becomes of a request that was refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("langchain.agents")

from hypothesis import given
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from langchain_agents import TASK, prose
from langchain_muntin import ContextWindowMiddleware
from langchain_muntin._overflow import Overflow, allowed, overflow_of
from langchain_muntin.testing import StrictChatModel

if TYPE_CHECKING:
    from conftest import Door

numbers = st.integers(0, 1_000_000)

WORDINGS = {
    "OpenAI, messages": (
        "This model's maximum context length is 8192 tokens. However, your messages resulted in "
        "9041 tokens. Please reduce the length of the messages.",
        Overflow(8192, 9041, 0),
    ),
    "OpenAI, functions": (
        "This model's maximum context length is 8192 tokens. However, your messages resulted in "
        "9041 tokens (8000 in the messages, 1041 in the functions).",
        Overflow(8192, 9041, 0),
    ),
    "OpenAI, completion": (
        "This model's maximum context length is 128000 tokens. However, you requested 130000 "
        "tokens (114000 in the messages, 16000 in the completion).",
        Overflow(128_000, 130_000, 16_000),
    ),
    "OpenAI, unparted": (
        "This model's maximum context length is 8192 tokens. However, you requested 9001 tokens.",
        Overflow(8192, 9001, None),
    ),
    "Azure": (
        "This model's maximum context length is 4097 tokens, however you requested 5360 tokens "
        "(1360 in your prompt; 4000 for the completion). Please reduce your prompt; or completion "
        "length.",
        Overflow(4097, 5360, 4000),
    ),
    "OpenAI, responses": (
        "Your input exceeds the context window of this model. Please adjust your input and try "
        "again.",
        Overflow(),
    ),
    "Anthropic": (
        "prompt is too long: 210043 tokens > 200000 maximum",
        Overflow(200_000, 210_043, 0),
    ),
    "Anthropic, with answer": (
        "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease "
        "input length or `max_tokens` and try again",
        Overflow(200_000, 209_573, 21_333),
    ),
    "Google": (
        "The input token count (1,200,000) exceeds the maximum number of tokens allowed "
        "(1,048,576).",
        Overflow(1_048_576, 1_200_000, 0),
    ),
    "Google, limit alone": (
        "The input token count exceeds the maximum number of tokens allowed 1048576.",
        Overflow(1_048_576),
    ),
    "Vertex": (
        "Unable to submit request because the input token count is 1200000 but model only "
        "supports up to 1048576. Reduce the input token count and try again.",
        Overflow(1_048_576, 1_200_000, 0),
    ),
    "Bedrock": (
        "The model returned the following errors: Input is too long for requested model.",
        Overflow(),
    ),
    "Bedrock, figures": (
        "Too many input tokens. Max input tokens: 8192, request input token count: 9041",
        Overflow(8192, 9041, 0),
    ),
    "vLLM": (
        "You passed 40001 input tokens and requested 512 output tokens. However, the model's "
        "context length is only 32768 tokens, resulting in a maximum input length of 32256 tokens.",
        Overflow(32_768, 40_513, 512),
    ),
    "vLLM, answer too large": (
        "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context "
        "length is 4096 tokens and your request has 120 input tokens (4096 > 4096 - 120).",
        Overflow(4096),
    ),
    "vLLM, decoder": (
        "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
        Overflow(4096, 5000, 0),
    ),
    "Ollama": ("the input length exceeds the context length", Overflow()),
    "llama.cpp": (
        "request (5360 tokens) exceeds the available context size (4096 tokens), try increasing it",
        Overflow(4096, 5360, 0),
    ),
    "Mistral": (
        "Prompt contains 40234 tokens and 0 draft tokens, too large for model with 32768 maximum "
        "context length",
        Overflow(32_768, 40_234, 0),
    ),
    "xAI": (
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        Overflow(131_072, 537_812, 0),
    ),
    "Cohere": (
        "too many tokens: total number of tokens in the prompt cannot exceed 128000 - received "
        "130000. Try using a shorter prompt.",
        Overflow(128_000, 130_000, 0),
    ),
    "TGI": (
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 3500 "
        "`inputs` tokens and 1000 `max_new_tokens`",
        Overflow(4096, 4500, 1000),
    ),
    "OpenRouter": (
        "This endpoint's maximum context length is 131072 tokens. However, you requested about "
        "140000 tokens (130000 of text input, 2000 of tool input, 8000 in the output).",
        Overflow(131_072, 140_000, 8000),
    ),
}
PRINTED = {
    "alone": "{}",
    "by an SDK": (
        "Error code: 400 - {{'type': 'error', 'error': {{'message': \"{}\", 'code': 400, 'status': "
        "'INVALID_ARGUMENT'}}, 'request_id': 'req_011CSHoEeqs5C35K2UUqR7Fy'}}"
    ),
    "with a status": "400 INVALID_ARGUMENT. {}",
    "over HTTP": (
        "HTTP/1.1 413: Error response 400 while fetching http://10.0.0.1:8000/v1/chat on "
        "2026-11-30 for gpt-4-0613: {} (status code: 400)"
    ),
}


@pytest.mark.parametrize("printed", PRINTED.values(), ids=PRINTED)
@pytest.mark.parametrize(("text", "said"), WORDINGS.values(), ids=WORDINGS)
def test_what_a_refusal_says_is_read_however_it_is_printed(
    printed: str, text: str, said: Overflow
) -> None:
    """A status code taken for the limit makes every later request of the process tiny."""
    assert overflow_of(ValueError(printed.format(text))) == said


@pytest.mark.parametrize(
    "text",
    [
        "invalid api key",
        "Rate limit reached: 30,000 tokens per minute, context window",
        "Error code: 429 - {'error': {'message': 'Request too large for gpt-4o on tokens per min "
        "(TPM): Limit 30000, Requested 40000.'}}",
        "Error code: 500 - {'error': {'message': 'internal error'}}",
    ],
)
def test_other_errors_are_no_refusals_for_size(text: str) -> None:
    """A rate limit is not a reason to cut a conversation."""
    assert overflow_of(ValueError(text)) is None


# --- the second try ------------------------------------------------------------------------------


@given(
    said=st.builds(Overflow, *[st.none() | st.integers(1, 1_000_000)] * 2, st.none() | numbers),
    tokens=st.integers(2, 1_000_000),
    reserve=numbers,
)
def test_a_second_try_is_smaller_than_the_first(said: Overflow, tokens: int, reserve: int) -> None:
    """Whatever a refusal says, the same request again would be refused again."""
    budget, charged = allowed(said, tokens, reserve)

    assert 0 <= budget < tokens
    assert charged is None or charged > 0


@pytest.mark.parametrize("scale", [1.2, 2.0, 3.5])
def test_one_refusal_teaches_how_much_fits(door: Door, scale: float) -> None:
    """Two refusals in a row end the run, and one at each step costs a request each."""
    model = StrictChatModel(window=8000, max_tokens=500, scale=scale)
    middleware = ContextWindowMiddleware()
    agent: Any = create_agent(model, middleware=[middleware])
    talk = [*(HumanMessage(prose(60, at)) for at in range(105)), HumanMessage(TASK)]
    for _ in range(2):
        door(agent.invoke, agent.ainvoke, {"messages": talk})

    assert len(model.refused) == 1
    assert len(model.sent) == 2
    assert all(4000 < request.tokens <= 7500 for request in model.sent)
    assert middleware._keeper.ratio("o200k_base") == pytest.approx(scale, rel=0.02)


class Charging(StrictChatModel):
    """Charges for its first answer what the script says."""

    charges: int = 0

    def _answer(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> AIMessage:
        reply = super()._answer(messages, kwargs)
        if len(self.sent) > 1:
            return reply
        usage: Any = {"input_tokens": self.charges, "output_tokens": 1, "total_tokens": 1}
        return reply.model_copy(update={"usage_metadata": usage})


@pytest.mark.parametrize("charges", [1200, 2400, 60_000])
def test_what_was_charged_once_refuses_nothing_that_fits(door: Door, charges: int) -> None:
    """A search that the provider ran was charged with the prompt; the window is what it was."""
    model = Charging(window=16_000, charges=charges)
    agent: Any = create_agent(
        model, middleware=[ContextWindowMiddleware()], checkpointer=InMemorySaver()
    )
    config = {"configurable": {"thread_id": "t1"}}
    for question in (prose(660), prose(9000)):
        door(agent.invoke, agent.ainvoke, {"messages": [HumanMessage(question)]}, config)

    assert len(model.sent) == 2
    assert model.sent[1].messages[-1].text == prose(9000)
