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

__all__ = ("Same", "common_start", "copy_of", "is_encodable", "is_flat", "key_of")

_TEXT_ONLY = {str}


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


def is_encodable(value: Any) -> bool:
    """Say whether plain data can be written as UTF-8: it holds no lone surrogate."""
    if isinstance(value, str):
        if value.isascii():
            return True
        try:
            value.encode()
        except UnicodeEncodeError:
            return False
        return True
    if isinstance(value, dict):
        pairs = cast("dict[Any, Any]", value)
        return _all_encodable(pairs) and _all_encodable(pairs.values())
    if isinstance(value, (list, tuple)):
        return _all_encodable(cast("Sequence[Any]", value))
    return True


def _all_encodable(values: Iterable[Any]) -> bool:
    for value in values:
        if not (type(value) is str and value.isascii()) and not is_encodable(value):
            return False
    return True


def is_flat(value: Any) -> bool:
    """Say whether a value is a dict of texts alone: then `dict` copies it and its items key it."""
    return (
        type(value) is dict and set(map(type, cast("dict[Any, Any]", value).values())) == _TEXT_ONLY
    )


def copy_of(value: Any) -> Any:
    """Copy the containers of plain data, to compare with it later; texts are shared.

    Numbers are wrapped, so that what was `1` does not equal `True` or `1.0`: they are written
    differently, and so they count differently.
    """
    if isinstance(value, dict):
        return {
            key: part if type(part) is str else copy_of(part)
            for key, part in cast("dict[Any, Any]", value).items()
        }
    if isinstance(value, list):
        return [copy_of(part) for part in cast("list[Any]", value)]
    if isinstance(value, tuple):
        return tuple([copy_of(part) for part in cast("tuple[Any, ...]", value)])
    return _Number(value) if isinstance(value, (int, float)) else value


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


def key_of(value: Any) -> Any:
    """Turn plain data into something hashable: equal keys mean equal data, types included."""
    if value is None or isinstance(value, str):
        return value
    if is_flat(value):
        return tuple(cast("dict[Any, Any]", value).items())
    if isinstance(value, Mapping):
        return tuple(
            [
                (str(key), part if type(part) is str else key_of(part))
                for key, part in cast("Mapping[Any, Any]", value).items()
            ]
        )
    if isinstance(value, (list, tuple)):
        return (0, *[key_of(part) for part in cast("Sequence[Any]", value)])
    # `True == 1 == 1.0` would share a key but not a JSON text; a repr tells them apart.
    return (type(value).__name__, repr(value))
