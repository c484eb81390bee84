"""The standing rules of removed messages, for the note in their place."""

from __future__ import annotations

from itertools import compress
from typing import TYPE_CHECKING

from muntin.conversations.rules import (
    merged,
    rules_in,
    rules_section,
    rules_tokens,
    without_rules,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muntin.conversations.fitting.draft import Draft, Plan
    from muntin.messages import MessageView
    from muntin.prompts import PromptRegistry

__all__ = ("rules_of_what_is_out", "tokens_of_rules")


def rules_of_what_is_out(draft: Draft, budget: int, prompts: PromptRegistry) -> str:
    """Write the section of rules for the messages that are out now; empty when there is none."""
    return _section(draft, budget, prompts, [not size for size in draft.size])


def tokens_of_rules(draft: Draft, plan: Plan, marked: Sequence[bool]) -> int:
    """Count the section that the rules of some units would take if all of them went.

    Args:
        draft: The conversation.
        plan: Its budget bounds the section.
        marked: One value for each of the draft's units.
    """
    indices = {index for unit in compress(draft.units, marked) for index in unit.indices}
    is_out = [index in indices for index in range(len(draft.views))]
    section = _section(draft, plan.budget, plan.prompts, is_out)
    return draft.counter(section) + 1 if section else 0


def _section(draft: Draft, budget: int, prompts: PromptRegistry, is_out: Sequence[bool]) -> str:
    notes: list[str] = []
    said: list[MessageView] = []
    for index in compress(range(len(is_out)), is_out):
        view = draft.views[index]
        if view.injected:
            if index in draft.earlier_notes():
                notes += without_rules(view.text)[1]
        elif view.is_user_turn:
            said.append(view)
    rules = merged(notes, rules_in(said))
    if not rules:
        return ""
    room = budget - draft.overhead - sum(draft.size[: draft.leading])
    return rules_section(
        rules, max_tokens=rules_tokens(max(room, 0)), counter=draft.counter, prompts=prompts
    )
