"""Write the note in place of dropped messages: their facts, a recap, standing rules.

The facts are `label: value` lines, newest last. A recap follows them when a summariser may
be asked. The heading counts exactly the messages that are gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from muntin.conversations.asking import (
    LEAST_WINDOW,
    UNKNOWN_WINDOW,
    Asking,
    within_request,
)
from muntin.conversations.digest import DigestEntry, digest
from muntin.conversations.fitting.entries import (
    CHARACTERS_PER_TOKEN,
    digested,
    indented,
    newest_entries,
    transcript_line,
)
from muntin.conversations.fitting.recalling import question_of
from muntin.conversations.fitting.rule_section import rules_of_what_is_out
from muntin.counting import truncate_to_tokens
from muntin.runtime import Flow, Same, window_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muntin.conversations.fitting.draft import Draft, Plan
    from muntin.counting import TokenCounter
    from muntin.messages import Unit

__all__ = (
    "facts_of_units",
    "overhead_of_note",
    "reserve_for_note",
    "retell",
    "rewrite_count",
    "tell_less",
    "write_note",
    "write_recap",
)

_ONE_FACT = 64
"""Tokens that hold at least one fact: a digest that has so much left over holds all there are."""
_TRIES = 3
"""How often a digest is written by estimate before every try is counted whole."""


def overhead_of_note(draft: Draft, plan: Plan, gone: Sequence[Unit]) -> int:
    """Count what a note costs next to its facts."""
    heading = plan.prompts.render(
        "conversation.digest", count=sum(len(unit.indices) for unit in gone)
    )
    return draft.counter(heading) + draft.counts.framing + 2


def facts_of_units(
    draft: Draft, plan: Plan, folded: Sequence[Unit], allowance: int
) -> tuple[str, int]:
    """Write the facts of some units within `allowance` tokens, heading included."""
    indices = [i for unit in folded for i in unit.indices]
    heading = plan.prompts.render("conversation.digest", count=len(indices))
    left = allowance - draft.counter(heading) - draft.counts.framing - 1
    if left <= 0 or not folded:
        return "", 0

    told = [draft.measured[index] for index in indices]
    asked = question_of(draft, plan)
    key = (left, asked)
    written = draft.counts.recall(key, told)
    if written is None:
        # Another question changes little of the text, so what its lines cost is remembered too.
        lines = draft.counts.recall(_ByLine, told)
        if lines is None:
            lines = _ByLine(draft.counter)
            draft.counts.remember(_ByLine, told, lines)
        entries = digested(draft, indices, left)
        written = _digest(entries, left, draft.counter, asked=asked, lines=lines)
        draft.counts.remember(key, told, written)
    return written


class _ByLine:
    """Estimate a text by its lines, each counted once: a digest is tried in many lengths."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._known: dict[str, int] = {"": 0}

    def __call__(self, text: str) -> int:
        lines = text.split("\n")
        return sum(map(self.counted, lines)) + len(lines) - 1

    def counted(self, text: str) -> int:
        """Count a text as a whole, once."""
        if text not in self._known:
            self._known[text] = self._counter(text)
        return self._known[text]


def _digest(
    entries: Sequence[DigestEntry],
    max_tokens: int,
    counter: TokenCounter,
    *,
    asked: str,
    known: str = "",
    lines: _ByLine | None = None,
) -> tuple[str, int]:
    """Write a digest that fits by the real counter, having counted little more than once.

    Returns:
        The text, and its tokens.
    """
    estimate, aim = lines or _ByLine(counter), max_tokens
    for _ in range(_TRIES):
        text = digest(entries, max_tokens=aim, counter=estimate, known=known, asked=asked)
        tokens = estimate.counted(text)
        if tokens <= max_tokens:
            return text, tokens
        aim -= tokens - max_tokens + 1
        if aim < 1:
            break
    text = digest(entries, max_tokens=max_tokens, counter=counter, known=known, asked=asked)
    return text, counter(text) if text else 0


def write_recap(draft: Draft, plan: Plan, facts: str) -> Flow[str]:
    """Put a recap next to the facts; without a usable one, keep the facts."""
    share = draft.allowance // 2
    gone = draft.folded()
    if share < 4 * draft.counts.framing or not gone:
        return facts
    reply = yield from _retold(draft, plan, gone, share)
    if not reply:
        return facts
    recap = plan.prompts.render("conversation.recap", recap=indented(reply))
    cut = truncate_to_tokens(recap, share, draft.counter)
    if cut != recap:
        draft.notes.append("the recap was longer than its room and was cut")
    return f"{cut}\n{facts_of_units(draft, plan, gone, draft.allowance - share)[0]}"


def _retold(draft: Draft, plan: Plan, gone: Sequence[Unit], share: int) -> Flow[str]:
    """Ask the summariser to retell units, or reuse its answer; `""` if it fails."""
    instruction = plan.prompts.render("conversation.summary", max_tokens=share)
    indices = [index for unit in gone for index in unit.indices]
    told = [draft.measured[index] for index in indices]
    key = (instruction, Same(plan.summarizer))
    known = draft.counts.recall(key, told)
    if known is not None:
        return known
    entries = newest_entries(draft, indices, share * CHARACTERS_PER_TOKEN)
    lines = [transcript_line(entry) for entry in entries]
    assumed = plan.window or max(plan.budget, LEAST_WINDOW)
    window, max_output = window_of(plan.summarizer, otherwise=assumed)
    asking = Asking(
        counter=draft.counter,
        instruction=instruction,
        merge_instruction=instruction,
        brief_instruction=plan.prompts.get("compaction.brief"),
        window=window,
        max_input=UNKNOWN_WINDOW,
        max_output=max_output,
        summarizer=plan.summarizer,
    )
    record = within_request(lines, entries, asking, max_tokens=share)
    made = yield from asking.flow(record, max_tokens=share)
    if made.fault is not None:
        draft.notes.append(f"{made.problem}: facts only")
        return ""
    if made.shortened:
        draft.notes.append("the recap was longer than its room and was cut")
    draft.counts.remember(key, told, made.text)
    return made.text


def write_note(draft: Draft, plan: Plan, text: str) -> None:
    """Write the note in place of removed messages, if there are any."""
    draft.note_text = text
    if not draft.messages_out:
        draft.write_note(None)
        return
    key = "conversation.digest" if text else "conversation.omitted"
    heading = plan.prompts.render(key, count=draft.messages_out)
    rules = rules_of_what_is_out(draft, plan.budget, plan.prompts)
    parts = [part for part in (heading, text, rules) if part]
    draft.write_note(draft.measured[0].shape.note("\n".join(parts), plan.note_role))


def reserve_for_note(draft: Draft, plan: Plan) -> int:
    """Return the tokens to set aside for the note: what all facts need, or its allowance."""
    if draft.note is None:
        return 0
    gone = draft.folded()
    beyond = draft.allowance + max(draft.allowance // 2, _ONE_FACT)
    _, tokens = facts_of_units(draft, plan, gone, beyond)
    rules = rules_of_what_is_out(draft, plan.budget, plan.prompts)
    needed = min(tokens + overhead_of_note(draft, plan, gone), draft.allowance)
    return needed + (draft.counter(rules) + 1 if rules else 0)


def rewrite_count(draft: Draft, plan: Plan) -> None:
    """Write the note anew with the number of messages that are out now, or remove it at 0."""
    if draft.note is not None:
        write_note(draft, plan, draft.note_text)


def tell_less(draft: Draft, plan: Plan, most: int) -> None:
    """Write the note anew with facts for `most` tokens of it, or none when that is too little."""
    heading = plan.prompts.render("conversation.digest", count=draft.messages_out)
    heading = f"{heading}\n{rules_of_what_is_out(draft, plan.budget, plan.prompts)}"
    left = most - draft.counter(heading) - draft.counts.framing - 1
    indices = [i for unit in draft.folded() for i in unit.indices]
    entries = digested(draft, indices, left) if left > 0 else []
    asked = question_of(draft, plan)
    text = _digest(entries, left, draft.counter, asked=asked)[0] if entries else ""
    write_note(draft, plan, text)


def retell(draft: Draft, plan: Plan, cut: Sequence[int], room: int) -> None:
    """Write the note anew with the facts of results that were cut as well, newest of all."""
    if draft.note is None or not cut:
        return
    heading = plan.prompts.render("conversation.digest", count=draft.messages_out)
    heading = f"{heading}\n{rules_of_what_is_out(draft, plan.budget, plan.prompts)}"
    left = draft.note_tokens + room - draft.counter(heading) - draft.counts.framing - 1
    if left <= 0:
        return
    indices = [i for unit in draft.folded() for i in unit.indices]
    entries = [*digested(draft, indices, left), *digested(draft, cut, left)]
    known = "\n".join(draft.current_results(cut))
    asked = question_of(draft, plan)
    text, _ = _digest(entries, left, draft.counter, asked=asked, known=known)
    if text:
        write_note(draft, plan, text)
