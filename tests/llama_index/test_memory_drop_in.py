"""A `CompactingMemory` in the place of another memory of LlamaIndex, argument by argument."""

# Settings are passed on as they come.
# pyright: reportArgumentType=false

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import warnings
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("llama_index.core")

import tiktoken
from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    ContextChatEngine,
    SimpleChatEngine,
)
from llama_index.core.memory import (
    ChatMemoryBuffer,
    ChatSummaryMemoryBuffer,
    Memory,
    SimpleComposableMemory,
    VectorMemory,
)
from llama_index.core.storage.chat_store import SimpleChatStore
from llama_index.core.storage.chat_store.base_db import MessageStatus
from llama_index.core.utils import get_tokenizer
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from llama_doubles import (
    EXACT,
    FixedRetriever,
    JsonChatStore,
    memory_of,
    recap_of,
    rules,
    said,
    sentence,
    size,
    talk,
)
from llama_index_muntin import CompactingMemory
from llama_index_muntin.testing import StrictLLM
from muntin import ConfigurationError, TiktokenCounter

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import EntryPoint

pytestmark = pytest.mark.usefixtures("own_loop")

SIBLINGS: list[Any] = [
    Memory, ChatMemoryBuffer, ChatSummaryMemoryBuffer, VectorMemory, SimpleComposableMemory,
]  # fmt: skip
OWN = set(inspect.signature(CompactingMemory.from_defaults).parameters) - {"unknown"}
THEIRS = sorted(
    {
        name
        for kind in SIBLINGS
        for name in inspect.signature(kind.from_defaults).parameters
        if name not in ("kwargs", "self")
    }
)


@pytest.mark.parametrize("name", THEIRS)
def test_every_argument_of_the_siblings_is_taken_or_refused_with_a_reason(name: str) -> None:
    """An argument that is swallowed changes nothing and is believed to."""
    if name in OWN:
        return
    with pytest.raises(ConfigurationError, match=rf"{name} \("):
        CompactingMemory.from_defaults(token_limit=500, **{name: 1})


@pytest.mark.parametrize("name", THEIRS)
def test_every_argument_of_the_siblings_has_its_row_in_the_migration_page(name: str) -> None:
    """Somebody who changes a memory looks there."""
    from pathlib import Path

    page = Path(__file__).parents[2] / "docs" / "recipes" / "migrating.md"

    assert f"`{name}" in page.read_text(encoding="utf-8")


def test_a_prefix_can_be_given_by_position(entry_point: EntryPoint) -> None:
    """`ChatMemoryBuffer.get(None, 5)` is in programs."""
    memory = memory_of(200)
    entry_point.call(memory, "put_messages", talk(3))
    sent: Any = entry_point.call(memory, "get", None, 60)

    assert size(sent) <= 140


def test_messages_by_status_are_those_sent_and_those_folded(entry_point: EntryPoint) -> None:
    """`Memory.get_all(status=ACTIVE)` is how dashboards show the queue."""
    memory = memory_of(500, summarizer=recap_of())
    entry_point.call(memory, "put_messages", [said("system", "Be brief."), *talk(40)])
    entry_point.call(memory, "get")
    active: Any = entry_point.call(memory, "get_all", status=MessageStatus.ACTIVE)
    archived: Any = entry_point.call(memory, "get_all", status=MessageStatus.ARCHIVED)
    every: Any = entry_point.call(memory, "get_all", status=None)

    assert active[0] == said("system", "Be brief.")
    assert archived
    assert len(active) + len(archived) == len(every) == 41
    assert [*active[:1], *archived, *active[1:]] == every


@pytest.mark.parametrize("kind", ["json", "simple"])
def test_a_chat_store_of_either_kind_is_written_and_read(
    kind: str, entry_point: EntryPoint
) -> None:
    """Redis, Postgres and DynamoDB stores are `BaseChatStore`s, and were refused."""
    store: Any = JsonChatStore() if kind == "json" else SimpleChatStore()
    buffer = ChatMemoryBuffer.from_defaults(
        chat_store=store, chat_store_key="ada", chat_history=talk(4)
    )
    memory = CompactingMemory.from_defaults(chat_store=store, chat_store_key="ada")
    entry_point.call(
        memory, "put_messages", [said("user", "And now?"), said("assistant", "Now this.")]
    )

    assert buffer.get_all() == entry_point.call(memory, "get_all")
    assert len(buffer.get_all()) == 6


def test_a_store_is_made_of_a_database_as_memory_makes_one(tmp_path: Path) -> None:
    """Two lines of the tutorial are an engine and a table."""
    engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path / 'm.db'}", poolclass=NullPool)
    old = Memory.from_defaults(session_id="ada", async_engine=engine, table_name="t")
    old.put_messages(talk(4))
    memory = CompactingMemory.from_defaults(session_id="ada", async_engine=engine, table_name="t")

    assert memory.get_all() == old.get_all() == talk(4)
    with pytest.raises(ConfigurationError, match=r"chat_store or async_engine, table_name, not"):
        CompactingMemory.from_defaults(
            chat_store=SimpleChatStore(), async_engine=engine, table_name="t"
        )


def test_the_string_form_is_read_back() -> None:
    """`to_string` and `from_string` are the documented way to keep a `ChatMemoryBuffer`."""
    memory = memory_of(500)
    memory.put_messages(talk(30))
    memory.get()
    again = CompactingMemory.from_string(memory.to_string())

    assert again.get_all() == memory.get_all()
    assert again.get() == memory.get()


def buffer_form(messages: list[Any], key: str) -> dict[str, Any]:
    """Write what `ChatMemoryBuffer.to_dict` writes where its serialiser works."""
    rows = [message.model_dump(mode="json") for message in messages]
    store = {"store": {key: rows}, "class_name": "SimpleChatStore"}
    return {
        "token_limit": 700, "chat_store": store, "chat_store_key": key,
        "class_name": "ChatMemoryBuffer",
    }  # fmt: skip


def test_a_saved_buffer_is_read(tmp_path: Path) -> None:
    """A server that is updated must not forget its conversations."""
    saved = buffer_form(talk(5), "ada")
    for given in (saved, {**saved, "class_name": "ChatSummaryMemoryBuffer"}):
        memory = CompactingMemory.from_dict(json.loads(json.dumps(given)))
        assert memory.get_all() == talk(5)
        assert (memory.token_limit, memory.session_id) == (700, "ada")
    assert CompactingMemory.from_string(json.dumps(saved)).get_all() == talk(5)
    old = {"token_limit": 700, "chat_history": saved["chat_store"]["store"]["ada"]}
    assert CompactingMemory.from_dict(old).get_all() == talk(5)

    engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path / 'm.db'}", poolclass=NullPool)
    live = Memory.from_defaults(session_id="ada", token_limit=900, async_engine=engine)
    live.put_messages(talk(4))
    memory = CompactingMemory.from_dict(live.to_dict(), async_engine=engine)
    assert memory.get_all() == talk(4)
    assert (memory.token_limit, memory.session_id) == (900, "ada")


TOKENIZERS: dict[str, Any] = {
    "LlamaIndex's default": get_tokenizer(),
    "tiktoken": tiktoken.get_encoding("o200k_base").encode,
    "a partial": functools.partial(
        tiktoken.get_encoding("cl100k_base").encode, allowed_special="all"
    ),
}


@pytest.mark.parametrize("name", sorted(TOKENIZERS))
def test_a_tokenizer_of_tiktoken_survives_a_save(name: str) -> None:
    """The saved memory counted with the estimate, and nothing told of it."""
    tokenizer = TOKENIZERS[name]
    memory = CompactingMemory.from_defaults(token_limit=500, tokenizer_fn=tokenizer)
    again = CompactingMemory.from_json(memory.to_json())

    assert again.counter == memory.counter
    assert isinstance(EXACT, TiktokenCounter)
    text = "<|endoftext|> is only text, and 漢字 too."
    assert len(again.tokenizer_fn(text)) == len(memory.tokenizer_fn(text)) > 5


def test_a_tokenizer_of_ones_own_has_to_be_given_again() -> None:
    """Read without it, a memory of 500 words would send 500 tokens of something else."""
    memory = CompactingMemory.from_defaults(token_limit=500, tokenizer_fn=str.split)
    memory.put_messages(talk(4))
    saved = memory.to_json()

    with pytest.raises(ValueError, match=r"token_counter= or tokenizer_fn="):
        CompactingMemory.from_json(saved)
    again = CompactingMemory.from_json(saved, tokenizer_fn=str.split)
    assert again.get_all() == talk(4)
    assert len(again.tokenizer_fn("three small words")) == 3


@pytest.mark.parametrize("engine", ["context", "condense", "simple"])
def test_a_memory_for_one_request_pays_for_no_recap_it_does_not_send(engine: str) -> None:
    """`chat_history=` with each request: a recap was made when the answer was put, and dropped."""
    asked: list[str] = []

    def summarize(text: str, instruction: str) -> str:
        asked.append(text)
        return "They spoke of travel rules."

    history = talk(2)
    sent_with_recap = 0
    kinds: dict[str, Any] = {
        "context": ContextChatEngine, "condense": CondensePlusContextChatEngine,
        "simple": SimpleChatEngine,
    }  # fmt: skip
    for at in range(40):
        llm = StrictLLM(lambda _: "Noted.", window=4000, num_output=300)
        memory = CompactingMemory.from_defaults(
            token_limit=700, token_counter=EXACT, summarizer=summarize
        )
        more = {} if engine == "simple" else {"retriever": FixedRetriever(rules(2))}
        chat = kinds[engine].from_defaults(llm=llm, memory=memory, **more)
        paid = len(asked)
        chat.chat(sentence(at), chat_history=history)
        told = any("[Recap]" in str(m.content) for request in llm.requests for m in request)
        sent_with_recap += told
        assert len(asked) - paid <= told
        history = memory.get_all()

    assert sent_with_recap > 5
    assert len(history) == 82


def test_no_warning_is_given_for_what_is_supported() -> None:
    """A drop-in that warns at each request is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        memory = CompactingMemory.from_defaults(
            chat_history=talk(2), token_limit=500, session_id="ada", tokenizer_fn=get_tokenizer(),
            chat_store=JsonChatStore(),
        )  # fmt: skip
        memory.put(said("user", "Hello"))
        asyncio.run(memory.aget())
