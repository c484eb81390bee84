"""Remember plain data as it was: copies to compare with later, and keys to find equals by.

Messages are plain data, mostly flat dicts of texts, and thousands of them are looked at in every
fit. So the common case never leaves C, and only what is nested is walked here. It knows nothing of
what the data means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ("Same", "common_start", "remembered")

_TEXT_ONLY = frozenset({str})


def common_start(known: list[Any], given: list[Any]) -> int:
    """Count the elements that two lists have in common from the first one on.

    Whole slices are compared at once, each twice as long as all before it; where one differs, the
    place is found by halves. So it costs what is in common, however long the lists are.

    ```python
    from muntin.plain_data import common_start

    print(common_start(["a", "b", "c"], ["a", "b", "d", "e"]))
    #> 2
    ```
    """
    low, end = 0, min(len(known), len(given))
    while low < end:
        high = min(2 * low + 1, end)
        if not _are_equal(known[low:high], given[low:high]):
            break
        low = high
    else:
        return end
    while high - low > 1:
        middle = (low + high) // 2
        if _are_equal(known[low:middle], given[low:middle]):
            low = middle
        else:
            high = middle
    return low


def _are_equal(one: list[Any], other: list[Any]) -> bool:
    try:
        return one == other
    except (TypeError, ValueError):
        # Arrays refuse to be compared as a whole. What cannot be compared is read again.
        return False


def remembered(value: Any, kind: str = "") -> tuple[tuple[Any, ...], Any, bool]:
    """Take down plain data as it is now, to find equal data by and to compare with later.

    Numbers are wrapped in the copy, so that what was `1` does not equal `True` or `1.0`: they are
    written differently, and so they count differently.

    Args:
        value: Dicts, lists and plain values.
        kind: What it is data of; equal data of another kind has another key.

    Returns:
        A key, a copy, and whether the data can be written as UTF-8 (it holds no lone surrogate).
        Equal keys mean equal data, types included. The copy shares texts alone.

    ```python
    from muntin.plain_data import remembered

    message = {"role": "user", "content": [{"text": "hi"}]}
    key, copy, is_encodable = remembered(message)
    message["content"][0]["text"] = "ho"
    print(copy["content"], key == remembered(message)[0], is_encodable)
    #> [{'text': 'hi'}] False True
    ```
    """
    if type(value) is dict and _TEXT_ONLY.issuperset(
        map(type, cast("dict[Any, Any]", value).values())
    ):
        # Nearly all messages of nearly all conversations: C does it, and in one tuple.
        pairs = cast("dict[Any, str]", value)
        key = (kind, *pairs, *pairs.values())
        try:
            return key, pairs.copy(), all(map(str.isascii, key)) or _all_encodable(key)
        except TypeError:
            pass  # a key that is no text
    parts: list[Any] = [kind]
    copy = _walk(value, parts)
    return tuple(parts), copy, _all_encodable(parts)


def _walk(value: Any, parts: list[Any]) -> Any:
    """Copy a value, and append to `parts` what tells it from every other.

    A container writes its length before its parts, so no two values write the same.
    """
    if value is None or isinstance(value, str):
        parts.append(value)
        return value
    if isinstance(value, dict):
        return _walk_pairs(cast("dict[Any, Any]", value), parts)
    if isinstance(value, (list, tuple)):
        items = cast("Sequence[Any]", value)
        parts.append(-1 - len(items))
        copies = [_walk(item, parts) for item in items]
        return copies if isinstance(value, list) else tuple(copies)
    if isinstance(value, Mapping):
        _walk_pairs(dict(cast("Mapping[Any, Any]", value)), parts)
        return cast("Any", value)
    # `True == 1 == 1.0` would share a key but not a JSON text; what they look like tells them
    # apart.
    parts += (..., type(value).__name__, ascii(value))
    return _Number(value) if isinstance(value, (int, float)) else value


def _walk_pairs(pairs: dict[Any, Any], parts: list[Any]) -> dict[Any, Any]:
    append = parts.append
    append(len(pairs))
    copy: dict[Any, Any] = {}
    for key, part in pairs.items():
        append(key if type(key) is str else str(key))
        if type(part) is str:
            append(part)
            copy[key] = part
        else:
            copy[key] = _walk(part, parts)
    return copy


def _all_encodable(parts: Iterable[Any]) -> bool:
    for text in [part for part in parts if isinstance(part, str) and not part.isascii()]:
        try:
            text.encode()
        except UnicodeEncodeError:
            return False
    return True


class Same:
    """Stand for an object in a key: equal only for that very object, whatever it says itself."""

    __slots__ = ("_one",)

    def __init__(self, one: object) -> None:
        self._one = one

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other._one is self._one

    def __hash__(self) -> int:
        return id(self._one)


class _Number:
    """A number that equals only what is written like it: not `True` for 1, nor -0.0 for 0.0."""

    __slots__ = ("_value",)

    def __init__(self, value: float) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self._value) and repr(other) == repr(self._value)

    __hash__ = None  # pyright: ignore[reportAssignmentType] - it equals numbers, whose hash differs
