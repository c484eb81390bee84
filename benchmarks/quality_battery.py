"""How trimmers of message lists fail: hostile and real conversations, each at 27 budgets.

Every tool gets the same conversations in the form it wants and, where it takes one, the same exact
counter, framing included. What comes back is read as chat-completions dicts. A refusal by a typed
error is right where even the least valid result is over the budget, and a failure elsewhere.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import os
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks._harness import Table, at_least, at_most, peer
from benchmarks.battery import (
    BUDGETS,
    exact,
    is_paired,
    needs_of,
    real,
    synthetic,
    tokens_of,
    total,
)
from muntin import (
    ContextWindowExceeded,
    ExtractiveSummarizer,
    ToolResultStore,
    fit_messages,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from benchmarks._harness import Cell
    from benchmarks.battery import Message, Needs, Trajectory

_RESULT_ID = re.compile(r"\btr_[0-9a-f]{20}\b")
_MARK = 32
"""Tokens above the least result in which the id of an original has room."""
EVERY = int(os.environ.get("MUNTIN_BATTERY_EVERY", "1"))
"""Take every n-th budget only, for a quick look."""


def run() -> list[Table]:
    """Try every tool on every conversation."""
    kinds = {"Hostile conversations": synthetic(), "Real runs": real()}
    return [_table(name, runs) for name, runs in kinds.items() if runs]


# --- the tools -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One way to trim messages."""

    name: str
    fit: Callable[[Any, int], Any]
    """Trims messages in the tool's own form."""
    reads: Callable[[list[Message]], Any] = copy.deepcopy
    """Turns chat-completions dicts into the tool's own form."""
    writes: Callable[[Any], list[Message]] = list
    """Turns them back."""
    refuses: tuple[type[Exception], ...] = ()
    """Errors of its own that say that the budget is too small."""
    original: Callable[[str], str] | None = None
    """Reads the original of a shortened result by its id; `None` where it keeps none."""


def tools() -> list[Tool | str]:
    """Make all tools; the name alone of one that is not installed."""
    makers: dict[str, Callable[[str], Tool | None]] = {
        "muntin fit_messages": _muntin,
        "LangChain trim_messages": _langchain,
        "LangChain, start_on human": _langchain_safe,
        "langmem summarize_messages": _langmem,
        "LlamaIndex ChatMemoryBuffer": _llama_index,
        "agentmaker reduce_agent": _agentmaker,
        "litellm trim_messages": _litellm,
        "agentfit fit": _agentfit,
        "chatcram Compactor": _chatcram,
    }
    return [make(name) or name for name, make in makers.items()]


def _muntin(name: str) -> Tool:
    store = ToolResultStore.in_memory()

    def fit(messages: list[Message], budget: int) -> list[Message]:
        return fit_messages(messages, budget=budget, counter=exact, store=store).messages

    return Tool(name=name, fit=fit, refuses=(ContextWindowExceeded,), original=store.get)


def _summary(text: str, room: int) -> str:
    """Summarise without a model, the same for all who ask for it."""
    return ExtractiveSummarizer()(text[-20_000:], max_tokens=max(room, 8))


def _spoken(messages: list[Message]) -> list[Message]:
    return [{**one, "content": one.get("content") or ""} for one in messages]


def _to_langchain(messages: list[Message]) -> Any:
    converted: Any = peer("langchain_core.messages").convert_to_messages(_spoken(messages))  # pyright: ignore[reportOptionalMemberAccess] - asked for before
    for at, one in enumerate(converted):
        one.id = str(at)  # langmem insists on ids
    return converted


def _from_langchain(messages: Any) -> list[Message]:
    dicts: Any = peer("langchain_core.messages").convert_to_openai_messages(messages)  # pyright: ignore[reportOptionalMemberAccess] - asked for before
    return list(dicts)


def _langchain_counter() -> Callable[[Any], int]:
    """Count LangChain messages as they are sent, each once."""
    known: dict[int, tuple[Any, int]] = {}

    def count(messages: Iterable[Any]) -> int:
        tokens = 3
        for one in messages:
            if id(one) not in known:
                known[id(one)] = one, tokens_of(_from_langchain([one])[0])
            tokens += known[id(one)][1]
        return tokens

    return count


def _langchain(name: str, **options: Any) -> Tool | None:
    messages: Any = peer("langchain_core.messages")
    if messages is None:
        return None

    def fit(given: Any, budget: int) -> Any:
        return messages.trim_messages(
            given,
            max_tokens=budget,
            token_counter=_langchain_counter(),
            strategy="last",
            include_system=True,
            **options,
        )

    return Tool(name=name, fit=fit, reads=_to_langchain, writes=_from_langchain)


def _langchain_safe(name: str) -> Tool | None:
    return _langchain(name, start_on="human", end_on=("human", "tool"))


def _langmem(name: str) -> Tool | None:
    langmem: Any = peer("langmem.short_term")
    if langmem is None:
        return None
    runnables: Any = peer("langchain_core.runnables")
    messages: Any = peer("langchain_core.messages")

    def fit(given: Any, budget: int) -> Any:
        room = max(64, budget // 3)

        def reply(prompt: Any) -> Any:
            told = prompt.to_messages() if hasattr(prompt, "to_messages") else prompt
            text = "\n".join(str(one.content) for one in told[:-1])
            return messages.AIMessage(content=_summary(text, room))

        model = runnables.RunnableLambda(reply)
        return langmem.summarize_messages(
            given,
            running_summary=None,
            model=model,
            max_tokens=budget,
            max_tokens_before_summary=max(budget - room, 1),
            max_summary_tokens=room,
            token_counter=_langchain_counter(),
        ).messages

    return Tool(name=name, fit=fit, reads=_to_langchain, writes=_from_langchain)


def _llama_index(name: str) -> Tool | None:
    memory: Any = peer("llama_index.core.memory")
    llms: Any = peer("llama_index.core.llms")
    if memory is None or llms is None:
        return None

    def reads(messages: list[Message]) -> Any:
        extras = ("tool_calls", "tool_call_id")
        return [
            llms.ChatMessage(
                role=one["role"],
                content=one.get("content") or "",
                additional_kwargs={key: one[key] for key in extras if one.get(key)},
            )
            for one in messages
        ]

    def fit(given: Any, budget: int) -> Any:
        # The system prompt stays outside this memory, as its documentation has it.
        head = given[:1] if given[0].role == "system" else []
        buffer = memory.ChatMemoryBuffer.from_defaults(
            token_limit=budget, tokenizer_fn=lambda text: range(exact(text))
        )
        buffer.set(given[len(head) :])
        return [*head, *buffer.get(initial_token_count=total(writes(head)))]

    def writes(messages: Any) -> list[Message]:
        return [
            {"role": one.role.value, "content": one.content, **one.additional_kwargs}
            for one in messages
        ]

    return Tool(name=name, fit=fit, reads=reads, writes=writes)


def _agentmaker(name: str) -> Tool | None:
    context: Any = peer("agentmaker.context")
    errors: Any = peer("agentmaker.core.exceptions")
    if context is None or errors is None:
        return None

    def fit(given: Any, budget: int) -> Any:
        async def summarize(text: str, instruction: str) -> str:  # noqa: ARG001 - its protocol
            return _summary(text, budget // 3)

        return asyncio.run(
            context.reduce_agent(
                given, summarize=summarize, budget=budget, turn_start=1, counter=exact
            )
        )

    return Tool(name=name, fit=fit, refuses=(errors.ContextWindowExceeded,))


def _litellm(name: str) -> Tool | None:
    litellm: Any = peer("litellm.utils")
    if litellm is None:
        return None
    logging.getLogger("LiteLLM").setLevel(logging.CRITICAL)

    def fit(given: Any, budget: int) -> Any:
        return litellm.trim_messages(given, model="gpt-4o", max_tokens=budget, trim_ratio=1.0)

    return Tool(name=name, fit=fit, reads=_spoken)


def _agentfit(name: str) -> Tool | None:
    agentfit: Any = peer("agentfit")
    if agentfit is None:
        return None

    def fit(given: Any, budget: int) -> Any:
        return agentfit.fit(
            given, max_tokens=budget, tokenizer=exact, preserve_last_n=1, preserve_system=True
        ).messages

    return Tool(name=name, fit=fit, refuses=(agentfit.OverBudgetError,))


def _chatcram(name: str) -> Tool | None:
    chatcram: Any = peer("chatcram")
    if chatcram is None:
        return None

    def fit(given: Any, budget: int) -> Any:
        compactor = chatcram.Compactor(
            budget,
            lambda text: _summary(text, budget // 4),
            tokenizer=chatcram.CallableTokenizer(exact),
        )
        return compactor.compact(given).messages

    return Tool(name=name, fit=fit, reads=_spoken)


# --- what they did -------------------------------------------------------------------------------

_COLUMNS = {
    "refused": "refused though possible",
    "crashed": "crashes (untyped)",
    "paired": "invalid pairings",
    "question": "lost newest question",
    "task": "lost first request",
    "system": "lost system message",
    "over": "over budget",
    "mutated": "inputs mutated",
    "again": "not idempotent",
    "special": "crashes on special tokens",
}
_WITHOUT_GOAL = {"task"}


def _table(title: str, runs: Sequence[Trajectory]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    chances = 0
    for tool in tools():
        if isinstance(tool, str):
            rows.append((tool, *[None] * (len(_COLUMNS) + 2)))
            continue
        seen: Counter[str] = Counter()
        for run in runs:
            _try(tool, run, seen)
        chances = seen["possible"]
        ours = tool.name.startswith("muntin")
        figures: list[Cell] = [
            at_most(seen[key], 0) if ours and key not in _WITHOUT_GOAL else seen[key]
            for key in _COLUMNS
        ]
        silent: Cell = at_most(seen["silent"], 0) if ours else seen["silent"]
        if seen["giants"]:
            share = seen["readable"] / seen["giants"]
            giant: Cell = at_least(share, 1.0) if ours else share
        else:
            giant = None
        rows.append((tool.name, *figures, silent, giant))
    impossible = len(runs) * len(BUDGETS[::EVERY]) - chances
    return Table(
        title=f"{title}: {len(runs)} at {len(BUDGETS[::EVERY])} budgets each, how often it failed",
        columns=(
            "tool",
            *_COLUMNS.values(),
            "budget impossible, not refused",
            "giant result cut, original readable",
        ),
        rows=tuple(rows),
        notes=(
            f"Of the {chances + impossible} cases, {chances} are possible: system message, newest "
            "question and the calls in flight (their results cut to nothing) fit. The last column "
            f"but one counts the {impossible} others, where a list came back although none can be "
            "right; all columns before it count the possible ones.",
            "A first request is lost when it no longer stands there word for word; this library "
            "keeps it so only while it takes 6 % of the room at most, and tells its facts "
            "otherwise. Framing is counted as providers do; LlamaIndex, agentmaker and chatcram "
            "count texts only, which alone puts them over by a few tokens.",
            "Giant results: share of the cases with the giant's call still there in which its "
            "result was cut (or kept whole where it fits) and the original can be read back. "
            f"Counted from {_MARK} tokens above the least result, where an id has room. A tool "
            "that is not installed has no figures.",
        ),
    )


def _try(tool: Tool, run: Trajectory, seen: Counter[str]) -> None:
    """Trim one conversation to all budgets and count what went wrong."""
    needs = needs_of(run.messages)
    size = total(run.messages)
    for share in BUDGETS[::EVERY]:
        budget = max(1, int(share * size))
        is_possible = needs.tokens <= budget
        seen["possible"] += is_possible
        given = tool.reads(run.messages)
        before = copy.deepcopy(given)
        try:
            native = tool.fit(given, budget)
            out = tool.writes(native)
        except tool.refuses:
            seen["refused"] += is_possible
            continue
        except Exception:  # noqa: BLE001 - whatever a peer raises, it is a crash to be counted
            seen["crashed"] += is_possible
            seen["special"] += run.is_special
            continue
        if not is_possible:
            seen["silent"] += 1
            continue
        seen.update(_defects(run, needs, out, budget))
        seen["mutated"] += given != before
        seen["again"] += not _is_stable(tool, out, budget)
        if run.giant and budget >= needs.tokens + _MARK:
            _look_at_giant(tool, run, out, seen)


def _defects(run: Trajectory, needs: Needs, out: list[Message], budget: int) -> list[str]:
    said = [one.get("content") or "" for one in out if one["role"] == "user"]
    system = [one.get("content") or "" for one in out if one["role"] == "system"]
    found = {
        "paired": not is_paired(out, run.messages) or not needs.calls <= _calls(out),
        "question": needs.question not in said,
        "task": not any(needs.task in (one.get("content") or "") for one in out),
        "system": not all(text in system for text in needs.system),
        "over": total(out) > budget,
    }
    return [name for name, is_so in found.items() if is_so]


def _calls(messages: Iterable[Message]) -> set[str]:
    return {made["id"] for one in messages for made in one.get("tool_calls") or ()}


def _is_stable(tool: Tool, out: list[Message], budget: int) -> bool:
    """Trim what was trimmed."""
    try:
        again = tool.writes(tool.fit(tool.reads(out), budget))
    except Exception:  # noqa: BLE001 - refusing its own result is as bad as changing it
        return False
    return _spoken(again) == _spoken(out)


def _look_at_giant(tool: Tool, run: Trajectory, out: list[Message], seen: Counter[str]) -> None:
    """Look whether a giant that was cut can be read back."""
    kept = [one for one in out if one.get("tool_call_id") == "g0"]
    if not kept or kept[0]["content"] == run.giant:
        return
    seen["giants"] += 1
    found = _RESULT_ID.search(kept[0]["content"])
    if tool.original is not None and found is not None:
        seen["readable"] += tool.original(found[0]) == run.giant
