"""A memory that keeps everything and sends what fits its limit."""

# Settings are passed on as they come.
# pyright: reportArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core.base.llms.types import TextBlock
from llama_index.core.memory import BaseMemory

from llama_doubles import (
    EXACT,
    calling,
    memory_of,
    recap_of,
    result,
    said,
    sentence,
    size,
    talk,
)
from llama_index_muntin import (
    CompactingMemory,
    WindowLedger,
)
from muntin import (
    ContextWindowExceeded,
    ToolResultStore,
)
from muntin.messages.shapes import view
from muntin.messages.turns import pairing_problems

if TYPE_CHECKING:
    from conftest import EntryPoint

pytestmark = pytest.mark.usefixtures("own_loop")


def test_what_is_put_is_what_is_got(entry_point: EntryPoint) -> None:
    """Under the limit a memory is a list."""
    memory = memory_of()
    messages = talk(6)
    for message in messages:
        entry_point.call(memory, "put", message)

    assert entry_point.call(memory, "get") == messages
    assert entry_point.call(memory, "get_all") == messages


def test_set_replaces_and_reset_empties(entry_point: EntryPoint) -> None:
    """Engines set the history a caller gives them."""
    memory = memory_of()
    entry_point.call(memory, "put_messages", talk(4))
    entry_point.call(memory, "set", talk(2))
    assert entry_point.call(memory, "get_all") == talk(2)

    entry_point.call(memory, "reset")
    assert entry_point.call(memory, "get") == entry_point.call(memory, "get_all") == []


def test_it_is_a_memory_that_is_never_falsy() -> None:
    """Core tests `memory or Memory.from_defaults(...)`: an empty one would be replaced."""
    memory = memory_of()

    assert isinstance(memory, BaseMemory)
    assert bool(memory)
    assert not hasattr(memory, "__len__")


def test_messages_go_in_and_come_out_as_copies(entry_point: EntryPoint) -> None:
    """Agents rewrite the text of the last message they get."""
    memory = memory_of()
    message = said("user", "hello", deep={"list": [1]})
    entry_point.call(memory, "put", message)
    block = message.blocks[0]
    assert isinstance(block, TextBlock)
    block.text = "changed outside"
    for verb in ("get", "get_all"):
        taken: Any = entry_point.call(memory, verb)
        taken[0].blocks[0].text = "rewritten"
        taken[0].additional_kwargs["deep"]["list"].append(2)

    assert entry_point.call(memory, "get") == [said("user", "hello", deep={"list": [1]})]


def test_reading_changes_nothing(entry_point: EntryPoint) -> None:
    """Agents read (steps + 2) times a turn: only the first read after a put may fold."""
    asked: list[str] = []

    def summarize(text: str, instruction: str) -> str:
        asked.append(text)
        return "They spoke."

    memory = memory_of(600, summarizer=summarize)
    entry_point.call(memory, "put_messages", talk(40))
    first = entry_point.call(memory, "get")
    before, calls = memory.to_json(), len(asked)

    assert calls == 1
    assert [entry_point.call(memory, "get") for _ in range(3)] == [first] * 3
    assert (memory.to_json(), len(asked)) == (before, calls)


def test_unknown_arguments_change_nothing(entry_point: EntryPoint) -> None:
    """Engines pass what other memories know."""
    memory = memory_of()
    entry_point.call(memory, "put", said("user", "hi"))

    assert entry_point.call(memory, "get", input="x", initial_token_count=0, anything=1) == [
        said("user", "hi")
    ]


@pytest.mark.parametrize("limit", [200, 500, 2000, 3000, 5000])
def test_a_long_chat_uses_most_of_its_limit_and_never_more(limit: int) -> None:
    """`Memory` falls to 1 % of a limit of 3000 after each flush."""
    memory = memory_of(limit, summarizer=recap_of())
    shares: list[float] = []
    for at, message in enumerate(talk(220)):
        memory.put(message)
        if at % 3:
            continue
        used = size(memory.get())
        assert used <= limit
        if sum(size([one]) for one in talk(3)) * at / 3 > 2 * limit:
            shares.append(used / limit)

    assert len(memory.get_all()) == 220
    assert min(shares, default=1.0) >= (0.7 if limit >= 2000 else 0.4)


def test_system_messages_and_the_newest_question_stay_word_for_word(
    entry_point: EntryPoint,
) -> None:
    """Buffers drop the system message first."""
    memory = memory_of(400)
    entry_point.call(memory, "put", said("system", "Never book without asking."))
    entry_point.call(memory, "put_messages", talk(60))
    question = said("user", "May I book now? " + sentence(3))
    entry_point.call(memory, "put", question)
    sent: Any = entry_point.call(memory, "get")

    assert sent[0] == said("system", "Never book without asking.")
    assert sent[-1] == question


def test_what_must_stay_and_does_not_fit_is_an_error_that_says_so(entry_point: EntryPoint) -> None:
    """Cut in silence, or sent over the limit, it would be somebody else's error."""
    memory = memory_of(50)
    entry_point.call(memory, "put", said("user", "word " * 200))
    with pytest.raises(ContextWindowExceeded) as refused:
        entry_point.call(memory, "get")

    assert refused.value.needed > refused.value.available
    assert len(memory.get_all()) == 1


def test_a_history_without_a_user_does_not_become_empty() -> None:
    """`Memory` empties its queue when nobody of the user's is in it."""
    memory = memory_of(200)
    memory.put_messages([calling("c1"), result("c1", "part of it " * 400)])
    sent = memory.get()

    assert sent
    assert size(sent) <= 200
    assert pairing_problems([view(message) for message in sent]) == ()


def test_a_prefix_is_deducted(entry_point: EntryPoint) -> None:
    """SimpleChatEngine says how large its prefix is."""
    memory = memory_of(600)
    entry_point.call(memory, "put_messages", talk(10))
    sent: Any = entry_point.call(memory, "get", initial_token_count=250)

    assert size(sent) <= 350


def test_a_prefix_over_the_limit_is_an_error_with_the_parts(entry_point: EntryPoint) -> None:
    """Another memory says "Initial token count exceeds token limit" and no number."""
    memory = memory_of(100)
    with pytest.raises(ContextWindowExceeded) as refused:
        entry_point.call(memory, "get", initial_token_count=101)

    assert refused.value.parts == {"initial_token_count": 101, "token_limit": 100}


@pytest.mark.parametrize("shared", [True, False])
def test_a_question_that_was_not_put_makes_room_for_itself(
    entry_point: EntryPoint,
    shared: bool,  # noqa: FBT001 - pytest's own way
) -> None:
    """History filled the limit to the brim, and the question came on top."""
    ledger = WindowLedger(window=2000, output_reserve=200) if shared else None
    memory = memory_of(500, ledger=ledger)
    entry_point.call(memory, "put_messages", talk(60))
    question = "word " * 300
    for asked in (question, said("user", question)):
        sent: Any = entry_point.call(memory, "get", input=asked)
        assert size([*sent, said("user", question)]) <= 500
    with pytest.raises(ContextWindowExceeded) as refused:
        entry_point.call(memory, "get", input="word " * 600)

    assert refused.value.parts["question"] > 500


@pytest.mark.parametrize("put", [True, False])
@pytest.mark.parametrize("shared", [True, False])
def test_what_is_asked_for_is_recalled_put_or_not(
    entry_point: EntryPoint,
    put: bool,  # noqa: FBT001 - pytest's own way
    shared: bool,  # noqa: FBT001 - pytest's own way
) -> None:
    """Engines ask before they put; older messages came back for the question of before."""
    fact = "The violin of Aunt Petronella is kept in the cellar of the bakery."
    asked = "Where is the violin of Aunt Petronella kept?"
    ledger = WindowLedger(window=1600, output_reserve=200, fixed_tokens=50) if shared else None
    memory = memory_of(8000, ledger=ledger)
    history = [*talk(40), said("user", fact), said("assistant", "Good to know."), *talk(60)]
    entry_point.call(memory, "put_messages", history)
    more: dict[str, Any] = {} if shared else {"initial_token_count": 6800}
    if put:
        entry_point.call(memory, "put", said("user", asked))
    sent: Any = entry_point.call(memory, "get", input=asked, **more)

    assert fact in [message.content for message in sent]


@pytest.mark.parametrize("limit", [300, 900, None])
def test_a_limit_holds_beside_a_ledger(entry_point: EntryPoint, limit: int | None) -> None:
    """A limit somebody wrote down was ignored where a ledger was given, too."""
    ledger = WindowLedger(window=8000, output_reserve=500, fixed_tokens=50)
    memory = CompactingMemory.from_defaults(
        token_limit=limit, ledger=ledger, token_counter=EXACT, chat_history=talk(300)
    )
    sent: Any = entry_point.call(memory, "get")

    assert size(sent) <= (limit or ledger.spendable)
    assert size(sent) > 0.4 * (limit or ledger.history_quota)
    memory.token_limit = 200
    sent = entry_point.call(memory, "get")
    assert size(sent) <= 200


def test_engines_can_size_their_prefix() -> None:
    """Without a `tokenizer_fn` an engine says that its prefix is empty."""
    memory = memory_of()

    assert len(memory.tokenizer_fn("hello world")) == EXACT("hello world") == 2
    assert len(memory.tokenizer_fn("<|endoftext|>")) == EXACT("<|endoftext|>")


def test_a_giant_tool_result_is_shortened_with_its_call_intact() -> None:
    """`Memory` returns it whole, twenty times over the limit."""
    store = ToolResultStore.in_memory()
    memory = memory_of(1000, results=store)
    giant = " ".join(f"entry-{n}" for n in range(8000))
    memory.put_messages(
        [said("user", "read"), calling("c1"), result("c1", giant), said("assistant", "Done.")]
    )
    sent = memory.get()

    assert [message.role.value for message in sent] == ["user", "assistant", "tool", "assistant"]
    assert size(sent) <= 1000
    assert "id=tr_" in str(sent[2].content)
    assert memory.get_all()[2].content == giant


@pytest.mark.parametrize("form", ["block", "openai", "anthropic", "selection"])
def test_no_limit_parts_a_call_from_its_results(form: str) -> None:
    """A buffer that cuts by messages begins with a tool result one time in five."""
    messages = [said("system", "Be brief.")]
    for at in range(9):
        messages += [
            said("user", f"Question {at}?"),
            calling(f"c{at}", form=form, part=at),
            result(f"c{at}", f"found {at} " * 40),
            said("assistant", f"Answer {at}."),
        ]
    for limit in (120, 260, 700):
        memory = memory_of(limit, summarizer=recap_of("Earlier."))
        for message in messages:
            memory.put(message)
            sent = memory.get()
            assert pairing_problems([view(one) for one in sent]) == ()
            assert size(sent) <= limit
        restored = CompactingMemory.from_json(memory.to_json())
        assert restored.get() == memory.get()
