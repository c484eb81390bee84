"""The one home of sample reports: what the tests of tables, pages and written forms look at.

They are made by rule, not by chance, so that snapshots stay; each shows what the others do not:
a context with four sources and borrowing, its later build, a conversation with events, a report
that attacks the page, and one with as many decisions as asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from muntin.report import AssemblyReport, Decision, Event, Piece, SourceReport

if TYPE_CHECKING:
    from collections.abc import Mapping

    from muntin.report import DecisionKind, Reason

    Outcomes = Mapping[str, tuple[tuple[int, DecisionKind, Reason], ...]]

_PASSAGES = (
    "The Treaty of Nystad ended the Great Northern War in 1721 and gave Russia the Baltic coast.",
    "Cut the dovetails before the pins if the drawer fronts are figured; chip-out shows less.",
    "发票号码 20240117-03 已于一月十七日付款，余额为零。",
    "Error 0x80070057 after the update: the parameter is incorrect. Rolling back to 22H2 helped.",
    "She prefers window seats, vegetarian meals, and trains over planes below six hours.",
    "A muntin divides the sash into panes; a mullion divides the whole window.",
    "Refund policy: thirty days from delivery, unopened, with the receipt or the order number.",
    "p95 latency fell from 840 ms to 210 ms once the question was embedded once.",
)


def passage(index: int) -> str:
    """Give one of a few real-looking passages, told apart by a number."""
    return f"{_PASSAGES[index % len(_PASSAGES)]} [{index}]"


def decided(source: str, index: int, tokens: int, kind: DecisionKind, reason: Reason) -> Decision:
    """Make a decision whose remaining figures follow from its index."""
    double = reason in ("exact_duplicate", "near_duplicate")
    return Decision(
        index=index,
        source=source,
        id=f"{source}-{index:04}" if index % 3 else "",
        kind=kind,
        reason=reason,
        tokens=tokens,
        kept_tokens={"kept": tokens, "shortened": tokens // 2}.get(kind, 0),
        score=None if index % 7 == 6 else round(1 / (1 + index / 9), 4),
        mmr_score=round(0.7 / (1 + index / 9), 4) if kind == "kept" else None,
        nearest=f"{source}:0" if double else None,
        similarity=(1.0 if reason == "exact_duplicate" else 0.963) if double else None,
        preview=passage(index),
    )


def context_report() -> AssemblyReport:
    """Make a context of four sources, one of which lends and one of which borrows."""
    plan: Outcomes = {
        "memory": ((5, "kept", "placed"), (2, "dropped", "near_duplicate")),
        "rag": (
            (1, "kept", "pinned"),
            (11, "kept", "placed"),
            (1, "shortened", "does_not_fit"),
            (4, "dropped", "near_duplicate"),
            (2, "dropped", "exact_duplicate"),
            (9, "dropped", "over_quota"),
        ),
        "history": ((8, "kept", "placed"), (3, "dropped", "beyond_top_k")),
        "tool": ((1, "kept", "placed"), (1, "dropped", "join_overflow")),
    }
    grants = {"memory": (1_300, 332, 0), "rag": (2_500, 0, 438), "history": (1_500, 0, 404)}
    return _context(plan, grants | {"tool": (600, 510, 0)}, question="What is a muntin?")


def later_context_report() -> AssemblyReport:
    """Make the context of the next turn: other passages, the same system prompt and memory."""
    plan: Outcomes = {
        "memory": ((5, "kept", "placed"), (2, "dropped", "near_duplicate")),
        "rag": ((1, "kept", "pinned"), (3, "dropped", "over_quota"), (9, "kept", "placed")),
        "history": ((9, "kept", "placed"),),
        "tool": (),
    }
    grants = {"memory": (1_400, 432, 0), "rag": (2_700, 210, 0), "history": (1_500, 0, 642)}
    return _context(
        plan, grants | {"tool": (0, 0, 0)}, question="And a mullion?", structure=-9, budget=6_400
    )


def _context(
    plan: Outcomes,
    grants: dict[str, tuple[int, int, int]],
    *,
    question: str,
    structure: int = 96,
    budget: int = 6_400,
) -> AssemblyReport:
    sources: list[SourceReport] = []
    decisions: list[Decision] = []
    pieces = [
        Piece.of("system", "You answer from the passages, and say so when they are silent.", 388)
    ]
    for name, outcomes in plan.items():
        each: list[tuple[DecisionKind, Reason]] = []
        for times, kind, reason in outcomes:
            each.extend((kind, reason) for _ in range(times))
        own = [
            decided(name, index, 90 + 37 * ((index * 5) % 9), kind, reason)
            for index, (kind, reason) in enumerate(each)
        ]
        quota, lent, borrowed = grants[name]
        used = sum(one.kept_tokens for one in own)
        sources.append(
            SourceReport.of(name, own, used=used, quota=quota, lent=lent, borrowed=borrowed)
        )
        decisions += own
        pieces += [
            Piece.of(f"{name} {one.index}", f"- {one.preview}\n", one.kept_tokens)
            for one in own
            if one.kept_tokens
        ]
    pieces.append(Piece.of("question", question, 14))
    fixed = {"system": 388, "question": 14}
    total = sum(fixed.values()) + sum(source.used for source in sources) + structure
    return AssemblyReport(
        kind="context",
        budget=budget,
        window=8_192,
        reserve=1_600,
        used=total,
        counter="o200k_base",
        exact=True,
        fixed=fixed,
        sources=tuple(sources),
        decisions=tuple(decisions),
        notes=("source 'web' was skipped: no answer within 2.0 s",),
        pieces=tuple(pieces),
        question=question,
    )


def conversation_report() -> AssemblyReport:
    """Make a fitted conversation: roles as sources, a recap, a digest, four events."""
    roles = ("user", "assistant", "tool", "tool")
    decisions = [_message(index, roles[index % 4] if index else "system") for index in range(60)]
    sources = tuple(
        SourceReport.of(
            role,
            own := [one for one in decisions if one.source == role],
            used=sum(one.kept_tokens for one in own),
        )
        for role in ("system", "user", "assistant", "tool")
    )
    fixed = {"tools": 412, "framing": 61}
    written = {"recap": 480, "digest": 133, "marks": 44}
    used = sum(fixed.values()) + sum(written.values()) + sum(source.used for source in sources)
    return AssemblyReport(
        kind="conversation",
        budget=8_000,
        reserve=2_000,
        used=used - 3,
        counter="estimate o200k_base",
        exact=False,
        fixed=fixed,
        written=written,
        sources=sources,
        decisions=tuple(decisions),
        events=(
            Event(what="superseded", before=31_870, after=24_115, covered=4,
                  detail="older reads of two files"),
            Event(what="digest", before=24_115, after=15_020, covered=18, detail="facts"),
            Event(what="compaction", before=15_020, after=7_204, covered=30,
                  detail="one model call, recap of 480 tokens"),
            Event(what="recall", before=7_204, after=used - 3, covered=1, detail="by the question"),
        ),
        notes=("counted with an estimate: pass counter_for(model) for the model's own count",),
        question="Which invoice is still open?",
    )  # fmt: skip


def _message(index: int, role: str) -> Decision:
    tokens = 60 + 83 * (index * 7 % 11)
    if index == 0:
        return decided(role, index, tokens, "kept", "protected")
    if index == 17:
        return decided(role, index, tokens, "kept", "recalled")
    if index >= 50:
        return decided(role, index, tokens, "kept", "recent")
    if index >= 46:
        return decided(role, index, tokens, "shortened", "oversized")
    if index % 13 == 0:
        return decided(role, index, tokens, "dropped", "superseded")
    return decided(role, index, tokens, "summarised", "digested" if index % 3 else "compacted")


ATTACKS = (
    "<script>alert(1)</script>",
    "</script><script>document.title='owned'</script>",
    "<img src=x onerror=alert(1)>",
    "\"><b onmouseover='alert(1)'>&amp;",
    "<!--<script>",
    "\u2028\u2029 line ends, \ud800 a lone surrogate, \x00 a NUL",
)
"""Texts that would run, break out, or not encode if the page were careless."""


def hostile_report() -> AssemblyReport:
    """Make a report whose every free text attacks the page."""
    decisions = tuple(
        Decision(index=i, source=ATTACKS[0], id=attack, kind="dropped", reason="over_quota",
                 tokens=9, nearest=attack, similarity=0.5, preview=attack)
        for i, attack in enumerate(ATTACKS)
    )  # fmt: skip
    return AssemblyReport(
        kind="context",
        budget=100,
        used=40,
        counter=ATTACKS[2],
        exact=False,
        fixed={ATTACKS[1]: 30},
        written={ATTACKS[3]: 10},
        sources=(SourceReport.of(ATTACKS[0], decisions, used=0, quota=10),),
        decisions=decisions,
        events=(Event(what=ATTACKS[0], before=1, after=2, detail=ATTACKS[1]),),
        notes=ATTACKS,
        question=ATTACKS[1],
    )


def large_report(count: int = 10_000) -> AssemblyReport:
    """Make a report of many decisions, to see that the page stays quick."""
    outcomes: tuple[tuple[DecisionKind, Reason], ...] = (
        ("kept", "placed"),
        ("dropped", "near_duplicate"),
        ("dropped", "over_quota"),
        ("shortened", "does_not_fit"),
        ("dropped", "beyond_top_k"),
    )
    decisions = [
        decided("rag", i, 20 + i * 31 % 400, *outcomes[i * 7 % len(outcomes)]) for i in range(count)
    ]
    used = sum(one.kept_tokens for one in decisions)
    return AssemblyReport(
        kind="context",
        budget=used + 5_000,
        window=used + 10_000,
        reserve=4_000,
        used=used + 600,
        counter="count_tokens",
        exact=False,
        fixed={"system": 500, "question": 40},
        sources=(SourceReport.of("rag", decisions, used=used, quota=used),),
        decisions=tuple(decisions),
        question="Everything at once",
    )
