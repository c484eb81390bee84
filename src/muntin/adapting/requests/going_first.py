"""Shorten results of tools that may go first, before anything else of a conversation is cut."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from muntin.messages import in_flight, shape_of, units
from muntin.prompts import DEFAULT_PROMPTS
from muntin.tool_results import truncate_tool_result

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from muntin.adapting.requests.facts import RequestFacts
    from muntin.messages import MessageView
    from muntin.prompts import PromptRegistry
    from muntin.tool_results import ToolResultStore

__all__ = ("WentFirst", "shortened_first")

_TOKENS = 48
"""Tokens of a result that went first: its size, its id, a line of it."""


class WentFirst(NamedTuple):
    """A conversation in which results of some tools are short."""

    messages: Sequence[Any]
    """The messages; the very sequence that was given if nothing is shortened."""
    shortened: int
    """How many results are shortened."""


def shortened_first(
    messages: Sequence[Any],
    tools: Collection[str],
    *,
    facts: RequestFacts,
    budget: int,
    store: ToolResultStore | None,
    prompts: PromptRegistry | None,
) -> WentFirst:
    """Shorten results of some tools, the oldest first, until a conversation fits.

    Results of the round in flight stay as they are.

    Args:
        messages: The conversation. Not changed.
        tools: Names of the tools.
        facts: What is known of the request.
        budget: Tokens the request may take.
        store: Keeps the originals; `None` keeps none.
        prompts: Texts of markers; `None` takes the built-in ones.
    """
    excess = facts.cost(messages) - budget if tools else 0
    if excess <= 0:
        return WentFirst(messages, 0)
    views = [one.view for one in facts.counts.measure_all(messages)]
    names = {call.id: call.name for view in views for call in view.calls}
    running = in_flight(views, units(views))
    open_round = () if running is None else running.indices
    counter = facts.counts.counter
    out, count = list(messages), 0
    for at, view in enumerate(views):
        if excess <= 0:
            break
        if at in open_round or view.pinned:
            continue
        short: dict[str, str] = {}
        for call_id, text in _results_of(view, tools, names):
            cut = truncate_tool_result(
                text, _TOKENS, counter=counter, store=store, prompts=prompts or DEFAULT_PROMPTS
            )
            if cut is not text:
                short[call_id] = cut
                excess -= counter(text) - counter(cut)
        if short:
            out[at] = shape_of(out[at]).with_results(out[at], short)
            count += len(short)
    return WentFirst(out, count) if count else WentFirst(messages, 0)


def _results_of(
    view: MessageView, tools: Collection[str], names: dict[str, str]
) -> list[tuple[str, str]]:
    return [
        (result.call_id, result.text)
        for result in view.results
        if (names.get(result.call_id) or view.name) in tools
    ]
