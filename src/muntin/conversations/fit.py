"""Fit a conversation into a budget: the one entry point through which every adapter goes.

A conversation that fits comes back as the same object. One that does not is shrunk with the least
loss first (`escalation`), and the report says of every message what became of it and why. The
result is counted as it would be sent, framing and tool schemas included, by the counter that the
report names.

One exception to "kept messages are byte-identical": a message that holds lone surrogates has no
bytes at all (no request with it can be written as UTF-8), so it is repaired wherever it stands,
also when everything fits.

It never asks a model unless a summariser is given, and it does not persist anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from muntin.conversations.alternation import fit_alternating
from muntin.conversations.encodable import clean_messages
from muntin.conversations.fitted import FittedMessages
from muntin.conversations.fitting import Draft, FitRequest, require_room, shrink
from muntin.conversations.reasoning import BoundReasoning, lighter_for
from muntin.errors import ContextWindowExceeded
from muntin.messages import (
    cache_marks,
    compaction_alone,
    first_change,
    from_compaction,
    keep_cache_marks,
    newest_compaction,
    without_signed_thinking,
)
from muntin.messages import repair as mend
from muntin.report import Event
from muntin.runtime import Flow, arguments_of, arun, off_loop, run, size_of
from muntin.state import STATE_SHARE, reinject

if TYPE_CHECKING:
    from muntin.counting import Conversation
    from muntin.report import AssemblyReport

__all__ = ("FittedMessages", "afit_messages", "fit_messages")

MessagesT = TypeVar("MessagesT", bound=Sequence[Any])
ResultT = TypeVar("ResultT")


@arguments_of(FitRequest)
def fit_messages(  # noqa: D417 - the fields of the request are its arguments
    request: FitRequest[MessagesT],
) -> FittedMessages[MessagesT]:
    """Fit a conversation into a budget, keeping what matters most.

    Leading system messages, the newest user message and pinned messages stay as they are, and so
    do the calls of the tool round in flight. Results keep their calls, parallel calls stay
    together. Old units leave a note of facts behind.

    Args:
        messages: Messages of any shape. Never changed.
        budget: Tokens the request may take, framing and tool schemas included. `None` takes the
            window less the reserve.
        window: Tokens of the model's context window. `None` takes the one of `model` where there
            is no budget.
        reserve: Tokens of the window kept for the answer. `None` takes the default of
            `WindowBudgetConfig`, and 0 where a budget is given.
        model: A model or its name. It gives the counter and the window where they are not given,
            and decides whether reasoning is bound to the messages before it. `None` means an
            unknown model, whose reasoning is taken to be bound.
        tools: Tool schemas that are sent along; they are counted, not changed.
        question: Brings older messages that speak of it back word for word. By default the newest
            user message is the question; `None` recalls nothing and keeps the newest messages.
        state: What the agent must not forget; put back once, in place of an earlier one, when
            something had to go. `None` puts nothing back.
        summarizer: Anything `flow.summarizer_of` takes; asked for a recap next to the facts, once
            for the same old messages as long as `counts` remembers. `None` never asks a model.
        counter: Counts tokens: a function of a text, a model, or the name of a model or an
            encoding. `None` takes the counter of `model`, else `estimate_tokens`.
        framing: Tokens around one message, by the chat template of the model. `None` takes those
            of the counter: 4 for OpenAI's format, 5 for ChatML and Llama 3.
        store: Keeps the originals of results that are cut. `None` keeps none.
        prompts: Texts of notes and marks; `None` means the built-in English ones.
        note_role: Role of the note. `user` is accepted by every provider in every place.
        repair: Whether to mend broken pairs of calls and results first.
        alternate: Whether user and assistant must alternate, as chat templates of Mistral, Gemma
            and Llama 2 demand: neighbours of one role are joined. `None` decides by the name of
            `model`.
        counts: Remembers what messages cost, by a counter of its own, which `counter` must not
            contradict; `None` shares one per counter.

    Returns:
        The messages and the report.

    Raises:
        ConfigurationError: Budget, window and model are all missing, or a number is not whole or
            out of range; messages are not a sequence, or no shape reads one of them; a note cannot
            have the role; counter and counts differ, or the counter does not return whole numbers.
        ContextWindowExceeded: What must be kept is over the budget; it says by how much.

    ```python
    from muntin import fit_messages

    history = [{"role": "system", "content": "Be brief."}]
    for n in range(40):
        history.append({"role": "user", "content": f"Where is order A-{1000 + n}?"})
        history.append({"role": "assistant", "content": f"Order A-{1000 + n} left the warehouse."})
    history.append({"role": "user", "content": "And the first one?"})
    fitted = fit_messages(history, budget=300)
    print(fitted.changed, fitted.report.used <= 300)
    #> True True
    print(fitted.messages[0]["content"], fitted.messages[-1]["content"])
    #> Be brief. And the first one?
    ```
    """
    if request.summarizer is None:
        return _without_model(_fitted(request))
    return run(_fitted(request), request.summarizer)


@arguments_of(FitRequest)
async def afit_messages(request: FitRequest[MessagesT]) -> FittedMessages[MessagesT]:
    """Fit a conversation as `fit_messages` does, without blocking the event loop.

    Raises:
        ConfigurationError: As in `fit_messages`.
        ContextWindowExceeded: As in `fit_messages`.
    """
    size = size_of(request.messages)
    if request.summarizer is None:
        return await off_loop(lambda: _without_model(_fitted(request)), size=size)
    return await arun(_fitted(request), request.summarizer, size=size)


def _without_model(flow: Flow[ResultT]) -> ResultT:
    """Run a policy that asks no model."""
    try:
        next(flow)
    except StopIteration as end:
        return cast("ResultT", end.value)
    raise AssertionError("a fit without a summariser asked for a summary")


def _fitted(request: FitRequest[MessagesT]) -> Flow[FittedMessages[MessagesT]]:
    """Run the policy, and arrange roles for templates that demand it."""
    if request.alternates:
        return (yield from fit_alternating(request, _as_ordered, partial(_replay, request)))
    return (yield from _as_ordered(request))


def _as_ordered(request: FitRequest[MessagesT]) -> Flow[FittedMessages[MessagesT]]:
    """Mend, count, and shrink only when it does not fit."""
    given: Sequence[Any] = request.messages
    messages, origins = given, None
    if request.repair:
        mended = mend(given, prompts=request.plan.prompts)
        if mended.changed:
            messages, origins = mended, mended.origins
    messages, read = clean_messages(messages, request.measure)
    replaced = from_compaction(messages, [one.view for one in read.measured])
    before = messages
    given_at = range(len(messages)) if origins is None else origins
    if replaced is not None:
        messages, read = replaced.messages, None
        origins = [given_at[at] for at in replaced.origins]
    draft = _draft(messages, request, read)
    if draft.total > request.limits.budget:
        uncut = messages
        draft, messages, origins = yield from _smaller(draft, request, origins)
        messages = _with_cache_marks(draft, uncut, messages)
    if replaced is not None:
        _tell_replaced(draft, [before[at] for at in replaced.dropped])
        lost = [given_at[at] for at in replaced.dropped]
        draft.compacted = frozenset(at for at in lost if at is not None)
    out = messages if messages is given else _like(given, messages)
    return FittedMessages(
        cast("MessagesT", out),
        changed=out is not given,
        turn_open=_turn_open(draft),
        account=lambda: _account(request, draft, out, origins),
    )


def _with_cache_marks(draft: Draft, before: Sequence[Any], after: Sequence[Any]) -> Sequence[Any]:
    """Return messages with the marks of a prompt cache that a cut took away; note it."""
    marked = keep_cache_marks(before, after)
    moved = sum(map(cache_marks, marked)) - sum(map(cache_marks, after))
    if moved:
        noun = "mark" if moved == 1 else "marks"
        draft.notes.append(f"{moved} {noun} of the prompt cache moved to the last kept message")
    lost = sum(map(cache_marks, before)) - sum(map(cache_marks, marked))
    if lost > 0:
        draft.notes.append(f"{lost} marks of the prompt cache lost: too few messages are left")
    return marked


def _draft(
    messages: Sequence[Any], request: FitRequest[Any], read: Conversation | None = None
) -> Draft:
    return Draft(
        messages,
        request.measure,
        tool_tokens=request.tool_tokens,
        prompts=request.plan.prompts,
        note_role=request.note_role,
        read=read,
    )


def _tell_replaced(draft: Draft, messages: Sequence[Any]) -> None:
    """Account for the messages that a summary of the provider replaces."""
    tokens = sum(draft.counts.measure(message).tokens for message in messages)
    draft.notes.append(
        f"{len(messages)} messages ({tokens} tokens) left out: the provider's own summary "
        f"replaces them"
    )


def _smaller(
    draft: Draft, request: FitRequest[Any], origins: Sequence[int | None] | None
) -> Flow[tuple[Draft, Sequence[Any], Sequence[int | None] | None]]:
    """Make a conversation fit, bound reasoning included; return draft, messages, origins."""
    reasoning = BoundReasoning(draft.messages, request.measure, request.model_name)
    lighter = None
    if reasoning.places:
        excess = draft.total - request.limits.budget
        lighter = lighter_for(reasoning, excess, lambda messages: _trial(messages, request))
    before, given = draft.total, draft.messages
    if lighter is not None:
        draft = _draft(lighter.messages, request)
    try:
        out = yield from _reduced(draft, request)
    except ContextWindowExceeded:
        alone = _with_summary_alone(draft, request, origins)
        if alone is None:
            raise
        draft, origins = alone
        given, lighter = draft.messages, None
        out = yield from _reduced(draft, request)
    if reasoning.places and _is_stale(draft.messages, out, request):
        # A recap of the summariser may need more space than its stand-in of the trial.
        lighter = reasoning.without(reasoning.places)
        draft = _draft(lighter.messages, request)
        out = yield from _reduced(draft, request)
    if lighter is None:
        return draft, out, origins
    given_at = range(len(given)) if origins is None else origins
    lost = [given_at[at] for at in lighter.places]
    draft.unbound = frozenset(at for at in lost if at is not None)
    draft.notes.append(lighter.note)
    after, covered = before - lighter.tokens, len(lighter.places)
    draft.events.insert(
        0, Event(what="reasoning left out", before=before, after=after, covered=covered)
    )
    return draft, out, [given_at[at] for at in lighter.origins]


def _with_summary_alone(
    draft: Draft, request: FitRequest[Any], origins: Sequence[int | None] | None
) -> tuple[Draft, Sequence[int | None]] | None:
    """Leave of the message with the provider's summary only the summary.

    Returns:
        `None` if there is no summary, or nothing else in its message.
    """
    views = [one.view for one in draft.measured]
    at = newest_compaction(views)
    alone = None if at is None else compaction_alone(draft.messages[at])
    if at is None or alone == draft.messages[at]:
        return None
    answered = {call.id for call in views[at].calls}
    kept = [
        place
        for place, view in enumerate(views)
        if not any(result.call_id in answered for result in view.results)
    ]
    given_at = range(len(views)) if origins is None else origins
    messages = [alone if place == at else draft.messages[place] for place in kept]
    taken = without_signed_thinking(messages, places=range(len(messages)), anyhow=True)
    draft = _draft(taken.messages, request)
    draft.notes.append("only the provider's summary fits of the message that holds it")
    return draft, [given_at[kept[place]] for place in taken.origins]


def _reduced(draft: Draft, request: FitRequest[Any]) -> Flow[Sequence[Any]]:
    """Return the messages of a draft inside the budget."""
    if draft.total <= request.limits.budget:
        return draft.messages
    draft.read()
    return (yield from _shrunk(draft, request))


def _trial(messages: Sequence[Any], request: FitRequest[Any]) -> Sequence[Any] | None:
    """Fit messages without asking a model; `None` if it is impossible."""
    alone = replace(request, summarizer=None)
    try:
        return _without_model(_reduced(_draft(messages, alone), alone))
    except ContextWindowExceeded:
        return None


def _is_stale(messages: Sequence[Any], out: Sequence[Any], request: FitRequest[Any]) -> bool:
    """Return whether reasoning is left behind the first change."""
    change = first_change(messages, out)
    if change is None:
        return False
    return bool(BoundReasoning(out, request.measure, request.model_name).behind(change))


def _shrunk(draft: Draft, request: FitRequest[Any]) -> Flow[Sequence[Any]]:
    """Shrink a draft, and put the state back inside what was set aside for it."""
    plan, state = request.plan, request.state
    room = 0
    if state is not None:
        draft.drop_state()
        spare = plan.budget - require_room(draft, plan)
        room = min(int(STATE_SHARE * plan.budget), spare)
    before = draft.total
    yield from shrink(draft, replace(plan, budget=plan.budget - room))
    draft.tell("reduction", before)
    messages: Sequence[Any] = draft.output()
    if state is None or room < 1:
        return messages
    try:
        messages = reinject(
            state, messages, max_tokens=room, counter=draft.counter, prompts=plan.prompts
        )
    except ContextWindowExceeded:
        draft.notes.append(f"the state did not fit into the {room} tokens left for it")
        return messages
    before = draft.total
    draft.state_tokens = sum(one.tokens for one in request.measure.measure_all(messages))
    draft.state_tokens -= draft.total - draft.overhead
    draft.total += draft.state_tokens
    draft.tell("re-injection", before)
    return messages


def _account(
    request: FitRequest[Any],
    draft: Draft,
    out: Sequence[Any],
    origins: Sequence[int | None] | None,
) -> AssemblyReport:
    from muntin.conversations.fitting import report_of

    return report_of(
        draft,
        out,
        given=request.messages,
        origins=range(len(request.messages)) if origins is None else origins,
        budget=request.limits.budget,
        window=request.limits.window,
        reserve=request.limits.reserve,
        tools=request.tools,
        replay=partial(_replay, request),
    )


def _replay(request: FitRequest[Any], budget: int) -> AssemblyReport:
    """Fit the same messages into another budget, without asking a model."""
    other = replace(
        request, budget=budget, window=None, reserve=None, summarizer=None, counter=None,
        framing=None, model=request.model_name, counts=request.measure,
    )  # fmt: skip
    return _without_model(_fitted(other)).report


def _like(given: Sequence[Any], messages: Sequence[Any]) -> Sequence[Any]:
    return tuple(messages) if isinstance(given, tuple) else list(messages)


def _turn_open(draft: Draft) -> bool:
    if not draft.measured:
        return False
    last = draft.measured[-1].view
    return last.role in ("user", "tool") or bool(last.results)
