"""Put the saved state back into a conversation after compaction: once, and within its own budget.

The block goes directly before the newest user message: what comes before it stays byte for byte
what the provider has cached, the newest message stays last, and no call is parted from its results.
It is written as a user message, because a system message in the middle is refused by some
providers. It names the decided plan and the next step, so that the model does not plan again.

A block is recognised by its tag and by the digest of its own content, so it is replaced and never
piled up, whatever language it was written in, and no text that merely looks like one is touched.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

from muntin.counting import (
    checked_counter,
    checked_tokens,
    count_message,
    count_tokens,
    truncate_to_tokens,
)
from muntin.errors import ContextWindowExceeded
from muntin.messages import cut_points, newest_user, opening, shape_of, units
from muntin.prompts import DEFAULT_PROMPTS
from muntin.state.render import safe_lines, state_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muntin.counting import AnyCounter, TokenCounter
    from muntin.messages import MessageView
    from muntin.prompts import PromptRegistry
    from muntin.state.agent_state import AgentState
    from muntin.state.snapshot import Snapshot

__all__ = ("STATE_SHARE", "is_state_block", "reinject", "state_block")

STATE_SHARE = 0.15
"""Share of a budget that a state may take when it is put back."""

_TAG = "agent-state"
_BLOCK = re.compile(
    rf'<{_TAG} digest="(?P<digest>[0-9a-f]{{12}})">\n(?P<body>.*)\n</{_TAG}>', re.DOTALL
)
_STEP_TOKENS = 24
"""Tokens of the current step's text that the closing line repeats at most."""


def reinject(
    state: AgentState,
    messages: Sequence[Any],
    *,
    max_tokens: int,
    counter: AnyCounter = None,
    model: object = None,
    prompts: PromptRegistry = DEFAULT_PROMPTS,
) -> Sequence[Any]:
    """Put a state into a conversation, in place of an earlier one.

    Args:
        state: What to put in. An empty one takes an earlier block out.
        messages: The conversation, in any shape `shapes` reads.
        max_tokens: Tokens the block may take as a message, framing included.
        counter: Counts tokens: a function of a text, a model, or the name of a model or an
            encoding. None takes `model`'s counter, else `count_tokens`.
        model: A model or its name, in place of `counter`.
        prompts: The words of the block.

    Returns:
        The same object where nothing changes, else a new list of the same shape. Applying it
        again changes nothing.

    Raises:
        ConfigurationError: `max_tokens` is below 1, or the state holds what it cannot hold.
        ContextWindowExceeded: The shortest block does not fit.

    ```python
    from muntin import AgentState, reinject

    state = AgentState(goal="Rebook", plan=["find it", "change it"], completed_steps=["find it"])
    messages = [{"role": "user", "content": "Go on."}]
    for message in reinject(state, messages, max_tokens=120):
        print(message["content"])
    #> <agent-state digest="6f7f1331a89b">
    #> [Context was compacted. This is the saved state of the work, not a new request.]
    #>
    #> ## Current Goal
    #> Rebook
    #>
    #> ## Plan
    #> [DONE] find it
    #> [CURRENT] change it
    #>
    #> [The plan is decided, do not make it again: continue at step 2 of 2, change it]
    #> </agent-state>
    #> Go on.
    ```
    """
    max_tokens = checked_tokens(max_tokens, "max_tokens")
    views = [shape_of(message).view(message) for message in messages]
    ours = [at for at, view in enumerate(views) if _is_block(view)]
    others = [at for at in range(len(messages)) if at not in set(ours)]
    snapshot = state.snapshot()
    if snapshot.is_empty:
        return [messages[at] for at in others] if ours else messages
    rest = [messages[at] for at in others]
    place = _place([views[at] for at in others])
    note = _note(snapshot, rest, max_tokens, checked_counter(counter, model=model), prompts)
    text = shape_of(note).view(note).text
    if [place] == ours and views[place].text == text:
        return messages
    return [*rest[:place], note, *rest[place:]]


def state_block(
    snapshot: Snapshot,
    max_tokens: int | None = None,
    *,
    counter: AnyCounter = count_tokens,
    prompts: PromptRegistry = DEFAULT_PROMPTS,
) -> str:
    """Write the block that `reinject` puts into a conversation.

    Raises:
        ContextWindowExceeded: The shortest block does not fit.
    """
    opening = prompts.get("state.reinject.opening")
    closing = _closing(snapshot, prompts)
    if max_tokens is None:
        return _framed(opening, state_text(snapshot, prompts=prompts), closing)
    max_tokens = checked_tokens(max_tokens, "max_tokens")
    counter = checked_counter(counter)
    goal = safe_lines(snapshot.goal)
    made: list[str] = []
    # The goal comes first: where it would be cut, the lines around the state are left out.
    for before, after in ((opening, closing), ("", closing), ("", "")):
        body = _body(snapshot, max_tokens, before, after, counter, prompts)
        if body:
            made.append(_framed(before, body, after))
            if goal in body:
                return made[-1]
    bare = _framed("", "", closing)
    if counter(bare) <= max_tokens:
        made.append(bare)
    if made:
        return made[0]
    raise ContextWindowExceeded("the state block", needed=counter(bare), available=max_tokens)


def _body(
    snapshot: Snapshot,
    max_tokens: int,
    opening: str,
    closing: str,
    counter: TokenCounter,
    prompts: PromptRegistry,
) -> str:
    """Write as much of a state as fits between two lines; "" if nothing does."""
    room = max_tokens - counter(_framed(opening, "", closing))
    while room > 0:
        body = state_text(snapshot, room, counter=counter, prompts=prompts)
        size = counter(_framed(opening, body, closing))
        if size <= max_tokens:
            return body
        room -= max(1, size - max_tokens)
    return ""


def is_state_block(text: str) -> bool:
    """Return whether a text is a block this module wrote, unchanged."""
    block = _BLOCK.fullmatch(text)
    return block is not None and block["digest"] == _digest(block["body"])


def _is_block(view: MessageView) -> bool:
    return view.role in ("user", "system") and not view.results and is_state_block(view.text)


def _place(views: Sequence[MessageView]) -> int:
    """Find the last place before the newest user message that parts no call from its results."""
    newest = newest_user(views)
    if newest is None:
        return opening(views)
    return max(point for point in cut_points(units(views), len(views)) if point <= newest)


def _note(
    snapshot: Snapshot,
    messages: Sequence[Any],
    max_tokens: int,
    counter: TokenCounter,
    prompts: PromptRegistry,
) -> Any:
    """Make the message, framing inside the budget."""
    from muntin.messages import MESSAGE

    shape = shape_of(messages[-1]) if messages else MESSAGE
    room = max_tokens
    while True:
        note = shape.note(state_block(snapshot, room, counter=counter, prompts=prompts), "user")
        size = count_message(note, counter=counter)
        if size <= max_tokens:
            return note
        room -= max(1, size - max_tokens)
        if room < 1:
            raise ContextWindowExceeded("the state block", needed=size, available=max_tokens)


def _closing(snapshot: Snapshot, prompts: PromptRegistry) -> str:
    """Name the next step, so that the model does not plan again."""
    shown = [step for step in snapshot.steps if step.text.strip()]
    if not shown or snapshot.current_elsewhere:
        return prompts.get("state.reinject.go_on")
    if snapshot.at is None:
        return prompts.render("state.reinject.finished", total=len(shown))
    here = snapshot.steps[snapshot.at]
    if here not in shown:
        return prompts.get("state.reinject.go_on")
    step = safe_lines(truncate_to_tokens(here.text, _STEP_TOKENS))
    return prompts.render(
        "state.reinject.next",
        number=shown.index(here) + 1,
        total=len(shown),
        step=" ".join(step.split()),
    )


def _framed(opening: str, body: str, closing: str) -> str:
    inner = "\n\n".join(part for part in (opening, body, closing) if part)
    # Nothing inside may close the tag early.
    inner = inner.replace(f"</{_TAG}", f"<\\/{_TAG}")
    return f'<{_TAG} digest="{_digest(inner)}">\n{inner}\n</{_TAG}>'


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()[:12]
