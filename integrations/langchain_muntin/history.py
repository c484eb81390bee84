"""A chat history that is read compacted and stored whole, for chains that still use one."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from langchain_core.chat_history import BaseChatMessageHistory

from langchain_muntin.summarizer import summarizer_for
from muntin.adapting import refuse_unknown
from muntin.conversations import HistoryCompactor
from muntin.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage

    from muntin.conversations import CompactionOutcome

__all__ = ("CompactingChatMessageHistory",)

_OPTIONS = tuple(inspect.signature(HistoryCompactor).parameters)[1:]
"""Keywords of `HistoryCompactor` behind the summariser."""


class CompactingChatMessageHistory(BaseChatMessageHistory):
    """Put a recap in place of the older messages of another history, which keeps them all.

    Reading compacts; writing stores the messages as they are. When a recap fails, the whole history
    is read. The compactor remembers what was folded: if a new history is made for every call, keep
    one compactor per conversation and pass it in, or every call pays for the recaps again. For
    agents, prefer `ContextWindowMiddleware` and a checkpointer.

    Args:
        inner: The history that stores the messages.
        compactor: Decides when and how much is folded, and remembers the recaps; `None` makes one
            of the other arguments, which are refused together with a compactor.
        summarizer: A chat model or any summariser; `None` summarises by extraction.
        **knobs: Any other argument of `muntin.HistoryCompactor`, such as `trigger_tokens`.

    Raises:
        ConfigurationError: A compactor is given and options for one as well, or an option is
            unknown.

    ```python
    from langchain_core.messages import AIMessage, HumanMessage
    from langchain_core.chat_history import BaseChatMessageHistory
    from langchain_muntin import CompactingChatMessageHistory
    from langchain_muntin.testing import StrictChatModel

    class Kept(BaseChatMessageHistory):
        def __init__(self):
            self.messages = []

        def add_messages(self, messages):
            self.messages.extend(messages)

        def clear(self):
            self.messages.clear()

    model = StrictChatModel(window=4000, replies=["They spoke of the rain."])
    short = CompactingChatMessageHistory(
        Kept(), summarizer=model, keep_recent=1, trigger_tokens=50
    )
    short.add_messages([HumanMessage("It rains again. " * 20), AIMessage("So it does. " * 20)])
    short.add_messages([HumanMessage("And tomorrow?")])
    print([message.text for message in short.messages], len(short.inner.messages))
    #> ['[Recap] They spoke of the rain.', 'And tomorrow?'] 3
    ```
    """

    def __init__(
        self,
        inner: BaseChatMessageHistory,
        *,
        compactor: HistoryCompactor | None = None,
        summarizer: Any = None,
        **knobs: Any,
    ) -> None:
        refused = [*knobs] if summarizer is None else ["summarizer", *knobs]
        if compactor is not None and refused:
            raise ConfigurationError(
                f"give compactor= or {', '.join(refused)}, not both: the compactor has its own"
            )
        refuse_unknown("CompactingChatMessageHistory", knobs, _OPTIONS)
        self.inner = inner
        self.compactor = compactor or HistoryCompactor(summarizer_for(summarizer), **knobs)

    @property
    def messages(self) -> list[BaseMessage]:  # pyright: ignore[reportIncompatibleVariableOverride] - LangChain documents it as a property or an attribute
        """The conversation, its older part as a recap."""
        return self.compactor.compact(self.inner.messages)

    @property
    def last_outcome(self) -> CompactionOutcome | None:
        """What the last reading came to; `None` before the first."""
        return self.compactor.last_outcome

    async def aget_messages(self) -> list[BaseMessage]:
        """Read the conversation without blocking the loop."""
        return await self.compactor.acompact(await self.inner.aget_messages())

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Store messages."""
        self.inner.add_messages(messages)

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Store messages without blocking the loop."""
        await self.inner.aadd_messages(messages)

    def clear(self) -> None:
        """Forget the conversation."""
        self.inner.clear()

    async def aclear(self) -> None:
        """Forget the conversation without blocking the loop."""
        await self.inner.aclear()
