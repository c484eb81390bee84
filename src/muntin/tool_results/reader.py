"""Read a stored tool result back: a range of it, or the places a pattern matches.

Whatever is asked, the answer is bounded in characters and, if wanted, in tokens, and a pattern
that would search for ever is stopped by the clock: the one asking is a model. `read_tool` makes a
tool of it that frameworks can register; a mistake is answered in words there, not by an exception.
"""

from __future__ import annotations

import math
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from muntin.counting import checked_counter, checked_tokens
from muntin.errors import ConfigurationError, ContextError, ContextWindowExceeded
from muntin.prompts import DEFAULT_PROMPTS
from muntin.runtime import longest_text
from muntin.text import clean_text, grapheme_end, grapheme_start

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import regex

    from muntin.counting import AnyCounter, TokenCounter
    from muntin.prompts import PromptRegistry
    from muntin.tool_results.store import ToolResultStore

__all__ = ("ReadTool", "read_tool", "read_tool_result")

_MOST_CHARACTERS = 40_000
"""A limit above this is drawn down to it: a model asks for anything."""
_LONGEST_PATTERN = 500
_MOST_REPEATS = 100_000
"""Counted repeats are written out when a pattern is compiled: nested ones could fill the memory."""
_REPEAT = re.compile(r"\{(?=[\d,]*\d)(\d*),?(\d*)\}")
_SEARCH_SECONDS = 1.0
_BEFORE, _AFTER = 100, 300
"""Characters shown of a long line around a match."""


def read_tool_result(
    id: str,  # noqa: A002 - the word the marker uses
    start: int = 0,
    limit: int = 4000,
    pattern: str | None = None,
    *,
    store: ToolResultStore,
    max_tokens: int | None = None,
    counter: AnyCounter = None,
    model: object = None,
    prompts: PromptRegistry = DEFAULT_PROMPTS,
) -> str:
    r"""Read part of a stored tool result.

    The first line names the part, the total, and the position to continue at.

    Args:
        id: The id from the marker of a shortened result.
        start: Characters from the beginning; a negative number counts from the end.
        limit: Most characters of the original to return, 1 or more; above 40,000 it means 40,000.
        pattern: Return only the lines in which this regular expression matches, each after the
            position it starts at, long lines around the match. None returns the range as it is.
        store: Where the original is kept.
        max_tokens: Tokens the answer may take by `counter`, first line included. None bounds it
            in characters alone.
        counter: Counts tokens: a function of a text, a model, or the name of a model or an
            encoding. None takes `model`'s counter, else `count_tokens`.
        model: A model or its name, in place of `counter`.
        prompts: The words of the first line.

    Raises:
        ToolResultNotFound: The store has no such id.
        ConfigurationError: `limit` is below 1, or the pattern is too long, not a regular
            expression, or takes longer than a second.
        ContextWindowExceeded: Not even the first line fits `max_tokens`.
        StateError: The store cannot be read.

    ```python
    from muntin import ToolResultStore, read_tool_result

    store = ToolResultStore.in_memory()
    key = store.put("rack 001 full\nrack 136 free\nrack 202 full")
    print(read_tool_result(key, limit=13, store=store))
    #> [tr_036ff13326734add088e: characters 0 to 13 of 41. Go on with start=13]
    #> rack 001 full
    print(read_tool_result(key, pattern="free", store=store))
    #> [tr_036ff13326734add088e: matches 1, searched 0 to 41 of 41 characters. This is the end]
    #> 14: rack 136 free
    ```
    """
    limit = checked_tokens(limit, "limit", unit="characters")
    if max_tokens is not None:
        max_tokens = checked_tokens(max_tokens, "max_tokens")
    counter = checked_counter(counter, model=model)
    text = clean_text(store.get(id))
    start = max(0, start + len(text)) if start < 0 else min(start, len(text))
    space = min(limit, _MOST_CHARACTERS)
    # Searched once, however often the answer has to be made shorter.
    hits = _hits(text, _compiled(pattern), start, space) if pattern else None

    def answer(space: int) -> str:
        if hits is None:
            return _range(id, text, start, space, prompts)
        return _matches(id, text, hits, start, space, prompts)

    whole = answer(space)
    if max_tokens is None or counter(whole) <= max_tokens:
        return whole
    return _largest(answer, space, max_tokens, counter)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTool:
    """A tool that reads stored results, ready to be registered with any framework.

    Call it with keyword arguments as a model writes them: `tool(id=..., start=0)`.
    """

    name: str
    """Name the model calls it by; it is the one that markers mention."""
    description: str
    """What it does, for the model."""
    parameters: Mapping[str, Any]
    """Its arguments as a JSON Schema object."""
    read: Callable[..., str]
    """Does it: takes `id`, `start`, `limit`, `pattern`."""

    def __call__(
        self,
        id: Any,  # noqa: A002 - the word the marker uses
        start: Any = 0,
        limit: Any = 4000,
        pattern: Any = None,
    ) -> str:
        """Read part of a result; return the error as text instead of raising.

        Models write numbers as text, and `null` for what they leave to the tool: both are read.
        """
        try:
            return self.read(
                str(id),
                _whole("start", start, default=0),
                _whole("limit", limit, default=4000),
                None if pattern is None else str(pattern),
            )
        except ContextError as error:
            return f"[{error}]"


def _whole(name: str, written: Any, *, default: int) -> int:
    """Read a whole number as a model writes it."""
    if written is None:
        return default
    try:
        number = float(written)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not number.is_integer():
        raise ConfigurationError(f"{name} is a whole number of characters, not {written!r}")
    return int(number)


def read_tool(
    store: ToolResultStore,
    *,
    max_tokens: int | None = 2000,
    counter: AnyCounter = None,
    model: object = None,
    prompts: PromptRegistry = DEFAULT_PROMPTS,
) -> ReadTool:
    """Make the tool that gives a model the rest of what was shortened.

    Args:
        store: Where the originals are kept.
        max_tokens: Tokens one answer may take. Keep it at or under the cap that tool results are
            shortened to, or its answers are shortened again. None bounds characters alone.
        counter: As in `read_tool_result`.
        model: As in `read_tool_result`.
        prompts: The words of the description.

    ```python
    from muntin import ToolResultStore
    from muntin.tool_results.reader import read_tool

    tool = read_tool(ToolResultStore.in_memory())
    print(tool.name, sorted(tool.parameters["properties"]))
    #> read_tool_result ['id', 'limit', 'pattern', 'start']
    ```
    """
    count = checked_counter(counter, model=model)

    def read(result_id: str, start: int, limit: int, pattern: str | None) -> str:
        return read_tool_result(
            result_id,
            start,
            limit,
            pattern,
            store=store,
            max_tokens=max_tokens,
            counter=count,
            prompts=prompts,
        )

    texts = {
        name: prompts.get(f"tool_result.read.{name}")
        for name in ("id", "start", "limit", "pattern")
    }
    return ReadTool(
        name="read_tool_result",
        description=prompts.get("tool_result.read.description"),
        parameters={
            "type": "object",
            "properties": {
                "id": {"type": "string", "description": texts["id"]},
                "start": {"type": "integer", "default": 0, "description": texts["start"]},
                "limit": {"type": "integer", "default": 4000, "description": texts["limit"]},
                "pattern": {"type": "string", "description": texts["pattern"]},
            },
            "required": ["id"],
        },
        read=read,
    )


def _range(result_id: str, text: str, start: int, space: int, prompts: PromptRegistry) -> str:
    boundary = grapheme_start(text, start)
    if grapheme_end(text, start) - boundary <= space:
        start = boundary  # a longer one is read on where the part of it that was shown ended
    end = grapheme_start(text, start + space)
    if end <= start:
        # One character longer than the space is returned in part rather than never.
        end = min(len(text), start + space)
    head = prompts.render(
        "tool_result.read.range",
        id=result_id,
        start=start,
        end=end,
        total=len(text),
        next=_next(end, len(text), prompts),
    )
    return f"{head}\n{text[start:end]}"


def _hits(text: str, pattern: regex.Pattern[str], start: int, space: int) -> list[tuple[str, int]]:
    """Find the lines that match, with their positions, and where to search on after each."""
    until = time.monotonic() + _SEARCH_SECONDS
    hits: list[tuple[str, int]] = []
    at = start
    while at < len(text) and space > 0:
        match = _search(pattern, text, at, until)
        if match is None:
            break
        line, after = _line_around(text, match.start())
        at = min(len(text), max(after, match.end(), match.start() + 1))
        hits.append((line, at))
        space -= len(line) + 1
    else:
        # Stopped for lack of space: one hit more than fits, to know where to continue.
        return hits
    return [*hits, ("", len(text))]


def _matches(
    result_id: str,
    text: str,
    hits: list[tuple[str, int]],
    start: int,
    space: int,
    prompts: PromptRegistry,
) -> str:
    shown: list[str] = []
    at = start
    for line, after in hits:
        if len(line) > space and shown:
            break
        at = after
        if line:
            shown.append(line[: grapheme_start(line, space)])
            space -= len(line) + 1
    head = prompts.render(
        "tool_result.read.matches",
        id=result_id,
        shown=len(shown),
        start=start,
        end=at,
        total=len(text),
        next=_next(at, len(text), prompts),
    )
    return "\n".join([head, *shown])


def _next(at: int, total: int, prompts: PromptRegistry) -> str:
    if at >= total:
        return prompts.get("tool_result.read.end")
    return prompts.render("tool_result.read.next", start=at)


def _line_around(text: str, at: int) -> tuple[str, int]:
    """Return a line with its position in front, long ones around a place, and where it ends."""
    start = text.rfind("\n", max(0, at - _BEFORE), at) + 1 or max(0, at - _BEFORE)
    end = text.find("\n", at, at + _AFTER)
    end = min(len(text), at + _AFTER) if end < 0 else end
    start, end = grapheme_start(text, start), grapheme_start(text, end)
    # After a line its break is passed over; after a part of one the search goes on right there.
    return f"{start}: {text[start : max(start, end)]}", end + (text[end : end + 1] == "\n")


def _compiled(pattern: str) -> regex.Pattern[str]:
    import regex

    if len(pattern) > _LONGEST_PATTERN:
        raise ConfigurationError(
            f"the pattern has {len(pattern)} characters, {_LONGEST_PATTERN} are allowed"
        )
    counts = (max(int(most or 0), int(least or 0)) for least, most in _REPEAT.findall(pattern))
    if math.prod(counts) > _MOST_REPEATS:
        raise ConfigurationError(
            f"the repeats of {pattern!r} multiply to more than {_MOST_REPEATS:,}: use * or +"
        )
    try:
        return regex.compile(pattern)
    except (regex.error, RecursionError) as error:
        raise ConfigurationError(f"{pattern!r} is not a regular expression: {error}") from error


def _search(
    pattern: regex.Pattern[str], text: str, at: int, until: float
) -> regex.Match[str] | None:
    # Not zero: a search that is given no time would be given all of it.
    left = max(0.001, until - time.monotonic())
    try:
        return pattern.search(text, at, timeout=left)
    except TimeoutError:
        raise ConfigurationError(
            f"the pattern {pattern.pattern!r} takes longer than {_SEARCH_SECONDS:g} s on "
            f"{len(text):,} characters: use a simpler one, without nested repeats"
        ) from None


def _largest(
    answer: Callable[[int], str], space: int, max_tokens: int, counter: TokenCounter
) -> str:
    """Return the longest answer that fits."""
    least = counter(answer(1))
    if least > max_tokens:
        raise ContextWindowExceeded("reading a tool result", needed=least, available=max_tokens)
    return longest_text(answer, max_tokens, counter, low=1, high=space - 1, tolerance=1 / 64)
