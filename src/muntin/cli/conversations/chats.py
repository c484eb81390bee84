"""Where in a file conversations stand, and how a changed one is written back into it.

A file may be a list of messages, a request body (OpenAI, Responses, Anthropic, with `system` or
`instructions` and `tools` beside the messages), a record of a data set, a LlamaIndex chat store, or
JSON lines: a message a line, or a conversation a line. Everything around the messages is written
back as it was. How single messages read is said in `dumps`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from muntin.cli.failures import Failure
from muntin.cli.forms.dumps import FORMS, Dumped
from muntin.cli.terminal.files import name_of, read_text
from muntin.cli.terminal.options import chosen
from muntin.messages import shape_of
from muntin.text import clean_text

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ("Chat", "ChatFile", "read_chats", "read_tools")

_KEYS = ("messages", "turns", "conversation", "conversations", "history", "chat_history", "input")
"""Where records keep their messages; the first that holds some counts."""
_BESIDE = ("system", "instructions")
"""Where request bodies keep the system prompt."""
_INDENT = re.compile(r"\s*[\[{]\r?\n([ \t]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """Hold one conversation of a file."""

    messages: list[Dumped]
    """Its messages; a system prompt that stands beside them comes first."""
    form: str
    """How its messages are written; a key of `FORMS`."""
    label: str
    """What it is called in notes and errors."""
    tools: list[Any]
    """Tool schemas that stand beside the messages."""
    document: Any
    """The JSON value it stands in."""
    path: tuple[str, ...]
    """Where in it the messages stand."""
    beside: Dumped | None = None
    """The system prompt that stands beside the messages; it is not written among them."""

    def pinned(self, newest: int) -> list[Dumped]:
        """Return the messages with the newest ones pinned; the others are the same objects."""
        border = max(0, len(self.messages) - newest)
        kept = [replace(message, pinned=True) for message in self.messages[border:]]
        return [*self.messages[:border], *kept]

    def with_messages(self, messages: Sequence[Dumped]) -> Any:
        """Return the document with other messages in their place."""
        written = [one.raw for one in messages]
        if self.beside is not None and written and written[0].get("role") == "system":
            del written[0]  # it is protected, so it is as it stands beside the messages
        return _put(self.document, self.path, written)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatFile:
    """Hold the conversations of a file, and how the file is written."""

    chats: list[Chat]
    """Its conversations, in order; at least one."""
    lines: bool
    """Whether it is JSON lines."""
    one_document: bool
    """Whether all conversations stand in one JSON value."""
    indent: str | None
    """What its JSON is indented by; None for a compact one."""
    ascii_only: bool
    """Whether every character beyond ASCII is written as an escape."""

    def select(self, record: int | None) -> list[Chat]:
        """Return the N-th conversation, or all of them."""
        return chosen(self.chats, record, "conversation")

    def value(self, chats: Sequence[Chat], changed: Sequence[Sequence[Dumped]]) -> Any:
        """Return what the file would hold: one JSON value, or a list of one a line."""
        if self.lines and not chats[0].path and self.one_document:
            return [message.raw for message in changed[0]]
        if not self.one_document:
            return [
                chat.with_messages(messages)
                for chat, messages in zip(chats, changed, strict=True)
            ]  # fmt: skip
        document = chats[0].document
        for chat, messages in zip(chats, changed, strict=True):
            document = replace(chat, document=document).with_messages(messages)
        return document

    def write(self, chats: Sequence[Chat], changed: Sequence[Sequence[Dumped]]) -> bytes:
        """Write conversations in the style of the file they came from."""
        value = self.value(chats, changed)
        if self.lines:
            text = "".join(f"{self._json(one, None)}\n" for one in cast("list[Any]", value))
        else:
            text = f"{self._json(value, self.indent)}\n"
        return clean_text(text).encode()

    def _json(self, value: Any, indent: str | None) -> str:
        return json.dumps(value, ensure_ascii=self.ascii_only, indent=indent)


def read_chats(path: Path) -> ChatFile:
    """Read the conversations of a file, or of stdin.

    Raises:
        Failure: It cannot be read, is not JSON, or holds no conversation.
    """
    text = read_text(path)
    name = name_of(path)
    values, lines = _values(text, name)
    lines = lines or _is_message(values[0])
    one_document = not lines or _is_message(values[0])
    documents: list[Any] = [values] if lines and one_document else values
    chats: list[Chat] = []
    for at, document in enumerate(documents):
        where = f"{name}, line {at + 1}" if len(documents) > 1 else name
        found = list(_found(document))
        if not found:
            raise Failure(
                f"{where} holds no conversation: give a list of messages, or an object with "
                f"'messages' (OpenAI, Anthropic, LangChain, LlamaIndex, or JSON lines of them)"
            )
        chats += [_chat(document, place, where) for place in found]
    indent = _INDENT.match(text)
    return ChatFile(
        chats=chats,
        lines=lines,
        one_document=one_document,
        indent=indent[1] if indent else None,
        ascii_only=text.isascii() and "\\u" in text,
    )


def read_tools(path: Path) -> list[Any]:
    """Read tool schemas: a list of them, or a request body that has `tools`.

    Raises:
        Failure: It holds no list of schemas.
    """
    try:
        value: Any = json.loads(read_text(path))
    except ValueError as error:
        raise Failure(f"{name_of(path)} is not JSON: {error}") from None
    if isinstance(value, Mapping):
        value = cast("Mapping[str, Any]", value).get("tools")
    if isinstance(value, list) and all(isinstance(one, dict) for one in cast("list[Any]", value)):
        return cast("list[Any]", value)
    raise Failure(f"{name_of(path)} holds no tool schemas: give a JSON list of them")


def _values(text: str, name: str) -> tuple[list[Any], bool]:
    """Read one JSON value, or one a line; says which."""
    if not text.strip():
        raise Failure(f"{name} is empty: give a conversation as JSON or JSON lines")
    try:
        return [json.loads(text)], False
    except ValueError as whole:
        problem = whole
    values: list[Any] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            values.append(json.loads(line))
        except ValueError as error:
            if not values:
                raise Failure(f"{name} is not JSON: {problem}") from None
            raise Failure(
                f"{name}, line {number} is not JSON, though line 1 is: {_in_line(error)}"
            ) from None
    return values, True


def _in_line(error: ValueError) -> str:
    """Say what is wrong in a line; the numbers of lines in it would be those of another file."""
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} (column {error.colno})"
    return str(error)


def _is_message(value: Any) -> bool:
    """Whether a value is one message, not a record that holds some."""
    return isinstance(value, dict) and not list(_found(value)) and _form_of([value]) is not None


def _found(document: Any) -> list[tuple[str, ...]]:
    """Find where in a document lists of messages stand."""
    if isinstance(document, list):
        return [()] if document and _form_of(cast("list[Any]", document)) is not None else []
    if not isinstance(document, dict):
        return []
    known = cast("dict[str, Any]", document)
    for key in _KEYS:
        inner = known.get(key)
        if isinstance(inner, list) and inner and _form_of(cast("list[Any]", inner)) is not None:
            return [(key,)]
    for key in ("store", "chat_store"):
        if isinstance(known.get(key), dict):
            stored = cast("dict[str, Any]", known[key])
            inside = [(name,) for name in stored if _found(stored[name]) == [()]]
            inside = inside or _found(stored)
            return [(key, *place) for place in inside]
    return []


def _form_of(messages: Sequence[Any]) -> str | None:
    """Name the form of messages; None when they are none."""
    if not all(isinstance(one, dict) for one in messages):
        return None
    dicts = cast("Sequence[dict[str, Any]]", messages)
    for form, is_so in _KNOWN.items():
        if all(map(is_so, dicts)):
            return form
    return _provider(dicts) if all(map(_is_provider_message, dicts)) else None


def _is_constructor(one: Mapping[str, Any]) -> bool:
    return "lc" in one and isinstance(one.get("kwargs"), dict)


def _is_langchain(one: Mapping[str, Any]) -> bool:
    return isinstance(one.get("data"), dict) and "type" in one


def _is_llama_index(one: Mapping[str, Any]) -> bool:
    return "role" in one and ("blocks" in one or "additional_kwargs" in one)


def _is_sharegpt(one: Mapping[str, Any]) -> bool:
    return "from" in one and "value" in one


def _is_turn(one: Mapping[str, Any]) -> bool:
    return "role" in one and "text" in one and "content" not in one


_KNOWN: dict[str, Callable[[Mapping[str, Any]], bool]] = {
    "langchain-constructor": _is_constructor,
    "langchain": _is_langchain,
    "llama-index": _is_llama_index,
    "sharegpt": _is_sharegpt,
    "turns": _is_turn,
}
"""How the forms that are not a provider's are told, the most particular first."""


def _is_provider_message(one: Mapping[str, Any]) -> bool:
    if "role" in one:
        return "content" in one or "tool_calls" in one or "function_call" in one
    return isinstance(one.get("type"), str) and bool(_RESPONSES_KEYS & one.keys())


_RESPONSES_KEYS = {"call_id", "arguments", "output", "summary", "content", "action"}


def _provider(messages: Sequence[dict[str, Any]]) -> str:
    """Tell providers apart by what only one of them writes."""
    names = {shape_of(message).name for message in messages}
    if "openai-responses" in names:
        return "openai-responses"
    if any(message.get("role") == "tool" or "tool_calls" in message for message in messages):
        return "openai"
    return "anthropic" if "anthropic" in names else "openai"


def _chat(document: Any, path: tuple[str, ...], where: str) -> Chat:
    raws = cast("list[dict[str, Any]]", _at(document, path))
    form = cast("str", _form_of(raws))
    around = cast("dict[str, Any]", document) if isinstance(document, dict) else {}
    prompt = next((around[key] for key in _BESIDE if around.get(key)), None)
    if form == "openai" and isinstance(around.get("system"), (str, list)):
        form = "anthropic"
    kind = FORMS[form]
    beside = None
    if len(path) == 1 and isinstance(prompt, (str, list)):
        beside = kind({"role": "system", "content": prompt})
    tools = around.get("tools")
    are_schemas = isinstance(tools, list) and all(
        isinstance(tool, dict) for tool in cast("list[Any]", tools)
    )
    name = around.get("id")
    label = f"{where} ({name})" if isinstance(name, str) else where
    label += f", {path[-1]}" if len(path) > 1 else ""
    return Chat(
        messages=[*([beside] if beside else []), *map(kind, raws)],
        form=form,
        label=label,
        tools=cast("list[Any]", tools) if are_schemas else [],
        document=document,
        path=path,
        beside=beside,
    )


def _at(document: Any, path: Sequence[str]) -> Any:
    for key in path:
        document = document[key]
    return document


def _put(document: Any, path: Sequence[str], value: Any) -> Any:
    """Return a copy of a document with another value at a place."""
    if not path:
        return value
    return {**document, path[0]: _put(document[path[0]], path[1:], value)}
