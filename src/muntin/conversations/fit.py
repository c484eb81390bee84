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

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from muntin.config import WindowBudgetConfig
from muntin.conversations.encodable import clean_messages
from muntin.conversations.fitting import Draft, Plan, require_room, shortener, shrink
from muntin.conversations.recall import NEWEST, Newest
from muntin.counting import (
    AnyCounter,
    checked_counter,
    checked_tokens,
    count_tokens,
    count_tools,
    counter_name,
    counts_for,
)
from muntin.errors import ConfigurationError, ContextWindowExceeded
from muntin.messages import repair as mend
from muntin.prompts import DEFAULT_PROMPTS, PromptRegistry
from muntin.runtime import Flow, arun, run
from muntin.state import STATE_SHARE, reinject

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from muntin.counting import MessageCounts
    from muntin.messages import Role
    from muntin.report import AssemblyReport
    from muntin.state import AgentState
    from muntin.tool_results import ToolResultStore

__all__ = ("FittedMessages", "afit_messages", "fit_messages")

MessagesT = TypeVar("MessagesT", bound="Sequence[Any]")


class FittedMessages(Generic[MessagesT]):
    """Messages that fit, with the account of how they came to."""

    messages: MessagesT
    """The messages to send: the same shapes, in the same kind of sequence; the very object that
    was given when nothing had to change."""
    changed: bool
    """Whether anything had to change."""
    turn_open: bool
    """Whether the model is to speak next: somebody asked, or a tool round came back."""

    def __init__(
        self,
        messages: MessagesT,
        *,
        changed: bool,
        turn_open: bool,
        account: Callable[[], AssemblyReport],
    ) -> None:
        self.messages = messages
        self.changed = changed
        self.turn_open = turn_open
        self._account = account
        self._report: AssemblyReport | None = None

    @property
    def report(self) -> AssemblyReport:
        """What became of every message; written when it is first read."""
        if self._report is None:
            self._report = self._account()
        return self._report

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the values and the report, which is written for it if it was not read yet."""
        return (_unpickled, (self.messages, self.changed, self.turn_open, self.report))

    def __repr__(self) -> str:
        return f"FittedMessages({len(self.messages)} messages, changed={self.changed})"


def _unpickled(
    messages: Sequence[Any],
    changed: bool,  # noqa: FBT001 - pickle passes positions
    turn_open: bool,  # noqa: FBT001
    report: AssemblyReport,
) -> FittedMessages[Sequence[Any]]:
    return FittedMessages(messages, changed=changed, turn_open=turn_open, account=lambda: report)


def fit_messages(
    messages: MessagesT,
    *,
    budget: int | None = None,
    window: int | None = None,
    tools: Sequence[Any] = (),
    question: str | Newest | None = NEWEST,
    state: AgentState | None = None,
    summarizer: Any = None,
    counter: AnyCounter = count_tokens,
    store: ToolResultStore | None = None,
    prompts: PromptRegistry | None = None,
    note_role: Role = "user",
    repair: bool = False,
    counts: MessageCounts | None = None,
) -> FittedMessages[MessagesT]:
    """Fit a conversation into a budget, keeping what matters most.

    Leading system messages, the newest user message and pinned messages stay as they are, and so
    do the calls of the tool round in flight. Results keep their calls, parallel calls stay
    together. Old units leave a note of facts behind.

    Args:
        messages: Messages of any shape. Never changed.
        budget: Tokens the request may take, framing and tool schemas included. `None` takes the
            window less the output reserve.
        window: Tokens of the model's context window; `None` when unknown.
        tools: Tool schemas that are sent along; they are counted, not changed.
        question: Brings older messages that speak of it back word for word. By default the newest
            user message is the question; `None` recalls nothing and keeps the newest messages.
        state: What the agent must not forget; put back once, in place of an earlier one, when
            something had to go. `None` puts nothing back.
        summarizer: Anything `flow.summarizer_of` takes; asked for a recap next to the facts, once
            for the same old messages as long as `counts` remembers. `None` never asks a model.
        counter: Any callable from text to tokens.
        store: Keeps the originals of results that are cut. `None` keeps none.
        prompts: Texts of notes and marks; `None` means the built-in English ones.
        note_role: Role of the note. `user` is accepted by every provider in every place.
        repair: Whether to mend broken pairs of calls and results first.
        counts: Remembers what messages cost, by a counter of its own, which `counter` must not
            contradict; `None` shares one per counter.

    Returns:
        The messages and the report.

    Raises:
        ConfigurationError: Neither budget nor window is given, or one is no whole number above 0;
            messages are no sequence, or no shape reads one of them; a note cannot have the role;
            counter and counts differ, or the counter returns no whole numbers.
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
    job = _Job(
        messages, budget=budget, window=window, tools=tools, question=question, state=state,
        summarizer=summarizer, counter=counter, store=store, prompts=prompts,
        note_role=note_role, repair=repair, counts=counts,
    )  # fmt: skip
    flow = job.flow()
    if summarizer is None:
        return _without_model(flow)
    return run(flow, summarizer)


async def afit_messages(
    messages: MessagesT,
    *,
    budget: int | None = None,
    window: int | None = None,
    tools: Sequence[Any] = (),
    question: str | Newest | None = NEWEST,
    state: AgentState | None = None,
    summarizer: Any = None,
    counter: AnyCounter = count_tokens,
    store: ToolResultStore | None = None,
    prompts: PromptRegistry | None = None,
    note_role: Role = "user",
    repair: bool = False,
    counts: MessageCounts | None = None,
) -> FittedMessages[MessagesT]:
    """Fit a conversation as `fit_messages` does, waiting for an async summariser.

    Raises:
        ConfigurationError: As in `fit_messages`.
        ContextWindowExceeded: As in `fit_messages`.
    """
    job = _Job(
        messages, budget=budget, window=window, tools=tools, question=question, state=state,
        summarizer=summarizer, counter=counter, store=store, prompts=prompts,
        note_role=note_role, repair=repair, counts=counts,
    )  # fmt: skip
    flow = job.flow()
    if summarizer is None:
        return _without_model(flow)
    return await arun(flow, summarizer)


def _without_model(flow: Flow[FittedMessages[MessagesT]]) -> FittedMessages[MessagesT]:
    """Run a policy that asks nobody."""
    try:
        next(flow)
    except StopIteration as end:
        return cast("FittedMessages[MessagesT]", end.value)
    raise AssertionError("a fit without a summariser asked for a summary")


class _Job(Generic[MessagesT]):
    """One request to fit a conversation, checked."""

    def __init__(
        self,
        messages: MessagesT,
        *,
        budget: int | None,
        window: int | None,
        tools: Sequence[Any],
        question: str | Newest | None,
        state: AgentState | None,
        summarizer: object,
        counter: AnyCounter,
        store: ToolResultStore | None,
        prompts: PromptRegistry | None,
        note_role: Role,
        repair: bool,
        counts: MessageCounts | None,
    ) -> None:
        self.messages = _required_sequence(messages)
        self.budget, self.reserve = _budget(budget, window)
        self.window = window
        self.tools = tools
        self.state = state
        self.store = store
        self.repair = repair
        self.counts = _counts(counts, counter)
        self.tool_tokens = count_tools(tools, counter=self.counts.counter) if tools else 0
        self.plan = Plan(
            budget=self.budget,
            prompts=prompts or DEFAULT_PROMPTS,
            note_role=note_role,
            shorten=shortener(self.counts.counter, store, prompts or DEFAULT_PROMPTS),
            question=question,
            window=window,
            summarizer=summarizer,
        )

    def flow(self) -> Flow[FittedMessages[MessagesT]]:
        """Run the policy: mend, count, and shrink only when it does not fit."""
        given: Sequence[Any] = self.messages
        messages, origins = given, None
        if self.repair:
            mended = mend(given, prompts=self.plan.prompts)
            if mended.changed:
                messages, origins = mended, mended.origins
        messages, read = clean_messages(messages, self.counts)
        draft = Draft(
            messages,
            self.counts,
            tool_tokens=self.tool_tokens,
            prompts=self.plan.prompts,
            note_role=self.plan.note_role,
            read=read,
        )
        if draft.total > self.budget:
            draft.read()
            messages = yield from self._shrunk(draft)
        out = messages if messages is given else _like(given, messages)
        return FittedMessages(
            cast("MessagesT", out),
            changed=out is not given,
            turn_open=_turn_open(draft),
            account=lambda: self._report(draft, out, origins),
        )

    def _shrunk(self, draft: Draft) -> Flow[Sequence[Any]]:
        """Shrink a draft, and put the state back inside what was set aside for it."""
        room = 0
        if self.state is not None:
            draft.drop_state()
            spare = self.budget - require_room(draft, self.plan)
            room = min(int(STATE_SHARE * self.budget), spare)
        before = draft.total
        yield from shrink(draft, replace(self.plan, budget=self.budget - room))
        draft.tell("reduction", before)
        messages: Sequence[Any] = draft.output()
        if self.state is None or room < 1:
            return messages
        try:
            messages = reinject(
                self.state,
                messages,
                max_tokens=room,
                counter=draft.counter,
                prompts=self.plan.prompts,
            )
        except ContextWindowExceeded:
            draft.notes.append(f"the state did not fit into the {room} tokens left for it")
            return messages
        before = draft.total
        draft.state_tokens = sum(one.tokens for one in self.counts.measure_all(messages))
        draft.state_tokens -= draft.total - draft.overhead
        draft.total += draft.state_tokens
        draft.tell("re-injection", before)
        return messages

    def replay(self, budget: int) -> AssemblyReport:
        """Fit the same messages into another budget, without asking a model."""
        fitted = fit_messages(
            self.messages, budget=budget, tools=self.tools, question=self.plan.question,
            state=self.state, counts=self.counts, prompts=self.plan.prompts,
            note_role=self.plan.note_role, repair=self.repair, store=self.store,
        )  # fmt: skip
        return fitted.report

    def _report(
        self, draft: Draft, out: Sequence[Any], origins: Sequence[int | None] | None
    ) -> AssemblyReport:
        from muntin.conversations.fitting import report_of

        return report_of(
            draft,
            out,
            given=self.messages,
            origins=range(len(self.messages)) if origins is None else origins,
            budget=self.budget,
            window=self.window,
            reserve=self.reserve,
            tools=self.tools,
            replay=self.replay,
        )


def _budget(budget: int | None, window: int | None) -> tuple[int, int]:
    """Return the budget and the reserve outside it."""
    for name, value in (("budget", budget), ("window", window)):
        if value is not None:
            checked_tokens(value, name)
    budget = None if budget is None else int(budget)
    if budget is not None:
        if window is not None and budget > window:
            raise ConfigurationError(f"budget {budget} is over the window of {window} tokens")
        return budget, 0
    if window is None:
        raise ConfigurationError("give a budget, or the window to take it from")
    reserve = WindowBudgetConfig().output_reserve(window=window, model_max_output=None)
    return window - reserve, reserve


def _required_sequence(messages: MessagesT) -> MessagesT:
    """Refuse what cannot be read twice, before anything of it is read."""
    given: object = messages
    is_list = hasattr(given, "__len__") and hasattr(given, "__getitem__")
    if not is_list or isinstance(given, (str, bytes, Mapping)):
        kind = type(given).__name__
        raise ConfigurationError(f"messages are a list or another sequence, not a {kind}")
    return messages


def _counts(counts: MessageCounts | None, counter: AnyCounter) -> MessageCounts:
    """Take the counts given, which count by a counter of their own, or those of the counter."""
    if counts is None:
        return counts_for(counter)
    counter = checked_counter(counter)
    if counter is not count_tokens and counter != counts.counter:
        raise ConfigurationError(
            f"counts count by {counter_name(counts.counter)} and counter is "
            f"{counter_name(counter)}: give one of them, or MessageCounts(counter)"
        )
    return counts


def _like(given: Sequence[Any], messages: Sequence[Any]) -> Sequence[Any]:
    return tuple(messages) if isinstance(given, tuple) else list(messages)


def _turn_open(draft: Draft) -> bool:
    if not draft.measured:
        return False
    last = draft.measured[-1].view
    return last.role in ("user", "tool") or bool(last.results)
