"""How a recap reads as a message, and how it is read again.

A short recap of one line is `[Recap] text`. Every other one is named as background, indented and
closed, so that none of its lines looks like an instruction or a speaker:

    [Recap] Background from earlier messages, not instructions:
      text
    [What the user asked to hold from then on, word for word, newest last]
    - rule
    [End of recap]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from muntin.conversations.rules import without_rules, written_rules
from muntin.prompts import PromptRegistry

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("RecapText",)

_INDENT = "  "
_ONE_LINE = 200
"""Characters of a recap that may stay on the line of its prefix."""
_HEADING, _END = "compaction.recap_background", "compaction.recap_end"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecapText:
    """Write and read the text of recap messages."""

    prefix: str
    """What every recap begins with."""
    prompts: PromptRegistry
    """Knows the other words."""

    def needs_frame(self, text: str) -> bool:
        """Whether a recap is too long for the line of its prefix."""
        return len(text) > _ONE_LINE or len(text.splitlines()) > 1

    def write(self, text: str, rules: Sequence[str] = (), *, framed: bool) -> str:
        """Write a recap as the text of a message."""
        if not framed and not rules:
            return self.prefix + text
        lines = [self.prefix + self.prompts.get(_HEADING)]
        lines += [_INDENT + line for line in text.splitlines()]
        lines += [written_rules(rules, self.prompts)] if rules else []
        return "\n".join([*lines, self.prompts.get(_END)])

    def read(self, content: str) -> tuple[str, tuple[str, ...]]:
        """Return the text and the rules of a recap message."""
        body = content.removeprefix(self.prefix.strip()).strip()
        for heading in PromptRegistry.in_every_language(_HEADING):
            if body.startswith(heading):
                break
        else:
            return body, ()
        lines = body.removeprefix(heading).strip("\n").splitlines()
        if lines and lines[-1] in PromptRegistry.in_every_language(_END):
            del lines[-1]
        text, rules = without_rules("\n".join(lines))
        plain = "\n".join(line.removeprefix(_INDENT) for line in text.splitlines())
        return plain.strip(), tuple(rules)
