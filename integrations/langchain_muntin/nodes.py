"""Fit messages as a step of a chain or a node of a graph.

`compact_messages` is called as `trim_messages` is. `context_window_node` is a node for a
`StateGraph`, and a `pre_model_hook` for agents built with one: it leaves the history in the state
as it is and writes what to send under a key of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, overload

from langchain_core.messages import BaseMessage, SystemMessage
from langchain_core.runnables import RunnableLambda

from langchain_muntin._agents.events import Publish
from langchain_muntin._agents.remembered import thread_of_run
from langchain_muntin._agents.trim_arguments import TRIM_ARGUMENTS, Trimming
from langchain_muntin._assembling.inputs import read_messages
from langchain_muntin._shapes import pinned_copy
from langchain_muntin._values.models import ModelFacts, counter_of
from langchain_muntin.summarizer import summarizer_for
from muntin.adapting import (
    Keeper,
    RequestAccount,
    adrive,
    carried_state,
    drive,
    refuse_unknown,
    renamed,
    value_of,
)
from muntin.config import WindowBudgetConfig
from muntin.conversations import NEWEST
from muntin.errors import ConfigurationError
from muntin.runtime import size_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_core.prompt_values import PromptValue
    from langchain_core.runnables import Runnable

    from muntin.adapting import BeforeCompaction, Policy, Restate
    from muntin.conversations import Newest
    from muntin.prompts import PromptRegistry
    from muntin.tool_results import ToolResultStore

    Messages = Sequence[BaseMessage] | PromptValue

__all__ = ("compact_messages", "context_window_node")

GivenT = TypeVar("GivenT")
ResultT = TypeVar("ResultT")

DECISION_KEY = "muntin_decision"
"""Key of the state in which a node remembers what it decided, where the state has it."""
_ALIASES = {"max_tokens": "budget", "token_counter": "counter", "results": "store"}


def runnable_of(
    policy: Callable[[GivenT], Policy[ResultT]],
    *,
    name: str,
    messages_of: Callable[[GivenT], object],
) -> Runnable[GivenT, ResultT]:
    """Make a runnable of a policy: `invoke` runs it, `ainvoke` awaits its steps.

    Args:
        policy: The policy, as a function of the input.
        name: Name of the runnable in traces.
        messages_of: Returns the messages of an input.
    """

    def plain(given: GivenT) -> ResultT:
        return drive(policy(given))

    async def awaited(given: GivenT) -> ResultT:
        return await adrive(policy(given), size=size_of(messages_of(given)))

    return RunnableLambda(plain, afunc=awaited, name=name)


@overload
def compact_messages(
    messages: None = None,
    *,
    model: Any = None,
    window: int | None = None,
    budget: int | None = None,
    reserve: int | None = None,
    tools: Sequence[Any] = (),
    question: str | Newest | None = NEWEST,
    counter: Any = None,
    summarizer: Any = None,
    store: ToolResultStore | None = None,
    prompts: PromptRegistry | None = None,
    **trim_arguments: Any,
) -> Runnable[Messages, list[BaseMessage]]: ...


@overload
def compact_messages(
    messages: Messages,
    *,
    model: Any = None,
    window: int | None = None,
    budget: int | None = None,
    reserve: int | None = None,
    tools: Sequence[Any] = (),
    question: str | Newest | None = NEWEST,
    counter: Any = None,
    summarizer: Any = None,
    store: ToolResultStore | None = None,
    prompts: PromptRegistry | None = None,
    **trim_arguments: Any,
) -> list[BaseMessage]: ...


def compact_messages(
    messages: Messages | None = None,
    *,
    model: Any = None,
    window: int | None = None,
    budget: int | None = None,
    reserve: int | None = None,
    tools: Sequence[Any] = (),
    question: str | Newest | None = NEWEST,
    counter: Any = None,
    summarizer: Any = None,
    store: ToolResultStore | None = None,
    prompts: PromptRegistry | None = None,
    **trim_arguments: Any,
) -> list[BaseMessage] | Runnable[Messages, list[BaseMessage]]:
    """Return messages that fit: what `trim_messages` is used for, without losing what matters.

    System messages, the newest user message and the unfinished tool round are kept. Results stay
    with their calls. The facts of older messages are kept. A budget too small for what must stay
    raises an error; the result is never an empty list.

    Args:
        messages: The conversation; `None` returns a runnable that takes it.
        model: The chat model that comes next. Window, output limit, bound tools and tokenizer are
            read from it.
        window: Tokens of the context window; `None` takes the model's.
        budget: Tokens the messages and tools may take at most; `None` takes the window less the
            reserve. `max_tokens` is an alias.
        reserve: Tokens kept for the answer; `None` takes the model's limit, else a share of the
            window.
        tools: Tools that are sent along and not bound to `model`.
        question: Brings older messages about it back word for word. By default the newest
            user message is the question; `None` recalls nothing.
        counter: Counts tokens: a function of a text or of messages, or a model or its name; `None`
            takes the model's. `token_counter` is an alias.
        summarizer: Asked for a recap of what is left out; `None` asks no model.
        store: Keeps the originals of results that are cut; `None` keeps none.
        prompts: Texts of notes; `None` takes the built-in ones.
        trim_arguments: The other arguments of `trim_messages`: `end_on` is applied, those that hold
            anyway are accepted (`strategy="last"`, `include_system=True`, `allow_partial=False`,
            `start_on="human"`), and others are refused with an alternative.

    Raises:
        ConfigurationError: The window is unknown, or an argument is unknown, of the wrong type or
            range, or one of `trim_messages` that is not supported.
        ContextWindowExceeded: What must stay is over the budget.

    ```python
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
    from langchain_muntin import compact_messages

    talk = [SystemMessage("Be brief.")]
    for n in range(40):
        talk += [HumanMessage(f"Where is order A-{n}?"), AIMessage(f"Order A-{n} is on its way.")]
    talk += [HumanMessage("And the last one?")]
    short = compact_messages(talk, budget=300)
    print(len(talk), len(short) < 40, short[0].text, short[-1].text)
    #> 82 True Be brief. And the last one?
    ```
    """
    own = {"budget": budget, "counter": counter, "store": store}
    given = {name: value for name, value in own.items() if value is not None}
    named = renamed("compact_messages", {**given, **trim_arguments}, _ALIASES)
    refuse_unknown("compact_messages", named, (*own, *_KEYWORDS, *TRIM_ARGUMENTS))
    trimming = Trimming.of(
        {key: named.pop(key) for key in TRIM_ARGUMENTS if key in named}, trim_arguments
    )
    keeper = Keeper(
        model=None if model is None else ModelFacts.of(model),
        window=window,
        budget=named.get("budget"),
        reserve=reserve,
        target=1.0,
        question=question,
        counter=counter_of(named.get("counter")),
        summarizer=summarizer_for(summarizer),
        store=named.get("store"),
        prompts=prompts,
        pin=pinned_copy,
    )
    if model is None and window is None and keeper.budget is None:
        raise ConfigurationError("give budget=, window=, or a model that knows its window")

    def policy(given: Messages) -> Policy[list[BaseMessage]]:
        facts = keeper.facts(None, tools)
        outgoing = yield from keeper.policy(facts, trimming.ended(read_messages(given)), None)
        yield Publish(RequestAccount(facts=facts, outgoing=outgoing, thread=thread_of_run()))
        return list(outgoing.messages)

    if messages is not None:
        return drive(policy(messages))
    return runnable_of(policy, name="compact_messages", messages_of=lambda given: given)


_KEYWORDS = (
    "messages", "model", "window", "reserve", "tools", "question", "summarizer", "prompts",
)  # fmt: skip


def context_window_node(
    model: Any = None,
    *,
    window: int | None = None,
    budget: int | None = None,
    reserve: int | None = None,
    division: WindowBudgetConfig | None = None,
    target: float = 0.8,
    trigger: Any = None,
    keep: Any = None,
    tools: Sequence[Any] = (),
    system_prompt: str = "",
    question: str | Newest | None = NEWEST,
    counter: Any = None,
    summarizer: Any = None,
    store: ToolResultStore | None = None,
    prompts: PromptRegistry | None = None,
    restate: Restate | None = None,
    messages_key: str = "messages",
    output_key: str = "llm_input_messages",
    before_compaction: BeforeCompaction | None = None,
    **aliases: Any,
) -> Runnable[Any, dict[str, Any]]:
    """Make a node that writes the messages to send under a key of their own.

    The history stays as it is. Where the state has a key `muntin_decision` (a dict or `None`), what
    was decided is kept in it, and requests between two decisions only grow at their end.

    A graph streamed with `stream_mode="messages"` emits every new message that a node writes, and
    has no way to leave out a node: a system prompt and the notes written here come along. Skip what
    has this node as `langgraph_node` in its metadata, or use `ContextWindowMiddleware`, which
    writes nothing that streams.

    Args:
        model: The chat model that comes next, with its tools bound.
        window: As in `compact_messages`.
        budget: As in `compact_messages`.
        reserve: As in `compact_messages`.
        division: How the window is divided; `None` takes the defaults.
        target: Share of the budget a conversation is brought down to when it is over it.
        trigger: As in `ContextWindowMiddleware`.
        keep: As in `ContextWindowMiddleware`.
        tools: As in `compact_messages`.
        system_prompt: Put in front of what is sent; `""` where the messages or the caller bring it.
        question: As in `compact_messages`.
        counter: As in `compact_messages`.
        summarizer: As in `compact_messages`.
        store: As in `compact_messages`.
        prompts: As in `compact_messages`.
        restate: What of the state is put back when messages are left out: a function of the state
            to an `AgentState`, or to `None` for nothing. `None` takes the todo list, where there
            is one.
        messages_key: Key of the conversation in the state.
        output_key: Key under which to write what to send; an agent's `pre_model_hook` wants
            `llm_input_messages`.
        before_compaction: As in `ContextWindowMiddleware`.
        aliases: Earlier names of these arguments.

    Raises:
        ConfigurationError: The window is unknown, a number is out of range, or a keyword is
            unknown; or, when it runs, the state has no messages under its key.

    ```python
    from typing import Annotated, Any, TypedDict

    from langchain_muntin import context_window_node
    from langchain_muntin.testing import StrictChatModel
    from langgraph.graph import START, StateGraph
    from langgraph.graph.message import add_messages

    class State(TypedDict, total=False):
        messages: Annotated[list[Any], add_messages]
        llm_input_messages: list[Any]
        muntin_decision: dict[str, Any] | None

    model = StrictChatModel(window=1000, replies=["Hello."])
    graph = StateGraph(State)
    graph.add_node("fit", context_window_node(model))
    graph.add_node("talk", lambda state: {"messages": [model.invoke(state["llm_input_messages"])]})
    graph.add_edge(START, "fit").add_edge("fit", "talk")
    talk = [("user", "word " * 100), ("ai", "Yes.")] * 20 + [("user", "Hi!")]
    done = graph.compile().invoke({"messages": talk})
    print(len(done["messages"]), model.sent[0].tokens < 500)
    #> 42 True
    ```
    """
    if isinstance(budget, WindowBudgetConfig):  # its earlier meaning
        budget, division = None, budget
    own = {"budget": budget, "counter": counter, "store": store}
    given = {name: value for name, value in own.items() if value is not None}
    named = renamed("context_window_node", {**given, **aliases}, _ALIASES)
    refuse_unknown("context_window_node", named, (*own, *_KEYWORDS, *_NODE_KEYWORDS))
    keeper = Keeper(
        model=None if model is None else ModelFacts.of(model),
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
        store=named.get("store"),
        prompts=prompts,
        pin=pinned_copy,
        before_compaction=before_compaction,
    )
    if model is None and window is None and keeper.budget is None:
        raise ConfigurationError("give a model that knows its window, window=, or budget=")

    def policy(state: Any) -> Policy[dict[str, Any]]:
        given = value_of(state, messages_key)
        if given is None:
            raise ConfigurationError(
                f"the state has no messages under {messages_key!r}: give messages_key="
            )
        messages = read_messages(given)
        if system_prompt:
            messages = (SystemMessage(system_prompt), *messages)
        facts = keeper.facts(None, tools)
        outgoing = yield from keeper.policy(
            facts,
            messages,
            value_of(state, DECISION_KEY),
            state=carried_state(state, restate),
            thread=thread_of_run(),
        )
        yield Publish(RequestAccount(facts=facts, outgoing=outgoing, thread=thread_of_run()))
        return {output_key: list(outgoing.messages), DECISION_KEY: outgoing.saved}

    return runnable_of(
        policy,
        name="context_window",
        messages_of=lambda state: value_of(state, messages_key),
    )


_NODE_KEYWORDS = (
    "division", "target", "trigger", "keep", "system_prompt", "restate", "messages_key",
    "output_key", "before_compaction",
)  # fmt: skip
