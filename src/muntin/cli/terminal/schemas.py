"""The shape of what `--json` and `--report` write, as types, and as JSON schemas made from them."""

from __future__ import annotations

import types
from typing import Any, Literal, NotRequired, TypedDict, Union, get_args, get_origin, get_type_hints
from typing import is_typeddict as is_typed_dict

from muntin.report import DecisionDict, ReportDict

__all__ = ("SCHEMAS", "schema_of")


class CounterJson(TypedDict):
    """How one model's tokens were counted."""

    counter: str
    exact: bool
    window: int | None


class CountedJson(TypedDict):
    """One file, or one conversation of it."""

    path: str
    characters: int
    tokens: dict[str, int]


class TotalJson(TypedDict):
    """The sum of all files."""

    characters: int
    tokens: dict[str, int]


class CountJson(TypedDict):
    """What `muntin count --json` prints."""

    counters: dict[str, CounterJson]
    files: list[CountedJson]
    total: TotalJson


class SearchedJson(TypedDict):
    """How much was searched."""

    files: int
    passages: int


class SkippedJson(TypedDict):
    """A file that was not read."""

    path: str
    reason: str


class AssembleJson(TypedDict):
    """What `muntin assemble --json` and `muntin demo --json` print."""

    text: str
    report: ReportDict
    searched: NotRequired[SearchedJson]
    skipped: NotRequired[list[SkippedJson]]


class ConversationJson(TypedDict):
    """One conversation that was changed."""

    label: str
    form: str
    messages_before: int
    messages_after: int
    report: ReportDict


class ChangedJson(TypedDict):
    """What `muntin trim --json` and `muntin compact --json` print for one file."""

    output: str | None
    result: NotRequired[Any]
    conversations: list[ConversationJson]


class FileJson(TypedDict):
    """One of several files: what became of it."""

    path: str
    output: NotRequired[str]
    form: NotRequired[str]
    conversations: NotRequired[int]
    messages_before: NotRequired[int]
    messages_after: NotRequired[int]
    tokens_before: NotRequired[int]
    tokens_after: NotRequired[int]
    messages: NotRequired[int]
    error: NotRequired[str]
    exit_code: NotRequired[int]
    skipped: NotRequired[str]


class ManyJson(TypedDict):
    """What `muntin trim --json` and `muntin compact --json` print for several files."""

    files: list[FileJson]
    done: int
    failed: int
    skipped: int
    already_done: int
    conversations: int
    tokens_before: int
    tokens_after: int


class ExplainedJson(TypedDict):
    """One report, and the labels of the decisions that were asked for."""

    report: ReportDict
    listed: list[str]


class ExplainJson(TypedDict):
    """What `muntin explain --json` prints."""

    reports: list[ExplainedJson]
    reasons: dict[str, str]


class ChangeJson(TypedDict):
    """One candidate or message whose place in the result changed."""

    before: DecisionDict | None
    after: DecisionDict | None


class PartChangeJson(TypedDict):
    """One part of the window before and after."""

    name: str
    group: str
    before: int
    after: int


class DiffJson(TypedDict):
    """What `muntin diff --json` prints."""

    unchanged: bool
    used_before: int
    used_after: int
    came_in: list[ChangeJson]
    went_out: list[ChangeJson]
    resized: list[ChangeJson]
    parts: list[PartChangeJson]
    stable_prefix_tokens: int
    stable_prefix_characters: int
    first_changed: str | None


class FormJson(TypedDict):
    """One form of conversations."""

    name: str
    title: str


class FormsJson(TypedDict):
    """What `muntin forms --json` prints."""

    forms: NotRequired[list[FormJson]]
    files: NotRequired[list[FileJson]]


SCHEMAS: dict[str, Any] = {
    "count": CountJson,
    "assemble": AssembleJson,
    "demo": AssembleJson,
    "trim": ChangedJson | ManyJson,
    "compact": ChangedJson | ManyJson,
    "explain": ExplainJson,
    "diff": DiffJson,
    "forms": FormsJson,
    "report": ReportDict,
}
"""The type of each command's JSON, and of a report."""

_PLAIN: dict[Any, dict[str, Any]] = {
    str: {"type": "string"}, int: {"type": "integer"}, float: {"type": "number"},
    bool: {"type": "boolean"}, type(None): {"type": "null"}, Any: {},
}  # fmt: skip


def schema_of(name: str) -> dict[str, Any]:
    """Return the JSON schema of a command's output.

    Args:
        name: A key of `SCHEMAS`.
    """
    made = _schema(SCHEMAS[name])
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": name, **made}


def _schema(kind: Any) -> dict[str, Any]:
    """Write a type as a JSON schema."""
    if kind in _PLAIN:
        return dict(_PLAIN[kind])
    if is_typed_dict(kind):
        return _object(kind)
    origin, inner = get_origin(kind), get_args(kind)
    if origin is NotRequired:
        return _schema(inner[0])
    if origin is Literal:
        return {"enum": list(inner)}
    if origin in (list, tuple):
        return {"type": "array", "items": _schema(inner[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema(inner[1])}
    if origin in (Union, types.UnionType):
        return {"anyOf": [_schema(one) for one in inner]}
    raise TypeError(f"no JSON schema is known for {kind!r}")


def _object(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    required = [name for name in hints if get_origin(hints[name]) is not NotRequired]
    described = {"description": str(kind.__doc__).partition("\n")[0]}
    properties = {name: _schema(hint) for name, hint in hints.items()}
    return {"type": "object", **described, "properties": properties, "required": required,
            "additionalProperties": False}  # fmt: skip
