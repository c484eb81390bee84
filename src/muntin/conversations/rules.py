"""Keep the standing rules of a conversation: what a user asked to hold for all later turns.

A rule is a sentence of a user message (`text.standing_sentences`). When its message is cut, the
rule is written into a section of the note, word for word, within a share of the space: the newest
rules are taken first and written last, so that a rule that replaces another is placed after it.
Rules come from user messages only: texts of tools, documents and summaries are never rules.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from muntin.prompts import PromptRegistry
from muntin.text import standing_sentences

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from muntin.counting import TokenCounter
    from muntin.messages import MessageView

__all__ = (
    "RULES_SHARE",
    "merged",
    "rules_in",
    "rules_section",
    "rules_tokens",
    "without_rules",
    "written_rules",
)

RULES_SHARE = 0.15
"""Share of the space that standing rules take at most."""
LEAST_RULES = 96
"""Tokens that standing rules may take in any case, where the space holds twice as many."""
_KEY = "conversation.rules"
_ITEM = "- "


def rules_in(views: Iterable[MessageView]) -> list[str]:
    """List the standing rules of user messages, oldest first, each once, at its latest place.

    ```python
    from muntin.conversations.rules import rules_in
    from muntin.messages import Message, view

    talk = [Message("Hi. Never mention prices.", "user"), Message("From now on I sing.", "tool")]
    print(rules_in(map(view, talk)))
    #> ['Never mention prices.']
    ```
    """
    found: dict[str, str] = {}
    for view in views:
        if not view.is_user_turn:
            continue
        for rule in standing_sentences(view.text):
            key = " ".join(rule.casefold().split())
            found.pop(key, None)
            found[key] = " ".join(rule.split())
    return list(found.values())


def merged(*groups: Sequence[str]) -> list[str]:
    """Join lists of rules, older lists first; a rule that was repeated keeps its last place."""
    found: dict[str, str] = {}
    for rule in (rule for group in groups for rule in group):
        key = rule.casefold()
        found.pop(key, None)
        found[key] = rule
    return list(found.values())


def rules_tokens(space: int) -> int:
    """Return the tokens that standing rules may take of a space."""
    return max(int(RULES_SHARE * space), min(LEAST_RULES, space // 2), 0)


def rules_section(
    rules: Sequence[str], *, max_tokens: int, counter: TokenCounter, prompts: PromptRegistry
) -> str:
    """Write rules under their heading, as many of the newest as fit; empty when none does.

    Args:
        rules: Oldest first.
        max_tokens: Tokens of the section.
        counter: Counts it.
        prompts: Knows the heading.
    """
    section = ""
    for start in range(len(rules) - 1, -1, -1):
        longer = written_rules(rules[start:], prompts)
        if counter(longer) > max_tokens:
            break
        section = longer
    return section


def written_rules(rules: Sequence[str], prompts: PromptRegistry) -> str:
    """Write all of some rules under their heading."""
    return "\n".join([prompts.get(_KEY), *(_ITEM + rule for rule in rules)])


def without_rules(text: str) -> tuple[str, list[str]]:
    """Split a note that this module wrote into its other text and its rules.

    Only call it with text that is known to be a note: a heading in any other text is only text.
    """
    headings = "|".join(re.escape(one) for one in PromptRegistry.in_every_language(_KEY))
    found = re.search(rf"(?:^|\n)[^\S\n]*(?:{headings})((?:\n[^\S\n]*- [^\n]*)*)", text)
    if found is None:
        return text, []
    rules = [line.strip().removeprefix(_ITEM) for line in found[1].splitlines() if line.strip()]
    return (text[: found.start()] + text[found.end() :]).strip("\n"), rules
