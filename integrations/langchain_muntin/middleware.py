"""A middleware that keeps what an agent sends inside the window, and its state whole.

What is sent is decided right before each model call, where the system message, the final tools,
the answer's schema and the model are known. The history in the state is not changed, unless
`trim_state` asks for it. A tool result that is too large is stored and shortened before it enters
the state, and a tool reads the rest back. What was decided and learned is in private state, so a
checkpointer keeps it.
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
from langchain_core.tools import StructuredTool

from langchain_muntin._agents.events import Publish, thread_of_run
from langchain_muntin._agents.retention import archived, trimmed
from langchain_muntin._agents.stored import packed, unpacked
from langchain_muntin._agents.tool_results import (
    ReadBackTool,
    capped,
    offered,
    read_back_tool,
    refused_reading,
)
from langchain_muntin._models import ModelFacts, answer_schemas, counter_of
from langchain_muntin._shapes import SHAPE, pinned_copy
from langchain_muntin.summarizer import summarizer_for
from muntin.adapting import (
    Accounts,
    Keeper,
    RequestAccount,
    ResultCap,
    adrive,
    carried_state,
    drive,
    named_ids,
    refusal_of,
    refuse_unknown,
    renamed,
    rules_of,
    value_of,
)
from muntin.config import WindowBudgetConfig
from muntin.counting import checked_tokens
from muntin.errors import ContextWindowExceeded
from muntin.tool_results import ToolResultStore

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from langgraph.prebuilt.tool_node import ToolCallRequest

    from muntin.adapting import BeforeCompaction, Outgoing, Policy, RequestFacts, Restate, ToolRule
    from muntin.prompts import PromptRegistry
    from muntin.report import AssemblyReport

__all__ = ("ContextWindowMiddleware", "ContextWindowState")

_DECISION = "muntin_decision"
_LEARNED = "muntin_learned"
_NAME = "ContextWindowMiddleware"
_LINE_TOKENS = 32
"""Tokens set aside for the line that says how full the window is."""
_ALIASES = {"max_tokens": "budget", "results": "store", "token_counter": "counter"}
_Private = Annotated[dict[str, Any] | None, PrivateStateAttr]


class ContextWindowState(AgentState[Any]):
    """What the middleware keeps in an agent's state; hidden from its input and output.

    A middleware with a name of its own has keys of its own: `muntin_decision_<name>`.
    """

    muntin_decision: NotRequired[_Private]
    """The decision that holds: a few figures and where the rest of it is stored."""
    muntin_learned: NotRequired[_Private]
    """What usage taught about each model, and the newest budget."""


class ContextWindowMiddleware(AgentMiddleware[ContextWindowState, Any, Any]):
    r"""Send what fits: an agent that never overruns its window and forgets nothing.

    Put it late in the list of middleware, so that it sees what the others add; put prompt caching
    behind it. `report(thread_id)` says how full the window is after every request.

    Args:
        window: Tokens of the context window; `None` takes the model's.
        budget: Tokens a request may take at most; `None` takes the window less the reserve. The
            smaller one wins. `max_tokens` is an alias.
        reserve: Tokens kept for the answer; `None` takes the model's limit, else `division`.
        division: How the window is divided; `None` takes the defaults.
        target: Share of the budget a request is brought down to when it is over it. Lower makes
            decisions rarer, and so prompt caches last longer; higher keeps more.
        trigger: When older messages are compacted although the request fits: tokens, a share of
            the window, or a pair such as `("messages", 40)`; `None` compacts only what does not
            fit.
        keep: What a compaction brings a request down to, written like `trigger`; `None` takes
            `target`.
        summarizer: A chat model or any summariser, asked for a recap each time older messages are
            folded; `None` keeps their facts only and asks no model. When it fails, the facts stay.
        max_result_tokens: Tokens one tool result may take; `None` takes a quarter of the budget.
        tool_rules: A `ToolRule` by tool name: caps of its own, or results that stay whole.
        store: Where originals of shortened results are kept. `None` makes one in memory, which
            holds as long as the process: give a `ToolResultStore.sqlite(...)` beside a checkpointer
            that outlives it.
        read_back: Whether the agent is given a tool that reads the originals. It reads only those
            whose ids are in its own conversation.
        compact_tool: Whether the agent is given a tool that asks for a compaction.
        tell_model: Whether the model is told how full the window is, in one line at the end of
            each request. It is not stored, so the prompt cache of what is before it holds.
        trim_state: Whether messages that a decision left out are removed from the state, so that
            checkpoints stop growing. `archived(messages)` returns them from `store`.
        before_compaction: Looks at a `CompactionPlan` before it is carried out; returns it, a
            changed one, or `None` to refuse it.
        stream_accounts: Whether the account of each request is written to the custom stream.
        counter: Counts tokens: a function of a text or of messages, or a model or its name; `None`
            takes the model's. `model` is an alias.
        prompts: Texts of notes and marks; `None` takes the built-in ones.
        restate: What of the agent's state is put back when messages are left out: a function of
            the state to an `AgentState`, or to `None` for nothing. `None` takes the todo list,
            where there is one.
        name: Name of this middleware, which must be its own among those of one agent. Several in
            one agent share a `store`, or all but one have `read_back=False`.
        aliases: Earlier names of these arguments.

    Raises:
        ConfigurationError: A number is out of range or a keyword is unknown, or at the first call
            the window is unknown.

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
        budget: int | None = None,
        reserve: int | None = None,
        division: WindowBudgetConfig | None = None,
        target: float = 0.8,
        trigger: Any = None,
        keep: Any = None,
        summarizer: Any = None,
        max_result_tokens: int | None = None,
        tool_rules: Mapping[str, ToolRule] | None = None,
        store: ToolResultStore | None = None,
        read_back: bool = True,
        compact_tool: bool = False,
        tell_model: bool = False,
        trim_state: bool = False,
        before_compaction: BeforeCompaction | None = None,
        stream_accounts: bool = True,
        counter: Any = None,
        prompts: PromptRegistry | None = None,
        restate: Restate | None = None,
        name: str = _NAME,
        **aliases: Any,
    ) -> None:
        super().__init__()
        if isinstance(budget, WindowBudgetConfig):  # its earlier meaning
            budget, division = None, budget
        given = {"budget": budget, "store": store, "counter": counter}
        kept = {key: value for key, value in given.items() if value is not None}
        named = renamed(
            "ContextWindowMiddleware", {**kept, **aliases}, {**_ALIASES, "model": "counter"}
        )
        refuse_unknown("ContextWindowMiddleware", named, (*given, *_KEYWORDS))
        rules = rules_of(tool_rules)
        if max_result_tokens is not None:
            max_result_tokens = checked_tokens(max_result_tokens, "max_result_tokens")
        found: ToolResultStore | None = named.get("store")
        self.store = ToolResultStore.in_memory() if found is None else found
        self._name = name
        own = "" if name == _NAME else f"_{name}"
        self._decision, self._learned = _DECISION + own, _LEARNED + own
        if own:
            keys = {self._decision: _Private, self._learned: _Private}
            self.state_schema = cast("Any", TypedDict)("ContextWindowState", keys, total=False)
        self._restate = restate
        self._tell_model = tell_model
        self._trim_state = trim_state
        self._stream_accounts = stream_accounts
        self._accounts = Accounts()
        self._asked: set[str] = set()
        self._keeper = Keeper(
            window=window,
            budget=named.get("budget"),
            reserve=reserve,
            division=division,
            target=target,
            trigger=trigger,
            keep=keep,
            counter=counter_of(named.get("counter")),
            summarizer=summarizer_for(summarizer),
            store=self.store,
            prompts=prompts,
            pin=pinned_copy,
            whole_results=[tool for tool, rule in rules.items() if rule.keep],
            before_compaction=before_compaction,
        )
        self._cap = ResultCap(
            max_tokens=max_result_tokens,
            rules=rules,
            store=self.store,
            prompts=prompts,
            budget=self._keeper.budget or self._keeper.window,
        )
        self._reading = read_back_tool(
            self.store, max_result_tokens, prompts, self._keeper.counter_named(None)
        )
        self._read_back = read_back
        self.tools = [self._reading] if read_back else []
        if compact_tool:
            self.tools = [*self.tools, _compact_tool(self)]

    @property
    def name(self) -> str:
        """Name of this middleware."""
        return self._name

    # --- how full the window is ------------------------------------------------------------------

    def report(self, thread_id: str | None = None) -> RequestAccount | None:
        """Return the account of the newest request of a thread.

        Args:
            thread_id: The thread; `None` takes the thread of the run that is on, or of requests
                without a thread.

        Returns:
            Used tokens, budget, parts and what a compaction could free; its `.report` says what
            became of every message. `None` before the first request of the thread.
        """
        return self._accounts.get(thread_of_run() if thread_id is None else str(thread_id))

    @property
    def last_report(self) -> AssemblyReport | None:
        """The report of the newest request; `None` if several threads were seen: use `report`."""
        account = self._accounts.get(thread_of_run()) if thread_of_run() else self._accounts.only()
        return None if account is None else account.report

    def compact_now(self, thread_id: str | None = None) -> None:
        """Compact a conversation at its next request, although it may fit.

        Args:
            thread_id: The thread; `None` takes the thread of the run that is on, or requests
                without a thread.
        """
        self._asked.add(thread_of_run() if thread_id is None else str(thread_id))

    def archived(self, messages: Sequence[BaseMessage]) -> list[BaseMessage]:
        """Return a conversation as it was before `trim_state` removed messages from it.

        Args:
            messages: The messages of the state.

        Raises:
            ToolResultNotFound: The store does not have what was removed.
        """
        return list(archived(messages, self.store))

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
        """Send what fits without blocking the event loop."""
        size = sum(len(message.content) for message in request.messages)
        return await adrive(self._call(request, handler), size=size)

    def _call(self, request: ModelRequest[Any], handler: Any) -> Policy[ExtendedModelResponse[Any]]:
        state = cast("Mapping[str, Any]", request.state)
        thread = thread_of_run()
        saved = unpacked(state.get(self._decision), self.store)
        request = self._with_tools(request, saved)
        facts = self._facts(request, state)
        messages = _conversation(request)
        beside = carried_state(state, self._restate)
        outgoing = yield from self._keeper.policy(
            facts,
            messages,
            saved,
            state=beside,
            thread=thread,
            asked=thread in self._asked,
        )
        self._asked.discard(thread)
        yield self._published(facts, outgoing, request, thread)
        try:
            response = yield _Send(self._filled(request, facts, outgoing), handler)
        except Exception as error:  # noqa: BLE001 - all but refusals for size are raised again
            outgoing = yield from self._after(error, request, facts, outgoing, beside)
            yield self._published(facts, outgoing, request, thread)
            response = yield _Send(self._filled(request, facts, outgoing), handler)
        self._learn(facts, outgoing, cast("ModelResponse[Any]", response))
        update = self._update(state, facts, outgoing, saved)
        if self._trim_state:
            update |= self._trimmed(request, outgoing)
        return ExtendedModelResponse(
            model_response=response, command=Command(update=update) if update else None
        )

    def _with_tools(self, request: ModelRequest[Any], saved: Any) -> ModelRequest[Any]:
        if not self._read_back:
            return request
        reads = any(isinstance(message, ToolMessage) for message in request.messages)
        tools = offered(
            request.tools,
            self._reading,
            request.model,
            reads=reads,
            named=reads and bool(self._ids(request.messages, saved)),
        )
        return request if tools is request.tools else request.override(tools=list(tools))

    def _ids(self, messages: Sequence[BaseMessage], saved: Any) -> frozenset[str]:
        """Return the ids of originals that the conversation names, as it is sent."""
        sent = saved["send"] if isinstance(saved, dict) and "send" in saved else ()
        written = [one for one in cast("Sequence[Any]", sent) if isinstance(one, BaseMessage)]
        return named_ids([*messages, *written])

    def _facts(self, request: ModelRequest[Any], state: Mapping[str, Any]) -> RequestFacts:
        learned = _lessons(state.get(self._learned))
        model = ModelFacts.of(request.model)

        def read() -> RequestFacts:
            return self._keeper.facts(
                model,
                request.tools,
                schemas=answer_schemas(request.response_format),
                settings=request.model_settings,
                set_aside=_LINE_TOKENS if self._tell_model else 0,
            )

        facts = read()
        return read() if self._keeper.recall(facts, learned.get("ratios")) else facts

    def _after(
        self,
        error: Exception,
        request: ModelRequest[Any],
        facts: RequestFacts,
        outgoing: Outgoing,
        beside: Any,
    ) -> Policy[Outgoing]:
        """Make one smaller request of one that was refused for its size."""
        said = refusal_of(error, tokens=outgoing.tokens)
        if said is None or not said.is_overflow:
            raise error
        try:
            return (
                yield from self._keeper.after_refusal(
                    facts, _conversation(request), outgoing, said, state=beside
                )
            )
        except ContextWindowExceeded as exceeded:
            raise error from exceeded

    def _published(
        self, facts: RequestFacts, outgoing: Outgoing, request: ModelRequest[Any], thread: str
    ) -> Publish:
        """Keep the account of a request and return the step that publishes it."""
        account = RequestAccount(facts=facts, outgoing=outgoing, thread=thread)
        self._accounts.add(account)
        writer = getattr(request.runtime, "stream_writer", None) if self._stream_accounts else None
        return Publish(account, writer)

    def _filled(
        self, request: ModelRequest[Any], facts: RequestFacts, outgoing: Outgoing
    ) -> ModelRequest[Any]:
        """Write what is sent into the request; the system message is sent beside the messages."""
        messages: list[Any] = list(outgoing.messages)
        if self._tell_model:
            line = RequestAccount(facts=facts, outgoing=outgoing).line()
            messages.append(SHAPE.note(line, "user"))
        if request.system_message is None:
            return request.override(messages=messages)
        return request.override(system_message=messages[0], messages=messages[1:])

    def _learn(self, facts: RequestFacts, outgoing: Outgoing, response: ModelResponse[Any]) -> None:
        for message in response.result:
            usage = message.usage_metadata if isinstance(message, AIMessage) else None
            if usage and usage["input_tokens"]:
                charged = usage["input_tokens"]
                self._keeper.learn(facts, outgoing.tokens, charged, accepted=charged)

    def _update(
        self, state: Mapping[str, Any], facts: RequestFacts, outgoing: Outgoing, before: Any
    ) -> dict[str, Any]:
        """Return what changed of the private state."""
        update: dict[str, Any] = {}
        if outgoing.saved is not before:
            update[self._decision] = packed(outgoing.saved, self.store)
        learned = {
            "ratios": self._keeper.lessons(),
            "budget": facts.room,
            "model": facts.name,
        }
        if learned != state.get(self._learned):
            update[self._learned] = learned
        return update

    def _trimmed(self, request: ModelRequest[Any], outgoing: Outgoing) -> dict[str, Any]:
        """Return the update that makes the stored messages those that were sent."""
        if outgoing.saved is None:
            return {}
        front = 0 if request.system_message is None else 1
        changes = trimmed(request.messages, outgoing.messages[front:], self.store)
        if changes is None:
            return {}
        return {"messages": changes, self._decision: None}

    # --- tool calls ------------------------------------------------------------------------------

    def wrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]],
    ) -> ToolMessage | Command[Any]:
        """Store a result that is too large, and shorten it."""
        refused = self._refused(request)
        return self._capped(request, handler(request)) if refused is None else refused

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        """Store a result that is too large, and shorten it, off the event loop."""
        import asyncio

        refused = self._refused(request)
        if refused is not None:
            return refused
        return await asyncio.to_thread(self._capped, request, await handler(request))

    def _refused(self, request: ToolCallRequest) -> ToolMessage | None:
        """Refuse to read an original that is not of this conversation."""
        tool = request.tool
        if not isinstance(tool, ReadBackTool) or tool.store is not self.store:
            return None
        messages = value_of(request.state, "messages") or ()
        saved = unpacked(value_of(request.state, self._decision), self.store)
        return refused_reading(request.tool_call, self._ids(messages, saved))

    def _capped(
        self, request: ToolCallRequest, result: ToolMessage | Command[Any]
    ) -> ToolMessage | Command[Any]:
        if isinstance(request.tool, ReadBackTool):
            return result
        learned = _lessons(value_of(request.state, self._learned))
        counter = self._keeper.counter_named(learned.get("model"))
        return capped(result, self._cap, learned.get("budget"), counter)


@dataclass(frozen=True, slots=True)
class _Send:
    """Call the model."""

    request: ModelRequest[Any]
    handler: Any

    def do(self) -> ModelResponse[Any]:
        return self.handler(self.request)

    async def ado(self) -> ModelResponse[Any]:
        return await self.handler(self.request)


_KEYWORDS = (
    "window", "reserve", "division", "target", "trigger", "keep", "summarizer",
    "max_result_tokens", "tool_rules", "read_back", "compact_tool", "tell_model", "trim_state",
    "before_compaction", "stream_accounts", "prompts", "restate", "name",
)  # fmt: skip


def _compact_tool(middleware: ContextWindowMiddleware) -> StructuredTool:
    """Make the tool by which an agent asks for a compaction."""

    def compact_conversation() -> str:
        middleware.compact_now()
        return "Older messages are compacted before the next step."

    return StructuredTool.from_function(
        compact_conversation,
        description="Compact the older part of this conversation, to free context window. Facts, "
        "the open request and the newest messages stay.",
    )


def _lessons(learned: object) -> Mapping[str, Any]:
    """Read what was learned; nothing if it is not what `_update` writes."""
    match learned:
        case {"ratios": dict(), "budget": int(), "model": str()}:
            return cast("Mapping[str, Any]", learned)
        case _:
            return {}


def _conversation(request: ModelRequest[Any]) -> Sequence[BaseMessage]:
    front = [request.system_message] if request.system_message is not None else []
    return [*cast("list[BaseMessage]", front), *request.messages]
