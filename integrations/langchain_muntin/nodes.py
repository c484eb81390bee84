"""Fit messages as a step of a chain or a node of a graph.

`compact_messages` stands where `trim_messages` does. `context_window_node` is a node for a
`StateGraph`, and a `pre_model_hook` for agents built with one: it leaves the history in the state
alone and writes what to send under a key of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from langchain_core.messages import SystemMessage

from langchain_muntin._inputs import read_messages
from langchain_muntin._keeper import Keeper
from langchain_muntin._restated import restated, value_of
from langchain_muntin._steps import drive, runnable_of
from langchain_muntin._trace import Tell
from langchain_muntin.summarizer import summarizer_for
from muntin.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage
    from langchain_core.prompt_values import PromptValue
    from langchain_core.runnables import Runnable

    from langchain_muntin._restated import Restate
    from langchain_muntin._steps import Policy
    from muntin.config import WindowBudgetConfig
    from muntin.prompts import PromptRegistry
    from muntin.tool_results import ToolResultStore

    Messages = Sequence[BaseMessage] | PromptValue

__all__ = ("compact_messages", "context_window_node")

DECISION_KEY = "muntin_decision"
"""Key of the state in which a node remembers what it decided, where the state has it."""


@overload
def compact_messages(
    messages: None = None,
    *,
    model: Any = None,
    window: int | None = None,
    max_tokens: int | None = None,
    tools: Sequence[Any] = (),
    counter: Any = None,
    summarizer: Any = None,
    store: ToolResultStore | None = None,
    prompts: PromptRegistry | None = None,
) -> Runnable[Messages, list[BaseMessage]]: ...


@overload
def compact_messages(
    messages: Messages,
    *,
    model: Any = None,
    window: int | None = None,
    max_tokens: int | None = None,
    tools: Sequence[Any] = (),
    counter: Any = None,
    summarizer: Any = None,
    store: ToolResultStore | None = None,
    prompts: PromptRegistry | None = None,
) -> list[BaseMessage]: ...


def compact_messages(
    messages: Messages | None = None,
    *,
    model: Any = None,
    window: int | None = None,
    max_tokens: int | None = None,
    tools: Sequence[Any] = (),
    counter: Any = None,
    summarizer: Any = None,
    store: ToolResultStore | None = None,
    prompts: PromptRegistry | None = None,
) -> list[BaseMessage] | Runnable[Messages, list[BaseMessage]]:
    """Return messages that fit: what `trim_messages` is used for, without losing what matters.

    System messages, the newest user message and the tool round in flight stay; results stay with
    their calls; older messages leave their facts behind; a budget too small for what must stay is
    an error and no empty list.

    Args:
        messages: The conversation; `None` returns a runnable that takes it.
        model: The chat model that comes next: it tells window, output cap, bound tools and
            tokenizer.
        window: Tokens of the context window; `None` takes the model's.
        max_tokens: Tokens the messages and tools may take at most; `None` takes the window less the
            output reserve.
        tools: Tools that are sent along and not bound to `model`.
        counter: Counts tokens: a function of a text, or a model's name; `None` takes the model's.
        summarizer: Asked for a recap of what is left out; `None` asks nobody.
        store: Keeps the originals of results that are cut; `None` keeps none.
        prompts: Texts of notes; `None` takes the built-in ones.

    Raises:
        ConfigurationError: Nothing says how large the window is.
        ContextWindowExceeded: What must stay is over the budget.

    ```python
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
    from langchain_muntin import compact_messages

    talk = [SystemMessage("Be brief.")]
    for n in range(40):
        talk += [HumanMessage(f"Where is order A-{n}?"), AIMessage(f"Order A-{n} is on its way.")]
    talk += [HumanMessage("And the last one?")]
    short = compact_messages(talk, max_tokens=300)
    print(len(talk), len(short) < 40, short[0].text, short[-1].text)
    #> 82 True Be brief. And the last one?
    ```
    """
    keeper = Keeper(
        model=model, window=window, max_tokens=max_tokens, target=1.0, counter=counter,
        summarizer=summarizer_for(summarizer), store=store, prompts=prompts,
    )  # fmt: skip
    if model is None and window is None and max_tokens is None:
        raise ConfigurationError("give max_tokens=, window=, or a model that knows its window")

    def policy(given: Messages) -> Policy[list[BaseMessage]]:
        outgoing = yield from keeper.policy(keeper.desk(None, tools), read_messages(given), None)
        return list(outgoing.messages)

    if messages is not None:
        return drive(policy(messages))
    return runnable_of(policy, name="compact_messages")


def context_window_node(
    model: Any = None,
    *,
    window: int | None = None,
    max_tokens: int | None = None,
    budget: WindowBudgetConfig | None = None,
    target: float = 0.8,
    tools: Sequence[Any] = (),
    system_prompt: str = "",
    counter: Any = None,
    summarizer: Any = None,
    store: ToolResultStore | None = None,
    prompts: PromptRegistry | None = None,
    restate: Restate | None = None,
    messages_key: str = "messages",
    output_key: str = "llm_input_messages",
) -> Runnable[Any, dict[str, Any]]:
    """Make a node that writes what to send of a conversation beside it.

    The history stays as it is. Where the state has a key `muntin_decision` (a dict or `None`), what
    was decided is kept in it, and requests between two decisions only grow at their end.

    A graph streamed with `stream_mode="messages"` emits every new message that a node writes, and
    has no way to leave out a node: a system prompt and the notes written here come along. Skip what
    has this node as `langgraph_node` in its metadata, or use `ContextWindowMiddleware`, which
    writes nothing that streams.

    Args:
        model: The chat model that comes next, with its tools bound.
        window: As in `compact_messages`.
        max_tokens: As in `compact_messages`.
        budget: How the window is divided; `None` takes the defaults.
        target: Share of the budget a conversation is brought down to when it is over it.
        tools: As in `compact_messages`.
        system_prompt: Put in front of what is sent; `""` where the messages or the caller bring it.
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

    Raises:
        ConfigurationError: Nothing says how large the window is, or a number is out of range; or,
            when it runs, the state has no messages under its key.

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
    keeper = Keeper(
        model=model, window=window, max_tokens=max_tokens, division=budget, target=target,
        counter=counter, summarizer=summarizer_for(summarizer), store=store, prompts=prompts,
    )  # fmt: skip
    if model is None and window is None and max_tokens is None:
        raise ConfigurationError("give a model that knows its window, window=, or max_tokens=")

    def policy(state: Any) -> Policy[dict[str, Any]]:
        given = value_of(state, messages_key)
        if given is None:
            raise ConfigurationError(
                f"the state has no messages under {messages_key!r}: give messages_key="
            )
        messages = read_messages(given)
        if system_prompt:
            messages = (SystemMessage(system_prompt), *messages)
        outgoing = yield from keeper.policy(
            keeper.desk(None, tools),
            messages,
            value_of(state, DECISION_KEY),
            state=restated(state, restate),
        )
        if outgoing.fitted is not None:
            yield Tell(outgoing.fitted)
        return {output_key: list(outgoing.messages), DECISION_KEY: outgoing.saved}

    return runnable_of(policy, name="context_window")
