"""A conversation while it is being fitted: what stays, what each message costs now, and why.

The draft never touches the messages it was given. A message whose results are cut is replaced by a
changed copy of its own shape; a message that goes is only marked. Every size is the count of the
message as it would be sent, so the total of a draft is the count of its output, not an estimate.
It decides nothing: `escalation` does.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np

from muntin.conversations.outline import outline_of
from muntin.conversations.protect import protected_set
from muntin.conversations.rules import without_rules
from muntin.counting import REPLY_TOKENS, media_tokens
from muntin.errors import ConfigurationError
from muntin.messages import opening
from muntin.report import Event
from muntin.state import is_state_block

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from numpy.typing import NDArray

    from muntin.conversations.recall import Newest
    from muntin.counting import Conversation, MessageCounts
    from muntin.messages import MessageView, Role, Unit
    from muntin.prompts import PromptRegistry
    from muntin.report import DecisionKind, Reason

__all__ = ("Draft", "Plan", "Shorten", "note_headings")

Shorten = Callable[[str, int, int, str], str]
"""Cuts a tool result: `(text, its tokens, max_tokens, tool name) -> text`."""

_NOTE_ROLES = ("user", "system", "assistant")
"""Roles a note can have; `tool` answers a call."""
_PENDING = 0.1
"""Share of the budget that a single call without a result may take to stay."""
_COUNT = "{count}"
"""The placeholder of the number of removed messages in a heading."""


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
    """Role of the note in place of removed messages."""
    question: str | Newest | None = None
    """What to recall older messages for; `None` recalls none."""
    window: int | None = None
    """Tokens of the window the summariser is assumed to have if it reports none; `None` means the
    budget."""
    summarizer: object = None
    """The summariser; `None` makes no request."""


def note_headings(prompts: PromptRegistry) -> re.Pattern[str]:
    """Match what notes of earlier fits begin with: the whole heading, in whatever language.

    A heading without a letter of its own would match every message that is a number.
    """

    def every(*keys: str) -> str:
        texts = (
            text for key in keys for text in (prompts.get(key), *prompts.in_every_language(key))
        )
        own = [
            text for text in dict.fromkeys(texts) if any(map(str.isalpha, text.replace(_COUNT, "")))
        ]
        return "|".join(re.escape(text).replace(re.escape(_COUNT), r"\d+") for text in own)

    facts = every("conversation.digest", "conversation.omitted")
    summary = every("trajectory.agent.marker")
    return re.compile(rf"(?:{facts})(?:\n|\Z)|(?:{summary})(?=\S|\Z)")


class Draft:
    """Hold the working state of one fit."""

    def __init__(
        self,
        messages: Sequence[Any],
        counts: MessageCounts,
        *,
        tool_tokens: int,
        prompts: PromptRegistry,
        note_role: Role,
        read: Conversation | None = None,
    ) -> None:
        if note_role not in _NOTE_ROLES:
            known = ", ".join(_NOTE_ROLES)
            raise ConfigurationError(f"note_role is one of {known}, not {note_role!r}")
        self.messages = messages
        self.counts = counts
        self.counter = counts.counter
        read = counts.read(messages) if read is None else read
        self.measured = read.measured
        # What is out costs nothing, and nothing else costs nothing: every message is framed.
        self.size = read.sizes[:]
        self.tool_tokens = tool_tokens
        self.instruction_tokens = counts.instruction_tokens(self.measured)
        self.overhead = tool_tokens + self.instruction_tokens + REPLY_TOKENS
        self.total = sum(self.size) + self.overhead
        self.prompts = prompts
        self.note_role = note_role
        self.changed: dict[int, Any] = {}
        self.why: dict[int, tuple[DecisionKind, Reason]] = {}
        self.note: Any = None
        self.note_tokens = 0
        self.state_tokens = 0
        self.note_text = ""
        self.allowance = 0
        self.recalled: set[int] = set()
        self.notes: list[str] = []
        self.events: list[Event] = []
        self.unbound: frozenset[int] = frozenset()
        self.compacted: frozenset[int] = frozenset()
        self.was_read = False

    def read(self) -> None:
        """Find units and what is protected; only needed when something has to go."""
        self.was_read = True
        self.headings = note_headings(self.prompts)
        self._said = self._never_ours()
        self.outline = outline_of(
            self.measured,
            self.counts,
            read=self._marked,
            key=(self.headings, self.note_role, self._said),
        )
        views = self.views = self.outline.views
        self.units = self.outline.units
        protected = self.protected = protected_set(views, self.units)
        self.leading = protected.opening
        self.question = protected.newest
        self.tail = protected.tail
        self.verbatim = {*protected.verbatim}
        if self.question is not None and views[self.question].results:
            self.verbatim.discard(self.question)
        self._names: dict[int, dict[str, str]] = {}
        required = {self.outline.unit_at[index] for index in protected.verbatim}
        if self.tail is not None:
            required.add(self.outline.unit_at[self.tail.first])
        self.required = [self.units[place] for place in sorted(required)]
        held = {*required, *[self.outline.unit_at[index] for index in protected.earlier]}
        self._held = held
        self.pending: Unit | None = None
        self.released: set[int] = set()
        self.held = [self.units[place] for place in sorted(held)]

    def _marked(self, view: MessageView) -> MessageView:
        """Mark a note of an earlier fit: it comes back as an ordinary message with our heading."""
        if view.role not in ("user", "system", self.note_role):
            return view
        is_note = self.headings.match(view.text) and view not in self._said
        return view._replace(injected=True) if is_note or _is_state(view) else view

    def _never_ours(self) -> tuple[MessageView, ...]:
        """Find what reads like a note and is the caller's: the newest question, the instruction."""
        asked = (one.view for one in reversed(self.measured) if one.view.is_user_turn)
        said = [next((view for view in asked if not _is_state(view)), None)]
        if self.note_role != "system":
            said += [one.view for one in self.measured[:1] if one.view.role == "system"]
        return tuple(view for view in said if view and self.headings.match(view.text))

    def drop_state(self) -> None:
        """Take out the state an earlier fit put in: a newer one takes its place."""
        for index in self.outline.injected:
            unit = self.unit_of(index)
            if len(unit.indices) == 1 and is_state_block(self.views[index].text):
                self.drop([unit], "dropped", "superseded")

    def drop_broken(self, budget: int) -> None:
        """Drop results without a call and calls without a result, before any sound unit goes.

        A call that is the only one without a result may wait for a person. It stays while it is
        small.
        """
        free = [place for place in self.outline.orphans if place not in self._held]
        self.drop([self.units[place] for place in free], "dropped", "orphaned")
        dead = self.interrupted()
        if len(dead) == 1 and self._tokens(dead[0]) <= _PENDING * budget:
            self._held.add(self.outline.unit_at[dead[0].first])
            self.pending = dead[0]
            return
        self.drop(dead, "dropped", "interrupted")

    def _tokens(self, unit: Unit) -> int:
        return sum(self.size[index] for index in unit.indices)

    def drop(self, units: Sequence[Unit], kind: DecisionKind, reason: Reason) -> None:
        """Take whole units out."""
        if not units:
            return
        indices = [index for unit in units for index in unit.indices]
        size = np.asarray(self.size)  # a view, not a copy
        self.total -= int(size[indices].sum())
        size[indices] = 0
        self.why.update(dict.fromkeys(indices, (kind, reason)))
        if self.changed:
            for index in indices:
                self.changed.pop(index, None)

    def write_results(
        self, index: int, texts: dict[str, str], reason: Reason, *, bare: Collection[str] = ()
    ) -> None:
        """Let results of one message read differently; those in `bare` lose their media as well."""
        shape = self.measured[index].shape
        self._replace(index, shape.with_results(self.messages[index], texts, bare=bare))
        self.why[index] = ("shortened", reason)

    def may_cut_text(self, index: int) -> bool:
        """Return whether the text of a message may be shortened."""
        view = self.views[index]
        # Thinking is bound to its message, and a piece of a model turn to its neighbours.
        bound = view.results or view.signed or view.reasoning or view.leads or view.item
        return bool(
            view.text
            and view.role in ("user", "assistant")
            and not bound
            and not view.injected
            and index not in self.verbatim
            and not self.is_out(index)
        )

    def text_tokens(self, index: int) -> int:
        """Count the text of a message as it was given."""
        return self.counter(self.views[index].text)

    def write_text(self, index: int, text: str) -> None:
        """Replace the text of one message by a shortened one."""
        shape = self.measured[index].shape
        self._replace(index, shape.with_text(self.messages[index], text))
        self.why[index] = ("shortened", "oversized")

    def bring_back(self, unit: Unit) -> None:
        """Take a unit in again that was dropped, whole."""
        for index in unit.indices:
            self.size[index] = self.measured[index].tokens
            self.total += self.size[index]
            self.why.pop(index, None)

    def restore(self, index: int) -> None:
        """Put a shortened message back as it was."""
        if index in self.changed:
            self._replace(index, self.messages[index])
            del self.changed[index]
            self.why.pop(index, None)

    def put_back(
        self, changed: dict[int, Any], why: dict[int, tuple[DecisionKind, Reason]]
    ) -> None:
        """Put shortened copies back in place of the messages they were made from."""
        for index, message in changed.items():
            self._replace(index, message)
            self.why[index] = why[index]

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
        self.events.append(Event(what=what, before=before, after=self.total, covered=len(self.why)))

    def is_out(self, index: int) -> bool:
        """Whether a message has been taken out."""
        return not self.size[index]

    @property
    def messages_out(self) -> int:
        """How many messages have been taken out."""
        return self.size.count(0)

    def shortenable(self, indices: Iterable[int]) -> list[int]:
        """List the messages among `indices` whose results may be cut."""
        return [
            index
            for index in indices
            if self.views[index].results and index not in self.verbatim and not self.is_out(index)
        ]

    def result_sizes(self, index: int) -> tuple[int, ...]:
        """Count what each result of a message costs, its media included."""
        one = self.measured[index]
        if not one.view.media:
            return one.result_tokens
        return tuple(
            tokens + sum(map(media_tokens, result.media))
            for tokens, result in zip(one.result_tokens, one.view.results, strict=True)
        )

    def tool_name(self, index: int, call_id: str) -> str:
        """Name the tool a result came from; "" when unknown."""
        unit = self.unit_of(index)
        names = self._names.get(unit.first)
        if names is None:
            calls = (call for other in unit.indices for call in self.views[other].calls)
            names = self._names[unit.first] = {call.id: call.name for call in calls}
        return names.get(call_id) or self.views[index].name or ""

    def is_held(self, unit: Unit) -> bool:
        """Whether a unit holds something protected or is in flight."""
        return self.outline.unit_at[unit.first] in self._held

    def earlier_notes(self) -> set[int]:
        """List the positions of notes that earlier fits wrote."""
        return {i for i in self.outline.injected if self.headings.match(self.views[i].text)}

    def unit_of(self, index: int) -> Unit:
        """Find the unit a message belongs to."""
        return self.units[self.outline.unit_at[index]]

    def results_over(self, limit: int) -> list[int]:
        """List the messages with results that cost more than `limit`, by unit."""
        carrying = np.asarray(self.outline.carrying, dtype=np.int64)
        return carrying[np.asarray(self.size)[carrying] > limit].tolist()

    def sizes_of_units(self, most: int | None = None) -> NDArray[np.int64]:
        """Add up what every unit costs now; 0 means that it is out.

        Args:
            most: What a message with results is taken to cost at most; `None` takes it as it is.

        Returns:
            One number of tokens for each of `units`.
        """
        sizes = np.array(self.size)
        carrying = np.asarray(self.outline.carrying)
        if most is not None and len(carrying):
            sizes[carrying] = np.minimum(sizes[carrying], most)
        # Floating point holds whole numbers up to 2**53, which no conversation comes near.
        summed = np.bincount(
            np.asarray(self.outline.unit_at), weights=sizes, minlength=len(self.units)
        )
        return summed.astype(np.int64)

    def loose(self) -> NDArray[np.bool_]:
        """Mark the units that are neither held nor out."""
        marked = self.sizes_of_units() > 0
        marked[[*self._held]] = False
        return marked

    def interrupted(self) -> list[Unit]:
        """List the units that wait for a result and are neither held nor out."""
        units = [self.units[p] for p in self.outline.unanswered if p not in self._held]
        return [unit for unit in units if not self.is_out(unit.first)]

    def pick(self, marked: NDArray[np.bool_]) -> list[Unit]:
        """List the marked units, oldest first."""
        return list(compress(self.units, marked.tolist()))

    def written(self) -> dict[str, int]:
        """Tokens of what this library wrote in."""
        return {"digest": self.note_tokens, "state": self.state_tokens}

    def may_be_restored(self, index: int) -> bool:
        """Return whether a message was cut only because it is large, and is not protected."""
        return self.why[index][1] == "oversized" and not self.is_held(self.unit_of(index))

    def release(self, unit: Unit) -> None:
        """Let a unit of the open request be dropped, after everything else."""
        self.released.add(unit.first)
        self._held.discard(self.outline.unit_at[unit.first])
        self.held = [held for held in self.held if held is not unit]

    def folded(self) -> list[Unit]:
        """List the units that are out, oldest first."""
        return self.pick(self.sizes_of_units() == 0)

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
        """Read a message without the heading and the rules that an earlier fit gave it."""
        heading = self.headings.match(view.text) if view.injected else None
        return without_rules(view.text[heading.end() :])[0] if heading else view.text

    def output(self, *, note_before: int | None = None) -> list[Any]:
        """Write the messages that stay, in their order, with the note in its place.

        Args:
            note_before: Position the note goes in front of; `None` puts it behind the leading
                system messages. It moves forward out of the middle of a unit that stays.
        """
        place = opening(self.views) if note_before is None else note_before
        for unit in self.units:
            if unit.first >= place:
                break
            if place <= unit.last and not self.is_out(unit.first):
                place = unit.first
        messages = list(self.messages)
        for index, message in self.changed.items():
            messages[index] = message
        if self.note is None:
            return list(compress(messages, self.size))
        before, after = messages[:place], messages[place:]
        return [
            *compress(before, self.size),
            self.note,
            *compress(after, self.size[place:]),
        ]


def _is_state(view: MessageView) -> bool:
    return view.text.startswith("<") and is_state_block(view.text)
