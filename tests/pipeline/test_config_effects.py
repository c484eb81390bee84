"""Every field of every configuration changes what the library does.

A field that nothing reads is a promise that is not kept. The table holds one scenario per field;
a new field without a scenario fails the first test.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, cast

import pytest

from muntin import (
    CallableSource,
    Candidate,
    CompactionConfig,
    ConfigurationError,
    ContextBuilder,
    ContextConfig,
    ContextWindowExceeded,
    HistoryCompactor,
    MuntinConfig,
    ReducerConfig,
    WindowBudget,
    WindowBudgetConfig,
)
from muntin.conversations.trajectory import reduce_agent_sync, reduce_plan_sync

if TYPE_CHECKING:
    from collections.abc import Callable

PASSAGES = (
    "Parcels are held at the depot for ten days. Then they go back to the sender.",
    "Parcels are held at the depot for ten days. Then they go back to their sender.",
    "A refund for a lost parcel takes fourteen days. " * 6,
    "Customs papers are checked in the harbour office.",
)
VECTORS = ([1.0, 0.0], [0.9, 0.45], [0.85, 0.5], [0.0, 1.0])
CONTEXT = ContextConfig(
    max_tokens=200, source_ratios={"rag": 0.7, "memory": 0.3}, min_chunk_tokens=0
)


def _context(config: ContextConfig) -> object:
    rag = [
        Candidate(text, 0.9 - n / 50, embedding=vector)
        for n, (text, vector) in enumerate(zip(PASSAGES, VECTORS, strict=True))
    ]
    memory = [Candidate(PASSAGES[0], 0.5), Candidate("The depot is in Hamburg.", 0.4)]
    sources = [
        CallableSource("rag", lambda query: rag),
        CallableSource("memory", lambda query: memory),
    ]
    try:
        context = ContextBuilder(config).assemble("How long are parcels held?", sources=sources)
    except (ConfigurationError, ContextWindowExceeded) as error:
        return str(error)
    return context.text, context.report.to_dict()


def _steps() -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = [{"role": "user", "content": "Where is the parcel?"}]
    for n in range(8):
        call = {"id": f"c{n}", "type": "function", "function": {"name": "scan", "arguments": "{}"}}
        text = f"scan {n}: " + "depot seven " * 20
        steps += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{n}", "content": text},
        ]
    return steps


def _said(text: str, instruction: str) -> str:
    return "The parcel was scanned at depot seven."


def _reduced(config: ReducerConfig) -> object:
    plan = [f"Step {n}: " + "scanned at depot seven. " * 10 for n in range(8)]
    return (
        reduce_agent_sync(_steps(), summarize=_said, budget=500, config=config),
        reduce_plan_sync(plan, summarize=_said, budget=330, config=config),
    )


def _compacted(config: CompactionConfig) -> object:
    history = [
        {"role": role, "content": f"{n}: Parcel {n} was scanned at depot {n % 7} on day {n}. " * 4}
        for n in range(30)
        for role in ("user", "assistant")
    ]
    compactor = HistoryCompactor.from_config(None, config)
    return compactor.compact(history)


def _divided(config: WindowBudgetConfig) -> object:
    budget = WindowBudget.for_run(llm=6000, cfg=config, system_tokens=100, tool_tokens=50)
    assert budget is not None
    return budget, budget.rag_budget, budget.spendable


SCENARIOS: dict[type, tuple[Callable[[Any], object], object]] = {
    ContextConfig: (_context, CONTEXT),
    ReducerConfig: (_reduced, ReducerConfig()),
    CompactionConfig: (_compacted, CompactionConfig(trigger_tokens=700, max_summary_tokens=200)),
    WindowBudgetConfig: (_divided, WindowBudgetConfig()),
}
"""What is run with a configuration, and the configuration to start from."""

CHANGES: dict[str, dict[str, Any]] = {
    "ContextConfig.max_tokens": {"max_tokens": 90},
    "ContextConfig.output_reserve_ratio": {"output_reserve_ratio": 0.6},
    "ContextConfig.source_ratios": {"source_ratios": {"rag": 0.1, "memory": 0.9}},
    "ContextConfig.mmr_lambda": {"mmr_lambda": 0.1},
    "ContextConfig.dedup_threshold": {"dedup_threshold": 2.0},
    "ContextConfig.allow_borrow": {
        "allow_borrow": False,
        "source_ratios": {"rag": 0.3, "memory": 0.7},
    },
    "ContextConfig.min_chunk_tokens": {"min_chunk_tokens": 5000},
    "ContextConfig.dedup_across_sources": {"dedup_across_sources": False},
    "ContextConfig.similarity": {"similarity": "embedding"},
    "ContextConfig.fill": {"fill": False, "max_tokens": 60},
    "ContextConfig.shorten": {"shorten": True, "max_tokens": 110},
    "ContextConfig.link_weight": {"link_weight": 0.0},
    "ContextConfig.coverage_weight": {"coverage_weight": 0.0},
    "ContextConfig.windows": {"windows": False, "max_tokens": 45},
    "ContextConfig.never_empty": {"never_empty": False, "max_tokens": 27, "windows": False},
    "ContextConfig.strict": {"strict": True, "max_tokens": 24, "never_empty": False},
    "ReducerConfig.agent_keep_recent_steps": {"agent_keep_recent_steps": 1},
    "ReducerConfig.plan_keep_recent": {"plan_keep_recent": 1},
    "CompactionConfig.keep_recent": {"keep_recent": 10},
    "CompactionConfig.trigger_tokens": {"trigger_tokens": 50_000},
    "CompactionConfig.max_summary_tokens": {"max_summary_tokens": 40},
    "WindowBudgetConfig.desired_output_tokens": {"desired_output_tokens": 100},
    "WindowBudgetConfig.max_output_fraction": {"max_output_fraction": 0.1},
    "WindowBudgetConfig.rag_ratio": {"rag_ratio": 0.9},
}
"""The value each field is changed to; further entries are set in the configuration before, too."""


def _field_names() -> set[str]:
    return {f"{config.__name__}.{field.name}" for config in SCENARIOS for field in fields(config)}


def test_every_field_has_a_scenario() -> None:
    """A field that no scenario changes may have lost its effect without a failing test."""
    assert set(CHANGES) == _field_names()


def test_every_part_of_the_whole_configuration_is_covered() -> None:
    """A fifth part would be outside of the table."""
    whole: Any = MuntinConfig()
    parts: list[object] = [getattr(whole, field.name) for field in fields(whole)]

    assert {type(part) for part in parts} == set(SCENARIOS)


@pytest.mark.parametrize("name", sorted(CHANGES))
def test_changing_a_field_changes_the_result(name: str) -> None:
    """A setting without an effect is worse than none: it is relied on."""
    kind = next(config for config in SCENARIOS if config.__name__ == name.split(".")[0])
    run, start = SCENARIOS[kind]
    changed = CHANGES[name]
    field = name.split(".")[1]
    around = {key: value for key, value in changed.items() if key != field}
    before = replace(cast("Any", start), **around)

    assert run(before) != run(replace(before, **{field: changed[field]}))


def test_a_setting_survives_sizing_to_a_window() -> None:
    """Sizing the context used to throw every other setting away."""
    config = MuntinConfig(
        compaction=CompactionConfig(keep_recent=9), context=ContextConfig(mmr_lambda=0.4)
    )

    sized = config.for_window(8000)

    assert sized.context.max_tokens == 4000
    assert sized.context.mmr_lambda == 0.4
    assert sized.compaction.keep_recent == 9
    assert MuntinConfig.for_window(8000).context.max_tokens == 4000


@pytest.mark.parametrize("kind", [*SCENARIOS, MuntinConfig])
def test_validate_accepts_what_construction_accepted(kind: type[Any]) -> None:
    config = kind() if kind is not ContextConfig else ContextConfig(max_tokens=4000)

    assert config.validate() is None
