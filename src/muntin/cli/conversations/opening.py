"""Open a file of conversations: find its form and its layout by its beginning."""

from __future__ import annotations

from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from muntin.cli.conversations.chat_file import Chat, ChatFile, no_conversation
from muntin.cli.conversations.json_text import JsonStyle, NotJsonError, parse_json, parse_line
from muntin.cli.conversations.lines import numbered_lines
from muntin.cli.failures import Failure, NoConversation
from muntin.cli.forms.registry import FORMS, form_named, form_of, session_form
from muntin.cli.forms.unsupported import unsupported_file
from muntin.cli.terminal.files import name_of, opened, read_text, reading_errors

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from io import BufferedReader
    from pathlib import Path

    from muntin.cli.forms.form import Form

__all__ = ("opened_chats", "read_chat", "read_tools")

_LOOK = 20
"""Lines read to distinguish a session from a file with a conversation a line."""
_BOM = "\ufeff"


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
    lines = numbered_lines(file, path)
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
    values += [parse_line(more, name, n) for n, more in head[1:]]
    session = session_form(values) if asked is None else None
    if asked is not None and (asked.session or not asked.places(value)) and asked.places(values):
        session = asked
    if session is not None:
        found, layout = session, "session"
    else:
        whole = (asked, asked.places(value)) if asked is not None else form_of(value)
        if whole is None or not whole[1]:
            raise NoConversation(no_conversation(f"{name}, line {first}", value, asked))
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
        raise NoConversation(no_conversation(name, value, asked))
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
            raise NoConversation(no_conversation(name, whole, asked))
        raise NoConversation(f"{name} is not JSON, and names no speakers at the beginning of lines "
                      f"(\"User: ...\"): see `muntin forms`")  # fmt: skip
    return ChatFile(form=found[0], layout="text", style=JsonStyle.of(""), _values=whole,
                    _head=[(1, whole)], **common)  # fmt: skip


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
