"""Trim the stored state to what was sent, and keep the conversation as it was in the store.

Opt-in. Without it the state keeps every message, and every checkpoint writes all of them again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from langchain_core.messages import BaseMessage, RemoveMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from langchain_muntin._agents.stored import packed_messages, unpacked_messages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muntin.tool_results import ToolResultStore

__all__ = ("archived", "trimmed")

ARCHIVE = "muntin_archive"
"""Key in `additional_kwargs` of a note: `at`, the id of the stored conversation; `covers`, how many
leading messages it replaces; `number`, to find the newest of several."""


def trimmed(
    messages: Sequence[BaseMessage],
    sent: Sequence[BaseMessage],
    answer: Sequence[BaseMessage],
    store: ToolResultStore,
) -> list[BaseMessage] | None:
    """Return the update that trims the state to what was sent; `None` to leave it unchanged.

    Args:
        messages: The messages of the state.
        sent: What was sent of them, without system messages in front.
        answer: What the model answered; it is in the state already.
        store: Keeps the conversation as it was.
    """
    known = {id(message) for message in messages}
    written = [at for at, message in enumerate(sent) if id(message) not in known]
    kept = {message.id for message in sent}
    free = [message.id for message in messages if message.id not in kept]
    carrier = next((at for at in written if sent[at].id is None), None)
    if carrier is None or not free:
        return None
    at = packed_messages(messages, store)
    if at is None:
        return None
    number = 1 + max((_archive(message).get("number", 0) for message in messages), default=0)
    archive = {"at": at, "covers": len(sent), "number": number}
    state: list[BaseMessage] = []
    for place, message in enumerate(sent):
        changes: dict[str, Any] = {}
        if message.id is None and free:
            # Reuse the id of a removed message: streams have seen it, so they do not emit the note.
            changes["id"] = free.pop(0)
        if place == carrier:
            changes["additional_kwargs"] = {**message.additional_kwargs, ARCHIVE: archive}
        state.append(message.model_copy(update=changes) if changes else message)
    return [RemoveMessage(id=REMOVE_ALL_MESSAGES), *state, *answer]


def archived(messages: Sequence[BaseMessage], store: ToolResultStore) -> list[BaseMessage]:
    """Return the conversation as it was before the state was trimmed.

    Raises:
        ToolResultNotFound: The store does not have it.
    """
    found = [archive for archive in map(_archive, messages) if archive]
    newest = max(found, key=lambda one: one["number"], default=None)
    if newest is None:
        return list(messages)
    before = archived(unpacked_messages(str(newest["at"]), store), store)
    return [*before, *messages[int(newest["covers"]) :]]


def _archive(message: BaseMessage) -> dict[str, Any]:
    found = message.additional_kwargs.get(ARCHIVE)
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}
