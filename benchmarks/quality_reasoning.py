"""How much bound reasoning stays valid while an agent's thread is cut again and again?

An agent works through tool rounds and questions; every answer begins with reasoning that is bound
to the request it answers. Each request is cut into a budget, by the `Keeper` that the adapters use,
by `fit_messages` at every request, and by a cutter that drops the oldest messages. Counted are the
blocks that are still valid when they are sent, of all blocks that were written before, and the
blocks that are sent in vain: Anthropic refuses the request for one of them, OpenAI drops them.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from benchmarks._harness import Table, at_most
from muntin import count_messages, estimate_tokens, fit_messages
from muntin.adapting import Keeper, drive
from muntin.testing import BoundItems, BoundThinking

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks._harness import Cell

__all__ = ("run",)

BUDGETS = (2000, 4000, 8000)
SEEDS = 4
TURNS = 8
ROUNDS = 6
DEPOTS = ("north", "south", "harbour", "station")

Thread = list[dict[str, Any]]


def run() -> list[Table]:
    """Measure three cutters on threads of both forms of reasoning."""
    rows: list[tuple[Cell, ...]] = []
    for form in ("signed blocks", "reasoning items"):
        for budget in BUDGETS:
            for name, make in CUTTERS.items():
                found = [_thread(form, make(budget), budget, seed) for seed in range(SEEDS)]
                written = sum(one[0] for one in found)
                valid = sum(one[1] for one in found) / written
                stale = sum(one[2] for one in found)
                ours = name != "oldest dropped"
                rows.append(
                    (form, budget, name, round(valid, 3), at_most(stale, 0) if ours else stale)
                )
    return [
        Table(
            title="Bound reasoning that stays valid",
            columns=("form", "budget", "cut by", "share valid", "sent in vain"),
            rows=tuple(rows),
            notes=(
                f"{SEEDS} threads of {TURNS} questions with up to {ROUNDS} tool rounds each. The "
                "share is over all requests: blocks sent and valid, of all written before. "
                "In a request over the budget, which only the last cutter sends, none is valid.",
            ),
        )
    ]


def _kept(budget: int) -> Callable[[Thread], Thread]:
    keeper = Keeper(budget=budget, counter=estimate_tokens)
    facts = keeper.facts()
    saved: list[Any] = [None]

    def cut(thread: Thread) -> Thread:
        outgoing = drive(keeper.policy(facts, thread, saved[0]))
        saved[0] = outgoing.saved
        return list(outgoing.messages)

    return cut


def _fitted(budget: int) -> Callable[[Thread], Thread]:
    return lambda thread: fit_messages(thread, budget=budget, counter=estimate_tokens).messages


def _oldest_dropped(budget: int) -> Callable[[Thread], Thread]:
    def cut(thread: Thread) -> Thread:
        for start, message in enumerate(thread):
            kept = thread[start:]
            asks = message.get("role") == "user" and isinstance(message["content"], str)
            if asks and count_messages(kept, counter=estimate_tokens) <= budget:
                return kept
        newest = max(at for at, one in enumerate(thread) if isinstance(one.get("content"), str))
        return thread[newest:]

    return cut


CUTTERS: dict[str, Callable[[int], Callable[[Thread], Thread]]] = {
    "Keeper (adapters)": _kept,
    "fit_messages each time": _fitted,
    "oldest dropped": _oldest_dropped,
}


def _thread(
    form: str, cut: Callable[[Thread], Thread], budget: int, seed: int
) -> tuple[int, int, int]:
    """Run one thread; return blocks written before, sent valid and sent stale, by request."""
    rng = random.Random(seed)
    blocks, items = BoundThinking(), BoundItems()
    signed = form == "signed blocks"
    thread: Thread = []
    written = valid = stale = call = 0
    for _ in range(TURNS):
        thread.append({"role": "user", "content": f"{_prose(rng, 40)} Where is it?"})
        for left in range(rng.randrange(1, ROUNDS + 1), -1, -1):
            sent = cut(thread)
            body: dict[str, Any] = {"messages": sent} if signed else {"input": sent}
            if signed:
                written, bad, held = written + blocks.written, blocks.stale(body), blocks.sent(body)
            else:
                bad, held = len(items.transformations(body)), items.sent(body)
                written += items.written
            over = count_messages(sent, counter=estimate_tokens) > budget
            valid, stale = valid + (0 if over else held - bad), stale + bad
            thought, call = _prose(rng, rng.randrange(20, 120)), call + 1
            answer = _prose(rng, 30)
            result = f"c{call}: {_prose(rng, rng.randrange(20, 300))}"
            if signed:
                block = blocks.sign(body, thought)
                thread += _blocks(block, answer, result, call, is_last=not left)
            else:
                item = items.write(body, thought)
                thread += _items(item, answer, result, call, is_last=not left)
    return written, valid, stale


def _blocks(block: Any, answer: str, result: str, call: int, *, is_last: bool) -> Thread:
    if is_last:
        return [{"role": "assistant", "content": [block, {"type": "text", "text": answer}]}]
    use = {"type": "tool_use", "id": f"c{call}", "name": "look", "input": {"key": call}}
    told = {"type": "tool_result", "tool_use_id": f"c{call}", "content": result}
    return [{"role": "assistant", "content": [block, use]}, {"role": "user", "content": [told]}]


def _items(item: Any, answer: str, result: str, call: int, *, is_last: bool) -> Thread:
    if is_last:
        said = [{"type": "output_text", "text": answer}]
        return [
            item,
            {"type": "message", "role": "assistant", "id": f"msg_{call}", "content": said},
        ]
    made = {"type": "function_call", "id": f"fc_{call}", "call_id": f"c{call}", "name": "look",
            "arguments": "{}"}  # fmt: skip
    return [item, made, {"type": "function_call_output", "call_id": f"c{call}", "output": result}]


def _prose(rng: random.Random, words: int) -> str:
    return " ".join(
        f"Parcel P-{rng.randrange(1000, 9999)} reached {rng.choice(DEPOTS)}."
        for _ in range(max(words // 4, 1))
    )
