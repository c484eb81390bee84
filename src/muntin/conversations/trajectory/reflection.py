"""A reflection: the latest answer stays, past critiques become one list, old drafts go.

A critique newer than the latest answer is still open. It stays behind the answer, where the agent
looks for it, as long as both fit; only then does it join the list.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

from muntin.conversations.digest import DigestEntry
from muntin.conversations.trajectory.telling import Summarize, Telling, check_numbers
from muntin.counting import (
    AnyCounter,
    checked_counter,
    tokens_of,
)
from muntin.errors import ContextWindowExceeded
from muntin.prompts import DEFAULT_PROMPTS, PromptRegistry
from muntin.runtime import Flow, arguments_of, arun, run, size_of

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("reduce_reflection", "reduce_reflection_sync")

Entry = dict[str, str]
"""`{"kind": "draft" | "critique" | "refine", "text": ...}`"""


@dataclass(frozen=True, eq=False)
class ReflectionRequest:
    """The arguments of `reduce_reflection`, which describes them."""

    entries: Sequence[Entry]
    _: KW_ONLY
    summarize: Summarize
    budget: int
    counter: AnyCounter = None
    model: object = None
    prompts: PromptRegistry | None = None


@arguments_of(ReflectionRequest)
async def reduce_reflection(  # noqa: D417 - the fields of the request are its arguments
    request: ReflectionRequest,
) -> Sequence[Entry]:
    """Trim a reflection: the latest answer stays, past critiques become one list.

    Args:
        entries: Dicts with `kind` (`draft`, `critique`, `refine`) and `text`. Never changed.
        summarize: `(text, instruction) -> str`, sync or async; asked at most once, and not at all
            when there is no critique to merge.
        budget: Tokens all texts may take together.
        counter: Counts tokens: a function of a text, a model, or the name of a model or an
            encoding. `None` takes `model`'s counter, else `count_tokens`.
        model: A model or its name, in place of `counter`.
        prompts: Texts of markers and instructions; `None` means the built-in ones.

    Returns:
        The same object when it fits, otherwise a new list of the same structure.

    Raises:
        ConfigurationError: The budget is negative.
        ContextWindowExceeded: The latest answer is over the budget.
    """
    return await arun(_policy(request), request.summarize, size=size_of(request.entries))


@arguments_of(ReflectionRequest)
def reduce_reflection_sync(request: ReflectionRequest) -> Sequence[Entry]:
    """Trim a reflection as `reduce_reflection` does, without a loop.

    Raises:
        ConfigurationError: As in `reduce_reflection`.
        ContextWindowExceeded: As in `reduce_reflection`.

    ```python
    from muntin.conversations.trajectory import reduce_reflection_sync

    entries = [
        {"kind": "draft", "text": "First attempt. " * 9},
        {"kind": "critique", "text": "Too long; says the same thing twice. " * 3},
        {"kind": "refine", "text": "A shorter answer."},
    ]
    short = reduce_reflection_sync(entries, summarize=lambda text, how: "be brief", budget=40)
    print([entry["text"] for entry in short])
    #> ['[Past Critique Points]be brief', 'A shorter answer.']
    ```
    """
    return run(_policy(request), request.summarize)


def _policy(request: ReflectionRequest) -> Flow[Sequence[Entry]]:
    entries, budget = request.entries, request.budget
    check_numbers(budget=budget)
    counter = checked_counter(request.counter, model=request.model)
    if tokens_of(*(entry["text"] for entry in entries), counter=counter) <= budget:
        return entries
    telling = Telling(
        kind="reflection",
        counter=counter,
        prompts=request.prompts or DEFAULT_PROMPTS,
        summarizer=request.summarize,
        budget=budget,
    )
    latest = _latest(entries)
    answer = entries[latest]
    critiques = [e for e in entries[:latest] if e["kind"] == "critique"]
    still_open = [dict(e) for e in entries[latest + 1 :]]
    needed = counter(answer["text"])
    if needed > budget:
        raise ContextWindowExceeded("the latest answer", needed=needed, available=budget)
    mark = counter(telling.marker) if critiques else 0
    spent = needed + tokens_of(*(entry["text"] for entry in still_open), counter=counter)
    if spent + mark > budget:
        critiques, still_open, spent = [*critiques, *still_open], [], needed
    kept = [dict(answer), *still_open]
    if not critiques:
        return kept
    points = [telling.bare(entry["text"]) for entry in critiques]
    facts = [DigestEntry(text=point, role="critique") for point in points]
    told = yield from telling.tell(points, facts, budget - spent)
    return [{"kind": "critique", "text": told}, *kept] if told else kept


def _latest(entries: Sequence[Entry]) -> int:
    """Find the latest answer; without one, the last entry is what the agent lives on."""
    for at in range(len(entries) - 1, -1, -1):
        if entries[at]["kind"] != "critique":
            return at
    return len(entries) - 1
