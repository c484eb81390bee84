"""Find passages that the model has already: in the conversation, or in an earlier context.

A passage is given already if runs of three words that one text holds, near each other, cover at
least nine tenths of its words, and if every run with a digit is among them. So line breaks,
indentation and markup do not matter, and a record that differs in a number from one in the
conversation is not taken for it. A passage of which only a part was shown is given again.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Set,
)
from itertools import chain
from typing import Any, NamedTuple, TypeAlias, cast

from muntin.errors import ConfigurationError
from muntin.messages import view
from muntin.passages.assembled import AssembledContext
from muntin.passages.candidates import candidate_of
from muntin.text import words

__all__ = ("AnyGiven", "given_among", "read_given")

AnyGiven: TypeAlias = (
    "str | Iterable[object] | Callable[[], str | Iterable[object] | None] | object | None"
)
"""What the model has already: texts, candidates, contexts, documents, nodes, messages of any shape;
one or several, or a function without arguments that returns them. `None` and `()` mean nothing."""

_RUN = 3
"""Words per run."""
_LEAST = 0.9
"""Share of a passage's words that a text must hold."""
_PLACES = 32
"""Places of a text that are compared with one passage."""
_DIGIT = re.compile(r"\d")

Run: TypeAlias = "tuple[str, str, str]"


def read_given(given: AnyGiven) -> tuple[str, ...]:
    """Return the texts of what the model has already.

    Raises:
        ConfigurationError: Something is neither a text nor a candidate nor a message.
    """
    if callable(given) and not _is_one(given):
        given = cast("Callable[[], object]", given)()
        if isinstance(given, Awaitable):
            if isinstance(given, Coroutine):
                given.close()  # else Python warns that it was never awaited
            raise ConfigurationError(
                "given must be texts, candidates or messages, or a function that returns them, got "
                "an async function: await it and pass what it returns"
            )
    if given is None:
        return ()
    items = [given] if _is_one(given) else list(cast("Iterable[object]", given))
    return tuple(text for item in items for text in _texts(item) if text.strip())


def _is_one(given: object) -> bool:
    """Return whether an argument is one item and not a collection of items."""
    return not isinstance(given, Sequence | Set | Iterator | Callable) or isinstance(
        given, str | bytes
    )


def _texts(item: object) -> Iterator[str]:
    """Yield the texts of one item: a message may hold several results."""
    kind = type(item).__name__
    if isinstance(item, str):
        yield item
        return
    if isinstance(item, AssembledContext):
        yield item.text
        return
    document = getattr(item, "page_content", None)
    if isinstance(document, str):
        yield document
        return
    node = getattr(item, "get_content", None)
    if callable(node):
        yield str(node())
        return
    candidate = None if isinstance(item, Mapping) else candidate_of(item)
    if candidate is not None:
        yield candidate.content
        return
    try:
        read = view(cast("Any", item))
    except ConfigurationError as error:
        raise ConfigurationError(
            f"given must be texts, candidates or messages, or a function that returns them, got "
            f"{kind}: {error}"
        ) from error
    for text in (read.text, *(result.text for result in read.results), *read.server):
        yield text
        yield from _strings_of_json(text)


def _strings_of_json(text: str) -> Iterator[str]:
    """Yield the strings of a JSON text, in which line breaks and quotes are escaped."""
    if text.lstrip()[:1] not in ("{", "["):
        return
    try:
        waiting: list[object] = [json.loads(text)]
    except (ValueError, RecursionError):
        return  # not JSON: the text itself is compared
    for node in waiting:  # grows while it is read
        if isinstance(node, str):
            yield node
        elif isinstance(node, Mapping):
            waiting += cast("Mapping[str, object]", node).values()
        elif isinstance(node, list):
            waiting += cast("list[object]", node)


def given_among(contents: Sequence[str], texts: Sequence[str]) -> list[bool]:
    r"""Return, for each passage, whether one of the texts holds it. Linear in all characters.

    A passage of fewer than three words is never given already.

    ```python
    from muntin.passages.given import given_among

    shown = "[Knowledge]\n- Letters weigh 80 grams at most."
    print(given_among(["Letters weigh 80 grams at most.", "Letters weigh 9 grams."], [shown]))
    #> [True, False]
    ```
    """
    passages = [_Passage.of(content) for content in contents] if texts else []
    owners: dict[Run, list[int]] = {}
    for number, passage in enumerate(passages):
        for run in dict.fromkeys(passage.runs):
            owners.setdefault(run, []).append(number)
    found = [False] * len(contents)
    for text in texts if owners else ():
        shown = list(_runs(words(text)))
        places: dict[Run, list[int]] = {}
        for at, run in enumerate(shown):
            if run in owners:
                places.setdefault(run, []).append(at)
        hits = Counter(chain.from_iterable(owners[run] for run in places))
        for number, count in hits.items():
            # A changed word breaks three runs, so less than a third of the runs can be missing.
            passage = passages[number]
            if not found[number] and 3 * count >= 2 * passage.distinct - 3:
                found[number] = _is_held(passage, shown, places)
    return found


class _Passage(NamedTuple):
    runs: list[Run]
    """Runs of three words, in their order."""
    distinct: int
    """Number of different runs."""
    numbers: frozenset[Run]
    """Runs with a digit."""

    @classmethod
    def of(cls, content: str) -> _Passage:
        runs = list(_runs(words(content)))
        numbers = frozenset(run for run in runs if any(map(_DIGIT.search, run)))
        return cls(runs, len(set(runs)), numbers)


def _runs(found: Sequence[str]) -> Iterator[Run]:
    return zip(found, found[1:], found[2:], strict=False)


def _is_held(passage: _Passage, shown: Sequence[Run], places: Mapping[Run, Sequence[int]]) -> bool:
    """Return whether a text holds enough of a passage in one place."""
    runs, numbers = passage.runs, passage.numbers
    if not numbers <= places.keys() or _covered(runs, places) < _LEAST:
        return False
    slack = len(runs) // 10 + 2
    # Less than a third of the runs can be missing there, so one of the rarest third is there.
    present = [position for position, run in enumerate(runs) if run in places]
    present.sort(key=lambda position: len(places[runs[position]]))
    anchors = present[: len(runs) // 3 + 1]
    starts = dict.fromkeys(at - position for position in anchors for at in places[runs[position]])
    for start in list(starts)[:_PLACES]:
        near = set(shown[max(start - slack, 0) : start + len(runs) + slack])
        if numbers <= near and _covered(runs, near) >= _LEAST:
            return True
    return False


def _covered(runs: Sequence[Run], held: Collection[Run]) -> float:
    """Return the share of a passage's words that are in a run that a text holds."""
    covered: set[int] = set()
    for position, run in enumerate(runs):
        if run in held:
            covered.update((position, position + 1, position + 2))
    return len(covered) / (len(runs) + _RUN - 1)
