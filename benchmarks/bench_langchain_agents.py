"""Agents in a window too small for what they do: ours and LangChain's own means, side by side.

Each scenario is a script for a model that refuses what a provider would refuse and adds what it may
write to what it is sent. Every contender gets the same script, tools, task and window, with the
settings its documentation recommends for that window. Counted are what decides about a run: whether
it ends, what was refused, whether the task was still in every request, what summaries cost, and how
much of each request the provider had seen as the beginning of the next.
"""

from __future__ import annotations

import sys
import time
import warnings
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks._harness import Table, at_least, at_most, peer

if TYPE_CHECKING:
    from collections.abc import Callable

TESTS = Path(__file__).resolve().parents[1] / "tests"
WINDOW = 32_000
OUTPUT = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of one contender in one scenario."""

    ended: bool
    """Whether the agent reached its end."""
    calls: int
    """Requests the model accepted."""
    refused: int
    """Requests it refused."""
    lost: int
    """Accepted requests without the task, word for word, as a message of the user."""
    summaries: int
    """Calls for a summary."""
    shared: float
    """Mean share of a request that the next one begins with."""
    tokens: int
    """Tokens sent in all."""
    kept: bool
    """Whether the state still holds every message."""


def run() -> list[Table]:
    """Run every contender through every scenario."""
    if peer("langchain") is None:
        return []
    rows: list[tuple[Any, ...]] = []
    ours: list[Outcome] = []
    for name, scenario in scenarios().items():
        for contender, middleware in contenders().items():
            outcome = played(scenario, middleware)
            if contender.startswith("muntin"):
                ours.append(outcome)
            rows.append(
                (
                    name,
                    contender,
                    "yes" if outcome.ended else "no",
                    outcome.calls,
                    outcome.refused,
                    outcome.lost,
                    outcome.summaries,
                    round(outcome.shared, 2),
                    outcome.tokens,
                    "yes" if outcome.kept else "no",
                )
            )
    return [
        Table(
            title=f"Agents in a window of {WINDOW:,} tokens",
            columns=(
                "scenario",
                "contender",
                "ended",
                "requests",
                "refused",
                "task lost",
                "summaries",
                "shared prefix",
                "tokens sent",
                "state whole",
            ),
            rows=tuple(rows),
            notes=(
                f"The model may write {OUTPUT:,} tokens, which count against the window. Tokens "
                "are counted with o200k_base. A contender whose request is refused has lost the "
                "run: no agent goes on after that. `shared prefix` is the mean over successive "
                "requests of the share of one, in characters, that the next begins with; low "
                "values are paid for with the prompt cache.",
                "SummarizationMiddleware: trigger 0.8 of the window, its default keep of 20 "
                "messages. ContextEditingMiddleware: trigger at 0.6 of the window, its default "
                "keep of 3. trim_messages: `strategy=last`, starting on a human message, before "
                "each call, to the window less the output and the tools.",
            ),
        ),
        Table(
            title="What must not happen to muntin's agents",
            columns=("what", "over all scenarios"),
            rows=(
                ("runs that ended", at_least(sum(one.ended for one in ours), len(ours))),
                ("requests refused", at_most(sum(one.refused for one in ours), 0)),
                ("requests without the task", at_most(sum(one.lost for one in ours), 0)),
                ("states that lost a message", at_most(sum(not one.kept for one in ours), 0)),
            ),
        ),
        _overhead(),
    ]


def _overhead() -> Table:
    """Time the assembler against the bare builder, and a long history read again."""
    from langchain_core.messages import HumanMessage

    from langchain_muntin import ContextAssembler
    from muntin import CallableSource, Candidate, ContextBuilder, ContextConfig, count_tokens

    passages = [Candidate(_agents().prose(40, at), 1 - at / 99) for at in range(20)]
    sources = [CallableSource("rag", lambda _: passages)]
    assembler = ContextAssembler(window=8000, sources=sources, counter=count_tokens)
    builder = ContextBuilder(ContextConfig(max_tokens=8000))
    bare = _best(lambda: builder.assemble("meals?", sources=sources))
    over = _best(lambda: assembler.invoke("meals?")) - bare

    history = [HumanMessage(f"Message {at}: {_agents().prose(40, at)}") for at in range(5000)]
    roomy = ContextAssembler(budget=2_000_000, counter=lambda text: count_tokens(text))
    given = {"history": history, "question": "And now?"}
    begun = time.thread_time()
    roomy.invoke(given)
    first = time.thread_time() - begun
    again = _best(lambda: roomy.invoke({**given, "question": "And then?"}), rounds=10)
    return Table(
        title="What the assembler costs",
        columns=("work", "muntin"),
        rows=(
            ("over the bare builder, ms a call", at_most(1000 * over, 1.0)),
            (
                "5,000 messages again, one of them new, share of the first",
                at_most(again / first, 1),
            ),
        ),
        notes=("Processor time of one thread, the best of the rounds.",),
    )


def _best(function: Callable[[], object], *, rounds: int = 200) -> float:
    function()
    best = float("inf")
    for _ in range(rounds):
        begun = time.thread_time()
        function()
        best = min(best, time.thread_time() - begun)
    return best


# --- scenarios -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One script."""

    replies: list[Any]
    """What the model answers, in order."""
    answer: Callable[[str], str]
    """What the tool answers."""
    messages: list[Any]
    """What the thread begins with."""


def scenarios() -> dict[str, Scenario]:
    """Return the scripts by name."""
    agents = _agents()
    human: Any = peer("langchain_core.messages").HumanMessage  # pyright: ignore[reportOptionalMemberAccess] - checked in run()
    task = human(agents.TASK)
    prose, call, result = agents.prose, agents.call, agents.result

    def sized(tokens: int) -> Callable[[str], str]:
        return lambda key: f"{prose(tokens, sum(map(ord, key)))}\n{agents.fact(len(key))}"

    apart = [task, call("a"), call("b"), result("a", prose(9000)), result("b", prose(9000, 1))]
    between = [task, call("a"), human("Are you there?"), result("a", prose(9000)), human("Go on.")]
    return {
        "3 results of 60k": Scenario(
            replies=agents.rounds(3), answer=sized(60_000), messages=[task]
        ),
        "2 x 20 parallel results of 5k": Scenario(
            replies=agents.rounds(2, at_once=20), answer=sized(5000), messages=[task]
        ),
        "60 tool rounds of 1.5k": Scenario(
            replies=agents.rounds(60), answer=sized(1500), messages=[task]
        ),
        "interleaved rounds in the thread": Scenario(
            replies=agents.rounds(12), answer=sized(1500), messages=[*apart, human("Go on.")]
        ),
        "a user between call and result": Scenario(
            replies=agents.rounds(12), answer=sized(1500), messages=between
        ),
        "a message of 20k first": Scenario(
            replies=agents.rounds(20), answer=sized(1500), messages=[human(prose(20_000)), task]
        ),
    }


# --- contenders ----------------------------------------------------------------------------------


def contenders() -> dict[str, Callable[[Any], list[Any]]]:
    """Return, by name, what makes the middleware out of a summarising model."""
    from langchain.agents.middleware import (
        AgentMiddleware,
        ClearToolUsesEdit,
        ContextEditingMiddleware,
        SummarizationMiddleware,
    )
    from langchain_core.messages import trim_messages

    from langchain_muntin import ContextWindowMiddleware

    class Trimming(AgentMiddleware[Any, Any, Any]):
        """What documentation shows: trim before each call."""

        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            room = WINDOW - OUTPUT - 500
            kept = trim_messages(
                request.messages,
                max_tokens=room,
                token_counter="approximate",
                strategy="last",
                start_on="human",
                end_on=("human", "tool"),
            )
            return handler(request.override(messages=kept))

    return {
        "muntin": lambda _: [ContextWindowMiddleware()],
        "muntin, with recaps": lambda writer: [ContextWindowMiddleware(summarizer=writer)],
        "muntin, recaps fail": lambda _: [ContextWindowMiddleware(summarizer=_failing)],
        "SummarizationMiddleware": lambda writer: [
            SummarizationMiddleware(writer, trigger=("fraction", 0.8))
        ],
        "ContextEditingMiddleware": lambda _: [
            ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=int(0.6 * WINDOW))])
        ],
        "trim_messages": lambda _: [Trimming()],
        "nothing": lambda _: [],
    }


def _failing(text: str, instruction: str) -> str:
    raise TimeoutError(f"no answer to {instruction[:9]} {len(text)}")


def played(scenario: Scenario, middleware: Callable[[Any], list[Any]]) -> Outcome:
    """Run one contender through one scenario."""
    from langchain.agents import create_agent
    from langgraph.checkpoint.memory import InMemorySaver

    from langchain_muntin.testing import StrictChatModel

    agents = _agents()
    writer = StrictChatModel(window=WINDOW, max_tokens=OUTPUT, replies=["Payments were compared."])
    model = StrictChatModel(window=WINDOW, max_tokens=OUTPUT, replies=scenario.replies)
    agent: Any = create_agent(
        model,
        tools=[agents.tool(scenario.answer)],
        system_prompt="You audit payments.",
        middleware=middleware(writer),
        checkpointer=InMemorySaver(),
    )
    config: Any = {"configurable": {"thread_id": "t"}, "recursion_limit": 500}
    ended = True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            agent.invoke({"messages": scenario.messages}, config)
        except Exception:  # noqa: BLE001 - however a run ends early, it is lost
            ended = False
    state = agent.get_state(config).values["messages"]
    sent = model.sent
    shares = [agents.shared_prefix(a.messages, b.messages) for a, b in pairwise(sent)]
    given = [message.text for message in scenario.messages]
    return Outcome(
        ended=ended,
        calls=len(sent),
        refused=len(model.refused),
        lost=sum(not agents.says_task(request.messages) for request in sent),
        summaries=len(writer.sent),
        shared=sum(shares) / len(shares) if shares else 1.0,
        tokens=sum(request.tokens for request in sent),
        kept=[message.text for message in state[: len(given)]] == given,
    )


def _agents() -> Any:
    """Import the scripted agents that the tests use as well."""
    if str(TESTS) not in sys.path:
        sys.path.insert(0, str(TESTS))
    import langchain_agents

    return langchain_agents
