"""A block for `Memory`: the messages its queue flushed, folded and inside a budget.

`Memory` gives a block the messages it flushes and asks it for text at every read. This block keeps
them by session, folds the oldest into a recap, and returns what fits its own budget: the recap, the
turns about the current question, and the newest ones.
"""

from __future__ import annotations

import logging
import pickle
from typing import TYPE_CHECKING, Any, cast

from llama_index.core.base.llms.types import TextBlock
from llama_index.core.memory import BaseMemoryBlock
from llama_index.core.utils import (
    get_tokenizer,  # pyright: ignore[reportUnknownVariableType] - theirs is partly untyped
)
from pydantic import ConfigDict, Field, PrivateAttr, model_validator

from llama_index_muntin._conversion import copy_of_message, text_of_messages
from llama_index_muntin._memory import (
    ConversationLog,
    Recall,
    Rules,
    TurnVectors,
    adrive,
)
from llama_index_muntin._models import counter_named, counter_of, counter_of_tokenizer
from llama_index_muntin._shapes import SHAPE
from llama_index_muntin.summarizer import summarizer_for
from muntin.conversations import NEWEST, Newest
from muntin.counting import truncate_to_tokens
from muntin.errors import ConfigurationError, ContextWindowExceeded

if TYPE_CHECKING:
    from llama_index.core.base.llms.types import ChatMessage

__all__ = ("MuntinMemoryBlock",)

_SESSION = "session_id"
_MEDIA = frozenset({"image", "audio", "video", "document"})
"""Types of content blocks that are not told as text."""
_OBJECTS = ("summarizer", "token_counter", "embed_model")
"""Fields that hold objects of the caller."""


class MuntinMemoryBlock(BaseMemoryBlock[str]):
    """Keep what a `Memory` flushes, as a recap and the messages that matter, within a budget.

    ```python
    import asyncio

    from llama_index.core.llms import ChatMessage
    from llama_index_muntin import MuntinMemoryBlock

    block = MuntinMemoryBlock(name="earlier", max_tokens=200)
    asyncio.run(block.aput([ChatMessage(role="user", content="I moved to Oslo.")]))
    print(asyncio.run(block.aget([ChatMessage(role="user", content="Where do I live?")])))
    #> user: I moved to Oslo.
    ```
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    max_tokens: int = Field(default=1000, gt=0, description="Tokens the block may take.")
    logs: dict[str, ConversationLog] = Field(
        default_factory=dict[str, ConversationLog], description="Flushed messages, by session."
    )
    question: Newest | None = Field(
        default=NEWEST,
        description="What turns are recalled for: the newest user message; None recalls nothing.",
    )
    counter: str = Field(default="estimate:o200k_base", description="Name of the token counter.")
    summarizer: Any = Field(default=None, exclude=True, description="Writes recaps.")
    token_counter: Any = Field(default=None, exclude=True, description="A counter object.")
    embed_model: Any = Field(default=None, exclude=True, description="An embedding model.")

    _rules: Rules = PrivateAttr()
    _vectors: TurnVectors | None = PrivateAttr(default=None)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, given: Any) -> Any:
        if isinstance(given, dict):
            names = cast("dict[str, Any]", given).keys() - cls.model_fields.keys()
            if names:
                raise ConfigurationError(
                    f"MuntinMemoryBlock does not take {', '.join(sorted(names))}; it takes "
                    f"{', '.join(sorted(cls.model_fields))}"
                )
        return cast("Any", given)

    def model_post_init(self, context: Any, /) -> None:
        """Resolve what is kept in objects rather than in fields."""
        super().model_post_init(context)
        own = self.token_counter
        found = counter_named(self.counter) if own is None else counter_of(own)
        self.counter = found.name
        self._rules = Rules(
            counter=found, summarizer=summarizer_for(self.summarizer), question=self.question
        )
        if self.embed_model is not None:
            self._vectors = TurnVectors(self.embed_model)

    def __getstate__(self) -> dict[Any, Any]:
        """Keep what can be pickled; a summarizer or model that cannot be is left out."""
        state = super().__getstate__()
        kept = {
            name: value if name not in _OBJECTS or _can_be_pickled(value) else None
            for name, value in state["__dict__"].items()
        }
        return {**state, "__dict__": kept, "__pydantic_private__": None}

    def __setstate__(self, state: dict[Any, Any]) -> None:
        """Resolve what is kept in objects."""
        super().__setstate__(state)
        self.model_post_init(None)

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        log = self.logs.get(str(block_kwargs.get(_SESSION) or ""))
        if log is None:
            return ""
        await self._fold(log)
        newest = next((m for m in reversed(messages or []) if m.role.value == "user"), None)
        if self.question is None:
            newest = None
        question = None if newest is None else SHAPE.view(newest).text
        recall = None
        if self._vectors is not None and question and (turns := log.folded_turns()):
            recall = await adrive(self._vectors.model, self._vectors.recall(question, turns))
        return self._text(log, question, recall)

    async def _fold(self, log: ConversationLog) -> None:
        fold = log.plan(self.max_tokens, self._rules)
        if fold is None:
            return
        done = None
        try:
            done = await fold.afold()
        finally:
            log.end(fold, done, self.max_tokens)

    def _text(self, log: ConversationLog, question: str | None, recall: Recall | None) -> str:
        """Write what fits; framing is paid for, so the text alone is within the budget."""
        try:
            kept = log.read(self.max_tokens, self._rules, question=question, recall=recall).messages
        except ContextWindowExceeded:
            kept = log.newest(1)
        text = text_of_messages(kept)
        return truncate_to_tokens(text, self.max_tokens, self._rules.counter)

    async def _aput(self, messages: list[ChatMessage]) -> None:
        """Take flushed messages; the session that `Memory` wrote into them is taken out."""
        for message in messages:
            session = str(message.additional_kwargs.get(_SESSION) or "")
            copied = _as_text(message)
            copied.additional_kwargs.pop(_SESSION, None)
            self.logs.setdefault(session, ConversationLog()).append([copied])

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """Shorten the text by a number of tokens; `None` if nothing would be left."""
        # `Memory` counts with LlamaIndex's tokenizer, and drops a block that is cut too little.
        counters = (counter_of_tokenizer(get_tokenizer()), self._rules.counter)
        left = [(counter(content) - tokens_to_truncate, counter) for counter in counters]
        for tokens, counter in left:
            if tokens <= 0:
                return None
            content = truncate_to_tokens(content, tokens, counter)
        return content


def _as_text(message: ChatMessage) -> ChatMessage:
    """Copy a message with its media replaced by their kinds: the block returns text alone."""
    copied = copy_of_message(message)
    copied.blocks = [
        TextBlock(text=f"[{block.block_type}]") if block.block_type in _MEDIA else block
        for block in copied.blocks
    ]
    return copied


def _can_be_pickled(value: object) -> bool:
    try:
        pickle.dumps(value)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        logging.getLogger(__name__).warning("left out of the pickle: %s", error)
        return False
    return True
