"""A chat memory that keeps everything, sends what fits, and folds the rest into a recap.

Reading changes nothing: agents read several times a turn. Folding happens when something is put,
so it is paid for once. A summariser that fails loses nothing; the messages stay as they are and the
budget is kept without a model.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Literal

from llama_index.core.async_utils import (
    asyncio_run,  # pyright: ignore[reportUnknownVariableType] - theirs is untyped
)
from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore
from pydantic import ConfigDict, Field, PrivateAttr

from llama_index_muntin._memory import (
    ConversationLog,
    Fold,
    HistoryRoom,
    LivingMemory,
    Rules,
    StoreMirror,
    history_limit,
    is_answer,
    text_said,
)
from llama_index_muntin._models import (
    counter_named,
    counter_of,
    counting,
    tokenizer_of,
)
from llama_index_muntin.ledger import WindowLedger
from llama_index_muntin.summarizer import summarizer_for
from muntin.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from llama_index.core.base.llms.types import ChatMessage

    from muntin.conversations import CompactionOutcome
    from muntin.counting import TokenCounter
    from muntin.tool_results import ToolResultStore

__all__ = ("CompactingMemory", "CompactionWarning")


_KINDS: dict[str, type[Any]] = {"ledger": WindowLedger, "chat_store": AsyncDBChatStore}
"""What is handed in as an object, and has to be one of these."""
_STORED = frozenset({"chat_store", "session_id", "log"})
"""Fields that decide what is written where."""


class CompactionWarning(UserWarning):
    """A recap could not be made: the messages are all there, unfolded."""


class CompactingMemory(LivingMemory):
    """Remember a conversation, and hand out what fits the window.

    Leading system messages and the newest question are always sent; tool calls keep their results;
    what no longer fits is folded into a recap when messages are put. Use it wherever LlamaIndex
    takes a memory: chat engines, agents, workflows. Make it with `from_defaults`.

    ```python
    from llama_index.core.llms import ChatMessage
    from llama_index_muntin import CompactingMemory

    memory = CompactingMemory.from_defaults(token_limit=400)
    for n in range(60):
        memory.put(ChatMessage(role="user", content=f"Where is order A-{1000 + n}?"))
        memory.put(ChatMessage(role="assistant", content=f"Order A-{1000 + n} left the warehouse."))
    sent = memory.get()
    print(len(memory.get_all()), len(sent) < 60, sent[-1].content)
    #> 120 True Order A-1059 left the warehouse.
    ```
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    token_limit: int = Field(gt=0, description="Tokens the messages that are sent may take.")
    log: ConversationLog = Field(
        default_factory=ConversationLog, description="The messages, and the recap of the oldest."
    )
    counter: str = Field(
        default="estimate:o200k_base", frozen=True, description="Name of the token counter."
    )
    max_summary_tokens: int | None = Field(
        default=None, gt=0, description="Tokens a recap may take; None takes a share of the limit."
    )
    recap_role: Literal["user", "system", "assistant"] = Field(
        default="user", description="Who says the recap; every provider takes 'user' anywhere."
    )
    session_id: str = Field(
        default="chat_history", description="Key of the conversation in a store."
    )
    ledger: Any = Field(default=None, exclude=True, description="A WindowLedger that is shared.")
    summarizer: Any = Field(default=None, exclude=True, description="Who writes recaps.")
    chat_store: Any = Field(default=None, exclude=True, description="An AsyncDBChatStore.")
    results: Any = Field(default=None, exclude=True, description="A ToolResultStore.")
    token_counter: Any = Field(default=None, exclude=True, description="A counter of one's own.")

    _rules: Rules = PrivateAttr()
    _room: HistoryRoom = PrivateAttr()
    _outcome: CompactionOutcome | None = PrivateAttr(default=None)
    _mirror: StoreMirror | None = PrivateAttr(default=None)

    def model_post_init(self, context: Any, /) -> None:
        """Resolve what is kept in objects rather than in fields."""
        super().model_post_init(context)
        for name in _KINDS:
            _check_kind(name, getattr(self, name))
        self._attach()
        self._resolve()

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a field; what follows from it follows."""
        _check_kind(name, value)
        super().__setattr__(name, value)
        if name in _STORED:
            self._attach()
        elif name in type(self).model_fields:
            self._resolve()

    def _attach(self) -> None:
        store = self.chat_store
        self._mirror = None if store is None else StoreMirror(store, self.session_id, self.log)

    def _resolve(self) -> None:
        counter = self.token_counter or (self.ledger and self.ledger.counter)
        found = counter_named(self.counter) if counter is None else counter_of(counter)
        object.__setattr__(self, "counter", found.name)
        self._rules = Rules(
            counter=found,
            summarizer=summarizer_for(self.summarizer),
            max_summary_tokens=self.max_summary_tokens,
            store=self.results,
            recap_role=self.recap_role,
        )
        self._room = HistoryRoom(self.token_limit, self.ledger, found)
        self._expect()

    @classmethod
    def class_name(cls) -> str:
        """Name the class in saved forms."""
        return "CompactingMemory"

    @classmethod
    def from_defaults(  # pyright: ignore[reportIncompatibleMethodOverride] - every memory has its own
        cls,
        chat_history: Sequence[ChatMessage] | None = None,
        llm: Any = None,
        token_limit: int | None = None,
        *,
        ledger: WindowLedger | None = None,
        summarizer: Any = None,
        chat_store: AsyncDBChatStore | None = None,
        session_id: str = "chat_history",
        results: ToolResultStore | None = None,
        token_counter: TokenCounter | str | None = None,
        tokenizer_fn: Callable[[str], list[Any]] | None = None,
        max_summary_tokens: int | None = None,
        recap_role: Literal["user", "system", "assistant"] = "user",
        chat_store_key: str | None = None,
        **unknown: Any,
    ) -> CompactingMemory:
        """Make a memory.

        Args:
            chat_history: Messages to begin with; they replace what a store holds. `None` leaves a
                store as it is.
            llm: The model. Three quarters of its window less the answer are the limit, so that
                system prompts and templates have a place; its vocabulary counts.
            token_limit: Tokens of the messages that are sent, framing included. `None` takes the
                ledger's share for history, else the model's window less the answer.
            ledger: Account of the window that is shared with a postprocessor and an agent.
            summarizer: Who writes recaps: a LlamaIndex model, or anything `muntin` takes as one.
                `None` summarises by extraction, without a model.
            chat_store: Any `AsyncDBChatStore`, written through. `None` keeps messages here.
            session_id: Key of this conversation in the store.
            results: Keeps the originals of tool results that are cut.
            token_counter: Counts tokens: a counter, or its name. `None` takes the ledger's, else
                the model's, else the estimate.
            tokenizer_fn: A tokenizer, as other memories of LlamaIndex take one.
            max_summary_tokens: Tokens a recap may take; `None` takes a share of the limit.
            recap_role: Who says the recap.
            chat_store_key: The session, as other memories of LlamaIndex call it.
            unknown: Nothing; whatever else is given is refused by name.

        Raises:
            ConfigurationError: There is no limit, no ledger and no model to take one from, or a
                setting is unknown.
        """
        if unknown:
            raise ConfigurationError(f"a memory has no setting {', '.join(sorted(unknown))}")
        _check_kind("ledger", ledger)
        _check_kind("chat_store", chat_store)
        counter: Any = token_counter
        if tokenizer_fn is not None:
            counter = counting(tokenizer_fn)
        elif counter is None:
            counter = ledger.counter if ledger is not None else counter_of(None, llm)
        memory = cls(
            token_limit=history_limit(token_limit, ledger, llm),
            token_counter=counter_of(counter),
            max_summary_tokens=max_summary_tokens,
            recap_role=recap_role,
            session_id=chat_store_key or session_id,
            ledger=ledger,
            summarizer=summarizer,
            chat_store=chat_store,
            results=results,
        )
        if chat_history:
            memory.set(list(chat_history))
        return memory

    @property
    def tokenizer_fn(self) -> Callable[[str], list[int]]:
        """A list as long as the count: engines ask for its length to size their prefix."""
        return tokenizer_of(self._rules.counter)

    @property
    def last_outcome(self) -> CompactionOutcome | None:
        """What the last fold came to; `None` before the first."""
        return self._outcome

    # --- reading --------------------------------------------------------------------------------

    def get(
        self,
        input: str | ChatMessage | None = None,  # noqa: A002 - the base class calls it so
        *,
        initial_token_count: int = 0,
        **kwargs: Any,  # noqa: ARG002 - engines pass what other memories know
    ) -> list[ChatMessage]:
        """Return copies of the messages to send.

        Args:
            input: The question; it makes room for itself where it has not been put yet.
            initial_token_count: Tokens that are sent besides.
            kwargs: What other memories are asked with; it changes nothing here.

        Raises:
            ContextWindowExceeded: The prefix, or what must be kept, is over the limit.
        """
        self._follow_in_time()
        return self._read(input, initial_token_count)

    async def aget(
        self,
        input: str | ChatMessage | None = None,  # noqa: A002 - the base class calls it so
        *,
        initial_token_count: int = 0,
        **kwargs: Any,  # noqa: ARG002 - engines pass what other memories know
    ) -> list[ChatMessage]:
        """Return what `get` returns."""
        await self._follow()
        return self._read(input, initial_token_count)

    def get_all(self) -> list[ChatMessage]:
        """Return copies of all messages, the folded ones included."""
        self._follow_in_time()
        return self.log.all()

    async def aget_all(self) -> list[ChatMessage]:
        """Return what `get_all` returns."""
        await self._follow()
        return self.log.all()

    async def _follow(self) -> None:
        if self._mirror is not None:
            await self._mirror.follow()
            self._expect()

    def _follow_in_time(self) -> None:
        if self._mirror is not None:
            asyncio_run(self._follow())

    def _read(self, asked: str | ChatMessage | None, prefix: int) -> list[ChatMessage]:
        question = text_said(asked)
        if question is not None and question == self.log.newest_user():
            question = None
        budget = self._room.granted(question, prefix)
        messages, tokens = self.log.read(budget, self._rules, question=question)
        self._room.charge(question, tokens)
        return messages

    # --- writing --------------------------------------------------------------------------------

    def put(self, message: ChatMessage) -> None:
        """Add a message, and fold what has become too much."""
        self.put_messages([message])

    async def aput(self, message: ChatMessage) -> None:
        """Add a message, and fold what has become too much."""
        await self.aput_messages([message])

    def put_messages(self, messages: list[ChatMessage]) -> None:
        """Add messages, and fold what has become too much."""
        if self._mirror is not None:
            asyncio_run(self.aput_messages(messages))
            return
        self.log.append(messages)
        self._noted(messages)
        fold = self.log.plan(self.token_limit, self._rules)
        if fold is None:
            return
        done = None
        try:
            done = fold.compactor.fold(fold.live)
        finally:
            self._end(fold, done)

    async def aput_messages(self, messages: list[ChatMessage]) -> None:
        """Add messages, and fold what has become too much without blocking the loop."""
        if self._mirror is None:
            self.log.append(messages)
        else:
            await self._mirror.append(messages)
        self._noted(messages)
        fold = self.log.plan(self.token_limit, self._rules)
        if fold is None:
            return
        done = None
        try:
            done = await fold.afold()
        finally:
            self._end(fold, done)

    def set(self, messages: list[ChatMessage]) -> None:
        """Hold these messages and no others."""
        if self._mirror is not None:
            asyncio_run(self.aset(messages))
            return
        self.log.replace(messages)
        self._expect()

    async def aset(self, messages: list[ChatMessage]) -> None:
        """Hold these messages and no others."""
        if self._mirror is None:
            self.log.replace(messages)
        else:
            await self._mirror.replace(messages)
        self._expect()

    def reset(self) -> None:
        """Forget everything."""
        self.set([])

    async def areset(self) -> None:
        """Forget everything."""
        await self.aset([])

    def _noted(self, messages: Sequence[ChatMessage]) -> None:
        """Tell the ledger what came in; an answer closes the turn."""
        self._expect()
        if any(is_answer(message) for message in messages):
            self._room.close_turn()

    def _expect(self) -> None:
        if self.ledger is not None:  # counting is not free
            self._room.expect(self.log.size(self._rules))

    def _end(self, fold: Fold, done: Any) -> None:
        self.log.end(fold, done, self.token_limit)
        if done is None:
            return
        self._outcome = done.outcome
        self._expect()
        if self.summarizer is not None and done.outcome.reason.startswith("summary_"):
            why = f": {done.outcome.error}" if done.outcome.error else ""
            fate = "it is extracted" if done.outcome.extracted else "all messages are kept"
            warnings.warn(
                f"no recap was made ({done.outcome.reason}{why}); {fate}",
                CompactionWarning,
                stacklevel=4,
            )

    # --- copies ---------------------------------------------------------------------------------

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> CompactingMemory:
        """Copy the messages; model, ledger, counter and stores are shared."""
        fields: dict[str, Any] = {name: getattr(self, name) for name in type(self).model_fields}
        fields["log"] = self.log.__deepcopy__()
        return type(self)(**fields)


def _check_kind(name: str, value: Any) -> None:
    kind = _KINDS.get(name)
    if kind is not None and value is not None and not isinstance(value, kind):
        raise ConfigurationError(
            f"{name} has to be of {kind.__name__}, not a {type(value).__name__}"
        )
