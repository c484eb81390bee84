"""The recap of a memory: when it is made, what it covers, and what a failed one costs."""

# Settings are passed on as they come.
# pyright: reportArgumentType=false

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core.base.llms.types import ChatMessage, MessageRole

from llama_doubles import (
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
    CompactionWarning,
)
from llama_index_muntin.testing import StrictLLM
from muntin import (
    HistoryCompactor,
    SummaryError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import EntryPoint

pytestmark = pytest.mark.usefixtures("own_loop")


def test_the_recap_stands_for_what_is_folded(entry_point: EntryPoint) -> None:
    """The model reads it in front of what is kept word for word."""
    memory = memory_of(600, summarizer=recap_of("They agreed on 80 euros."))
    entry_point.call(memory, "put", said("system", "Be brief."))
    entry_point.call(memory, "put_messages", talk(60))
    sent: Any = entry_point.call(memory, "get")

    assert sent[0] == said("system", "Be brief.")
    assert sent[1].role is MessageRole.USER
    assert sent[1].content == "[Recap] They agreed on 80 euros."
    assert sent[2:] == talk(60)[-len(sent) + 2 :]


def test_a_model_is_asked_now_and_then_not_every_turn(entry_point: EntryPoint) -> None:
    """`ChatSummaryMemoryBuffer` asks in 90 of 90 turns once it is over its limit."""
    llm = StrictLLM(lambda _: "They spoke of travel rules.", window=32_000)
    memory = memory_of(2000, summarizer=llm)
    for message in talk(300):
        entry_point.call(memory, "put", message)
        entry_point.call(memory, "get")

    assert 1 <= llm.calls <= 25
    assert len(memory.get_all()) == 300


def test_a_call_that_is_folded_is_told_to_the_summariser() -> None:
    """The content of a message that only calls is None, and was skipped."""
    texts: list[str] = []

    def summarize(text: str, instruction: str) -> str:
        texts.append(text)
        return "They booked."

    memory = memory_of(400, summarizer=summarize)
    memory.put_messages(
        [said("user", "book"), calling("c1", "book_flight", flight="HAT136"), result("c1", "ok"),
         *talk(40)]
    )  # fmt: skip

    memory.get()

    assert "book_flight" in texts[0]
    assert "HAT136" in texts[0]


@pytest.mark.parametrize("reply", [SummaryError("down"), RuntimeError("no key"), "", "  \n"])
def test_a_summariser_that_fails_loses_nothing(entry_point: EntryPoint, reply: Any) -> None:
    """20 messages before, 16 after: the newest are gone with `ChatSummaryMemoryBuffer`."""

    def summarize(text: str, instruction: str) -> str:
        if isinstance(reply, Exception):
            raise reply
        return reply

    memory = memory_of(400, summarizer=summarize)
    messages = talk(20)
    entry_point.call(memory, "put_messages", messages)
    with pytest.warns(CompactionWarning, match="all messages are kept"):
        sent: Any = entry_point.call(memory, "get")

    assert entry_point.call(memory, "get_all") == messages
    assert size(sent) <= 400
    assert messages[-2] in sent


REFUSED: dict[str, Callable[[str], str]] = {
    "its input": lambda text: text,
    "twice its input": lambda text: text + text,
    "zero width": lambda _: "\u200b",
    "a byte order mark": lambda _: "\ufeff",
    "dots": lambda _: "...",
}


@pytest.mark.parametrize("kind", sorted(REFUSED))
def test_a_summary_that_is_none_is_refused_and_not_remembered(
    kind: str, entry_point: EntryPoint
) -> None:
    """An echo became the recap, and the messages it stood for were gone from what is sent."""
    memory = memory_of(400, summarizer=lambda text, _instruction: REFUSED[kind](text))
    messages = talk(20)
    entry_point.call(memory, "put_messages", messages)
    with pytest.warns(CompactionWarning, match="summary_"):
        sent: Any = entry_point.call(memory, "get")

    assert memory.log.recap == ""
    assert size(sent) <= 400
    assert entry_point.call(memory, "get_all") == messages


def test_a_summariser_is_given_what_its_window_holds(entry_point: EntryPoint) -> None:
    """50,547 tokens were sent to a model with a window of 512."""
    small = StrictLLM(lambda _: "They spoke of travel rules.", window=512, num_output=128)
    memory = memory_of(2000, summarizer=small)
    entry_point.call(memory, "put_messages", talk(300))
    entry_point.call(memory, "get")

    assert small.calls > 1
    assert max(small.tokens) <= 512 - 128
    assert memory.log.recap


def test_a_recap_outlives_a_summariser_that_fails_later() -> None:
    """An empty reply must not wipe what was summarised before."""
    replies = ["They agreed on 80 euros.", *[""] * 40]
    memory = memory_of(500, summarizer=lambda _text, _instruction: replies.pop(0))
    memory.put_messages(talk(20))
    memory.compact_now()
    memory.put_messages(talk(30))
    with pytest.warns(CompactionWarning):
        sent = memory.get()

    assert "[Recap] They agreed on 80 euros." in [one.content for one in sent]


def read_after_each(memory: CompactingMemory, messages: list[ChatMessage]) -> None:
    for message in messages:
        memory.put(message)
        memory.get()


def test_a_summariser_that_fails_is_not_asked_at_every_turn() -> None:
    """A model that is down must not be paid for at every message."""
    calls: list[int] = []

    def summarize(text: str, instruction: str) -> str:
        calls.append(1)
        raise SummaryError("down")

    memory = memory_of(1000, summarizer=summarize)
    with pytest.warns(CompactionWarning):
        read_after_each(memory, talk(60))

    assert len(calls) <= 20


def test_a_slow_summary_neither_loses_nor_covers_what_arrives_meanwhile() -> None:
    """A user writes on while the model summarises."""

    async def summarize(text: str, instruction: str) -> str:
        await asyncio.sleep(0.05)
        return "They spoke."

    async def chat() -> CompactingMemory:
        memory = memory_of(500, summarizer=summarize)
        await memory.aput_messages([*talk(11), said("user", sentence(50))])
        first = asyncio.create_task(memory.aget())
        await asyncio.sleep(0.01)
        await memory.aput(said("assistant", "arrived meanwhile"))
        await first
        return memory

    memory = asyncio.run(chat())

    assert len(memory.get_all()) == 13
    assert memory.get()[-1] == said("assistant", "arrived meanwhile")
    assert memory.log.recap


def test_a_fold_without_a_model_is_not_made_on_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sentences of a long chat were weighed for half a second while nobody else could go on."""
    where: list[threading.Thread] = []
    fold = HistoryCompactor.fold

    def noted(self: HistoryCompactor, history: Any) -> Any:
        where.append(threading.current_thread())
        return fold(self, history)

    monkeypatch.setattr(HistoryCompactor, "fold", noted)
    memory = memory_of(500)
    memory.put_messages(talk(40))
    asyncio.run(memory.aget())

    assert memory.log.recap
    assert where
    assert threading.main_thread() not in where


def test_a_cancelled_read_leaves_the_messages_and_lets_others_fold() -> None:
    """A client that goes away in the middle must not lock the memory."""

    async def summarize(text: str, instruction: str) -> str:
        await asyncio.sleep(0.2)
        return "They spoke."

    async def chat() -> CompactingMemory:
        memory = memory_of(500, summarizer=summarize)
        await memory.aput_messages(talk(30))
        task = asyncio.create_task(memory.aget())
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await memory.aput(said("user", "still here?"))
        await memory.aget()
        return memory

    memory = asyncio.run(chat())

    assert len(memory.get_all()) == 31
    assert memory.log.recap
