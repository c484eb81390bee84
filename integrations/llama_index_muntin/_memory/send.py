"""Choose what a memory sends: the live part, turns recalled for the question, inside a budget.

Broken pairs of calls and results are mended first. Recalled turns may take what is idle, at least a
quarter of the budget; the core cuts other turns for them and reports what became of every message.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole

from llama_index_muntin._conversion import as_chat_message, copy_of_message, to_muntin
from llama_index_muntin._memory.messages import is_empty
from llama_index_muntin._shapes import signed_neighbours_joined
from muntin.conversations import FittedMessages, fit_messages
from muntin.counting import REPLY_TOKENS, counts_for
from muntin.errors import ContextWindowExceeded
from muntin.messages import Message, arrange_roles, without_signed_thinking

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from llama_index_muntin._memory.fold import Rules
    from muntin.conversations import Newest

__all__ = ("Recall", "Sendable", "Sent", "send")

_RECALLED = 0.25
"""Share of the budget that recalled turns may take at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """Vectors to recall folded turns by."""

    asked: NDArray[np.float32]
    """Unit vector of the question."""
    vectors: Mapping[int, NDArray[np.float32]]
    """Unit vectors of turns, by the position of their first message."""

    @property
    def key(self) -> tuple[bytes, int]:
        """What a read depends on."""
        return self.asked.tobytes(), len(self.vectors)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sendable:
    """A conversation from which messages to send are chosen. Positions are those of `messages`."""

    messages: Sequence[ChatMessage]
    """Every message."""
    lead: Sequence[int]
    """System messages in front of the recap."""
    held: Sequence[int]
    """Folded messages that stay verbatim."""
    recap: str
    """The recap; `""` if nothing is folded."""
    turns: Sequence[range]
    """Folded turns about the question, best first."""
    tail: range
    """Messages that are not folded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """Messages to send, and the account of them."""

    messages: list[ChatMessage]
    """The messages."""
    tokens: int
    """Tokens they take, framing included."""
    fit: FittedMessages[list[Any]]
    """The fit they came from."""

    def copied(self) -> Sent:
        """Return the same with messages that may be changed."""
        copies = [copy_of_message(message, literal=True) for message in self.messages]
        return Sent(messages=copies, tokens=self.tokens, fit=self.fit)


def send(given: Sendable, budget: int, rules: Rules, question: str | Newest | None) -> Sent:
    """Choose the messages to send.

    Args:
        given: The conversation.
        budget: Tokens the messages may take, framing included.
        rules: How they are counted.
        question: As in `fit_messages`.

    Raises:
        ContextWindowExceeded: What must be kept is over the budget.
    """
    recalled = _recalled(given, budget, rules)
    for places in [recalled, []] if recalled else [[]]:
        try:
            return _fitted(_arranged(given, places, rules, pinned=True), budget, rules, question)
        except ContextWindowExceeded:
            continue
    return _fitted(_arranged(given, [], rules, pinned=False), budget, rules, question)


def _recalled(given: Sendable, budget: int, rules: Rules) -> list[int]:
    """Return the positions of the recalled messages that fit what they may take, ascending."""
    if not given.turns:
        return []
    measure = counts_for(rules.counter).measure
    places = (*given.lead, *given.held, *given.tail)
    live = sum(measure(given.messages[at]).tokens for at in places) + REPLY_TOKENS
    live += rules.counter(given.recap)
    room = max(budget - live, int(budget * _RECALLED))
    chosen: list[int] = []
    for turn in given.turns:
        cost = sum(measure(given.messages[at]).tokens for at in turn)
        if cost <= room:
            room -= cost
            chosen.extend(turn)
    return sorted(chosen)


def _arranged(given: Sendable, recalled: Sequence[int], rules: Rules, *, pinned: bool) -> list[Any]:
    """Put the parts in order: leading prompt, recap, held and recalled messages, the rest."""
    messages = given.messages
    parts: list[Any] = [messages[at] for at in given.lead]
    if given.recap:
        note = ChatMessage(role=MessageRole(rules.recap_role), content=given.recap)
        parts.append(Message(given.recap, rules.recap_role, pinned=True) if pinned else note)
    chosen = set(recalled)
    parts.extend(
        _pinned(messages[at]) if at in chosen else messages[at]
        for at in sorted({*given.held, *chosen})
    )
    parts.extend(messages[at] for at in given.tail)
    if given.recap or chosen or given.held:
        # Each was written behind another recap, or behind the messages that it replaces.
        parts = without_signed_thinking(parts, anyhow=True).messages
    return [part for part in parts if isinstance(part, Message) or not _is_refused(part)]


def _pinned(message: ChatMessage) -> Message:
    return replace(to_muntin(message), pinned=True)


def _is_refused(message: ChatMessage) -> bool:
    """Return whether providers refuse a message: one of the assistant that is empty."""
    return message.role is MessageRole.ASSISTANT and is_empty(message)


def _fitted(parts: list[Any], budget: int, rules: Rules, question: str | Newest | None) -> Sent:
    measure = counts_for(rules.counter).measure
    system = "first" if rules.alternate else rules.roles.system
    room = max(budget, 1)
    while True:
        fit = fit_messages(
            parts,
            budget=room,
            counter=rules.counter,
            store=rules.store,
            question=question,
            note_role=rules.recap_role,
            repair=True,
        )
        arranged = arrange_roles(fit.messages, alternate=rules.alternate, system=system)
        messages = signed_neighbours_joined([as_chat_message(one) for one in arranged])
        tokens = sum(measure(message).tokens for message in messages) + REPLY_TOKENS
        if arranged is fit.messages or tokens <= max(budget, 1):
            return Sent(messages=messages, tokens=tokens, fit=fit)
        # Messages between two of one role cost tokens of their own: these are taken off.
        room -= tokens - max(budget, 1)
        if room < 1:
            raise ContextWindowExceeded("messages that alternate", needed=tokens, available=budget)
