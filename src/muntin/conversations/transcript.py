"""What a summariser is given: a conversation as plain lines that no text in it can forge.

Each message is one entry, `speaker: words`. Only entries start at the left margin: further lines of
a message are indented, so no text can pretend to be another speaker. Tool calls are named with
their arguments, long tool results are shortened (people's words matter more), and media are
replaced by a line that names it. What does not fit one request is divided into parts.

It does not decide which messages are summarised.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from muntin.counting import truncate_to_tokens
from muntin.runtime import largest_within
from muntin.text import clean_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from muntin.counting import TokenCounter
    from muntin.messages import MessageView
    from muntin.prompts import PromptRegistry

__all__ = ("Transcriber", "parts_of")

_RESULT_TOKENS = 400
"""A tool result's share: enough for its head, its end and the error in it."""
_ARGUMENT_TOKENS = 200
_INDENT = "  "
_LOOKS_LIKE_ENTRY = re.compile(r"(?i)^(?:system|user|assistant|tool|human|ai)\b[^:\n]{0,60}:")


class Transcriber:
    """Write messages down for a summariser."""

    def __init__(
        self, prompts: PromptRegistry, counter: TokenCounter, *, entry_tokens: int | None
    ) -> None:
        self._prompts = prompts
        self._counter = counter
        self._entry_tokens = entry_tokens
        """Tokens one message may take; more is cut out of its middle. None: no bound."""
        self._omitted = prompts.get("compaction.omitted")

    def entries(self, views: Sequence[MessageView], tools: dict[str, str]) -> list[str]:
        """Write one entry for each message with content.

        Args:
            views: The messages, in order.
            tools: Names of tools by call id, for results whose call is elsewhere. Added to.
        """
        written: list[str] = []
        for view in views:
            tools.update({call.id: call.name for call in view.calls if call.name})
            written += [entry for entry in self._entries(view, tools) if entry]
        return written

    def recap(self, text: str) -> str:
        """Write an earlier recap down; lines in it that look like an entry are indented."""
        lines = clean_text(text).splitlines()
        return "\n".join(
            _INDENT + line if at and _LOOKS_LIKE_ENTRY.match(line) else line
            for at, line in enumerate(lines)
        )

    def _entries(self, view: MessageView, tools: dict[str, str]) -> Iterable[str]:
        said = [view.text] if view.text.strip() else []
        said += [thing.stub for thing in view.media]
        for call in view.calls:
            arguments = self._shortened(call.arguments, _ARGUMENT_TOKENS)
            said.append(
                self._prompts.render("compaction.call", name=call.name, arguments=arguments)
            )
        said += [self._shortened(text, _RESULT_TOKENS) for text in view.server]
        if said:
            yield self._entry(view.role, view.name, "\n".join(said))
        for result in view.results:
            name = tools.get(result.call_id) or view.name
            yield self._entry("tool", name, self._shortened(result.text, _RESULT_TOKENS))

    def _entry(self, role: str, name: str | None, text: str) -> str:
        speaker = f"{role} ({' '.join(name.split())})" if name else role
        if self._entry_tokens is not None:
            text = self._shortened(text, self._entry_tokens)
        lines = clean_text(text).strip().splitlines()
        return f"{speaker}: " + f"\n{_INDENT}".join(lines)

    def _shortened(self, text: str, tokens: int) -> str:
        return truncate_to_tokens(text, tokens, self._counter, keep="ends", marker=self._omitted)


def parts_of(entries: Sequence[str], room: int, counter: TokenCounter) -> list[str]:
    """Join entries into as few parts as fit `room` tokens each, in order.

    An entry is never parted, so one that is larger than the space is a part of its own: whoever
    writes entries bounds them.
    """
    parts: list[str] = []
    start = 0
    while start < len(entries):
        end = _reach(entries, start, room, counter)
        parts.append("\n".join(entries[start:end]))
        start = end
    return parts


def _reach(entries: Sequence[str], start: int, room: int, counter: TokenCounter) -> int:
    """Find where a part that begins at `start` ends, counting joined text."""
    return largest_within(
        room,
        lambda end: counter("\n".join(entries[start:end])),
        low=start + 1,
        high=len(entries),
        start=start + 2,
    )
