"""Remember plain data as it was, to compare with later.

Messages are plain data, mostly flat dicts of texts, and thousands of them are looked at in every
fit. So the common case never leaves C, and only what is nested is walked here. It knows nothing of
what the data means.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ("Same", "are_equal", "characters_of", "common_start", "remembered")


def common_start(known: Sequence[Any], given: Sequence[Any]) -> int:
    """Count the elements that two lists, or two texts, share from the first one on.

    It compares slices of doubling length, then bisects: O(common length).

    ```python
    from muntin.runtime import common_start

    print(common_start(["a", "b", "c"], ["a", "b", "d", "e"]))
    #> 2
    ```
    """
    low, end = 0, min(len(known), len(given))
    while low < end:
        high = min(2 * low + 1, end)
        if not are_equal(known[low:high], given[low:high]):
            break
        low = high
    else:
        return end
    while high - low > 1:
        middle = (low + high) // 2
        if are_equal(known[low:middle], given[low:middle]):
            low = middle
        else:
            high = middle
    return low


def are_equal(one: Any, other: Any) -> bool:
    """Return whether plain data is equal; values that cannot be compared (arrays) are not."""
    try:
        return bool(one == other)
    except (TypeError, ValueError):
        return False


def remembered(value: Any) -> tuple[Any, bool]:
    """Copy plain data for a later comparison, and return whether it can be written as UTF-8.

    Numbers are wrapped in the copy, so that what was `1` does not equal `True` or `1.0`: they are
    written differently, and so they count differently. An object that may change, such as the call
    a client library builds up while it streams, equals the copy for as long as its fields do.

    Args:
        value: Dicts, lists and plain values.

    Returns:
        A copy that shares texts alone, and whether the data holds no lone surrogate.

    ```python
    from muntin.runtime.comparing import remembered

    message = {"role": "user", "content": [{"text": "hi"}]}
    copy, is_encodable = remembered(message)
    message["content"][0]["text"] = "ho"
    print(copy["content"], copy == message, is_encodable)
    #> [{'text': 'hi'}] False True
    ```
    """
    odd: list[str] = []
    return _copied(value, odd), not odd or _all_encodable(odd)


def _copied(value: Any, odd: list[str]) -> Any:
    """Copy a value, and append to `odd` the texts that are not ASCII."""
    if isinstance(value, dict):
        copy: dict[Any, Any] = {}
        for key, part in cast("dict[Any, Any]", value).items():
            # Nearly all parts of nearly all messages.
            copy[key] = part if type(part) is str and part.isascii() else _copied(part, odd)
            if type(key) is not str or not key.isascii():
                odd.append(str(key))
        return copy
    if value is None:
        return value
    if isinstance(value, str):
        if not value.isascii():
            odd.append(value)
        return value
    if isinstance(value, list):
        return [_copied(part, odd) for part in cast("list[Any]", value)]
    if isinstance(value, tuple):
        return tuple([_copied(part, odd) for part in cast("tuple[Any, ...]", value)])
    if isinstance(value, (int, float)):
        return _Number(value)
    return value if isinstance(value, bytes) else _Live(value, odd)


def characters_of(copy: Any) -> int:
    """Count the characters and bytes that a copy from `remembered` holds on to."""
    if isinstance(copy, (str, bytes)):
        return len(copy)
    if isinstance(copy, dict):
        total = 0
        for part in cast("dict[Any, Any]", copy).values():
            total += len(part) if type(part) is str else characters_of(part)
        return total
    if isinstance(copy, (list, tuple)):
        return sum(map(characters_of, cast("Sequence[Any]", copy)))
    return copy.characters if isinstance(copy, _Live) else 0


def _all_encodable(texts: Iterable[str]) -> bool:
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError:
            return False
    return True


class Same:
    """Represent an object in a key by its identity, whatever its own `__eq__` does."""

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

    __hash__ = None  # pyright: ignore[reportAssignmentType] - it equals numbers, and their hash differs


class _Live:
    """A snapshot of an object: equal to an object of its type with the same fields."""

    __slots__ = ("_fields", "_kind", "characters")

    def __init__(self, value: Any, odd: list[str]) -> None:
        self._kind = cast("type[object]", type(value))
        self._fields = _copied(_fields_of(value), odd)
        self.characters = characters_of(self._fields)

    def __eq__(self, other: object) -> bool:
        return type(other) is self._kind and bool(_fields_of(other) == self._fields)

    __hash__ = None  # pyright: ignore[reportAssignmentType] - it equals objects that can change


def _fields_of(value: Any) -> Any:
    """Return the fields of an object as plain data; its `repr` where it has none."""
    if isinstance(value, Mapping):
        return dict(cast("Mapping[Any, Any]", value))
    fields: Any = getattr(value, "__dict__", None)
    if not isinstance(fields, dict):
        return repr(value)
    # pydantic keeps extra fields in a separate mapping.
    extra: Any = getattr(value, "__pydantic_extra__", None)
    held = cast("dict[str, Any]", fields)
    return {**held, **cast("dict[str, Any]", extra)} if isinstance(extra, dict) else dict(held)
