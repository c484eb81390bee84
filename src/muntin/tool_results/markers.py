"""The marker of a shortened tool result: written in a fixed place, and recognised there again.

A text carries it in its first line. JSON must stay JSON, so there it is the first key of an object,
a first element of its own in an array, the first line inside a string. What was shortened before is
recognised by the words of the registry in use, and keeps the id and the sizes of its original.

It neither measures nor cuts anything.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

from muntin.errors import StateError
from muntin.tool_results.json_excerpts import parse_json, to_json
from muntin.tool_results.store import RESULT_ID

if TYPE_CHECKING:
    from collections.abc import Callable

    from muntin.prompts import PromptRegistry
    from muntin.tool_results.store import ToolResultStore

__all__ = (
    "MarkerKind",
    "Original",
    "bare_json",
    "marked_json",
    "marked_text",
    "marker",
    "original_of",
)

_KEY = "_shortened"
"""The key that holds the marker in JSON."""
MarkerKind = Literal["marker", "marker_summary", "marker_brief", "marker_least"]
"""A marker above an excerpt or a summary; a brief one; one with the place of the original only."""
_KINDS: tuple[MarkerKind, ...] = ("marker", "marker_summary", "marker_brief", "marker_least")
_SIZE = "[0-9][0-9,]*"
_MISSING = "…"
"""What every mark for a missing part holds."""
_ADDED_LINES, _ADDED_LENGTH = 2, 120
"""Different lines, and characters of one, that a shortened text may have beyond its original."""
_SUMMARY_CHARACTERS = 8_000
"""Characters of a text below which it may be a summary of its original."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Original:
    """What is known of a result that is to be shortened."""

    body: str
    """The text, without the marker of an earlier shortening if it is not JSON."""
    is_json: bool
    """Whether the text is JSON."""
    value: Any = None
    """The JSON value, without the marker of an earlier shortening."""
    tokens: int
    """Tokens of the very first original."""
    characters: int
    """Characters of the very first original."""
    result_id: str | None
    """Where it is stored; None where it is not."""
    again: bool
    """Whether the text was shortened before."""


def original_of(
    result: str, text: str, tokens: int, store: ToolResultStore | None, prompts: PromptRegistry
) -> Original:
    """Recognise what was shortened before; store what was not.

    Args:
        result: What the tool returned, to be stored as it is.
        text: The same, clean.
        tokens: Tokens of `text`.
        store: Where originals go, or None.
        prompts: The words of markers.
    """
    is_json, value = parse_json(text)
    found, body, rest = _part_json(text, value, prompts) if is_json else _part_text(text, prompts)
    if found:
        id_ = re.search(RESULT_ID, found["where"])
        # A text that only quotes a marker must not lose its own original.
        if _is_ours(found, id_[0] if id_ else None, text, body, rest, store, prompts):
            return Original(
                body=body,
                is_json=is_json,
                value=rest,
                tokens=_number(found, "tokens", tokens),
                characters=_number(found, "characters", len(text)),
                result_id=id_[0] if id_ else None,
                again=True,
            )
    return Original(
        body=text,
        is_json=is_json,
        value=value,
        tokens=tokens,
        characters=len(text),
        result_id=None if store is None else _stored(store, result),
        again=False,
    )


def _is_ours(
    found: re.Match[str],
    result_id: str | None,
    text: str,
    body: str,
    rest: Any,
    store: ToolResultStore | None,
    prompts: PromptRegistry,
) -> bool:
    """Whether a text that begins with a marker was shortened here, and does not just quote it."""
    claimed = _number(found, "characters", 0)
    if claimed and claimed < len(body):
        return False
    if store is None:
        return True
    if result_id is None:
        return False
    try:
        if result_id not in store:
            return False
        original = store.get(result_id)
    except StateError:
        return True  # unreadable now: the id must not be lost
    if _pattern("marker_summary", prompts).fullmatch(found.string):
        return len(body) <= min(len(original), _SUMMARY_CHARACTERS)
    parts = _leaves(rest) if body is text and rest is not None else body.splitlines()
    # A framework may add a line or two of its own.
    added = {part for part in parts if not _comes_from(part, original)}
    return len(added) <= _ADDED_LINES and all(len(line) <= _ADDED_LENGTH for line in added)


def _leaves(value: Any) -> list[str]:
    """List the strings in a JSON value, line by line; numbers are too short to compare."""
    if isinstance(value, str):
        return value.splitlines()
    if isinstance(value, dict):
        held = cast("dict[str, Any]", value)
        return [line for part in held.values() for line in _leaves(part)]
    if isinstance(value, list):
        return [line for part in cast("list[Any]", value) for line in _leaves(part)]
    return []


def _comes_from(line: str, original: str) -> bool:
    """Whether a line is in the original, marks what is missing, or lists facts of it."""
    plain = line.strip()
    if not plain or _MISSING in plain or plain in original:
        return True
    if to_json(plain)[1:-1] in original:
        return True
    facts = [fact for fact in plain.split(", ") if ": " in fact]
    return bool(facts) and all(fact.rpartition(": ")[2] in original for fact in facts)


def _stored(store: ToolResultStore, result: str) -> str | None:
    """Store an original and return its id, or `None` if it cannot be stored.

    A full disk must not end the run that wanted to cut a result.
    """
    try:
        return store.put(result)
    except StateError as error:
        warnings.warn(f"a tool result is cut and its original is not stored: {error}", stacklevel=6)
        return None


def marker(
    kind: MarkerKind,
    original: Original,
    prompts: PromptRegistry,
) -> str:
    """Write the marker of a result: its sizes, and where the rest is."""
    if original.result_id is None:
        where = prompts.get("tool_result.not_stored")
    else:
        is_brief = kind in ("marker_brief", "marker_least")
        told = "tool_result.stored_brief" if is_brief else "tool_result.stored"
        where = prompts.render(told, id=original.result_id)
    if kind == "marker_least":
        return prompts.render("tool_result.marker_least", where=where)
    return prompts.render(
        f"tool_result.{kind}",
        tokens=f"{original.tokens:,}",
        characters=f"{original.characters:,}",
        where=where,
    )


def marked_text(show: Callable[[int], str], line: str) -> Callable[[int], str]:
    """Put a marker into the first line of the excerpt for a size."""
    return lambda room: f"{line}\n{show(room)}".rstrip("\n")


def marked_json(show: Callable[[int], str], value: Any, line: str) -> Callable[[int], str]:
    """Put a marker into the first place that this kind of JSON has."""
    if isinstance(value, (dict, list)):
        named = f"{to_json(_KEY)}:{to_json(line)}"
        opening = f"{{{named}" if isinstance(value, dict) else f"[{{{named}}}"
        return lambda room: opening + ("," if value else "") + show(room)[1:]
    if isinstance(value, str):
        return lambda room: f"{to_json(line)[:-1]}\\n{show(room)[1:]}"
    return lambda _room: to_json(line)


def bare_json(value: Any, line: str) -> str:
    """Write nothing but a marker, as the kind of JSON that the value is."""
    if isinstance(value, (dict, list)):
        bare = to_json({_KEY: line})
        return bare if isinstance(value, dict) else f"[{bare}]"
    return to_json(line)


def _part_text(text: str, prompts: PromptRegistry) -> tuple[re.Match[str] | None, str, None]:
    line, _, rest = text.partition("\n")
    found = _read(line, prompts)
    return found, rest if found else text, None


def _part_json(
    text: str, value: Any, prompts: PromptRegistry
) -> tuple[re.Match[str] | None, str, Any]:
    if isinstance(value, dict):
        record = cast("dict[str, Any]", value)
        rest: Any = {key: part for key, part in record.items() if key != _KEY}
        return _read(record.get(_KEY), prompts), text, rest
    if isinstance(value, list):
        items = cast("list[Any]", value)
        first: Any = items[0] if items else None
        told = first.get(_KEY) if isinstance(first, dict) and len(first) == 1 else None  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType, reportUnknownVariableType] - any JSON
        return _read(cast("object", told), prompts), text, items[1:]
    if isinstance(value, str):
        line, _, inside = value.partition("\n")
        return _read(line, prompts), text, inside
    return None, text, value


def _read(line: object, prompts: PromptRegistry) -> re.Match[str] | None:
    if not isinstance(line, str):
        return None
    for kind in _KINDS:
        found = _pattern(kind, prompts).fullmatch(line)
        if found:
            return found
    return None


def _pattern(kind: MarkerKind, prompts: PromptRegistry) -> re.Pattern[str]:
    """Make the expression that reads a marker of some kind."""
    pattern = re.escape(prompts.get(f"tool_result.{kind}"))
    for name, part in (("tokens", _SIZE), ("characters", _SIZE), ("where", ".*?")):
        pattern = pattern.replace(rf"\{{{name}\}}", f"(?P<{name}>{part})", 1)
    return re.compile(pattern)


def _number(found: re.Match[str], name: str, otherwise: int) -> int:
    """Read a number of a marker that may not have it."""
    digits = found.groupdict().get(name)
    return otherwise if digits is None else int(digits.replace(",", ""))
