"""Where in a document a form keeps its conversations, and how changed ones are written back.

A conversation is written back record by record: a record whose messages did not change is the same
object, other records keep their places, and an added message comes after the one
that precedes it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from muntin.cli.forms.message import as_record

if TYPE_CHECKING:
    from muntin.cli.forms.message import FileMessage, Kind, Raw

__all__ = ("Conversation", "Form", "Key", "Place", "at", "places_in", "read_place", "write_place")

Key = str | int
Path = tuple[Key, ...]

_KEYS = ("messages", "turns", "conversation", "conversations", "history", "chat_history", "input")
"""Keys under which records of data sets and request bodies keep their messages."""
_SYSTEM = ("system", "instructions", "system_prompt", "systemPrompt")
"""Keys under which a system prompt is found next to the messages."""
_TOOLS = ("tools", "functions")


def _as_is(prompt: Any) -> Any:
    return prompt


def _same(container: Any) -> list[Any]:
    return cast("list[Any]", container)


def _replaced(container: Any, records: list[Any]) -> Any:
    del container
    return records


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where one conversation is in a document, and how its records are read."""

    kind: Kind
    """How the records are read."""
    path: Path = ()
    """Keys from the document to what holds the records."""
    system: Path | None = None
    """Keys to the system prompt outside the messages; None where there is none."""
    tools: Path | None = None
    """Keys to the tool schemas; None where there are none."""
    prompt: Callable[[Any], Any] = field(default=_as_is, repr=False)
    """Returns the text, or the blocks, of what is at `system`."""
    label: str = ""
    """Distinguishes it from the other conversations of its document."""
    opened: Callable[[Any], list[Any]] = field(default=_same, repr=False)
    """Returns the records of what is at `path`."""
    closed: Callable[[Any, list[Any]], Any] = field(default=_replaced, repr=False)
    """Returns what is at `path` with other records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """One way in which conversations are written to files."""

    name: str
    """What `--form` and reports call it."""
    title: str
    """What it is, for people."""
    find: Callable[[Any], list[Place]] = field(repr=False)
    """Returns where a document of this form keeps conversations; nothing for other documents."""
    find_named: Callable[[Any], list[Place]] | None = field(default=None, repr=False)
    """Like `find`, for a document for which the user named this form."""
    session: bool = False
    """Whether all lines of a file of JSON lines are one document."""
    text: bool = False
    """Whether its files are text and no JSON."""

    def places(self, document: Any) -> list[Place]:
        """Return the conversations of a document for which the user named this form."""
        return self.find(document) or (self.find_named(document) if self.find_named else [])


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """Hold one conversation of a document."""

    messages: list[FileMessage]
    """Its messages; a system prompt from outside the list comes first."""
    tools: list[Any]
    """Tool schemas that are sent with the messages."""
    records: list[Any]
    """The records it was read from."""
    place: Place
    """Where it is."""


def at(document: Any, path: Sequence[Key]) -> Any:
    """Return what is at a place of a document; None where there is nothing."""
    for key in path:
        if isinstance(document, dict):
            document = cast("dict[Key, Any]", document).get(key)
        elif isinstance(document, list) and isinstance(key, int):
            items = cast("list[Any]", document)
            document = items[key] if -len(items) <= key < len(items) else None
        else:
            return None
    return document


def places_in(
    document: Any,
    kind_of: Callable[[list[Raw]], Kind | None],
    *,
    keys: Sequence[str] = _KEYS,
    system: Sequence[str] = _SYSTEM,
) -> list[Place]:
    """Find the list of messages in a document: the document itself, or a value of it.

    Args:
        document: A JSON value.
        kind_of: Returns how a list of records is read; None when it holds no messages.
        keys: Keys to look under.
        system: Keys of a system prompt next to the messages.
    """
    if isinstance(document, list):
        kind = _kind(document, kind_of)
        return [Place(kind=kind)] if kind is not None else []
    known = as_record(document)
    if known is None:
        return []
    for key in keys:
        kind = _kind(known.get(key), kind_of)
        if kind is None:
            continue
        prompt = next((one for one in system if _is_prompt(known.get(one))), None)
        tools = next((one for one in _TOOLS if known.get(one)), None)
        return [
            Place(
                kind=kind,
                path=(key,),
                system=None if prompt is None else (prompt,),
                tools=None if tools is None else (tools,),
            )
        ]
    return []


def _kind(value: Any, kind_of: Callable[[list[Raw]], Kind | None]) -> Kind | None:
    if not isinstance(value, list) or not value:
        return None
    items = cast("list[Any]", value)
    if not all(isinstance(one, dict) for one in items):
        return None
    return kind_of(cast("list[Raw]", items))


def _is_prompt(value: Any) -> bool:
    if isinstance(value, dict):
        return isinstance(cast("Raw", value).get("parts"), list)
    return bool(value) and isinstance(value, (str, list))


def read_place(document: Any, place: Place) -> Conversation:
    """Read the conversation at a place of a document."""
    records = place.opened(at(document, place.path))
    kind = place.kind
    known = [as_record(one) for one in records]
    slots = [n for n, one in enumerate(known) if one is not None and kind.owns(one)]
    raws = [records[n] for n in slots]
    messages: list[FileMessage] = []
    if place.system is not None:
        prompt = place.prompt(at(document, place.system))
        if _is_prompt(prompt):
            messages.append(kind.message(raw=_system(prompt), beside=True))
    links = kind.links(raws)
    for slot, raw, link in zip(slots, raws, links, strict=True):
        for piece, part in enumerate(kind.split(raw)):
            messages.append(kind.message(raw=part, links=link, slot=slot, piece=piece))
    tools = [] if place.tools is None else _schemas(at(document, place.tools))
    return Conversation(messages=messages, tools=tools, records=records, place=place)


def _system(prompt: Any) -> Raw:
    parts = cast("Raw", prompt).get("parts") if isinstance(prompt, dict) else None
    if parts is not None:
        return {"role": "system", "parts": parts}
    return {"role": "system", "content": prompt}


def _schemas(value: Any) -> list[Any]:
    """Read tool schemas: a list, JSON text of one, or Gemini's lists of declarations."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return [value]
    found: list[Any] = []
    for one in cast("list[Any]", value) if isinstance(value, list) else [value]:
        held = as_record(one) or {}
        inner = held.get("functionDeclarations") or held.get("function_declarations")
        found += cast("list[Any]", inner) if isinstance(inner, list) else [one]
    return found


def write_place(document: Any, read: Conversation, messages: Sequence[FileMessage]) -> Any:
    """Return the document with other messages at the place of a conversation.

    The containers on the way to it are changed in place: a document is written once.
    """
    place = read.place
    container = at(document, place.path)
    changed = place.closed(container, _merged(read, messages))
    if not place.path:
        return changed
    holder: Any = at(document, place.path[:-1])
    holder[place.path[-1]] = changed
    return document


def _merged(read: Conversation, messages: Sequence[FileMessage]) -> list[Any]:
    kind, records = read.place.kind, read.records
    pieces: dict[int, dict[int, FileMessage]] = {}
    for message in messages:
        if message.slot is not None:
            pieces.setdefault(message.slot, {})[message.piece] = message
    given: dict[int, dict[int, FileMessage]] = {}
    for message in read.messages:
        if message.slot is not None:
            given.setdefault(message.slot, {})[message.piece] = message
    written: list[Any] = []
    added: list[int] = []
    next_record = 0

    def flush(limit: int) -> None:
        nonlocal next_record
        while next_record < limit:
            if next_record not in given:
                written.append(records[next_record])
            next_record += 1

    flush(min(given, default=0))
    done: set[int] = set()
    for message in messages:
        if message.beside:
            continue
        if message.slot is None:
            added.append(len(written))
            written.append(message.raw)
        elif message.slot not in done:
            done.add(message.slot)
            flush(message.slot)
            next_record = max(next_record, message.slot + 1)
            left, whole = pieces[message.slot], given[message.slot]
            if len(left) == len(whole) and all(left[n].raw is whole[n].raw for n in whole):
                written.append(records[message.slot])
            else:
                raws = {n: one.raw for n, one in left.items()}
                written.append(kind.join(records[message.slot], raws))
    flush(len(records))
    for n in added:
        before = written[n - 1] if n else None
        after = written[n + 1] if n + 1 < len(written) else None
        written[n] = kind.settled(written[n], as_record(before), as_record(after))
    return kind.linked(records, written)
