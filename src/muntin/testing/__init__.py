"""Test doubles, conformance suites and strict validators of requests, for your tests and ours.

`ScriptedLLM` gives prepared replies and raises when they run out; `FakeEmbedder` gives equal texts
equal vectors; the summarisers fail or are slow. A suite is a class to subclass: it checks your
source, counter or store. A validator refuses a request body that its provider refuses.
"""

from __future__ import annotations

from muntin.testing.adapters import RetrieverSuite, SummarizerSuite
from muntin.testing.doubles import (
    FailingSummarizer,
    FakeEmbedder,
    ScriptedLLM,
    ScriptedReply,
    SlowSummarizer,
    words_counter,
)
from muntin.testing.record_suites import RecordStoreSuite
from muntin.testing.strict import Provider, check_request
from muntin.testing.suites import CounterSuite, SourceSuite, StateStoreSuite, ToolResultStoreSuite
from muntin.testing.wire import (
    BoundItems,
    BoundThinking,
    Refusal,
    RequestOverflow,
    RequestRefused,
    SystemRole,
    check_alternating,
    check_anthropic,
    check_gemini,
    check_mistral,
    check_openai_chat,
    check_openai_responses,
)

__all__ = (
    "BoundItems",
    "BoundThinking",
    "CounterSuite",
    "FailingSummarizer",
    "FakeEmbedder",
    "Provider",
    "RecordStoreSuite",
    "Refusal",
    "RequestOverflow",
    "RequestRefused",
    "RetrieverSuite",
    "ScriptedLLM",
    "ScriptedReply",
    "SlowSummarizer",
    "SourceSuite",
    "StateStoreSuite",
    "SummarizerSuite",
    "SystemRole",
    "ToolResultStoreSuite",
    "check_alternating",
    "check_anthropic",
    "check_gemini",
    "check_mistral",
    "check_openai_chat",
    "check_openai_responses",
    "check_request",
    "words_counter",
)
