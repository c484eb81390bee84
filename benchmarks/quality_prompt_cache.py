"""What an agent of 200 turns costs with a prompt cache, by how its history is kept inside a budget.

The cache is simulated: it holds every prefix that was sent before, in the blocks, from the minimum
and at the prices that the provider states (`muntin.report.CACHE_RULES`). A request costs its tokens
at these prices, in input tokens. The budget of every way is the same. A summary costs its request
and is not counted, for no way needs it less than another: muntin asks no model here.
"""

from __future__ import annotations

import random
import warnings
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from benchmarks._harness import Table
from muntin import count_messages
from muntin.adapting import Keeper, drive
from muntin.counting import count_message, estimate_tokens
from muntin.report import AS_OF, CACHE_RULES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ("run",)

TURNS = 200
BUDGET = 16_000
SYSTEM = "You are an agent for parcels. " * 200
KEPT = 20
"""Messages that the summarisation middleware keeps, its own default."""


def turns() -> Iterator[list[Any]]:
    """Yield the messages that each turn adds: a request, a call, its result, and an answer."""
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

    chance = random.Random(7)
    for at in range(TURNS):
        rows = "\n".join(
            f"P-{chance.randrange(9000)} depot {chance.randrange(40)} {chance.randrange(99)} boxes"
            for _ in range(chance.choice((5, 10, 20, 40)))
        )
        call: Any = {"name": "look_up", "args": {"parcel": at}, "id": f"c{at}"}
        yield [
            HumanMessage(f"Where is parcel P-{1000 + at}, and what is on board?", id=f"h{at}"),
            AIMessage("I look.", tool_calls=[call], id=f"a{at}"),
            ToolMessage(rows, tool_call_id=f"c{at}", id=f"t{at}"),
            AIMessage(f"P-{1000 + at} is in depot {at % 40} with {at} boxes.", id=f"b{at}"),
        ]


def with_muntin(target: float) -> Callable[[list[Any]], Sequence[Any]]:
    """Return the policy of the middleware and the node."""
    keeper = Keeper(budget=BUDGET, counter=estimate_tokens, target=target)
    saved: list[Any] = [None]

    def kept(history: list[Any]) -> Sequence[Any]:
        facts = keeper.facts()
        outgoing = drive(keeper.policy(facts, history, saved[0]))
        saved[0] = outgoing.saved
        return outgoing.messages

    return kept


def _counted(messages: Any) -> int:
    return count_messages(list(messages), counter=estimate_tokens)


def with_trim_messages(history: list[Any]) -> Sequence[Any]:
    """Trim as LangChain's documentation shows."""
    from langchain_core.messages import trim_messages

    return trim_messages(
        history,
        max_tokens=BUDGET,
        token_counter=_counted,
        strategy="last",
        start_on="human",
        include_system=True,
    )


def with_summaries() -> Callable[[list[Any]], Sequence[Any]]:
    """Return LangChain's SummarizationMiddleware, with a model that answers at once."""
    from langchain.agents.middleware import SummarizationMiddleware
    from langchain_core.language_models import FakeListChatModel
    from langchain_core.messages import RemoveMessage

    middleware = SummarizationMiddleware(
        model=FakeListChatModel(responses=["The parcels so far were found in their depots. " * 12]),
        trigger=("tokens", BUDGET),
        keep=("messages", KEPT),
        token_counter=_counted,
    )
    state: dict[str, Any] = {"messages": [], "seen": 0}

    def kept(history: list[Any]) -> Sequence[Any]:
        system, rest = history[:1], history[1:]
        state["messages"] += rest[state["seen"] :]
        state["seen"] = len(rest)
        update: Any = middleware.before_model({"messages": state["messages"]}, None)  # type: ignore[arg-type]
        if update:
            state["messages"] = [
                one for one in update["messages"] if not isinstance(one, RemoveMessage)
            ]
        return [*system, *state["messages"]]

    return kept


def requests(way: Callable[[list[Any]], Sequence[Any]]) -> list[list[tuple[str, int]]]:
    """Return every request of the agent: the text and the tokens of each message."""
    from langchain_core.messages import SystemMessage

    history: list[Any] = [SystemMessage(SYSTEM, id="s")]
    sent: list[list[tuple[str, int]]] = []
    for turn in turns():
        for upto in (1, 3):  # the model is asked after the request and after the result
            messages = way([*history, *turn[:upto]])
            sent.append([(_text(m), count_message(m, counter=estimate_tokens)) for m in messages])
        history += turn
    return sent


def _text(message: Any) -> str:
    return f"{message.type} {message.content} {getattr(message, 'tool_calls', '')}"


def shared_tokens(sent: list[list[tuple[str, int]]]) -> list[tuple[int, int]]:
    """Return tokens and tokens of the longest prefix sent before, for every request."""
    known: set[int] = set()
    found: list[tuple[int, int]] = []
    for request in sent:
        total = shared = 0
        prefix, is_known = 0, True
        for text, tokens in request:
            prefix = hash((prefix, text))
            is_known = is_known and prefix in known
            total += tokens
            shared += tokens if is_known else 0
            known.add(prefix)
        found.append((total, shared))
    return found


def run() -> list[Table]:
    """Measure every way with the cache of every provider."""
    warnings.simplefilter("ignore")
    ways: dict[str, Callable[[list[Any]], Sequence[Any]]] = {
        "muntin, target 0.8": with_muntin(0.8),
        "muntin, target 0.5": with_muntin(0.5),
        "trim_messages": with_trim_messages,
        "SummarizationMiddleware": with_summaries(),
    }
    measured = {name: shared_tokens(requests(way)) for name, way in ways.items()}
    rows: list[tuple[Any, ...]] = []
    for name, found in measured.items():
        total = sum(tokens for tokens, _ in found)
        shared = sum(prefix for _, prefix in found)
        broken = sum(prefix < 0.9 * before for (before, _), (_, prefix) in pairwise(found))
        rows.append((name, total, f"{shared / total:.1%}", broken))
    hits = Table(
        title=f"A prompt cache under an agent of {TURNS} turns with {BUDGET:,} tokens",
        columns=(
            "way",
            "tokens sent",
            "sent before, as a prefix",
            "requests that lose their prefix",
        ),
        rows=tuple(rows),
    )
    prices = Table(
        title="The same at the prices of each provider, in input tokens",
        columns=("cache", *measured),
        rows=tuple(
            (
                rules.name,
                *(
                    round(sum(rules.price(tokens, shared=prefix) for tokens, prefix in found))
                    for found in measured.values()
                ),
            )
            for rules in CACHE_RULES
        ),
        notes=(f"Minimums and prices as the providers stated them on {AS_OF}.",),
    )
    return [hits, prices]
