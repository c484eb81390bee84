"""A middleware that keeps the requests of an agent inside the window of its model.

What is sent is decided right before each model call, where the system message, the final tools,
the answer's schema and the model are known. The history in the state is not changed, unless
`trim_state` asks for it. A tool result that is too large is stored and shortened before it enters
the state, and a tool reads the rest back. What was decided and learned is kept in `store` and not
in the state, so that checkpoints and streams do not contain it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

try:
    from langchain.agents.middleware.types import (
        AgentMiddleware,
        AgentState,
        ExtendedModelResponse,
        ModelRequest,
        ModelResponse,
    )
except ModuleNotFoundError as missing:
    if (missing.name or "").partition(".")[0] not in ("langchain", "langgraph"):
        raise
    raise ImportError(
        'the middleware needs LangChain agents: pip install "muntin[langchain,agents]"',
        name=missing.name,
    ) from missing

from langchain_core.tools import StructuredTool

from langchain_muntin._agents.provider import provider_limit
from langchain_muntin._agents.remembered import ThreadRecords, place_of_run, thread_of_run
from langchain_muntin._agents.retention import archived
from langchain_muntin._agents.tool_results import (
    ReadBackTool,
    capped,
    read_back_tool,
    refused_reading,
)
from langchain_muntin._agents.window import AgentWindow
from langchain_muntin._shapes import pinned_copy
from langchain_muntin._values.models import counter_of
from langchain_muntin.summarizer import summarizer_for
from muntin.adapting import (
    Keeper,
    RequestAccount,
    ResultCap,
    adrive,
    drive,
    refuse_unknown,
    renamed,
    rules_of,
    value_of,
)
from muntin.config import WindowBudgetConfig
from muntin.conversations import NEWEST
from muntin.counting import checked_tokens
from muntin.runtime import size_of
from muntin.tool_results import ToolResultStore

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
    from langgraph.prebuilt.tool_node import ToolCallRequest
    from langgraph.types import Command

    from muntin.adapting import BeforeCompaction, Restate, ToolRule
    from muntin.conversations import Newest
    from muntin.prompts import PromptRegistry
    from muntin.report import AssemblyReport

__all__ = ("ContextWindowMiddleware",)

_NAME = "ContextWindowMiddleware"
_ALIASES = {"max_tokens": "budget", "results": "store", "token_counter": "counter"}


class ContextWindowMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    r"""Send what fits: an agent that never overruns its window and forgets nothing.

    Put it late in the list of middleware, so that it sees what the others add; put prompt caching
    behind it. `report(thread_id)` returns how full the window is after every request.

    Args:
        window: Tokens of the context window; `None` takes the model's.
        budget: Tokens a request may take at most; `None` takes the window less the reserve. The
            smaller one wins. `max_tokens` is an alias.
        reserve: Tokens kept for the answer; `None` takes the model's limit, else `division`.
        division: How the window is divided; `None` takes the defaults.
        target: Share of the budget a request is brought down to when it is over it. Lower makes
            decisions rarer, and so prompt caches last longer; higher keeps more. It is at most
            0.35 while reasoning is bound to earlier messages: every decision costs that reasoning.
        trigger: When older messages are compacted although the request fits: tokens, a share of
            the window, or a pair such as `("messages", 40)`; `None` compacts only what does not
            fit.
        keep: What a compaction brings a request down to, written like `trigger`; `None` takes
            `target`.
        question: Brings older messages about it back word for word when messages are left
            out. By default the newest user message is the question; `None` recalls nothing.
        summarizer: A chat model or any summariser, asked for a recap each time older messages are
            folded; `None` keeps their facts only and asks no model. When it fails, the facts stay.
        max_result_tokens: Tokens one tool result may take; `None` takes a quarter of the budget.
        tool_rules: A `ToolRule` by tool name: caps of its own, results that go first or stay whole.
        store: Where originals of shortened results, decisions and what usage taught are kept.
            `None` makes one in memory, which is lost when the process ends: with a persistent
            checkpointer, give a `ToolResultStore.sqlite(...)`.
        read_back: Whether the agent is given a tool that reads the originals. It reads only those
            whose ids are in its own conversation.
        compact_tool: Whether the agent is given a tool that asks for a compaction.
        tell_model: Whether one line at the end of each request states how full the window is. It is
            not stored, so the prompt cache of everything before it stays valid. Models that bind
            their reasoning to all of a request are not sent it.
        provider_compaction: From which size on the provider compacts the conversation itself,
            written like `trigger` (tokens or a share of the window): Anthropic, OpenAI and xAI
            do. Its summary is kept, and `report` states what it saved. The middleware still cuts
            what does not fit. `None` leaves the compaction to the middleware.
        trim_state: Whether messages that a decision left out are removed from the state, so that
            checkpoints stop growing. `archived(messages)` returns them from `store`.
        before_compaction: Looks at a `RequestPlan` before it is carried out; returns it, a
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
        question: str | Newest | None = NEWEST,
        summarizer: Any = None,
        max_result_tokens: int | None = None,
        tool_rules: Mapping[str, ToolRule] | None = None,
        store: ToolResultStore | None = None,
        read_back: bool = True,
        compact_tool: bool = False,
        tell_model: bool = False,
        provider_compaction: Any = None,
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
        arguments = locals()
        self._made_with = {
            key: arguments[key] for key in (*_KEYWORDS, "budget", "counter", "store")
        }
        self._made_with |= aliases
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
        self._keeper = Keeper(
            window=window,
            budget=named.get("budget"),
            reserve=reserve,
            division=division,
            target=target,
            trigger=trigger,
            keep=keep,
            question=question,
            counter=counter_of(named.get("counter")),
            summarizer=summarizer_for(summarizer),
            store=self.store,
            prompts=prompts,
            pin=pinned_copy,
            whole_results=[tool for tool, rule in rules.items() if rule.keep],
            first_results=[tool for tool, rule in rules.items() if rule.first],
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
        self._window = AgentWindow(
            keeper=self._keeper,
            store=self.store,
            reading=self._reading,
            records=ThreadRecords(self.store, name),
            restate=restate,
            read_back=read_back,
            tell_model=tell_model,
            provider=provider_limit(provider_compaction),
            trim_state=trim_state,
            stream_accounts=stream_accounts,
        )
        self.tools = [self._reading] if read_back else []
        if compact_tool:
            self.tools = [*self.tools, _compact_tool(self)]

    @property
    def name(self) -> str:
        """Name of this middleware."""
        return self._name

    def __getstate__(self) -> dict[str, Any]:
        """Keep what it was made with; accounts and a store in memory stay in this process."""
        return self._made_with

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)

    # --- how full the window is ------------------------------------------------------------------

    def report(self, thread_id: str | None = None) -> RequestAccount | None:
        """Return the account of the newest request of a thread.

        Args:
            thread_id: The thread; `None` takes the thread of the run that is on, or of requests
                without a thread.

        Returns:
            Used tokens, budget, parts and what a compaction could free; its `.report` lists what
            happened to every message. `None` before the first request of the thread.
        """
        return self._window.accounts.get(thread_of_run() if thread_id is None else str(thread_id))

    @property
    def last_report(self) -> AssemblyReport | None:
        """The report of the newest request; `None` if several threads were seen: use `report`."""
        account = (
            self._window.accounts.get(thread_of_run())
            if thread_of_run()
            else self._window.accounts.only()
        )
        return None if account is None else account.report

    def compact_now(self, thread_id: str | None = None) -> None:
        """Compact a conversation at its next request, although it may fit.

        Args:
            thread_id: The thread; `None` takes the thread of the run that is on, or requests
                without a thread.
        """
        self._window.asked.add(thread_of_run() if thread_id is None else str(thread_id))

    def archived(self, messages: Sequence[BaseMessage]) -> list[BaseMessage]:
        """Return a conversation as it was before `trim_state` removed messages from it.

        Args:
            messages: The messages of the state.

        Raises:
            ToolResultNotFound: The store does not have what was removed.
        """
        return archived(messages, self.store)

    # --- model calls -----------------------------------------------------------------------------

    def wrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], ModelResponse[Any]],
    ) -> ModelResponse[Any] | AIMessage | ExtendedModelResponse[Any]:
        """Send what fits."""
        return drive(self._window.call(request, handler))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any] | AIMessage | ExtendedModelResponse[Any]:
        """Send what fits without blocking the event loop."""
        return await adrive(self._window.call(request, handler), size=size_of(request.messages))

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
        return refused_reading(request.tool_call, self._window.ids(messages))

    def _capped(
        self, request: ToolCallRequest, result: ToolMessage | Command[Any]
    ) -> ToolMessage | Command[Any]:
        if isinstance(request.tool, ReadBackTool):
            return result
        facts = self._window.facts.get(place_of_run())
        counter = self._keeper.counter_named(None if facts is None else facts.name)
        return capped(result, self._cap, None if facts is None else facts.room, counter)


_KEYWORDS = (
    "window", "reserve", "division", "target", "trigger", "keep", "question",
    "summarizer", "max_result_tokens", "tool_rules", "read_back", "compact_tool", "tell_model",
    "provider_compaction", "trim_state", "before_compaction", "stream_accounts", "prompts",
    "restate", "name",
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
