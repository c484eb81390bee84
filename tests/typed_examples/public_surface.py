"""What a type checker infers for users: checked by mypy in strict mode, never run.

A signature that decays to `Any` takes completion and checking away from everybody downstream, and
no other test notices.
"""

from __future__ import annotations

from typing import assert_type

from muntin import (
    AnchoredCounter,
    AssembledContext,
    AssemblyReport,
    CallableSource,
    Candidate,
    ContextBudget,
    ContextBuilder,
    ContextConfig,
    ExtractiveSummarizer,
    FittedMessages,
    HistoryCompactor,
    Message,
    RetrievalResult,
    Scope,
    Selection,
    TiktokenCounter,
    TokenCounter,
    Window,
    afit_messages,
    count_messages,
    count_tokens,
    counter_for,
    estimate_tokens,
    fit_messages,
    mmr_select,
    resolve_window,
    select,
    truncate_to_tokens,
)


def counting(text: str) -> None:
    """Counters are plain callables, named ones included."""
    rule: TokenCounter = count_tokens
    exact: TokenCounter = TiktokenCounter("o200k_base")
    chosen: TokenCounter = counter_for("gpt-4o")
    anchored: TokenCounter = AnchoredCounter(rule)
    assert_type(rule(text) + exact(text) + chosen(text) + anchored(text), int)
    assert_type(counter_for("gpt-4o").name, str)
    assert_type(counter_for("gpt-4o").exact, bool)
    assert_type(estimate_tokens(text), int)
    assert_type(truncate_to_tokens(text, 10), str)
    assert_type(count_messages([{"role": "user", "content": text}]), int)


def selecting(candidates: list[Candidate]) -> None:
    """The old name of a candidate is the same type."""
    assert_type(mmr_select(candidates, top_k=3), list[Candidate])
    assert_type(select(candidates), Selection)
    assert_type(RetrievalResult("text", 0.5), Candidate)


def assembling() -> None:
    """A function is a source; the strings are conveniences of the rich object."""

    def about(query: str) -> list[Candidate]:
        return [Candidate(f"about {query}", 0.9)]

    rules = CallableSource("rag", about)
    builder = ContextBuilder(ContextConfig(max_tokens=1000))
    context = builder.assemble("meals?", sources=[rules], scope=Scope(user="u"))
    assert_type(context, AssembledContext)
    assert_type(context.text, str)
    assert_type(context.report, AssemblyReport)
    assert_type(context.candidate_at(0), Candidate | None)
    assert_type(builder.build("meals?", sources=[rules]), str)


async def assembling_async(builder: ContextBuilder) -> None:
    """The async entry point gives the same types."""
    assert_type(await builder.aassemble("meals?", sources=[]), AssembledContext)
    assert_type(await builder.abuild("meals?", sources=[]), str)


def fitting(chat: list[dict[str, str]], messages: list[Message]) -> None:
    """What comes back has the type of what was given."""
    assert_type(fit_messages(chat, budget=100).messages, list[dict[str, str]])
    fitted = fit_messages(messages, budget=100)
    assert_type(fitted, FittedMessages[list[Message]])
    assert_type(fitted.report, AssemblyReport)


async def fitting_async(messages: list[Message]) -> None:
    """The async entry point gives the same type."""
    assert_type(await afit_messages(messages, budget=100), FittedMessages[list[Message]])


def compacting(messages: list[Message]) -> None:
    """A compactor works without a model."""
    compactor = HistoryCompactor(ExtractiveSummarizer())
    compactor.compact(messages)


def dividing(model: object) -> None:
    """The window is resolved or refused, and its shares are whole numbers."""
    assert_type(resolve_window(model, fallback=8000), Window)
    assert_type(resolve_window(8000).tokens, int)
    assert_type(ContextBudget(max_tokens=8000).budget_for("history"), int)
