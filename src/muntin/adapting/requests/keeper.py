"""Keep every request of a conversation inside the window: the policy of middleware and nodes.

A request that fits is sent unchanged, or as the last decision requires. A larger request is fitted
below the budget, so that the decision holds for several requests, and the decision is recorded. The
conversation itself is never changed. A decision ends when the budget has grown by half. If the
state that was put back has changed, only the state is written again. Provider usage changes only
the budget of the next decision.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from muntin.adapting.refusals import refusal_of, second_try
from muntin.adapting.requests.binding import (
    BOUND_TARGET,
    appended,
    as_written,
    from_summary,
    has_bound,
    is_outdated,
    readable,
)
from muntin.adapting.requests.carried import digest_of
from muntin.adapting.requests.decisions import DecisionCache, held, recorded
from muntin.adapting.requests.facts import Outgoing, RequestFacts
from muntin.adapting.requests.going_first import shortened_first
from muntin.adapting.requests.lessons import Lessons
from muntin.adapting.requests.limits import RequestPlan, limit_of
from muntin.adapting.requests.mending import mended
from muntin.adapting.requests.steps import Fit, Hook
from muntin.config import WindowBudgetConfig
from muntin.conversations import NEWEST
from muntin.counting import (
    EstimateCounter,
    checked_tokens,
    count_tokens,
    count_tools,
    counter_for,
    counts_for,
)
from muntin.errors import ConfigurationError, ContextWindowExceeded
from muntin.messages import role_rules, without_signed_thinking
from muntin.prompts import DEFAULT_PROMPTS
from muntin.state import STATE_SHARE, AgentState, reinject
from muntin.window import Window

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from muntin.adapting.refusals import Refusal
    from muntin.adapting.requests.decisions import Held, Saved
    from muntin.adapting.requests.facts import ModelFacts
    from muntin.adapting.requests.limits import BeforeCompaction, Reason
    from muntin.adapting.requests.mending import Mended
    from muntin.adapting.requests.steps import Policy
    from muntin.conversations import FittedMessages, Newest
    from muntin.counting import TokenCounter
    from muntin.messages import MessageView, Role, RoleRules
    from muntin.prompts import PromptRegistry
    from muntin.tool_results import ToolResultStore

__all__ = ("Keeper",)

_LARGER = 1.5
"""Factor by which the budget must grow before a new decision."""
_GROWTH = 0.1
"""Share of a trigger by which a request must have grown since the last decision."""


_ESTIMATE = EstimateCounter()


class Keeper:
    """Decide what of a conversation is sent.

    Args:
        model: Facts of the model that always comes next; `None` gets them with every request.
        window: Tokens of the context window; `None` takes the model's.
        budget: Tokens a request may take at most; `None` takes the window less the reserve.
        reserve: Tokens kept for the answer; `None` takes the model's limit, else `division`.
        division: How the window is divided; `None` takes the defaults.
        target: Share of the budget that a new decision brings a request down to.
        trigger: When a decision is made although the request fits; `None` for never.
        keep: What a decision brings a request down to; `None` takes `target`.
        counter: Counts tokens; `None` takes the model's counter.
        summarizer: Asked for recaps; `None` asks no model.
        store: Keeps originals of results that are cut; `None` keeps none.
        prompts: Texts of notes; `None` takes the built-in ones.
        pin: Makes a copy of a message that stays word for word.
        whole_results: Names of tools whose results stay word for word.
        first_results: Names of tools whose results are shortened before anything else is cut.
        before_compaction: Looks at a plan before it is carried out.
        question: What older messages are recalled for, as in `fit_messages`; `None` recalls none.
        roles: Order of roles that is demanded; `None` takes the rules of the model's name.
        note_role: Role of notes about removed messages.

    Raises:
        ConfigurationError: A number is out of range, or the window of `model` is unknown.
    """

    def __init__(
        self,
        *,
        model: ModelFacts | None = None,
        window: int | None = None,
        budget: int | None = None,
        reserve: int | None = None,
        division: WindowBudgetConfig | None = None,
        target: float = 0.8,
        trigger: Any = None,
        keep: Any = None,
        counter: TokenCounter | None = None,
        summarizer: Any = None,
        store: ToolResultStore | None = None,
        prompts: PromptRegistry | None = None,
        pin: Callable[[Any], Any] | None = None,
        whole_results: Collection[str] = (),
        first_results: Collection[str] = (),
        before_compaction: BeforeCompaction | None = None,
        question: str | Newest | None = NEWEST,
        roles: RoleRules | None = None,
        note_role: Role = "user",
    ) -> None:
        if not _is_share(target):
            raise ConfigurationError(f"target must be a share in (0, 1], got {target!r:.60}")
        if division is not None and not isinstance(cast("object", division), WindowBudgetConfig):
            raise ConfigurationError(
                f"division must be a WindowBudgetConfig, got {type(division).__name__}"
            )
        self.window = None if window is None else checked_tokens(window, "window")
        self.budget = None if budget is None else checked_tokens(budget, "budget")
        self.reserve = None if reserve is None else checked_tokens(reserve, "reserve", least=0)
        if self.window is not None and self.reserve is not None and self.reserve >= self.window:
            raise ConfigurationError(
                f"reserve ({self.reserve}) must be less than window ({self.window})"
            )
        self.division = division or WindowBudgetConfig()
        self.target = target
        self.trigger = limit_of(trigger, "trigger")
        self.keep = limit_of(keep, "keep")
        self.summarizer = summarizer
        self.store = store
        self.prompts = prompts
        self.before_compaction = before_compaction
        self.question = question
        self.roles = roles
        self.note_role: Role = note_role
        self.decisions = DecisionCache()
        self._pin = pin
        self._whole_results = frozenset(whole_results)
        self._first_results = frozenset(first_results)
        self._model = model
        if model is not None and self.budget is None and self._divided(model, None) is None:
            raise _unknown(model)
        self._counter = counter
        self._counters: dict[str, TokenCounter] = {}
        self.lessons = Lessons()

    # --- what is known of a request --------------------------------------------------------------

    def facts(
        self,
        model: ModelFacts | None = None,
        tools: Sequence[Any] = (),
        *,
        schemas: Sequence[Any] = (),
        settings: Mapping[str, Any] | None = None,
        set_aside: int = 0,
    ) -> RequestFacts:
        """Read the model, the tools and the settings of a request.

        Args:
            model: Facts of the model of this request; `None` takes the one of the keeper.
            tools: Tools that are sent with it.
            schemas: Schemas that are sent in addition to the tools.
            settings: Settings of this request.
            set_aside: Tokens of the budget that are needed for something else.

        Raises:
            ConfigurationError: The window is unknown.
        """
        known = model or self._model
        name = "" if known is None else known.name
        counts = counts_for(self._counter_for(known, name))
        every = (*(tools if known is None else known.schemas(tools)), *schemas)
        room, reserve, window = self._room(known, name, settings)
        return RequestFacts(
            name=name,
            counts=counts,
            budget=max(int(room / self.lessons.ratio(name)) - set_aside, 1),
            room=max(room - set_aside, 1),
            reserve=reserve,
            window=window,
            tools=every,
            tool_tokens=count_tools(every, counter=counts.counter) if every else 0,
            roles=self.roles or role_rules(name),
        )

    def _room(
        self, known: ModelFacts | None, name: str, settings: Mapping[str, Any] | None
    ) -> tuple[int, int, int | None]:
        """Return the tokens of the input, the reserve and the window."""
        learned = self.lessons.limit(name)
        divided = self._divided(known, settings)
        if divided is None:
            if self.budget is None:
                raise _unknown(known)
            return min(self.budget, learned or self.budget), self.reserve or 0, None
        window, reserve = divided
        reserve = reserve if self.reserve is None else self.reserve
        tokens = min(window.tokens, learned or window.tokens)
        # A limit learnt from a refusal may be smaller than the reserve for the configured window.
        reserve = reserve if reserve < tokens else tokens // 2
        room = min(tokens - reserve, self.budget or tokens)
        return room, reserve, tokens

    def _divided(
        self, known: ModelFacts | None, settings: Mapping[str, Any] | None
    ) -> tuple[Window, int] | None:
        if known is not None:
            return known.division(self.window, self.division, settings)
        if self.window is None:
            return None
        reserve = self.division.output_reserve(window=self.window, model_max_output=None)
        return Window(tokens=self.window), reserve

    def counter_named(self, name: str | None) -> TokenCounter:
        """Return the counter for a model by its name; `None` before any was asked."""
        if self._counter is not None:
            return self._counter
        if not name:
            return count_tokens
        return self._counters.get(name) or counter_for(name)

    def _counter_for(self, known: ModelFacts | None, name: str) -> TokenCounter:
        if self._counter is not None:
            return self._counter
        if name not in self._counters:
            self._counters[name] = _ESTIMATE if known is None else known.counter()
        return self._counters[name]

    # --- what is sent ----------------------------------------------------------------------------

    def policy(
        self,
        facts: RequestFacts,
        messages: Sequence[Any],
        saved: Mapping[str, Any] | None,
        *,
        state: AgentState | None = None,
        thread: str = "",
        asked: bool = False,
    ) -> Policy[Outgoing]:
        """Decide what is sent of a conversation.

        Args:
            facts: What is known of the request.
            messages: The conversation, system message included. Not changed.
            saved: The decision of an earlier request; `None` if there is none.
            state: Put back when messages are left out; `None` puts nothing back.
            thread: Thread of the conversation, for the hook.
            asked: Whether a compaction was asked for, although the request may fit.

        Raises:
            ContextWindowExceeded: What must be kept alone is over the budget.
        """
        decision = held(messages, saved)
        kept = None if decision is None else cast("Saved", saved)
        if decision is None:
            kept = self.decisions.find(messages)
            decision = held(messages, kept)
        if decision is not None and is_outdated(decision, messages, facts.counts):
            decision = kept = None
        whole = from_summary(messages, facts.counts)
        if decision is None or facts.budget > _LARGER * decision.budget:
            # A decision for a small model stays for its next call; a large one is sent everything.
            written = as_written(messages, decision, facts.name)
            current = from_summary(written.messages, facts.counts)
            sound = mended(current.messages, facts.counts, self.prompts)
            sound = replace(sound, notes=(*written.notes, *sound.notes))
            kept = kept if decision is not None else None
            if written.messages is not messages:
                kept = recorded(
                    messages,
                    current.messages,
                    budget=facts.budget,
                    tokens=facts.cost(current.messages),
                    state=digest_of(state),
                    before=decision,
                )
                self.decisions.add(kept)
            since = 0
        else:
            sound = mended(decision.messages, facts.counts, self.prompts)
            since = decision.tokens
            if digest_of(state) != decision.state:
                restated = self._with_state(facts, sound.messages, state)
                if has_bound(sound.messages, facts.name):
                    restated = appended(sound.messages, restated)
                sound = replace(sound, messages=restated)
                kept = recorded(
                    messages,
                    restated,
                    budget=decision.budget,
                    tokens=decision.tokens,
                    state=digest_of(state),
                    before=decision,
                )
        seen = readable(sound.messages, facts.name)
        sound = replace(sound, messages=seen.messages, notes=(*sound.notes, *seen.notes))
        arranged = facts.arranged(sound.messages)
        tokens = facts.cost(arranged)
        as_it_is = Outgoing(
            messages=arranged,
            tokens=tokens,
            saved=kept,
            notes=(*whole.notes, *sound.notes),
            replaced=whole.tokens,
        )
        reason = self._reason(facts, sound, tokens, since=since, asked=asked)
        if reason is None:
            return as_it_is
        plan = yield from self._plan(facts, messages, tokens, reason, thread)
        if plan is None:
            if tokens > facts.budget:
                raise ContextWindowExceeded(
                    "the request, whose compaction before_compaction refused",
                    needed=tokens,
                    available=facts.budget,
                )
            return as_it_is
        try:
            smaller = yield from self._carried_out(facts, plan, state=state, before=decision)
        except ContextWindowExceeded:
            if tokens <= facts.budget:
                return as_it_is
            if facts.room <= facts.budget:
                raise
        else:
            smaller = replace(smaller, replaced=whole.tokens)
            return smaller if smaller.tokens < tokens or tokens > facts.budget else as_it_is
        # Usage may have taught too much: the provider decides whether this fits.
        return (yield from self.smaller(facts, messages, facts.room, state=state, before=decision))

    def _reason(
        self, facts: RequestFacts, sound: Mended, tokens: int, *, since: int, asked: bool
    ) -> Reason | None:
        """Return why a new decision is due; `None` if it is not."""
        if tokens > facts.budget:
            return "over_budget"
        if asked:
            return "asked"
        if self.trigger is None:
            return None
        if self.trigger.kind == "messages":
            limit = int(self.trigger.amount)
            grown = tokens - since > _GROWTH * since
            return "trigger" if len(sound.messages) > limit and grown else None
        limit = facts.tokens_of(self.trigger, sound.messages)
        # A decision that could not get below the trigger is not made again at every request.
        return "trigger" if tokens > limit and tokens - since > _GROWTH * limit else None

    def _plan(
        self,
        facts: RequestFacts,
        messages: Sequence[Any],
        tokens: int,
        reason: Reason,
        thread: str,
    ) -> Policy[RequestPlan | None]:
        """Return what is to be done; `None` if the hook refuses it."""
        target = self.target
        if has_bound(messages, facts.name):
            target = min(target, BOUND_TARGET)
        keep = int(facts.budget * target)
        if self.keep is not None:
            keep = min(facts.tokens_of(self.keep, messages), facts.budget)
        if reason == "asked":
            keep = min(keep, tokens // 2)
        plan = RequestPlan(
            messages=tuple(messages),
            reason=reason,
            tokens=tokens,
            budget=facts.budget,
            keep=max(keep, 1),
            keep_whole=self._whole(facts, messages),
            thread=thread,
        )
        if self.before_compaction is None:
            return plan
        answer = yield Hook(call=partial(self.before_compaction, plan))
        if answer is not None and not isinstance(cast("object", answer), RequestPlan):
            raise ConfigurationError(
                f"before_compaction must return a RequestPlan or None, got {type(answer).__name__}"
            )
        return answer

    def _whole(self, facts: RequestFacts, messages: Sequence[Any]) -> frozenset[int]:
        """Return the positions of results that stay word for word."""
        if not self._whole_results:
            return frozenset()
        views = [one.view for one in facts.counts.measure_all(messages)]
        names = {call.id: call.name for view in views for call in view.calls}
        return frozenset(at for at, view in enumerate(views) if self._is_whole(view, names))

    def _is_whole(self, view: MessageView, names: Mapping[str, str]) -> bool:
        return any(
            (names.get(result.call_id) or view.name) in self._whole_results
            for result in view.results
        )

    def _with_state(
        self, facts: RequestFacts, messages: Sequence[Any], state: AgentState | None
    ) -> Sequence[Any]:
        """Put a state in place of the one a decision holds; one that is too large is left out."""
        put: Any = partial(
            reinject,
            messages=messages,
            max_tokens=max(int(STATE_SHARE * facts.budget), 1),
            counter=facts.counts.counter,
            prompts=self.prompts or DEFAULT_PROMPTS,
        )
        try:
            return put(state or AgentState())
        except ContextWindowExceeded:
            return put(AgentState())

    def after_error(
        self,
        error: Exception,
        facts: RequestFacts,
        messages: Sequence[Any],
        refused: Outgoing,
        *,
        state: AgentState | None = None,
    ) -> Policy[Outgoing]:
        """Make another request of one that ended in an error, to be tried once.

        A request that was refused for its size becomes smaller, one that was refused for its signed
        thinking loses it.

        Raises:
            Exception: The error, if another request would not help or is impossible.
        """
        said = refusal_of(error, tokens=refused.tokens)
        if said is not None and said.kind == "thinking":
            unsigned = self.without_thinking(facts, messages, refused, state=state)
            if unsigned is not None:
                return unsigned
        if said is None or not said.is_overflow:
            raise error
        try:
            return (yield from self.after_refusal(facts, messages, refused, said, state=state))
        except ContextWindowExceeded as exceeded:
            raise error from exceeded

    def after_refusal(
        self,
        facts: RequestFacts,
        messages: Sequence[Any],
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
            reserve=facts.reserve,
            window=facts.window,
            accepted=self.lessons.accepted(facts.name),
        )
        if retry.charged is not None:
            self.lessons.learn(facts, refused.tokens, retry.charged)
        if retry.limit is not None:
            self.lessons.remember_limit(facts.name, retry.limit)
        return (
            yield from self.smaller(
                facts,
                messages,
                retry.budget,
                state=state,
                recorded_for=retry.budget,
                before=held(messages, refused.saved),
            )
        )

    def without_thinking(
        self,
        facts: RequestFacts,
        messages: Sequence[Any],
        refused: Outgoing,
        *,
        state: AgentState | None = None,
    ) -> Outgoing | None:
        """Return a refused request without its signed thinking, which is bound to other messages.

        The decision is recorded, so that later requests of the conversation do not send it either.

        Returns:
            The request; `None` if it holds no signed thinking.
        """
        unsigned = without_signed_thinking(refused.messages, anyhow=True)
        if not unsigned.removed:
            return None
        tokens = facts.cost(unsigned.messages)
        saved = recorded(
            messages,
            unsigned.messages,
            budget=facts.budget,
            tokens=tokens,
            state=digest_of(state),
            before=held(messages, refused.saved),
        )
        self.decisions.add(saved)
        note = f"{unsigned.removed} blocks of signed thinking left out: their prefix changed"
        return replace(
            refused,
            messages=unsigned.messages,
            tokens=tokens,
            saved=saved,
            notes=(*refused.notes, note),
        )

    def smaller(
        self,
        facts: RequestFacts,
        messages: Sequence[Any],
        budget: int,
        *,
        state: AgentState | None = None,
        recorded_for: int | None = None,
        before: Held | None = None,
    ) -> Policy[Outgoing]:
        """Make a new decision from the original conversation.

        Args:
            facts: What is known of the request.
            messages: The conversation.
            budget: Tokens the request may take.
            state: Put back when messages are left out; `None` puts nothing back.
            recorded_for: Budget that the decision is recorded with; `None` is the one of the facts.
            before: The decision that held until now; `None` if there was none.

        Raises:
            ContextWindowExceeded: What must be kept alone is over the budget.
        """
        plan = RequestPlan(
            messages=tuple(messages),
            reason="over_budget",
            tokens=budget,
            budget=budget,
            keep=max(int(budget * self.target), 1),
            keep_whole=self._whole(facts, messages),
        )
        return (
            yield from self._carried_out(
                facts, plan, state=state, recorded_for=recorded_for, before=before
            )
        )

    def _carried_out(
        self,
        facts: RequestFacts,
        plan: RequestPlan,
        *,
        state: AgentState | None,
        recorded_for: int | None = None,
        before: Held | None = None,
    ) -> Policy[Outgoing]:
        messages = list(plan.messages)
        originals: dict[int, Any] = {}
        for at in plan.keep_whole:
            if self._pin is not None and 0 <= at < len(messages):
                pinned = self._pin(messages[at])
                originals[id(pinned)] = messages[at]
                messages[at] = pinned
        most = plan.budget
        budget = max(min(plan.keep, most), 1)
        went = shortened_first(
            messages,
            self._first_results,
            facts=facts,
            budget=budget,
            store=self.store,
            prompts=self.prompts,
        )
        written = as_written(went.messages, before, facts.name)
        sound = mended(written.messages, facts.counts, self.prompts)
        notes = (*written.notes, *sound.notes)
        if went.shortened:
            notes = (f"{went.shortened} results of tools that go first were shortened", *notes)
        while True:
            try:
                fitted = yield self._fit(facts, sound, budget, state)
            except ContextWindowExceeded:
                if budget >= most:
                    raise
                budget = most
                continue
            fitted = cast("FittedMessages[Sequence[Any]]", fitted)
            sent = [originals.get(id(message), message) for message in fitted.messages]
            arranged = facts.arranged(sent)
            tokens = facts.cost(arranged)
            if arranged is sent or tokens <= plan.budget:
                break
            # Messages between two of one role cost tokens of their own: these are taken off.
            most = budget = max(budget - (tokens - plan.budget), 1)
        saved = recorded(
            plan.messages,
            sent,
            budget=recorded_for or facts.budget,
            tokens=tokens,
            state=digest_of(state),
            before=before,
        )
        self.decisions.add(saved)
        return Outgoing(messages=arranged, tokens=tokens, saved=saved, fitted=fitted, notes=notes)

    def _fit(
        self, facts: RequestFacts, sound: Mended, budget: int, state: AgentState | None
    ) -> Fit:
        return Fit(
            messages=sound.messages,
            size=sound.characters,
            arguments={
                "budget": budget,
                "window": None if facts.window is None else max(facts.window, budget),
                "tools": facts.tools,
                "question": self.question,
                "note_role": self.note_role,
                "summarizer": self.summarizer,
                "store": self.store,
                "prompts": self.prompts,
                "counts": facts.counts,
                "state": state,
                "model": facts.name or None,
            },
        )


def _is_share(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return 0 < value <= 1


def _unknown(facts: ModelFacts | None) -> ConfigurationError:
    name = "the model" if facts is None or not facts.name else repr(facts.name)
    return ConfigurationError(
        f"the context window of {name} is unknown: give window=, budget=, or the model a profile "
        f"with max_input_tokens"
    )
