"""What is known of one request: model, budget, tools; and what is sent in the end."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from muntin.counting import REPLY_TOKENS
from muntin.messages import AS_THEY_ARE, RoleRules, arrange_roles

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from muntin.adapting.requests.decisions import Saved
    from muntin.adapting.requests.limits import Limit
    from muntin.config import WindowBudgetConfig
    from muntin.conversations import FittedMessages
    from muntin.counting import MessageCounts, TokenCounter
    from muntin.report import AssemblyReport
    from muntin.window import Window

__all__ = ("ModelFacts", "Outgoing", "RequestFacts")


class ModelFacts(Protocol):
    """What an adapter knows of a model."""

    @property
    def name(self) -> str:
        """Name of the model, to keep apart what is learned of several."""
        ...

    def schemas(self, tools: Sequence[Any] = ()) -> tuple[Any, ...]:
        """Return the schemas that are sent with a request."""
        ...

    def division(
        self,
        given: int | None,
        config: WindowBudgetConfig,
        settings: Mapping[str, Any] | None = None,
    ) -> tuple[Window, int] | None:
        """Return the window and the tokens kept for the answer; `None` for an unknown window."""
        ...

    def counter(self) -> TokenCounter:
        """Return the counter for the model."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFacts:
    """What is known of one request before its messages are read."""

    name: str
    """Name of the model."""
    counts: MessageCounts
    """What messages cost, by the counter for the model."""
    budget: int
    """Tokens the request may take, by that counter, as usage has taught."""
    room: int
    """Tokens the request may take, by the provider's count."""
    reserve: int
    """Tokens kept free for the answer; 0 if only a budget is known."""
    window: int | None
    """Tokens of the window; `None` if only a budget is known."""
    tools: Sequence[Any]
    """Schemas that are sent with it."""
    tool_tokens: int
    """Tokens of the schemas."""
    roles: RoleRules = AS_THEY_ARE
    """What the model demands of the order of roles."""

    def cost(self, messages: Sequence[Any]) -> int:
        """Count a whole request."""
        sizes = sum(one.tokens for one in self.counts.measure_all(messages))
        return sizes + self.tool_tokens + REPLY_TOKENS

    def arranged(self, messages: Sequence[Any]) -> Sequence[Any]:
        """Return the messages with roles in the order that the model demands."""
        rules = self.roles
        return arrange_roles(messages, alternate=rules.alternate, system=rules.system)

    def tokens_of(self, limit: Limit, messages: Sequence[Any]) -> int:
        """Return the tokens a limit means for a conversation."""
        if limit.kind == "messages":
            views = [one.view for one in self.counts.measure_all(messages)]
            front = [m for m, view in zip(messages, views, strict=True) if view.role == "system"]
            rest = [m for m, view in zip(messages, views, strict=True) if view.role != "system"]
            return self.cost([*front, *rest[-int(limit.amount) :]])
        whole = self.budget if self.window is None else self.window
        return int(limit.amount) if limit.kind == "tokens" else int(limit.amount * whole)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """What is sent, and what is to be remembered for the next request."""

    messages: Sequence[Any]
    """The messages to send, system message included."""
    tokens: int
    """Tokens of the request, by the counter of the facts."""
    saved: Saved | None
    """The decision that holds now; `None` if the conversation is sent as it is."""
    fitted: FittedMessages[Sequence[Any]] | None = None
    """The fit, if a new decision was made."""
    notes: tuple[str, ...] = ()
    """What was mended or left out, for the report."""
    replaced: int = 0
    """Tokens of messages that a summary of the provider replaces: they are not sent."""

    @property
    def report(self) -> AssemblyReport | None:
        """The report of the new decision; `None` if none was made."""
        if self.fitted is None:
            return None
        report = self.fitted.report
        return replace(report, notes=(*self.notes, *report.notes)) if self.notes else report
