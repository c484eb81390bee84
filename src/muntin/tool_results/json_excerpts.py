"""What to show of a JSON value that is too long, as JSON of the same kind.

Arrays keep elements of both ends, records keep their keys, long strings lose their middle, and what
is small stays whole: the space is shared max-min fairly. An element, a key or a mark inside the
string gives the missing amount. Numbers are never touched. Nesting of an extreme depth is
stood for by its size, so that recursion stays bounded.
"""

from __future__ import annotations

import json
import math
from itertools import islice
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any, cast

from muntin.runtime import fair_shares
from muntin.tool_results.text_excerpts import LEAST_ROOM, both_ends

if TYPE_CHECKING:
    from collections.abc import Iterable

    from muntin.tool_results.text_excerpts import Marks

__all__ = ("JsonExcerpt", "parse_json", "to_json")

_DEEPEST = 48
"""Levels of nesting that are shown of a value that must be shortened."""
_LEAST_VALUE = 12
"""Characters below which the value of a key is not worth the key."""
_LEAST_ELEMENT = 48
"""Characters an element of an array gets at least, unless it needs fewer."""
_MISSING = "…"
"""The key in place of omitted keys."""


def parse_json(text: str) -> tuple[bool, Any]:
    """Parse a text if it is JSON; return whether it was.

    NaN and the infinities, which Python reads and JSON does not know, become strings.
    """
    start = text[:64].lstrip()[:1]
    if not start or start not in '{["-0123456789tfn':
        return False, None
    try:
        return True, json.loads(text, parse_float=_finite, parse_constant=str)
    except (ValueError, RecursionError):
        return False, None


def to_json(value: Any) -> str:
    """Write a value as JSON, compactly, every script as it is."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class JsonExcerpt:
    """Show a parsed JSON value in fewer characters."""

    def __init__(self, value: Any, marks: Marks) -> None:
        self._value = value
        self._marks = marks
        self._sizes = _container_sizes(value)
        # Strings are shown at several sizes, and searching a long one takes its time.
        self._readable: dict[int, str] = {}

    def __call__(self, room: int) -> str:
        """Show what fits about so many characters."""
        return self._show(self._value, room, 0)

    def _show(self, value: Any, room: int, depth: int) -> str:
        size = self._size(value)
        if isinstance(value, (dict, list)):
            if not value:
                return to_json(value)
            if depth >= _DEEPEST:
                return to_json(self._marks.characters(" " * size))
            if size <= room:
                return self._whole(value, size)
            if isinstance(value, dict):
                return self._show_record(cast("dict[str, Any]", value), room, depth)
            return self._show_array(cast("list[Any]", value), room, depth)
        if size <= room:
            return to_json(value)
        if isinstance(value, str):
            text = self._readable.get(id(value))
            if text is None:
                text = self._readable[id(value)] = self._marks.without_base64(value)
            return to_json(self._marks.clip(text, max(1, room - 2)))
        number = to_json(value)
        return number if size <= LEAST_ROOM else to_json(self._marks.clip(number, room))

    def _whole(self, value: Any, size: int) -> str:
        try:
            return to_json(value)
        except RecursionError:
            # Read from a shallower stack than this one.
            return to_json(self._marks.characters(" " * size))

    def _show_array(self, items: list[Any], room: int, depth: int) -> str:
        marks = self._marks
        for_mark = len(marks.items(())) + 6
        least = max(_LEAST_ELEMENT, room // 4)
        left = room - for_mark
        chosen: list[int] = []
        for at in both_ends(range(len(items))):
            if marks.stands("items", items[at]):
                continue
            cost = min(self._size(items[at]), least) + 1
            if cost > left:
                break
            chosen.append(at)
            left -= cost
        chosen.sort()
        spare = room - 2 - len(chosen) - (for_mark if len(chosen) < len(items) else 0)
        shares = fair_shares([self._size(items[at]) for at in chosen], spare)
        parts: list[str] = []
        reached = 0
        for at, share in zip(chosen, shares, strict=True):
            if at > reached:
                parts.append(to_json(marks.items(items[reached:at])))
            parts.append(self._show(items[at], share, depth + 1))
            reached = at + 1
        if reached < len(items):
            parts.append(to_json(marks.items(items[reached:])))
        return f"[{','.join(parts)}]"

    def _show_record(self, record: dict[str, Any], room: int, depth: int) -> str:
        marks = self._marks
        keys, missing = self._choose_keys(record, room)
        spare = room - 2 - sum(_key_size(key) for key in keys)
        if missing:
            spare -= len(marks.keys(missing)) + 6
        shares = fair_shares([self._size(record[key]) for key in keys], spare)
        parts = [
            f"{to_json(key)}:{self._show(record[key], share, depth + 1)}"
            for key, share in zip(keys, shares, strict=True)
        ]
        if missing:
            name = _MISSING
            while name in keys:
                name += _MISSING
            parts.append(f"{to_json(name)}:{to_json(marks.keys(missing))}")
        return f"{{{','.join(parts)}}}"

    def _choose_keys(self, record: dict[str, Any], room: int) -> tuple[list[str], list[Any]]:
        """Keep keys from the first on while there is space; return the values of the others."""
        marks = self._marks
        for_mark = len(marks.keys(())) + 6
        keys: list[str] = []
        costs: list[int] = []
        left = room - 2
        for key, value in record.items():
            if not key.strip(_MISSING) and marks.stands("keys", value):
                break  # the mark of an earlier cut is last
            cost = _key_size(key) + min(self._size(value), _LEAST_VALUE)
            if cost > left:
                break
            keys.append(key)
            costs.append(cost)
            left -= cost
        while keys and len(keys) < len(record) and left < for_mark:
            keys.pop()
            left += costs.pop()
        return keys, list(islice(record.values(), len(keys), None))

    def _size(self, value: Any) -> int:
        if isinstance(value, (dict, list)):
            return self._sizes[id(cast("object", value))]
        return _leaf_size(value)


def _finite(literal: str) -> float | str:
    number = float(literal)
    return number if math.isfinite(number) else literal


def _key_size(key: str) -> int:
    """Characters a key takes with its colon and the comma before it."""
    return len(encode_basestring(key)) + 2


def _leaf_size(value: Any) -> int:
    if isinstance(value, str):
        return len(encode_basestring(value))
    return len(repr(value)) if isinstance(value, (int, float)) else 4


def _container_sizes(root: Any) -> dict[int, int]:
    """Measure every container as it would be written, by identity: one pass, no recursion."""
    containers = [root] if _is_container(root) else []
    for container in containers:
        containers.extend(filter(_is_container, _parts(container)))
    sizes: dict[int, int] = {}
    for container in reversed(containers):
        parts = (
            sizes[id(part)] if _is_container(part) else _leaf_size(part)
            for part in _parts(container)
        )
        sizes[id(container)] = 2 + _frame_size(container) + sum(parts)
    return sizes


def _is_container(value: Any) -> bool:
    return isinstance(value, (dict, list))


def _parts(container: Any) -> Iterable[Any]:
    if isinstance(container, dict):
        return cast("dict[str, Any]", container).values()
    return cast("list[Any]", container)


def _frame_size(container: Any) -> int:
    """Characters of keys, colons and commas."""
    if isinstance(container, dict):
        return sum(map(_key_size, cast("dict[str, Any]", container)))
    return len(cast("list[Any]", container))
