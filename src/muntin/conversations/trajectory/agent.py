"""The tool loop: the newest rounds stay word for word, older ones become one summary.

A single round that is larger than the whole budget has its results cut. Rounds that are too large
only together raise, because word for word is what was asked for.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

from muntin.conversations.fitting import (
    Draft,
    Plan,
    entries_of,
    rules_of_what_is_out,
    shorten_held,
    shortener,
    transcript_line,
)
from muntin.conversations.reasoning import unbound
from muntin.conversations.trajectory.telling import (
    Summarize,
    Telling,
    check_numbers,
    reducer_config,
)
from muntin.counting import (
    AnyCounter,
    checked_counter,
    counts_for,
    model_name,
)
from muntin.errors import ContextWindowExceeded
from muntin.messages import alternating, must_alternate
from muntin.prompts import DEFAULT_PROMPTS, PromptRegistry
from muntin.runtime import Flow, arguments_of, arun, run, size_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from muntin.config import MuntinConfig, ReducerConfig
    from muntin.messages import Role, Unit

__all__ = ("reduce_agent", "reduce_agent_sync")


@dataclass(frozen=True, eq=False)
class AgentRequest:
    """The arguments of `reduce_agent`, which describes them."""

    messages: Sequence[Any]
    _: KW_ONLY
    summarize: Summarize
    budget: int
    keep_recent_steps: int | None = None
    turn_start: int = 0
    counter: AnyCounter = None
    model: object = None
    note_role: Role = "system"
    alternate: bool | None = None
    prompts: PromptRegistry | None = None
    config: MuntinConfig | ReducerConfig | None = None


@arguments_of(AgentRequest)
async def reduce_agent(  # noqa: D417 - the fields of the request are its arguments
    request: AgentRequest,
) -> Sequence[Any]:
    """Trim the messages of a tool loop: the newest rounds stay, older ones become one summary.

    Args:
        messages: Messages of any shape. Never changed.
        summarize: `(text, instruction) -> str`, sync or async; asked at most once,
            in a request that fits its window (the budget if it reports none).
        budget: Tokens all messages may take, framing included.
        keep_recent_steps: Newest units kept word for word. `None` takes
            `config`.
        turn_start: How many messages were there when the turn began: they stay. Leading system
            messages, the newest user message and pinned messages stay in any case.
        counter: Counts tokens: a function of a text, a model, or the name of a model or an
            encoding. `None` takes `model`'s counter, else `count_tokens`.
        model: A model or its name, in place of `counter`. It decides what reasoning is bound to
            the messages before it; `None` takes all signed reasoning to be bound.
        note_role: Role of the summary. Anthropic dicts, which know no system message in between,
            get a user message instead.
        alternate: Whether user and assistant must alternate, as chat templates of Mistral, Gemma
            and Llama 2 demand: neighbours of one role are joined. `None` decides by the name of
            `model`.
        prompts: Texts of markers and instructions; `None` means the built-in ones.
        config: The configuration, or its `reducer` part; `None` takes the defaults.

    Returns:
        The same object when it fits, otherwise a new list.

    Raises:
        ConfigurationError: A number is negative, or a note cannot have the role.
        ContextWindowExceeded: What must be kept is over the budget.
    """
    return await arun(_policy(request), request.summarize, size=size_of(request.messages))


@arguments_of(AgentRequest)
def reduce_agent_sync(request: AgentRequest) -> Sequence[Any]:
    """Trim the messages of a tool loop as `reduce_agent` does, without a loop.

    Raises:
        ConfigurationError: As in `reduce_agent`.
        ContextWindowExceeded: As in `reduce_agent`.

    ```python
    from muntin.conversations.trajectory import reduce_agent_sync

    looks = [f"Looked at flight {n}: sold out." for n in range(30)]
    steps = [{"role": "system", "content": "You book flights."}]
    steps += [{"role": "assistant", "content": look} for look in looks]
    short = reduce_agent_sync(steps, summarize=lambda text, how: "all sold out", budget=80)
    print(len(short), short[1]["content"])
    #> 5 [Attempted Steps Summary]all sold out
    ```
    """
    return run(_policy(request), request.summarize)


def _policy(request: AgentRequest) -> Flow[Sequence[Any]]:
    messages, budget, note_role = request.messages, request.budget, request.note_role
    keep, turn_start = request.keep_recent_steps, request.turn_start
    if keep is None:
        keep = reducer_config(request.config).agent_keep_recent_steps
    check_numbers(budget=budget, keep_recent_steps=keep, turn_start=turn_start)
    counter = checked_counter(request.counter, model=request.model)
    texts = request.prompts or DEFAULT_PROMPTS
    telling = Telling(
        kind="agent", counter=counter, prompts=texts, summarizer=request.summarize, budget=budget
    )
    draft = Draft(messages, counts_for(counter), tool_tokens=0, prompts=texts, note_role=note_role)
    arranged = _arranging(request)
    if draft.total <= budget and _count(draft, arranged(messages)) <= budget:
        return arranged(messages)
    draft.read()
    old, recent = _divide(draft, keep, turn_start)
    entries = entries_of(draft, [index for unit in old for index in unit.indices])
    draft.drop(old, "summarised", "compacted")
    _make_room(draft, texts, recent, budget, reserved=budget // 8 if old else 0)
    if old:
        lines = [transcript_line(entry) for entry in entries]
        room = budget - draft.total - draft.counts.framing - _between(draft, old[0], arranged)
        rules = rules_of_what_is_out(draft, budget, texts)
        if rules and counter(rules) < room:
            room -= counter(f"\n{rules}")
        else:
            rules = ""
        told = yield from telling.tell(lines, entries, room)
        told = "\n".join(filter(None, (told, rules)))
        if told:
            # One message identifies the provider: its plain texts look like any other's.
            strict = any(one.shape.name == "anthropic" for one in draft.measured)
            shape = draft.measured[old[0].first].shape
            draft.write_note(shape.note(told, "user" if strict else note_role))
        if draft.total > budget:
            draft.write_note(None)
    out = draft.output(note_before=old[0].first if old else None)
    lighter = unbound(messages, out, draft.counts, model=_name(request))
    out = arranged(out if lighter is None else lighter.messages)
    needed = _count(draft, out)
    if needed > budget:
        raise ContextWindowExceeded(
            "the protected messages and those between them", needed=needed, available=budget
        )
    return out


def _name(request: AgentRequest) -> str | None:
    return model_name(request.model) or model_name(request.counter)


def _arranging(request: AgentRequest) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """Return what arranges roles, or leaves them as they are."""
    demanded = must_alternate(request.alternate, _name(request))
    return alternating if demanded else lambda messages: messages


def _count(draft: Draft, messages: Sequence[Any]) -> int:
    return draft.overhead + sum(one.tokens for one in draft.counts.measure_all(messages))


def _between(draft: Draft, first: Unit, arranged: Callable[[Sequence[Any]], Sequence[Any]]) -> int:
    """Count what messages take that are put between others, the note included."""
    draft.write_note(draft.measured[first.first].shape.note("…", "user"))
    out = draft.output(note_before=first.first)
    more = _count(draft, arranged(out)) - _count(draft, out)
    draft.write_note(None)
    return max(more, 0)


def _divide(draft: Draft, keep: int, turn_start: int) -> tuple[list[Unit], list[Unit]]:
    """Divide units into those to summarise and those that stay because they are recent."""
    steps = [
        unit
        for unit in draft.units
        if unit.first >= turn_start
        and not any(index in draft.verbatim or index == draft.question for index in unit.indices)
    ]
    cut = max(len(steps) - keep, 0)
    # A call without its result stays: the result would find no call.
    old = [unit for unit in steps[:cut] if not unit.unanswered]
    return old, steps[cut:]


def _make_room(
    draft: Draft, texts: PromptRegistry, recent: Sequence[Unit], budget: int, *, reserved: int
) -> None:
    """See that what stays is inside the budget, cutting results of rounds too large for any."""
    if draft.total <= budget:
        return
    giants = [unit for unit in recent if _tokens(draft, (unit,)) > budget]
    if giants:
        shorten = shortener(draft.counter, None, texts)
        plan = Plan(budget=budget, prompts=texts, shorten=shorten)
        shorten_held(draft, plan, budget - reserved, giants)
    if draft.total > budget:
        steps = _tokens(draft, recent)
        raise ContextWindowExceeded(
            f"the protected messages and the newest {len(recent)} steps",
            needed=draft.total,
            available=budget,
            parts={"protected": draft.total - steps, "newest steps": steps},
        )


def _tokens(draft: Draft, found: Iterable[Unit]) -> int:
    return sum(draft.size[index] for unit in found for index in unit.indices)
