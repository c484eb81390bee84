"""Messages as a memory takes them: checked, copied, compared."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole, TextBlock
from pydantic_core import PydanticSerializationError

from llama_index_muntin._conversion import copy_of_message
from llama_index_muntin._shapes import SHAPE
from muntin.conversations import cleaned
from muntin.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = (
    "is_answer",
    "is_empty",
    "is_system",
    "owned",
    "same_messages",
    "shared",
    "stored_form",
    "text_said",
)


def owned(messages: Iterable[Any]) -> list[ChatMessage]:
    """Copy messages to be kept, without lone surrogates, which no store can write.

    Raises:
        ConfigurationError: One of them is not a `ChatMessage`, or cannot be written as JSON.
    """
    copies: list[ChatMessage] = []
    for message in messages:
        if not isinstance(message, ChatMessage):
            raise ConfigurationError(
                f"a memory holds messages, not a {type(message).__name__}: "
                f"give ChatMessage(role=..., content=...)"
            )
        copies.append(copy_of_message(cleaned(message)))
        _written(copies[-1])
    return copies


def stored_form(messages: Iterable[ChatMessage]) -> list[ChatMessage]:
    """Return messages as they come back from a store that keeps JSON."""
    return [ChatMessage.model_validate(json.loads(_written(message))) for message in messages]


def same_messages(message: ChatMessage, other: ChatMessage) -> bool:
    """Compare two messages, one of which may have been written to a store and read back."""
    return message == other or _written(message) == _written(other)


def shared(messages: Sequence[ChatMessage], others: Sequence[ChatMessage]) -> int:
    """Return how many messages in front are the same."""
    for at, (one, other) in enumerate(zip(messages, others, strict=False)):
        if one is not other and not same_messages(one, other):
            return at
    return min(len(messages), len(others))


def _written(message: ChatMessage) -> str:
    """Write a message as JSON.

    Raises:
        ConfigurationError: It holds something that is not JSON.
    """
    try:
        return json.dumps(message.model_dump(mode="json"), sort_keys=True)
    except (PydanticSerializationError, TypeError, ValueError) as error:
        keys = ", ".join(map(repr, message.additional_kwargs)) or "none"
        raise ConfigurationError(
            f"a message of the {message.role.value} cannot be written as JSON ({error}); "
            f"its additional_kwargs are {keys}: keep plain values in them. Nothing was changed"
        ) from error


def text_said(asked: str | ChatMessage | None) -> str | None:
    """Return the text of a question given as text or as a message.

    Raises:
        ConfigurationError: It is neither.
    """
    given: object = asked
    if asked is None or isinstance(asked, str):
        return asked
    if not isinstance(given, ChatMessage):
        raise ConfigurationError(
            f"input must be the question as a str or a ChatMessage, got {given!r:.40}: tokens of a "
            f"prefix are initial_token_count"
        )
    return "\n".join(block.text for block in asked.blocks if isinstance(block, TextBlock))


def is_system(message: ChatMessage) -> bool:
    """Return whether a message has the rank of a system prompt."""
    return message.role in (MessageRole.SYSTEM, MessageRole.DEVELOPER)


def is_answer(message: ChatMessage) -> bool:
    """Return whether a message ends a turn: it is the assistant's and makes no call."""
    seen = SHAPE.view(message)
    return seen.role == "assistant" and not seen.calls


def is_empty(message: ChatMessage) -> bool:
    """Return whether a message holds nothing a model could read."""
    seen = SHAPE.view(message)
    content = seen.text or seen.calls or seen.results or seen.media or seen.reasoning
    return not (content or seen.server or seen.unknown)
