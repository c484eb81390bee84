"""One message of a file: the record as it is written there, read through the kind of its form.

A kind reads one sort of record and makes changed copies of it, in which only the changed text
differs. Every kind has a message class of its own, because the library finds the shape of a message
by its class.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from muntin.messages import OPENAI_CHAT, MessageView, register_shape, role_of
from muntin.messages import view as view_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from muntin.messages import MessageShape, Role, ToolCall

__all__ = (
    "FileMessage",
    "Kind",
    "NativeKind",
    "NewResults",
    "PlainKind",
    "Raw",
    "as_record",
    "plain_result",
    "texts_of",
)

Raw = dict[str, Any]
"""One record as the file has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileMessage:
    """Hold one message of a file."""

    raw: Raw
    """The record, or the part of it that is this message."""
    links: tuple[str, ...] = ()
    """Ids of its calls, or of the call it answers, in forms whose records have no ids."""
    slot: int | None = None
    """Index of the record it was read from; None for a message that was added."""
    piece: int = 0
    """Which message of its record it is."""
    beside: bool = False
    """Whether it is the system prompt that the file keeps outside the list of messages."""
    pinned: bool = False
    """Whether it must stay word for word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewResults:
    """Hold the texts that results of a record get; see `MessageShape.with_results`."""

    texts: Mapping[str, str | None]
    """Texts by the id of the call; None takes the result out."""
    bare: Collection[str]
    """Ids of the calls whose results lose their media."""


class Kind:
    """Read one sort of record. The defaults fit a record that is one message."""

    name: str = ""

    def __init__(self) -> None:
        fields = {"__slots__": (), "__doc__": FileMessage.__doc__}
        self.message: type[FileMessage] = type(f"{self.name}-message", (FileMessage,), fields)
        register_shape(cast("MessageShape", _FileShape(self)))

    def owns(self, raw: Raw) -> bool:
        """Return whether a record is a message of this kind."""
        raise NotImplementedError

    def owns_all(self, raws: Sequence[Raw]) -> bool:
        """Return whether the records of a list are messages of this kind."""
        return all(map(self.owns, raws))

    def view(self, raw: Raw, links: tuple[str, ...]) -> MessageView:
        """Read a record; see `MessageShape.view`."""
        raise NotImplementedError

    def with_text(self, raw: Raw, text: str) -> Raw:
        """Copy a record with another readable text."""
        raise NotImplementedError

    def with_results(self, raw: Raw, links: tuple[str, ...], new: NewResults) -> Raw:
        """Copy a record with other result texts; see `MessageShape.with_results`."""
        raise NotImplementedError

    def note(self, text: str, role: Role) -> Raw:
        """Make a record that holds a text."""
        raise NotImplementedError

    def answer(self, call: ToolCall, text: str) -> Raw:
        """Make a record that answers a call."""
        raise NotImplementedError

    def links(self, raws: Sequence[Raw]) -> list[tuple[str, ...]]:
        """Give ids to calls and results that have none, by their position."""
        return [()] * len(raws)

    def split(self, raw: Raw) -> list[Raw]:
        """Return the messages in a record: one, unless calls and results share a record."""
        return [raw]

    def join(self, original: Raw, pieces: Mapping[int, Raw]) -> Raw:
        """Return the record made of those of its messages that are left, by their number."""
        del original
        return pieces[0]

    def settled(self, raw: Raw, before: Raw | None, after: Raw | None) -> Raw:
        """Complete an added record by what its neighbours in the file have."""
        del before, after
        return raw

    def linked(self, given: Sequence[Any], written: list[Any]) -> list[Any]:
        """Repair references between the records that are left, such as ids of parents."""
        del given
        return written


class _FileShape:
    """Let the library read the messages of one kind."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self.name = f"file:{kind.name}"

    def reads(self, message: Any) -> bool:
        return type(message) is self._kind.message

    def parts(self, message: FileMessage) -> Any:
        # The name, because the same record may be a message of two kinds, with two shapes.
        return (self.name, message.raw, message.links, message.pinned, message.beside)

    def view(self, message: FileMessage) -> MessageView:
        if message.beside:
            return view_of(message.raw)
        read = self._kind.view(message.raw, message.links)
        return read._replace(pinned=True) if message.pinned else read

    def with_text(self, message: FileMessage, text: str) -> FileMessage:
        if message.beside:
            return replace(message, raw=OPENAI_CHAT.with_text(message.raw, text))
        return replace(message, raw=self._kind.with_text(message.raw, text))

    def with_results(
        self,
        message: FileMessage,
        texts: Mapping[str, str | None],
        *,
        bare: Collection[str] = (),
    ) -> FileMessage:
        new = NewResults(texts=texts, bare=bare)
        raw = self._kind.with_results(message.raw, message.links, new)
        return message if raw is message.raw else replace(message, raw=raw)

    def note(self, text: str, role: Role) -> FileMessage:
        return self._kind.message(raw=self._kind.note(text, role))

    def answer(self, call: ToolCall, text: str) -> FileMessage:
        return self._kind.message(raw=self._kind.answer(call, text), links=(call.id,))


class NativeKind(Kind):
    """Records that a shape of the library reads, perhaps inside an envelope.

    Args:
        name: Name of the kind.
        shape: Reads the inner record.
        inside: Key of the envelope under which the inner record is; `""` for none.
    """

    def __init__(self, name: str, shape: MessageShape, *, inside: str = "") -> None:
        self.name = name
        self._shape = shape
        self._inside = inside
        super().__init__()

    def _inner(self, raw: Raw) -> Raw:
        return cast("Raw", raw[self._inside]) if self._inside else raw

    def _put(self, raw: Raw, inner: Raw) -> Raw:
        if inner is self._inner(raw):
            return raw
        return {**raw, self._inside: inner} if self._inside else inner

    def owns(self, raw: Raw) -> bool:
        """Return whether the shape reads the inner record."""
        return isinstance(raw.get(self._inside), dict) if self._inside else self._shape.reads(raw)

    def view(self, raw: Raw, links: tuple[str, ...]) -> MessageView:
        """Read the inner record."""
        del links
        return self._shape.view(self._inner(raw))

    def with_text(self, raw: Raw, text: str) -> Raw:
        """Copy the record with another readable text."""
        return self._put(raw, self._shape.with_text(self._inner(raw), text))

    def with_results(self, raw: Raw, links: tuple[str, ...], new: NewResults) -> Raw:
        """Copy the record with other result texts."""
        del links
        return self._put(raw, self._shape.with_results(self._inner(raw), new.texts, bare=new.bare))

    def note(self, text: str, role: Role) -> Raw:
        """Make a record that holds a text."""
        return self.enveloped(self._shape.note(text, role))

    def answer(self, call: ToolCall, text: str) -> Raw:
        """Make a record that answers a call."""
        return self.enveloped(self._shape.answer(call, text))

    def enveloped(self, inner: Raw) -> Raw:
        """Put a new inner record into an envelope."""
        return {self._inside: inner} if self._inside else inner


class PlainKind(Kind):
    """Records that are read by writing them as a chat-completions message.

    Subclasses decide how a record reads (`plain`), where its text is (`put`), and how a new record
    is written (`made`).
    """

    def plain(self, raw: Raw, links: tuple[str, ...]) -> Raw:
        """Write a record as a chat-completions message."""
        raise NotImplementedError

    def put(self, raw: Raw, text: str) -> Raw:
        """Copy a record with another text, of a message or of a result."""
        raise NotImplementedError

    def put_result(self, raw: Raw, text: str, *, bare: bool) -> Raw:
        """Copy a record with another result text; without its media where it is `bare`."""
        del bare
        return self.put(raw, text)

    def made(self, role: Role, text: str, call: ToolCall | None = None) -> Raw:
        """Write a new record; it answers `call` where there is one."""
        raise NotImplementedError

    def view(self, raw: Raw, links: tuple[str, ...]) -> MessageView:
        """Read a record."""
        return OPENAI_CHAT.view(self.plain(raw, links))

    def with_text(self, raw: Raw, text: str) -> Raw:
        """Copy the record with another readable text."""
        return self.put(raw, text)

    def with_results(self, raw: Raw, links: tuple[str, ...], new: NewResults) -> Raw:
        """Copy the record with other result texts."""
        plain = self.plain(raw, links)
        if role_of(plain.get("role")) != "tool":
            return raw
        answered = str(plain.get("tool_call_id") or "")
        text = new.texts.get(answered)
        return raw if text is None else self.put_result(raw, text, bare=answered in new.bare)

    def note(self, text: str, role: Role) -> Raw:
        """Make a record that holds a text."""
        return self.made(role, text)

    def answer(self, call: ToolCall, text: str) -> Raw:
        """Make a record that answers a call."""
        return self.made("tool", text, call)


def plain_result(text: str, links: tuple[str, ...]) -> Raw:
    """Write a result as a chat-completions message; one without a call is the assistant's text."""
    if links:
        return {"role": "tool", "tool_call_id": links[0], "content": text}
    return {"role": "assistant", "content": text}


def as_record(value: Any) -> Raw | None:
    """Return the value when it is a JSON object, None otherwise."""
    return cast("Raw", value) if isinstance(value, dict) else None


def texts_of(value: Any, *keys: str) -> str:
    """Return a text, or the texts of a list of parts under the first of `keys` they have."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        return ""
    found: list[str] = []
    for part in cast("list[Any]", value):
        if isinstance(part, str):
            found.append(part)
            continue
        held = as_record(part) or {}
        found += [held[key] for key in keys if isinstance(held.get(key), str)][:1]
    return "\n".join(found)
