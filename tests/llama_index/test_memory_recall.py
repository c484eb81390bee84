"""Folded turns that speak of the question come back word for word."""

# Settings are passed on as they come.
# pyright: reportArgumentType=false

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core import MockEmbedding
from llama_index.core.chat_engine import CondensePlusContextChatEngine, ContextChatEngine
from llama_index.core.memory import Memory
from pydantic import PrivateAttr

from llama_doubles import (
    EXACT,
    FixedRetriever,
    calling,
    memory_of,
    recap_of,
    result,
    rules,
    said,
    sentence,
    size,
    talk,
)
from llama_index_muntin import CompactingMemory, MuntinMemoryBlock
from llama_index_muntin.testing import StrictLLM

if TYPE_CHECKING:
    from llama_index.core.base.llms.types import ChatMessage

    from conftest import EntryPoint

pytestmark = pytest.mark.usefixtures("own_loop")

ROUNDS = 100


def parcels(at: int) -> list[ChatMessage]:
    return [
        said("user", f"Where is parcel P-{1000 + at}?"),
        said("assistant", f"Parcel P-{1000 + at} is in depot D{at * 7 % 97}."),
    ]


def asked_of(memory: CompactingMemory, entry_point: EntryPoint, limit: int, put: bool) -> float:  # noqa: FBT001 - drawn
    """Return the share of old answers that come back for the question about them."""
    for at in range(ROUNDS):
        entry_point.call(memory, "put_messages", parcels(at))
        if at % 10 == 0:
            entry_point.call(memory, "get")
    found = 0
    asked = range(3, 90, 5)
    for at in asked:
        question = f"And parcel P-{1000 + at}, where was it?"
        if put:
            entry_point.call(memory, "put", said("user", question))
            sent: Any = entry_point.call(memory, "get")
        else:
            sent = entry_point.call(memory, "get", question)
        assert size(sent) <= limit
        found += any(message.content == parcels(at)[1].content for message in sent)
        if put:
            entry_point.call(memory, "put", said("assistant", "As I said."))
    return found / len(asked)


@pytest.mark.parametrize(("limit", "least"), [(200, 0.95), (400, 1.0), (800, 1.0)])
@pytest.mark.parametrize("put", [True, False])
@pytest.mark.parametrize("model", [True, False])
def test_an_old_answer_comes_back_for_its_question(
    limit: int,
    least: float,
    put: bool,  # noqa: FBT001 - pytest's own way
    model: bool,  # noqa: FBT001 - pytest's own way
    entry_point: EntryPoint,
) -> None:
    """Folded once, an answer was out of reach, although the memory still held it."""
    memory = memory_of(limit, summarizer=recap_of("They spoke of parcels.") if model else None)

    assert asked_of(memory, entry_point, limit, put) >= least


@pytest.mark.parametrize("question", ["Thanks, that helps.", "ok", "", "Go on.", "你好"])
def test_small_talk_recalls_nothing(question: str, entry_point: EntryPoint) -> None:
    """Old turns that share a word of courtesy take the place of what was said just now."""
    memory = memory_of(600, summarizer=recap_of())
    entry_point.call(
        memory, "put_messages", [message for at in range(60) for message in parcels(at)]
    )
    plain: Any = entry_point.call(memory, "get")
    with_question: Any = entry_point.call(memory, "get", question)

    recalled = [message for message in with_question if message not in plain]
    assert recalled == []


def test_recalled_turns_stand_in_order_behind_the_recap(entry_point: EntryPoint) -> None:
    """An old answer that stands behind a newer one would be taken for the newest."""
    memory = memory_of(500, summarizer=recap_of())
    entry_point.call(memory, "put", said("system", "You are a clerk."))
    entry_point.call(
        memory, "put_messages", [message for at in range(60) for message in parcels(at)]
    )
    sent: Any = entry_point.call(memory, "get", "Compare parcels P-1003 and P-1009, please.")
    contents = [str(message.content) for message in sent]

    assert contents[0] == "You are a clerk."
    assert contents[1].startswith("[Recap]")
    assert contents.index(str(parcels(3)[1].content)) < contents.index(str(parcels(9)[1].content))
    assert contents[-1] == str(parcels(59)[1].content)


@pytest.mark.parametrize("form", ["block", "openai"])
def test_a_recalled_call_brings_its_result(form: str, entry_point: EntryPoint) -> None:
    """Half a round is refused; the result alone answers nothing."""
    memory = memory_of(700, summarizer=recap_of())
    round_ = [
        said("user", "Look up invoice INV-4711."),
        calling("c1", "invoice", form=form, number="INV-4711"),
        result("c1", "INV-4711: 300 euros, paid"),
        said("assistant", "It is paid."),
    ]
    entry_point.call(memory, "put_messages", [*talk(4), *round_, *talk(60)])
    sent: Any = entry_point.call(memory, "get", "What did invoice INV-4711 amount to?")
    start = sent.index(round_[0])

    assert sent[start : start + 4] == round_


def test_a_recalled_turn_is_what_was_said_last(entry_point: EntryPoint) -> None:
    """A value that was changed later must not come back in its old form alone."""
    memory = memory_of(400, summarizer=recap_of())
    for price in (10, 20, 30):
        entry_point.call(
            memory, "put", said("user", f"The price of article A-77 is {price} euros now.")
        )
        entry_point.call(memory, "put_messages", [said("assistant", "Noted."), *talk(12)])
    entry_point.call(memory, "put_messages", talk(20))
    sent: Any = entry_point.call(memory, "get", "What does article A-77 cost?")

    assert any("30 euros" in str(message.content) for message in sent)


class Concepts(MockEmbedding):
    """Embed texts by what they speak of: cars, weather, or anything else."""

    _texts: list[str] = PrivateAttr(default_factory=list)

    def _vector(self, text: str) -> list[float]:
        self._texts.append(text)
        car = any(word in text.casefold() for word in ("car", "vehicle", "automobile"))
        return [1.0, 0.0, 0.1] if car else [0.0, 1.0, len(text) % 7 / 50]

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._vector(text)

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._vector(query)

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return self._vector(text)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._vector(query)


def test_vectors_find_what_shares_no_word(entry_point: EntryPoint) -> None:
    """`Which automobile?` and `the blue car` have no word in common."""
    model = Concepts(embed_dim=3)
    answers = {}
    for embed_model in (None, model):
        memory = memory_of(500, summarizer=recap_of(), embed_model=embed_model)
        entry_point.call(memory, "put_messages", [said("user", "I drive a blue car."), *talk(61)])
        sent: Any = entry_point.call(memory, "get", "Which automobile belongs to me?")
        answers[embed_model is None] = any("blue car" in str(m.content) for m in sent)
        assert size(sent) <= 500

    assert answers == {True: False, False: True}
    before = len(model._texts)  # pyright: ignore[reportPrivateUsage] - our own double
    entry_point.call(memory, "get", "Which automobile belongs to me?")
    assert len(model._texts) == before  # pyright: ignore[reportPrivateUsage] - our own double


def test_recall_costs_what_it_finds_not_what_the_memory_holds() -> None:
    """A search of 20,000 messages at each of the reads of a turn would be felt."""
    memory = memory_of(2000, token_counter=len, summarizer=recap_of("They spoke."))
    memory.put_messages([message for at in range(5000) for message in parcels(at)])
    memory.get("Where was parcel P-1003?")
    start = time.process_time()
    for at in range(20):
        memory.get(f"Where was parcel P-{1003 + at}?")

    assert (time.process_time() - start) / 20 < 0.1


@pytest.mark.parametrize("engine", ["context", "condense"])
def test_chat_engines_recall_without_being_told(engine: str) -> None:
    """They pass the question to the memory; it made room for it and did nothing else."""
    llm = StrictLLM(lambda _: "Noted.", window=3000, num_output=300)
    memory = CompactingMemory.from_defaults(token_limit=900, token_counter=EXACT)
    memory.put_messages([message for at in range(60) for message in parcels(at)])
    kind = {"context": ContextChatEngine, "condense": CondensePlusContextChatEngine}[engine]
    chat = kind.from_defaults(retriever=FixedRetriever(rules(2)), llm=llm, memory=memory)
    chat.chat("Where was parcel P-1004?")

    assert "Parcel P-1004 is in depot D28." in str([m.content for m in llm.requests[-1]])


def test_a_block_recalls_for_the_question_in_the_queue() -> None:
    """The block of a `Memory` sees the question among the messages of its queue."""

    async def chat(embed_model: Any) -> str:
        block = MuntinMemoryBlock(
            name="earlier", max_tokens=150, token_counter=EXACT, embed_model=embed_model
        )
        for at in range(60):
            await block.aput(parcels(at))
        await block.aput([said("user", "I drive a blue car."), *talk(20)])
        parcel = await block.aget([said("user", "Where was parcel P-1004?")])
        car = await block.aget([said("user", "Which automobile belongs to me?")])
        assert EXACT(parcel) <= 150
        return f"{parcel}\n{car}"

    assert "Parcel P-1004 is in depot D28." in asyncio.run(chat(None))
    assert "blue car" in asyncio.run(chat(Concepts(embed_dim=3)))


def test_a_block_refuses_what_it_does_not_know() -> None:
    """`token_limit=5` was ignored, and the block took 1,000."""
    with pytest.raises(ValueError, match=r"does not take token_limit.*max_tokens"):
        MuntinMemoryBlock(name="earlier", token_limit=5)  # pyright: ignore[reportCallIssue] - that is the test
    Memory.from_defaults(memory_blocks=[MuntinMemoryBlock(name="earlier")])


def test_a_forgotten_conversation_is_not_recalled(entry_point: EntryPoint) -> None:
    """After a reset nothing of the old conversation may come back."""
    memory = memory_of(500, summarizer=recap_of())
    entry_point.call(
        memory, "put_messages", [message for at in range(60) for message in parcels(at)]
    )
    entry_point.call(memory, "get", "Where was parcel P-1003?")
    entry_point.call(memory, "set", [said("user", sentence(1)), said("assistant", "Yes.")])
    sent: Any = entry_point.call(memory, "get", "Where was parcel P-1003?")

    assert "P-1003" not in str([message.content for message in sent])
