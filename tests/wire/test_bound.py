# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
"""Agents with reasoning, tools and cuts: nothing is refused, nothing is dropped in silence."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("langchain.agents")
pytest.importorskip("langgraph")

from bound_agents import MODELS, Provider, prose, run_agent
from langchain_muntin import ContextWindowMiddleware
from muntin import estimate_tokens
from wire_server import serving

pytestmark = [
    pytest.mark.allow_hosts(["127.0.0.1"]),
    pytest.mark.filterwarnings("ignore::muntin.counting.counters.CounterWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

BUDGETS = [900 + 130 * at for at in range(30)]
PACKAGES = {
    "anthropic": "langchain_anthropic",
    "responses": "langchain_openai",
    "gemini": "langchain_google_genai",
}


def check(name: str, budget: int, seed: int, *, turns: int = 5) -> None:
    pytest.importorskip(PACKAGES[name])
    middleware = ContextWindowMiddleware(budget=budget, counter=estimate_tokens)
    with serving() as server:
        done = run_agent(name, server, [middleware], seed=seed, turns=turns)

    assert done.refused == []
    assert done.dropped == 0
    assert done.requests >= turns


@pytest.mark.parametrize("name", MODELS)
def test_an_agent_with_bound_reasoning_is_never_refused(name: str) -> None:
    """One signature behind a changed message ends the run of the agent."""
    check(name, BUDGETS[9], seed=3)


@pytest.mark.slow
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("name", MODELS)
def test_no_reasoning_is_refused_or_dropped_at_any_budget(name: str, budget: int) -> None:
    """OpenAI drops reasoning without an error: it is paid for and the model thinks anew."""
    check(name, budget, seed=budget)


@pytest.mark.parametrize("tokens", [500, 900, 1600, 3000])
def test_a_memory_of_llama_index_sends_no_stale_reasoning(tokens: int) -> None:
    """Its model sends reasoning by id, and the provider drops it behind a recap in silence."""
    llms = pytest.importorskip("llama_index.llms.openai")
    from llama_index.core.base.llms.types import ChatMessage

    from llama_index_muntin import CompactingMemory

    memory = CompactingMemory.from_defaults(token_limit=tokens, tokenizer_fn=str.split)
    provider = Provider("responses", tokens, rounds=0)
    rng = random.Random(tokens)
    with serving() as server:
        provider.attach(server)
        model = llms.OpenAIResponses(
            model="gpt-6.2-sol", api_base=f"{server.url}/v1", api_key="x", max_retries=0,
            context_window=100_000, store=True,
        )  # fmt: skip
        for turn in range(24):
            memory.put(ChatMessage(role="user", content=f"{turn}: {prose(rng, 40)} Where is it?"))
            memory.put(model.chat(memory.get()).message)

    assert [one.refused for one in server.received if one.refused] == []
    assert provider.outcome.requests == 24
    assert provider.outcome.sent > 0
    assert provider.outcome.dropped == 0
