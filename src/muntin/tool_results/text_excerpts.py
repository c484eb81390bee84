"""What to show of lines that are too long together, and the marks where something is missing.

An excerpt is made for a target size in characters; the caller counts tokens and
asks again for a smaller one. Kept are a table's head, the first and the last lines, and lines that
report an error; a line that is too long itself loses its middle. Wherever something is missing a
mark gives the amount, and shortening again adds the amounts up. Nothing here
knows budgets, ids or stores.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING

from muntin.prompts import DEFAULT_PROMPTS
from muntin.text import grapheme_start

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from muntin.prompts import PromptRegistry

__all__ = ("LEAST_ROOM", "LinesExcerpt", "Marks", "both_ends")

LEAST_ROOM = 24
"""Characters below which a part is not worth showing at all."""
_LEAST_LINE = 40
"""Characters a line keeps before it loses its middle."""
_BORDER_SEARCH = 64
"""Code points searched forward for the next grapheme border; longer clusters are split."""

_BASE64 = re.compile(
    r"(?<![A-Za-z0-9+/_-])(?:[A-Za-z0-9+/_-]{60,}+={0,2}+(?:\\[rn]|[\r\n]){0,4}+)+"
    r"(?:[A-Za-z0-9+/_-]{1,59}+={0,2}+(?![A-Za-z0-9+/_-]))?"
)
_LEAST_BASE64 = 256
_TROUBLE = (
    *("error", "exception", "traceback", "fatal", "panic", "failed", "failure", "denied"),
    *("refused", "timed out", "timeout", "not found", "critical", "abort", "assert", "segfault"),
    *("undefined", "unable to", "cannot", "ошибка", "fehler", "erreur"),
)
_TROUBLE_WITHOUT_CASE = ("错误", "失败", "异常", "錯誤", "失敗", "例外", "오류", "실패")
_MOST_TROUBLE = 40
"""Places of each word, from either end, that are looked at."""
_RULE = re.compile(r"[\s|:+=-]*[-=]{3}[\s|:+=-]*")


class Marks:
    """Write the marks of omitted parts, and read them again when cutting once more."""

    def __init__(self, prompts: PromptRegistry = DEFAULT_PROMPTS, *, again: bool = False) -> None:
        self._prompts = prompts
        # Only a text that was shortened before is searched for marks: others may quote them.
        self._again = again

    def lines(self, lines: Sequence[str]) -> str:
        """Return the mark for whole lines."""
        return self._prompts.render("tool_result.lines", count=f"{self._count('lines', lines):,}")

    def items(self, items: Sequence[object]) -> str:
        """Return the mark for elements of an array."""
        return self._prompts.render("tool_result.items", count=f"{self._count('items', items):,}")

    def keys(self, values: Sequence[object]) -> str:
        """Return the mark for keys of a record, given their values."""
        return self._prompts.render("tool_result.keys", count=f"{self._count('keys', values):,}")

    def characters(self, text: str) -> str:
        """Return the mark for the middle of a string."""
        count = len(text)
        inner = self._pattern("characters").search(text) if self._again else None
        if inner:
            count += _number(inner) - len(inner[0])
        return self._prompts.render("tool_result.characters", count=f"{count:,}")

    def without_base64(self, text: str) -> str:
        """Replace long base64 runs, by a mark with their size."""
        return _BASE64.sub(self._blob, text)

    def stands(self, kind: str, text: object) -> bool:
        """Return whether a line, element or key is such a mark itself."""
        if not self._again or not isinstance(text, str):
            return False
        return self._pattern(kind).fullmatch(text) is not None

    def _pattern(self, kind: str) -> re.Pattern[str]:
        """Return what recognises a mark of this kind in this registry's words."""
        head, _, tail = self._prompts.get(f"tool_result.{kind}").partition("{count}")
        return re.compile(f"{re.escape(head)}(?P<count>[0-9,]+){re.escape(tail)}")

    def _blob(self, run: re.Match[str]) -> str:
        sample = run[0][:400]
        length = len(run[0])
        upper = sum(map(str.isupper, sample))
        lower = sum(map(str.islower, sample))
        digits = sum(map(str.isdigit, sample))
        # Of its 64 signs 26 are large letters, 26 small, 10 digits: unlike words, paths and hex.
        if length < _LEAST_BASE64 or min(upper, lower) < len(sample) // 6 or digits < 4:
            return run[0]
        return self._prompts.render("tool_result.base64", count=f"{length:,}")

    def _count(self, kind: str, parts: Sequence[object]) -> int:
        """Count parts, a mark among them as the number it states."""
        if not self._again:
            return len(parts)
        pattern = self._pattern(kind)
        found = (pattern.fullmatch(part) for part in parts if isinstance(part, str))
        return len(parts) + sum(_number(mark) - 1 for mark in found if mark)

    def clip(self, text: str, room: int) -> str:
        """Take the middle out of a string, on grapheme borders; two thirds of the space lead."""
        if len(text) <= room:
            return text
        mark = self.characters(text[room * 2 // 3 : len(text) - room // 3])
        kept = room - len(mark)
        if kept < LEAST_ROOM:
            return text[: grapheme_start(text, max(0, room - 1))] + "…"
        head = grapheme_start(text, kept * 2 // 3)
        tail = _border_after(text, len(text) - kept // 3)
        return text[:head] + self.characters(text[head:tail]) + text[tail:]


class LinesExcerpt:
    """Show lines of a text; one endless line is a text of one line."""

    def __init__(self, text: str, marks: Marks) -> None:
        self._marks = marks
        self._text = text
        self._lines = text.split("\n")
        self._header = _header_lines(self._lines)
        self._errors = _error_lines(text, self._lines)

    def __call__(self, room: int) -> str:
        """Show what fits about so many characters; nothing when there is no space."""
        if room < LEAST_ROOM // 2:
            return ""
        width = max(_LEAST_LINE, room // 3)
        chosen = self._choose(room, width) if len(self._lines) > 1 else set[int]()
        if not chosen:
            return self._marks.clip(self._text, room)
        shown: list[str] = []
        reached = 0
        for at in sorted(chosen):
            if at > reached:
                shown.append(self._gap(reached, at))
            shown.append(self._marks.clip(self._lines[at], width))
            reached = at + 1
        if reached < len(self._lines):
            shown.append(self._gap(reached, len(self._lines)))
        return "\n".join(shown)

    def _gap(self, start: int, end: int) -> str:
        """Write marks for omitted lines, unless the lines are shorter than their mark."""
        lines = self._lines[start:end]
        mark = self._marks.lines(lines)
        if len(lines) > len(mark):
            return mark
        whole = "\n".join(lines)
        return whole if len(whole) <= len(mark) else mark

    def _choose(self, room: int, width: int) -> set[int]:
        """Choose lines: a table's head, errors from both ends, then the first and last lines."""
        lines, marks = self._lines, self._marks
        chosen: set[int] = set()

        def take(candidates: Iterable[int], left: int, gap: int = 0) -> int:
            for at in candidates:
                if at in chosen or marks.stands("lines", lines[at]):
                    continue
                cost = min(len(lines[at]), width) + 1 + gap
                if cost > left:
                    break
                chosen.add(at)
                left -= cost
            return left

        gap = len(marks.lines([]))
        left = room - gap
        left = take(range(self._header), left)
        for_errors = left // 2
        left -= for_errors - take(both_ends(self._errors, last_first=True), for_errors, gap)
        for_head = left * 3 // 5
        left -= for_head - take(range(len(lines)), for_head)
        left = take(range(len(lines) - 1, -1, -1), left)
        take(range(len(lines)), left)
        return chosen


def both_ends(places: Sequence[int], *, last_first: bool = False) -> Iterator[int]:
    """Go through places from both ends inwards: two of the first to one of the last, or in turn.

    With `last_first` the last one comes first: the end of a log shows what went wrong.
    """
    first, last = 0, len(places) - 1
    for step in range(len(places)):
        from_end = step % 2 == 0 if last_first else step % 3 == 2
        if from_end:
            yield places[last]
            last -= 1
        else:
            yield places[first]
            first += 1


def _header_lines(lines: Sequence[str]) -> int:
    """Count the lines that head a table: its names and the rule under them."""
    if len(lines) < 3:
        return 0
    if _RULE.fullmatch(lines[1]):
        return 2
    for delimiter in ("\t", "|", ",", ";"):
        columns = lines[0].count(delimiter)
        if columns and all(line.count(delimiter) == columns for line in lines[1:3]):
            return 1
    return 0


def _error_lines(text: str, lines: Sequence[str]) -> list[int]:
    """Find the lines nearest to both ends that report an error.

    Words are searched one by one: on ten megabytes that is ten times faster than one expression.
    """
    words = [form(word) for word in _TROUBLE for form in (str.lower, str.capitalize, str.upper)]
    places = [at for word in (*words, *_TROUBLE_WITHOUT_CASE) for at in _places(text, word)]
    starts = list(accumulate((len(line) + 1 for line in lines), initial=0)) if places else []
    return sorted({bisect_right(starts, at) - 1 for at in places})


def _places(text: str, word: str) -> Iterator[int]:
    """Yield the first and the last places of a word, a bounded number of each."""
    first, last = -1, len(text)
    for _ in range(_MOST_TROUBLE):
        first = text.find(word, first + 1, last)
        if first < 0:
            return
        yield first
        last = text.rfind(word, first + 1, last)
        if last < 0:
            return
        yield last


def _number(mark: re.Match[str]) -> int:
    return int(mark["count"].replace(",", ""))


def _border_after(text: str, index: int) -> int:
    """Find a grapheme border at or after an index; the end of the text where none is near."""
    for border in range(index, min(len(text), index + _BORDER_SEARCH)):
        if grapheme_start(text, border) == border:
            return border
    return len(text)
