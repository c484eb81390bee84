"""Plan step results: the newest stay word for word, older ones become one summary in front."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

from muntin.conversations.digest import DigestEntry
from muntin.conversations.fitting import shortener
from muntin.conversations.trajectory.telling import (
    Summarize,
    Telling,
    check_numbers,
    reducer_config,
)
from muntin.counting import (
    AnyCounter,
    TokenCounter,
    checked_counter,
    tokens_of,
)
from muntin.errors import ContextWindowExceeded
from muntin.prompts import DEFAULT_PROMPTS, PromptRegistry
from muntin.runtime import Flow, arguments_of, arun, run, size_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muntin.config import MuntinConfig, ReducerConfig

__all__ = ("reduce_plan", "reduce_plan_sync")


@dataclass(frozen=True, eq=False)
class PlanRequest:
    """The arguments of `reduce_plan`, which describes them."""

    history: Sequence[str]
    _: KW_ONLY
    summarize: Summarize
    budget: int
    keep_recent: int | None = None
    counter: AnyCounter = None
    model: object = None
    prompts: PromptRegistry | None = None
    config: MuntinConfig | ReducerConfig | None = None


@arguments_of(PlanRequest)
async def reduce_plan(  # noqa: D417 - the fields of the request are its arguments
    request: PlanRequest,
) -> Sequence[str]:
    """Trim the results of plan steps: the newest stay, older ones become one summary.

    Args:
        history: Results, oldest first. Never changed.
        summarize: `(text, instruction) -> str`, sync or async; asked at most once.
        budget: Tokens all results may take together.
        keep_recent: Newest results kept word for word. One that is larger than the whole
            budget is cut. `None` takes `config`.
        counter: Counts tokens: a function of a text, a model, or the name of a model or an
            encoding. `None` takes `model`'s counter, else `count_tokens`.
        model: A model or its name, in place of `counter`.
        prompts: Texts of markers and instructions; `None` means the built-in ones.
        config: The configuration, or its `reducer` part; `None` takes the defaults.

    Returns:
        The same object when it fits, otherwise a new list.

    Raises:
        ConfigurationError: A number is negative.
        ContextWindowExceeded: The newest results are over the budget.
    """
    return await arun(_policy(request), request.summarize, size=size_of(request.history))


@arguments_of(PlanRequest)
def reduce_plan_sync(request: PlanRequest) -> Sequence[str]:
    """Trim the results of plan steps as `reduce_plan` does, without a loop.

    Raises:
        ConfigurationError: As in `reduce_plan`.
        ContextWindowExceeded: As in `reduce_plan`.

    ```python
    from muntin.conversations.trajectory import reduce_plan_sync

    results = [f"Step {n}: the depot holds {n * 7} crates." for n in range(1, 31)]
    short = reduce_plan_sync(results, summarize=lambda text, how: "all counted", budget=80)
    print(len(short), short[0])
    #> 4 [Earlier Step Results Summary]all counted
    ```
    """
    return run(_policy(request), request.summarize)


def _policy(request: PlanRequest) -> Flow[Sequence[str]]:
    history, budget = request.history, request.budget
    keep = request.keep_recent
    if keep is None:
        keep = reducer_config(request.config).plan_keep_recent
    check_numbers(budget=budget, keep_recent=keep)
    counter = checked_counter(request.counter, model=request.model)
    if tokens_of(*history, counter=counter) <= budget:
        return history
    texts = request.prompts or DEFAULT_PROMPTS
    telling = Telling(
        kind="plan", counter=counter, prompts=texts, summarizer=request.summarize, budget=budget
    )
    cut = max(len(history) - keep, 0)
    old = [telling.bare(text) for text in history[:cut]]
    recent = _recent(history[cut:], budget, counter, texts, reserved=budget // 8 if old else 0)
    if not old:
        return recent
    entries = [DigestEntry(text=text, role="step") for text in old]
    told = yield from telling.tell(old, entries, budget - tokens_of(*recent, counter=counter))
    return [told, *recent] if told else recent


def _recent(
    recent: Sequence[str],
    budget: int,
    counter: TokenCounter,
    prompts: PromptRegistry,
    *,
    reserved: int,
) -> list[str]:
    """Return the newest results inside the budget, cutting one too large for any."""
    sizes = [counter(text) for text in recent]
    kept = list(recent)
    if sum(sizes) > budget and any(size > budget for size in sizes):
        giants = [at for at, size in enumerate(sizes) if size > budget]
        left = budget - reserved - sum(size for size in sizes if size <= budget)
        shorten = shortener(counter, None, prompts)
        for at in giants:
            if left // len(giants) > 0:
                kept[at] = shorten(recent[at], sizes[at], left // len(giants), "")
    needed = tokens_of(*kept, counter=counter)
    if needed > budget:
        raise ContextWindowExceeded(
            f"the newest {len(recent)} step results", needed=needed, available=budget
        )
    return kept
