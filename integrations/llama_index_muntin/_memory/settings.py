"""Settings of a memory, and what follows from them: counter, rules, limit and store."""

from __future__ import annotations

from typing import Any, Literal, Self, cast

from pydantic import ConfigDict, Field, PrivateAttr, model_validator

from llama_index_muntin._memory.defaults import check_arguments
from llama_index_muntin._memory.fold import Rules
from llama_index_muntin._memory.limit import HistoryRoom
from llama_index_muntin._memory.living import LivingMemory
from llama_index_muntin._memory.log import ConversationLog
from llama_index_muntin._memory.port import port_of
from llama_index_muntin._memory.store import StoreMirror
from llama_index_muntin._memory.vectors import TurnVectors
from llama_index_muntin._models import counter_of, counter_saved, name_to_save
from llama_index_muntin.ledger import WindowLedger
from llama_index_muntin.summarizer import summarizer_for
from muntin.conversations import NEWEST, Newest
from muntin.errors import ConfigurationError

__all__ = ("MemorySettings", "check_ledger")

_STORED = frozenset({"chat_store", "session_id", "log"})
"""Fields that decide what is written where."""


class MemorySettings(LivingMemory):
    """Hold the settings of a memory; setting one of them updates what depends on it."""

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
    summary_prompt: str | None = Field(
        default=None, description="Instruction for the first recap; None takes the built-in one."
    )
    recap_role: Literal["user", "system", "assistant"] = Field(
        default="user", description="Role of the recap; every provider takes 'user' anywhere."
    )
    alternate: bool = Field(
        default=False, description="Whether user and assistant alternate in what is sent."
    )
    question: Newest | None = Field(
        default=NEWEST,
        description="What turns are recalled for where no question is given; None recalls nothing.",
    )
    session_id: str = Field(
        default="chat_history", description="Key of the conversation in a store."
    )
    ledger: Any = Field(default=None, exclude=True, description="A WindowLedger that is shared.")
    summarizer: Any = Field(default=None, exclude=True, description="Writes recaps.")
    chat_store: Any = Field(default=None, exclude=True, description="A chat store.")
    results: Any = Field(default=None, exclude=True, description="A ToolResultStore.")
    token_counter: Any = Field(default=None, exclude=True, description="A counter object.")
    embed_model: Any = Field(default=None, exclude=True, description="An embedding model.")

    _rules: Rules = PrivateAttr()
    _room: HistoryRoom = PrivateAttr()
    _mirror: StoreMirror | None = PrivateAttr(default=None)
    _vectors: TurnVectors | None = PrivateAttr(default=None)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, given: Any) -> Any:
        if isinstance(given, dict):
            names = cast("dict[str, Any]", given).keys() - cls.model_fields.keys()
            check_arguments(names - {"class_name"})
        return cast("Any", given)

    def model_post_init(self, context: Any, /) -> None:
        """Resolve what is kept in objects rather than in fields."""
        super().model_post_init(context)
        check_ledger(self.ledger)
        self._attach()
        self._resolve()

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a field, and what depends on it."""
        if name == "ledger":
            check_ledger(value)
        elif name == "chat_store" and value is not None:
            port_of(value)
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
        found = counter_saved(self.counter) if counter is None else counter_of(counter)
        object.__setattr__(self, "counter", name_to_save(found))
        if self._vectors is None or self._vectors.model is not self.embed_model:
            self._vectors = None if self.embed_model is None else TurnVectors(self.embed_model)
        self._rules = Rules(
            counter=found,
            summarizer=summarizer_for(self.summarizer),
            summary_prompt=self.summary_prompt,
            max_summary_tokens=self.max_summary_tokens,
            store=self.results,
            recap_role=self.recap_role,
            alternate=self.alternate,
            question=self.question,
        )
        self._room = HistoryRoom(self.token_limit, self.ledger, found)
        self._expect()

    def _expect(self) -> None:
        if self.ledger is not None:  # counting is not free
            self._room.expect(self.log.size(self._rules))

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """Copy the messages; model, ledger, counter and stores are shared."""
        fields: dict[str, Any] = {name: getattr(self, name) for name in type(self).model_fields}
        fields["log"] = self.log.__deepcopy__()
        return type(self)(**fields)


def check_ledger(ledger: object) -> None:
    """Refuse what is not a ledger.

    Raises:
        ConfigurationError: It is something else.
    """
    if ledger is not None and not isinstance(ledger, WindowLedger):
        raise ConfigurationError(f"ledger must be a WindowLedger, got a {type(ledger).__name__}")
