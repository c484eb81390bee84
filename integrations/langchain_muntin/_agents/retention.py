"""Trim the stored state: messages that a decision left out are removed, originals are stored.

Opt-in. Without it the state keeps every message, and every checkpoint writes all of them again.
What is removed is replaced in place: a message with the id of a removed one takes its position.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core.messages import BaseMessage, RemoveMessage

from langchain_muntin._agents.stored import packed_messages, unpacked_messages

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from muntin.tool_results import ToolResultStore

__all__ = ("archived", "trimmed")

ARCHIVE = "muntin_archive"
"""Key in `additional_kwargs` of a note: the id of the messages it stands for."""


def trimmed(
    messages: Sequence[BaseMessage], sent: Sequence[BaseMessage], store: ToolResultStore
) -> list[BaseMessage] | None:
    """Return the update of the state that makes it what was sent; `None` to leave it as it is.

    Args:
        messages: The messages of the state.
        sent: What was sent of them, without system messages in front.
        store: Keeps the originals of what is removed.
    """
    position = {id(message): at for at, message in enumerate(messages)}
    kept = [position[id(message)] for message in sent if id(message) in position]
    gone = [at for at in range(len(messages)) if at not in set(kept)]
    if not gone or kept != sorted(kept) or any(not message.id for message in messages):
        return None
    placed = _placed(messages, sent, position, gone)
    if not placed or len(placed) != len(sent) - len(kept):
        return None
    at = packed_messages([messages[one] for one in gone], store)
    if at is None:
        return None
    carrier = min(placed)
    placed[carrier] = placed[carrier].model_copy(
        update={"additional_kwargs": {**placed[carrier].additional_kwargs, ARCHIVE: at}}
    )
    return [
        placed[one].model_copy(update={"id": messages[one].id})
        if one in placed
        else RemoveMessage(id=str(messages[one].id))
        for one in gone
    ]


def _placed(
    messages: Sequence[BaseMessage],
    sent: Sequence[BaseMessage],
    position: dict[int, int],
    gone: Sequence[int],
) -> dict[int, BaseMessage]:
    """Give every written message the position of a removed one between its neighbours."""
    placed: dict[int, BaseMessage] = {}
    after = -1
    for at, message in enumerate(sent):
        if id(message) in position:
            after = position[id(message)]
            continue
        later = (position[id(one)] for one in sent[at + 1 :] if id(one) in position)
        before = next(later, len(messages))
        same = [one for one in gone if messages[one].id == message.id]
        free = [one for one in (*same, *gone) if after < one < before and one not in placed]
        if free:
            after = free[0]
            placed[after] = message
    return placed


def archived(messages: Sequence[BaseMessage], store: ToolResultStore) -> Iterator[BaseMessage]:
    """Yield the conversation as it was, with everything that was removed put back.

    Raises:
        ToolResultNotFound: The store does not have what was removed.
    """
    for message in messages:
        at: Any = message.additional_kwargs.get(ARCHIVE)
        if isinstance(at, str):
            yield from archived(unpacked_messages(at, store), store)
        else:
            yield message
