"""The account: figures that contradict each other are refused, with the two that do."""

from __future__ import annotations

import dataclasses
import math
import sys
from typing import Any, get_args

import pytest
from hypothesis import given

from muntin import CallableSource, ContextBuilder
from muntin.errors import ConfigurationError, ReportError
from muntin.report import (
    REASONS,
    AssemblyReport,
    Decision,
    DecisionKind,
    Reason,
    SourceReport,
    preview_of,
)
from muntin.report.reasons import REASONS_OF
from report_samples import context_report, conversation_report
from strategies import text

KEPT = Decision(index=0, source="rag", kind="kept", reason="placed", tokens=30, kept_tokens=30)
LEFT = Decision(index=1, source="rag", kind="dropped", reason="over_quota", tokens=90)
ROW = SourceReport.of("rag", [KEPT, LEFT], used=30, quota=80)


def report(**changed: Any) -> AssemblyReport:
    """Make a small sound report, with some fields changed."""
    fields: dict[str, Any] = {
        "kind": "context",
        "budget": 100,
        "used": 50,
        "reserve": 20,
        "counter": "count_tokens",
        "exact": False,
        "fixed": {"system": 15},
        "sources": (ROW,),
        "decisions": (KEPT, LEFT),
    }
    return AssemblyReport(**(fields | changed))


def test_the_set_of_reasons_is_closed_and_explained() -> None:
    """A reason nobody can look up explains nothing."""
    assert set(REASONS) == set(get_args(Reason))
    assert set(REASONS_OF) == set(get_args(DecisionKind))
    assert set().union(*REASONS_OF.values()) == set(REASONS)


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"used": 101}, "used 101 tokens of a budget of 100"),
        ({"budget": -1, "used": -1}, "budget is -1"),
        ({"reserve": -1}, "reserve is -1"),
        ({"fixed": {"system": -5}}, "fixed part 'system' is -5"),
        ({"written": {"recap": -5}}, "written part 'recap' is -5"),
        ({"window": 119}, "do not fit a window of 119"),
        ({"kind": "novel"}, "kind is 'novel'"),
        ({"sources": (ROW, ROW)}, "two accounts: rag"),
        ({"decisions": (KEPT,)}, "offered 2"),
        ({"sources": ()}, "'rag', which has no account"),
        ({"decisions": (KEPT, LEFT, LEFT)}, "rag:1 is decided twice"),
        ({"sources": (dataclasses.replace(ROW, offered=3),)}, "offered 3"),
        ({"sources": (dataclasses.replace(ROW, placed=2, offered=3),)}, "offered 3"),
        ({"sources": (dataclasses.replace(ROW, lent=-1),)}, "negative figure"),
    ],
)
def test_a_report_cannot_disagree_with_itself(changed: dict[str, Any], problem: str) -> None:
    """A wrong account is worse than none: it is believed."""
    with pytest.raises(ReportError, match=problem):
        report(**changed)


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"reason": "near_duplicate"}, "not a pair"),
        ({"reason": "because"}, "not a pair"),
        ({"kind": "eaten"}, "not a pair"),
        ({"kept_tokens": 29}, "kept with 29 of 30"),
        ({"tokens": -1, "kept_tokens": -1}, "of -1 tokens"),
        ({"score": math.nan}, "say None when unknown"),
        ({"similarity": math.inf}, "say None when unknown"),
        ({"kind": "dropped", "reason": "over_quota"}, "dropped with 30"),
    ],
)
def test_a_decision_that_makes_no_sense_is_refused(changed: dict[str, Any], problem: str) -> None:
    with pytest.raises(ReportError, match=problem):
        report(decisions=(dataclasses.replace(KEPT, **changed), LEFT))


def test_idle_structure_and_outside_follow_from_the_figures() -> None:
    sound = report(window=150)
    assert (sound.idle, sound.structure, sound.outside, sound.whole) == (50, 5, 30, 150)


def test_tokens_saved_by_merging_are_taken_off_the_drawn_parts() -> None:
    """Otherwise the bar would be longer than the window it stands for."""
    merged = report(used=41)
    assert [(part.name, part.tokens, part.width) for part in merged.parts] == [
        ("system", 15, 14),
        ("rag", 30, 27),
        ("structure", -4, 0),
        ("idle", 59, 59),
        ("reserve", 20, 20),
    ]


def test_a_report_keeps_its_figures_when_the_caller_goes_on_counting() -> None:
    """The builder's own dictionaries must not reach into a finished report."""
    fixed = {"system": 15}
    sound = report(fixed=fixed)
    fixed["system"] = 99
    assert sound.fixed == {"system": 15}


def test_what_if_runs_the_replay_and_says_so_when_there_is_none() -> None:
    asked: list[int] = []

    def replay(max_tokens: int) -> AssemblyReport:
        asked.append(max_tokens)
        return report(budget=max_tokens)

    assert report(replay=replay).what_if(max_tokens=70).budget == 70
    assert asked == [70]
    with pytest.raises(ConfigurationError, match="fresh build"):
        report().what_if(max_tokens=70)


def test_the_replay_is_no_part_of_what_a_report_says() -> None:
    def replay(max_tokens: int) -> AssemblyReport:
        return report(budget=max_tokens)

    with_replay = report(replay=replay)
    assert with_replay == report()
    assert "replay" not in repr(with_replay)
    assert "replay" not in with_replay.to_dict()


def test_cost_charges_the_cached_prefix_at_its_own_price() -> None:
    sample = context_report()
    whole = sample.cost(input_per_million=2.0, output_per_million=8.0)
    again = sample.cost(input_per_million=2.0, cached_per_million=0.5, previous=sample)
    assert whole.total == pytest.approx((6_250 * 2.0 + 1_600 * 8.0) / 1e6)
    assert again.cached > 0
    assert again.total < whole.total


@pytest.mark.parametrize("price", [-1.0, math.nan, math.inf])
def test_a_price_that_is_none_is_refused(price: float) -> None:
    with pytest.raises(ConfigurationError, match="input_per_million"):
        context_report().cost(input_per_million=price)


def test_count_counts_decisions_of_one_kind() -> None:
    assert [conversation_report().count(kind) for kind in REASONS_OF] == [12, 4, 41, 3]


@given(text)
def test_a_preview_is_one_short_printable_line(content: str) -> None:
    preview = preview_of(content)
    assert len(preview) <= 120
    assert preview.splitlines() in ([], [preview])
    assert preview.encode("utf-8").decode("utf-8") == preview


def test_a_preview_says_when_it_is_cut() -> None:
    assert preview_of("a" * 121).endswith("…")
    assert preview_of(" " * 1000 + "a").endswith("…")
    assert preview_of("short") == "short"


def test_decisions_become_a_data_frame() -> None:
    """An analyst should not have to parse JSON to count reasons."""
    pytest.importorskip("pandas")
    made = context_report()
    frame = made.to_dataframe()
    assert len(frame) == len(made.decisions)
    assert list(frame["reason"]) == [one.reason for one in made.decisions]
    assert frame.loc[frame["kind"] != "dropped", "kept_tokens"].sum() > 0
    assert frame.attrs["budget"] == made.budget


def test_a_missing_pandas_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """An ImportError from inside the library looks like a defect of it."""
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ConfigurationError, match="pip install pandas"):
        context_report().to_dataframe()


def test_the_whole_text_stays_off_the_wire() -> None:
    """A report is kept and sent where the documents may not go."""
    source = CallableSource("rag", lambda _query: ["A" * 100 + " secret " + "B" * 100])
    made = ContextBuilder().assemble("What?", sources=[source], budget=500).report
    assert "secret" in (made.decisions[0].text or "")
    read = AssemblyReport.from_dict(made.to_dict())
    assert read.decisions[0].text is None
    assert read == made
    assert "B" * 50 not in made.to_json()
