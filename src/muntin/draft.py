"""A conversation while it is being fitted: what stays, what each message costs now, and why.

The draft never touches the messages it was given. A message whose results are cut is replaced by a
changed copy of its own shape; a message that goes is only marked. Every size is the count of the
message as it would be sent, so the total of a draft is the count of its output, not an estimate.
It decides nothing: `escalation` does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from muntin.message_tokens import REPLY_TOKENS
from muntin.reinjection import is_state_block
from muntin.report import Event
from muntin.turns import divide, in_flight, leading_system, newest_user

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from muntin.message_tokens import Measured, MessageCounts
    from muntin.messages import Role
    from muntin.prompts import PromptRegistry
    from muntin.report import DecisionKind, Reason
    from muntin.shapes import MessageView
    from muntin.turns import Unit

__all__ = ("Draft", "Plan", "Shorten")

Shorten = Callable[[str, int, int, str], str]
"""Cuts a tool result: `(text, its tokens, max_tokens, tool name) -> text`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What one fit was asked for."""

    budget: int
    """Tokens the request may take."""
    prompts: PromptRegistry
    """Texts of notes and marks."""
    shorten: Shorten
    """Cuts a tool result: `(text, its tokens, max_tokens, tool name) -> text` that fits."""
    note_role: Role = "user"
    """Role of the note that stands for what is left out."""
    question: str | None = None
    """What to recall older messages for; `None` recalls none."""
    asks_model: bool = False
    """Whether a summariser may be asked."""


class Draft:
    """Hold the working state of one fit."""

    def __init__(
        self,
        messages: Sequence[Any],
        counts: MessageCounts,
        *,
        tool_tokens: int,
        note_prefixes: tuple[str, ...],
        measured: list[Measured] | None = None,
    ) -> None:
        self.messages = messages
        self.counts = counts
        self.counter = counts.counter
        self.measured = counts.measure_all(messages) if measured is None else measured
        self.size = [one.tokens for one in self.measured]
        self.overhead = tool_tokens + REPLY_TOKENS
        self.total = sum(self.size) + self.overhead
        self.note_prefixes = note_prefixes
        self.changed: dict[int, Any] = {}
        self._out: set[int] = set()
        self.why: dict[int, tuple[DecisionKind, Reason]] = {}
        self.note: Any = None
        self.note_tokens = 0
        self.state_tokens = 0
        self.note_text = ""
        self.allowance = 0
        self.recalled: set[int] = set()
        self.notes: list[str] = []
        self.events: list[Event] = []
        self.was_read = False

    def read(self) -> None:
        """Find units and what is protected; only needed when something has to go."""
        self.was_read = True
        self.views = [one.view for one in self.measured]
        starts = tuple({*(prefix[:1] for prefix in self.note_prefixes), "<"})
        for index, view in enumerate(self.views):
            # Notes of an earlier fit come back as ordinary messages; their heading gives them away.
            if (
                view.text.startswith(starts)
                and view.role in ("user", "system")
                and self._is_note(view.text)
            ):
                self.views[index] = replace(view, injected=True)
        views = self.views
        division = divide(views, self.counts.kept_for(self.measured))
        self.counts.keep_for(self.measured, division)
        self.units = division.units
        self.leading = leading_system(views)
        self.question = newest_user(views)
        self.tail = in_flight(views, self.units)
        self.verbatim = {index for index, view in enumerate(views) if view.pinned}
        self.verbatim.update(range(self.leading))
        if self.question is not None and not views[self.question].results:
            self.verbatim.add(self.question)
        self._names: dict[int, dict[str, str]] = {}
        self._unit_of = {index: unit for unit in self.units for index in unit.indices}
        stays = {self._unit_of[index].first for index in self.verbatim}
        if self.question is not None:
            stays.add(self._unit_of[self.question].first)
        if self.tail is not None:
            stays.add(self.tail.first)
        self._held_firsts = stays
        self.held = [self._unit_of[first] for first in sorted(stays)]
        self._loose = [unit for unit in self.units if unit.indices[0] not in stays]

    def _is_note(self, text: str) -> bool:
        return text.startswith(self.note_prefixes) or (
            text.startswith("<") and is_state_block(text)
        )

    def drop_state(self) -> None:
        """Take out the state an earlier fit put in: a newer one takes its place."""
        for unit in self.units:
            if len(unit.indices) == 1 and is_state_block(self.views[unit.first].text):
                self.drop(unit, "dropped", "superseded")

    def drop(self, unit: Unit, kind: DecisionKind, reason: Reason) -> None:
        """Take a whole unit out."""
        why = (kind, reason)
        for index in unit.indices:
            self.total -= self.size[index]
            self.size[index] = 0
            self.why[index] = why
        self._out.update(unit.indices)
        if self.changed:
            for index in unit.indices:
                self.changed.pop(index, None)

    def write_results(self, index: int, texts: dict[str, str], reason: Reason) -> None:
        """Let results of one message read differently."""
        shape = self.measured[index].shape
        self._replace(index, shape.with_results(self.messages[index], texts))
        self.why[index] = ("shortened", reason)

    def restore(self, index: int) -> None:
        """Put a shortened message back as it was."""
        if index in self.changed:
            self._replace(index, self.messages[index])
            del self.changed[index]
            self.why.pop(index, None)

    def _replace(self, index: int, message: Any) -> None:
        self.changed[index] = message
        tokens = self.counts.measure(message).tokens
        self.total += tokens - self.size[index]
        self.size[index] = tokens

    def write_note(self, message: Any) -> None:
        """Put a note after the leading system messages, in place of the one before."""
        self.total -= self.note_tokens
        self.note = message
        self.note_tokens = 0 if message is None else self.counts.measure(message).tokens
        self.total += self.note_tokens

    def tell(self, what: str, before: int) -> None:
        """Remember for the report that something happened to the whole."""
        covered = sum(kind != "kept" for kind, _ in self.why.values())
        self.events.append(Event(what=what, before=before, after=self.total, covered=covered))

    def is_out(self, index: int) -> bool:
        """Whether a message has been taken out."""
        return index in self._out

    def shortenable(self, indices: Iterable[int]) -> list[int]:
        """List the messages among `indices` whose results may be cut."""
        return [
            index
            for index in indices
            if self.views[index].results and index not in self.verbatim and not self.is_out(index)
        ]

    def tool_name(self, index: int, call_id: str) -> str:
        """Name the tool a result came from; "" when unknown."""
        unit = self._unit_of[index]
        names = self._names.get(unit.first)
        if names is None:
            calls = (call for other in unit.indices for call in self.views[other].calls)
            names = self._names[unit.first] = {call.id: call.name for call in calls}
        return names.get(call_id) or self.views[index].name or ""

    def is_held(self, unit: Unit) -> bool:
        """Whether a unit holds something protected or is in flight."""
        return unit.first in self._held_firsts

    def standing(self) -> list[Unit]:
        """List the units that are neither held nor out, oldest first."""
        out = self._out
        return [unit for unit in self._loose if unit.indices[0] not in out]

    def unit_of(self, index: int) -> Unit:
        """Find the unit a message belongs to."""
        return self._unit_of[index]

    def written(self) -> dict[str, int]:
        """Tokens of what this library wrote in."""
        return {"digest": self.note_tokens, "state": self.state_tokens}

    def folded(self) -> list[Unit]:
        """List the units that are out, oldest first."""
        out = self._out
        return [unit for unit in self.units if unit.indices[0] in out]

    def current_results(self, indices: Iterable[int]) -> list[str]:
        """List result texts as they read now."""
        return [
            result.text
            for index in indices
            for result in self.counts.measure(
                self.changed.get(index, self.messages[index])
            ).view.results
        ]

    def body(self, view: MessageView) -> str:
        """Read a message without the heading that an earlier fit gave it."""
        for prefix in self.note_prefixes:
            if view.injected and view.text.startswith(prefix):
                rest = view.text[len(prefix) :]
                return rest if prefix.endswith("]") else rest.partition("]")[2].lstrip("\n")
        return view.text

    def output(self, *, note_before: int | None = None) -> list[Any]:
        """Write the messages that stay, in their order, with the note in its place.

        Args:
            note_before: Position the note goes in front of; `None` puts it behind the leading
                system messages. It moves forward out of the middle of a unit that stays.
        """
        place = self.leading if note_before is None else note_before
        for unit in self.units:
            if unit.first >= place:
                break
            if place <= unit.last and not self.is_out(unit.first):
                place = unit.first
        out, changed = self._out, self.changed
        kept: list[Any] = []
        for index, message in enumerate(self.messages):
            if index == place and self.note is not None:
                kept.append(self.note)
            if index not in out:
                kept.append(changed.get(index, message))
        return kept
