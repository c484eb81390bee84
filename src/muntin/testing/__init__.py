"""Doubles and conformance suites, for your tests as much as for ours.

A double here is honest: `ScriptedLLM` says exactly what it was told to and runs out loudly;
`FakeEmbedder` gives equal texts equal vectors; failing and slow summarisers fail and are slow. The
suites are classes to subclass, so that a source, a counter or a store of your own is held to the
same promises.
"""

from __future__ import annotations

from muntin.testing.doubles import (
    FailingSummarizer,
    FakeEmbedder,
    ScriptedLLM,
    ScriptedReply,
    SlowSummarizer,
    words_counter,
)
from muntin.testing.strict import Provider, RequestOverflow, RequestRefused, check_request
from muntin.testing.suites import CounterSuite, SourceSuite, StateStoreSuite, ToolResultStoreSuite

__all__ = (
    "CounterSuite",
    "FailingSummarizer",
    "FakeEmbedder",
    "Provider",
    "RequestOverflow",
    "RequestRefused",
    "ScriptedLLM",
    "ScriptedReply",
    "SlowSummarizer",
    "SourceSuite",
    "StateStoreSuite",
    "ToolResultStoreSuite",
    "check_request",
    "words_counter",
)
