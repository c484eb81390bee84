"""What a memory holds: every message that was put, and what the oldest of them were folded into.

The originals stay. What is sent is the *live* part: leading system messages, the recap, what had to
be held verbatim, and everything since. The live part is bounded, so reading and writing cost the
same however long the conversation is. A fold is planned under a lock, made outside of it, and
applied only if the messages it covers are still there; messages that arrive meanwhile are simply
not covered.
"""

from __future__ import annotations

import asyncio
import copy
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

from llama_index.core.base.llms.types import ChatMessage, MessageRole, TextBlock
from pydantic import BaseModel, Field, PrivateAttr, field_serializer, model_validator

from llama_index_muntin._conversion import as_chat_message, copy_of_message
from llama_index_muntin._shapes import SHAPE
from muntin.conversations import ExtractiveSummarizer, HistoryCompactor, cleaned, fit_messages
from muntin.counting import REPLY_TOKENS, counts_for, truncate_to_tokens
from muntin.errors import ConfigurationError, ContextWindowExceeded, StateCorruptError
from muntin.messages import Message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muntin.conversations import Compaction
    from muntin.counting import TokenCounter
    from muntin.tool_results import ToolResultStore

__all__ = ("ConversationLog", "Fold", "Rules", "is_answer", "owned", "text_said")

_KEPT = 0.76
"""Share of the limit that stays verbatim when the rest is folded."""
_RECAP = 0.12
"""Share of the limit a recap may take."""
_RESULTS = 8
"""The limit is so many times what a tool result weighs at most: long ones are cut, not folded."""
_AGAIN = 0.1
"""Share of the limit by which the live part must have grown before a failed fold is tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How a log is counted and folded."""

    counter: TokenCounter
    """Counts texts."""
    summarizer: Any = None
    """Who writes recaps; `None` summarises by extraction."""
    max_summary_tokens: int | None = None
    """Tokens of a recap; `None` takes a share of the limit."""
    store: ToolResultStore | None = None
    """Keeps the originals of tool results that are cut; `None` keeps them nowhere else."""
    recap_role: Literal["user", "system", "assistant"] = "user"
    """Who says the recap."""


@dataclass(frozen=True, slots=True)
class Fold:
    """A fold that is due, as it was planned."""

    epoch: int
    live: list[ChatMessage]
    """Live part, the recap said by the system, where a compactor knows it."""
    tokens: int
    """What they weigh."""
    positions: dict[int, int]
    """Position in the log of each live message, by identity."""
    size: int
    """Messages of the log when it was planned."""
    compactor: HistoryCompactor
    extracts: bool = False
    """Whether the recap is made here, without a model."""

    async def afold(self) -> Compaction:
        """Fold without blocking the loop: work that asks nobody is done in a thread."""
        if self.extracts:
            return await asyncio.to_thread(self.compactor.fold, self.live)
        return await self.compactor.afold(self.live)


class _Extraction:
    """Summarise without a model: the telling sentences, or where there are none, both ends."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._extract = ExtractiveSummarizer(counter=counter)

    def __call__(self, text: str, instruction: str = "", *, max_tokens: int = 1000) -> str:
        said = self._extract(text, instruction, max_tokens=max_tokens)
        return said or truncate_to_tokens(text, max_tokens, self._counter, keep="ends")


class ConversationLog(BaseModel):
    """Hold the messages of one conversation and the recap of the oldest."""

    version: Literal["muntin.memory/1"] = "muntin.memory/1"
    """Schema of the saved form."""
    messages: list[ChatMessage] = Field(default_factory=list[ChatMessage])
    """Every message, in the order in which they were put."""
    recap: str = ""
    """What the folded ones were about; `""` before the first fold."""
    folded: int = 0
    """Messages from the start that the recap stands for, but for those held."""
    held: list[int] = Field(default_factory=list[int])
    """Positions below `folded` that stay verbatim."""

    _lock: threading.RLock = PrivateAttr(default_factory=threading.RLock)
    _epoch: int = PrivateAttr(default=0)
    _revision: int = PrivateAttr(default=0)
    _folding: bool = PrivateAttr(default=False)
    _patience: int = PrivateAttr(default=0)
    _last: tuple[Any, list[ChatMessage], int] | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _check(self) -> ConversationLog:
        sound = 0 <= self.folded <= len(self.messages) and bool(self.folded) == bool(self.recap)
        if not sound or not all(0 <= at < self.folded for at in self.held):
            raise StateCorruptError(
                f"a saved memory of {len(self.messages)} messages says that {self.folded} are "
                f"folded and {self.held} held"
            )
        self.messages = cleaned(self.messages)
        return self

    @field_serializer("messages")
    def _write_messages(self, messages: list[ChatMessage]) -> list[dict[str, Any]]:
        return [message.model_dump(mode="json") for message in messages]

    # --- writing --------------------------------------------------------------------------------

    def append(self, messages: Sequence[ChatMessage]) -> None:
        """Add messages, copied."""
        copies = owned(messages)
        with self._lock:
            self.messages.extend(copies)
            self._revision += 1

    def grow_to(self, messages: Sequence[ChatMessage]) -> None:
        """Hold these messages, copied: only what is new where they begin with the log's."""
        with self._lock:
            known = len(self.messages)
            if cleaned(list(messages[:known])) == self.messages:
                self.append(messages[known:])
            else:
                self.replace(messages)

    def replace(self, messages: Sequence[ChatMessage]) -> None:
        """Hold these messages, copied, and nothing else."""
        copies = owned(messages)
        with self._lock:
            self.messages[:] = copies
            self.recap, self.folded, self.held = "", 0, []
            self._epoch += 1
            self._revision += 1
            self._patience = 0

    # --- reading --------------------------------------------------------------------------------

    def all(self) -> list[ChatMessage]:
        """Return every message, copied."""
        with self._lock:
            return [copy_of_message(message) for message in self.messages]

    def size(self, rules: Rules) -> int:
        """Count the live part as it would be sent."""
        with self._lock:
            return self._count(self._live(rules.recap_role), rules)

    def newest_user(self) -> str | None:
        """Return the text of the newest message of the user; `None` where there is none."""
        with self._lock:
            for message in reversed(self._live("user")):
                if message.role is MessageRole.USER:
                    return SHAPE.view(message).text
        return None

    def newest(self, count: int) -> list[ChatMessage]:
        """Return the last so many messages, copied."""
        with self._lock:
            return [copy_of_message(message) for message in self.messages[-count:]]

    def read(
        self, budget: int, rules: Rules, *, question: str | None = None
    ) -> tuple[list[ChatMessage], int]:
        """Return the messages to send, copied, and their tokens.

        Args:
            budget: Tokens they may take, framing included.
            rules: How they are counted.
            question: What older messages are brought back for; `None` takes the newest of the user.

        Raises:
            ContextWindowExceeded: What must be kept is over the budget.
        """
        with self._lock:
            asked = self.newest_user() if question is None else question
            key = (self._revision, budget, id(rules), asked)
            if self._last is None or self._last[0] != key:
                self._last = (key, *self._fitted(budget, rules, asked))
            _, found, tokens = self._last
            return [copy_of_message(message, literal=True) for message in found], tokens

    def _fitted(
        self, budget: int, rules: Rules, question: str | None
    ) -> tuple[list[ChatMessage], int]:
        live = self._live(rules.recap_role)
        tokens = self._count(live, rules)
        if tokens <= budget:
            return live, tokens
        # What a system message says holds for all that follows, wherever it was put.
        system = [message for message in live if _is_system(message)]
        rest = [message for message in live if not _is_system(message)]
        told = Message(self.recap, rules.recap_role, pinned=True) if self.recap else None
        pinned = [told if told and _says(one, self.recap) else one for one in rest]
        try:
            fitted = _fit([*system, *pinned], budget, rules, question)
        except ContextWindowExceeded:
            fitted = _fit([*system, *rest], budget, rules, question)
        messages = [as_chat_message(message) for message in fitted]
        return messages, self._count(messages, rules)

    def _count(self, messages: Sequence[ChatMessage], rules: Rules) -> int:
        counts = counts_for(rules.counter)
        return sum(counts.measure(message).tokens for message in messages) + REPLY_TOKENS

    def _live(self, recap_role: str) -> list[ChatMessage]:
        if not self.recap:
            return self.messages[self.folded :]
        held = [self.messages[at] for at in self.held]
        lead = 0
        while lead < len(held) and _is_system(held[lead]):
            lead += 1
        note = ChatMessage(role=MessageRole(recap_role), content=self.recap)
        return [*held[:lead], note, *held[lead:], *self.messages[self.folded :]]

    # --- folding --------------------------------------------------------------------------------

    def plan(self, limit: int, rules: Rules) -> Fold | None:
        """Plan a fold where the live part is over the limit; whoever gets one must end it."""
        with self._lock:
            if self._folding:
                return None
            live = self._live("system")
            tokens = sum(_weight(message, limit, rules) for message in live)
            if tokens <= max(limit, self._patience):
                return None
            self._folding = True
            return Fold(
                self._epoch,
                live,
                tokens,
                self._positions(),
                len(self.messages),
                self._compactor(live, limit, rules),
                rules.summarizer is None,
            )

    def _positions(self) -> dict[int, int]:
        places = [*self.held, *range(self.folded, len(self.messages))]
        return {id(self.messages[at]): at for at in places}

    def _compactor(self, live: Sequence[ChatMessage], limit: int, rules: Rules) -> HistoryCompactor:
        room, keep = int(limit * _KEPT), 0
        for message in reversed(live):
            room -= _weight(message, limit, rules)
            if room < 0:
                break
            keep += 1
        most = max(1, int(limit * _RECAP))
        return HistoryCompactor(
            rules.summarizer or _Extraction(rules.counter),
            keep_recent=max(keep, 1),
            trigger_tokens=limit // 4,
            max_summary_tokens=rules.max_summary_tokens or most,
            token_counter=rules.counter,
            pinned=_is_system,
        )

    def end(self, fold: Fold, done: Compaction | None, limit: int) -> bool:
        """Take over what a fold came to; say whether anything was folded.

        Args:
            fold: The fold.
            done: What it came to; `None` where it was given up.
            limit: Tokens of the live part, to know when to try again.
        """
        with self._lock:
            self._folding = False
            if done is None or fold.epoch != self._epoch:
                return False
            if not done.outcome.compacted:
                self._patience = fold.tokens + int(limit * _AGAIN)
                return False
            kept: set[int] = set()
            recap = ""
            for message in cast("list[ChatMessage]", done.messages):
                at = fold.positions.get(id(message))
                if at is None:
                    recap = SHAPE.view(message).text
                else:
                    kept.add(at)
            folded = fold.size
            while folded and folded - 1 in kept:
                folded -= 1
            self.recap, self.folded = recap, folded
            self.held = sorted(at for at in kept if at < folded)
            self._revision += 1
            self._patience = 0
            return True

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


def _fit(messages: Sequence[Any], budget: int, rules: Rules, question: str | None) -> Sequence[Any]:
    return fit_messages(
        messages,
        budget=max(budget, 1),
        counter=rules.counter,
        store=rules.store,
        question=question,
    ).messages


def _says(message: ChatMessage, text: str) -> bool:
    return message.content == text


def _weight(message: ChatMessage, limit: int, rules: Rules) -> int:
    """Count a message; a tool result at most for what it is shortened to when it is sent."""
    measured = counts_for(rules.counter).measure(message)
    return min(measured.tokens, limit // _RESULTS) if measured.view.results else measured.tokens


def _is_system(message: Any) -> bool:
    return message.role in (MessageRole.SYSTEM, MessageRole.DEVELOPER)


def owned(messages: Sequence[Any]) -> list[ChatMessage]:
    """Copy what is handed in to be kept, without lone surrogates: no store can write those.

    Raises:
        ConfigurationError: Something among it is no chat message.
    """
    for message in messages:
        if not isinstance(message, ChatMessage):
            raise ConfigurationError(
                f"a memory holds messages, not a {type(message).__name__}: "
                f"give ChatMessage(role=..., content=...)"
            )
    return [copy_of_message(cleaned(message)) for message in messages]


def text_said(asked: str | ChatMessage | None) -> str | None:
    """Return the text of a question, however it was asked."""
    if asked is None or isinstance(asked, str):
        return asked
    return "\n".join(block.text for block in asked.blocks if isinstance(block, TextBlock))


def is_answer(message: ChatMessage) -> bool:
    """Say whether a message ends a turn: the assistant's, and no call."""
    seen = SHAPE.view(message)
    return seen.role == "assistant" and not seen.calls
