"""Flows, judgement of summaries, threads and files.

It decides how a policy that asks a model runs sync and async, how entry points share parameters,
whether a summary may be used, and how files are replaced safely. It imports `messages` and
everything below.
"""

from __future__ import annotations

from muntin.runtime.arguments import arguments_of
from muntin.runtime.calls import Call, CallFlow, aperform, method_call, perform, sleep_call
from muntin.runtime.comparing import Same, are_equal, characters_of, common_start, remembered
from muntin.runtime.driving import adrive, drive
from muntin.runtime.files import (
    discard_leftovers,
    exclusive,
    keep_copy,
    replace_file,
    replacing,
    write_file,
    writing,
)
from muntin.runtime.flow import (
    AnySummarizer,
    Flow,
    Summarizer,
    SummaryRequest,
    arun,
    run,
    summarizer_of,
    text_of,
    window_of,
)
from muntin.runtime.judgement import (
    SUMMARY_FAULTS,
    SummaryFault,
    bare_summary,
    fault_of,
    has_content,
)
from muntin.runtime.search import largest_within, longest_text
from muntin.runtime.shares import fair_limit, fair_shares, split
from muntin.runtime.threads import in_thread
from muntin.runtime.workers import LARGE, off_loop, size_of

__all__ = (
    "LARGE",
    "SUMMARY_FAULTS",
    "AnySummarizer",
    "Call",
    "CallFlow",
    "Flow",
    "Same",
    "Summarizer",
    "SummaryFault",
    "SummaryRequest",
    "adrive",
    "aperform",
    "are_equal",
    "arguments_of",
    "arun",
    "bare_summary",
    "characters_of",
    "common_start",
    "discard_leftovers",
    "drive",
    "exclusive",
    "fair_limit",
    "fair_shares",
    "fault_of",
    "has_content",
    "in_thread",
    "keep_copy",
    "largest_within",
    "longest_text",
    "method_call",
    "off_loop",
    "perform",
    "remembered",
    "replace_file",
    "replacing",
    "run",
    "size_of",
    "sleep_call",
    "split",
    "summarizer_of",
    "text_of",
    "window_of",
    "write_file",
    "writing",
)
