"""What is left of a long text when no question is known and no model is asked?

Two measures. Real conversations: the newest half of the budget word for word and a summary of the
rest, and the same with simple extracts. And the compaction conformance kit: planted rules, limits
and facts that must survive three rounds of compaction, next to the kit's own compactors. The kit is
left out where it is not installed.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from benchmarks._data import has_data
from benchmarks._harness import Table, at_least, peer
from benchmarks.measures import histories
from benchmarks.measures.histories import rendered
from benchmarks.measures.tokens import messages_tokens
from benchmarks.quality_histories import COLUMNS, cases, fitted, halves, rows_of
from muntin import ExtractiveSummarizer, TiktokenCounter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks._harness import Cell
    from benchmarks.measures.histories import Compactor

__all__ = ("run",)

SHARES = (0.1, 0.25, 0.5)
SEEDS = (1, 2, 3, 4, 5)
ROTATING_SEEDS = tuple(range(1, 21))
ROUNDS = 3


def run() -> list[Table]:
    """Measure summaries of conversations, and the kit."""
    tables = [_conversations()] if has_data() else []
    benchmark = peer("compaction_kit.benchmark")
    if benchmark is not None:
        tables += [_kit(benchmark), _rotating()]
    absent = "not measured: benchmarks/data is not here, nor compaction-conformance-kit"
    return tables or [Table(title="Summaries", columns=("measure",), rows=((absent,),))]


def _conversations() -> Table:
    rows: list[tuple[Cell, ...]] = []
    named: dict[str, Compactor] = {
        "half newest turns, half ExtractiveSummarizer": _half_tail(),
        "fit_messages": fitted(),
        "newest turns": histories.newest,
        "random turns": histories.random_turns,
        "half newest turns, half frequent sentences": histories.half_newest,
    }
    for at, (name, compact) in enumerate(named.items()):
        scores = [histories.score(case, compact, known=False) for case in cases()]
        rows += rows_of(name, "all", scores)
        if at < 2:
            for half, some in halves(scores):
                rows += rows_of(name, half, some)
    return Table(
        title="Evidence left when no question is known",
        columns=COLUMNS,
        rows=tuple(rows),
        notes=("Random turns spend the whole budget on old turns: they have no tail.",),
    )


def _half_tail() -> Compactor:
    summarize = ExtractiveSummarizer(counter=lru_cache(maxsize=None)(TiktokenCounter("o200k_base")))

    def keep(
        turns: list[dict[str, Any]], budget: int, question: str | None
    ) -> list[dict[str, Any]]:
        del question  # it is not known
        newest = histories.newest(turns, budget // 2, None)
        old = "\n".join(map(rendered, turns[: len(turns) - len(newest)]))
        left = budget - messages_tokens(newest) - 4
        return [{"role": "system", "content": summarize(old, max_tokens=left)}, *newest]

    return keep


def _ours() -> Callable[[], Any]:
    from compaction_kit.compacted import CompactedContext

    class Ours:
        """The extractive summariser, as the kit calls compactors."""

        name = "ExtractiveSummarizer"

        def compact(
            self, turns: Sequence[Any], round_num: int = 1, budget_chars: int | None = None
        ) -> Any:
            text = "\n".join(turn.text for turn in turns)
            room = len(text) // 4 if budget_chars is None else budget_chars
            shown = ExtractiveSummarizer(counter=len)(text, max_tokens=room)
            return CompactedContext(text=shown, compactor_name=self.name, round_num=round_num)

    return Ours


def _kit(benchmark: Any) -> Table:
    from compaction_kit.cli import COMPACTORS

    entries = benchmark.run_budget_benchmark(
        {"ExtractiveSummarizer": _ours(), **COMPACTORS}, SHARES, SEEDS, ROUNDS
    )["entries"]
    rows: list[tuple[Cell, ...]] = []
    for share in SHARES:
        group = [one for one in entries if one["budget_fraction"] == share]
        best = max(_survival(one) for one in group if one["compactor"] != "ExtractiveSummarizer")
        for one in sorted(group, key=_survival, reverse=True):
            kept = _survival(one)
            is_ours = one["compactor"] == "ExtractiveSummarizer"
            semantic = one["semantic"]["distinct_pair_rate"]
            cell: Cell = at_least(kept, best) if is_ours else f"{kept:.3f}"
            rows.append((one["compactor"], f"{share:.0%}", cell, semantic))
    return Table(
        title=f"compaction-conformance-kit, {len(SEEDS)} sessions, {ROUNDS} rounds",
        columns=("compactor", "budget", "survival of what was planted", "distinct pairs held"),
        rows=tuple(rows),
        notes=(
            "1.000 is all there is: no compactor can be above another there.",
            "Where two facts contradict each other in other words, both are quoted.",
        ),
    )


def _rotating() -> Table:
    """Plant what the kit generates anew for each seed: subjects, wording, updates, decoys."""
    from compaction_kit.cli import COMPACTORS
    from compaction_kit.generated import build_generated_session
    from compaction_kit.runner import run_conformance

    compactors: dict[str, Callable[[], Any]] = {"ExtractiveSummarizer": _ours(), **COMPACTORS}
    rows: list[tuple[Cell, ...]] = []
    for share in SHARES:
        kept: dict[str, float] = {}
        for name, made in compactors.items():
            survived = planted = 0
            for seed in ROTATING_SEEDS:
                session, canaries = build_generated_session(seed)
                run = run_conformance(
                    session, made(), rounds=ROUNDS, canaries=canaries, budget_fraction=share
                )
                survived += sum(run.rounds[-1].survived.values())
                planted += len(canaries)
            kept[name] = survived / planted
        best = max(value for name, value in kept.items() if name != "ExtractiveSummarizer")
        for name in sorted(kept, key=kept.__getitem__, reverse=True):
            is_ours = name == "ExtractiveSummarizer"
            cell: Cell = at_least(kept[name], best) if is_ours else f"{kept[name]:.3f}"
            rows.append((name, f"{share:.0%}", cell))
    return Table(
        title=f"The kit's rotating corpus, {len(ROTATING_SEEDS)} sessions, {ROUNDS} rounds",
        columns=("compactor", "budget", "survival of what was planted"),
        rows=tuple(rows),
        notes=("Subjects, wording and values change with each seed; decoys look like rules.",),
    )


def _survival(entry: dict[str, Any]) -> float:
    return float(entry["randomized"]["overall_final_survival"])
