"""Read the conversations of a file one after the other, and write changed ones in the same form.

A file of JSON lines with a conversation a line is read and written line by line, so that its size
does not matter. What did not change is written as the very text it was.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from muntin.cli.conversations.json_text import JsonStyle, NotJsonError, parse_json
from muntin.cli.failures import Failure, NoConversation
from muntin.cli.forms.form import read_place, write_place
from muntin.cli.forms.registry import FORMS, form_named, form_of, session_form
from muntin.cli.forms.unsupported import unsupported_document, unsupported_file
from muntin.cli.terminal.files import name_of, opened, read_text, reading_errors

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from io import BufferedReader
    from pathlib import Path

    from muntin.cli.forms.form import Conversation, Form
    from muntin.cli.forms.message import FileMessage

__all__ = ("Chat", "ChatFile", "Part", "opened_chats", "read_chat", "read_tools")

_LOOK = 20
"""Lines read to distinguish a session from a file with a conversation a line."""
_BOM = "\ufeff"


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
            values = [_line(text, self.name, number) for number, text in lines]
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
        value = _line(text, self.name, number)
        return self._part(value, f"{self.name}, line {number}", text)

    def _part(self, value: Any, where: str, text: str | None) -> Part:
        if self.is_forced or self.layout == "session":
            found = (self.form, self.form.places(value))
        else:
            found = form_of(value, first=self.form) or (self.form, [])
        form, places = found
        if not places:
            raise NoConversation(_no_conversation(where, value, form if self.is_forced else None))
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


def _no_conversation(where: str, value: Any, form: Form | None) -> str:
    if form is not None:
        return f"{where} is not of the form {form.name} ({form.title})"
    named = unsupported_document(value)
    if named is not None:
        return f"{where} is {named}"
    return (
        f"{where} holds no conversation: give messages in a form of `muntin forms`, or name the "
        f"form with --form"
    )


@contextmanager
def opened_chats(path: Path, form: str | None = None) -> Generator[ChatFile]:
    """Open a file of conversations, or stdin.

    Args:
        path: The file.
        form: Name of its form; None finds it.

    Raises:
        Failure: It cannot be read, or its beginning holds no conversation.
    """
    asked = None
    if form is not None:
        asked = form_named(form)
        if asked is None:
            known = ", ".join(one.name for one in FORMS)
            raise Failure(f"there is no form {form!r}: there are {known}")
    with opened(path) as file:
        yield _opened(path, file, asked)


def _opened(path: Path, file: BufferedReader, asked: Form | None) -> ChatFile:
    name = name_of(path)
    with reading_errors(path):
        named = unsupported_file(file.peek(16)[:16])
    if named is not None:
        raise Failure(f"{name} is {named}")
    lines = _with_blank(_decoded(file, path))
    blank = ""
    for number, text in lines:
        if text.strip().strip(_BOM):
            first = number
            break
        blank += text
    else:
        raise Failure(f"{name} is empty: give a conversation as JSON, JSON lines or text")
    start = _BOM if (blank or text).startswith(_BOM) else ""
    text, blank = text.removeprefix(_BOM), blank.removeprefix(_BOM)
    end = "\r\n" if text.endswith("\r\n") else "\n"
    common: dict[str, Any] = {"path": path, "start": start, "is_forced": asked is not None}
    is_json = text.lstrip()[:1] in ("{", "[")
    if not is_json or (asked is not None and asked.text):
        return _text_file(blank + text, lines, name, asked, common)
    common["end"] = end
    try:
        value = parse_json(text, name)
    except NotJsonError:
        return _one_value(blank + text, lines, name, asked, common)
    head = [(first, text), *islice(lines, 1)]
    if len(head) == 1:
        return _value_file(value, blank + text, name, asked, common)
    values = [value]
    head += islice(lines, _LOOK - len(head))
    values += [_line(more, name, n) for n, more in head[1:]]
    session = session_form(values) if asked is None else None
    if asked is not None and (asked.session or not asked.places(value)) and asked.places(values):
        session = asked
    if session is not None:
        found, layout = session, "session"
    else:
        whole = (asked, asked.places(value)) if asked is not None else form_of(value)
        if whole is None or not whole[1]:
            raise NoConversation(_no_conversation(f"{name}, line {first}", value, asked))
        found, layout = whole[0], "lines"
    common["start"] = start + blank
    return ChatFile(form=found, layout=layout, style=JsonStyle.of(head[0][1]), _head=head,
                    _rest=lines, **common)  # fmt: skip


def _one_value(
    text: str,
    lines: Iterator[tuple[int, str]],
    name: str,
    asked: Form | None,
    common: dict[str, Any],
) -> ChatFile:
    """Read a JSON value that takes several lines, or a text that begins like one."""
    whole = text + "".join(more for _, more in lines)
    try:
        value = parse_json(whole, name)
    except NotJsonError as error:
        if asked is None:
            for form in FORMS:
                if form.text and form.find(whole):
                    return _text_file(whole, iter(()), name, form, common)
        raise Failure(f"{name} is not JSON: {error}") from None
    return _value_file(value, whole, name, asked, common)


def _value_file(
    value: Any, text: str, name: str, asked: Form | None, common: dict[str, Any]
) -> ChatFile:
    found = (asked, asked.places(value)) if asked is not None else form_of(value)
    layout = "json"
    records = cast("list[Any]", value) if isinstance(value, list) else []
    if (found is None or not found[1]) and records:
        found = (asked, asked.places(records[0])) if asked is not None else form_of(records[0])
        layout = "records"
    if found is None or not found[1]:
        raise NoConversation(_no_conversation(name, value, asked))
    common["end"] = "\n" if text.endswith("\n") else ""
    return ChatFile(form=found[0], layout=layout, style=JsonStyle.of(text), _values=value,
                    _head=[(1, text)], **common)  # fmt: skip


def _text_file(
    text: str,
    lines: Iterator[tuple[int, str]],
    name: str,
    asked: Form | None,
    common: dict[str, Any],
) -> ChatFile:
    whole = text + "".join(more for _, more in lines)
    found = (asked, asked.places(whole)) if asked is not None else form_of(whole)
    if found is None or not found[1]:
        if asked is not None:
            raise NoConversation(_no_conversation(name, whole, asked))
        raise NoConversation(f"{name} is not JSON, and names no speakers at the beginning of lines "
                      f"(\"User: ...\"): see `muntin forms`")  # fmt: skip
    return ChatFile(form=found[0], layout="text", style=JsonStyle.of(""), _values=whole,
                    _head=[(1, whole)], **common)  # fmt: skip


def _decoded(file: BufferedReader, path: Path) -> Iterator[tuple[int, str]]:
    """Read the lines of a file with their numbers, checked to be UTF-8 without NUL."""
    name = name_of(path)
    number = 0
    while True:
        with reading_errors(path):
            data = file.readline()
        if not data:
            return
        number += 1
        if number == 1 and data.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise Failure(
                f"{name} is UTF-16, not UTF-8: convert it first, for instance with "
                f"iconv -f UTF-16 -t UTF-8"
            )
        if b"\0" in data:
            raise Failure(f"{name}, line {number} holds a NUL byte: it is binary, or not UTF-8")
        try:
            yield number, data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise Failure(
                f"{name} is not UTF-8 (line {number}, byte {error.start}): convert it first, for "
                f"instance with iconv"
            ) from None


def _with_blank(lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Join blank lines to the line before them, so that they are written back with it."""
    held: tuple[int, str] | None = None
    for number, text in lines:
        if held is not None and not text.strip():
            held = held[0], held[1] + text
            continue
        if held is not None:
            yield held
        held = number, text
    if held is not None:
        yield held


def _line(text: str, name: str, number: int) -> Any:
    try:
        return parse_json(text, f"{name}, line {number}")
    except NotJsonError as error:
        first = ", though line 1 is" if number > 1 else ""
        raise Failure(f"{name}, line {number} is not JSON{first}: {error}") from None


def read_chat(path: Path, form: str | None = None) -> Chat:
    """Read a file that holds one conversation.

    Raises:
        Failure: It cannot be read, or holds several.
    """
    with opened_chats(path, form) as file:
        chats = [chat for part in file.parts() for chat in part.chats]
    if len(chats) > 1:
        raise Failure(f"{name_of(path)} holds {len(chats)} conversations: give a file with one")
    return chats[0]


def read_tools(path: Path) -> list[Any]:
    """Read tool schemas: a list of them, or a request body that has `tools`.

    Raises:
        Failure: It holds no list of schemas.
    """
    try:
        value = parse_json(read_text(path), name_of(path))
    except NotJsonError as error:
        raise Failure(f"{name_of(path)} is not JSON: {error}") from None
    if isinstance(value, dict):
        value = cast("dict[str, Any]", value).get("tools")
    if isinstance(value, list) and all(isinstance(one, dict) for one in cast("list[Any]", value)):
        return cast("list[Any]", value)
    raise Failure(f"{name_of(path)} holds no tool schemas: give a JSON list of them")
