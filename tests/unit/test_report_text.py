"""The terminal's table: what a reader sees first must be right, aligned, and safe to print."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest
from inline_snapshot import snapshot

from muntin.report import AssemblyReport
from muntin.report.columns import cells, cut, pad, table
from report_samples import (
    context_report,
    conversation_report,
    hostile_report,
    large_report,
    later_context_report,
)

if TYPE_CHECKING:
    from collections.abc import Callable

EVERY = (context_report, later_context_report, conversation_report, hostile_report, large_report)


def test_a_context_reads_as_a_sentence_a_bar_and_a_table() -> None:
    assert str(context_report()) == snapshot("""\
context: 6,250 of 6,400 tokens used, 150 idle, counted with o200k_base (exact)
question: What is a muntin?
[sssssMMMMMMMMMMMRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRRHHHHHHHHHHHHHHHHHHHHHHT+..__-------------------]
  s system 388  q question 14  M memory 968  R rag 2,790  H history 1,904  T tool 90  + structure 96
  . idle 150  _ outside 192  - reserve 1,600

source   offered  kept  short  dropped  double  quota  lent  borrowed   used
memory         7     5      0        2       2  1,300   332         0    968
rag           28    12      1       15       6  2,500     0       438  2,790
history       11     8      0        3       0  1,500     0       404  1,904
tool           2     1      0        1       0    600   510         0     90
shortened:  does_not_fit 1
dropped:  over_quota 9  near_duplicate 6  beyond_top_k 3  exact_duplicate 2  join_overflow 1
note: source 'web' was skipped: no answer within 2.0 s\
""")


def test_a_conversation_shows_roles_and_events() -> None:
    assert str(conversation_report()) == snapshot("""\
conversation: 7,984 of 8,000 tokens used, 16 idle, counted with estimate o200k_base (estimate)
question: Which invoice is still open?
[ttttfUUUUUUUUUUAAAAAAAAAAAAAAAAAAATTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTrrrrrdm-------------------]
  t tools 412  f framing 61  S system 60  U user 1,063  A assistant 1,953  T tool 3,781  r recap 480
  d digest 133  m marks 44  + structure -3  . idle 16  - reserve 2,000

role       offered  kept  short  summed  dropped  double   used
system           1     1      0       0        0       0     60
user            14     2      1      11        0       0  1,063
assistant       15     3      1      10        1       0  1,953
tool            30     6      2      20        2       0  3,781
shortened:  oversized 4
summarised:  digested 27  compacted 14
dropped:  superseded 3
superseded: 31,870 -> 24,115 tokens, 4 covered; older reads of two files
digest: 24,115 -> 15,020 tokens, 18 covered; facts
compaction: 15,020 -> 7,204 tokens, 30 covered; one model call, recap of 480 tokens
recall: 7,204 -> 7,984 tokens, 1 covered; by the question
note: counted with an estimate: pass counter_for(model) for the model's own count\
""")


@pytest.mark.parametrize("make", EVERY)
def test_no_line_is_wider_than_a_hundred_cells(make: Callable[[], AssemblyReport]) -> None:
    """A wrapped table is unreadable, and terminals are narrow."""
    assert max(cells(line) for line in str(make()).splitlines()) <= 100


@pytest.mark.parametrize("make", EVERY)
def test_the_bar_is_always_full(make: Callable[[], AssemblyReport]) -> None:
    """Rounding each width for itself would leave the bar ragged."""
    bar = next(line for line in str(make()).splitlines() if line.startswith("["))
    assert len(bar) == 98


def test_nothing_a_document_says_reaches_the_terminal_as_a_control_character() -> None:
    """A passage with an escape sequence could recolour, hide or retitle the reader's terminal."""
    report = dataclasses.replace(context_report(), question="\x1b[2J\x9b31m", notes=("\r\x00",))
    assert not {"\x1b", "\x9b", "\r", "\x00"} & set(str(report))
    assert str(hostile_report()).encode("utf-8")


def test_every_part_has_a_letter_of_its_own() -> None:
    """Two parts with one letter would look like one."""
    report = AssemblyReport(
        kind="context", budget=100, used=50, counter="c", exact=True,
        fixed={"aa": 20, "a": 10, "aaa": 20},
    )  # fmt: skip
    legend = str(report).splitlines()[2]
    assert legend == snapshot("  a aa 20  1 a 10  2 aaa 20  . idle 50")


def test_wide_characters_take_two_cells_and_marks_none() -> None:
    assert [cells("abc"), cells("中文"), cells("é")] == [3, 4, 1]
    assert pad("中", 4) == "中  "
    assert cut("中文字", 5) == "中文…"


def test_columns_stand_under_their_headings() -> None:
    assert table([["name", "n"], ["中文", "12"]], first_width=8) == ["name   n", "中文  12"]


@pytest.mark.parametrize("make", EVERY)
@pytest.mark.parametrize("width", [40, 60, 80, 100])
def test_a_report_fits_the_terminal_and_keeps_its_figures(
    make: Callable[[], AssemblyReport], width: int
) -> None:
    """A bar that wraps is two bars, and a table cut at the right loses the tokens used."""
    report = make()
    lines = report.to_text(width).split("\n")
    assert max(map(cells, lines)) <= width
    assert any(line.startswith("[") and line.endswith("]") for line in lines)
    if width >= 80 and report.sources:
        head = next(line for line in lines if line.startswith(("source", "role")))
        assert head.endswith("used")


def test_the_width_is_that_of_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """`print(report)` in a terminal of 80 columns must not wrap; in a file it must not change."""
    report = context_report()
    whole = str(report)
    monkeypatch.setenv("COLUMNS", "80")
    assert str(report) == whole
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert max(map(cells, str(report).split("\n"))) <= 80
