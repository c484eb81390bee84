"""Remember what was decided about a conversation, so that the next request only adds to this one.

A decision covers the messages up to a point: each is sent as it is, sent shorter, or left out, with
a note in its place. It is kept as plain data and messages, so a checkpointer can store it, and it
names the messages it covers by a digest: when one of them was edited, pinned or removed meanwhile,
the decision no longer holds and a new one is made. Between two decisions every request begins with
the bytes of the one before, which is what a provider's prompt cache lives on.

System messages in front are no part of it: they may change with every call.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from langchain_core.messages import BaseMessage, SystemMessage

from langchain_muntin._shapes import marked
from muntin.messages import canonical_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ("Held", "Saved", "held", "recorded")

Saved: TypeAlias = dict[str, Any]
"""A decision as it is stored: `version`, `covered` (messages behind the system messages in front),
`digest` (of those), `send`, in which `[first, last]` stands for messages sent as they are, `budget`
(tokens there were) and `state` (digest of what was put back)."""

_VERSION = 2


class Held(NamedTuple):
    """A decision, applied to a conversation that went on."""

    messages: list[BaseMessage]
    """What is sent by it."""
    budget: int
    """The budget it was made for, in tokens."""
    state: str
    """Digest of the state that was put back; `""` where there was none."""


def recorded(
    messages: Sequence[BaseMessage], sent: Sequence[BaseMessage], *, budget: int, state: str
) -> Saved:
    """Write down what is sent in place of messages.

    Args:
        messages: The conversation.
        sent: What is sent of it: the system messages in front, then some of the same objects, and
            others.
        budget: Tokens there were for it.
        state: Digest of the state to be put back; `""` where there is none.
    """
    front = _front(messages)
    covered = messages[front:]
    position = {id(message): at for at, message in enumerate(covered)}
    send: list[Any] = []
    for message in sent[front:]:
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
        "covered": len(covered),
        "digest": _digest(covered),
        "send": send,
        "budget": budget,
        "state": state,
    }


def held(messages: Sequence[BaseMessage], saved: object) -> Held | None:
    """Apply a decision to a conversation that went on.

    Returns:
        `None` when it does not hold (any more): a message it covers is another one now, or it is
        not what `recorded` writes.
    """
    match saved:
        case {
            "version": int(version),
            "covered": int(covered),
            "digest": str(digest),
            "send": list(),
            "budget": int(budget),
            "state": str(state),
        } if version == _VERSION:
            send = cast("Saved", saved)["send"]
        case _:
            return None
    front = _front(messages)
    body = messages[front:]
    if not 0 <= covered <= len(body) or not all(_is_sendable(item, covered) for item in send):
        return None
    if _digest(body[:covered]) != digest:
        return None
    sent: list[BaseMessage] = [*messages[:front]]
    for item in send:
        if isinstance(item, BaseMessage):
            sent.append(item)
        else:
            sent.extend(body[item[0] : item[1] + 1])
    return Held([*sent, *body[covered:]], budget, state)


def _front(messages: Sequence[BaseMessage]) -> int:
    """Count the system messages in front."""
    for at, message in enumerate(messages):
        if not isinstance(message, SystemMessage):
            return at
    return len(messages)


def _is_sendable(item: object, covered: int) -> bool:
    match item:
        case BaseMessage():
            return True
        case [int(first), int(last)]:
            return 0 <= first <= last < covered
        case _:
            return False


def _digest(messages: Sequence[BaseMessage]) -> str:
    """Digest what messages say and are, to recognise them in another process."""
    digest = blake2b(digest_size=16)
    for message in messages:
        for part in _said(message):
            data = part.encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "big"))
            digest.update(data)
    return digest.hexdigest()


def _said(message: BaseMessage) -> Iterator[str]:
    """List all that a decision about a message may depend on."""
    held = message.__dict__.get
    for field in ("type", "id", "name", "tool_call_id", "status", "role"):
        yield str(held(field) or "")
    yield marked(message)
    for field in ("tool_calls", "invalid_tool_calls"):
        calls = held(field)
        yield canonical_json(calls) if calls else ""
    content = message.content
    yield content if isinstance(content, str) else canonical_json(content)
