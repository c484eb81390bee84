"""Settings of a memory, those refused, and where its limit comes from."""

# Settings are passed on as they come.
# pyright: reportArgumentType=false

from __future__ import annotations

import asyncio
import copy
import json
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.memory import Memory

from llama_doubles import LossyStore, calling, memory_of, recap_of, result, said, sentence, talk
from llama_index_muntin import (
    CompactingMemory,
    WindowLedger,
)
from llama_index_muntin._memory import ConversationLog
from llama_index_muntin.testing import StrictLLM
from muntin import (
    ConfigurationError,
)

if TYPE_CHECKING:
    from conftest import EntryPoint

pytestmark = pytest.mark.usefixtures("own_loop")


def test_what_is_set_later_counts() -> None:
    """A store or a ledger that is assigned and ignored loses a conversation in silence."""
    ledger, store = WindowLedger(window=3000, output_reserve=500), LossyStore()
    memory = memory_of(600)
    memory.put_messages(talk(2))
    memory.ledger, memory.chat_store, memory.summarizer = ledger, store, recap_of("Set later.")
    memory.put_messages(talk(60))
    memory.compact_now()

    assert len(asyncio.run(store.get_messages("chat_history"))) == 62
    assert "Set later." in memory.log.recap
    memory.get()
    assert ledger.to_dict()["history"] > 0


@pytest.mark.parametrize(
    "wrong", [{"ledger": "mine"}, {"chat_store": {}}, {"max_sumary_tokens": 90}]
)
def test_settings_that_cannot_work_are_refused_by_name(wrong: dict[str, Any]) -> None:
    """They were accepted, and failed at the first message or never."""
    (name,) = wrong
    with pytest.raises(ConfigurationError, match=name):
        memory_of(500, **wrong)
    memory = memory_of(500)
    if name in CompactingMemory.model_fields:
        with pytest.raises(ConfigurationError, match=name):
            setattr(memory, name, wrong[name])
        assert getattr(memory, name) is None


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("verb", ["put", "put_messages", "set"])
def test_what_is_no_message_is_refused_and_nothing_is_kept(
    entry_point: EntryPoint,
    verb: str,
    stored: bool,  # noqa: FBT001 - pytest's own way
) -> None:
    """It was an AttributeError, at the entry point or when it was sent."""
    memory = memory_of(500, chat_store=LossyStore() if stored else None)
    with pytest.raises(ConfigurationError, match="str"):
        entry_point.call(memory, verb, "text" if verb == "put" else [said("user", "hi"), "text"])

    assert entry_point.call(memory, "get_all") == []


@pytest.mark.parametrize("way", ["put", "set", "store", "log"])
def test_half_characters_never_leave_a_memory(entry_point: EntryPoint, way: str) -> None:
    """No provider and no database takes a lone surrogate."""
    broken = [said("user", "half \ud83d", note="\udc00"), calling("c1", part="\ud800")]
    broken.append(result("c1", "half \ud83d"))
    store = LossyStore()
    if way == "store":
        asyncio.run(store.set_messages("chat_history", broken))
    log = ConversationLog(messages=broken) if way == "log" else ConversationLog()
    memory = CompactingMemory(
        token_limit=500, log=log, chat_store=store if way in ("put", "store") else None
    )
    if way in ("put", "set"):
        entry_point.call(memory, "set" if way == "set" else "put_messages", broken)

    for verb in ("get", "get_all"):
        taken: Any = entry_point.call(memory, verb)
        assert len(taken) == 3
        for message in taken:
            json.dumps(message.model_dump(mode="json"), ensure_ascii=False).encode()
    if way == "put":
        for message in asyncio.run(store.get_messages("chat_history")):
            str(message.content).encode()


def test_the_limit_comes_from_the_model() -> None:
    """What the model writes is not for history, and neither is all of the rest."""
    small = CompactingMemory.from_defaults(llm=StrictLLM(window=8192, num_output=4096))
    large = CompactingMemory.from_defaults(llm=StrictLLM(window=8000, num_output=256))

    assert small.token_limit == 3072
    assert large.token_limit == 5808


def test_a_model_that_reports_nonsense_gets_a_reserve_that_leaves_room() -> None:
    """Some integrations report the window as the output, or the output as the window."""
    memory = CompactingMemory.from_defaults(llm=StrictLLM(window=8192, num_output=8192))

    assert memory.token_limit == 3072


def test_without_a_model_the_limit_is_that_of_the_memory_it_replaces() -> None:
    """`Memory.from_defaults()` is what tutorials write; refusing it breaks a drop-in."""
    limit = Memory.from_defaults().token_limit

    assert CompactingMemory.from_defaults().token_limit == limit


def test_engines_can_make_one_themselves() -> None:
    """`memory_cls` is called with a history and a limit."""
    llm = StrictLLM(["Hello."], window=2000)
    engine = SimpleChatEngine.from_defaults(llm=llm, memory_cls=CompactingMemory)

    assert str(engine.chat("Hi")) == "Hello."


def test_the_prefix_of_a_simple_engine_and_its_history_fit_the_window() -> None:
    """The engine tells its prefix, so that both together stay inside."""
    llm = StrictLLM(lambda _: "An answer. " * 10, window=2000, num_output=200)
    memory = CompactingMemory.from_defaults(llm=llm, token_limit=1700, summarizer=recap_of())
    engine = SimpleChatEngine.from_defaults(
        llm=llm, memory=memory, system_prompt="Be brief. " * 100
    )
    for at in range(40):
        engine.chat(sentence(at))

    assert llm.calls == 40
    assert max(llm.tokens) <= 1800


def test_a_tokenizer_like_those_of_other_memories_is_taken() -> None:
    """People bring the one they have."""
    memory = CompactingMemory.from_defaults(token_limit=50, tokenizer_fn=str.split)

    assert len(memory.tokenizer_fn("three small words")) == 3


def test_a_ledger_of_another_kind_is_refused() -> None:
    """A mistaken object must be found at construction."""
    with pytest.raises(ValueError, match="WindowLedger"):
        CompactingMemory(token_limit=5, ledger="mine")


def test_a_restored_memory_can_be_given_its_ledger_again() -> None:
    """Shared objects are not saved; the budget is, as a number."""
    ledger = WindowLedger(window=4000, output_reserve=500)
    memory = CompactingMemory.from_defaults(ledger=ledger)
    saved = memory.to_dict()

    assert saved["token_limit"] == ledger.history_quota
    assert CompactingMemory.from_dict(saved, ledger=ledger).ledger is ledger
    assert copy.deepcopy(memory).ledger is ledger
