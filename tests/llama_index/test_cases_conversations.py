"""Cases: what breaks long conversations anywhere, held against the memory.

The kinds are those of `unit/test_cases_*.py`. What `test_memory.py`, `test_agents.py` and
`test_ledger.py` show in full is not repeated here: giants, steps of agents, summarisers that fail,
parallel writers, saving and loading. The property is `test_any_conversation_is_read_within_limit`.
"""

# Settings are passed on as they come.
# pyright: reportArgumentType=false

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("llama_index.core")

from llama_index.core.base.llms.types import ChatMessage, ImageBlock, MessageRole, TextBlock

from chats import Recorder
from llama_doubles import EXACT, calling, result, said, sentence, talk
from llama_index_muntin import CompactingMemory
from llama_index_muntin.testing import StrictLLM
from muntin import ContextWindowExceeded, count_messages, fit_messages
from muntin.messages.shapes import view
from muntin.messages.turns import pairing_problems
from muntin.testing import check_request

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conftest import EntryPoint

pytestmark = pytest.mark.usefixtures("own_loop")


def memory_of(limit: int = 1000, **more: Any) -> CompactingMemory:
    """Make a memory that counts exactly."""
    return CompactingMemory.from_defaults(**{"token_limit": limit, "token_counter": EXACT, **more})


def sound(messages: Sequence[ChatMessage]) -> bool:
    """Whether every result has its call and every call its results."""
    return not pairing_problems([view(message) for message in messages])


# --- pairs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("answered", [0, 1, 2])
def test_the_round_in_flight_is_read_whole(answered: int, entry_point: EntryPoint) -> None:
    """An agent reads while its tools run; "the last message" is then a result without its call."""
    memory = memory_of(300)
    asked = ChatMessage(
        role=MessageRole.ASSISTANT,
        additional_kwargs={
            "tool_calls": [
                {"id": name, "type": "function", "function": {"name": "look", "arguments": "{}"}}
                for name in ("x", "y")
            ]
        },
    )
    running = [said("user", "both?"), asked, *[result("x", "1"), result("y", "2")][:answered]]
    entry_point.call(memory, "put_messages", [*talk(20), *running])
    read: Any = entry_point.call(memory, "get")
    assert len(read) < 20
    assert read[-len(running) :] == running
    assert sound(read)
    # The rest of the batch comes in after the memory was read.
    entry_point.call(memory, "put_messages", [result("x", "1"), result("y", "2")][answered:])
    later: Any = entry_point.call(memory, "get")
    assert sound(later)
    assert [message.additional_kwargs.get("tool_call_id") for message in later[-2:]] == ["x", "y"]


def test_a_call_that_waits_for_a_person_finds_its_answer(entry_point: EntryPoint) -> None:
    """It was summarised away while people went on talking, and the answer found no call."""
    memory = memory_of(300, summarizer=lambda text, how: "They talked.")
    entry_point.call(memory, "put_messages", [said("user", "Book it."), calling("confirm")])
    entry_point.call(memory, "put_messages", talk(20))
    entry_point.call(
        memory, "put_messages", [result("confirm", "Yes, do."), said("user", "And now?")]
    )
    read: Any = entry_point.call(memory, "get")
    assert sound(read)
    assert read[-1].content == "And now?"
    assert len(memory.get_all()) == 24


def test_after_a_fold_the_first_to_speak_is_a_user(entry_point: EntryPoint) -> None:
    """One turn larger than the limit left a history that began with the assistant's answer."""
    memory = memory_of(400, summarizer=lambda text, how: "They talked.")
    entry_point.call(memory, "put", said("user", "Tell me all of it."))
    entry_point.call(memory, "put_messages", [said("assistant", sentence(n)) for n in range(20)])
    read: Any = entry_point.call(memory, "get")
    assert read[0].role is MessageRole.USER
    check_request([*read, said("user", "So?")], provider="anthropic")


# --- windows and loops ---------------------------------------------------------------------------


def test_a_window_of_a_million_is_used_and_many_messages_are_no_reason(
    entry_point: EntryPoint,
) -> None:
    """A hard-coded 128,000, or a cap on the number of messages, cut what would have fitted."""
    memory = CompactingMemory.from_defaults(llm=StrictLLM(window=1_000_000), token_counter=EXACT)
    history = [said("user" if n % 2 == 0 else "assistant", sentence(n, 800)) for n in range(160)]
    history += [said("user", "short") for _ in range(100)]
    assert count_messages(history, counter=EXACT) > 128_000
    entry_point.call(memory, "put_messages", history)
    assert entry_point.call(memory, "get") == history


@pytest.mark.parametrize("words", [40, 100, 180])
def test_messages_near_the_limit_do_not_cost_a_summary_each(
    words: int, entry_point: EntryPoint
) -> None:
    """Where four messages fill the limit, each one was followed by a model call."""
    summarize = Recorder("They spoke of travel rules.")
    memory = memory_of(900, summarizer=lambda text, how: summarize(text, how))
    for at in range(60):
        entry_point.call(
            memory, "put", said("user" if at % 2 == 0 else "assistant", sentence(at, words))
        )
        read: Any = entry_point.call(memory, "get")
        assert count_messages(read, counter=EXACT) <= 900
    assert 1 <= summarize.calls <= 30


def test_five_folds_leave_one_recap(entry_point: EntryPoint) -> None:
    """Recaps that are put in as messages pile up, and are summarised again as talk."""
    summarize = Recorder(*(f"RECAP-{at}." for at in range(60)))
    memory = memory_of(500, summarizer=lambda text, how: summarize(text, how))
    for at in range(60):
        entry_point.call(memory, "put_messages", talk(2))
        entry_point.call(memory, "put", said("user", f"And {at}?"))
        read: Any = entry_point.call(memory, "get")
        assert sum("RECAP-" in str(message.content) for message in read) <= 1
    assert summarize.calls >= 5
    assert not any("RECAP" in str(message.content) for message in memory.get_all())


# --- media ---------------------------------------------------------------------------------------


def photo(at: int) -> ChatMessage:
    data = base64.b64encode(bytes([at]) * 300_000)
    return ChatMessage(
        role=MessageRole.USER,
        blocks=[TextBlock(text=f"photo {at}"), ImageBlock(image=data, image_mimetype="image/png")],
    )


def test_a_new_chat_with_a_photo_is_read_and_forty_old_ones_are_not(
    entry_point: EntryPoint,
) -> None:
    """Base64 counted as text empties the first request; kept in the history, it fills them all."""
    memory = memory_of(8000)
    entry_point.call(memory, "put", photo(1))
    assert entry_point.call(memory, "get") == [photo(1)]
    for at in range(2, 42):
        entry_point.call(memory, "put_messages", [said("assistant", f"Nice: {at}."), photo(at)])
    entry_point.call(
        memory, "put_messages", [said("assistant", "All nice."), said("user", "Which?")]
    )
    read: Any = entry_point.call(memory, "get")
    pictures = sum(isinstance(block, ImageBlock) for message in read for block in message.blocks)
    assert 0 < pictures < 20
    assert count_messages(read, counter=EXACT) <= 8000


# --- the property --------------------------------------------------------------------------------


FORMS = ("block", "openai", "anthropic", "selection")


def history_of(turns: list[tuple[int, list[tuple[str, int]], bool]]) -> list[ChatMessage]:
    """Write turns: words of the question, form and words of each round, whether it is answered."""
    messages: list[ChatMessage] = []
    for at, (words, rounds, answered) in enumerate(turns):
        messages.append(said("user", sentence(at, words)))
        for part, (form, found) in enumerate(rounds):
            name = f"c{at}_{part}"
            messages += [calling(name, form=form, at=part), result(name, sentence(part, found))]
        if answered:
            messages.append(said("assistant", sentence(at + 50, 20)))
    return messages


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    turns=st.lists(
        st.tuples(
            st.integers(1, 60),
            st.lists(st.tuples(st.sampled_from(FORMS), st.integers(1, 200)), max_size=3),
            st.booleans(),
        ),
        min_size=1,
        max_size=6,
    ),
    limit=st.integers(40, 1500),
)
def test_any_conversation_is_read_within_limit(turns: list[Any], limit: int) -> None:
    """The property: within the limit, pairs whole, the newest question in it; or a typed error."""
    history = history_of(turns)
    memory = memory_of(limit)
    memory.set(history)
    newest = next(message for message in reversed(history) if message.role is MessageRole.USER)
    try:
        read = memory.get()
    except ContextWindowExceeded:
        assert memory.get_all() == history
        return
    assert count_messages(read, counter=EXACT) <= limit
    assert sound(read)
    assert newest in read
    assert memory.get() == read
    fitted = fit_messages(history, budget=limit, counter=EXACT).messages
    assert sound(fitted)
    assert all(isinstance(message, ChatMessage) for message in fitted)
