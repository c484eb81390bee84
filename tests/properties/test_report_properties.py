"""What a report promises about any context: it adds up, it travels, and it never breaks a page."""

from __future__ import annotations

import copy
import json
import pickle

from hypothesis import given

from muntin.report import AssemblyReport
from muntin.report.html import to_fragment
from strategies import reports


@given(reports())
def test_the_parts_add_up_to_the_window(report: AssemblyReport) -> None:
    """A bar that does not add up hides tokens, which is what a report is there to prevent."""
    assert sum(part.tokens for part in report.parts) == report.whole
    assert report.used + report.idle == report.budget


@given(reports())
def test_the_drawn_widths_add_up_to_the_window_and_none_is_negative(report: AssemblyReport) -> None:
    """Tokens that merge across a border must not draw a bar longer than the window."""
    assert sum(part.width for part in report.parts) == report.whole
    assert all(part.width >= 0 for part in report.parts)


@given(reports())
def test_offered_is_kept_and_shortened_and_summarised_and_dropped(report: AssemblyReport) -> None:
    """Conservation: nothing offered is left unaccounted for."""
    for source in report.sources:
        own = [one for one in report.decisions if one.source == source.name]
        kinds = (source.placed, source.shortened, source.summarised, source.dropped_total)
        assert sum(kinds) == source.offered == len(own)


@given(reports())
def test_the_written_form_reads_back_as_the_same_report(report: AssemblyReport) -> None:
    text = report.to_json()
    assert text.encode("utf-8")
    assert AssemblyReport.from_dict(json.loads(text)) == report
    assert AssemblyReport.from_dict(report.to_dict()) == report


@given(reports())
def test_a_report_survives_copies_and_process_borders(report: AssemblyReport) -> None:
    """Frameworks deep-copy and pickle what they carry; a lost report is a lost explanation."""
    assert pickle.loads(pickle.dumps(report)) == report
    assert copy.deepcopy(report) == report


@given(reports())
def test_a_report_never_differs_from_itself(report: AssemblyReport) -> None:
    diff = report.diff(report)
    assert diff.unchanged
    assert not diff.came_in + diff.went_out + diff.resized


@given(reports(), reports())
def test_what_came_in_is_what_goes_out_the_other_way(
    one: AssemblyReport, other: AssemblyReport
) -> None:
    there, back = one.diff(other), other.diff(one)
    assert len(there.came_in) == len(back.went_out)
    assert len(there.resized) == len(back.resized)
    assert there.stable_prefix_characters == back.stable_prefix_characters


@given(reports(), reports())
def test_every_view_can_be_printed_and_saved(one: AssemblyReport, other: AssemblyReport) -> None:
    """A surrogate or a control character in a document must not make its report unwritable."""
    page = one.to_html(previous=other)
    for view in (str(one), str(one.diff(other)), to_fragment(one), page):
        assert view.encode("utf-8")
    assert page.count("</script>") == (2 if one.decisions else 1)
