"""What a memory holds: every message that was put, and what the oldest of them were folded into.

The originals stay. The *live* part is what is sent before any cut: leading system messages, the
recap, messages held verbatim, and everything since. The live part is bounded, so reading and
writing cost the same however long the conversation is. A fold is planned under a lock, made outside
it, and applied only if the messages it was planned on are still there.
"""

from __future__ import annotations

import copy
import threading
from typing import TYPE_CHECKING, Any, Literal, cast

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from pydantic import BaseModel, Field, PrivateAttr, field_serializer, model_validator

from llama_index_muntin._conversion import copy_of_message
from llama_index_muntin._memory.fold import Fold, Rules, compactor_for, recap_tokens, weight
from llama_index_muntin._memory.messages import is_system, owned, shared
from llama_index_muntin._memory.recall import FoldedTurns
from llama_index_muntin._memory.send import Recall, Sendable, Sent, send
from llama_index_muntin._shapes import SHAPE
from muntin.conversations import cleaned
from muntin.counting import REPLY_TOKENS, counts_for
from muntin.errors import StateCorruptError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muntin.conversations import Compaction

__all__ = ("ConversationLog",)

_AGAIN = 0.1
"""Share of the limit by which the live part must have grown before a failed fold is tried again."""


class ConversationLog(BaseModel):
    """Hold the messages of one conversation and the recap of the oldest."""

    version: Literal["muntin.memory/1"] = "muntin.memory/1"
    """Schema of the saved form."""
    messages: list[ChatMessage] = Field(default_factory=list[ChatMessage])
    """Every message, in the order in which they were put."""
    recap: str = ""
    """Summary of the folded messages; `""` before the first fold."""
    folded: int = 0
    """Messages from the start that the recap covers, but for those held."""
    held: list[int] = Field(default_factory=list[int])
    """Positions below `folded` that stay verbatim."""

    _lock: threading.RLock = PrivateAttr(default_factory=threading.RLock)
    _revision: int = PrivateAttr(default=0)
    _folding: bool = PrivateAttr(default=False)
    _patience: int = PrivateAttr(default=0)
    _turns: FoldedTurns = PrivateAttr(default_factory=FoldedTurns)
    _last: tuple[Any, Sent] | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _check(self) -> ConversationLog:
        sound = 0 <= self.folded <= len(self.messages) and bool(self.folded) == bool(self.recap)
        if not sound or not all(0 <= at < self.folded for at in self.held):
            raise StateCorruptError(
                f"a saved memory of {len(self.messages)} messages states that {self.folded} are "
                f"folded and {self.held} held"
            )
        self.messages = cleaned(self.messages)
        return self

    @field_serializer("messages")
    def _write_messages(self, messages: list[ChatMessage]) -> list[dict[str, Any]]:
        return [message.model_dump(mode="json") for message in messages]

    # --- writing --------------------------------------------------------------------------------

    def append(self, messages: Sequence[ChatMessage]) -> None:
        """Add messages, copied.

        Raises:
            ConfigurationError: One of them cannot be kept; then none of them is.
        """
        self.extend(owned(messages))

    def extend(self, copies: Sequence[ChatMessage]) -> None:
        """Add messages that belong to the log already."""
        with self._lock:
            self.messages.extend(copies)
            self._revision += 1

    def replace(self, messages: Sequence[ChatMessage]) -> None:
        """Hold these messages, copied, and no others.

        Raises:
            ConfigurationError: One of them cannot be kept; then nothing changes.
        """
        self.hold(owned(messages))

    def hold(self, copies: Sequence[ChatMessage]) -> None:
        """Hold messages that belong to the log already, and no others.

        Messages in front that are the same as before stay the same objects, and a recap stays when
        all the messages it covers are still there.
        """
        with self._lock:
            common = shared(self.messages, copies)
            if common == len(self.messages) == len(copies):
                return
            if common < self.folded:
                self.recap, self.folded, self.held = "", 0, []
                self._turns.clear()
            self.messages[common:] = copies[common:]
            self._revision += 1
            self._patience = 0

    # --- reading --------------------------------------------------------------------------------

    def all(self) -> list[ChatMessage]:
        """Return every message, copied."""
        return self.part(archived=None)

    def part(self, *, archived: bool | None) -> list[ChatMessage]:
        """Return messages, copied.

        Args:
            archived: Those that only the recap covers, or those still sent; `None`: all.
        """
        with self._lock:
            held = set(self.held)
            return [
                copy_of_message(message)
                for at, message in enumerate(self.messages)
                if archived is None or archived == (at < self.folded and at not in held)
            ]

    def size(self, rules: Rules) -> int:
        """Count the live part as it would be sent."""
        counts = counts_for(rules.counter)
        with self._lock:
            live = self._live(rules.recap_role)
        return sum(counts.measure(message).tokens for message in live) + REPLY_TOKENS

    def newest_user(self) -> str | None:
        """Return the text of the newest message of the user; `None` if there is none."""
        with self._lock:
            for message in reversed(self._live("user")):
                if message.role is MessageRole.USER:
                    return SHAPE.view(message).text
        return None

    def newest(self, count: int) -> list[ChatMessage]:
        """Return the last messages, copied."""
        with self._lock:
            return [copy_of_message(message) for message in self.messages[-count:]]

    def folded_turns(self) -> list[tuple[int, str]]:
        """Return the first position and the text of every folded turn, for an embedding model."""
        with self._lock:
            self._turns.follow(self.messages, self.folded)
            return [
                (turn.start, "\n".join(SHAPE.view(self.messages[at]).text for at in turn))
                for turn in self._turns.ranges()
            ]

    def read(
        self,
        budget: int,
        rules: Rules,
        *,
        question: str | None = None,
        recall: Recall | None = None,
    ) -> Sent:
        """Return the messages to send, copied, and the account of them.

        Args:
            budget: Tokens they may take, framing included.
            rules: How they are counted.
            question: Question for which older turns are recalled; `None` takes the newest message
                of the user. Not read where the rules recall nothing.
            recall: Vectors of the question and the turns; `None` recalls by words.

        Raises:
            ContextWindowExceeded: What must be kept is over the budget.
        """
        with self._lock:
            asked = self._asked(question, rules)
            key = (self._revision, budget, id(rules), asked, recall and recall.key)
            if self._last is None or self._last[0] != key:
                sendable = self._sendable(asked, recall)
                given = asked if question is not None and asked else rules.question
                self._last = (key, send(sendable, budget, rules, given))
            return self._last[1].copied()

    def _asked(self, question: str | None, rules: Rules) -> str | None:
        """Return the text of the question; `None` if nothing is to be recalled."""
        if rules.question is None:
            return None
        return self.newest_user() if question is None else question

    def _sendable(self, question: str | None, recall: Recall | None) -> Sendable:
        lead, held = self._held()
        turns: list[range] = []
        if self.folded and question:
            self._turns.follow(self.messages, self.folded)
            turns = self._turns.about(
                question,
                held=self.held,
                vectors=recall and recall.vectors,
                asked=None if recall is None else recall.asked,
            )
        return Sendable(
            messages=self.messages,
            lead=lead,
            held=held,
            recap=self.recap,
            turns=turns,
            tail=range(self.folded, len(self.messages)),
        )

    def _held(self) -> tuple[list[int], list[int]]:
        """Return the held positions: leading system messages, and the others."""
        lead = 0
        while lead < len(self.held) and is_system(self.messages[self.held[lead]]):
            if self.held[lead] != lead:
                break
            lead += 1
        return self.held[:lead], self.held[lead:]

    def _live(self, recap_role: str) -> list[ChatMessage]:
        if not self.recap:
            return self.messages[self.folded :]
        lead, held = self._held()
        note = ChatMessage(role=MessageRole(recap_role), content=self.recap)
        return [
            *(self.messages[at] for at in lead),
            note,
            *(self.messages[at] for at in held),
            *self.messages[self.folded :],
        ]

    # --- folding --------------------------------------------------------------------------------

    def plan(self, limit: int, rules: Rules) -> Fold | None:
        """Plan a fold when the live part is over the limit; the caller must `end` it."""
        with self._lock:
            if self._folding or not recap_tokens(limit, rules):
                return None
            live = self._live("system")
            tokens = sum(weight(message, limit, rules) for message in live)
            if tokens <= max(limit, self._patience):
                return None
            self._folding = True
            places = [*self.held, *range(self.folded, len(self.messages))]
            return Fold(
                live=live,
                tokens=tokens,
                positions={id(self.messages[at]): at for at in places},
                planned_on=tuple(self.messages),
                compactor=compactor_for(live, limit, rules),
                extracts=rules.summarizer is None,
            )

    def end(self, fold: Fold, done: Compaction | None, limit: int) -> bool:
        """Apply the result of a fold, unless messages it was planned on are gone.

        Args:
            fold: The fold.
            done: Its result; `None` when it was given up.
            limit: Tokens of the live part, to decide when to try again.

        Returns:
            Whether the result holds: `False` when it was given up or discarded.
        """
        with self._lock:
            self._folding = False
            if done is None or not self._begins_with(fold.planned_on):
                return False
            if not done.outcome.compacted:
                self._patience = fold.tokens + int(limit * _AGAIN)
                return True
            kept: set[int] = set()
            recap = ""
            for message in cast("list[ChatMessage]", done.messages):
                at = fold.positions.get(id(message))
                if at is None:
                    recap = SHAPE.view(message).text
                else:
                    kept.add(at)
            folded = len(fold.planned_on)
            while folded and folded - 1 in kept:
                folded -= 1
            self.recap, self.folded = recap, folded
            self.held = sorted(at for at in kept if at < folded)
            self._revision += 1
            self._patience = 0
            return True

    def _begins_with(self, messages: Sequence[ChatMessage]) -> bool:
        return len(messages) <= len(self.messages) and all(
            mine is theirs for mine, theirs in zip(self.messages, messages, strict=False)
        )

    # --- copies ---------------------------------------------------------------------------------

    def __getstate__(self) -> dict[Any, Any]:
        with self._lock:
            state = dict(super().__getstate__())
            state["__dict__"] = {
                **self.__dict__, "messages": list(self.messages), "held": list(self.held),
            }  # fmt: skip
        state["__pydantic_private__"] = None
        return state

    def __setstate__(self, state: dict[Any, Any]) -> None:
        super().__setstate__(state)
        self.model_post_init(None)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> ConversationLog:
        with self._lock:
            return ConversationLog(
                messages=[copy_of_message(message) for message in self.messages],
                recap=self.recap,
                folded=self.folded,
                held=copy.copy(self.held),
            )
