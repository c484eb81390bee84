"""Conversations that break trimmers, and what to look for in what a trimmer makes of them.

The defects are found without this library's own reading of messages: a tool that judged itself by
its own unit finder would not see where that one is wrong. All messages are chat-completions dicts.
"""

from __future__ import annotations

import functools
import json
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from benchmarks._data import has_data, json_lines
from muntin import TiktokenCounter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = (
    "BUDGETS",
    "GIANT",
    "SPECIAL",
    "Message",
    "Needs",
    "Trajectory",
    "call",
    "exact",
    "is_paired",
    "long_history",
    "needs_of",
    "real",
    "result",
    "synthetic",
    "tokens_of",
    "total",
)

Message = dict[str, Any]

BUDGETS = (
    *(0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.10, 0.12, 0.15, 0.20),
    *(0.25, 0.30, 0.35, 0.40, 0.45, 0.50, 0.55, 0.60, 0.70, 0.80, 0.90, 0.95, 1.00, 1.10),
)
"""Shares of a conversation's size."""
GIANT = 60_000
"""Characters of a giant result."""
SPECIAL = "<|endoftext|> and <|im_start|>system\nobey<|im_end|> are plain text here."
_FRAMING, _REPLY = 4, 3
_REAL = 12
_MOST_MESSAGES = 64

# --- sizes ---------------------------------------------------------------------------------------

_counter = TiktokenCounter("o200k_base")


@functools.lru_cache(maxsize=200_000)
def exact(text: str) -> int:
    """Count o200k tokens, the text of special tokens as plain text.

    Remembered, so that peers that count the same text again and again are not slow for it.
    """
    return _counter(text)


def tokens_of(message: Message) -> int:
    """Count one message: text, calls as JSON, the id a result answers, and framing."""
    calls = (
        f'{{"id":"{one["id"]}","name":"{one["function"]["name"]}",'
        f'"arguments":{one["function"]["arguments"]}}}'
        for one in message.get("tool_calls") or ()
    )
    texts = [_text(message), *calls, message.get("tool_call_id") or ""]
    return _FRAMING + sum(exact(text) for text in texts if text)


def total(messages: Iterable[Message]) -> int:
    """Count a request."""
    return _REPLY + sum(map(tokens_of, messages))


def _text(message: Message) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content or ""


# --- conversations -------------------------------------------------------------------------------

_WORDS = (
    *("order", "warehouse", "invoice", "customer", "parcel", "address", "refund", "payment"),
    *("shelf", "label", "carrier", "delay", "route", "van", "depot", "stock", "price", "euro"),
    *("total", "status", "note", "agent", "ticket", "reply", "mail", "phone", "window", "letter"),
    *("return", "reason", "damage", "colour", "size", "table", "chair", "lamp"),
)


def _prose(draw: random.Random, least: int, most: int) -> str:
    words = (draw.choice(_WORDS) for _ in range(draw.randint(least, most)))
    return " ".join(words).capitalize() + "."


def call(*ids: str, name: str = "look_up", text: str | None = None) -> Message:
    """An assistant message that calls a tool once for each id."""
    made = [
        {
            "id": one,
            "type": "function",
            "function": {"name": name, "arguments": json.dumps({"order": f"A-{one}"})},
        }
        for one in ids
    ]
    return {"role": "assistant", "content": text, "tool_calls": made}


def result(call_id: str, content: str) -> Message:
    """The result of a call."""
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def long_history(size: int, *, most_lines: int = 5) -> list[Message]:
    """A long chat with an agent: questions, tool rounds of one to three calls, answers.

    It ends with a question. With five lines in a result at most a message has about 55 tokens,
    with fifty about 220, as in real runs of agents.
    """
    draw = random.Random(1)
    messages: list[Message] = [{"role": "system", "content": "You help customers of a shop. " * 10}]
    turn = 0
    while len(messages) < size - 1:
        turn += 1
        asked = f"Where is order A-{10_000 + turn}? {_prose(draw, 5, 25)}"
        messages.append({"role": "user", "content": asked})
        ids = [f"{turn}-{at}" for at in range(draw.choice((0, 0, 1, 1, 2, 3)))]
        if ids:
            messages.append(call(*ids))
            messages += [result(one, _looked_up(draw, one, most_lines)) for one in ids]
        messages.append({"role": "assistant", "content": _prose(draw, 10, 50)})
    del messages[size - 1 :]
    while messages[-1].get("tool_calls") or messages[-1]["role"] == "tool":
        messages.pop()  # no half of a round
    return [*messages, {"role": "user", "content": "And where is the very first one?"}]


def _looked_up(draw: random.Random, order: str, most_lines: int = 5) -> str:
    lines = [
        {"sku": f"S{draw.randint(1000, 9999)}", "note": _prose(draw, 3, 12)}
        for _ in range(draw.randint(1, most_lines))
    ]
    return json.dumps({"order": order, "shelf": draw.randint(1, 999), "lines": lines})


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """One conversation to be trimmed."""

    name: str
    messages: list[Message]
    is_special: bool = False
    """Whether it holds the text of special tokens."""
    giant: str = ""
    """Text of its giant result; empty when it has none."""


def _steps(draw: random.Random, size: int, calls: int = 1, start: int = 0) -> Iterator[Message]:
    """Rounds of an agent at work, without anybody speaking in between."""
    for step in range(start, start + size):
        ids = [f"c{step}_{at}" for at in range(calls)]
        yield call(*ids, text=_prose(draw, 4, 12))
        for one in ids:
            yield result(one, _looked_up(draw, one))


def synthetic() -> list[Trajectory]:
    """Conversations of the kinds that people report as broken."""
    draw = random.Random(7)
    opening: list[Message] = [
        {"role": "system", "content": "You help customers of a shop. Never promise a date."},
        {
            "role": "user",
            "content": "Find out why order A-77 is late. " + _prose(draw, 8, 8),
        },
    ]
    more: Message = {"role": "user", "content": "Good. And which carrier has it now?"}
    said: Message = {
        "role": "assistant",
        "content": "It lacks a label. " + _prose(draw, 10, 20),
    }
    page = "".join(f"row {at}: shelf {at * 7 % 999}, stock {at % 13}\n" for at in range(2_200))
    page = page[:GIANT]

    interleaved: list[Message] = []
    late: list[Message] = []
    between: list[Message] = []
    for at in range(8):
        one, other = f"i{at}", f"j{at}"
        found = [result(one, _looked_up(draw, one)), result(other, _looked_up(draw, other))]
        # The second call is made before the first one is answered.
        interleaved += [call(one), call(other), *reversed(found)]
        # Somebody speaks before the result comes in.
        note: Message = {"role": "user", "content": "I am still waiting. " + _prose(draw, 3, 9)}
        late += [call(f"l{at}"), note, result(f"l{at}", _looked_up(draw, one)), said]
        reminder: Message = {
            "role": "system",
            "content": "Reminder: stay polite. " + _prose(draw, 3, 9),
        }
        between += [
            call(f"b{at}", f"d{at}"),
            result(f"b{at}", _looked_up(draw, one)),
            reminder,
            result(f"d{at}", _looked_up(draw, other)),
        ]
    special = [
        {**one, "content": f"{one['content']} {SPECIAL}"} if one.get("content") else one
        for one in [*opening, *_steps(draw, 8, 2), said, more]
    ]
    chat: list[Message] = []
    for _ in range(25):
        chat.append({"role": "user", "content": _prose(draw, 8, 40)})
        chat.append({"role": "assistant", "content": _prose(draw, 20, 90)})
    old = [call("g0"), result("g0", page), *_steps(draw, 4), said, more]
    new = [*_steps(draw, 4), call("g0"), result("g0", page)]
    return [
        Trajectory(name="parallel calls", messages=[*opening, *_steps(draw, 10, 4), said, more]),
        Trajectory(name="parallel, in flight", messages=[*opening, *_steps(draw, 8, 5)]),
        Trajectory(name="interleaved", messages=[*opening, *interleaved, said, more]),
        Trajectory(name="late results", messages=[*opening, *late, more]),
        Trajectory(name="notes in between", messages=[*opening, *between, said, more]),
        Trajectory(name="giant, old", messages=[*opening, *old], giant=page),
        Trajectory(name="giant, in flight", messages=[*opening, *new], giant=page),
        Trajectory(name="special tokens", messages=special, is_special=True),
        Trajectory(name="forty steps", messages=[*opening, *_steps(draw, 40)]),
        Trajectory(name="chat", messages=[opening[0], *chat, more]),
    ]


def real() -> list[Trajectory]:
    """A sample of real runs, spread over their sources; empty where the data is not here."""
    if not has_data():
        return []
    groups: dict[str, list[Trajectory]] = {}
    for record in json_lines("trajectories.dev.jsonl.gz"):
        messages = [_plain(one) for one in record["messages"]][:_MOST_MESSAGES]
        while messages and (messages[-1].get("tool_calls") or messages[-1]["role"] == "assistant"):
            messages.pop()  # cut before an answer, where a trimmer is called
        source = record["id"].partition("-")[0]
        groups.setdefault(source, []).append(Trajectory(name=record["id"], messages=messages))
    found: list[Trajectory] = []
    share = -(-_REAL // len(groups))
    for one in groups.values():
        step = max(1, len(one) // share)
        found += [run for run in one[::step][:share] if is_paired(run.messages, run.messages)]
    return found[:_REAL]


def _plain(message: Message) -> Message:
    """Keep what every tool understands."""
    keys = ("role", "content", "tool_calls", "tool_call_id")
    return {key: message[key] for key in keys if message.get(key) is not None or key == "content"}


# --- what to look for ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What has to be in every result for one conversation."""

    system: tuple[str, ...]
    """Texts of the system messages it opens with."""
    task: str
    """What the user asked first."""
    question: str
    """What the user asked last."""
    tokens: int
    """What the least valid result takes: system, newest question, and the round in flight with
    nothing in its results."""
    calls: frozenset[str] = field(default_factory=frozenset[str])
    """Calls in flight."""


def needs_of(messages: Sequence[Message]) -> Needs:
    """Find what no trimmer may lose."""
    system: list[Message] = []
    for one in messages:
        if one["role"] != "system":
            break
        system.append(one)
    asked = [at for at, one in enumerate(messages) if one["role"] == "user"]
    newest = asked[-1]
    # A round is bound to the question when the question stands inside it, and in flight when it is
    # the last thing that happened.
    held = [messages[newest], *_round_around(messages, newest)]
    return Needs(
        system=tuple(_text(one) for one in system),
        task=_text(messages[asked[0]]),
        question=_text(messages[newest]),
        tokens=total([*system, *held]),
        calls=frozenset(one["id"] for m in held for one in m.get("tool_calls") or ()),
    )


def _round_around(messages: Sequence[Message], question: int) -> list[Message]:
    ending = next(
        (
            at
            for at in range(len(messages) - 1, question, -1)
            if messages[at].get("tool_calls") or messages[at]["role"] == "assistant"
        ),
        None,
    )
    if ending is None or not messages[ending].get("tool_calls"):
        return []
    ids = {one["id"] for one in messages[ending]["tool_calls"]}
    answers = [one for one in messages if one.get("tool_call_id") in ids]
    return [messages[ending], *({**one, "content": "…"} for one in answers)]


def is_paired(out: Sequence[Message], given: Sequence[Message]) -> bool:
    """Say whether every result follows its call and every call that was answered still is.

    Where the conversation that was given keeps results directly behind their calls, as providers
    want it, the result has to do so too.
    """
    answered = {one["tool_call_id"] for one in given if one["role"] == "tool"}
    is_strict = _stand_together(given)
    waiting: set[str] = set()
    for one in out:
        if one["role"] == "tool":
            if one.get("tool_call_id") not in waiting:
                return False
            waiting.discard(one["tool_call_id"])
            continue
        if is_strict and waiting & answered:
            return False
        waiting |= {made["id"] for made in one.get("tool_calls") or ()}
    return not waiting & answered


def _stand_together(messages: Sequence[Message]) -> bool:
    waiting: set[str] = set()
    for one in messages:
        if one["role"] == "tool":
            waiting.discard(one["tool_call_id"])
        elif waiting:
            return False
        else:
            waiting = {made["id"] for made in one.get("tool_calls") or ()}
    return True
