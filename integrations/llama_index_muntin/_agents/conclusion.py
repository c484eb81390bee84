"""Fit the final request that `early_stopping_method="generate"` forces.

The workflow makes it from the messages of the memory, without a step that could be fitted. So for
this one request a substitute replaces the memory in the context. It returns fitted messages,
passes everything else on, and restores the memory before the model is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llama_index.core.agent.workflow import base_agent
from llama_index.core.base.llms.types import ChatMessage, MessageRole

from muntin.counting import REPLY_TOKENS, count_messages

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from llama_index.core.memory import BaseMemory

    from muntin.counting import TokenCounter

__all__ = ("ForcedAnswer", "is_forced_next")


async def is_forced_next(ctx: Any) -> bool:
    """Return whether the next request is the forced final answer."""
    if await ctx.store.get("early_stopping_method", default="force") != "generate":
        return False
    taken = await ctx.store.get("num_iterations", default=0)
    most = await ctx.store.get("max_iterations", default=taken + 2)
    return taken + 1 >= most


class ForcedAnswer:
    """Replace a memory during the request for the final answer.

    Args:
        ctx: Context of the workflow.
        memory: The memory.
        system_prompt: Prompt of the agent, which the workflow puts in front.
        asked: The question; `None` if it is not known.
        fit: Fits messages, given the tokens that are added to them.
        counter: Counts tokens.
    """

    def __init__(
        self,
        ctx: Any,
        memory: BaseMemory,
        system_prompt: str | None,
        asked: str | None,
        fit: Callable[[Sequence[ChatMessage], int], Awaitable[list[ChatMessage]]],
        counter: TokenCounter,
    ) -> None:
        self._ctx = ctx
        self._memory = memory
        self._prompt = system_prompt
        self._asked = asked
        self._fit = fit
        self._counter = counter

    async def aget(self) -> list[ChatMessage]:
        """Return fitted messages, and put the memory back into the context."""
        await self._ctx.store.set("memory", self._memory)
        messages = await self._memory.aget(input=self._asked)
        most = await self._ctx.store.get("max_iterations", default=0)
        return await self._fit(messages, self._added(most))

    def _added(self, max_iterations: int) -> int:
        """Count the messages that the workflow adds: the agent's prompt, and the order to end."""
        order = getattr(base_agent, "DEFAULT_EARLY_STOPPING_PROMPT", "").format(
            max_iterations=max_iterations
        )
        texts = [text for text in (self._prompt, order) if text]
        added = [ChatMessage(role=MessageRole.SYSTEM, content=text) for text in texts]
        return count_messages(added, counter=self._counter) - REPLY_TOKENS

    def __getattr__(self, name: str) -> Any:
        return getattr(self._memory, name)
