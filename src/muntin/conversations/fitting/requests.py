"""Shorten the earlier messages of the open request, last of all.

The newest user message never changes. The other messages of the open request stay whole while the
request takes at most half of the space; beyond that, and when nothing else is left to cut, they are
shortened at both ends and marked. A message for which not even that fits is dropped and counted in
the note.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from muntin.conversations.digest import DigestEntry, digest
from muntin.conversations.fitting.shortening import ends_of, fair_limit
from muntin.conversations.protect import share_of_open_request
from muntin.counting import truncate_to_tokens

if TYPE_CHECKING:
    from muntin.conversations.fitting.draft import Draft, Plan

__all__ = ("cut_text", "limit_open_request", "shorten_open_request")

_FACTS = 0.4
"""Share of a shortened text that goes to the facts of the part left out."""
_CHARACTERS = 200
"""Characters of a text read for facts, for each token that stays of it."""
LEAST_REQUEST = 24
"""Tokens of a shortened request that are worth keeping."""


def limit_open_request(draft: Draft, plan: Plan, space: int) -> None:
    """Shorten the open request to half of the space.

    Args:
        draft: The conversation.
        plan: What was asked for.
        space: Tokens of the budget without leading system messages, tools and framing.
    """
    protected = draft.protected
    if not protected.earlier:
        return
    sizes = {at: draft.size[at] for at in protected.earlier}
    if protected.newest is not None:
        sizes[protected.newest] = draft.size[protected.newest]
    shares = share_of_open_request(protected, sizes, space, least=LEAST_REQUEST)
    for at, share in shares.items():
        if share == 0:
            draft.release(draft.unit_of(at))
        elif share < sizes[at]:
            cut_text(draft, plan, at, max(share, LEAST_REQUEST))


def shorten_open_request(draft: Draft, plan: Plan, budget: int) -> None:
    """Shorten the open request so that the draft comes to `budget`; drop what still is too much."""
    earlier = [at for at in draft.protected.earlier if not draft.is_out(at)]
    free = [at for at in earlier if draft.may_cut_text(at)]
    rest = draft.total - sum(draft.size[at] for at in free)
    limit = fair_limit([draft.size[at] for at in free], budget - rest)
    for at in free:
        if draft.size[at] > limit >= LEAST_REQUEST:
            cut_text(draft, plan, at, limit)
    # The beginning names the subject, so it goes last.
    for at in (*reversed(earlier[1:]), *earlier[:1]):
        if draft.total <= budget:
            return
        unit = draft.unit_of(at)
        if at in draft.verbatim or unit in draft.required:
            continue
        draft.release(unit)
        draft.drop([unit], "dropped", "over_budget")


def cut_text(draft: Draft, plan: Plan, index: int, size: int) -> None:
    """Cut the middle out of the text of a message, so that it costs at most `size` tokens."""
    if not draft.may_cut_text(index) or draft.size[index] <= size:
        return
    text = draft.views[index].text
    most = max(size - (draft.measured[index].tokens - draft.text_tokens(index)), 1)
    mark = plan.prompts.get("conversation.shortened")
    cut = truncate_to_tokens(text, most, draft.counter, keep="ends", marker=mark)
    for_facts = int(_FACTS * most)
    if for_facts >= LEAST_REQUEST:
        entry = DigestEntry(text=ends_of(text, most * _CHARACTERS), role=draft.views[index].role)
        facts = digest([entry], max_tokens=for_facts, counter=draft.counter, known=cut)
        if facts:
            told = f"{mark}{facts}\n"
            cut = truncate_to_tokens(text, most, draft.counter, keep="ends", marker=told)
    if cut and cut != text:
        draft.write_text(index, cut)
