"""Does the result hold what the running task needs? See `benchmarks.measures.needs`.

The peer is LangChain's `trim_messages` with its system message and a user message first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks._data import has_data
from benchmarks._harness import Table, at_least, at_most, peer
from benchmarks.measures import needs, rules, scenarios
from muntin import TiktokenCounter, fit_messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks._harness import Cell

    Fit = Callable[[list[dict[str, Any]], int], list[dict[str, Any]]]

_counter = TiktokenCounter("o200k_base")


def run() -> list[Table]:
    """Measure ours and LangChain's."""
    ways = [("muntin fit_messages", _ours)]
    if peer("langchain_core.messages") is not None:
        ways.append(("LangChain trim_messages", _trimmed))
    tables = [_requests(ways), _rounds(ways)]
    if has_data():
        tables += [_rules(ways), _scenarios()]
    return tables


def _ours(messages: list[dict[str, Any]], budget: int) -> list[dict[str, Any]]:
    return fit_messages(messages, budget=budget, counter=_counter).messages


def _trimmed(messages: list[dict[str, Any]], budget: int) -> list[dict[str, Any]]:
    from langchain_core.messages import (
        convert_to_messages,
        convert_to_openai_messages,
        trim_messages,
    )

    def sized(some: Any) -> int:
        return needs.size(convert_to_openai_messages(some))  # pyright: ignore[reportArgumentType] - a list

    trimmed = trim_messages(
        convert_to_messages(messages),
        max_tokens=budget,
        token_counter=sized,
        strategy="last",
        include_system=True,
        start_on="human",
    )
    return convert_to_openai_messages(trimmed)  # pyright: ignore[reportReturnType] - a list


def _requests(ways: list[tuple[str, Fit]]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name, fit in ways:
        opened, stale, _ = needs.open_request(fit)
        together, _ = needs.burst(fit)
        recalled = [needs.recalled(fit, budget) for budget in (200, 400, 800)]
        used = needs.filled(fit) if has_data() else []
        fill: list[float | None] = [None, None]
        if used:
            fill = [round(sum(used) / len(used), 3), round(used[len(used) // 20], 3)]
        falls = needs.falls(fit)
        figures = [opened, stale, together, *recalled, *fill, falls]
        if fit is _ours:
            least = (1.0, None, 1.0, 0.95, 1.0, 1.0, 0.93, 0.88, None)
            cells: list[Cell] = [
                figure if figure is None or limit is None else at_least(round(figure, 3), limit)
                for figure, limit in zip(figures, least, strict=True)
            ]
            cells[1], cells[-1] = at_most(round(stale, 3), 0), at_most(falls, 0)
        else:
            cells = [figure if figure is None else round(figure, 3) for figure in figures]
        rows.append((name, *cells))
    return Table(
        title="Open requests, bursts, recall and filling",
        columns=(
            "function",
            "open request kept",
            "finished one in its place",
            "burst kept",
            *(f"recalled at {budget} tokens" for budget in (200, 400, 800)),
            "budget used, mean",
            "5th percentile",
            "falls when the budget rises",
        ),
        rows=tuple(rows),
        notes=(
            "Generated threads; budgets of 30 to 90 % of their size. Budget used: 45 real runs at "
            "15 to 90 % of their size.",
        ),
    )


def _rounds(ways: list[tuple[str, Fit]]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for results, budget in needs.ROUNDS:
        cells: list[Cell] = []
        for _, fit in ways:
            used, shown = needs.finished_rounds(fit, results, budget)
            cells += (
                [at_least(round(used, 2), 0.88), at_least(shown, results)]
                if fit is _ours
                else [round(used, 2), shown]
            )
        rows.append((results, budget, *cells))
    return Table(
        title="A finished round of parallel results of about 5,000 tokens each",
        columns=(
            "results",
            "budget",
            *(f"{name}: {what}" for name, _ in ways for what in ("used", "results shown")),
        ),
        rows=tuple(rows),
        notes=("A result is shown when three of its lines are in the output.",),
    )


def _rules(ways: list[tuple[str, Fit]]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for kind in ("agent", "meeting"):
        for share in (0.25, 0.1):
            for name, fit in ways:
                found = [round(rules.kept(fit, kind, place, share), 3) for place in rules.PLACES]
                cells: list[Cell] = [at_least(one, 0.95) if fit is _ours else one for one in found]
                rows.append((kind, f"{share:.0%}", name, *cells))
    changes = [f"{name} {rules.changed(fit):.2f}" for name, fit in ways]
    return Table(
        title="Standing rules of users kept word for word",
        columns=(
            "history",
            "budget",
            "function",
            *(f"rule at {place:.0%}" for place in rules.PLACES),
        ),
        rows=tuple(rows),
        notes=(
            f"{len(rules.RULES)} rules in five languages, two real histories of each kind of about "
            f"16,000 tokens. A rule replaced later: {', '.join(changes)}.",
        ),
    )


def _scenarios() -> Table:
    def fit(history: Any, budget: int, question: str | None) -> Any:
        return fit_messages(history, budget=budget, question=question, counter=_counter).messages

    goals = (1.0, 1.0, 0.8)
    rows: list[tuple[Cell, ...]] = []
    strings = 0
    for known in (False, True):
        cells: list[Cell] = []
        for share, goal in zip((0.5, 0.25, 0.1), goals, strict=True):
            found, strings = scenarios.kept(fit, share, known=known)
            cells.append(at_least(round(found, 3), goal))
        rows.append(("given" if known else "not given", *cells))
    return Table(
        title="Strings that the compression scenarios of Gemini CLI ask for",
        columns=("question", "50 % of the size", "25 %", "10 %"),
        rows=tuple(rows),
        notes=(f"{strings} strings in 17 histories of Gemini contents.",),
    )
