"""LlamaIndex messages are counted, paired and changed like all others, in every form."""

# Settings are passed on as they come.
# pyright: reportArgumentType=false

from __future__ import annotations

import base64
import copy
from typing import Any

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core.base.llms import types
from llama_index.core.base.llms.types import ChatMessage, MessageRole, TextBlock

from llama_doubles import EXACT, calling, result, said
from llama_index_muntin._shapes import SHAPE, signed_neighbours_joined
from muntin import ContextWindowExceeded, count_message, fit_messages, repair
from muntin.messages import without_signed_thinking
from muntin.messages.shapes import shape_of, view
from muntin.messages.turns import pairing_problems

pytestmark = pytest.mark.usefixtures("own_loop")

FORMS = ("block", "openai", "anthropic", "selection")
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
LONG = " ".join(f"word{n}" for n in range(500))


def test_the_core_finds_the_shape_by_itself() -> None:
    """A user passes chat messages to `fit_messages` without registering anything."""
    assert shape_of(said("user", "hi")).name == "llama-index"


@pytest.mark.parametrize("form", FORMS)
def test_a_call_is_recognised_in_whatever_form_a_provider_left_it(form: str) -> None:
    """A conversation that moves to another model keeps its calls and results together."""
    seen = view(calling("c1", "search", form=form, query="tea"))

    assert [(call.id, call.name, call.parsed) for call in seen.calls] == [
        ("c1", "search", {"query": "tea"})
    ]
    assert pairing_problems([view(said("user", "tea?")), seen, view(result("c1", "green"))]) == ()


@pytest.mark.parametrize("form", FORMS)
def test_the_arguments_of_a_call_are_counted(form: str) -> None:
    """Counted as nothing, long arguments overrun the window without anybody knowing why."""
    message = calling("c1", "write", form=form, text=LONG)

    assert count_message(message, counter=EXACT) >= EXACT(LONG)


def test_a_call_that_lives_twice_is_counted_once() -> None:
    """Integrations write a call into a block and beside it; it is sent once."""
    block = calling("c1", "write", text=LONG)
    both = block.model_copy(
        update={
            "additional_kwargs": calling("c1", "write", form="openai", text=LONG).additional_kwargs
        }
    )

    assert count_message(both, counter=EXACT) == pytest.approx(
        count_message(block, counter=EXACT), abs=4
    )


@pytest.mark.parametrize(
    ("block", "least", "most"),
    [
        (lambda: types.ImageBlock(image=PIXEL), 50, 1200),
        (lambda: types.DocumentBlock(data=b"%PDF-1.4 " + b"x" * 5000), 100, 3000),
        (lambda: types.AudioBlock(audio=b"RIFF" + b"x" * 4000), 1, 2000),
        pytest.param(
            lambda: types.ThinkingBlock(content=LONG),
            EXACT(LONG),
            EXACT(LONG) + 20,
            marks=pytest.mark.skipif(
                not hasattr(types, "ThinkingBlock"), reason="older cores have no block for it"
            ),
        ),
        (
            lambda: types.CitableBlock(title="T", source="s", content=[TextBlock(text=LONG)]),
            EXACT(LONG),
            EXACT(LONG) + 40,
        ),
        (
            lambda: types.CitationBlock(
                title="T", source="s", cited_content=LONG, additional_location_info={}
            ),
            EXACT(LONG),
            EXACT(LONG) + 40,
        ),
    ],
    ids=["image", "document", "audio", "thinking", "citable", "citation"],
)
def test_every_block_is_counted(block: Any, least: int, most: int) -> None:
    """A block that counts nothing is how prompts become too long; base64 is never text."""
    message = ChatMessage(role=MessageRole.USER, blocks=[block()])

    assert least <= count_message(message, counter=EXACT) <= most


def test_a_cache_point_costs_nothing_and_is_no_unknown_block() -> None:
    """It is an order to the provider, not something the model reads."""
    bare = said("user", "hi")
    point = types.CachePoint(cache_control=types.CacheControl(type="ephemeral"))
    marked = ChatMessage(role=MessageRole.USER, blocks=[TextBlock(text="hi"), point])

    assert count_message(marked) == count_message(bare)


def test_all_roles_are_read() -> None:
    """A chatbot's words must not pass for the user's."""
    roles = {role.value: view(ChatMessage(role=role, content="x")).role for role in MessageRole}

    assert roles["chatbot"] == roles["model"] == roles["assistant"] == "assistant"
    assert roles["developer"] == roles["system"] == "system"


def test_a_message_changed_in_place_is_counted_anew() -> None:
    """Agents rewrite the text of a message they were handed."""
    message = said("user", "short")
    before = count_message(message)
    block = message.blocks[0]
    assert isinstance(block, TextBlock)
    block.text = LONG

    assert count_message(message) > before + 400


def test_changed_copies_leave_the_message_as_it_was() -> None:
    """Whoever changes a copy must not reach the caller's own message."""
    message = result("c1", LONG)
    before = copy.deepcopy(message)

    shorter = SHAPE.with_results(message, {"c1": "short"})
    other = SHAPE.with_text(said("user", "a"), "b")

    assert (shorter.content, other.content) == ("short", "b")
    assert shorter.additional_kwargs["tool_call_id"] == "c1"
    assert message == before


def test_a_picture_in_a_result_stays_unless_it_is_told_to_go() -> None:
    """A picture that goes with the words that were cut is lost without a mark."""
    message = result("c1", LONG)
    message.blocks.append(types.ImageBlock(image=PIXEL, image_mimetype="image/png"))
    (read,) = view(message).results
    assert len(read.media) == 1
    (kept,) = view(SHAPE.with_results(message, {"c1": "cut"})).results
    (bare,) = view(SHAPE.with_results(message, {"c1": "cut"}, bare={"c1"})).results
    assert (kept.text, kept.media) == ("cut", read.media)
    assert (bare.text, bare.media) == ("cut", ())


def _rounds(form: str) -> list[ChatMessage]:
    messages = [said("system", "Be brief."), said("user", "Where is my order?")]
    for at in range(6):
        calls = [calling(f"c{at}-{n}", "look", form=form, part=n) for n in range(2)]
        both = calls[0].model_copy(
            update={
                "blocks": [*calls[0].blocks, *calls[1].blocks],
                "additional_kwargs": {
                    key: value + calls[1].additional_kwargs[key]
                    for key, value in calls[0].additional_kwargs.items()
                },
            }
        )
        messages += [both, *(result(f"c{at}-{n}", f"part {n} " * 30) for n in range(2))]
        messages += [said("assistant", f"Step {at} is done."), said("user", f"And step {at + 1}?")]
    return messages


@pytest.mark.parametrize("form", FORMS)
def test_no_budget_parts_a_call_from_its_results(form: str) -> None:
    """A stored conversation, reloaded and trimmed, must never hold an orphan."""
    messages = _rounds(form)
    whole = sum(count_message(message) for message in messages)
    fitted_at_all = 0
    for budget in range(10, whole + 20, 29):
        try:
            fitted = fit_messages(messages, budget=budget)
        except ContextWindowExceeded:
            continue
        fitted_at_all += 1
        views = [view(message) for message in fitted.messages]
        assert pairing_problems(views) == (), budget
        assert fitted.messages[0] is messages[0]
        assert any(message is messages[-1] for message in fitted.messages)

    assert fitted_at_all > 30


def test_a_broken_pair_is_mended_with_messages_of_this_kind() -> None:
    """One call that was never answered makes a provider refuse every later request."""
    mended = repair([said("user", "look"), calling("c1"), said("user", "never mind")])

    assert [message.role.value for message in mended] == ["user", "assistant", "tool", "user"]
    assert mended[2].additional_kwargs["tool_call_id"] == "c1"


def test_signatures_by_position_move_with_their_blocks() -> None:
    """Gemini refuses a call whose signature went to another call."""
    first = types.ToolCallBlock(tool_name="a", tool_kwargs={}, tool_call_id="a")
    second = types.ToolCallBlock(tool_name="b", tool_kwargs={}, tool_call_id="b")
    thought = types.ThinkingBlock(content="Hm.", additional_information={"signature": "s"})
    message = ChatMessage(
        role="assistant",
        blocks=[thought, TextBlock(text="x"), TextBlock(text="y"), first, second],
        additional_kwargs={"thought_signatures": ["T", "X", None, "A", None]},
    )
    shorter = SHAPE.with_text(message, "short")
    assert shorter.additional_kwargs["thought_signatures"] == ["T", None, "A", None]
    unsigned = without_signed_thinking([message]).messages[0]
    assert unsigned.additional_kwargs["thought_signatures"] == ["X", None, "A", None]
    assert message.additional_kwargs["thought_signatures"] == ["T", "X", None, "A", None]


def test_neighbours_with_signatures_are_joined_before_the_model_joins_them() -> None:
    """The Google model puts the second message's signatures on the first one's blocks."""
    call = types.ToolCallBlock(tool_name="a", tool_kwargs={}, tool_call_id="a")
    one = ChatMessage(role="assistant", blocks=[TextBlock(text="x"), call],
                      additional_kwargs={"thought_signatures": [None, "A"]})  # fmt: skip
    two = ChatMessage(role="assistant", blocks=[TextBlock(text="y")],
                      additional_kwargs={"thought_signatures": ["Y"]})  # fmt: skip
    user = ChatMessage(role="user", content="Go on.")
    joined = signed_neighbours_joined([user, one, two, user])
    assert [message.role.value for message in joined] == ["user", "assistant", "user"]
    assert joined[1].additional_kwargs["thought_signatures"] == [None, "A", "Y"]
    assert len(joined[1].blocks) == 3
    assert signed_neighbours_joined([one, user, two]) == [one, user, two]
    plain = [ChatMessage(role="assistant", content=text) for text in "ab"]
    assert signed_neighbours_joined(plain) == plain
    assert len(one.blocks) == 2
