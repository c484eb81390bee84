"""Mend a conversation whose calls and results do not match, so that a provider accepts it again.

One broken pair that was stored once (a timeout, a crash, a dropped approval) makes every later
request fail. Mending drops results without a call, answers calls that nobody answered with a note
that says so, and takes out the copy of a round that also exists answered. The tail is left alone:
its calls may still be running. Nothing else changes, and a sound conversation stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from muntin.messages.shapes import shape_of
from muntin.messages.turns import in_flight, units
from muntin.prompts import DEFAULT_PROMPTS, PromptRegistry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muntin.messages.message import ToolCall
    from muntin.messages.shapes import MessageView
    from muntin.messages.turns import Unit

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
    answer: dict[int, list[tuple[int, ToolCall]]]
    """By the position behind which answers go: who made the call, and the call."""


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
        for caller, call in todo.answer.get(index, ()):
            mended.append(shapes[caller].answer(call, text))
            origins.append(None)
    mended.origins = tuple(origins)
    mended.dropped = tuple(sorted(todo.drop | todo.strip.keys()))
    mended.answered = tuple(
        call.id for index in sorted(todo.answer) for _, call in todo.answer[index]
    )
    return mended


def _diagnose(views: Sequence[MessageView]) -> _Repairs:
    found = units(views)
    todo = _Repairs(set(), {}, {})
    tail = in_flight(views, found)
    answered = _answered_ids(views, found)
    behind = _answers_end(views)
    for unit in found:
        _take_out(todo, views, unit)
        if not unit.unanswered or unit is tail:
            continue
        if unit.is_bare and all(call_id in answered for call_id in unit.unanswered):
            todo.drop.update(unit.indices)
            continue
        _plan_answers(todo, views, unit, behind)
    return todo


def _answered_ids(views: Sequence[MessageView], found: Sequence[Unit]) -> set[str]:
    """Collect the calls that some round has answered."""
    calls = {call.id for view in views for call in view.calls}
    results = {result.call_id for view in views for result in view.results}
    open_everywhere = {call_id for unit in found for call_id in unit.unanswered}
    return (calls & results) - {""} if open_everywhere else set()


def _take_out(todo: _Repairs, views: Sequence[MessageView], unit: Unit) -> None:
    """Take orphan results out, and their message when nothing else is in it."""
    for index, call_id in unit.orphans:
        todo.strip.setdefault(index, set()).add(call_id)
    for index in dict.fromkeys(index for index, _ in unit.orphans):
        results = {result.call_id for result in views[index].results}
        if results <= todo.strip[index] and not views[index].text:
            todo.drop.add(index)
            del todo.strip[index]


def _answers_end(views: Sequence[MessageView]) -> list[int]:
    """Find for every message the last of the answers, and of the calls beside it, that follow."""
    behind = list(range(len(views)))
    for index in range(len(views) - 2, -1, -1):
        after = views[index + 1]
        if after.results or (after.item and after.calls):
            behind[index] = behind[index + 1]
    return behind


def _plan_answers(
    todo: _Repairs, views: Sequence[MessageView], unit: Unit, behind: Sequence[int]
) -> None:
    """Put each missing answer behind the answers its call's message did get."""
    missing = set(unit.unanswered)
    for caller in unit.indices:
        calls = [(caller, call) for call in views[caller].calls if call.id in missing]
        if calls:
            todo.answer.setdefault(behind[caller], []).extend(calls)
