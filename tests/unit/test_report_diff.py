"""The comparison of two reports: what moved, and how much of the prompt a cache can reuse."""

from __future__ import annotations

import dataclasses
import json

from inline_snapshot import snapshot

from muntin.report import AssemblyReport, Piece
from report_samples import context_report, later_context_report


def pieced(*texts: str) -> AssemblyReport:
    """Make a report of which only the pieces matter; a word is a token."""
    pieces = tuple(Piece.of(f"part {i}", text, len(text.split())) for i, text in enumerate(texts))
    used = sum(piece.tokens for piece in pieces)
    return AssemblyReport(
        kind="context", budget=100, used=used, counter="words", exact=True, pieces=pieces,
        fixed={"text": used},
    )  # fmt: skip


def test_a_diff_reads_as_a_table() -> None:
    assert str(later_context_report().diff(context_report())) == snapshot("""\
6,250 -> 5,735 tokens used (-515)
stable prefix: 1,446 tokens, 582 characters; first change in rag 4

part       before  after  change
rag         2,790  2,232    -558
history     1,904  2,142    +238
tool           90      0     -90
structure      96     -9    -105
idle          150    665    +515

in   +238  history-0008  The Treaty of Nystad ended the Great Northern War in 1721 and gave Russia…

out  -275  rag-0001  over_quota  Cut the dovetails before the pins if the drawer fronts are figured…
out  -127  rag-0002  over_quota  发票号码 20240117-03 已于一月十七日付款，余额为零。 [2]
out  -312  rag:3  over_quota  Error 0x80070057 after the update: the parameter is incorrect. Rollin…
out  -90  tool:0  not offered  The Treaty of Nystad ended the Great Northern War in 1721 and gave R…

size +156  rag:12  She prefers window seats, vegetarian meals, and trains over planes below six hou…\
""")  # noqa: E501 - a snapshot of lines of 100 cells


def test_nothing_changed_is_said_in_a_line() -> None:
    assert str(context_report().diff(context_report())) == "nothing changed: 6,250 tokens used"


def test_the_prefix_ends_at_the_first_changed_character() -> None:
    diff = pieced("be brief\n", "one two three\n", "why").diff(
        pieced("be brief\n", "one two four\n", "why")
    )
    assert (diff.stable_prefix_tokens, diff.first_changed_character) == (2, 17)
    assert (diff.first_changed, diff.first_changed_token) == ("part 1", 2)


def test_a_counter_makes_the_prefix_exact() -> None:
    """Whole pieces only is a lower bound: a long system prompt changed at its end would count 0."""
    before, after = pieced("a b c d e\n"), pieced("a b c d f\n")
    assert after.diff(before).stable_prefix_tokens == 0
    assert after.diff(before, counter=lambda text: len(text.split())).stable_prefix_tokens == 4


def test_reports_read_from_the_wire_are_compared_by_whole_pieces() -> None:
    before, after = pieced("a b\n", "c d\n"), pieced("a b\n", "c e\n")
    loaded = AssemblyReport.from_dict(json.loads(before.to_json()))
    diff = after.diff(loaded, counter=len)
    assert (diff.stable_prefix_tokens, diff.stable_prefix_characters) == (2, 4)


def test_growing_and_shrinking_name_the_piece_that_came_or_went() -> None:
    short, long = pieced("a\n"), pieced("a\n", "b\n")
    assert long.diff(short).first_changed == short.diff(long).first_changed == "part 1"
    assert long.diff(long).first_changed is None


def test_repeated_passages_pair_up_in_order() -> None:
    """Two equal passages without ids are two, and dropping one of them is one change."""
    report = context_report()
    anonymous = tuple(dataclasses.replace(one, id="", preview="same") for one in report.decisions)
    same = dataclasses.replace(report, decisions=anonymous)
    assert not same.diff(same).came_in + same.diff(same).went_out


def test_what_went_out_says_why_it_did() -> None:
    diff = later_context_report().diff(context_report())
    reasons = {change.one.label: change.after and change.after.reason for change in diff.went_out}
    assert reasons == snapshot(
        {
            "rag-0001": "over_quota",
            "rag-0002": "over_quota",
            "rag:3": "over_quota",
            "tool:0": None,
        }
    )
