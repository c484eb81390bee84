"""Divide the budget of one context before anything is fetched, and refuse what cannot work."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from muntin.counting import checked_tokens, tokens_of
from muntin.errors import ConfigurationError, ContextWindowExceeded
from muntin.passages.placing import Frame
from muntin.passages.sources import check_sources
from muntin.text import clean_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from muntin.config import ContextConfig
    from muntin.passages.layout import Rendering
    from muntin.passages.sources import ContextSource

__all__ = ("Plan", "plan_block", "plan_of_gathered", "plan_whole")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Hold what is known before anything is fetched."""

    query: str
    """The question."""
    frame: Frame
    """The text around the candidates and the tokens for them."""
    max_tokens: int
    """The whole budget."""
    reserve_ratio: float
    """Share of it withheld for the answer; 0 for a net budget."""
    outside: int = 0
    """Tokens of it that are paid for something sent besides the text."""

    @property
    def reserve(self) -> int:
        """Tokens of the budget that are not for the text."""
        return int(self.max_tokens * self.reserve_ratio) + self.outside

    def within(self, max_tokens: int) -> Plan:
        """Return the same plan for another budget; fixed parts keep their size.

        Raises:
            ConfigurationError: The budget leaves nothing to fill.
        """
        plan = replace(self, max_tokens=max_tokens)
        limit = max_tokens - plan.reserve
        if limit <= 0:
            raise ConfigurationError(f"a budget of {max_tokens} tokens leaves nothing to fill")
        return replace(plan, frame=replace(self.frame, limit=limit))


def plan_whole(
    query: str,
    sources: Sequence[ContextSource],
    system_prompt: str,
    budget: int | None,
    config: ContextConfig,
    rendering: Rendering,
) -> Plan:
    """Divide the budget of a whole context: system prompt, sections, question.

    Raises:
        ConfigurationError: No budget is known, or a source is unknown or repeated.
    """
    max_tokens = _max_tokens(config) if budget is None else checked_tokens(budget, "budget")
    ratio = config.output_reserve_ratio if budget is None else 0.0
    limit = max_tokens - int(max_tokens * ratio)
    system = clean_text(system_prompt)
    question = clean_text(rendering.layout.question(query, rendering.prompts))
    check_sources(sources, config.source_ratios)
    fixed = tokens_of(system, question, counter=rendering.counter)
    frame = _framed([source.name for source in sources], limit, rendering, fixed)
    frame = replace(frame, system=system, question=question)
    return Plan(query=query, frame=frame, max_tokens=max_tokens, reserve_ratio=ratio)


def plan_block(
    query: str,
    sources: Sequence[ContextSource],
    budget: int | None,
    config: ContextConfig,
    rendering: Rendering,
) -> Plan:
    """Divide the budget of a block, which charges the question but does not contain it.

    Raises:
        ConfigurationError: No budget is known, or a source is unknown or repeated.
        ContextWindowExceeded: The question alone does not fit.
    """
    check_sources(sources, config.source_ratios)
    names = [source.name for source in sources]
    if budget is not None:
        limit = max(checked_tokens(budget, "budget", least=-(2**53)), 0)
        frame = _framed(names, limit, rendering)
        return Plan(query=query, frame=frame, max_tokens=limit, reserve_ratio=0.0)
    max_tokens, ratio = _max_tokens(config), config.output_reserve_ratio
    limit = max_tokens - int(max_tokens * ratio)
    asked = rendering.counter(clean_text(query))
    if asked > limit:
        raise ContextWindowExceeded("the question", needed=asked, available=limit)
    frame = _framed(names, limit - asked, rendering)
    return Plan(query=query, frame=frame, max_tokens=max_tokens, reserve_ratio=ratio, outside=asked)


def plan_of_gathered(
    query: str, names: Sequence[str], budget: int, config: ContextConfig, rendering: Rendering
) -> Plan:
    """Plan a block of candidates that were fetched already.

    Raises:
        ConfigurationError: A source has no ratio.
    """
    for name in names:
        if name not in config.source_ratios:
            known = ", ".join(config.source_ratios)
            raise ConfigurationError(
                f"source {name!r} has no ratio in source_ratios, which has: {known}"
            )
    limit = max(budget, 0)
    frame = _framed(names, limit, rendering)
    return Plan(query=query, frame=frame, max_tokens=limit, reserve_ratio=0.0)


def _framed(names: Iterable[str], limit: int, rendering: Rendering, fixed: int = 0) -> Frame:
    """Charge the headings of all sources next to what is fixed."""
    names = tuple(names)
    structure = sum(rendering.heading_tokens(name) for name in names)
    structure += rendering.counter("\n\n") * max(len(names) - 1, 0)
    return Frame(sources=names, limit=limit, overhead=fixed + structure)


def _max_tokens(config: ContextConfig) -> int:
    if config.max_tokens is None:
        raise ConfigurationError(
            "max_tokens is not set: give it, use ContextConfig.for_window(...), or pass a budget "
            "to a method that takes one"
        )
    return config.max_tokens
