"""Overrides written for agentmaker's prompt registry work with this one."""

from __future__ import annotations

import pytest

from muntin import HistoryCompactor, Message, PromptRegistry
from muntin.errors import PromptError

OVERRIDES = {
    "context.summary": "Shorten the record.",
    "context.summary_merge": "Merge the record.",
    "context.summary_prefix": "[So far] ",
    "context.current_question": "[Question]\n{query}",
}


def test_keys_of_agentmaker_replace_the_texts_they_stand_for() -> None:
    prompts = PromptRegistry().with_overrides(OVERRIDES)

    assert prompts.get("compaction.summary") == "Shorten the record."
    assert prompts.get("compaction.merge") == "Merge the record."
    assert prompts.get("context.question") == "[Question]"


def test_a_recap_begins_with_the_prefix_that_was_given() -> None:
    """An override that is accepted and has no effect is worse than one that is refused."""
    history = [Message(f"Parcel {n} left depot {n}. " * 20, "user") for n in range(8)]
    prompts = PromptRegistry().with_overrides(OVERRIDES)

    recap = HistoryCompactor(None, trigger_tokens=200, prompts=prompts).compact(history)[0]

    assert str(recap.content).startswith("[So far]")


def test_a_question_text_without_the_question_is_refused() -> None:
    with pytest.raises(PromptError, match="must end with"):
        PromptRegistry().override({"context.current_question": "[Question]"})
