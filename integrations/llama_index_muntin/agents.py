"""Keep every step of an agent inside its model's window.

An agent's memory never sees the steps it takes: they pile up beside it until the model refuses. The
public place to act is `take_step`. There the conversation and the steps so far are fitted together,
and the agent takes its step in a context that shows it the fitted ones and adds what is new to the
real ones, so the whole trajectory still reaches memory in the end.

What an agent is about to send goes through its context as an event before the model is called, the
system prompt it writes itself included. That event is counted; a request that is too large is never
sent, but fitted again.
"""

from __future__ import annotations

import copy
import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from llama_index.core.agent.workflow import AgentOutput, CodeActAgent, ReActAgent
from llama_index.core.agent.workflow.base_agent import BaseWorkflowAgent
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Workflow

from llama_index_muntin._agents import GuardedContext, Overrun, Steps, steps_of
from llama_index_muntin._conversion import to_muntin
from llama_index_muntin._models import counter_of, reserve_of, window_of
from llama_index_muntin._shapes import SHAPE
from muntin.conversations import FittedMessages, fit_messages
from muntin.counting import count_messages
from muntin.errors import ConfigurationError, ContextWindowExceeded
from muntin.tool_results import ToolResultStore, read_tool, truncate_tool_result

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from llama_index.core.memory import BaseMemory

    from llama_index_muntin.ledger import WindowLedger
    from muntin.counting import NamedCounter, TokenCounter
    from muntin.messages import Message

__all__ = ("with_window",)

AgentT = TypeVar("AgentT", bound=BaseWorkflowAgent)

_TRIES = 4
"""Fits of one step: what an agent adds to a request is known after the first."""
_READING = 8
"""The window is so many times what one reading of a stored result may take."""
_STEPS = "_muntin_steps"


def with_window(
    agent: AgentT,
    *,
    window: int | None = None,
    output_reserve: int | None = None,
    ledger: WindowLedger | None = None,
    results: ToolResultStore | None = None,
    counter: TokenCounter | str | None = None,
) -> AgentT:
    """Return the same agent, each of whose steps fits the window of its model.

    Works for FunctionAgent, ReActAgent and CodeActAgent and what derives from them, alone and in an
    AgentWorkflow, streaming or not. Old steps give way first and leave a note of facts; results
    that are too large are shortened, their originals stored, and a tool `read_tool_result` lets the
    model read on. Memory receives every step whole, but for a result of code that alone is over
    half the window. The given agent is not changed.

    Args:
        agent: The agent.
        window: The window in tokens, where the model does not know it.
        output_reserve: Tokens kept free for the answer. `None` takes what the model says, at most
            half of the window.
        ledger: Account of the window, if one is shared; it takes the place of these two.
        results: Keeps the originals of shortened results. `None` keeps them in memory.
        counter: Counts tokens. `None` takes the ledger's, else the model's.

    Raises:
        ConfigurationError: It is no agent, the window is unknown, or a number is out of range.

    ```python
    import asyncio

    from llama_index.core.agent.workflow import FunctionAgent
    from llama_index_muntin import CompactingMemory, with_window
    from llama_index_muntin.testing import StrictLLM, call

    def read_log(part: int) -> str:
        "Read a part of the log."
        return " ".join(f"line-{part}-{n}" for n in range(1500))

    llm = StrictLLM([call("read_log", part=n) for n in range(4)] + ["All quiet."], window=8000)
    agent = with_window(FunctionAgent(llm=llm, tools=[read_log]))

    async def ask():
        memory = CompactingMemory.from_defaults(llm=llm)
        return str(await agent.run(user_msg="Anything odd in the log?", memory=memory))

    print(asyncio.run(ask()), max(llm.tokens) <= 8000)
    #> All quiet. True
    ```
    """
    if not isinstance(cast("object", agent), BaseWorkflowAgent):
        raise ConfigurationError(
            f"a {type(agent).__name__} takes no steps: give each of its agents a window"
        )
    if ledger is None:
        found = window_of(agent.llm, window)
        whole, reserve = found.tokens, reserve_of(found, output_reserve)
    elif window is not None or output_reserve is not None:
        raise ConfigurationError("give the window or a ledger, not both: the ledger has one")
    else:
        whole, reserve = ledger.window, ledger.output_reserve
        counter = ledger.counter if counter is None else counter
    store = results or ToolResultStore.in_memory()
    counts = counter_of(counter, agent.llm)
    windowed: Any = copy.copy(agent)
    windowed.__class__ = _windowed(type(agent))  # pyright: ignore[reportArgumentType] - a class is hashable, whatever its instances are
    fitter = _StepFitter(steps_of(windowed), budget=whole - reserve, counter=counts, store=store)
    object.__setattr__(windowed, _STEPS, fitter)
    Workflow.__init__(  # its runtime knows the given agent, and has to know this one
        windowed,
        timeout=getattr(agent, "_timeout", None),
        verbose=getattr(agent, "_verbose", False),
        num_concurrent_runs=getattr(agent, "_num_concurrent_runs", None),
    )
    given: list[Any] = list(windowed.tools or ())
    if given or windowed.tool_retriever:
        windowed.tools = [*given, _reading_tool(store, whole // _READING, counts)]
    return windowed


class _WindowedAgent:
    """What an agent with a window does differently; mixed in by `with_window`."""

    @property
    def last_fit(self) -> FittedMessages[list[Any]] | None:
        """The step that was fitted last; its `.report` says what became of every message."""
        fitter: _StepFitter = self.__dict__[_STEPS]
        return fitter.last

    async def take_step(
        self,
        ctx: Any,
        llm_input: list[ChatMessage],
        tools: Sequence[Any],
        memory: BaseMemory,
    ) -> AgentOutput:
        """Take a step that fits the window."""
        fitter: _StepFitter = self.__dict__[_STEPS]
        step = super().take_step  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType] - the agent it is mixed into
        return await fitter.take(
            cast("Callable[..., Awaitable[AgentOutput]]", step), ctx, llm_input, tools, memory
        )

    async def finalize(self, ctx: Any, output: AgentOutput, memory: BaseMemory) -> AgentOutput:
        """Hand the steps to memory."""
        fitter: _StepFitter = self.__dict__[_STEPS]
        await fitter.make_storable(ctx)
        end = super().finalize  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType] - the agent it is mixed into
        return await cast("Callable[..., Awaitable[AgentOutput]]", end)(ctx, output, memory)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Any:
        """Copy the agent; its steps are its own, results stay in the store they share."""
        fitter: _StepFitter = self.__dict__[_STEPS]
        deeper = super().__deepcopy__  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType] - the agent it is mixed into
        copied = cast("Callable[..., Any]", deeper)({**(memo or {}), id(fitter): fitter})
        object.__setattr__(copied, _STEPS, fitter.of(copied))
        return copied


@functools.cache
def _windowed(kind: type[Any]) -> type[Any]:
    """Make the class of an agent with a window, once per class of agent."""
    if issubclass(kind, _WindowedAgent):
        return kind
    name = f"Windowed{kind.__name__}"
    meta: Any = type(kind)
    return meta(name, (_WindowedAgent, kind), {"__module__": __name__, "__qualname__": name})


class _StepFitter:
    """Fit the steps of one agent."""

    def __init__(
        self,
        steps: Steps,
        *,
        budget: int,
        counter: NamedCounter,
        store: ToolResultStore,
    ) -> None:
        self._steps = steps
        self._budget = budget
        self._counter = counter
        self._store = store
        self._added = 0
        self.last: FittedMessages[list[Any]] | None = None

    def of(self, agent: Any) -> _StepFitter:
        """Make the same for another agent."""
        return _StepFitter(
            steps_of(agent), budget=self._budget, counter=self._counter, store=self._store
        )

    async def take(
        self,
        step: Callable[..., Awaitable[AgentOutput]],
        ctx: Any,
        llm_input: list[ChatMessage],
        tools: Sequence[Any],
        memory: BaseMemory,
    ) -> AgentOutput:
        """Take one step within the budget.

        Raises:
            ContextWindowExceeded: What must be kept, or what the agent adds, is over the budget.
        """
        items: list[Any] = await ctx.store.get(self._steps.key, default=[])
        asked: str | None = await ctx.store.get("user_msg_str", default=None)
        schemas = self._steps.schemas(tools)
        added, sent = self._added, 0
        for _ in range(_TRIES):
            messages, shown, planned = self._fit(llm_input, items, schemas, asked, added)
            guarded = GuardedContext(ctx, self._steps.key, shown, self._check(schemas))
            try:
                output = await step(guarded, messages, tools, memory)
            except Overrun as over:
                sent = over.tokens
                added = max(added, sent - planned) + 1
                continue
            self._added = max(0, (guarded.sent or planned) - planned)
            await self._keep_if_forced(ctx, memory)
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

    def _fit(
        self,
        llm_input: Sequence[ChatMessage],
        items: Sequence[Any],
        schemas: Sequence[Any],
        asked: str | None,
        added: int,
    ) -> tuple[list[ChatMessage], list[Any], int]:
        """Fit conversation and steps; return the messages, the steps to show, and their tokens."""
        messages = _without_repeat(llm_input)
        stand_ins, originals = _protected(messages, asked)
        if self._budget - added < 1:
            raise ContextWindowExceeded(
                "what the agent adds to its messages", needed=added, available=self._budget
            )
        fitted = fit_messages(
            [*stand_ins, *self._steps.shown(items)],
            budget=self._budget - added,
            tools=schemas,
            question=asked,
            counter=self._counter,
            store=self._store,
        )
        self.last = fitted
        back = [originals.get(id(message), message) for message in fitted.messages]
        kept, shown = self._steps.restored(back, items)
        planned = count_messages(fitted.messages, schemas, counter=self._counter)
        return _behind_own_prompt(self._steps.agent, kept), shown, planned

    async def make_storable(self, ctx: Any) -> None:
        """Cut what no memory could send again: a result said as the user's, over half the window.

        A memory keeps what the user said word for word, so it could not shorten it later.
        """
        items: list[Any] = await ctx.store.get(self._steps.key, default=[])
        cut = self._steps.storable(items, self._shortened)
        if cut is not items:
            await ctx.store.set(self._steps.key, cut)

    def _shortened(self, text: str) -> str:
        return truncate_tool_result(
            text, max(self._budget // 2, 1), counter=self._counter, store=self._store
        )

    async def _keep_if_forced(self, ctx: Any, memory: BaseMemory) -> None:
        """Hand the steps to memory where the next call is the forced final answer.

        That call is made of what memory holds and nothing else, so without this the model would be
        asked to conclude from steps it cannot see.
        """
        if await ctx.store.get("early_stopping_method", default="force") != "generate":
            return
        taken = await ctx.store.get("num_iterations", default=0)
        if taken + 1 < await ctx.store.get("max_iterations", default=taken + 2):
            return
        await self.make_storable(ctx)
        items: list[Any] = await ctx.store.get(self._steps.key, default=[])
        await memory.aput_messages(self._steps.told(items))
        await ctx.store.set(self._steps.key, [])


def _without_repeat(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Drop what a retry leaves behind: the question a second time, and a reply that was empty."""
    kept: list[ChatMessage] = []
    for message in messages:
        if message.role is MessageRole.ASSISTANT and _is_empty(message):
            continue
        if (
            kept
            and message.role is MessageRole.USER is kept[-1].role
            and SHAPE.parts(message) == SHAPE.parts(kept[-1])
        ):
            continue
        kept.append(message)
    return kept


def _is_empty(message: ChatMessage) -> bool:
    seen = SHAPE.view(message)
    return not (seen.text or seen.calls or seen.media or seen.reasoning or seen.unknown)


def _protected(
    messages: Sequence[ChatMessage], asked: str | None
) -> tuple[list[Any], dict[int, ChatMessage]]:
    """Pin the question where it is not the newest message of the user.

    Returns:
        The messages with a stand-in for the question, and what the stand-in stands for.
    """
    users = [at for at, message in enumerate(messages) if message.role is MessageRole.USER]
    for at in reversed(users):
        if asked and asked in (messages[at].content or ""):
            if at == users[-1]:  # kept as it is, whatever else holds the same words
                break
            pinned: Message = replace(to_muntin(messages[at]), pinned=True)
            return [*messages[:at], pinned, *messages[at + 1 :]], {id(pinned): messages[at]}
    return list(messages), {}


def _behind_own_prompt(agent: Any, messages: list[ChatMessage]) -> list[ChatMessage]:
    """Keep the conversation's own system message from being taken for the agent's.

    ReActAgent drops the first message where it is the system's, and CodeActAgent writes over it:
    both mean the agent's own prompt, which is in what they write themselves.
    """
    if not isinstance(agent, ReActAgent | CodeActAgent) or not messages:
        return messages
    first = messages[0]
    if first.role is not MessageRole.SYSTEM or first.content == agent.system_prompt:
        return messages
    return [ChatMessage(role=MessageRole.SYSTEM, content=agent.system_prompt or ""), *messages]


def _reading_tool(store: ToolResultStore, max_tokens: int, counter: NamedCounter) -> FunctionTool:
    """Make the tool that reads stored results."""
    reader = read_tool(store, max_tokens=max(max_tokens, 64), counter=counter)

    def read_tool_result(
        id: str,  # noqa: A002 - the word the marker uses
        start: int = 0,
        limit: int = 4000,
        pattern: str | None = None,
    ) -> str:
        return reader(id, start, limit, pattern)

    return FunctionTool.from_defaults(
        read_tool_result, name=reader.name, description=reader.description
    )
