"""What is known of a conversation, message by message, so that a call costs its new messages.

A trail follows a history from call to call. What it saw before is recognised by identity (and by a
comparison of its content, where a message can change in place), or by its digest where the caller
builds new objects every time; only the rest is read, counted and hashed. The digests form a chain:
the n-th covers the first n messages, so a prefix is known by one value, also across processes.

Notes that the library put in (re-injected state, marks) are not part of the chain: they come and
go without changing the conversation. It decides nothing about what is folded.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from hashlib import blake2b
from operator import is_
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from muntin.messages import Message
from muntin.runtime import are_equal, remembered

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from muntin.conversations.compaction.flight import Flight
    from muntin.conversations.compaction.recap import Recap
    from muntin.counting import Measured, MessageCounts
    from muntin.messages import MessageShape, MessageView

__all__ = ("Entry", "Kind", "Refusal", "Trail", "digest_of")

_DIGEST_SIZE = 16
_STRICT = "anthropic"
"""The shape whose provider takes its system prompt apart and no system message at all."""

Kind: TypeAlias = Literal["said", "recap", "note"]
"""What a message is: part of the conversation, a recap of one, or a note that was put in."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Remember one message."""

    message: Any
    """The message itself: what a known one is recognised by."""
    seen: Any
    """What `look` returned, as it was then; `None` if the message cannot change in place."""
    look: Callable[[Any], Any]
    """Returns what there is to compare with `seen`."""
    shape: MessageShape
    """The shape that reads it."""
    view: MessageView
    """Its text."""
    digest: bytes
    """Hash of its text."""
    tokens: int
    """What it costs, without framing."""
    kind: Kind
    """What it is. Notes are not part of the chain."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Remember a pass that failed or was no use, so that it is not paid for again at once."""

    summarizer: object
    """The summariser that was asked."""
    history: bytes
    """Digest of all messages: for the same ones no request is repeated."""
    enough: int
    """Tokens there must be to fold before a longer history is worth another pass."""


@dataclass(slots=True)
class Trail:
    """Follow one conversation from its first message after the leading system messages."""

    counts: MessageCounts
    """Reads and counts messages."""
    kind_of: Callable[[Any, MessageView], Kind]
    """Return the kind of a message."""
    entries: list[Entry] = field(default_factory=list["Entry"])
    """The messages as last seen."""
    spoken: list[int] = field(default_factory=list[int])
    """Positions of the spoken ones among the entries."""
    chain: list[bytes] = field(default_factory=lambda: [b""])
    """The n-th value covers the first n spoken messages."""
    totals: list[int] = field(default_factory=lambda: [0])
    """Tokens of the first n messages, notes included."""
    notes: list[int] = field(default_factory=list[int])
    """Positions of the notes."""
    asked: list[int] = field(default_factory=list[int])
    """Positions of user messages."""
    pinned: list[int] = field(default_factory=list[int])
    """Positions of spoken messages that are pinned."""
    messages: list[Any] = field(default_factory=list[Any])
    """The messages of the entries, by themselves, to compare at the speed of C."""
    mutable: list[int] = field(default_factory=list[int])
    """Positions of messages that can change in place."""
    strict: list[int] = field(default_factory=list[int])
    """Positions of messages whose provider takes no system message among the others."""
    start: bytes = b""
    """What the memory files it under."""
    recap: Recap | None = None
    """The recap that was last found for it; to be checked against the chain."""
    recap_tokens: int = 0
    """What that recap costs as a message, without framing; 0 until it was counted."""
    flight: Flight | None = None
    """The pass that is being made over it; `None` if there is none."""
    refusal: Refusal | None = None
    """The pass that failed or was no use; `None` after one that was."""
    failures: int = 0
    """Passes in a row that failed."""

    def shared(self, history: Sequence[Any]) -> int:
        """Count how many messages from the start are as they were."""
        size = same = min(len(history), len(self.messages))
        if not all(map(is_, self.messages, history)):  # the usual case at the speed of C
            pairs = enumerate(map(is_, self.messages, history))
            same = next(index for index, identical in pairs if not identical)
        for index in self.mutable:
            if index >= same:
                break
            entry = self.entries[index]
            if not are_equal(entry.look(entry.message), entry.seen):
                same = index
                break
        while same < size and self._says_the_same(same, history[same]):
            same += 1
        return same

    def opens(self, history: Sequence[Any]) -> bool:
        """Whether a history opens with the very objects of this one: a cheap first look."""
        return bool(self.messages and history) and self.messages[0] is history[0]

    def agrees_with(self, other: Trail) -> int:
        """Count the equal entries from the start of both."""
        both = zip(self.entries, other.entries, strict=False)
        count = 0
        for mine, theirs in both:
            if mine.digest != theirs.digest:
                break
            count += 1
        return count

    def follow(self, history: Sequence[Any], shared: int) -> None:
        """Bring the trail up to a history of which it knows the first `shared` messages."""
        self._forget_after(shared)
        for message in history[shared:]:
            self._append(message)

    def fork(self, shared: int) -> Trail:
        """Return an independent trail that knows the first messages of this one."""
        twin = Trail(self.counts, self.kind_of)
        twin.entries = self.entries[:shared]
        twin.messages = self.messages[:shared]
        twin.totals = self.totals[: shared + 1]
        for mine, theirs in zip(twin._places(), self._places(), strict=True):
            mine += theirs[: bisect_left(theirs, shared)]
        twin.chain = self.chain[: len(twin.spoken) + 1]
        twin.start, twin.recap, twin.recap_tokens = self.start, self.recap, self.recap_tokens
        return twin

    def _says_the_same(self, index: int, message: Any) -> bool:
        """Compare by content, and recognise the object from now on if it is equal."""
        known = self.entries[index]
        if known.message is message and known.seen is None:
            return True
        entry = self._read(message)
        if (entry.digest, entry.kind, entry.tokens) != (known.digest, known.kind, known.tokens):
            return False
        if (entry.seen is None) != (known.seen is None):
            return False
        self.messages[index] = message
        self.entries[index] = entry
        if entry.view.pinned != known.view.pinned:
            self.pinned = [at for at in self.spoken if self.entries[at].view.pinned]
        return True

    def _read(self, message: Any) -> Entry:
        measured = self.counts.measure(message)
        seen, look = _watched(message, measured)
        return Entry(
            message,
            seen,
            look,
            measured.shape,
            measured.view,
            digest_of(measured.view),
            measured.tokens - self.counts.framing,
            self.kind_of(message, measured.view),
        )

    def _append(self, message: Any) -> None:
        entry = self._read(message)
        if entry.seen is not None:
            self.mutable.append(len(self.entries))
        if entry.shape.name == _STRICT:
            self.strict.append(len(self.entries))
        if entry.kind == "note":
            self.notes.append(len(self.entries))
        else:
            self.spoken.append(len(self.entries))
            if entry.view.pinned:
                self.pinned.append(len(self.entries))
            if entry.kind == "said" and entry.view.is_user_turn:
                self.asked.append(len(self.entries))
            link = blake2b(self.chain[-1] + entry.digest, digest_size=_DIGEST_SIZE)
            self.chain.append(link.digest())
        self.entries.append(entry)
        self.messages.append(message)
        self.totals.append(self.totals[-1] + entry.tokens)

    def _forget_after(self, same: int) -> None:
        del self.entries[same:], self.messages[same:], self.totals[same + 1 :]
        for places in self._places():
            del places[bisect_left(places, same) :]
        del self.chain[len(self.spoken) + 1 :]

    def _places(self) -> tuple[list[int], ...]:
        return self.spoken, self.notes, self.asked, self.pinned, self.mutable, self.strict


def digest_of(view: MessageView) -> bytes:
    """Hash the content of a message. Ids and reasoning are left out: they come and go."""
    said = [view.role, view.name or "", view.text]
    for call in view.calls:
        said += ("call", call.id, call.name, call.arguments)
    for result in view.results:
        said += ("result", result.call_id, result.text)
    said += view.server
    said += [thing.stub for thing in view.media]
    for unknown in view.unknown:
        said += unknown
    # Lengths first, or two texts could be divided differently and hash the same.
    written = "".join([f"{len(text)}:{text}" for text in said])
    return blake2b(written.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_SIZE).digest()


def _watched(message: Any, measured: Measured) -> tuple[Any, Callable[[Any], Any]]:
    """Return what a message holds, and how to look at it again; nothing if it cannot change."""
    if type(message) is Message and isinstance(message.content, str):
        return None, measured.shape.parts
    fields = getattr(message, "__dict__", None)
    if isinstance(fields, dict) and _is_plain(cast("object", fields)):
        # Comparing all fields at once is many times faster than asking a framework for each.
        return remembered(fields)[0], vars
    return measured.parts, measured.shape.parts


def _is_plain(value: object) -> bool:
    """Whether a value is data through and through, which is compared without asking any object."""
    if isinstance(value, dict):
        return all(map(_is_plain, cast("dict[object, object]", value).values()))
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, cast("list[object]", value)))
    return value is None or isinstance(value, (str, int, float, bool))
