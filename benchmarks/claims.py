"""The claims of `docs/figures.md`, each read from `results.json`.

A claim compares muntin with what people use today in one unit. It names where its numbers are, so
the page, its charts and the list of rows where a peer is better all come from the measured tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Rows = list[list[Any]]

__all__ = ("CLAIMS", "Claim", "Series", "read")


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The numbers of one contender, one for each case of the claim. None was not measured."""

    name: str
    values: tuple[float | None, ...]
    is_ours: bool = False
    needs: str = ""
    """What this contender is given; only contenders with the same are compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One comparison of the page."""

    key: str
    title: str
    text: str
    unit: str
    part: str
    """The part that measures it."""
    cases: tuple[str, ...]
    series: Callable[[Sequence[Rows]], list[Series]]
    """Reads the series from the rows of the part's tables."""
    least_is_best: bool = False


def read(claim: Claim, results: Mapping[str, Any]) -> list[Series]:
    """Return the series of a claim; nothing if its part was not measured."""
    if claim.part not in results:
        return []
    return claim.series([_plain(table) for table in results[claim.part]["tables"]])


def _plain(table: Mapping[str, Any]) -> Rows:
    return [
        [cell["value"] if isinstance(cell, dict) else cell for cell in row] for row in table["rows"]
    ]


def _named(
    table: int, names: Mapping[str, tuple[str, bool, str]], columns: slice
) -> Callable[[Sequence[Rows]], list[Series]]:
    """Read rows by their first cell; `names` maps it to label, whether ours, and what it needs."""

    def series(tables: Sequence[Rows]) -> list[Series]:
        return [
            Series(name=label, values=tuple(row[columns]), is_ours=is_ours, needs=needs)
            for first, (label, is_ours, needs) in names.items()
            for row in tables[table]
            if row[0] == first
        ]

    return series


def _blocks(tables: Sequence[Rows]) -> list[Series]:
    wanted = {
        "by score until the budget ends": ("passages by score", False, ""),
        "stuff and cut, LlamaIndex top-k": ("passages by score", False, ""),
        "muntin": ("muntin", True, ""),
        "LangChain MMR .7, with the question's vector": ("LangChain MMR", False, "vector"),
        "muntin, with the question's vector": ("muntin, question's vector", True, "vector"),
    }
    return _named(0, wanted, slice(1, 5))(tables)


def _runs(tables: Sequence[Rows]) -> list[Series]:
    found: list[Series] = []
    for name in ("muntin", "LangChain trim_messages"):
        values = [row[4] for row in tables[0] if row[:2] == [name, "all"]]
        if values:
            found.append(Series(name=name, values=tuple(values), is_ours=name == "muntin"))
    return found


def _needs(tables: Sequence[Rows]) -> list[Series]:
    return [
        Series(
            name=row[0],
            values=(row[1], row[3], row[4], row[6], row[7]),
            is_ours=row[0].startswith("muntin"),
        )
        for row in tables[0]
    ]


def _rules(tables: Sequence[Rows]) -> list[Series]:
    names = list(dict.fromkeys(row[2] for row in tables[2]))
    return [
        Series(
            name=name,
            values=tuple(sum(row[3:7]) / 4 for row in tables[2] if row[2] == name),
            is_ours=name.startswith("muntin"),
        )
        for name in names
    ]


def _agents(tables: Sequence[Rows]) -> list[Series]:
    contenders = ("muntin", "ContextEditingMiddleware", "SummarizationMiddleware", "trim_messages")
    found: list[Series] = []
    for name in contenders:
        runs = [row for row in tables[0] if row[1] == name]
        done = sum(row[2] == "yes" and not row[5] for row in runs)
        found.append(Series(name=name, values=(done,), is_ours=name == "muntin"))
    return found


def _hostile(tables: Sequence[Rows]) -> list[Series]:
    return [
        Series(
            name=row[0],
            values=tuple(row[at] for at in (3, 4, 7)),
            is_ours=row[0].startswith("muntin"),
        )
        for row in tables[0]
    ]


def _unknown_question(tables: Sequence[Rows]) -> list[Series]:
    found: list[Series] = []
    for how in ("compacted", "newest turns"):
        rows = {(row[0], row[1]): row for row in tables[2] if row[2] == how}
        values = (
            rows["meeting", "25%"][5],
            rows["meeting", "10%"][5],
            rows["irc", "25%"][4],
            rows["irc", "10%"][4],
        )
        name = "muntin" if how == "compacted" else "newest turns"
        found.append(Series(name=name, values=values, is_ours=how == "compacted"))
    return found


def _known_question(tables: Sequence[Rows]) -> list[Series]:
    found: list[Series] = []
    for name in ("fit_messages", "newest turns", "half newest turns, half BM25"):
        rows = {row[2]: row for row in tables[0] if row[:2] == [name, "all"]}
        if len(rows) == 3:
            cells = [rows[budget][at] for at in (3, 5) for budget in (1024, 2048, 4096)]
            values = tuple(float(cell) for cell in cells)
            label = "muntin" if name == "fit_messages" else name
            found.append(Series(name=label, values=values, is_ours=name == "fit_messages"))
    return found


def _cache(tables: Sequence[Rows]) -> list[Series]:
    names = {
        "HistoryCompactor": ("muntin", True, "compacts"),
        "sliding window": ("sliding window", False, "compacts"),
        "whole history": ("whole history, nothing removed", False, ""),
    }
    return _named(1, names, slice(1, 2))(tables)


def _calls(tables: Sequence[Rows]) -> list[Series]:
    rows = tables[0]
    return [
        Series(name="muntin", values=tuple(row[2] for row in rows), is_ours=True),
        Series(name="agentmaker", values=tuple(row[5] for row in rows)),
    ]


def _speed(tables: Sequence[Rows]) -> list[Series]:
    rows = tables[0]
    return [
        Series(name="muntin", values=tuple(1 / row[3] for row in rows), is_ours=True),
        Series(name="LangChain", values=tuple(1.0 for _ in rows)),
    ]


def _real_model(tables: Sequence[Rows]) -> list[Series]:
    if not tables[0] or len(tables[0][0]) != 4:
        return []
    vector = ("LangChain MMR", "muntin, question's vector", "muntin, question's vector, best last")
    return [
        Series(
            name=row[0],
            values=(row[1],),
            is_ours=str(row[0]).startswith("muntin"),
            needs="vector" if row[0] in vector else "",
        )
        for row in tables[0]
    ]


CLAIMS: tuple[Claim, ...] = (
    Claim(
        key="passages",
        title="The passage with the answer is in the block",
        text="200 questions of Natural Questions with 20 passages by BM25 each, near-duplicates "
        "of all of them, and a small budget. The contenders with a vector have the embedding of "
        "the question. 95 % intervals are ± .06 at 256 and 512 tokens and ± .04 above.",
        unit="share of questions",
        part="quality_retrieval",
        cases=("256 tokens", "512 tokens", "1,024 tokens", "2,048 tokens"),
        series=_blocks,
    ),
    Claim(
        key="two-steps",
        title="Both passages of a two-step question are in the block",
        text="140 questions of HotpotQA with 30 paragraphs by BM25 each, titles in the text, no "
        "vectors. muntin follows names from one passage to the next.",
        unit="share of questions",
        part="quality_multihop",
        cases=("256 tokens", "384 tokens", "512 tokens", "768 tokens", "1,024 tokens"),
        series=_named(
            0,
            {"naive greedy": ("passages by score", False, ""), "muntin": ("muntin", True, "")},
            slice(1, 6),
        ),
    ),
    Claim(
        key="agents-need",
        title="An agent finds the values for its next call",
        text="87 real agent runs, cut just before a call. The budget is the protected messages "
        "and a share of the rest. A value counts if its label is kept too and the provider "
        "would take the result.",
        unit="share of values",
        part="quality_trajectories",
        cases=("10 % of the rest", "25 %", "50 %"),
        series=_runs,
    ),
    Claim(
        key="needs",
        title="The running task keeps what it needs",
        text="Generated threads at 30 to 90 % of their size, recall in a chat of 200 messages, "
        "and the share of the budget that is used on 45 real runs.",
        unit="share of cases; of the budget in the last case",
        part="quality_needs",
        cases=(
            "open request kept",
            "burst of messages kept",
            "recalled at 200 tokens",
            "recalled at 800 tokens",
            "budget used",
        ),
        series=_needs,
    ),
    Claim(
        key="rules",
        title="Standing rules of users survive",
        text="Twelve rules in five languages, put at four places into two real agent runs and two "
        "real meetings of about 16,000 tokens, and kept word for word.",
        unit="share of rules",
        part="quality_needs",
        cases=("agents, 25 %", "agents, 10 %", "meetings, 25 %", "meetings, 10 %"),
        series=_rules,
    ),
    Claim(
        key="agents",
        title="Agents in a window of 32,000 tokens end their task",
        text="Six hard tasks: huge and many results, long runs, messages between call and result. "
        "A run counts when it ends, no request is refused, and every request contains the task.",
        unit="tasks of six",
        part="bench_langchain_agents",
        cases=("six tasks",),
        series=_agents,
    ),
    Claim(
        key="hostile",
        title="Trimmed conversations stay valid",
        text="Ten conversations with parallel, late, interleaved and huge results, at 27 budgets "
        "each. Every number is a count of failures; less is better.",
        unit="failures of 270",
        part="quality_battery",
        cases=("pairs broken", "question lost", "over the budget"),
        series=_hostile,
        least_is_best=True,
    ),
    Claim(
        key="known-question",
        title="Evidence left of long conversations, question known",
        text="Real meetings and chats cut to 1,024, 2,048 and 4,096 tokens: words of the answer "
        "in meetings, evidence turns in chats.",
        unit="share of words, share of turns",
        part="quality_histories",
        cases=(
            "meetings, 1k",
            "meetings, 2k",
            "meetings, 4k",
            "chats, 1k",
            "chats, 2k",
            "chats, 4k",
        ),
        series=_known_question,
    ),
    Claim(
        key="unknown-question",
        title="Evidence left of long conversations, question unknown",
        text="The same conversations compacted to a quarter and a tenth before the question is "
        "known, without a model.",
        unit="share of words, share of turns",
        part="bench_compaction",
        cases=("meetings, 25 %", "meetings, 10 %", "chats, 25 %", "chats, 10 %"),
        series=_unknown_question,
    ),
    Claim(
        key="cache",
        title="Prompts that a cache can read",
        text="A chat of 200 turns; what two consecutive requests have in common at their start. "
        "The whole history is cached best and costs most, because nothing is removed.",
        unit="share of tokens",
        part="bench_compaction",
        cases=("200 turns",),
        series=_cache,
    ),
    Claim(
        key="calls",
        title="Model calls for summaries",
        text="A chat that is compacted after every message; a trigger of 2,000 tokens.",
        unit="calls; less is better",
        part="bench_compaction",
        cases=("250 messages", "500 messages", "1,000 messages", "2,000 messages"),
        series=_calls,
        least_is_best=True,
    ),
    Claim(
        key="speed",
        title="Time of maximal marginal relevance",
        text="Timed in turns on one machine, because seconds differ between machines. muntin also "
        "removes duplicates in this time.",
        unit="time, LangChain is 1; less is better",
        part="bench_selection",
        cases=("1,000 x 384, 20 picks", "1,000 x 1,536, 20 picks", "1,000 x 384, all picked"),
        series=_speed,
        least_is_best=True,
    ),
    Claim(
        key="real-model",
        title="A small real model answers from the block",
        text="SmolLM2 135M: log-probability per token of the right answer after a block of 256 "
        "tokens. Values are negative, and closer to 0 is better. MMR is ahead of muntin here: it "
        "stops at the first passage that does not fit and places 1.8 passages, muntin fills the "
        "budget and places 2.2. Where both hold the answer once, so small a model loses .23 by "
        "what else is in the block. Give such a model fewer passages (`fill=False`). The appendix "
        "has the differences by question with their intervals.",
        unit="log-probability per token",
        part="real_model",
        cases=("right answer",),
        series=_real_model,
    ),
)
