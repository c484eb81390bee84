"""A middleware that keeps what an agent sends inside the window, and its state whole.

What is sent is decided right before each model call, where the system message, the final tools, the
answer's schema and the model are known. The history in the state is never touched. A tool result
too large to travel is stored and shortened before it enters the state, with a tool to read the rest
back. What was decided and learned lives in private state, so a checkpointer carries it over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, TypedDict, cast

try:
    from langchain.agents.middleware.types import (
        AgentMiddleware,
        AgentState,
        ExtendedModelResponse,
        ModelRequest,
        ModelResponse,
        PrivateStateAttr,
    )
    from langgraph.types import Command
except ModuleNotFoundError as missing:
    if (missing.name or "").partition(".")[0] not in ("langchain", "langgraph"):
        raise
    raise ImportError(
        'the middleware needs LangChain agents: pip install "muntin[langchain,agents]"',
        name=missing.name,
    ) from missing

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from langchain_muntin._answers import answer_schemas
from langchain_muntin._keeper import Keeper
from langchain_muntin._restated import restated, value_of
from langchain_muntin._steps import adrive, drive
from langchain_muntin._tool_results import ReadBackTool, ResultCap, offered, read_back_tool
from langchain_muntin._trace import Tell
from langchain_muntin.summarizer import summarizer_for
from muntin.adapting import refusal_of
from muntin.errors import ConfigurationError, ContextWindowExceeded
from muntin.tool_results import ToolResultStore

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from langgraph.prebuilt.tool_node import ToolCallRequest

    from langchain_muntin._keeper import Desk, Outgoing
    from langchain_muntin._restated import Restate
    from langchain_muntin._steps import Policy
    from muntin.config import WindowBudgetConfig
    from muntin.prompts import PromptRegistry
    from muntin.report import AssemblyReport

__all__ = ("ContextWindowMiddleware", "ContextWindowState")

_DECISION = "muntin_decision"
_LEARNED = "muntin_learned"


_NAME = "ContextWindowMiddleware"
_Private = Annotated[dict[str, Any] | None, PrivateStateAttr]


class ContextWindowState(AgentState[Any]):
    """What the middleware keeps in an agent's state; hidden from its input and output.

    One with a name of its own has keys of its own: `muntin_decision_<name>`.
    """

    muntin_decision: NotRequired[_Private]
    """The decision that holds: what is sent in place of the messages it covers, recap included."""
    muntin_learned: NotRequired[_Private]
    """What usage taught about each model, and the last budget."""


class ContextWindowMiddleware(AgentMiddleware[ContextWindowState, Any, Any]):
    r"""Send what fits: an agent that never overruns its window and forgets nothing.

    Put it late in the list of middleware, so that it sees what the others add; prompt caching goes
    behind it.

    Args:
        window: Tokens of the context window; `None` takes the model's.
        max_tokens: Tokens a request may take at most; `None` takes the window less the output
            reserve. The smaller one wins.
        budget: How the window is divided; `None` takes the defaults.
        target: Share of the budget a request is brought down to when it is over it. Lower makes
            decisions rarer, and so prompt caches last longer; higher keeps more.
        summarizer: A chat model or any summariser, asked for a recap each time older messages are
            folded; `None` keeps their facts only and asks nobody. When it fails, the facts stay.
        max_result_tokens: Tokens one tool result may take; `None` takes a quarter of the budget.
        store: Where originals of shortened results are kept. `None` makes one in memory, which
            holds as long as the process: give a `ToolResultStore.sqlite(...)` beside a checkpointer
            that outlives it.
        read_back: Whether the agent is given a tool that reads the originals.
        counter: Counts tokens: a function of a text, or a model's name; `None` takes the model's.
        prompts: Texts of notes and marks; `None` takes the built-in ones.
        restate: What of the agent's state is put back when messages are left out: a function of
            the state to an `AgentState`, or to `None` for nothing. `None` takes the todo list,
            where there is one.
        name: Name of this middleware, which must be its own among those of one agent. Several in
            one agent share a `store`, or all but one have `read_back=False`.

    Raises:
        ConfigurationError: A number is out of range, or at the first call the window is unknown.

    ```python
    from langchain.agents import create_agent
    from langchain_core.messages import AIMessage
    from langchain_muntin import ContextWindowMiddleware
    from langchain_muntin.testing import StrictChatModel

    def read_log() -> str:
        "Read the log."
        return "all quiet\n" * 30_000 + "ERROR: disk full"

    call = AIMessage("", tool_calls=[{"name": "read_log", "args": {}, "id": "c1"}])
    model = StrictChatModel(window=8000, replies=[call, "The disk is full."])
    agent = create_agent(model, tools=[read_log], middleware=[ContextWindowMiddleware()])
    done = agent.invoke({"messages": [("user", "What is wrong?")]})
    print(done["messages"][-1].text, [request.tokens < 4000 for request in model.sent])
    #> The disk is full. [True, True]
    ```
    """

    state_schema = ContextWindowState

    def __init__(
        self,
        *,
        window: int | None = None,
        max_tokens: int | None = None,
        budget: WindowBudgetConfig | None = None,
        target: float = 0.8,
        summarizer: Any = None,
        max_result_tokens: int | None = None,
        store: ToolResultStore | None = None,
        read_back: bool = True,
        counter: Any = None,
        prompts: PromptRegistry | None = None,
        restate: Restate | None = None,
        name: str = _NAME,
    ) -> None:
        super().__init__()
        if max_result_tokens is not None and max_result_tokens < 1:
            raise ConfigurationError(f"max_result_tokens is 1 or more, not {max_result_tokens}")
        self.store = ToolResultStore.in_memory() if store is None else store
        self.last_report: AssemblyReport | None = None
        """The account of the last decision, whichever conversation it was about."""
        self._name = name
        own = "" if name == _NAME else f"_{name}"
        self._decision, self._learned = _DECISION + own, _LEARNED + own
        if own:
            keys = {self._decision: _Private, self._learned: _Private}
            self.state_schema = cast("Any", TypedDict)("ContextWindowState", keys, total=False)
        self._restate = restate
        self._keeper = Keeper(
            window=window,
            max_tokens=max_tokens,
            division=budget,
            target=target,
            counter=counter,
            summarizer=summarizer_for(summarizer),
            store=self.store,
            prompts=prompts,
        )
        self._cap = ResultCap(
            max_tokens=max_result_tokens,
            store=self.store,
            prompts=prompts,
            budget=max_tokens or window,
        )
        self._reading = read_back_tool(
            self.store, max_result_tokens, prompts, self._keeper.counter_named(None)
        )
        self.tools = [self._reading] if read_back else []

    @property
    def name(self) -> str:
        """Name of this middleware."""
        return self._name

    # --- model calls -----------------------------------------------------------------------------

    def wrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], ModelResponse[Any]],
    ) -> ModelResponse[Any] | AIMessage | ExtendedModelResponse[Any]:
        """Send what fits."""
        return drive(self._call(request, handler))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any] | AIMessage | ExtendedModelResponse[Any]:
        """Send what fits without blocking the loop."""
        return await adrive(self._call(request, handler))

    def _call(self, request: ModelRequest[Any], handler: Any) -> Policy[ExtendedModelResponse[Any]]:
        state = cast("Mapping[str, Any]", request.state)
        request = self._with_tools(request)
        desk = self._desk(request, state)
        messages = _conversation(request)
        beside = restated(state, self._restate)
        outgoing = yield from self._keeper.policy(
            desk, messages, state.get(self._decision), state=beside
        )
        yield from self._told(outgoing)
        try:
            response = yield _Send(_with(request, outgoing), handler)
        except Exception as error:  # noqa: BLE001 - all but refusals for size are raised again
            desk, outgoing = yield from self._after(error, request, desk, outgoing, beside)
            response = yield _Send(_with(request, outgoing), handler)
        self._learn(desk, outgoing, cast("ModelResponse[Any]", response))
        return ExtendedModelResponse(
            model_response=response, command=self._command(state, desk, outgoing)
        )

    def _with_tools(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        if not self.tools:
            return request
        tools = offered(request.tools, self._reading, request.messages, request.model)
        return request if tools is request.tools else request.override(tools=list(tools))

    def _desk(self, request: ModelRequest[Any], state: Mapping[str, Any]) -> Desk:
        learned = _lessons(state.get(self._learned))

        def look() -> Desk:
            return self._keeper.desk(
                request.model,
                request.tools,
                schemas=answer_schemas(request.response_format),
                settings=request.model_settings,
            )

        desk = look()
        return look() if self._keeper.recall(desk, learned.get("ratios")) else desk

    def _after(
        self,
        error: Exception,
        request: ModelRequest[Any],
        desk: Desk,
        outgoing: Outgoing,
        beside: Any,
    ) -> Policy[tuple[Desk, Outgoing]]:
        """Make one smaller request of one that was refused for its size."""
        said = refusal_of(error, tokens=outgoing.tokens)
        if said is None or not said.is_overflow:
            raise error
        try:
            smaller = yield from self._keeper.after_refusal(
                desk, _conversation(request), outgoing, said, state=beside
            )
        except ContextWindowExceeded as exceeded:
            raise error from exceeded
        yield from self._told(smaller)
        return desk, smaller

    def _told(self, outgoing: Outgoing) -> Policy[None]:
        """Tell whoever listens about a new decision."""
        if outgoing.fitted is not None:
            self.last_report = outgoing.report
            yield Tell(outgoing.fitted)

    def _learn(self, desk: Desk, outgoing: Outgoing, response: ModelResponse[Any]) -> None:
        for message in response.result:
            usage = message.usage_metadata if isinstance(message, AIMessage) else None
            if usage and usage["input_tokens"]:
                charged = usage["input_tokens"]
                self._keeper.learn(desk, outgoing.tokens, charged, accepted=charged)

    def _command(
        self, state: Mapping[str, Any], desk: Desk, outgoing: Outgoing
    ) -> Command[Any] | None:
        """Write what changed into the private state."""
        update: dict[str, Any] = {}
        if outgoing.saved is not state.get(self._decision):
            update[self._decision] = outgoing.saved
        learned = {
            "ratios": self._keeper.lessons(),
            "budget": desk.budget,
            "model": desk.name,
        }
        if learned != state.get(self._learned):
            update[self._learned] = learned
        return Command(update=update) if update else None

    # --- tool calls ------------------------------------------------------------------------------

    def wrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]],
    ) -> ToolMessage | Command[Any]:
        """Store a result that is too large, and shorten it."""
        return self._capped(request, handler(request))

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        """Store a result that is too large, and shorten it, off the loop."""
        import asyncio

        return await asyncio.to_thread(self._capped, request, await handler(request))

    def _capped(
        self, request: ToolCallRequest, result: ToolMessage | Command[Any]
    ) -> ToolMessage | Command[Any]:
        if isinstance(request.tool, ReadBackTool):
            return result
        learned = _lessons(value_of(request.state, self._learned))
        counter = self._keeper.counter_named(learned.get("model"))
        return self._cap.apply(result, learned.get("budget"), counter)


@dataclass(frozen=True, slots=True)
class _Send:
    """Call the model."""

    request: ModelRequest[Any]
    handler: Any

    def do(self) -> ModelResponse[Any]:
        return self.handler(self.request)

    async def ado(self) -> ModelResponse[Any]:
        return await self.handler(self.request)


def _lessons(learned: object) -> Mapping[str, Any]:
    """Read what was learned; nothing where it is not what `_command` writes."""
    match learned:
        case {"ratios": dict(), "budget": int(), "model": str()}:
            return cast("Mapping[str, Any]", learned)
        case _:
            return {}


def _conversation(request: ModelRequest[Any]) -> Sequence[BaseMessage]:
    front = [request.system_message] if request.system_message is not None else []
    return [*cast("list[BaseMessage]", front), *request.messages]


def _with(request: ModelRequest[Any], outgoing: Outgoing) -> ModelRequest[Any]:
    """Write what is sent into the request; the system message travels beside the messages."""
    messages: list[Any] = list(outgoing.messages)
    if request.system_message is None:
        return request.override(messages=messages)
    return request.override(system_message=messages[0], messages=messages[1:])
