"""Remember what was decided about a conversation, so that the next request only adds to this one.

A decision covers the messages up to a point: each is sent as it is, sent shorter, or left out, with
a note in its place. It is kept as plain data and messages, so a checkpointer can store it, and it
names the messages it covers by a digest: when one of them was edited or removed meanwhile, the
decision no longer holds and a new one is made. Between two decisions every request begins with the
bytes of the one before, which is what a provider's prompt cache lives on.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from muntin.shapes.blocks import canonical_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ("Saved", "recorded", "restored")

Saved: TypeAlias = dict[str, Any]
"""A decision as it is stored: `version`, `covered` (messages), `digest` (of those), and `send`, in
which `[first, last]` stands for messages sent as they are."""

_VERSION = 1


def recorded(messages: Sequence[BaseMessage], sent: Sequence[BaseMessage]) -> Saved:
    """Write down what is sent in place of messages.

    Args:
        messages: The conversation.
        sent: What is sent of it: some of the same objects, and others.
    """
    position = {id(message): at for at, message in enumerate(messages)}
    send: list[Any] = []
    for message in sent:
        at = position.get(id(message))
        last: Any = send[-1] if send else None
        if at is None:
            send.append(message)
        elif isinstance(last, list) and last[1] == at - 1:
            last[1] = at
        else:
            send.append([at, at])
    return {
        "version": _VERSION,
        "covered": len(messages),
        "digest": _digest(messages),
        "send": send,
    }


def restored(
    messages: Sequence[BaseMessage], saved: Mapping[str, Any] | None
) -> list[BaseMessage] | None:
    """Apply a decision to a conversation that went on; `None` when it does not hold (any more)."""
    if not saved or saved.get("version") != _VERSION:
        return None
    covered = cast("int", saved["covered"])
    if covered > len(messages) or _digest(messages[:covered]) != saved["digest"]:
        return None
    sent: list[BaseMessage] = []
    for item in cast("Sequence[Any]", saved["send"]):
        if isinstance(item, BaseMessage):
            sent.append(item)
        else:
            sent.extend(messages[item[0] : item[1] + 1])
    return [*sent, *messages[covered:]]


def _digest(messages: Sequence[BaseMessage]) -> str:
    """Digest what messages say, to recognise them in another process."""
    digest = blake2b(digest_size=16)
    for message in messages:
        content = message.content
        text = content if isinstance(content, str) else canonical_json(content)
        calls = canonical_json(message.tool_calls) if isinstance(message, AIMessage) else ""
        answered = message.tool_call_id if isinstance(message, ToolMessage) else ""
        for part in (message.type, message.id or "", answered, calls, text):
            data = part.encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "big"))
            digest.update(data)
    return digest.hexdigest()
