"""What the reference documents show, with the package renamed, does what they say."""

from __future__ import annotations

import dataclasses

import pytest

from muntin import (
    CallableSource,
    ConfigurationError,
    ContextBudget,
    ContextBuilder,
    ContextConfig,
    HistoryCompactor,
    Message,
    MuntinConfig,
    RetrievalResult,
    Scope,
    WindowBudget,
    WindowBudgetConfig,
    count_tokens,
    mmr_select,
)
from muntin.passages.candidates import Candidate
from muntin.testing import ScriptedLLM


def search_docs(query: str) -> list[RetrievalResult]:
    return [
        RetrievalResult(
            content="Meals are capped at 80 per day, no receipt needed.", score=0.9, source="rag"
        ),
        RetrievalResult(
            content="Hotels are capped at 500 per night, receipt required.", score=0.7, source="rag"
        ),
    ]


def test_the_estimate() -> None:
    assert count_tokens("hello world") == 3


def test_selection_keeps_the_distinct_ones() -> None:
    candidates = [
        RetrievalResult(
            content="Cats are great pets.", score=0.9, source="rag", embedding=[1.0, 0.0]
        ),
        RetrievalResult(
            content="Cats make wonderful pets.", score=0.8, source="rag", embedding=[0.99, 0.01]
        ),
        RetrievalResult(
            content="The Eiffel Tower is in Paris.", score=0.6, source="rag", embedding=[0.0, 1.0]
        ),
    ]
    selected = mmr_select(candidates, top_k=2, lambda_=0.7)
    assert [r.content for r in selected] == [
        "Cats are great pets.",
        "The Eiffel Tower is in Paris.",
    ]


def test_the_retrieval_result_is_the_candidate() -> None:
    assert RetrievalResult is Candidate


class Memory:
    """A store whose search takes its scope by keyword only, as the documents have it."""

    def __init__(self) -> None:
        self.scopes: list[Scope | None] = []

    def search(self, query: str, *, scope: Scope | None = None, top_k: int = 5) -> list[Candidate]:
        self.scopes.append(scope)
        return [Candidate(f"{query} {top_k}", 0.5)]


def test_the_four_ways_to_pass_a_scope() -> None:
    memory = Memory()
    run = Scope(user="ada", session="s1")
    CallableSource("memory", memory.search).fetch("q", run)
    CallableSource("memory", lambda q, s: memory.search(q, scope=Scope(user=s.user))).fetch(
        "q", run
    )
    CallableSource("rag", memory.search, pass_scope=True).fetch("q", run)
    found = CallableSource("rag", lambda q: memory.search(q, top_k=8)).fetch("q", run)
    assert memory.scopes == [None, Scope(user="ada"), run, None]
    assert found[0].content == "q 8"


def test_build_is_the_documents_text() -> None:
    builder = ContextBuilder(ContextConfig.for_window(None, fallback_window=8000))
    context = builder.build(
        "how much can I spend on meals?",
        sources=[CallableSource("rag", search_docs)],
        system_prompt="You are a finance assistant.",
    )
    assert context == (
        "You are a finance assistant.\n"
        "\n"
        "[Knowledge]\n"
        "- Meals are capped at 80 per day, no receipt needed.\n"
        "- Hotels are capped at 500 per night, receipt required.\n"
        "\n"
        "[Current question]\n"
        "how much can I spend on meals?"
    )


def test_the_window_decides_the_budget() -> None:
    assert ContextConfig.for_window(1_000_000).max_tokens == 500_000
    assert ContextConfig.for_window(None, fallback_window=8000).max_tokens == 4000


def test_unknown_and_repeated_sources_are_refused_before_any_fetch() -> None:
    fetched: list[str] = []

    def fetch(query: str) -> list[Candidate]:
        fetched.append(query)
        return []

    builder = ContextBuilder(ContextConfig(max_tokens=4000))
    for sources in (
        [CallableSource("rag", fetch), CallableSource("tickets", fetch)],
        [CallableSource("rag", fetch), CallableSource("rag", fetch)],
    ):
        with pytest.raises(ConfigurationError):
            builder.build("q", sources=sources)
    assert fetched == []


def test_the_ledger_of_one_run() -> None:
    llm = ScriptedLLM(context_window=200_000)
    budget = WindowBudget.for_run(
        llm=llm, cfg=WindowBudgetConfig(), system_tokens=800, tool_tokens=1200
    )
    assert budget is not None
    assert budget.rag_budget == 67_866
    assert budget.trajectory_budget(rag_in_scope=True) == 194_704


def test_compaction_keeps_the_last_turns_word_for_word() -> None:
    llm = ScriptedLLM(
        ["The user asked how to get a refund and was told to check Settings > Billing."]
    )
    compactor = HistoryCompactor(llm, keep_recent=2, trigger_tokens=10)
    history = [
        Message(content="How do I get a refund?", role="user"),
        Message(content="Open Settings then Billing.", role="assistant"),
        Message(content="I did that but I am still stuck.", role="user"),
        Message(content="Let me escalate this for you.", role="assistant"),
    ]
    compacted = compactor.compact(history)
    assert [f"{m.role} :: {m.content}" for m in compacted] == [
        "system :: [Recap] The user asked how to get a refund and was told to check "
        "Settings > Billing.",
        "user :: I did that but I am still stuck.",
        "assistant :: Let me escalate this for you.",
    ]


def test_one_configuration_for_all() -> None:
    config = MuntinConfig.for_window(128_000)
    assert config.context.max_tokens == 64_000
    assert MuntinConfig.from_dict(config.to_dict()) == config
    assert dataclasses.replace(config.context, mmr_lambda=0.5).mmr_lambda == 0.5


def test_named_shares_of_a_window() -> None:
    budget = ContextBudget()
    assert [budget.budget_for(name) for name in budget.allocations] == [
        12_800,
        12_800,
        38_400,
        38_400,
        25_600,
    ]
    assert budget.fits("system", 12_800)
    assert not budget.fits("system", 12_801)


def test_the_documents_module_path_works() -> None:
    from muntin.context import REDUCERS, reduce_agent, reduce_plan, reduce_reflection, tokens_of

    by_paradigm = {"agent": reduce_agent, "plan": reduce_plan, "reflection": reduce_reflection}
    assert by_paradigm == dict(REDUCERS)
    assert tokens_of("abcd", None, "中") == 2
