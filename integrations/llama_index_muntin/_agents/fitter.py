"""Fit the steps of one agent into its window, keeping earlier decisions for the prompt cache.

A request that fits is sent unchanged, or as the last decision about its messages requires. A larger
request is cut below the budget, so that the next steps only add to it. The tokens that the agent
itself adds are known after the first try; a request that is too large is fitted again and never
sent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from llama_index.core.agent.workflow import CodeActAgent, ReActAgent
from llama_index.core.base.llms.types import ChatMessage, MessageRole

from llama_index_muntin._agents.conclusion import (
    ForcedAnswer,
    StructuredAnswer,
    ends_next,
    is_forced_next,
)
from llama_index_muntin._agents.guard import GuardedContext, Overrun
from llama_index_muntin._agents.question import restored, with_question, without_repeat
from llama_index_muntin._agents.steps import Steps, steps_of
from llama_index_muntin._shapes import signed_neighbours_joined
from muntin.adapting import Keeper, Outgoing, RequestAccount, RequestFacts, adrive
from muntin.conversations import FittedMessages
from muntin.counting import count_messages
from muntin.errors import ContextWindowExceeded
from muntin.messages import arrange_roles
from muntin.tool_results import truncate_tool_result

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from llama_index.core.agent.workflow import AgentOutput
    from llama_index.core.memory import BaseMemory

    from muntin.adapting import Policy
    from muntin.counting import NamedCounter
    from muntin.report import AssemblyReport
    from muntin.tool_results import ToolResultStore

__all__ = ("StepFitter",)

_TRIES = 4
"""Fits of one step: what an agent adds to a request is known after the first."""
HEADER = "agent header"
"""Row of the account for what the agent adds to its messages."""


class StepFitter:
    """Fit the steps of one agent.

    Args:
        steps: How the agent keeps its steps.
        keeper: Decides what is sent.
        counter: Counts tokens.
        store: Keeps the originals of results that are cut.
    """

    def __init__(
        self, steps: Steps, *, keeper: Keeper, counter: NamedCounter, store: ToolResultStore
    ) -> None:
        self._steps = steps
        self._keeper = keeper
        self._counter = counter
        self._store = store
        self._added = 0
        self.last: FittedMessages[list[Any]] | None = None

    def of(self, agent: Any) -> StepFitter:
        """Return the same for another agent."""
        return StepFitter(
            steps_of(agent), keeper=self._keeper, counter=self._counter, store=self._store
        )

    @property
    def _budget(self) -> int:
        return self._keeper.facts().budget

    async def take(
        self,
        step: Callable[..., Awaitable[AgentOutput]],
        ctx: Any,
        llm_input: list[ChatMessage],
        tools: Sequence[Any],
        memory: BaseMemory,
    ) -> AgentOutput:
        """Take one step within the budget; a request that is refused for its size is made smaller.

        Raises:
            ContextWindowExceeded: What must be kept, or what the agent adds, is over the budget.
        """
        items: list[Any] = await ctx.store.get(self._steps.key, default=[])
        asked: str | None = await ctx.store.get("user_msg_str", default=None)
        schemas = self._steps.schemas(tools)
        given = await restored(without_repeat(llm_input), memory, asked)
        added, sent = self._added, 0
        request: _Request | None = None
        refused = False
        for _ in range(_TRIES):
            if request is None:
                request = await self._planned(given, items, schemas, asked, added)
            messages, shown, planned = self._shown(request)
            guarded = GuardedContext(ctx, self._steps.key, shown, self._check(schemas))
            try:
                output = await step(guarded, messages, tools, memory)
            except Overrun as over:
                sent = over.tokens
                added = max(added, sent - planned) + 1
                request = None
                continue
            except Exception as error:
                if refused:
                    raise
                request, refused = await self._after(error, request), True
                continue
            self._added = max(0, (guarded.sent or planned) - planned)
            self.last = _accounted(request.account, self._added)
            if await is_forced_next(ctx):
                await self._hand_over(ctx, memory)
            elif await ends_next(ctx, output):
                await self._structure(ctx, memory)
            return output
        raise ContextWindowExceeded(
            "what the agent adds to its messages", needed=sent, available=self._budget
        )

    def _check(self, schemas: list[dict[str, Any]]) -> Callable[[Sequence[Any]], int]:
        def check(messages: Sequence[Any]) -> int:
            tokens = count_messages(messages, schemas, counter=self._counter)
            if tokens > self._budget:
                raise Overrun(tokens)
            return tokens

        return check

    async def _planned(
        self,
        given: Sequence[ChatMessage],
        items: Sequence[Any],
        schemas: Sequence[Any],
        asked: str | None,
        added: int,
    ) -> _Request:
        """Decide what is sent of conversation and steps."""
        if self._budget - added < 1:
            raise ContextWindowExceeded(
                "what the agent adds to its messages", needed=added, available=self._budget
            )
        stand_ins, originals = with_question(given, asked)
        facts = self._keeper.facts(schemas=schemas, set_aside=added)
        conversation = [*stand_ins, *self._steps.shown(items)]
        outgoing = await self._run(
            facts, conversation, self._keeper.policy(facts, conversation, None)
        )
        return _Request(
            account=RequestAccount(facts=facts, outgoing=outgoing),
            conversation=conversation,
            originals=originals,
            items=items,
            added=added,
        )

    def _shown(self, request: _Request) -> tuple[list[ChatMessage], list[Any], int]:
        """Return the messages of a request, the steps to show, and their tokens."""
        outgoing = request.account.outgoing
        self.last = _accounted(request.account, request.added)
        back = [request.originals.get(id(message), message) for message in outgoing.messages]
        kept, shown = self._steps.restored(back, request.items)
        rules = request.account.facts.roles
        kept = signed_neighbours_joined(kept)
        kept = list(arrange_roles(kept, alternate=rules.alternate, system=rules.system))
        return _behind_own_prompt(self._steps.agent, kept), shown, outgoing.tokens

    async def _after(self, error: Exception, request: _Request) -> _Request:
        """Return the request after one that was refused for its size or its signed thinking.

        Raises:
            Exception: The given error, if another request would not help.
        """
        facts, outgoing = request.account.facts, request.account.outgoing
        policy = self._keeper.after_error(error, facts, request.conversation, outgoing)
        return request.with_outgoing(await self._run(facts, request.conversation, policy))

    async def _run(
        self, facts: RequestFacts, messages: Sequence[Any], policy: Policy[Outgoing]
    ) -> Outgoing:
        size = sum(one.characters for one in facts.counts.measure_all(messages))
        return await adrive(policy, size=size)

    async def settle(self, ctx: Any, memory: BaseMemory) -> None:
        """Give steps to memory that the agent left in the context when it ended.

        When ReActAgent hands over, it leaves its reasoning in a place that the next agent does not
        read.
        """
        items: list[Any] = await ctx.store.get(self._steps.key, default=[])
        if items:
            await memory.aput_messages(self._steps.told(items))
            await ctx.store.set(self._steps.key, [])

    async def make_storable(self, ctx: Any) -> None:
        """Cut results of code over half the window, which no memory could send again.

        CodeActAgent gives it the role of the user, and a memory never shortens user messages.
        """
        items: list[Any] = await ctx.store.get(self._steps.key, default=[])
        cut = self._steps.storable(items, self._shortened)
        if cut is not items:
            await ctx.store.set(self._steps.key, cut)

    def _shortened(self, text: str) -> str:
        return truncate_tool_result(
            text, max(self._budget // 2, 1), counter=self._counter, store=self._store
        )

    async def _hand_over(self, ctx: Any, memory: BaseMemory) -> None:
        """Give the steps to memory before the forced final answer, and fit its request.

        That request holds only the messages of the memory: otherwise it would lack the steps of
        this run, and nothing would fit it into the window.
        """
        await self.make_storable(ctx)
        items: list[Any] = await ctx.store.get(self._steps.key, default=[])
        await memory.aput_messages(self._steps.told(items))
        await ctx.store.set(self._steps.key, [])
        asked: str | None = await ctx.store.get("user_msg_str", default=None)

        async def fitted(messages: Sequence[ChatMessage], added: int) -> list[ChatMessage]:
            given = await restored(without_repeat(messages), memory, asked)
            return self._shown(await self._planned(given, [], [], asked, added))[0]

        taken = ForcedAnswer(
            ctx,
            memory,
            system_prompt=self._steps.agent.system_prompt,
            asked=asked,
            fit=fitted,
            counter=self._counter,
        )
        await ctx.store.set("memory", taken)

    async def _structure(self, ctx: Any, memory: BaseMemory) -> None:
        """Fit the request for a structured output, which the workflow makes of the memory."""
        taken = StructuredAnswer(
            ctx,
            memory,
            agent=self._steps.agent,
            budget=self._budget,
            counter=self._counter,
            store=self._store,
        )
        await ctx.store.set("memory", taken)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """One request of an agent as it was decided."""

    account: RequestAccount
    """What is known of it, and what is sent."""
    conversation: list[Any]
    """What it was decided of."""
    originals: dict[int, ChatMessage]
    """Messages that pinned copies stand in for, by the identity of the copy."""
    items: Sequence[Any]
    """The steps as the agent keeps them."""
    added: int
    """Tokens that are set aside for what the agent adds."""

    def with_outgoing(self, outgoing: Outgoing) -> _Request:
        """Return the request with another decision."""
        return replace(self, account=replace(self.account, outgoing=outgoing))


def _accounted(request: RequestAccount, added: int) -> FittedMessages[list[Any]]:
    """Return a request as a fit with a report that adds up to the window.

    Args:
        request: The request.
        added: Tokens of what the agent adds to it.
    """
    facts, outgoing = request.facts, request.outgoing

    def account() -> AssemblyReport:
        report = request.report
        fixed = {**report.fixed, HEADER: added} if added else report.fixed
        return replace(
            report,
            budget=max((facts.window or 0) - facts.reserve, report.used + added),
            window=facts.window,
            reserve=facts.reserve,
            used=report.used + added,
            fixed=fixed,
        )

    return FittedMessages(
        list(outgoing.messages),
        changed=outgoing.saved is not None or bool(outgoing.notes),
        turn_open=True,
        account=account,
    )


def _behind_own_prompt(agent: Any, messages: list[ChatMessage]) -> list[ChatMessage]:
    """Keep the system message of the conversation from being taken for the agent's own.

    ReActAgent drops the first message if it is the system's, and CodeActAgent writes over it: both
    mean the agent's own prompt, which is in what they write themselves.
    """
    if not isinstance(agent, ReActAgent | CodeActAgent) or not messages:
        return messages
    first = messages[0]
    if first.role is not MessageRole.SYSTEM or first.content == agent.system_prompt:
        return messages
    return [ChatMessage(role=MessageRole.SYSTEM, content=agent.system_prompt or ""), *messages]
