"""Remember what was decided about a conversation, so that the next request only adds to it.

A decision covers the messages up to a point: each is sent as it is, sent shorter, or left out, with
a note in its place. It is plain data and messages, so a checkpointer can store it, and it names the
messages it covers by a digest: if one of them was edited, pinned or removed, the decision no longer
holds and a new one is made. Between two decisions every request begins with the bytes of the one
before, which a provider's prompt cache needs.

System messages in front are not part of it: they may change with every call.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from muntin.messages import canonical_json, shape_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ("DecisionCache", "Held", "Saved", "held", "recorded")

Saved: TypeAlias = dict[str, Any]
"""A decision as it is stored: `version`, `covered` (messages behind the system messages in front),
`digest` (of those), `send`, in which `[first, last]` is a range of messages sent unchanged,
`budget` (tokens available), `tokens` (of the request), `state` (digest of the state put back) and
`bound` (covered messages that were written before the first decision of the conversation).
"""

_VERSION = 3
_CAPACITY = 256


class Held(NamedTuple):
    """A decision, applied to a conversation that went on."""

    messages: list[Any]
    """What is sent by it."""
    budget: int
    """The budget it was made for, in tokens."""
    tokens: int
    """What the request cost when it was made, in tokens."""
    state: str
    """Digest of the state that was put back; `""` for none."""
    bound: int
    """Position from which messages were written behind a decision and not behind the conversation
    itself, counted from the first message."""
    covered: int
    """Position behind the last message it covers, counted from the first message."""


def recorded(
    messages: Sequence[Any],
    sent: Sequence[Any],
    *,
    budget: int,
    tokens: int,
    state: str,
    before: Held | None = None,
) -> Saved:
    """Write down what is sent in place of messages.

    Args:
        messages: The conversation.
        sent: What is sent of it: the system messages in front, then some of the same objects, and
            others.
        budget: Tokens there were for it.
        tokens: Tokens of the request.
        state: Digest of the state to be put back; `""` for none.
        before: The decision that held until now; `None` if there was none.
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
    *_, digest = _prefix_digests(covered)
    return {
        "version": _VERSION,
        "covered": len(covered),
        "digest": digest,
        "send": send,
        "budget": budget,
        "tokens": tokens,
        "state": state,
        "bound": len(covered) if before is None else max(before.bound - front, 0),
    }


def held(messages: Sequence[Any], saved: object) -> Held | None:
    """Apply a decision to a conversation that went on.

    Returns:
        `None` if it does not hold: a covered message has changed, or `saved` does not have the
        form that `recorded` writes.
    """
    match saved:
        case {
            "version": int(version),
            "covered": int(covered),
            "digest": str(digest),
            "send": list(),
            "budget": int(budget),
            "tokens": int(tokens),
            "state": str(state),
        } if version == _VERSION:
            send = cast("Saved", saved)["send"]
        case _:
            return None
    front = _front(messages)
    body = messages[front:]
    if not 0 <= covered <= len(body) or not all(_is_sendable(item, covered) for item in send):
        return None
    *_, found = _prefix_digests(body[:covered])
    if found != digest:
        return None
    sent: list[Any] = [*messages[:front]]
    for item in send:
        if isinstance(item, list):
            first, last = cast("list[int]", item)
            sent.extend(body[first : last + 1])
        else:
            sent.append(item)
    bound = cast("Saved", saved).get("bound")
    bound = bound if isinstance(bound, int) else covered
    return Held([*sent, *body[covered:]], budget, tokens, state, front + bound, front + covered)


class DecisionCache:
    """Find decisions again by the messages they cover. Safe between threads.

    The state of a framework is the first place to look. An agent that runs as a node of another
    graph starts with an empty state each time; the messages are the same, so the decision is found
    by them. The oldest decisions are removed first.

    Args:
        capacity: Most decisions to keep.
    """

    def __init__(self, capacity: int = _CAPACITY) -> None:
        self.capacity = capacity
        self._known: OrderedDict[str, Saved] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, saved: Saved) -> None:
        """Remember a decision."""
        with self._lock:
            self._known[saved["digest"]] = saved
            self._known.move_to_end(saved["digest"])
            while len(self._known) > self.capacity:
                self._known.popitem(last=False)

    def find(self, messages: Sequence[Any]) -> Saved | None:
        """Return the decision that covers most of a conversation; `None` if there is none."""
        with self._lock:
            if not self._known:
                return None
            known = dict(self._known)
        best: Saved | None = None
        for digest in _prefix_digests(messages[_front(messages) :]):
            if digest in known:
                best = known[digest]
        return best

    def __getstate__(self) -> dict[str, Any]:
        return {"capacity": self.capacity}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["capacity"])


def _front(messages: Sequence[Any]) -> int:
    """Count the system messages in front."""
    for at, message in enumerate(messages):
        if shape_of(message).view(message).role != "system":
            return at
    return len(messages)


def _is_sendable(item: object, covered: int) -> bool:
    match item:
        case [int(first), int(last)]:
            return 0 <= first <= last < covered
        case list() | str() | int() | None:
            return False
        case _:
            return True


def _prefix_digests(messages: Sequence[Any]) -> Iterator[str]:
    """Yield a digest of the first 0, 1, 2 ... messages, to recognise them in another process."""
    digest = blake2b(digest_size=16)
    yield digest.hexdigest()
    for message in messages:
        for part in _parts(message):
            data = part.encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "big"))
            digest.update(data)
        yield digest.copy().hexdigest()


def _parts(message: Any) -> Iterator[str]:
    """List everything the view of a message is read from."""
    parts = shape_of(message).parts(message)
    for part in cast("Any", parts) if isinstance(parts, tuple) else (parts,):
        yield part if isinstance(part, str) else canonical_json(part)
