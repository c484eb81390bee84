"""Flows, threads and files: how policies run and how files are replaced.

It decides how a policy that asks a model runs sync and async, and how files are replaced safely. It
imports `messages` and everything below.
"""

from __future__ import annotations

from muntin.runtime.comparing import Same, are_equal, characters_of, common_start, remembered
from muntin.runtime.files import (
    discard_leftovers,
    exclusive,
    keep_copy,
    replace_file,
    replacing,
    write_file,
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
)
from muntin.runtime.search import largest_within, longest_text
from muntin.runtime.shares import fair_limit, fair_shares, split
from muntin.runtime.threads import in_thread

__all__ = (
    "AnySummarizer",
    "Flow",
    "Same",
    "Summarizer",
    "SummaryRequest",
    "are_equal",
    "arun",
    "characters_of",
    "common_start",
    "discard_leftovers",
    "exclusive",
    "fair_limit",
    "fair_shares",
    "in_thread",
    "keep_copy",
    "largest_within",
    "longest_text",
    "remembered",
    "replace_file",
    "replacing",
    "run",
    "split",
    "summarizer_of",
    "text_of",
    "write_file",
)
