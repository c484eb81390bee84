"""Keep every step of an agent inside its model's window.

The memory of an agent does not see the steps of a run: they accumulate outside it until the model
refuses. The public place to act is `take_step`. There the conversation and the steps so far are
fitted together, and the agent takes its step in a context that shows it the fitted ones and adds
new ones to the real ones, so the whole trajectory reaches memory in the end.

What an agent is about to send goes through its context as an event before the model is called, the
system prompt it writes itself included. That event is counted; a request that is too large is never
sent, but fitted again.
"""

from __future__ import annotations

import copy
import functools
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, get_args

from llama_index.core.agent.workflow.base_agent import BaseWorkflowAgent
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Workflow

from llama_index_muntin._agents import AgentModel, StepFitter, steps_of
from llama_index_muntin._models import counter_of, reserve_of, window_of
from llama_index_muntin.summarizer import summarizer_for
from muntin.adapting import Keeper
from muntin.conversations import NEWEST
from muntin.errors import ConfigurationError
from muntin.messages import RoleRules, role_rules
from muntin.tool_results import ToolResultStore, read_tool

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from llama_index.core.agent.workflow import AgentOutput
    from llama_index.core.base.llms.types import ChatMessage
    from llama_index.core.memory import BaseMemory

    from llama_index_muntin.ledger import WindowLedger
    from muntin.conversations import FittedMessages, Newest
    from muntin.counting import NamedCounter, TokenCounter

__all__ = ("with_window",)

AgentT = TypeVar("AgentT", bound=BaseWorkflowAgent)

NoteRole = Literal["user", "system", "assistant"]
"""Roles that a note about removed steps may have."""
_READING = 8
"""One reading of a stored result may take this fraction (one in ...) of the window."""
_STEPS = "_muntin_steps"


def with_window(
    agent: AgentT,
    *,
    window: int | None = None,
    output_reserve: int | None = None,
    ledger: WindowLedger | None = None,
    results: ToolResultStore | None = None,
    counter: TokenCounter | str | None = None,
    target: float = 0.8,
    summarizer: Any = None,
    question: str | Newest | None = NEWEST,
    alternate: bool | None = None,
    note_role: NoteRole = "user",
) -> AgentT:
    """Return the same agent, with every step fitted to the window of its model.

    Works for FunctionAgent, ReActAgent and CodeActAgent and what derives from them, alone and in an
    AgentWorkflow, streaming or not. Old steps are cut first and leave a note of facts; results that
    are too large are shortened, their originals stored, and a tool `read_tool_result` lets the
    model read on. Between two cuts every request begins with the one before, so that a provider's
    prompt cache serves it. Broken pairs of calls and results are mended. Memory receives every step
    whole, but for a result of code that alone is over half the window. The given agent is not
    changed.

    Args:
        agent: The agent.
        window: The window in tokens, if the model does not report it.
        output_reserve: Tokens kept free for the answer. `None` takes the model's own, at most
            half of the window.
        ledger: Account of the window, if one is shared; it takes the place of these two.
        results: Keeps the originals of shortened results. `None` keeps them in memory.
        counter: Counts tokens. `None` takes the ledger's, else the model's.
        target: Share of the window less the answer that a cut brings a request down to, in (0, 1].
        summarizer: Writes recaps of old steps in addition to their facts: a LlamaIndex model, or
            anything `muntin` takes as one. `None` asks no model.
        question: Brings older messages about it back word for word when messages are left
            out. By default the newest user message is the question; `None` recalls nothing.
        alternate: Whether user and assistant must alternate in a request, as chat templates of
            Mistral, Gemma and Llama 2 demand. `None` knows it by the name of the model.
        note_role: Role of notes about steps that are left out. Where user and assistant alternate,
            it is always `user`: one system message is in front, and steps are the assistant's.

    Raises:
        ConfigurationError: It is not an agent, the window is unknown, or a number is out of range.

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
    if note_role not in get_args(NoteRole):
        roles = ", ".join(get_args(NoteRole))
        raise ConfigurationError(f"note_role must be one of {roles}, got {note_role!r:.40}")
    store = results or ToolResultStore.in_memory()
    counts = counter_of(counter, agent.llm)
    name = str(agent.llm.metadata.model_name or "")
    windowed: Any = copy.copy(agent)
    windowed.__class__ = _windowed(type(agent))  # pyright: ignore[reportArgumentType] - a class is hashable, whatever its instances are
    roles = _roles(alternate, name)
    keeper = Keeper(
        model=AgentModel(name=name, window=whole, reserve=reserve, counts=counts),
        window=whole,
        reserve=reserve,
        target=target,
        counter=counts,
        summarizer=summarizer_for(summarizer),
        store=store,
        question=question,
        roles=roles,
        note_role="user" if roles.alternate else note_role,
    )
    fitter = StepFitter(steps_of(windowed), keeper=keeper, counter=counts, store=store)
    object.__setattr__(windowed, _STEPS, fitter)
    Workflow.__init__(  # its runtime refers to the given agent and has to refer to this one
        windowed,
        timeout=getattr(agent, "_timeout", None),
        verbose=getattr(agent, "_verbose", False),
        num_concurrent_runs=getattr(agent, "_num_concurrent_runs", None),
    )
    given: list[Any] = list(windowed.tools or ())
    if given or windowed.tool_retriever:
        windowed.tools = [*given, _reading_tool(store, whole // _READING, counts)]
    return windowed


def _roles(alternate: bool | None, name: str) -> RoleRules:  # noqa: FBT001 - as it was given
    """Return the rules of roles that were asked for; `None` takes those of the model's name.

    Raises:
        ConfigurationError: It is not a bool.
    """
    if alternate is None:
        return role_rules(name)
    if not isinstance(cast("object", alternate), bool):
        raise ConfigurationError(f"alternate must be True, False or None, got {alternate!r:.40}")
    system = "first" if alternate else role_rules(name).system
    return RoleRules(alternate=alternate, system=system)


class _WindowedAgent:
    """Overridden methods of an agent with a window; mixed in by `with_window`."""

    @property
    def last_fit(self) -> FittedMessages[list[Any]] | None:
        """The request of the last step; its `.report` lists what happened to every message."""
        fitter: StepFitter = self.__dict__[_STEPS]
        return fitter.last

    async def take_step(
        self,
        ctx: Any,
        llm_input: list[ChatMessage],
        tools: Sequence[Any],
        memory: BaseMemory,
    ) -> AgentOutput:
        """Take a step that fits the window."""
        fitter: StepFitter = self.__dict__[_STEPS]
        step = super().take_step  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType] - the agent it is mixed into
        return await fitter.take(
            cast("Callable[..., Awaitable[AgentOutput]]", step), ctx, llm_input, tools, memory
        )

    async def finalize(self, ctx: Any, output: AgentOutput, memory: BaseMemory) -> AgentOutput:
        """Hand the steps to memory."""
        fitter: StepFitter = self.__dict__[_STEPS]
        await fitter.make_storable(ctx)
        end = super().finalize  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType] - the agent it is mixed into
        ended = await cast("Callable[..., Awaitable[AgentOutput]]", end)(ctx, output, memory)
        await fitter.settle(ctx, memory)
        return ended

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Any:
        """Copy the agent; the copies share the store of results and the decisions."""
        fitter: StepFitter = self.__dict__[_STEPS]
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
