"""Does the result hold what the running task needs? Generated threads, no data files.

* `open_request`: the request that is being worked on stays word for word, and no finished one is
  kept in its place.
* `burst`: all user messages since the last answer stay.
* `recalled`: the newest message asks for something far back; the answer is in the result.
* `finished_rounds`: of a finished round of parallel results each is shown.
* `filled`: how much of the budget is used on real runs, from which something has to go.
* `falls`: how often a larger budget shows less of the newest result.

A function under test takes messages in OpenAI's chat form and a budget, and may raise to refuse.
"""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

from benchmarks._data import json_lines
from benchmarks.measures.tokens import Message, count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Fit = Callable[[list[Message], int], list[Message]]

__all__ = (
    "ROUNDS",
    "burst",
    "falls",
    "filled",
    "finished_rounds",
    "open_request",
    "recalled",
    "size",
)

SHARES = (0.3, 0.5, 0.7, 0.9)
ROUNDS = ((4, 16_000), (7, 16_000), (8, 16_000), (12, 16_000), (20, 64_000), (25, 32_000))
"""Results of a finished round of about 5,000 tokens each, and the budget."""
_WORDS = [
    "parcel",
    "depot",
    "crane",
    "tariff",
    "manifest",
    "pallet",
    "courier",
    "wharf",
    "customs",
    "barge",
    "stamp",
    "label",
    "route",
    "scanner",
    "driver",
    "ramp",
    "freight",
    "ledger",
    "seal",
    "invoice",
]
_PARCELS = 100


def size(messages: list[Message]) -> int:
    """Return the tokens of messages as OpenAI charges them: 3 a message and 3 for the reply."""
    total = 3
    for message in messages:
        total += 3 + count(message.get("content") or "")
        for call in message.get("tool_calls") or ():
            total += count(call["function"]["name"] + call["function"]["arguments"])
    return total


def _said(role: str, text: str) -> Message:
    return {"role": role, "content": text}


def _calls(*ids: str) -> Message:
    calls = [
        {
            "id": one,
            "type": "function",
            "function": {"name": "read_file", "arguments": json.dumps({"path": f"{one}.txt"})},
        }
        for one in ids
    ]
    return {"role": "assistant", "content": "", "tool_calls": calls}


def _result(of: str, text: str) -> Message:
    return {"role": "tool", "tool_call_id": of, "content": text}


def _text(draw: random.Random, length: int) -> str:
    return " ".join(draw.choices(_WORDS, k=length))


def _work(draw: random.Random, steps: int) -> list[Message]:
    """Return rounds of one call with a result of 60 to 400 words."""
    made: list[Message] = []
    for step in range(steps):
        text = f"file {step}: {_text(draw, draw.randint(60, 400))}"
        made += [_calls(f"step{step}"), _result(f"step{step}", text)]
    return made


def _try(fit: Fit, messages: list[Message], budget: int) -> list[Message]:
    """Return the result; nothing after a refusal."""
    try:
        return fit([dict(message) for message in messages], budget)
    except Exception:  # noqa: BLE001 - a refusal keeps nothing
        return []


def _has(messages: list[Message], text: str) -> bool:
    return any(one["role"] == "user" and one.get("content") == text for one in messages)


def open_request(fit: Fit) -> tuple[float, float, int]:
    """Return how often the open request is kept, how often a finished one alone, and the cases."""
    kept = stale = cases = 0
    for messages, opened, finished in _threads():
        least = size([messages[0], _said("user", opened), *messages[-2:]])
        for share in SHARES:
            budget = int(size(messages) * share)
            if least > budget / 2:
                continue
            cases += 1
            result = _try(fit, messages, budget)
            kept += _has(result, opened)
            stale += _has(result, finished) and not _has(result, opened)
    return kept / cases, stale / cases, cases


def _threads() -> Iterator[tuple[list[Message], str, str]]:
    """Yield threads with their open and their finished request."""
    for seed, length in enumerate((30, 60, 150, 400, 900)):
        for approval in ("yes, please go ahead", None):
            for steps in (12, 30):
                draw = random.Random(1000 * seed + steps)
                finished = f"Which invoices of {draw.choice(_WORDS)} number {seed} are open?"
                opened = f"Write the report on depot {seed + 3}: {_text(draw, length)}, by 1 March."
                thread = [
                    _said("system", "You work in an office."),
                    _said("user", finished),
                    _said("assistant", "Two are open: B-7 and B-9."),
                    _said("user", opened),
                ]
                if approval:
                    thread.append(_said("assistant", "I will read the files first. Shall I?"))
                    thread.append(_said("user", approval))
                yield [*thread, *_work(draw, steps)], opened, finished


def burst(fit: Fit) -> tuple[float, int]:
    """Return how often all messages of a burst are kept, and the cases."""
    kept = cases = 0
    for seed in range(6):
        draw = random.Random(seed)
        parts = [
            f"I need the March figures of depot {seed + 7}",
            "in EUR, not in USD",
            f"and a copy for {draw.choice(_WORDS)}",
        ]
        thread = [_said("user", "Good morning"), _said("assistant", "Good morning. What is it?")]
        thread += [_said("user", part) for part in parts] + _work(draw, 30)
        for share in SHARES:
            cases += 1
            result = _try(fit, thread, int(size(thread) * share))
            kept += all(_has(result, part) for part in parts)
    return kept / cases, cases


def recalled(fit: Fit, budget: int) -> float:
    """Return how often the answer to the newest message is in the result."""
    draw = random.Random(11)
    thread = [_said("system", "You know where every parcel is.")]
    places: list[str] = []
    for number in range(_PARCELS):
        places.append(f"depot {draw.choice(_WORDS)}-{draw.randint(10, 99)}")
        thread.append(_said("user", f"Where is parcel P-{1000 + number}?"))
        thread.append(_said("assistant", f"Parcel P-{1000 + number} is in {places[-1]}."))
    asked = range(3, 93, 5)
    found = 0
    for number in asked:
        name = f"P-{1000 + number}"
        question = _said("user", f"In which depot was {name} again?")
        result = _try(fit, [*thread, question], budget)[:-1]
        texts = [one.get("content") or "" for one in result]
        found += any(places[number] in text and name in text for text in texts)
    return found / len(asked)


def finished_rounds(fit: Fit, results: int, budget: int) -> tuple[float, int]:
    """Return the share of the budget used and of how many results three lines are shown."""
    draw = random.Random(results)
    ids = [f"part{number}" for number in range(results)]
    lines = {one: [_text(draw, 12) for _ in range(380)] for one in ids}
    thread = [
        _said("system", "You compare files."),
        _said("user", "Read the files."),
        _calls(*ids),
        *[_result(one, "\n".join([f"file {one}", *lines[one]])) for one in ids],
        _said("assistant", "I have read them."),
        _said("user", "Which is best?"),
    ]
    result = _try(fit, thread, budget)
    shown = sum(
        sum(line in message["content"] for line in lines[message["tool_call_id"]]) >= 3
        for message in result
        if message["role"] == "tool"
    )
    used = size(result) / budget
    return used, shown if used <= 1.05 else 0


def filled(fit: Fit) -> list[float]:
    """Return the share of the budget used on each real run at each of five budgets, ascending."""
    used: list[float] = []
    for record in list(json_lines("trajectories.dev.jsonl.gz"))[::2]:
        for share in (0.15, 0.3, 0.5, 0.7, 0.9):
            budget = int(size(record["messages"]) * share)
            result = _try(fit, record["messages"], budget)
            if result:
                used.append(size(result) / budget)
    return sorted(used)


def falls(fit: Fit) -> int:
    """Return how often one more token of budget shows fewer lines of the newest result."""
    draw = random.Random(9)
    lines = [f"line {number}: {_text(draw, 8)}" for number in range(60)]
    thread: list[Any] = [
        _said("user", "Is it there?"),
        _said("assistant", "It is."),
        _said("user", "Read the file."),
        _calls("only"),
        _result("only", "\n".join(lines)),
    ]
    most = fallen = 0
    for budget in range(40, size(thread) + 1):
        result = _try(fit, thread, budget)
        if not result:
            continue
        text = next((one["content"] for one in result if one["role"] == "tool"), "")
        shown = sum(line in text for line in lines)
        fallen += shown < most
        most = max(most, shown)
    return fallen
