"""A chat memory that keeps everything, sends what fits, and folds the rest into a recap.

Putting never asks a model. The first read after the conversation became too long folds the oldest
messages, so each recap that is paid for is sent; reading again changes nothing. A summariser that
fails loses nothing: the messages stay, and the budget is kept without a model.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from llama_index.core.storage.chat_store.base_db import MessageStatus
from pydantic import PrivateAttr

from llama_index_muntin._memory import (
    Fold,
    Recall,
    WritableMemory,
    adrive,
    check_arguments,
    check_ledger,
    database_store,
    discarded,
    drive,
    history_limit,
    read_other,
    text_said,
)
from llama_index_muntin._models import counter_of, counter_of_tokenizer, tokenizer_of
from muntin.conversations import NEWEST
from muntin.counting import model_name
from muntin.messages import role_rules

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

    from llama_index.core.base.llms.types import ChatMessage

    from llama_index_muntin.ledger import WindowLedger
    from muntin.conversations import Compaction, CompactionOutcome, Newest
    from muntin.counting import TokenCounter
    from muntin.report import AssemblyReport
    from muntin.tool_results import ToolResultStore

__all__ = ("CompactingMemory", "CompactionWarning")


class CompactionWarning(UserWarning):
    """A recap could not be made: all messages are kept, unfolded."""


class CompactingMemory(WritableMemory):
    """Remember a conversation, and return what fits the window.

    Leading system messages and the open question are always sent; tool calls keep their results,
    broken pairs are mended; what no longer fits is folded into a recap, and folded turns about the
    question come back word for word. Use it wherever LlamaIndex takes a memory: chat
    engines, agents, workflows. Make it with `from_defaults`.

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
    print(any("A-1003" in message.content for message in memory.get("Where was order A-1003?")))
    #> True
    ```
    """

    _outcome: CompactionOutcome | None = PrivateAttr(default=None)
    _report: Callable[[], AssemblyReport] | None = PrivateAttr(default=None)

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
        chat_store: Any = None,
        session_id: str | None = None,
        results: ToolResultStore | None = None,
        token_counter: TokenCounter | str | None = None,
        tokenizer_fn: Callable[[str], list[Any]] | None = None,
        embed_model: Any = None,
        max_summary_tokens: int | None = None,
        summarize_prompt: str | None = None,
        recap_role: Literal["user", "system", "assistant"] = "user",
        alternate: bool | None = None,
        question: Newest | None = NEWEST,
        chat_store_key: str | None = None,
        table_name: str | None = None,
        async_database_uri: str | None = None,
        async_engine: Any = None,
        db_schema: str | None = None,
        **unknown: Any,
    ) -> Self:
        """Make a memory.

        Args:
            chat_history: Messages to begin with; they replace what a store holds. `None` leaves a
                store as it is.
            llm: The model. Three quarters of its window less the answer are the limit, so that
                system prompts and templates have a place; its vocabulary counts.
            token_limit: Tokens of the messages that are sent, framing included. `None` takes the
                ledger's share for history, else the model's window less the answer, else 30,000 as
                LlamaIndex's `Memory` does.
            ledger: Account of the window that is shared with a postprocessor and an agent.
            summarizer: Writes recaps: a LlamaIndex model, or anything `muntin` takes as one.
                `None` summarises by extraction, without a model.
            chat_store: Any `BaseChatStore` or `AsyncDBChatStore`, written through. `None` keeps
                messages here.
            session_id: Key of this conversation in the store; `None` takes `"chat_history"`.
            results: Keeps the originals of tool results that are cut.
            token_counter: Counts tokens: a counter, or its name. `None` takes the ledger's, else
                the model's, else the estimate. One that no name finds again has to be given again
                when a saved memory is read.
            tokenizer_fn: A tokenizer, as other memories of LlamaIndex take one.
            embed_model: Recalls folded turns by their vectors as well as by their words.
            max_summary_tokens: Tokens a recap may take; `None` takes a share of the limit.
            summarize_prompt: Instruction for the first recap; `None` takes the built-in one.
            recap_role: Role of the recap, and of a note about messages that are left out.
            alternate: Whether user and assistant alternate in what is sent, as chat templates of
                Mistral, Gemma and Llama 2 demand. `None` knows it by the name of the `llm`.
            question: What older turns come back for, word for word, where a read is given no
                question: the newest message of the user. `None` recalls nothing at any read.
            chat_store_key: The session, as other memories of LlamaIndex call it.
            table_name: Table of a `SQLAlchemyChatStore`, made as `Memory` makes one.
            async_database_uri: Its database.
            async_engine: Its engine.
            db_schema: Its schema.
            unknown: Nothing; any other argument is refused by name.

        Raises:
            ConfigurationError: A setting is unknown or contradicts another one.
        """
        check_arguments(unknown)
        check_ledger(ledger)
        counter: Any = token_counter
        if tokenizer_fn is not None:
            counter = counter_of_tokenizer(tokenizer_fn)
        elif counter is None:
            counter = ledger.counter if ledger is not None else counter_of(None, llm)
        database = {
            "table_name": table_name,
            "async_database_uri": async_database_uri,
            "async_engine": async_engine,
            "db_schema": db_schema,
        }
        memory = cls(
            token_limit=history_limit(token_limit, ledger, llm),
            token_counter=counter_of(counter),
            max_summary_tokens=max_summary_tokens,
            summary_prompt=summarize_prompt,
            recap_role=recap_role,
            alternate=_alternates(llm) if alternate is None else alternate,
            question=question,
            session_id=chat_store_key or session_id or "chat_history",
            ledger=ledger,
            summarizer=summarizer,
            chat_store=database_store(chat_store, database),
            results=results,
            embed_model=embed_model,
        )
        memory._rules = replace(memory._rules, roles=role_rules(model_name(llm) or ""))
        if chat_history:
            memory.set(list(chat_history))
        return memory

    @classmethod
    def from_dict(cls, data: dict[str, Any], **kwargs: Any) -> Self:
        """Read what `to_dict` wrote, or what a `ChatMemoryBuffer` or a `Memory` did.

        Args:
            data: The saved form. That of a `Memory` holds no messages: give its store as
                `chat_store=`.
            kwargs: Settings that take the place of saved ones; with any of them it is a copy.

        Raises:
            ConfigurationError: It cannot be read as it is; the message states what to give.
        """
        other = read_other(data)
        if other is not None:
            return cls.from_defaults(**{**other, **kwargs})
        if "tokenizer_fn" in kwargs:
            kwargs["token_counter"] = counter_of_tokenizer(kwargs.pop("tokenizer_fn"))
        return super().from_dict(data, **kwargs)

    def to_string(self) -> str:
        """Return the memory as JSON, as `ChatMemoryBuffer` does."""
        return self.to_json()

    @classmethod
    def from_string(cls, json_str: str, **kwargs: Any) -> Self:
        """Read what `to_string` wrote, here or in a `ChatMemoryBuffer`."""
        return cls.from_json(json_str, **kwargs)

    @property
    def tokenizer_fn(self) -> Callable[[str], list[int]]:
        """A list as long as the count: engines ask for its length to size their prefix."""
        return tokenizer_of(self._rules.counter)

    @property
    def last_outcome(self) -> CompactionOutcome | None:
        """What the last fold did; `None` before the first."""
        return self._outcome

    @property
    def last_report(self) -> AssemblyReport | None:
        """What happened to every message at the last read; `None` before the first."""
        return None if self._report is None else self._report()

    # --- reading --------------------------------------------------------------------------------

    def get(
        self,
        input: str | ChatMessage | None = None,  # noqa: A002 - the base class calls it so
        initial_token_count: int = 0,
        **kwargs: Any,  # noqa: ARG002 - engines pass what other memories know
    ) -> list[ChatMessage]:
        """Return copies of the messages to send.

        Args:
            input: The question: folded turns about it come back, and its tokens are set aside if it
                has not been put yet. `None` takes the newest message of the user. Nothing
                comes back where the memory has `question=None`.
            initial_token_count: Tokens of everything else that is sent.
            kwargs: Arguments of other memories; they change nothing here.

        Raises:
            ContextWindowExceeded: The prefix, or what must be kept, is over the limit.
        """
        if self._mirror is not None:
            self._mirror.follow()
            self._expect()
        self.compact_now()
        question = text_said(input)
        asked = self._asked(question)
        recall: Recall | None = None
        if self._vectors is not None and asked and (turns := self.log.folded_turns()):
            recall = drive(self._vectors.model, self._vectors.recall(asked, turns))
        return self._read(question, initial_token_count, recall)

    async def aget(
        self,
        input: str | ChatMessage | None = None,  # noqa: A002 - the base class calls it so
        initial_token_count: int = 0,
        **kwargs: Any,  # noqa: ARG002 - engines pass what other memories know
    ) -> list[ChatMessage]:
        """Return what `get` returns, without blocking the loop."""
        if self._mirror is not None:
            await self._mirror.afollow()
            self._expect()
        await self.acompact_now()
        question = text_said(input)
        asked = self._asked(question)
        recall: Recall | None = None
        if self._vectors is not None and asked and (turns := self.log.folded_turns()):
            recall = await adrive(self._vectors.model, self._vectors.recall(asked, turns))
        return self._read(question, initial_token_count, recall)

    def get_all(self, status: MessageStatus | None = None) -> list[ChatMessage]:
        """Return copies of all messages, the folded ones included.

        Args:
            status: `ACTIVE` leaves out the messages that only the recap covers, `ARCHIVED`
                returns these alone; `None` returns all.
        """
        if self._mirror is not None:
            self._mirror.follow()
        return self.log.part(archived=_archived(status))

    async def aget_all(self, status: MessageStatus | None = None) -> list[ChatMessage]:
        """Return what `get_all` returns."""
        if self._mirror is not None:
            await self._mirror.afollow()
        return self.log.part(archived=_archived(status))

    def _asked(self, question: str | None) -> str | None:
        """Return the text that vectors are computed for; `None` if nothing is recalled."""
        return None if self.question is None else question or self.log.newest_user()

    def _read(self, question: str | None, prefix: int, recall: Recall | None) -> list[ChatMessage]:
        unasked = None if question == self.log.newest_user() else question
        budget = self._room.granted(unasked, prefix)
        sent = self.log.read(budget, self._rules, question=unasked, recall=recall)
        self._report = lambda: sent.fit.report
        self._room.charge(unasked, sent.tokens)
        return sent.messages

    # --- folding --------------------------------------------------------------------------------

    def compact_now(self) -> CompactionOutcome | None:
        """Fold the messages over the limit now, not at the next read.

        Returns:
            What the last fold did; `None` if there was none yet.
        """
        fold = self.log.plan(self.token_limit, self._rules)
        if fold is not None:
            done = None
            try:
                done = fold.compactor.fold(fold.live)
            finally:
                self._end(fold, done)
        return self._outcome

    async def acompact_now(self) -> CompactionOutcome | None:
        """Fold the messages over the limit now, without blocking the loop."""
        fold = self.log.plan(self.token_limit, self._rules)
        if fold is not None:
            done = None
            try:
                done = await fold.afold()
            finally:
                self._end(fold, done)
        return self._outcome

    def _end(self, fold: Fold, done: Compaction | None) -> None:
        holds = self.log.end(fold, done, self.token_limit)
        if done is None:
            return
        outcome = self._outcome = done.outcome if holds else discarded(done.outcome)
        self._expect()
        if self.summarizer is not None and outcome.reason.startswith("summary_"):
            why = f": {outcome.error}" if outcome.error else ""
            fate = "it is extracted" if outcome.extracted else "all messages are kept"
            warnings.warn(
                f"no recap was made ({outcome.reason}{why}); {fate}",
                CompactionWarning,
                stacklevel=4,
            )


def _alternates(llm: Any) -> bool:
    return role_rules(str(llm.metadata.model_name or "")).alternate if llm is not None else False


def _archived(status: MessageStatus | None) -> bool | None:
    return None if status is None else status == MessageStatus.ARCHIVED
