"""Mend a conversation whose calls and results do not match, so that a provider accepts it again.

One broken pair that was stored once (a timeout, a crash, a dropped approval) makes every later
request fail. Mending drops results without a call, answers calls that nobody answered with a note
that says so, and takes out the copy of a round that also exists answered. The tail is left alone:
its calls may still be running. Nothing else changes, and a sound conversation stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from muntin.prompts import DEFAULT_PROMPTS, PromptRegistry
from muntin.shapes import shape_of
from muntin.turns import in_flight, units

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muntin.shapes import MessageView
    from muntin.turns import Unit

__all__ = ("Mended", "repair")


class Mended(list[Any]):
    """The mended messages: a list that also says what was done."""

    dropped: tuple[int, ...] = ()
    """Positions, in what was given, of messages taken out: orphan results and repeated rounds."""
    answered: tuple[str, ...] = ()
    """Ids of the calls that got a note in place of their result."""
    origins: tuple[int | None, ...] = ()
    """For each message here its position in what was given; `None` for a note that was added."""

    @property
    def changed(self) -> bool:
        """Whether anything had to be done."""
        return bool(self.dropped or self.answered)


@dataclass(slots=True)
class _Repairs:
    """What has to be done, by position."""

    drop: set[int]
    strip: dict[int, set[str]]
    answer: dict[int, list[tuple[int, str]]]


def repair(messages: Sequence[Any], *, prompts: PromptRegistry | None = None) -> Mended:
    """Mend broken pairs of tool calls and results; the given messages are not changed.

    Args:
        messages: Messages of any shape.
        prompts: Text of the note; `None` means the built-in English one.

    Returns:
        A list of the messages that says in `dropped` and `answered` what was done.

    Raises:
        ConfigurationError: No shape reads one of the messages.

    ```python
    from muntin import repair

    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    mended = repair([
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "user", "content": "Never mind."},
    ])
    print([message["role"] for message in mended], mended.answered)
    #> ['user', 'assistant', 'tool', 'user'] ('c1',)
    ```
    """
    shapes = [shape_of(message) for message in messages]
    views = [shape.view(message) for shape, message in zip(shapes, messages, strict=True)]
    todo = _diagnose(views)
    text = (prompts or DEFAULT_PROMPTS).get("conversation.interrupted")
    mended = Mended()
    origins: list[int | None] = []
    for index, message in enumerate(messages):
        if index not in todo.drop:
            gone = todo.strip.get(index)
            stripped = shapes[index].with_results(message, dict.fromkeys(gone)) if gone else message
            mended.append(stripped)
            origins.append(index)
        for caller, call_id in todo.answer.get(index, ()):
            call = next(call for call in views[caller].calls if call.id == call_id)
            mended.append(shapes[caller].answer(call, text))
            origins.append(None)
    mended.origins = tuple(origins)
    mended.dropped = tuple(sorted(todo.drop | todo.strip.keys()))
    mended.answered = tuple(
        call_id for index in sorted(todo.answer) for _, call_id in todo.answer[index]
    )
    return mended


def _diagnose(views: Sequence[MessageView]) -> _Repairs:
    found = units(views)
    todo = _Repairs(set(), {}, {})
    tail = in_flight(views, found)
    answered = _answered_ids(views, found)
    for unit in found:
        for index, call_id in unit.orphans:
            _take_out(todo, views, index, call_id)
        if not unit.unanswered or unit is tail:
            continue
        if unit.is_bare and all(call_id in answered for call_id in unit.unanswered):
            todo.drop.update(unit.indices)
            continue
        _plan_answers(todo, views, unit)
    return todo


def _answered_ids(views: Sequence[MessageView], found: Sequence[Unit]) -> set[str]:
    """Collect the calls that some round has answered."""
    calls = {call.id for view in views for call in view.calls}
    results = {result.call_id for view in views for result in view.results}
    open_everywhere = {call_id for unit in found for call_id in unit.unanswered}
    return (calls & results) - {""} if open_everywhere else set()


def _take_out(todo: _Repairs, views: Sequence[MessageView], index: int, call_id: str) -> None:
    """Take one orphan result out, and its message when nothing else is in it."""
    view = views[index]
    orphans = todo.strip.setdefault(index, set())
    orphans.add(call_id)
    if len(orphans) >= len({result.call_id for result in view.results}) and not view.text:
        todo.drop.add(index)
        del todo.strip[index]


def _plan_answers(todo: _Repairs, views: Sequence[MessageView], unit: Unit) -> None:
    """Put each missing answer behind the answers its call's message did get."""
    for caller in unit.indices:
        missing = [c.id for c in views[caller].calls if c.id in unit.unanswered]
        if not missing:
            continue
        place = caller
        while place + 1 < len(views) and (
            views[place + 1].results or (views[place + 1].item and views[place + 1].calls)
        ):
            place += 1
        todo.answer.setdefault(place, []).extend((caller, call_id) for call_id in missing)
