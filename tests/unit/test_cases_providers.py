"""Cases: what one provider takes another one refuses, and a cut must not make the difference.

Thinking that is parted from its turn, a reasoning item without its answer, a recap as a second
system message, pictures that are never let go. The property is
`test_what_comes_out_is_what_its_provider_takes`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from case_messages import ENTRY_POINTS, A, S, U, fit_or_none, saying, sound, steps, talk, trimmed
from chats import Recorder
from muntin.conversations.compaction import HistoryCompactor
from muntin.conversations.fit import fit_messages
from muntin.conversations.trajectory import reduce_agent_sync
from muntin.counting.message_counts import count_messages
from muntin.messages.shapes import view
from muntin.testing import RequestRefused, check_request
from strategies import SHAPES, conversations

if TYPE_CHECKING:
    from muntin.testing import Provider

# --- thinking ------------------------------------------------------------------------------------


UNBOUND = "claude-sonnet-4-5"
"""A model that accepts its thinking behind changed messages too."""


def thinking_round(at: int, rows: int = 60) -> list[dict[str, Any]]:
    """Write a tool round that opens with signed thinking."""
    return [
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": f"thought {at} " * 10, "signature": f"sig{at}"},
            {"type": "tool_use", "id": f"t{at}", "name": "f", "input": {}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": f"t{at}", "content": "row " * rows}]},
    ]  # fmt: skip


@pytest.mark.parametrize("rounds", [2, 12])
def test_thinking_blocks_stay_with_their_message_untouched(rounds: int) -> None:
    """A model that does not check the prefix gets its thinking as it was, message by message."""
    messages = [U(), *[m for at in range(rounds) for m in thinking_round(at)]]
    cut = 0
    for budget in range(60, count_messages(messages), 40):
        fitted = fit_or_none(messages, budget, model=UNBOUND)
        if fitted:
            cut += fitted.changed
            assert sound(fitted.messages)
            assert all(m in messages for m in fitted.messages if m["role"] == "assistant")
    assert cut


@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
def test_thinking_of_the_open_turn_is_passed_back(entry_point: str) -> None:
    """In a tool loop it has to be sent again; stripped, the loop ends with an error."""
    messages = [U(), *[m for at in range(9) for m in thinking_round(at)]]
    out = trimmed(entry_point, messages, 500, model=UNBOUND)
    assert out is not None
    assert len(out) < len(messages)
    assert out[-2:] == messages[-2:]
    check_request(out, provider="anthropic", thinking=True)


def test_reasoning_items_stay_with_what_they_led_to() -> None:
    """A message whose id demands its reasoning is refused without it."""
    messages: list[dict[str, Any]] = [U()]
    for at in range(10):
        messages += [
            {"type": "reasoning", "id": f"rs{at}", "summary": []},
            {"type": "message", "role": "assistant", "id": f"m{at}",
             "content": [{"type": "output_text", "text": f"answer {at} " * 20}]},
            U(f"next {at} " * 10),
        ]  # fmt: skip
    for entry_point in ENTRY_POINTS:
        out = trimmed(entry_point, messages, 300, model="gpt-5.5")
        assert out is not None
        assert len(out) < len(messages)
        for at, message in enumerate(out):
            if message.get("type") == "reasoning":
                assert out[at + 1]["id"] == message["id"].replace("rs", "m")
            if message.get("type") == "message":
                assert out[at - 1]["id"] == message["id"].replace("m", "rs")


# --- who says the recap --------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["user", "system", "assistant"])
def test_the_role_of_the_note_is_the_callers_choice(role: Any) -> None:
    """Some providers take a system message in front only, some want a user first."""
    messages = [S, U(), *steps(12), A(), U("so?")]
    fitted = fit_messages(messages, budget=300, note_role=role)
    assert fitted.messages[1]["role"] == role
    assert fit_messages(messages, budget=300).messages[1]["role"] == "user"
    compactor = HistoryCompactor(
        saying("They spoke."), keep_recent=1, trigger_tokens=50, recap_role=role
    )
    assert compactor.compact(messages)[1]["role"] == role


def conversation(shape: str) -> list[Any]:
    """Write twelve turns with a tool round each, in one shape."""
    from strategies import _Writer  # pyright: ignore[reportPrivateUsage] - written like those drawn

    write = _Writer(shape)
    if shape != "anthropic":  # its system prompt is no message
        write.say("system", "Be brief.")
    for at in range(12):
        write.say("user", f"Where is order A-{1000 + at}? " * 6)
        write.answer(write.call("", ["x"]), [f"order_id: A-{1000 + at} " * 20])
        write.say("assistant", f"It is at {at}. " * 6)
    write.say("user", "And now?")
    return write.messages


TARGETS: list[tuple[str, Provider]] = [
    *((shape, "openai") for shape in SHAPES if shape != "anthropic"),
    ("anthropic", "anthropic"),
]


@pytest.mark.parametrize("keep", [1, 2, 3, 4])
@pytest.mark.parametrize(("shape", "provider"), TARGETS)
def test_every_provider_takes_what_every_entry_point_gives(
    shape: str, provider: Provider, keep: int
) -> None:
    """A recap as a system message in mid-list is refused, and so is a call before any user."""
    messages = conversation(shape)
    check_request(messages, provider=provider)
    compactor = HistoryCompactor(saying("They spoke."), keep_recent=keep, trigger_tokens=100)
    reduced = reduce_agent_sync(
        messages, summarize=saying("They spoke."), budget=700, keep_recent_steps=keep
    )
    for out in (compactor.compact(messages), reduced, fit_messages(messages, budget=300).messages):
        assert len(out) < len(messages)
        check_request(out, provider=provider)


def test_a_recap_among_anthropic_messages_is_found_again() -> None:
    """Said by the user there, it is a recap all the same: one is alive, and it is not a request."""
    summarize = Recorder("SUM1", "SUM2", "SUM3")
    compactor = HistoryCompactor(summarize, keep_recent=2, trigger_tokens=200)
    stored: list[Any] = []
    for at in range(12):
        stored += [U(f"question {at} " * 8), *thinking_round(at, rows=20)]
        stored = compactor.compact(stored)
        check_request([*stored, U("?")], provider="anthropic")
    assert summarize.calls >= 2
    recaps = [view(message).text for message in stored if "[Recap]" in view(message).text]
    assert recaps == [f"[Recap] SUM{min(summarize.calls, 3)}"]
    assert summarize.texts[1].startswith("SUM1\n")


@given(
    data=st.data(), target=st.sampled_from(TARGETS), share=st.floats(0.1, 1.0), folds=st.booleans()
)
def test_what_comes_out_is_what_its_provider_takes(
    data: st.DataObject, target: tuple[str, Provider], share: float, *, folds: bool
) -> None:
    """The kind's property: a request that was sound before a cut is sound after it."""
    shape, provider = target
    messages = [U("Begin."), *data.draw(conversations(shape, pins=False)), U("Go on.")]
    if shape == "anthropic":
        messages = [message for message in messages if view(message).role != "system"]
    try:
        check_request(messages, provider=provider)
    except RequestRefused:
        return
    budget = max(1, int(share * count_messages(messages)))
    out = trimmed("HistoryCompactor" if folds else "fit_messages", messages, budget)
    if out is not None:
        check_request(out, provider=provider)


# --- pictures ------------------------------------------------------------------------------------

PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 4_000}}


def album(photos: int) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [S]
    for at in range(photos):
        said = [{"type": "text", "text": f"photo {at}"}, PICTURE]
        messages += [{"role": "user", "content": said}, A(text="nice")]
    return [*messages, U("which was best?")]


def test_old_pictures_leave_a_line_and_no_picture() -> None:
    """Pictures that stay in a compacted history are sent, and paid for, again and again."""
    messages = album(40)
    fitted = fit_messages(messages, budget=3_000)
    assert sum("image_url" in json.dumps(message) for message in fitted.messages) < 5
    assert fitted.report.used <= 3_000
    assert fit_messages(fitted.messages, budget=3_000).messages is fitted.messages
    summarize = Recorder("Forty photos, the twelfth was best.")
    compactor = HistoryCompactor(summarize, keep_recent=2, trigger_tokens=3_000)
    out = compactor.compact(messages)
    assert "image_url" not in json.dumps(out)
    assert "AAAA" not in "".join(summarize.texts)
    assert "[image" in summarize.texts[0]
    assert compactor.compact([*out, A(text="yes")]) == [*out, A(text="yes")]
    assert summarize.calls == 1


def test_a_talk_without_tools_is_cut_like_any_other() -> None:
    """Nothing of the above is about tools alone."""
    messages = [S, *talk(30), U("so?")]
    for provider in ("openai", "anthropic"):
        check_request(fit_messages(messages, budget=300).messages, provider=provider)
