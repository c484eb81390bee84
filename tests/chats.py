"""Conversations and summarisers for tests of compaction: small, numbered, easy to recognise."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from muntin.messages.message import Message, ToolCall

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conftest import EntryPoint
    from muntin.conversations.compaction import Compaction, HistoryCompactor

__all__ = ("Recorder", "call", "chat", "compact", "fold", "result", "said", "texts")


def said(number: int, *, tokens: int = 10, role: str | None = None) -> Message:
    """One numbered message of so many tokens by `count_tokens`; user and assistant take turns."""
    speaker = role or ("user" if number % 2 == 0 else "assistant")
    return Message(f"m{number:03d}".ljust(tokens * 4, "."), speaker)  # pyright: ignore[reportArgumentType] - roles of tests


def chat(size: int, *, tokens: int = 10, start: int = 0) -> list[Message]:
    """Numbered messages in turn."""
    return [said(number, tokens=tokens) for number in range(start, start + size)]


def call(*ids: str, text: str = "", tokens: int = 10) -> Message:
    """An assistant message that calls a tool once for each id."""
    calls = tuple(ToolCall(name, "look", '{"at": "%s"}' % name) for name in ids)  # noqa: UP031 - braces
    return Message(text, "assistant", tool_calls=calls)


def result(name: str, text: str | None = None, *, tokens: int = 10) -> Message:
    """The result of one call."""
    content = f"result {name}".ljust(tokens * 4, ".") if text is None else text
    return Message(content, "tool", tool_call_id=name)


def texts(messages: Sequence[Message]) -> list[str]:
    """The texts without their filling, to compare with."""
    return [str(message.content).rstrip(".") for message in messages]


def fold(
    entry_point: EntryPoint, compactor: HistoryCompactor, history: list[Any], summarize: Any = None
) -> Compaction:
    """Compact through one of the entry points, and get the account with the messages."""
    if entry_point.name == "sync":
        return compactor.fold(history, summarize=summarize)
    return asyncio.run(compactor.afold(history, asummarize=summarize))


def compact(
    entry_point: EntryPoint, compactor: HistoryCompactor, history: list[Any], summarize: Any = None
) -> list[Any]:
    """Compact through one of the entry points."""
    if entry_point.name == "sync":
        return compactor.compact(history, summarize=summarize)
    return asyncio.run(compactor.acompact(history, asummarize=summarize))


class Recorder:
    """A summariser that answers from a script and keeps what it was given.

    The last reply is given for ever; an exception among them is raised.
    """

    def __init__(self, *replies: str | BaseException | None) -> None:
        self._replies = list(replies) or ["SUM"]
        self.texts: list[str] = []
        self.instructions: list[str] = []
        self.max_tokens: list[int] = []

    @property
    def calls(self) -> int:
        return len(self.texts)

    def __call__(self, text: str, instruction: str, *, max_tokens: int = 0) -> str | None:
        self.texts.append(text)
        self.instructions.append(instruction)
        self.max_tokens.append(max_tokens)
        reply = self._replies[min(self.calls, len(self._replies)) - 1]
        if isinstance(reply, BaseException):
            raise reply
        return reply
