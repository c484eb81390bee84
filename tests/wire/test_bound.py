# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
"""Agents with reasoning, tools and cuts: nothing is refused, nothing is dropped in silence."""

from __future__ import annotations

import pytest

pytest.importorskip("langchain.agents")
pytest.importorskip("langgraph")

from bound_agents import MODELS, run_agent
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
