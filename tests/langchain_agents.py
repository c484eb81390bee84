"""Agents for tests and benchmarks: scripted runs through `create_agent` with a strict model.

A run is a script of tool rounds. Tool texts are made of distinct words, so that nothing is dropped
as a repeat, and each carries a fact of its own that can be looked for afterwards.
"""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import StructuredTool

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ("TASK", "call", "calls", "fact", "prose", "rounds", "says_task", "shared_prefix", "tool")

TASK = "Find out why invoice INV-20417 was paid twice and name the two payment ids."
"""What the user asks; it has to stand in every request word for word."""

_WORDS = re.findall(
    r"\w+",
    "ledger payment vendor invoice reference batch approval queue retry amount currency branch "
    "office manager signed posted cleared pending reversal duplicate entry account balance audit "
    "export import nightly job worker report monthly quarter region north south east west",
)


def prose(tokens: int, seed: int = 0) -> str:
    """Write about so many tokens of words that are never the same twice."""
    draw = random.Random(seed)
    lines: list[str] = []
    for line in range(max(tokens // 12, 1)):
        words = " ".join(draw.choice(_WORDS) for _ in range(8))
        lines.append(f"{line} {words} {draw.randrange(10_000)}")
    return "\n".join(lines)


def fact(at: int) -> str:
    """Return the fact that round `at` brings to light."""
    return f"payment id: PAY-{7000 + at}"


def calls(*ids: str, name: str = "look_up", content: Any = "") -> AIMessage:
    """Make a message that calls a tool once per id."""
    return AIMessage(
        content, tool_calls=[{"name": name, "args": {"key": one}, "id": one} for one in ids]
    )


def call(call_id: str) -> AIMessage:
    """Make a message that calls a tool once."""
    return calls(call_id)


def result(call_id: str, text: str) -> ToolMessage:
    """Make the result of a call."""
    return ToolMessage(text, tool_call_id=call_id, name="look_up")


def tool(answer: Callable[[str], str]) -> StructuredTool:
    """Make the tool `look_up(key)`."""

    def look_up(key: str) -> str:
        """Look something up by its key."""
        return answer(key)

    async def alook_up(key: str) -> str:
        return answer(key)

    return StructuredTool.from_function(look_up, coroutine=alook_up)


def rounds(count: int, *, at_once: int = 1) -> list[Any]:
    """Script a model that calls the tool `count` times and then answers."""
    script: list[Any] = [
        calls(*(f"c{at}_{part}" for part in range(at_once))) for at in range(count)
    ]
    return [*script, "PAY-7000 and PAY-7001."]


def says_task(messages: Sequence[BaseMessage]) -> bool:
    """Whether the task stands in a request word for word, as a message of the user."""
    return any(message.type == "human" and TASK in message.text for message in messages)


def shared_prefix(before: Sequence[BaseMessage], after: Sequence[BaseMessage]) -> float:
    """Return the share of a request that the next one begins with, in characters."""
    same = total = 0
    still = True
    for at, message in enumerate(before):
        size = len(str(message.content)) + len(str(getattr(message, "tool_calls", "")))
        total += size
        still = still and at < len(after) and after[at] == message
        same += size if still else 0
    return same / total if total else 1.0
