"""Copy a message without what cannot be written as UTF-8.

A lone surrogate is half a character: legal in a `str`, impossible in a request. It becomes U+FFFD.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from operator import is_
from typing import TYPE_CHECKING, Any, cast

from pydantic import BaseModel

from muntin.text import clean_text

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("cleaned",)


def cleaned(value: Any) -> Any:
    """Return a message without lone surrogates; the message itself if it has none.

    Dicts, lists and tuples, dataclasses and pydantic models are copied as far as they change.
    """
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        pairs = cast("dict[Any, Any]", value)
        copy: dict[Any, Any] = {cleaned(key): cleaned(part) for key, part in pairs.items()}
        same = all(map(is_, copy, pairs)) and all(map(is_, copy.values(), pairs.values()))
        return pairs if same else copy
    if isinstance(value, (list, tuple)):
        parts = cast("Sequence[Any]", value)
        copies: list[Any] = [cleaned(part) for part in parts]
        if all(map(is_, copies, parts)):
            return parts
        return tuple(copies) if isinstance(value, tuple) else copies
    if isinstance(value, BaseModel):
        changed = _changed(dict(value.__dict__))
        return value.model_copy(update=changed) if changed else value
    if is_dataclass(value) and not isinstance(value, type):
        names = [one.name for one in fields(value) if one.init]
        changed = _changed({name: getattr(value, name) for name in names})
        return replace(value, **changed) if changed else value
    return value


def _changed(held: dict[str, Any]) -> dict[str, Any]:
    """Clean fields, and return those that changed."""
    clean = {name: cleaned(part) for name, part in held.items()}
    return {name: part for name, part in clean.items() if part is not held[name]}
