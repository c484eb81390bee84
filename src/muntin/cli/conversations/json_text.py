"""Read JSON strictly, and write it in the style of the file it came from.

A file is refused when reading and writing it would change more than the messages: a key that is
there twice, NaN, a number too large for a float.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any

from muntin.cli.failures import Failure
from muntin.text import clean_text

__all__ = ("JsonStyle", "NotJsonError", "parse_json", "parse_line")

_INDENT = re.compile(r"\s*[\[{]\r?\n([ \t]+)")
_COLON = re.compile(r'"\s*:(\s?)')
_COMMA = re.compile(r'[\w"\]}],(\s?)["\[{\d]')
_HEAD = 4096


class NotJsonError(ValueError):
    """A text is not JSON, with the reason."""


def parse_json(text: str, where: str) -> Any:
    """Read one JSON value.

    Args:
        text: The text.
        where: What to call it in errors.

    Raises:
        NotJsonError: It is not JSON.
        Failure: It is JSON that cannot be written back as it is.
    """
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise NotJsonError(f"{error.msg} (line {error.lineno}, column {error.colno})") from None
    except RecursionError:
        raise Failure(f"{where} is nested too deeply to read: it needs less than 1,000 levels") \
            from None  # fmt: skip
    except _UnfaithfulError as error:
        raise Failure(f"{where} {error}") from None


class _UnfaithfulError(Exception):
    """A value would not be written back as it was read."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        met: set[str] = set()
        twice = next(key for key, _ in pairs if key in met or met.add(key))
        raise _UnfaithfulError(
            f"has the key {twice!r} twice in one object, and only one can be kept: remove one"
        )
    return made


def _constant(name: str) -> Any:
    raise _UnfaithfulError(f"holds {name}, which is not JSON: replace it by null or a number")


def _number(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise _UnfaithfulError(f"holds the number {digits[:20]}, too large to be kept: write it "
                               f"as a string")  # fmt: skip
    return value


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_constant=_constant, parse_float=_number
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonStyle:
    """Hold how the JSON of a file is written."""

    indent: str | None
    """What it is indented by; None for JSON on one line."""
    separators: tuple[str, str] | None
    """What comes after items and keys; None for the usual ones."""
    ascii_only: bool
    """Whether every character beyond ASCII is written as an escape."""

    @classmethod
    def of(cls, text: str) -> JsonStyle:
        """Read the style off the beginning of a text."""
        indent = _INDENT.match(text)
        colon, comma = _COLON.search(text, 0, _HEAD), _COMMA.search(text, 0, _HEAD)
        after = "" if colon is not None and not colon[1] else " "
        between = " " if comma is None and after else "" if comma is None else comma[1][:1]
        if indent is not None:
            between = ""
        usual = after == " " and (between == " " or indent is not None)
        return cls(
            indent=indent[1] if indent else None,
            separators=None if usual else (f",{between}", f":{after}"),
            ascii_only=text.isascii() and "\\u" in text,
        )

    def dump(self, value: Any, *, on_one_line: bool = False) -> str:
        """Write a value; lone surrogates become U+FFFD, because no file can hold them."""
        try:
            text = json.dumps(
                value,
                ensure_ascii=self.ascii_only,
                indent=None if on_one_line else self.indent,
                separators=self.separators,
            )
        except RecursionError:
            raise Failure("the result is nested too deeply to write") from None
        return clean_text(text)


def parse_line(text: str, name: str, number: int) -> Any:
    """Parse a line of JSON lines.

    Raises:
        Failure: It is not JSON.
    """
    try:
        return parse_json(text, f"{name}, line {number}")
    except NotJsonError as error:
        first = ", though line 1 is" if number > 1 else ""
        raise Failure(f"{name}, line {number} is not JSON{first}: {error}") from None
