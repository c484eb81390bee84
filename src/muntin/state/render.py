"""Write a snapshot for a model: headed sections, and within a budget what matters most.

What is shown is a prefix of one list of priorities, so a larger budget never shows less: the goal
and the current step, what failed (newest first), then in turn the steps around the current one,
findings and questions (newest first). The longest prefix that fits is found by bisection, counted
as it will be sent. Single items are cut to a third of the budget when it is short, so that one
endless finding cannot push out the rest. Whatever is missing is counted in a mark.

Lines of a text are escaped where they could pass for a heading or a status. A text of white space
alone is left out.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import chain, zip_longest
from typing import TYPE_CHECKING

from muntin.counting import checked_counter, checked_tokens, count_tokens, truncate_to_tokens
from muntin.errors import ContextWindowExceeded
from muntin.prompts import DEFAULT_PROMPTS
from muntin.runtime import largest_within

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from muntin.counting import AnyCounter, TokenCounter
    from muntin.prompts import PromptRegistry
    from muntin.state.snapshot import Note, Snapshot

__all__ = ("safe_lines", "state_text")

_SECTIONS = ("goal", "plan", "findings", "failures", "questions")
_STRUCTURE = re.compile(r"^(\s*)(?=[#\[]|</?agent-state)")


def state_text(
    snapshot: Snapshot,
    max_tokens: int | None = None,
    *,
    counter: AnyCounter = count_tokens,
    prompts: PromptRegistry = DEFAULT_PROMPTS,
) -> str:
    """Write a snapshot as headed sections, within a budget if one is given.

    Raises:
        ConfigurationError: `max_tokens` is below 1.
        ContextWindowExceeded: The state is not empty and not even a mark in its place fits.
    """
    if max_tokens is not None:
        max_tokens = checked_tokens(max_tokens, "max_tokens")
    counter = checked_counter(counter)
    page = _Page(snapshot, prompts)
    order = _priorities(snapshot)
    whole = page.write(order, str)
    if max_tokens is None or counter(whole) <= max_tokens:
        return whole
    for share in (3, 6, 12):
        cut = _cutter(max(1, max_tokens // share), counter)
        kept = largest_within(
            max_tokens,
            lambda size, cut=cut: counter(page.write(order[:size], cut)),
            low=0,
            high=len(order),
        )
        if kept:
            return page.write(order[:kept], cut)
    # Too little for headings: the first thing that matters, as far as it goes.
    first = page.items[order[0]] if order else whole
    shown = truncate_to_tokens(first, max_tokens, counter)
    if not shown:
        raise ContextWindowExceeded("the state", needed=counter("…"), available=max_tokens)
    return shown


def safe_lines(text: str, indent: str = "  ") -> str:
    """Escape lines that could pass for a heading, a mark or a tag; indent all but the first."""
    lines = [_STRUCTURE.sub(r"\1\\", line) for line in text.strip().splitlines()]
    return f"\n{indent}".join(lines)


class _Page:
    """Write chosen items under their headings."""

    def __init__(self, snapshot: Snapshot, prompts: PromptRegistry) -> None:
        self._prompts = prompts
        self._heads = {name: prompts.get(f"state.{name}") for name in _SECTIONS}
        self.items: dict[tuple[str, int], str] = {}
        self._lead: dict[tuple[str, int], str] = {}
        if snapshot.goal.strip():
            self._add("goal", 0, "", snapshot.goal)
        for at, (status, text) in enumerate(_plan_lines(snapshot)):
            self._add("plan", at, f"{prompts.get(f'state.status.{status}')} ", text)
        for name in ("findings", "failures", "questions"):
            for at, note in enumerate(_notes(snapshot, name)):
                self._add(name, at, "- ", note.text)
        self._sizes = {name: sum(key[0] == name for key in self.items) for name in _SECTIONS}

    def _add(self, section: str, at: int, lead: str, text: str) -> None:
        self.items[section, at] = safe_lines(text)
        self._lead[section, at] = lead

    def write(self, chosen: Sequence[tuple[str, int]], cut: Callable[[str], str]) -> str:
        """Write the chosen items, and marks for the others."""
        shown: dict[str, list[int]] = {name: [] for name in _SECTIONS}
        for section, at in chosen:
            shown[section].append(at)
        parts: list[str] = []
        silent = 0
        for name in _SECTIONS:
            if shown[name]:
                parts.append(self._section(name, sorted(shown[name]), cut))
            else:
                silent += self._sizes[name]
        if silent:
            parts.append(self._prompts.render("state.not_shown", count=f"{silent:,}"))
        return "\n\n".join(parts)

    def _section(self, name: str, places: list[int], cut: Callable[[str], str]) -> str:
        lines = [self._heads[name]]
        # Chosen places are neighbours: newest notes, or steps around the current one.
        before, after = places[0], self._sizes[name] - 1 - places[-1]
        if before:
            mark = "state.steps_before" if name == "plan" else "state.older"
            lines.append(self._prompts.render(mark, count=f"{before:,}"))
        lines += [self._lead[name, at] + cut(self.items[name, at]) for at in places]
        if after:
            lines.append(self._prompts.render("state.steps_after", count=f"{after:,}"))
        return "\n".join(lines)


def _plan_lines(snapshot: Snapshot) -> list[tuple[str, str]]:
    """List the plan: done names that no step has, the steps, a current name that no step has."""
    at = snapshot.at
    lines = [("done", name) for name in snapshot.completed_elsewhere]
    lines += [
        ("current" if place == at else step.status, step.text)
        for place, step in enumerate(snapshot.steps)
    ]
    if snapshot.current_elsewhere:
        lines.append(("current", snapshot.current_elsewhere))
    return [(status, text) for status, text in lines if text.strip()]


def _notes(snapshot: Snapshot, name: str) -> list[Note]:
    notes = {
        "findings": snapshot.findings,
        "failures": snapshot.failures,
        "questions": snapshot.questions,
    }
    return [note for note in notes[name] if note.text.strip()]


def _priorities(snapshot: Snapshot) -> list[tuple[str, int]]:
    """List every item, the most important first."""
    plan = [("plan", at) for at in _around(_plan_lines(snapshot))]
    newest = {
        name: [(name, at) for at in reversed(range(len(_notes(snapshot, name))))]
        for name in ("findings", "failures", "questions")
    }
    first: list[tuple[str, int]] = [("goal", 0)] if snapshot.goal.strip() else []
    in_turn = zip_longest(plan[1:], newest["findings"], newest["questions"])
    rest = [item for item in chain.from_iterable(in_turn) if item is not None]
    return [*first, *plan[:1], *newest["failures"], *rest]


def _around(lines: Sequence[tuple[str, str]]) -> list[int]:
    """List places of the plan from the current one outwards, two ahead for each one behind."""
    if not lines:
        return []
    here = next((at for at, (status, _) in enumerate(lines) if status == "current"), len(lines) - 1)
    places = [here]
    behind, ahead = here - 1, here + 1
    while behind >= 0 or ahead < len(lines):
        for _ in range(2):
            if ahead < len(lines):
                places.append(ahead)
                ahead += 1
        if behind >= 0:
            places.append(behind)
            behind -= 1
    return places


def _cutter(max_tokens: int, counter: TokenCounter) -> Callable[[str], str]:
    @cache
    def cut(text: str) -> str:
        return truncate_to_tokens(text, max_tokens, counter)

    return cut
