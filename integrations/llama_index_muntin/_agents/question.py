"""Keep the question of a run: once, protected, and restored if a memory removed it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole

from llama_index_muntin._conversion import to_muntin
from llama_index_muntin._shapes import SHAPE
from muntin.prompts import DEFAULT_PROMPTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from llama_index.core.memory import BaseMemory

    from muntin.messages import Message

_NOTES = tuple(
    DEFAULT_PROMPTS.get(key).partition("{")[0].strip()
    for key in ("compaction.recap_prefix", "conversation.digest", "conversation.omitted")
)
"""How recaps and notes of facts begin."""

__all__ = ("restored", "with_question", "without_repeat")


def without_repeat(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Drop the leftovers of a retry: the repeated question, and an empty reply."""
    kept: list[ChatMessage] = []
    for message in messages:
        if message.role is MessageRole.ASSISTANT and _is_empty(message):
            continue
        if (
            kept
            and message.role is MessageRole.USER is kept[-1].role
            and SHAPE.parts(message) == SHAPE.parts(kept[-1])
        ):
            continue
        kept.append(message)
    return kept


async def restored(
    messages: list[ChatMessage], memory: BaseMemory, asked: str | None
) -> list[ChatMessage]:
    """Return the conversation with its question.

    If a run is too long, memories that cut by tokens return only its last message, a tool result
    without its call and its question. Then all messages of the memory are used instead, to be
    fitted later. If the question is in none of them, it is inserted before the last turn.

    Args:
        messages: What the memory returned, with the agent's prompt in front.
        memory: The memory.
        asked: Text of the question; `None` if it is not known.
    """
    if not asked or any(_asks(message, asked) for message in messages):
        return messages
    front = 0
    while front < len(messages) and messages[front].role is MessageRole.SYSTEM:
        front += 1
    whole = [one for one in await memory.aget_all() if one.role is not MessageRole.SYSTEM]
    if any(_asks(message, asked) for message in whole):
        return [*messages[:front], *whole]
    question = ChatMessage(role=MessageRole.USER, content=asked)
    return [*messages[:front], question, *messages[front:]]


def with_question(
    messages: Sequence[ChatMessage], asked: str | None
) -> tuple[list[Any], dict[int, ChatMessage]]:
    """Pin the question if it is not the newest message of the user.

    Returns:
        The messages with a pinned copy of the question, and the message it was copied from.
    """
    users = [at for at, message in enumerate(messages) if message.role is MessageRole.USER]
    for at in reversed(users):
        if asked and _asks(messages[at], asked):
            if at == users[-1]:  # protected anyway, even if other messages have the same text
                break
            pinned: Message = replace(to_muntin(messages[at]), pinned=True)
            return [*messages[:at], pinned, *messages[at + 1 :]], {id(pinned): messages[at]}
    return list(messages), {}


def _asks(message: ChatMessage, asked: str) -> bool:
    """Return whether a message is the question, alone or in the prompt of a workflow's state.

    A recap or a note of facts may quote the question and is not it.
    """
    text = message.content or ""
    if message.role is not MessageRole.USER or asked not in text:
        return False
    return text == asked or not text.startswith(_NOTES)


def _is_empty(message: ChatMessage) -> bool:
    seen = SHAPE.view(message)
    return not (seen.text or seen.calls or seen.media or seen.reasoning or seen.unknown)
