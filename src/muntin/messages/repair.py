"""Repair a conversation so that providers accept it.

One broken pair or one empty message that was stored (a timeout, a crash, a dropped approval) makes
every later request fail. Repair

* takes out empty messages, blank text blocks, and raw copies of calls that were removed,
* gives results without an id the id of the call they answer,
* moves results directly behind their calls,
* drops results without a call, answers calls without a result by a note, and drops the unanswered
  copy of a round that also exists answered,
* replaces lone surrogates, which cannot be written as UTF-8.

The tail is left alone: its calls may still be running. A sound conversation comes back with the
same messages. The same pass does all of it, so every entry point repairs alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from muntin.messages.blanks import is_blank, without_blanks
from muntin.messages.encodable import cleaned
from muntin.messages.result_order import straight_order
from muntin.messages.shapes import shape_of
from muntin.messages.turns import in_flight, pairing_problems, units
from muntin.prompts import DEFAULT_PROMPTS, PromptRegistry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muntin.messages.message import ToolCall
    from muntin.messages.shapes import MessageView
    from muntin.messages.turns import Unit

__all__ = ("Mended", "needs_repair", "repair")


class Mended(list[Any]):
    """The repaired messages: a list that also holds what was done."""

    dropped: tuple[int, ...] = ()
    """Positions, in the given messages, of messages taken out: empty messages, orphan results and
    repeated rounds."""
    emptied: tuple[int, ...] = ()
    """Those among them that held nothing."""
    rewritten: tuple[int, ...] = ()
    """Positions of messages that were replaced by a changed copy."""
    moved: tuple[int, ...] = ()
    """Positions of results that were moved behind their calls."""
    answered: tuple[str, ...] = ()
    """Ids of the calls that got a note in place of their result."""
    origins: tuple[int | None, ...] = ()
    """For each message here its position in the given messages; `None` for an added note."""

    @property
    def changed(self) -> bool:
        """Whether anything had to be done."""
        return bool(self.dropped or self.rewritten or self.moved or self.answered)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for a report, one for each kind of repair that was needed."""
        done = (
            (len(self.emptied), "{} messages without content left out"),
            (len(self.dropped) - len(self.emptied), "{} messages without their pair left out"),
            (len(self.rewritten), "{} messages rewritten: empty or invalid parts taken out"),
            (len(self.moved), "{} tool results moved behind their calls"),
            (len(self.answered), "{} calls without a result answered by a note"),
        )
        return tuple(f"repaired: {text.format(count)}" for count, text in done if count)


@dataclass(slots=True)
class _Repairs:
    """What has to be done to pairs, by position."""

    drop: set[int]
    strip: dict[int, set[str]]
    answer: dict[int, list[tuple[int, ToolCall]]]
    """By the position behind which answers go: the message that made the call, and the call."""


def repair(messages: Sequence[Any], *, prompts: PromptRegistry | None = None) -> Mended:
    """Repair what providers refuse; the given messages are not changed.

    Args:
        messages: Messages of any shape.
        prompts: Texts of notes; `None` means the built-in English one.

    Returns:
        The messages, as a list with the positions of what was done.

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
    text = prompts or DEFAULT_PROMPTS
    kept, dropped, rewritten = _filled(messages, text)
    emptied = tuple(dropped)
    views = [shape_of(message).view(message) for _, message in kept]
    kept = _with_ids(kept, views, rewritten)
    views = [shape_of(message).view(message) for _, message in kept]
    order = straight_order(views)
    moved: list[int] = []
    if order is not None:
        moved = [
            kept[index][0]
            for before, index in pairwise(order)
            if views[index].results and index != before + 1
        ]
        kept = [kept[index] for index in order]
        views = [views[index] for index in order]
    shapes = [shape_of(message) for _, message in kept]
    todo = _diagnose(views)
    note = text.get("conversation.interrupted")
    mended = Mended()
    origins: list[int | None] = []
    for index, (origin, message) in enumerate(kept):
        if index in todo.drop:
            dropped.append(origin)
        else:
            gone = todo.strip.get(index)
            stripped = shapes[index].with_results(message, dict.fromkeys(gone)) if gone else message
            whole = cleaned(stripped)
            if whole is not message:
                rewritten.add(origin)
            mended.append(whole)
            origins.append(origin)
        for caller, call in todo.answer.get(index, ()):
            mended.append(shapes[caller].answer(call, note))
            origins.append(None)
    mended.origins = tuple(origins)
    mended.dropped = tuple(sorted(dropped))
    mended.emptied = emptied
    mended.rewritten = tuple(sorted(rewritten - set(dropped)))
    mended.moved = tuple(sorted(moved))
    mended.answered = tuple(
        call.id for index in sorted(todo.answer) for _, call in todo.answer[index]
    )
    return mended


def needs_repair(messages: Sequence[Any], views: Sequence[MessageView]) -> bool:
    """Return whether `repair` would change anything but lone surrogates.

    Args:
        messages: The conversation.
        views: The views of its messages; the caller has read them already.

    ```python
    from muntin.messages import needs_repair, view

    chat = [{"role": "user", "content": "Look."}, {"role": "assistant", "content": ""}]
    print(needs_repair(chat, [view(message) for message in chat]))
    #> True
    ```
    """
    if any(map(is_blank, views)) or pairing_problems(views) or straight_order(views) is not None:
        return True
    if any(result.call_id == "" for one in views for result in one.results):
        return True
    return any(without_blanks(message) is not message for message in messages)


def _filled(
    messages: Sequence[Any], prompts: PromptRegistry
) -> tuple[list[tuple[int, Any]], list[int], set[int]]:
    """Take out what is empty: positions and messages that stay, positions dropped and rewritten.

    An empty message at the end, or the only one of the user, gets a text instead: without it the
    request would end or begin where providers do not accept it.
    """
    kept: list[tuple[int, Any]] = []
    dropped: list[int] = []
    rewritten: set[int] = set()
    for index, message in enumerate(messages):
        filled = without_blanks(message)
        if filled is not message:
            rewritten.add(index)
        kept.append((index, filled))
    views = [shape_of(message).view(message) for _, message in kept]
    spoken = sum(one.role == "user" and not is_blank(one) for one in views)
    out: list[tuple[int, Any]] = []
    for (index, message), one in zip(kept, views, strict=True):
        if not is_blank(one):
            out.append((index, message))
        elif one.role == "user" and (index == len(messages) - 1 or not spoken):
            spoken += 1
            rewritten.add(index)
            text = prompts.get("conversation.empty")
            out.append((index, shape_of(message).with_text(message, text)))
        else:
            dropped.append(index)
    return out, dropped, rewritten


def _with_ids(
    kept: list[tuple[int, Any]], views: Sequence[MessageView], rewritten: set[int]
) -> list[tuple[int, Any]]:
    """Give results without an id the id of the call they answer, where that call has one."""
    if all(result.call_id for one in views for result in one.results):
        return kept
    waiting: list[tuple[ToolCall, Any]] = []
    out: list[tuple[int, Any]] = []
    for (index, message), one in zip(kept, views, strict=True):
        if len(one.results) == 1 and not one.results[0].call_id and not one.text:
            found = waiting.pop(0) if waiting else None
            if found is not None and found[0].id:
                call, shape = found
                rewritten.add(index)
                out.append((index, shape.answer(call, one.results[0].text)))
                continue
        for result in one.results:
            waiting = [pair for pair in waiting if pair[0].id != result.call_id]
        if one.calls:
            waiting = [(call, shape_of(message)) for call in one.calls]
        out.append((index, message))
    return out


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
    """Return for every message the position of the last answer or parallel call that follows."""
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
