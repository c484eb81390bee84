"""What is remembered from fit to fit makes them faster and never changes what they say."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muntin.conversations import outline
from muntin.conversations.fit import fit_messages
from muntin.counting import message_counts
from muntin.counting.message_counts import MessageCounts, count_messages
from muntin.errors import ContextWindowExceeded
from muntin.messages.shapes import shape_of
from strategies import conversations

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True, scope="module")
def short_memory() -> Iterator[None]:
    """Let conversations as short as the drawn ones be recognised and continued."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(message_counts, "_LONG", 2)
        patch.setattr(outline, "_OPEN", 2)
        patch.setattr(outline, "_LEAST_REPEATED", 8)
        yield


@st.composite
def visits(draw: st.DrawFn) -> list[tuple[list[Any], float]]:
    """Draw what a caller may bring one after another: it grows, is cut back, edited, copied."""
    whole = draw(conversations(max_turns=6))
    if draw(st.booleans()):
        whole = [*whole, *copy.deepcopy(whole)]
    brought: list[tuple[list[Any], float]] = []
    for _ in range(draw(st.integers(2, 4))):
        now = whole[: draw(st.integers(0, len(whole)))]
        edit = draw(st.sampled_from(["none", "copied", "reworded", "dropped"]))
        if now and edit != "none":
            at = draw(st.integers(0, len(now) - 1))
            if edit == "copied":
                now = copy.deepcopy(now)
            elif edit == "dropped":
                now = [*now[:at], *now[at + 1 :]]
            else:
                now = [*now[:at], shape_of(now[at]).with_text(now[at], "edited"), *now[at + 1 :]]
        brought.append((now, draw(st.floats(0.05, 1.0))))
    return brought


def _outcome(messages: list[Any], share: float, counts: MessageCounts) -> Any:
    budget = max(1, int(share * count_messages(messages)))
    try:
        fitted = fit_messages(messages, budget=budget, counts=counts)
    except ContextWindowExceeded as error:
        return str(error)
    return fitted.messages, fitted.report.to_dict()


@settings(deadline=None)
@given(visits())
def test_what_was_seen_before_changes_no_fit(brought: list[tuple[list[Any], float]]) -> None:
    """A fit that depends on earlier calls cannot be repeated, tested or explained."""
    counts = MessageCounts()
    for messages, share in brought:
        assert _outcome(messages, share, counts) == _outcome(messages, share, MessageCounts())


def test_a_conversation_that_grows_is_read_only_where_it_grew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Reading a long history anew at every step makes an agent slower with each of them."""
    history: list[Any] = [{"role": "user", "content": f"message {n} " * 9} for n in range(400)]
    counts, read = MessageCounts(), 0
    divide = outline.divide

    def spying(views: Any, known: Any = None, **settings: Any) -> Any:
        nonlocal read
        read += len(views) - known.closed
        return divide(views, known, **settings)

    monkeypatch.setattr(outline, "divide", spying)
    for n in range(20):
        history.append({"role": "assistant", "content": f"answer {n}"})
        # Callers put something of the moment last, and load the rest from a store.
        asked = [dict(message) for message in history] + [{"role": "user", "content": f"ask {n}"}]
        fit_messages(asked, budget=2_000, counts=counts)
    assert read < 401 + 20 * 6
