"""Fit the requests that a workflow makes after the last step, from the memory alone.

These are the answer that `early_stopping_method="generate"` forces, and the structured output of
`output_cls`. No step could fit them. So for this one request a substitute replaces the memory in
the context. It returns fitted messages, passes everything else on, and restores the memory before
the model is called.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from llama_index.core.agent.workflow import base_agent
from llama_index.core.base.llms.types import ChatMessage, MessageRole

from llama_index_muntin._conversion import as_chat_message
from muntin.conversations import fit_messages
from muntin.counting import REPLY_TOKENS, count_messages
from muntin.errors import ContextWindowExceeded
from muntin.runtime import off_loop

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from llama_index.core.agent.workflow import AgentOutput
    from llama_index.core.memory import BaseMemory

    from muntin.counting import NamedCounter, TokenCounter
    from muntin.tool_results import ToolResultStore

__all__ = ("ForcedAnswer", "StructuredAnswer", "ends_next", "is_forced_next")


async def is_forced_next(ctx: Any) -> bool:
    """Return whether the next request is the forced final answer."""
    if await ctx.store.get("early_stopping_method", default="force") != "generate":
        return False
    taken = await ctx.store.get("num_iterations", default=0)
    most = await ctx.store.get("max_iterations", default=taken + 2)
    return taken + 1 >= most


async def ends_next(ctx: Any, output: AgentOutput) -> bool:
    """Return whether the run ends with this output: it makes no call, and no limit stops it."""
    if output.tool_calls or getattr(output, "retry_messages", None):
        return False
    if "output_cls" not in base_agent.BaseWorkflowAgent.model_fields:
        return False  # this core asks for no structured output
    taken = await ctx.store.get("num_iterations", default=0)
    most = await ctx.store.get("max_iterations", default=None)
    return most is None or taken + 1 < most


class _Substitute:
    """Replace a memory in a context until it is read once.

    Args:
        ctx: Context of the workflow.
        memory: The memory.
    """

    def __init__(self, ctx: Any, memory: BaseMemory) -> None:
        self._ctx = ctx
        self._memory = memory

    async def aget(self) -> list[ChatMessage]:
        """Return the messages to send, and put the memory back into the context."""
        await self._ctx.store.set("memory", self._memory)
        return await self._messages()

    async def _messages(self) -> list[ChatMessage]:
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        return getattr(self._memory, name)


class ForcedAnswer(_Substitute):
    """Replace a memory during the request for the forced final answer.

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
        *,
        system_prompt: str | None,
        asked: str | None,
        fit: Callable[[Sequence[ChatMessage], int], Awaitable[list[ChatMessage]]],
        counter: TokenCounter,
    ) -> None:
        super().__init__(ctx, memory)
        self._prompt = system_prompt
        self._asked = asked
        self._fit = fit
        self._counter = counter

    async def _messages(self) -> list[ChatMessage]:
        messages = await self._memory.aget(input=self._asked)
        most = await self._ctx.store.get("max_iterations", default=0)
        return await self._fit(messages, self._added(most))

    def _added(self, max_iterations: int) -> int:
        """Count the messages that the workflow adds: the agent's prompt, and the order to end."""
        order = getattr(base_agent, "DEFAULT_EARLY_STOPPING_PROMPT", "").format(
            max_iterations=max_iterations
        )
        added = _prompts(self._prompt, order)
        return count_messages(added, counter=self._counter) - REPLY_TOKENS


class StructuredAnswer(_Substitute):
    """Replace a memory during the request for the structured output of a run.

    The workflow writes all messages into one message, each between tags of its role, and sends the
    schema of the output with it. Messages that fit this way are returned unchanged.

    Args:
        ctx: Context of the workflow.
        memory: The memory.
        agent: The agent; if it has no `output_cls` of its own, the one of the workflow is unknown.
        budget: Tokens of the request.
        counter: Counts tokens.
        store: Keeps the originals of results that are cut.
    """

    def __init__(
        self,
        ctx: Any,
        memory: BaseMemory,
        *,
        agent: Any,
        budget: int,
        counter: NamedCounter,
        store: ToolResultStore,
    ) -> None:
        super().__init__(ctx, memory)
        self._prompt: str | None = agent.system_prompt
        self._budget = budget - _schema_tokens(getattr(agent, "output_cls", None), counter)
        self._counter = counter
        self._store = store

    async def _messages(self) -> list[ChatMessage]:
        messages = await self._memory.aget()
        return await off_loop(
            lambda: self._fitted(messages),
            size=sum(len(message.content or "") for message in messages),
        )

    def _fitted(self, messages: list[ChatMessage]) -> list[ChatMessage]:
        """Cut messages until the request is within the budget; the last attempt if none is."""
        budget = self._budget
        sent = messages
        for _ in range(_TRIES):
            over = self._size(sent) - self._budget
            if over <= 0:
                break
            budget -= over
            if budget < 1:
                break
            try:
                fit = fit_messages(
                    messages, budget=budget, counter=self._counter, store=self._store, repair=True
                )
            except ContextWindowExceeded:
                break
            sent = [as_chat_message(message) for message in fit.messages]
        return sent

    def _size(self, messages: Sequence[ChatMessage]) -> int:
        # Not at import: cores without structured output have no such module.
        from llama_index.core.agent.utils import messages_to_xml_format

        request = messages_to_xml_format([*_prompts(self._prompt), *messages])
        return count_messages(request, counter=self._counter)


_TRIES = 6
"""Fits of one request: the tags of the messages that stay are counted after each."""
_UNKNOWN_SCHEMA = 500
"""Tokens set aside for the schema of an output that is not known."""
_INSTRUCTIONS = 60
"""Tokens of the instruction that models without function calls get with a schema."""


def _schema_tokens(output_cls: Any, counter: TokenCounter) -> int:
    """Count what is sent with the messages for the model to follow."""
    if output_cls is None:
        return _UNKNOWN_SCHEMA
    return counter(json.dumps(output_cls.model_json_schema())) + _INSTRUCTIONS


def _prompts(*texts: str | None) -> list[ChatMessage]:
    return [ChatMessage(role=MessageRole.SYSTEM, content=text) for text in texts if text]
