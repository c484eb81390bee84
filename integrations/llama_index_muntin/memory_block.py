"""A block for people who use `Memory`: what its queue let go, folded and within a budget.

`Memory` hands a block the messages it flushes and asks it for text on every read. This block keeps
them apart by session, folds the oldest into a recap, and hands out what fits its own budget: the
recap, and of the rest what speaks of the current question and what is newest.
"""

from __future__ import annotations

import logging
import pickle
from typing import TYPE_CHECKING, Any

from llama_index.core.memory import BaseMemoryBlock
from pydantic import Field, PrivateAttr

from llama_index_muntin._conversion import copy_of_message, text_of_messages
from llama_index_muntin._memory import ConversationLog, Rules
from llama_index_muntin._models import counter_named, counter_of
from llama_index_muntin._shapes import SHAPE
from llama_index_muntin.summarizer import summarizer_for
from muntin.counting import truncate_to_tokens
from muntin.errors import ContextWindowExceeded

if TYPE_CHECKING:
    from llama_index.core.base.llms.types import ChatMessage

__all__ = ("MuntinMemoryBlock",)

_SESSION = "session_id"
_OBJECTS = ("summarizer", "token_counter")
"""Fields that hold whatever the caller brought."""


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

    max_tokens: int = Field(default=1000, gt=0, description="Tokens the block may take.")
    logs: dict[str, ConversationLog] = Field(
        default_factory=dict[str, ConversationLog], description="What was flushed, by session."
    )
    counter: str = Field(default="estimate:o200k_base", description="Name of the token counter.")
    summarizer: Any = Field(default=None, exclude=True, description="Who writes recaps.")
    token_counter: Any = Field(default=None, exclude=True, description="A counter of one's own.")

    _rules: Rules = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Resolve what is kept in objects rather than in fields."""
        super().model_post_init(context)
        found = (
            counter_named(self.counter)
            if self.token_counter is None
            else counter_of(self.token_counter)
        )
        self.counter = found.name
        self._rules = Rules(counter=found, summarizer=summarizer_for(self.summarizer))

    def __getstate__(self) -> dict[Any, Any]:
        """Keep what can be pickled; a summarizer or counter that cannot be is left behind."""
        state = super().__getstate__()
        kept = {
            name: value if name not in _OBJECTS or _can_be_pickled(value) else None
            for name, value in state["__dict__"].items()
        }
        return {**state, "__dict__": kept, "__pydantic_private__": None}

    def __setstate__(self, state: dict[Any, Any]) -> None:
        """Resolve again what is kept in objects."""
        super().__setstate__(state)
        self.model_post_init(None)

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        log = self.logs.get(str(block_kwargs.get(_SESSION) or ""))
        if log is None:
            return ""
        asked = next((m for m in reversed(messages or []) if m.role.value == "user"), None)
        question = None if asked is None else SHAPE.view(asked).text
        return self._told(log, question)

    def _told(self, log: ConversationLog, question: str | None) -> str:
        """Write what fits; framing is paid for, so the text alone is within the budget."""
        try:
            kept, _ = log.read(self.max_tokens, self._rules, question=question)
        except ContextWindowExceeded:
            kept = log.newest(1)
        text = text_of_messages(kept)
        return truncate_to_tokens(text, self.max_tokens, self._rules.counter)

    async def _aput(self, messages: list[ChatMessage]) -> None:
        """Take flushed messages; `Memory` has written the session into them, which is taken out."""
        for message in messages:
            session = str(message.additional_kwargs.get(_SESSION) or "")
            copied = copy_of_message(message)
            copied.additional_kwargs.pop(_SESSION, None)
            self.logs.setdefault(session, ConversationLog()).append([copied])
        for log in {id(log): log for log in self.logs.values()}.values():
            fold = log.plan(self.max_tokens, self._rules)
            if fold is None:
                continue
            done = None
            try:
                done = await fold.afold()
            finally:
                log.end(fold, done, self.max_tokens)

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """Shorten the text by so many tokens; `None` where nothing would be left."""
        left = self._rules.counter(content) - tokens_to_truncate
        return truncate_to_tokens(content, left, self._rules.counter) if left > 0 else None


def _can_be_pickled(value: object) -> bool:
    try:
        pickle.dumps(value)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        logging.getLogger(__name__).warning("left out of the pickle: %s", error)
        return False
    return True
