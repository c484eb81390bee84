"""Cut tool results: old ones to a cap, those of the round in flight to what is left, fairly.

The calls stay as they are. Several results share a cap so that small ones stay whole and the large
ones are cut to the same size: a batch is never inside its cap one by one and over it together.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

from muntin.conversations.digest import DigestEntry, digest
from muntin.counting import cut_to_tokens
from muntin.runtime import fair_limit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muntin.conversations.fitting.draft import Draft, Plan, Shorten
    from muntin.conversations.outline import Repeat
    from muntin.counting import TokenCounter
    from muntin.messages import ToolResult, Unit
    from muntin.prompts import PromptRegistry
    from muntin.tool_results import ToolResultStore

__all__ = (
    "cut_results",
    "drop_repeats",
    "room_for_held",
    "shorten_held",
    "shorten_old",
    "shortener",
)

LEAST_TEXT = "…"
"""What is left of a result for which there is no space at all."""
_CAPS = (0.25, 0.12)
"""Shares of the space one old result may take, tried in this order before units are folded."""
_LEAST_MARKED = 12
"""Tokens below which a cut result has no space for a marker next to its text."""
_MARKED, _UNMARKED = 64, 40
"""Tokens of a result from which a marker leaves enough space for text, and tokens of text that are
shown below that. A result with an original that can be read is marked earlier."""
_FACTS = 0.4
"""Share of an old result's cap that goes to the facts its excerpt leaves out."""
_LEAST_FACTS = 24
"""Tokens of facts that are worth having."""
_FACT_CHARACTERS = 200
"""Characters looked at for facts, for each token of the cap."""
_SHORT = 300
"""Tokens of a result that is short, whatever the space, as long as half of the space holds it."""


def cut_results(draft: Draft, plan: Plan, index: int, cap: int, target: int = 0) -> None:
    """Cut the results of one old message to `cap` tokens together; see `_rewrite`."""
    limit = fair_limit(draft.result_sizes(index), cap)
    _rewrite(draft, index, limit, partial(_with_facts, plan, draft.counter), target)


def _rewrite(draft: Draft, index: int, limit: int, shorten: Shorten, target: int) -> None:
    """Cut results that cost more than `limit`; media go only until the draft is at `target`."""
    one = draft.measured[index]
    needed = draft.total - target
    texts: dict[str, str] = {}
    bare: list[str] = []
    every = zip(one.view.results, one.result_tokens, draft.result_sizes(index), strict=True)
    for result, tokens, size in sorted(every, key=lambda one: bool(one[0].media)):
        name, media = draft.tool_name(index, result.call_id), size - tokens
        if size <= limit or (media > limit // 2 and needed <= 0):
            continue
        if media > limit // 2:
            bare.append(result.call_id)
            text = _without_media(draft, result, tokens, limit, name, shorten)
            needed -= size - draft.counter(text)
        else:
            text = _shortened(draft, result.text, tokens, limit - media, name, shorten)
            needed -= size - limit
        texts[result.call_id] = text
    if texts:
        draft.write_results(index, texts, "oversized", bare=bare)


def _without_media(
    draft: Draft, result: ToolResult, tokens: int, limit: int, name: str, shorten: Shorten
) -> str:
    """Write a result within `limit` with a line in place of each of its media."""
    stubs = "\n".join(thing.stub for thing in result.media)
    spent = draft.counter(stubs)
    room = limit - spent - 1
    if result.text and room > 0:
        text = shorten(result.text, tokens, room, name) if tokens > room else result.text
        written = f"{text}\n{stubs}"
        if draft.counter(written) <= limit:
            return written
    return stubs if spent <= limit else LEAST_TEXT


def _shortened(
    draft: Draft, text: str, tokens: int, limit: int, name: str, shorten: Shorten
) -> str:
    """Write a text within `limit`, or as near to it as anything can be."""
    least = min(LEAST_TEXT, text, key=len)
    if limit <= draft.counter(least):
        return least
    return (shorten(text, tokens, limit, name) if tokens > limit else text) or least


def _with_facts(
    plan: Plan, counter: TokenCounter, text: str, size: int, limit: int, name: str
) -> str:
    """Cut an old result to an excerpt and, below it, the facts that the excerpt leaves out."""
    room = int(_FACTS * limit)
    if room >= _LEAST_FACTS:
        excerpt = plan.shorten(text, size, limit - room, name)
        entry = DigestEntry(text=ends_of(text, limit * _FACT_CHARACTERS), role="tool", tool=name)
        facts = digest([entry], max_tokens=room - 1, counter=counter, known=excerpt)
        left = limit - counter(facts) - 2
        if facts and left > limit - room:
            excerpt = plan.shorten(text, size, left, name)
        joined = _joined(excerpt, facts)
        if facts and counter(joined) <= limit:
            return joined
    return plan.shorten(text, size, limit, name)


def _joined(excerpt: str, facts: str) -> str:
    """Put facts below an excerpt, inside it where it is a JSON object, so that it stays JSON."""
    if excerpt.startswith("{"):
        try:
            value = json.loads(excerpt)
        except ValueError:
            return f"{excerpt}\n{facts}"
        return json.dumps({**value, "facts": facts.split("\n")}, ensure_ascii=False)
    return f"{excerpt}\n{facts}"


def ends_of(text: str, characters: int) -> str:
    """Look at both ends of a text that is too long to be looked at whole."""
    if len(text) <= characters:
        return text
    half = max(characters // 2, 1)
    return f"{text[:half]}\n{text[-half:]}"


def cap_for(share: float, room: int) -> int:
    """Turn a share of the space into a cap; a result that is short anyway is not worth cutting."""
    return max(int(share * room), min(_SHORT, room // 2))


def shorten_old(draft: Draft, plan: Plan, target: int, room: int, step: int) -> None:
    """Cut old results, oldest first, to the gentlest cap that is enough; nothing when none is.

    As much is freed as is needed, in whole steps: the last result is cut only as far as it must be.
    """
    for share in _CAPS:
        cap = cap_for(share, room)
        over = [
            index
            for index in draft.shortenable(draft.results_over(cap + draft.counts.framing))
            if index not in draft.changed and not draft.is_held(draft.unit_of(index))
        ]
        freed = {
            index: max(draft.size[index] - cap - draft.counts.framing, _media_of(draft, index))
            for index in over
        }
        if draft.total - sum(freed.values()) > target:
            continue
        wanted = in_steps(draft.total - target, step)
        for index in _words_first(draft, over):
            if wanted <= 0 and draft.total <= target:
                return
            size = draft.size[index] - draft.counts.framing - max(wanted, draft.total - target)
            cut_results(draft, plan, index, max(cap, size), target)
            wanted -= freed[index]
        return


def in_steps(tokens: int, step: int) -> int:
    """Round a number of tokens up to whole steps, 0 or more.

    Cuts in steps stay where they are while a conversation grows by less than a step, so that the
    provider's cache keeps the beginning of the prompt.
    """
    return max(-(-tokens // step) * step, 0)


def drop_repeats(draft: Draft, plan: Plan) -> None:
    """Replace results that a later identical call superseded, or that a later result repeats."""
    repeated: dict[int, dict[str, Repeat]] = {}
    for (index, call_id), why in draft.outline.repeats.marks.items():
        repeated.setdefault(index, {})[call_id] = why
    texts = {
        "superseded": plan.prompts.get("conversation.superseded"),
        "duplicate": plan.prompts.get("conversation.duplicate"),
    }
    for index in draft.shortenable(repeated):
        if draft.is_held(draft.unit_of(index)):
            continue
        marks = repeated[index]
        only_text = all(why == "duplicate" for why in marks.values())
        draft.write_results(
            index,
            {call_id: texts[why] for call_id, why in marks.items()},
            "exact_duplicate" if only_text else "superseded",
        )


def shorten_held(
    draft: Draft, plan: Plan, budget: int, among: Sequence[Unit] | None = None
) -> list[int]:
    """Cut results of held units so that the draft is inside `budget`, and return which were cut.

    Args:
        draft: The conversation.
        plan: What was asked for.
        budget: Tokens to come to, if the results alone allow it.
        among: Units whose results may be cut; `None` means all that are held.
    """
    indices = _held_results(draft, draft.held if among is None else among)
    sizes = {index: draft.result_sizes(index) for index in indices}
    every = [size for group in sizes.values() for size in group]
    bare = sum(draft.measured[index].tokens - sum(sizes[index]) for index in indices)
    rest = draft.total - sum(draft.size[index] for index in indices)
    limit = fair_limit(every, budget - rest - bare)
    for index in indices:
        draft.restore(index)
    large = [index for index in indices if max(sizes[index], default=0) > limit]
    for index in _words_first(draft, large):
        _rewrite(draft, index, limit, plan.shorten, budget)
    return [index for index in large if index in draft.changed]


def _media_of(draft: Draft, index: int) -> int:
    """Count what the media in the results of a message cost."""
    return sum(draft.result_sizes(index)) - sum(draft.measured[index].result_tokens)


def _words_first(draft: Draft, indices: Sequence[int]) -> list[int]:
    """Put messages with media last, which are kept or lost whole."""
    return sorted(indices, key=lambda index: bool(draft.views[index].media))


def room_for_held(draft: Draft, budget: int) -> int:
    """Count what is left of `budget` when every held result is cut to a marked excerpt.

    Below 0 not even that has room.
    """
    least = now = 0
    for index in _held_results(draft, draft.held):
        now += draft.size[index]
        sizes = draft.result_sizes(index)
        least += draft.measured[index].tokens - sum(max(size - _MARKED, 0) for size in sizes)
    return budget - (draft.total - now + least)


def _held_results(draft: Draft, units: Sequence[Unit]) -> list[int]:
    return draft.shortenable(index for unit in units for index in unit.indices)


def shortener(
    counter: TokenCounter, store: ToolResultStore | None, prompts: PromptRegistry
) -> Shorten:
    """Make the function that cuts one tool result and keeps its original."""
    from muntin.tool_results import truncate_tool_result

    def shorten(text: str, tokens: int, max_tokens: int, name: str) -> str:
        def known(other: str) -> int:
            # The whole text was counted already, and it may be large.
            return tokens if other is text else counter(other)

        if max_tokens < (_LEAST_MARKED if store is not None else _MARKED):
            most = max_tokens if store is not None else min(max_tokens, _UNMARKED)
            return cut_to_tokens(text, most, known, keep="ends")
        return truncate_tool_result(
            text, max_tokens, counter=known, store=store, name=name, prompts=prompts
        )

    return shorten
