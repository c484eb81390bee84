"""Fold old units of a conversation into one note: which go, and what they leave behind.

Old units go oldest first and whole. They leave `label: value` facts, newest last, and a recap
beside them when a summariser may be asked. When the question is known, older units that speak of
it stay word for word instead of newer ones that do not.

Cuts move in steps, so that while a conversation grows most calls cut where the call before did and
write the same note: the prompt prefix stays what the provider has cached.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from muntin.conversations.asking import (
    LEAST_WINDOW,
    UNKNOWN_WINDOW,
    Asking,
    within_request,
)
from muntin.conversations.digest import DigestEntry, digest
from muntin.conversations.fitting.rule_section import rules_of_what_is_out, tokens_of_rules
from muntin.conversations.fitting.shortening import cap_for, cut_results, ends_of, in_steps
from muntin.conversations.fitting.units import cut_unit, least_of
from muntin.conversations.recall import plan as plan_recall
from muntin.counting import FRAMING_TOKENS, truncate_to_tokens
from muntin.runtime import Flow, Same, window_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from muntin.conversations.fitting.draft import Draft, Plan
    from muntin.counting import TokenCounter
    from muntin.messages import Unit

__all__ = (
    "entries_of",
    "fold",
    "fold_everything",
    "retell",
    "tell_less",
    "transcript_line",
    "write_note",
)

_TALK_AHEAD = 1.0
"""Shares of the budget by which messages of people and of the assistant count as newer than they
are: tool results go before them."""
_DOCUMENT, _DOCUMENT_AHEAD = 500, 4.0
"""Tokens of a user message that holds a document, and how much newer still it counts: nobody but
the user can bring it again."""
_DIGEST = 0.5
"""Share of the room the digest may take."""
_DIGEST_BESIDE_RECALL = 0.02
"""The same when older messages are recalled word for word."""
_LEAST_DIGEST = 0.2
"""Share of the room the digest may take at least, beside however large a round in flight."""
_DIGEST_TOKENS = 4_000
"""Tokens the digest may take at most: beyond that, messages themselves say more than facts."""
_CLOSE = 6
"""Parts of a step: less space than one of them is not worth another digest."""
_ONE_FACT = 64
"""Tokens that hold at least one fact: a digest that has so much left over holds all there are."""
_TRIES = 4
"""How often a digest is written by estimate before every try is counted whole."""
_CAP_IN_TAIL = 0.20
"""Share of the room one old result may take when units are folded as well."""
_ENTRY_CHARACTERS = 20_000
"""Characters of one message that are looked at where nothing else bounds them."""
_CHARACTERS_PER_TOKEN = 100
"""Characters of old text looked at for each token that may be told of it."""
_DIGESTED_CHARACTERS = 100_000
"""Characters of old text a digest looks at, at most, beside the first request."""


def fold(draft: Draft, plan: Plan, target: int, room: int, step: int) -> Flow[None]:
    """Drop old units and leave a note, so that the draft comes to `target` if it can."""
    for index in [i for i in draft.changed if draft.may_be_restored(i)]:
        draft.restore(index)
    marked = draft.loose()
    if not marked.any():
        return
    cap = cap_for(_CAP_IN_TAIL, room)
    share = _DIGEST_BESIDE_RECALL if plan.question else _DIGEST
    allowance = min(int(share * room), _DIGEST_TOKENS)
    # The round in flight comes before the facts of old messages, except the most important ones.
    held = draft.total - int(draft.sizes_of_units()[draft.loose()].sum())
    least, fine = int(_LEAST_DIGEST * room), max(step // 4, 1)
    draft.allowance = min(allowance, max((target - held) // fine * fine, least))
    rules = tokens_of_rules(draft, plan, marked.tolist())
    choice = _choose(draft, plan, marked, target - rules, cap, step)
    draft.drop(choice.gone, "summarised", "digested")
    _cut_long(draft, plan, choice.kept, cap)
    if choice.parted is not None:
        cut_unit(draft, plan, choice.parted, choice.size)
    text = choice.text
    if plan.summarizer is not None:
        text = yield from _recap(draft, plan, text)
    write_note(draft, plan, text)
    # The sizes were estimates. What is still too much goes the same way.
    over = 0
    while draft.total > target and over < len(choice.kept):
        draft.drop([choice.kept[over]], "summarised", "digested")
        over += 1
    if over:  # the note counts what is gone, and holds its rules
        write_note(draft, plan, text)


def _cut_long(draft: Draft, plan: Plan, kept: Sequence[Unit], cap: int) -> None:
    """Cut the results over `cap` of the units that stay."""
    long = [i for i in draft.results_over(cap + FRAMING_TOKENS) if i not in draft.changed]
    if not long:
        return
    may_be_cut = {unit.first for unit in kept}
    for index in draft.shortenable(long):
        if draft.unit_of(index).first in may_be_cut:
            cut_results(draft, plan, index, cap)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """Which units go, and the one that is cut to the rest of the space."""

    gone: Sequence[Unit]
    kept: Sequence[Unit]
    """Units that stay, in the order in which they would go next."""
    parted: Unit | None = None
    """The first of `kept` when only a part of it fits."""
    size: int = 0
    """Tokens that part may take."""
    text: str = ""
    """Facts of the units that go."""


def _choose(
    draft: Draft, plan: Plan, marked: NDArray[np.bool_], target: int, cap: int, step: int
) -> _Choice:
    """Choose the units that go and those that stay, and write what the former leave behind."""
    order, sizes = _order(draft, plan, marked, cap)
    expected = int(sizes.sum())
    base = draft.total - int(draft.sizes_of_units()[marked].sum())
    noted = draft.earlier_notes()
    notes = sum(unit.first in noted for unit in order) if noted else 0

    def chosen(note: int) -> _Choice:
        excess = base + expected + note - target
        if plan.question:
            gone, stay = _not_recalled(
                draft, plan, order[notes:], sizes[notes:].tolist(), expected - max(excess, 0)
            )
            return _Choice(gone=[*order[:notes], *gone], kept=stay)
        return _cut_in(draft, order, sizes, in_steps(excess, step), notes)

    spent = draft.allowance
    choice = chosen(spent)
    text, tokens = _facts(draft, plan, choice.gone, draft.allowance)
    for _ in range(_TRIES):
        # The old part may hold fewer facts than there is room for: keep more of it word for word.
        # Where this ends depends on the old part alone, so the cut moves in whole steps.
        needed = tokens + _overhead_of_note(draft, plan, choice.gone)
        if spent - needed < step // _CLOSE:
            break
        more = chosen(needed)
        if len(more.gone) == len(choice.gone) and more.size == choice.size:
            break
        more_text, more_tokens = _facts(draft, plan, more.gone, draft.allowance)
        if more_tokens > tokens:
            break
        spent, choice, text, tokens = needed, more, more_text, more_tokens
    return replace(choice, text=text)


def _order(
    draft: Draft, plan: Plan, marked: NDArray[np.bool_], cap: int
) -> tuple[list[Unit], NDArray[np.int64]]:
    """List the units that may go in the order in which they go, and what each costs at most.

    The note of an earlier fit goes first, wherever it is: this fit writes the one note. Then tool
    rounds and messages go oldest first, where what people and the assistant said counts as newer
    than it is.
    """
    units = draft.pick(marked)
    sizes = draft.sizes_of_units(cap + FRAMING_TOKENS)[marked]
    space = plan.budget - draft.overhead
    place = sizes.cumsum().astype(np.float64)
    kinds = np.array([unit.kind for unit in units])
    place[(kinds == "user") | (kinds == "assistant")] += _TALK_AHEAD * space
    place[(kinds == "user") & (sizes > _DOCUMENT)] += _DOCUMENT_AHEAD * space
    noted, released = draft.earlier_notes(), draft.released
    if noted or released:
        place[[at for at, unit in enumerate(units) if unit.first in noted]] = -1
        place[[at for at, unit in enumerate(units) if unit.first in released]] += np.inf
    order = np.argsort(place, kind="stable")
    return [units[at] for at in order.tolist()], sizes[order]


def _cut_in(
    draft: Draft, order: Sequence[Unit], sizes: NDArray[np.int64], wanted: int, least: int
) -> _Choice:
    """Cut so that `wanted` tokens are freed: whole units, and a part of the next one."""
    if wanted <= 0:
        return _Choice(gone=order[:least], kept=order[least:])
    ends = sizes.cumsum()
    at = max(int(np.searchsorted(ends, wanted)), least)
    if at >= len(order):
        return _Choice(gone=order, kept=[])
    size = int(ends[at]) - wanted
    if size >= least_of(draft, order[at]):
        return _Choice(gone=order[:at], kept=order[at:], parted=order[at], size=size)
    return _Choice(gone=order[: at + 1], kept=order[at + 1 :])


def _not_recalled(
    draft: Draft, plan: Plan, foldable: Sequence[Unit], sizes: Sequence[int], room: int
) -> tuple[list[Unit], list[Unit]]:
    """Part what is neither recent nor asked for from what is."""
    texts = [
        "\n".join(transcript_line(entry) for entry in entries_of(draft, unit.indices))
        for unit in foldable
    ]
    kept = plan_recall(
        texts, plan.question, max_tokens=max(room, 0), counter=draft.counter, costs=sizes
    )
    recalled = set(kept.recalled)
    draft.recalled.update(i for at in recalled for i in foldable[at].indices)
    stays = set(kept.kept)
    return (
        [unit for at, unit in enumerate(foldable) if at not in stays],
        [unit for at, unit in enumerate(foldable) if at in stays],
    )


def _overhead_of_note(draft: Draft, plan: Plan, gone: Sequence[Unit]) -> int:
    """Count what a note costs beside its facts."""
    heading = plan.prompts.render(
        "conversation.digest", count=sum(len(unit.indices) for unit in gone)
    )
    return draft.counter(heading) + FRAMING_TOKENS + 2


def _facts(draft: Draft, plan: Plan, folded: Sequence[Unit], allowance: int) -> tuple[str, int]:
    """Write the facts of some units within `allowance` tokens, heading included."""
    indices = [i for unit in folded for i in unit.indices]
    heading = plan.prompts.render("conversation.digest", count=len(indices))
    left = allowance - draft.counter(heading) - FRAMING_TOKENS - 1
    if left <= 0 or not folded:
        return "", 0

    told = [draft.measured[index] for index in indices]
    written = draft.counts.recall(left, told)
    if written is None:
        written = _digest(_digested(draft, indices, left), left, draft.counter, "")
        draft.counts.remember(left, told, written)
    return written


class _ByLine:
    """Estimate a text by its lines, each counted once: a digest is tried in many lengths."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._known: dict[str, int] = {"": 0}

    def __call__(self, text: str) -> int:
        lines = text.split("\n")
        for line in lines:
            if line not in self._known:
                self._known[line] = self._counter(line)
        return sum(self._known[line] for line in lines) + len(lines) - 1


def _digest(
    entries: Sequence[DigestEntry], max_tokens: int, counter: TokenCounter, known: str
) -> tuple[str, int]:
    """Write a digest that fits by the real counter, having counted little more than once.

    Returns:
        The text, and its tokens.
    """
    estimate, aim = _ByLine(counter), max_tokens
    for _ in range(_TRIES):
        text = digest(entries, max_tokens=aim, counter=estimate, known=known)
        tokens = counter(text) if text else 0
        if tokens <= max_tokens:
            return text, tokens
        aim -= tokens - max_tokens + 1
        if aim < 1:
            break
    text = digest(entries, max_tokens=max_tokens, counter=counter, known=known)
    return text, counter(text) if text else 0


def _digested(draft: Draft, indices: Sequence[int], tokens: int) -> list[DigestEntry]:
    """Read messages for a digest of `tokens`."""
    return _entries(draft, indices, min(tokens * _CHARACTERS_PER_TOKEN, _DIGESTED_CHARACTERS))


def _entries(draft: Draft, indices: Sequence[int], characters: int) -> list[DigestEntry]:
    """Read messages newest first until enough is seen, and the first request; oldest first out."""
    entries: list[DigestEntry] = []
    newest_first = sorted(indices, reverse=True)
    for at, index in enumerate(newest_first):
        if characters <= 0:
            # What everything else was said for is read however long ago it was.
            first = draft.outline.first_user
            if first in newest_first[at:]:
                entries += reversed(list(_read(draft, first, _ENTRY_CHARACTERS)))
            break
        found = list(_read(draft, index, characters))
        characters -= sum(len(entry.text) + len(entry.arguments) for entry in found)
        entries += reversed(found)
    entries.reverse()
    return entries


def entries_of(draft: Draft, indices: Iterable[int]) -> list[DigestEntry]:
    """Read messages as entries, oldest first, each up to a sane length."""
    return [entry for index in indices for entry in _read(draft, index, _ENTRY_CHARACTERS)]


def _read(draft: Draft, index: int, characters: int) -> Iterator[DigestEntry]:
    view = draft.views[index]
    # The heading of a note from an earlier fit is not a fact.
    text = draft.body(view)
    stubs = [] if view.results else [thing.stub for thing in view.media]
    if text or stubs:
        yield DigestEntry(text=ends_of("\n".join([text, *stubs]), characters), role=view.role)
    for call in view.calls:
        yield DigestEntry(
            tool=call.name, arguments=ends_of(call.arguments, characters), call_id=call.id
        )
    for result in view.results:
        yield DigestEntry(
            text=ends_of(result.text, characters),
            role="tool",
            tool=view.name or "",
            call_id=result.call_id,
            is_error=result.is_error,
        )


def _recap(draft: Draft, plan: Plan, facts: str) -> Flow[str]:
    """Put a recap beside the facts; without a usable one, the facts stand."""
    share = draft.allowance // 2
    gone = draft.folded()
    if share < 4 * FRAMING_TOKENS or not gone:
        return facts
    reply = yield from _retold(draft, plan, gone, share)
    if not reply:
        return facts
    recap = plan.prompts.render("conversation.recap", recap=_indented(reply))
    cut = truncate_to_tokens(recap, share, draft.counter)
    if cut != recap:
        draft.notes.append("the recap was longer than its room and was cut")
    return f"{cut}\n{_facts(draft, plan, gone, draft.allowance - share)[0]}"


def _retold(draft: Draft, plan: Plan, gone: Sequence[Unit], share: int) -> Flow[str]:
    """Ask the summariser to retell units, or recall what it said; "" when it fails."""
    instruction = plan.prompts.render("conversation.summary", max_tokens=share)
    indices = [index for unit in gone for index in unit.indices]
    told = [draft.measured[index] for index in indices]
    key = (instruction, Same(plan.summarizer))
    known = draft.counts.recall(key, told)
    if known is not None:
        return known
    entries = _entries(draft, indices, share * _CHARACTERS_PER_TOKEN)
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


def transcript_line(entry: DigestEntry) -> str:
    """Write an entry as one line of a transcript; no text in it can start a line of its own."""
    return f"{entry.tool or entry.role}: {_indented(entry.arguments or entry.text)}"


def _indented(text: str) -> str:
    """Indent continuation lines, so that no text starts a line where a speaker would."""
    # Whatever somebody may take for a line break is one here.
    return "\n  ".join(text.splitlines())


def write_note(draft: Draft, plan: Plan, text: str) -> None:
    """Write the note that stands for what is left out; none when nothing is."""
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
    _, tokens = _facts(draft, plan, gone, beyond)
    rules = rules_of_what_is_out(draft, plan.budget, plan.prompts)
    needed = min(tokens + _overhead_of_note(draft, plan, gone), draft.allowance)
    return needed + (draft.counter(rules) + 1 if rules else 0)


def rewrite_count(draft: Draft, plan: Plan) -> None:
    """Write the note anew with the number of messages that are out now, or remove it at 0."""
    if draft.note is not None:
        write_note(draft, plan, draft.note_text)


def tell_less(draft: Draft, plan: Plan, most: int) -> None:
    """Write the note anew with facts for `most` tokens of it, or none when that is too little."""
    heading = plan.prompts.render("conversation.digest", count=draft.messages_out)
    heading = f"{heading}\n{rules_of_what_is_out(draft, plan.budget, plan.prompts)}"
    left = most - draft.counter(heading) - FRAMING_TOKENS - 1
    indices = [i for unit in draft.folded() for i in unit.indices]
    entries = _digested(draft, indices, left) if left > 0 else []
    write_note(draft, plan, _digest(entries, left, draft.counter, "")[0] if entries else "")


def retell(draft: Draft, plan: Plan, cut: Sequence[int], room: int) -> None:
    """Write the note anew with the facts of results that were cut as well, newest of all."""
    if draft.note is None or not cut:
        return
    heading = plan.prompts.render("conversation.digest", count=draft.messages_out)
    heading = f"{heading}\n{rules_of_what_is_out(draft, plan.budget, plan.prompts)}"
    left = draft.note_tokens + room - draft.counter(heading) - FRAMING_TOKENS - 1
    if left <= 0:
        return
    indices = [i for unit in draft.folded() for i in unit.indices]
    entries = [*_digested(draft, indices, left), *_digested(draft, cut, left)]
    known = "\n".join(draft.current_results(cut))
    text, _ = _digest(entries, left, draft.counter, known)
    if text:
        write_note(draft, plan, text)


def fold_everything(draft: Draft, plan: Plan) -> None:
    """Drop every unit that is not held."""
    gone = draft.pick(draft.loose())
    if draft.note_text:
        draft.drop(gone, "summarised", "digested")
    else:
        draft.drop(gone, "dropped", "over_budget")
    write_note(draft, plan, draft.note_text)
