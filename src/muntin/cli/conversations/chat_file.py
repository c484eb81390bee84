"""Read the conversations of a file one after the other, and write changed ones in the same form.

A file of JSON lines with a conversation a line is read and written line by line, so that its size
does not matter. What did not change is written as the very text it was.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from muntin.cli.conversations.json_text import JsonStyle, parse_line
from muntin.cli.failures import Failure, NoConversation
from muntin.cli.forms.form import read_place, write_place
from muntin.cli.forms.registry import form_of
from muntin.cli.forms.unsupported import unsupported_document
from muntin.cli.terminal.files import name_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from muntin.cli.forms.form import Conversation, Form
    from muntin.cli.forms.message import FileMessage

__all__ = ("Chat", "ChatFile", "Part", "no_conversation")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """Hold one conversation of a file."""

    read: Conversation
    """What was read."""
    form: str
    """Name of its form."""
    label: str
    """What it is called in notes and errors."""

    @property
    def messages(self) -> list[FileMessage]:
        """Its messages; a system prompt from outside the list comes first."""
        return self.read.messages

    @property
    def tools(self) -> list[Any]:
        """Tool schemas that are sent with the messages."""
        return self.read.tools

    def pinned(self, newest: int) -> list[FileMessage]:
        """Return the messages with the newest ones pinned; the others are the same objects."""
        border = max(0, len(self.messages) - newest)
        kept = [replace(message, pinned=True) for message in self.messages[border:]]
        return [*self.messages[:border], *kept]


@dataclass(slots=True, kw_only=True)
class Part:
    """Hold a piece of a file that is written as a whole: a line, a record, or all of it."""

    value: Any
    """Its JSON value, or its text."""
    text: str | None
    """What it was read from; None where it is one of several records of a JSON value."""
    chats: list[Chat]
    """Its conversations."""
    size: int
    """Bytes that were read for it."""

    def changed(self, messages: Sequence[Sequence[FileMessage]]) -> Any:
        """Return its value with other messages; the very value when none of them changed."""
        value = self.value
        for chat, new in zip(self.chats, messages, strict=True):
            if not _are_same(chat.messages, new):
                value = write_place(value, chat.read, new)
        return value

    def is_same(self, messages: Sequence[Sequence[FileMessage]]) -> bool:
        """Return whether no message changed."""
        return all(_are_same(chat.messages, new)
                   for chat, new in zip(self.chats, messages, strict=True))  # fmt: skip


def _are_same(given: Sequence[FileMessage], new: Sequence[FileMessage]) -> bool:
    return len(given) == len(new) and all(
        one.raw is other.raw for one, other in zip(given, new, strict=True)
    )


@dataclass(slots=True, kw_only=True)
class ChatFile:
    """Hold an open file of conversations."""

    path: Path
    form: Form
    """The form of its first conversation; of all where it was asked for."""
    layout: str
    """`json` for one value, `records` for a list of records, `lines`, `session` or `text`."""
    style: JsonStyle
    is_forced: bool
    """Whether the form was asked for."""
    end: str = "\n"
    """What ends its lines."""
    start: str = ""
    """A byte order mark, where there is one."""
    _head: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    _rest: Iterator[tuple[int, str]] | None = None
    _values: Any = None
    _texts: dict[int, str] = field(default_factory=dict[int, str])

    @property
    def name(self) -> str:
        """What the file is called in notes and errors."""
        return name_of(self.path)

    def parts(self) -> Iterator[Part]:
        """Read the parts in order, each once.

        Raises:
            Failure: A part cannot be read or holds no conversation.
        """
        if self.layout == "lines":
            yield from self._lines()
            return
        if self.layout == "session":
            lines = [*self._head, *(self._rest or ())]
            values = [parse_line(text, self.name, number) for number, text in lines]
            self._texts = {id(one): text for one, (_, text) in zip(values, lines, strict=True)}
            yield self._part(values, self.name, "".join(text for _, text in lines))
            return
        if self.layout == "records":
            for number, value in enumerate(cast("list[Any]", self._values), start=1):
                yield self._part(value, f"{self.name}, record {number}", None)
            return
        text = "".join(text for _, text in self._head)
        yield self._part(self._values, self.name, text)

    def _lines(self) -> Iterator[Part]:
        for number, text in self._head:
            yield self._record(number, text)
        self._head.clear()
        for number, text in self._rest or ():
            yield self._record(number, text)

    def _record(self, number: int, text: str) -> Part:
        value = parse_line(text, self.name, number)
        return self._part(value, f"{self.name}, line {number}", text)

    def _part(self, value: Any, where: str, text: str | None) -> Part:
        if self.is_forced or self.layout == "session":
            found = (self.form, self.form.places(value))
        else:
            found = form_of(value, first=self.form) or (self.form, [])
        form, places = found
        if not places:
            raise NoConversation(no_conversation(where, value, form if self.is_forced else None))
        chats = [_chat(value, form, place, where) for place in places]
        size = len(text) if text is not None else 1
        return Part(value=value, text=text, chats=chats, size=size)

    def records(self, values: list[Any], *, is_same: bool) -> bytes:
        """Return what the file has for a list of records; its own text when none changed."""
        text = self._head[0][1] if is_same else f"{self.style.dump(values)}{self.end}"
        return f"{self.start}{text}".encode("utf-8", "replace")

    def write(self, part: Part, messages: Sequence[Sequence[FileMessage]], first: bool) -> bytes:  # noqa: FBT001 - the caller counts
        """Return what the file has for a part, with other messages in it.

        Args:
            part: The part.
            messages: The messages of each of its conversations.
            first: Whether nothing has been written yet.
        """
        start = self.start if first else ""
        if part.text is not None and part.is_same(messages):
            return f"{start}{part.text}".encode("utf-8", "replace")
        value = part.changed(messages)
        if self.layout == "text":
            return f"{start}{value}".encode("utf-8", "replace")
        if self.layout == "session":
            return f"{start}{self._session(part, value)}".encode()
        end = self.end
        if self.layout == "lines" and part.text is not None:
            end = part.text[len(part.text.rstrip("\r\n")) :]
        on_one_line = self.layout == "lines"
        return f"{start}{self.style.dump(value, on_one_line=on_one_line)}{end}".encode()

    def _session(self, part: Part, values: list[Any]) -> str:
        """Write the lines of a session; those that did not change as they were."""
        written: list[str] = []
        for one in values:
            text = self._texts.get(id(one)) or self.style.dump(one, on_one_line=True)
            written.append(text if text.endswith("\n") else f"{text}{self.end}")
        whole = "".join(written)
        ends = cast("str", part.text).endswith("\n")
        return whole if ends else whole.removesuffix(self.end)


def _chat(value: Any, form: Form, place: Any, where: str) -> Chat:
    try:
        read = read_place(value, place)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        what = f"{type(error).__name__}: {error}"
        raise Failure(f"{where} is not as {form.name} is written ({what})") from None
    if not read.messages:
        raise NoConversation(f"{where} holds no message of {form.name}")
    known = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    name = place.label or known.get("id")
    label = f"{where} ({name})" if isinstance(name, str) and name else where
    return Chat(read=read, form=form.name, label=label)


def no_conversation(where: str, value: Any, form: Form | None) -> str:
    """Return why a value is not a conversation of a form; None means of any form."""
    if form is not None:
        return f"{where} is not of the form {form.name} ({form.title})"
    named = unsupported_document(value)
    if named is not None:
        return f"{where} is {named}"
    return (
        f"{where} holds no conversation: give messages in a form of `muntin forms`, or name the "
        f"form with --form"
    )
