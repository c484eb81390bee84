"""Refusals of providers: every text of the table, numbers that are not limits, the second try."""

from __future__ import annotations

import re
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muntin.adapting import (
    WORDINGS,
    Refusal,
    Wording,
    refusal_of,
    second_try,
    truncated_at,
)

numbers = st.integers(0, 1_000_000)


class Read(NamedTuple):
    """What has to be read from the example of a row."""

    limit: int | None = None
    requested: int | None = None
    answer: int | None = None


OVERFLOWS = {
    "OpenAI, messages, functions and completion": Read(8192, 9300, 1000),
    "OpenAI, completion": Read(128_000, 130_000, 16_000),
    "OpenRouter": Read(131_072, 140_000, 8000),
    "Azure": Read(4097, 5360, 4000),
    "OpenAI, messages": Read(8192, 9041, 0),
    "OpenAI, one number for all": Read(8192, 9001),
    "OpenAI Responses": Read(),
    "OpenAI, length of one text": Read(),
    "OpenAI and Groq, quota of a minute": Read(30_000, 51_207),
    "Anthropic, quota of a minute": Read(30_000),
    "Gemini, quota of a minute": Read(250_000),
    "Anthropic": Read(200_000, 210_043, 0),
    "Anthropic, with answer": Read(200_000, 209_573, 21_333),
    "Anthropic, 413": Read(),
    "Gemini": Read(1_048_576, 1_200_000, 0),
    "Gemini, limit alone": Read(1_048_576),
    "Vertex": Read(1_048_576, 1_200_000, 0),
    "Bedrock, figures": Read(8192, 9041, 0),
    "Bedrock, characters": Read(),
    "Bedrock, Nova": Read(),
    "Bedrock": Read(),
    "Mistral": Read(32_768, 40_234, 0),
    "Cohere": Read(128_000, 130_000, 0),
    "Cohere, excess": Read(128_000, 130_000, 0),
    "Moonshot": Read(262_144, 300_000),
    "Moonshot, limit alone": Read(8192),
    "MiniMax": Read(),
    "Qwen": Read(30_720),
    "Zhipu": Read(),
    "xAI": Read(131_072, 537_812, 0),
    "Cerebras": Read(8192, 9041),
    "Fireworks": Read(131_071, 140_000, 0),
    "GitHub Models": Read(8000),
    "GitHub Copilot": Read(128_000, 140_000, 0),
    "watsonx": Read(4096, 5000, 0),
    "vLLM": Read(32_768, 40_513, 512),
    "vLLM, answer too large": Read(4096, 4216, 4096),
    "vLLM, input alone": Read(4096, 4500, 0),
    "vLLM, decoder": Read(4096, 5000, 0),
    "vLLM, old": Read(4096, 5000, 0),
    "SGLang": Read(4096, 5000, 0),
    "SGLang, with answer": Read(4096, 5000, 1000),
    "TGI": Read(4096, 4500, 1000),
    "llama.cpp": Read(4096, 5360, 0),
    "llama.cpp, fields": Read(4096, 5360, 0),
    "llama.cpp, no figures": Read(),
    "llama-cpp-python": Read(4096, 5360),
    "Ollama, excess": Read(),
    "Ollama": Read(),
    "LM Studio": Read(4096, 5000, 0),
    "LM Studio, initial prompt": Read(),
    "Groq": Read(),
    "Error codes": Read(),
}
OTHERS = [row for row in WORDINGS if row.kind in ("thinking", "history")]
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
MILLION = 10_000_000


def row_named(name: str) -> Wording:
    return next(row for row in WORDINGS if row.provider == name)


def test_every_overflow_of_the_table_has_an_expected_reading() -> None:
    """A row nobody tests is a row that reads a wrong limit unnoticed."""
    assert set(OVERFLOWS) == {row.provider for row in WORDINGS if row not in OTHERS}
    assert len({row.provider for row in WORDINGS}) == len(WORDINGS)


@pytest.mark.parametrize("printed", PRINTED.values(), ids=PRINTED)
@pytest.mark.parametrize("name", OVERFLOWS)
def test_every_text_is_read_however_a_client_prints_it(name: str, printed: str) -> None:
    """A status code or a date read as the limit makes every later request of the process tiny."""
    row = row_named(name)
    said = refusal_of(ValueError(printed.format(row.example)), tokens=MILLION)

    assert said is not None
    assert said.wording is row
    assert said.is_overflow
    assert (said.limit, said.requested, said.answer) == OVERFLOWS[name]


@pytest.mark.parametrize("row", OTHERS, ids=lambda row: row.provider)
def test_a_refusal_for_the_shape_of_a_history_does_not_shrink_it(row: Wording) -> None:
    """A shorter request is refused for the same reason, and facts are lost for nothing."""
    said = refusal_of(ValueError(f"Error code: 400 - {row.example}"))

    assert said is not None
    assert said.kind == row.kind
    assert not said.is_overflow


@pytest.mark.parametrize(
    "text",
    [
        "invalid api key",
        "Rate limit reached: 30,000 tokens per minute, context window",
        "Rate limit reached for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, "
        "Used 28000, Requested 4000. Please try again in 4s.",
        "Error code: 429 - {'error': {'message': 'Request too large for gpt-4o on tokens per min "
        "(TPM): Limit 30000, Requested 29000.'}}",
        "This request would exceed your organization's rate limit of 40,000 input tokens per "
        "minute.",
        "Error code: 500 - {'error': {'message': 'internal error'}}",
        "",
    ],
)
def test_an_error_that_waiting_cures_is_not_an_overflow(text: str) -> None:
    """A rate limit is not a reason to cut a conversation."""
    assert refusal_of(ValueError(text), tokens=20_000) is None


@pytest.mark.parametrize("named", ["ContextOverflowError", "ContextWindowExceededError"])
def test_an_error_class_of_a_framework_is_an_overflow_whatever_its_text(named: str) -> None:
    """LiteLLM and LangChain translate texts of providers that are in no table."""
    error = type(named, (RuntimeError,), {})("the upstream gave up")

    assert refusal_of(error) == Refusal()
    outer = RuntimeError("the chain failed")
    outer.__cause__ = error
    assert refusal_of(outer) == Refusal()


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("NewModel: context window exceeds limit (2013)", None),
        ("error 1261: context length exceeded", None),
        ("context length exceeded, trace 20261130", None),
        ("Too many tokens: the model supports at most 8192 tokens, got 9000 tokens", 8192),
        ("context window overflow: maximum of 16384 tokens", 16_384),
        ("9000 tokens were sent, which is too much for the context window", None),
    ],
)
def test_a_number_in_an_unknown_text_is_a_limit_only_if_it_is_called_one(
    text: str, limit: int | None
) -> None:
    """An error code read as the limit cuts the request to nothing."""
    said = refusal_of(ValueError(text))

    assert said is not None
    assert said.limit == limit


# --- the second try ------------------------------------------------------------------------------


@given(
    said=st.builds(
        Refusal,
        limit=st.none() | st.integers(1, 1_000_000),
        requested=st.none() | st.integers(1, 1_000_000),
        answer=st.none() | numbers,
    ),
    tokens=st.integers(2, 1_000_000),
    reserve=numbers,
    window=st.none() | st.integers(1, 1_000_000),
    accepted=numbers,
)
def test_a_second_try_is_smaller_than_the_first(
    said: Refusal, tokens: int, reserve: int, window: int | None, accepted: int
) -> None:
    """Whatever a refusal says, the same request again would be refused again."""
    retry = second_try(said, tokens, reserve=reserve, window=window, accepted=accepted)

    assert 0 <= retry.budget < tokens
    assert retry.charged is None or retry.charged > 0
    assert retry.limit is None or retry.limit > accepted


@pytest.mark.parametrize(
    "text",
    [
        "invalid params, context window exceeds limit (2013)",
        "NewModel 2: context window too small, maximum 2013 tokens",
        "This model's maximum context length is 9000 tokens. However, your messages resulted in "
        "25809 tokens.",
        "Prompt exceeds max length",
    ],
)
def test_without_a_plausible_limit_a_request_shrinks_by_a_quarter(text: str) -> None:
    """A second try of 669 tokens in a window of 60,000 forgets nearly everything."""
    said = refusal_of(ValueError(text))
    assert said is not None

    retry = second_try(said, 25_809, reserve=4000, window=60_000, accepted=20_000)

    assert retry.limit is None
    assert 0.7 * 25_809 <= retry.budget < 25_809


@pytest.mark.parametrize("scale", [0.5, 1.0, 1.3, 3.0])
@pytest.mark.parametrize("name", sorted(name for name, read in OVERFLOWS.items() if read.requested))
def test_a_named_limit_is_obeyed_in_one_step(name: str, scale: float) -> None:
    """Two refusals in a row end a run."""
    said = refusal_of(ValueError(row_named(name).example))
    assert said is not None
    assert said.limit is not None
    assert said.requested is not None
    reserve = min(said.answer or 0, said.limit // 4)
    prompt = said.requested - (said.answer if said.answer is not None else reserve)

    retry = second_try(said, int(prompt * scale), reserve=reserve)

    assert retry.limit == said.limit
    fits = said.limit - max(reserve, said.answer or 0)
    assert fits < 1 or retry.budget / scale <= fits + 1


def test_the_table_of_the_docs_is_the_table_of_the_code() -> None:
    """A reader of the page looks up what is done about an error in front of them."""
    from pathlib import Path

    page = (Path(__file__).parents[2] / "docs/reference/providers.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.+?) \| `(.+?)` \| (\w+) \| ?(.*?) ?\|$", page, re.MULTILINE)

    assert [row[:3] for row in rows] == [
        (one.provider, one.example.replace("`", "'").replace("|", "\\|"), one.kind)
        for one in WORDINGS
    ]


# --- prompts that a server cuts without an error -------------------------------------------------


@pytest.mark.parametrize("context", [4096, 16_384, 262_144])
@pytest.mark.parametrize("filled", [0.92, 1.0, 1.0002])
def test_a_prompt_that_fills_a_smaller_context_was_cut(context: int, filled: float) -> None:
    """Ollama answers 200 and an invented answer; only the reported usage shows it."""
    reported = int(context * filled)

    assert truncated_at(4 * context, reported) == context
    assert truncated_at(reported * 1.2, reported) is None


@pytest.mark.parametrize("reported", [1, 1000, 2900, 6000, 12_000, 5_000_000])
def test_a_report_that_fills_no_context_is_not_a_cut(reported: int) -> None:
    """Some providers leave cached tokens out of what they report."""
    assert truncated_at(10_000_000, reported) is None
