"""The arguments of a fit, stated once and checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from muntin.config import WindowBudgetConfig
from muntin.conversations.fitting.draft import Plan
from muntin.conversations.fitting.shortening import shortener
from muntin.conversations.recall import NEWEST, Newest
from muntin.counting import (
    REPLY_TOKENS,
    checked_counter,
    checked_tokens,
    count_tools,
    counter_name,
    counts_for,
    estimate_tokens,
    model_name,
    with_framing,
)
from muntin.errors import ConfigurationError
from muntin.messages import must_alternate
from muntin.prompts import DEFAULT_PROMPTS
from muntin.window import resolve_window

if TYPE_CHECKING:
    from muntin.counting import AnyCounter, MessageCounts
    from muntin.messages import Role
    from muntin.prompts import PromptRegistry
    from muntin.state import AgentState
    from muntin.tool_results import ToolResultStore

__all__ = ("FitRequest",)

MessagesT = TypeVar("MessagesT", bound=Sequence[Any])


@dataclass(frozen=True, eq=False)
class FitRequest(Generic[MessagesT]):
    """The arguments of `fit_messages` and `afit_messages`, which describes them.

    Raises:
        ConfigurationError: As in `fit_messages`.
    """

    messages: MessagesT
    _: KW_ONLY
    budget: int | None = None
    window: int | None = None
    reserve: int | None = None
    model: object = None
    tools: Sequence[Any] = ()
    question: str | Newest | None = NEWEST
    state: AgentState | None = None
    summarizer: Any = None
    counter: AnyCounter = None
    framing: int | None = None
    store: ToolResultStore | None = None
    prompts: PromptRegistry | None = None
    note_role: Role = "user"
    repair: bool = False
    alternate: bool | None = None
    counts: MessageCounts | None = None

    def __post_init__(self) -> None:
        _require_sequence(self.messages)
        _ = self.limits, self.measure, self.alternates

    @cached_property
    def limits(self) -> Limits:
        """Tokens of the request, of the answer, and of the window."""
        return _limits(self.budget, self.window, self.reserve, self.model)

    @cached_property
    def measure(self) -> MessageCounts:
        """The counts given, or those that the process shares for the counter."""
        if self.counts is None:
            counter = checked_counter(self.counter, model=self.model, default=estimate_tokens)
            return counts_for(with_framing(counter, self.framing))
        if self.counter is not None:
            counter = checked_counter(self.counter)
            if counter != self.counts.counter:
                raise ConfigurationError(
                    f"counts count by {counter_name(self.counts.counter)} and counter is "
                    f"{counter_name(counter)}: give one of them, or MessageCounts(counter)"
                )
        if self.framing not in (None, self.counts.framing):
            raise ConfigurationError(
                f"counts charge {self.counts.framing} tokens around a message and framing is "
                f"{self.framing!r}: give one of them"
            )
        return self.counts

    @cached_property
    def model_name(self) -> str | None:
        """Name of the model that is asked; `None` if no argument names one."""
        return model_name(self.model) or model_name(self.counter)

    @cached_property
    def alternates(self) -> bool:
        """Whether user and assistant must alternate."""
        return must_alternate(self.alternate, self.model_name)

    @cached_property
    def overhead(self) -> int:
        """Tokens of tool schemas and framing of the request."""
        return self.tool_tokens + REPLY_TOKENS

    @cached_property
    def tool_tokens(self) -> int:
        """Tokens of the tool schemas."""
        return count_tools(self.tools, counter=self.measure.counter) if self.tools else 0

    @cached_property
    def plan(self) -> Plan:
        """What the steps of a fit need to know."""
        prompts = self.prompts or DEFAULT_PROMPTS
        return Plan(
            budget=self.limits.budget,
            prompts=prompts,
            note_role=self.note_role,
            shorten=shortener(self.measure.counter, self.store, prompts),
            question=self.question,
            window=self.limits.window,
            summarizer=self.summarizer,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How many tokens a request may take."""

    budget: int
    """Tokens of the request."""
    reserve: int
    """Tokens of the window kept for the answer; 0 where a budget was given without one."""
    window: int | None
    """Tokens of the context window; `None` when unknown."""


def _limits(budget: int | None, window: int | None, reserve: int | None, model: object) -> Limits:
    for name, value in (("budget", budget), ("window", window)):
        if value is not None:
            checked_tokens(value, name)
    if reserve is not None:
        checked_tokens(reserve, "reserve", least=0)
    most = None
    if budget is None and window is None and model is not None:
        known = resolve_window(model)
        window, most = known.tokens, known.max_output
    if budget is None:
        if window is None:
            raise ConfigurationError("give a budget, or the window or model to take it from")
        if reserve is None:
            reserve = WindowBudgetConfig().output_reserve(window=window, model_max_output=most)
        if reserve >= window:
            raise ConfigurationError(
                f"a reserve of {reserve} tokens leaves nothing of a window of {window}"
            )
        budget = window - reserve
    elif window is not None and budget + (reserve or 0) > window:
        more = f" with a reserve of {reserve}" if reserve else ""
        raise ConfigurationError(f"budget {budget}{more} is over the window of {window} tokens")
    return Limits(
        budget=int(budget),
        reserve=int(reserve or 0),
        window=None if window is None else int(window),
    )


def _require_sequence(messages: object) -> None:
    """Refuse what cannot be read twice, before anything of it is read."""
    is_list = hasattr(messages, "__len__") and hasattr(messages, "__getitem__")
    if not is_list or isinstance(messages, (str, bytes, Mapping)):
        kind = type(cast("object", messages)).__name__
        raise ConfigurationError(f"messages are a list or another sequence, not a {kind}")
