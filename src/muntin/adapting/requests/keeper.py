"""Keep every request of a conversation inside the window: the policy behind middleware and nodes.

A request that fits is sent as it is, or as the last decision about it says. One that does not is
fitted below the budget, so that the decision holds for a while, and the decision is recorded. The
conversation itself is never touched. A decision gives way when the budget grew a lot since; when
the state that was put back is another one now, only that is written anew. What a provider charges
for a request corrects the budget of the next: decisions stay in one count, only the moment of the
next one moves.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from langchain_muntin._decisions import Saved, held, recorded
from langchain_muntin._models import ModelFacts
from langchain_muntin._restated import digest_of
from langchain_muntin._steps import Fit, sound
from muntin.adapting import second_try
from muntin.config import WindowBudgetConfig
from muntin.counting import REPLY_TOKENS, AnchoredCounter, count_tokens, count_tools, counts_for
from muntin.errors import ConfigurationError, ContextWindowExceeded
from muntin.prompts import DEFAULT_PROMPTS
from muntin.state import STATE_SHARE, AgentState, reinject

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_muntin._steps import Policy
    from muntin.adapting import Refusal
    from muntin.conversations import FittedMessages
    from muntin.counting import MessageCounts, TokenCounter
    from muntin.prompts import PromptRegistry
    from muntin.report import AssemblyReport
    from muntin.tool_results import ToolResultStore

__all__ = ("Desk", "Keeper", "Outgoing")

_LOWEST = 0.8
"""Usage may enlarge a budget by a quarter at most: some providers leave cached tokens out of what
they report."""
_LARGER = 1.5
"""Times the budget of a decision that a budget has to exceed to make another one of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What is known of one request before its messages are looked at."""

    name: str
    """Name of the model."""
    counts: MessageCounts
    """What messages cost, by the counter for the model."""
    budget: int
    """Tokens the request may take, by that counter, as usage has taught."""
    room: int
    """Tokens the request may take, by the provider's count."""
    reserve: int
    """Tokens kept free for the answer; 0 when only a budget is known."""
    window: int | None
    """Tokens of the window; `None` when only a budget is known."""
    tools: Sequence[Any]
    """Schemas that travel with it."""
    tool_tokens: int
    """What they cost."""

    def cost(self, messages: Sequence[BaseMessage]) -> int:
        """Count a whole request."""
        sizes = sum(one.tokens for one in self.counts.measure_all(messages))
        return sizes + self.tool_tokens + REPLY_TOKENS


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """What is sent, and what is to be remembered for the next time."""

    messages: Sequence[BaseMessage]
    """The messages to send, system message included."""
    tokens: int
    """What the request costs by the desk's counter."""
    saved: Saved | None
    """The decision that holds now; `None` when the conversation is sent as it is."""
    fitted: FittedMessages[Sequence[BaseMessage]] | None = None
    """The fit, where a new decision was made."""

    @property
    def report(self) -> AssemblyReport | None:
        """The account of the new decision; `None` where none was made."""
        return None if self.fitted is None else self.fitted.report


class Keeper:
    """Decide what of a conversation is sent.

    Raises:
        ConfigurationError: A number is out of range.
    """

    def __init__(
        self,
        *,
        model: Any = None,
        window: int | None = None,
        max_tokens: int | None = None,
        division: WindowBudgetConfig | None = None,
        target: float = 0.8,
        counter: Any = None,
        summarizer: Any = None,
        store: ToolResultStore | None = None,
        prompts: PromptRegistry | None = None,
    ) -> None:
        if not 0 < target <= 1:
            raise ConfigurationError(f"target is a share of the budget in (0, 1], not {target}")
        if max_tokens is not None and max_tokens < 1:
            raise ConfigurationError(f"max_tokens must be at least 1, not {max_tokens}")
        self.window = window
        self.max_tokens = max_tokens
        self.division = division or WindowBudgetConfig()
        self.target = target
        self.summarizer = summarizer
        self.store = store
        self.prompts = prompts
        self._model = None if model is None else ModelFacts.of(model)
        if self._model is not None and max_tokens is None and self._model.window(window) is None:
            raise _unknown(self._model)
        self._counter = None if counter is None else ModelFacts.of(counter).counter()
        self._counters: dict[str, TokenCounter] = {}
        self._anchors: dict[str, AnchoredCounter] = {}
        self._limits: dict[str, int] = {}
        self._accepted: dict[str, int] = {}

    # --- what is known of a request --------------------------------------------------------------

    def desk(
        self,
        model: Any = None,
        tools: Sequence[Any] = (),
        *,
        schemas: Sequence[Any] = (),
        settings: Mapping[str, Any] | None = None,
    ) -> Desk:
        """Look at the model, the tools and the settings of a request.

        Raises:
            ConfigurationError: The window is unknown.
        """
        given = self._model or ModelFacts(model=None, bound={})
        facts = given if model is None else ModelFacts.of(model)
        counts = counts_for(self._counter_for(facts))
        every = (*facts.schemas(tools), *schemas)
        room, reserve, window = self._room(facts, settings)
        return Desk(
            name=facts.name,
            counts=counts,
            budget=max(int(room / self.ratio(facts.name)), 1),
            room=room,
            reserve=reserve,
            window=window,
            tools=every,
            tool_tokens=count_tools(every, counter=counts.counter) if every else 0,
        )

    def _room(
        self, facts: ModelFacts, settings: Mapping[str, Any] | None
    ) -> tuple[int, int, int | None]:
        """Return the room, the reserve and the window."""
        learned = self._limits.get(facts.name)
        divided = facts.division(self.window, self.division, settings)
        if divided is None:
            if self.max_tokens is None:
                raise _unknown(facts)
            return min(self.max_tokens, learned or self.max_tokens), 0, None
        window, reserve = divided
        tokens = min(window.tokens, learned or window.tokens)
        # A limit learnt from a refusal may be smaller than the reserve for the told window.
        reserve = reserve if reserve < tokens else tokens // 2
        room = min(tokens - reserve, self.max_tokens or tokens)
        return room, reserve, tokens

    def counter_named(self, name: str | None) -> TokenCounter:
        """Return the counter for a model by its name; `None` before any was asked."""
        if self._counter is not None:
            return self._counter
        if name is None:
            return count_tokens
        return self._counters.get(name) or ModelFacts.of(name).counter()

    def _counter_for(self, facts: ModelFacts) -> TokenCounter:
        if self._counter is not None:
            return self._counter
        if facts.name not in self._counters:
            self._counters[facts.name] = facts.counter()
        return self._counters[facts.name]

    # --- what is sent ----------------------------------------------------------------------------

    def policy(
        self,
        desk: Desk,
        messages: Sequence[BaseMessage],
        saved: Mapping[str, Any] | None,
        *,
        state: AgentState | None = None,
    ) -> Policy[Outgoing]:
        """Decide what is sent of a conversation.

        Args:
            desk: What is known of the request.
            messages: The conversation, system message included. Not changed.
            saved: The decision of an earlier request; `None` where there is none.
            state: Put back when messages are left out; `None` puts nothing back.

        Raises:
            ContextWindowExceeded: What must be kept alone is over the budget.
        """
        decision = held(messages, saved)
        kept = None if decision is None else cast("Saved", saved)
        if decision is None or desk.budget > _LARGER * decision.budget:
            # A decision for a small model stays for its next call; a large one is sent all.
            talk = sound(messages, desk.counts, self.prompts).messages
        else:
            talk = sound(decision.messages, desk.counts, self.prompts).messages
            if digest_of(state) != decision.state:
                talk = self._with_state(desk, talk, state)
                kept = recorded(messages, talk, budget=decision.budget, state=digest_of(state))
        tokens = desk.cost(talk)
        if tokens <= desk.budget:
            return Outgoing(messages=talk, tokens=tokens, saved=kept)
        try:
            return (yield from self.smaller(desk, messages, desk.budget, state=state))
        except ContextWindowExceeded:
            if desk.room <= desk.budget:
                raise
        # Usage may have taught too much: whether this fits is for the provider to say.
        return (yield from self.smaller(desk, messages, desk.room, state=state))

    def _with_state(
        self, desk: Desk, talk: Sequence[BaseMessage], state: AgentState | None
    ) -> Sequence[BaseMessage]:
        """Put a state in place of the one that a decision holds; too large a one is left out."""
        put: Any = partial(
            reinject,
            messages=talk,
            max_tokens=max(int(STATE_SHARE * desk.budget), 1),
            counter=desk.counts.counter,
            prompts=self.prompts or DEFAULT_PROMPTS,
        )
        try:
            return put(state or AgentState())
        except ContextWindowExceeded:
            return put(AgentState())

    def after_refusal(
        self,
        desk: Desk,
        messages: Sequence[BaseMessage],
        refused: Outgoing,
        said: Refusal,
        *,
        state: AgentState | None = None,
    ) -> Policy[Outgoing]:
        """Make a smaller request of one that was refused for its size, and learn from the refusal.

        A limit that the refusal names is remembered for the model. Without one the decision is
        recorded with its own small budget, so that it ends when the known window allows more.

        Raises:
            ContextWindowExceeded: What must be kept alone is over the budget.
        """
        retry = second_try(
            said,
            refused.tokens,
            reserve=desk.reserve,
            window=desk.window,
            accepted=self._accepted.get(desk.name, 0),
        )
        if retry.charged is not None:
            self.learn(desk, refused.tokens, retry.charged)
        if retry.limit is not None:
            self._limits[desk.name] = retry.limit
        return (
            yield from self.smaller(
                desk, messages, retry.budget, state=state, recorded_for=retry.budget
            )
        )

    def smaller(
        self,
        desk: Desk,
        messages: Sequence[BaseMessage],
        budget: int,
        *,
        state: AgentState | None = None,
        recorded_for: int | None = None,
    ) -> Policy[Outgoing]:
        """Make a new decision, out of the conversation as it really was.

        Args:
            desk: What is known of the request.
            messages: The conversation.
            budget: Tokens the request may take.
            state: Put back when messages are left out; `None` puts nothing back.
            recorded_for: Budget that the decision is recorded with; `None` is the budget of the
                desk.

        Raises:
            ContextWindowExceeded: What must be kept alone is over the budget.
        """
        talk = sound(messages, desk.counts, self.prompts).messages
        try:
            fitted = yield self._fit(desk, talk, max(int(budget * self.target), 1), state)
        except ContextWindowExceeded:
            fitted = yield self._fit(desk, talk, budget, state)
        sent = cast("FittedMessages[Sequence[BaseMessage]]", fitted).messages
        return Outgoing(
            messages=sent,
            tokens=desk.cost(sent),
            saved=recorded(
                messages, sent, budget=recorded_for or desk.budget, state=digest_of(state)
            ),
            fitted=fitted,
        )

    def _fit(
        self, desk: Desk, talk: Sequence[BaseMessage], budget: int, state: AgentState | None
    ) -> Fit:
        return Fit(
            messages=talk,
            arguments={
                "budget": budget,
                "window": None if desk.window is None else max(desk.window, budget),
                "tools": desk.tools,
                "summarizer": self.summarizer,
                "store": self.store,
                "prompts": self.prompts,
                "counts": desk.counts,
                "state": state,
            },
        )

    # --- what is learned -------------------------------------------------------------------------

    def ratio(self, name: str) -> float:
        """Tokens a model's provider charges for one that is counted here."""
        anchor = self._anchors.get(name)
        return 1.0 if anchor is None else max(anchor.ratio, _LOWEST)

    def learn(self, desk: Desk, counted: int, reported: int, *, accepted: int = 0) -> None:
        """Learn from what a provider charged for a request.

        Args:
            desk: What is known of the request.
            counted: Tokens by our count.
            reported: Tokens the provider charged.
            accepted: The same if the request was accepted, 0 if it was refused.

        More than any vocabulary makes of it was not charged for what was counted here: a search
        that the provider ran, or a frame around a small request.
        """
        self._accepted[desk.name] = max(self._accepted.get(desk.name, 0), accepted)
        if reported <= AnchoredCounter.HIGHEST * counted:
            self._anchor(desk.name, desk.counts.counter).observe(counted, reported)

    def lessons(self) -> dict[str, float]:
        """Return what was learned, as a checkpoint can hold it."""
        return {name: round(anchor.ratio, 4) for name, anchor in self._anchors.items()}

    def recall(self, desk: Desk, lessons: Mapping[str, float] | None) -> bool:
        """Take over what another process learned about a model; say whether that changed anything.

        What this process learned itself is newer and stays.
        """
        known = (lessons or {}).get(desk.name)
        if known is None or desk.name in self._anchors:
            return False
        self._anchor(desk.name, desk.counts.counter).observe(1000, int(1000 * known))
        return True

    def _anchor(self, name: str, counter: Any) -> AnchoredCounter:
        if name not in self._anchors:
            self._anchors[name] = AnchoredCounter(counter, model=name)
        return self._anchors[name]


def _unknown(facts: ModelFacts) -> ConfigurationError:
    return ConfigurationError(
        f"the context window of {facts.name!r} is unknown: give window=, max_tokens=, or the model "
        f"a profile with max_input_tokens"
    )
