"""What LlamaIndex tests of its memory blocks, its summary, vector and composed memories.

The inputs are of the same kind, one test for each of theirs that concerns what is kept and sent.
Where the outcome differs, the difference is a row or a point of the migration page.
"""

# Settings are passed on as they come.
# pyright: reportArgumentType=false

from __future__ import annotations

import asyncio
import pickle
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core.base.llms.types import ChatMessage, MessageRole, VideoBlock
from llama_index.core.memory import InsertMethod, Memory, StaticMemoryBlock
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from llama_doubles import calling, memory_of, result, said, size, talk
from llama_index_muntin import CompactingMemory, CompactionWarning, MuntinMemoryBlock
from llama_index_muntin.testing import StrictLLM
from muntin import ContextWindowExceeded

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import EntryPoint

pytestmark = pytest.mark.usefixtures("own_loop")

ASKED = said("user", "Where does the ferry to Lund leave?")
FERRY = [said("user", "When is the ferry to Lund?"), said("assistant", "From pier 4, at noon.")]
TRAM = [said("user", "And the tram to Malmo?"), said("assistant", "From the square, hourly.")]


def get(block: MuntinMemoryBlock, *messages: ChatMessage, **more: Any) -> Any:
    return asyncio.run(block.aget(list(messages), **more))


def put(block: MuntinMemoryBlock, *messages: ChatMessage, **more: Any) -> None:
    asyncio.run(block.aput(list(messages), **more))


# --- of their memory blocks ----------------------------------------------------------------------


def test_a_block_keeps_who_said_what() -> None:
    """Theirs write the role in front of each text."""
    block = MuntinMemoryBlock(name="earlier")
    put(block, *FERRY)

    told = get(block, ASKED)
    assert "user: When is the ferry to Lund?" in told
    assert "assistant: From pier 4, at noon." in told


def test_a_block_returns_what_is_asked_for() -> None:
    """Theirs return the best two of what was stored."""
    block = MuntinMemoryBlock(name="earlier", max_tokens=200)
    put(block, *FERRY, *TRAM, *talk(80))

    told = get(block, ASKED)
    assert "From pier 4, at noon." in told
    assert "From the square, hourly." not in told


def test_nothing_put_is_nothing_told() -> None:
    """Neither an empty read nor an empty put is an error."""
    block = MuntinMemoryBlock(name="earlier")
    assert get(block) == ""
    put(block)
    assert get(block, ASKED) == ""


def test_a_message_without_text_adds_nothing() -> None:
    """Theirs store no node of it; ours tells no line of it."""
    block = MuntinMemoryBlock(name="earlier")
    put(block, ChatMessage(role="assistant", blocks=[]), *FERRY)

    assert get(block, ASKED).count("\n") == 1


@pytest.mark.parametrize("window", [1, 3])
def test_the_newest_question_of_several_messages_is_the_one_asked(window: int) -> None:
    """Theirs join the last messages into one query; an old one of them leads astray."""
    block = MuntinMemoryBlock(name="earlier", max_tokens=200)
    put(block, *FERRY, *TRAM, *talk(80))

    told = get(block, *[*TRAM, ASKED][-window:])
    assert "From pier 4, at noon." in told


def test_the_same_message_flushed_again_is_not_told_twice() -> None:
    """Their facts are compared with those there are."""
    block = MuntinMemoryBlock(name="earlier", max_tokens=120)
    for _ in range(3):
        put(block, *FERRY)

    assert get(block, ASKED).count("From pier 4") <= 3


def test_facts_of_what_is_folded_are_kept_without_a_model() -> None:
    """Their facts are what a model writes; ours are sentences of the messages."""
    block = MuntinMemoryBlock(name="earlier", max_tokens=600)
    put(block, said("user", "My order is A-1025 and I live in Oslo."))
    for role in ("user", "assistant") * 40:
        put(block, said(role, "Good to know, let us go on with the next one. " * 3))

    assert "A-1025" in get(block, said("user", "Please go on."))


@pytest.mark.parametrize("reply", ["", "no new facts", RuntimeError("down")])
def test_a_reply_without_facts_loses_none(reply: Any) -> None:
    """Theirs were wiped by an empty reply, and a model that fails ended the turn of the user."""
    llm = StrictLLM(lambda _: reply, window=8000)
    block = MuntinMemoryBlock(name="earlier", max_tokens=400, summarizer=llm)
    put(block, *FERRY, *talk(80))

    assert "From pier 4, at noon." in get(block, ASKED)
    assert len(block.logs[""].messages) == 82


def test_content_is_shortened_or_dropped() -> None:
    """Theirs remove the last block, or everything."""
    block = MuntinMemoryBlock(name="earlier")
    text = "From pier 4, at noon. " * 20

    cut = asyncio.run(block.atruncate(text, 50))
    assert cut is not None
    assert 0 < len(cut) < len(text)
    assert asyncio.run(block.atruncate(text, 10_000)) is None


def official(folder: Path, *blocks: Any, **more: Any) -> Memory:
    """Make a `Memory` whose connections are closed: its default store cannot close them."""
    engine = create_async_engine(f"sqlite+aiosqlite:///{folder / 'm.db'}", poolclass=NullPool)
    settings: dict[str, Any] = {
        "token_limit": 1200, "token_flush_size": 200, "chat_history_token_ratio": 0.5, **more,
    }  # fmt: skip
    return Memory.from_defaults(
        session_id="ada", async_engine=engine, memory_blocks=list(blocks), **settings
    )


def content(messages: list[ChatMessage]) -> str:
    return "\n".join(str(message.content) for message in messages)


@pytest.mark.parametrize(
    ("method", "role"), [(InsertMethod.SYSTEM, "system"), (InsertMethod.USER, "user")]
)
def test_a_memory_inserts_the_block_where_it_is_told_to(
    method: InsertMethod, role: str, tmp_path: Path
) -> None:
    """What was flushed comes back inside one message of that role."""
    memory = official(tmp_path, MuntinMemoryBlock(name="earlier"), insert_method=method)
    memory.put_messages([*FERRY, *talk(40)])
    memory.put(ASKED)
    sent = memory.get()

    holding = [message for message in sent if "From pier 4, at noon." in str(message.content)]
    assert [message.role.value for message in holding] == [role]


def test_a_block_stands_beside_a_static_one(tmp_path: Path) -> None:
    """Blocks of both kinds are told under their names."""
    rules = StaticMemoryBlock(name="rules", static_content="Prices are in euros.", priority=0)
    memory = official(tmp_path, rules, MuntinMemoryBlock(name="earlier", priority=1))
    memory.put_messages([*FERRY, *talk(40)])
    memory.put(ASKED)
    sent = content(memory.get())

    assert "Prices are in euros." in sent
    assert "<rules>" in sent
    assert "<earlier>" in sent


@pytest.mark.parametrize("limit", [700, 1200, 3000])
def test_a_block_over_the_limit_is_shortened_not_dropped(limit: int, tmp_path: Path) -> None:
    """A static block is all or nothing."""
    block = MuntinMemoryBlock(name="earlier", max_tokens=2000, priority=1)
    memory = official(tmp_path, block, token_limit=limit, token_flush_size=100)
    memory.put_messages([*FERRY, *talk(120)])
    memory.put(ASKED)
    sent = memory.get()

    assert "<earlier>" in content(sent)
    assert size(sent) <= limit * 1.15  # `Memory` does not count framing or its template


def test_a_video_that_was_flushed_is_told_as_one(tmp_path: Path) -> None:
    """Their blocks lost media that are given by a link."""
    video = ChatMessage(
        role="user",
        blocks=[*said("user", "Look at this.").blocks, VideoBlock(url="https://host/pier.mp4")],
    )
    block = MuntinMemoryBlock(name="earlier")
    put(block, video, said("assistant", "A pier."))
    again = pickle.loads(pickle.dumps(block))

    told = get(again, said("user", "What did I show you?"))
    assert "Look at this." in told
    assert "[video]" in told


# --- of ChatSummaryMemoryBuffer ------------------------------------------------------------------


def test_a_message_over_the_limit_is_an_error_not_a_summary(entry_point: EntryPoint) -> None:
    """Theirs sends a summary in place of the question."""
    long = said("user", "This message is longer than the limit of this memory. " * 10)
    with pytest.raises(ContextWindowExceeded):
        entry_point.call(memory_of(30, chat_history=[long], summarizer=StrictLLM(["?"])), "get")


@pytest.mark.parametrize("model", [True, False])
def test_nothing_is_overwritten_by_a_summary(model: bool, entry_point: EntryPoint) -> None:  # noqa: FBT001 - pytest's own way
    """Theirs keeps two or three messages of all that were put."""
    llm = StrictLLM(lambda _: "They spoke of travel rules and of depots.", window=8000)
    memory = memory_of(300, summarizer=llm if model else None)
    for message in talk(30):
        entry_point.call(memory, "put", message)
        entry_point.call(memory, "get")

    assert entry_point.call(memory, "get_all") == talk(30)


def test_a_summary_of_a_single_word_is_a_summary(entry_point: EntryPoint) -> None:
    """A model with a limit of one token answers with one word."""
    memory = memory_of(300, summarizer=StrictLLM(lambda _: "Travel.", window=8000))
    memory.put_messages(talk(30))
    sent: Any = entry_point.call(memory, "get")

    assert sent[0].content.startswith("[Recap]")
    assert sent[-1] == talk(30)[-1]


@pytest.mark.parametrize("way", ["string", "dict", "pickle"])
def test_a_summary_is_saved_and_read(way: str) -> None:
    """Theirs raises NotImplementedError for both forms."""
    memory = memory_of(300, summarizer=StrictLLM(lambda _: "They spoke of rules.", window=8000))
    memory.put_messages(talk(30))
    sent = memory.get()
    saved: dict[str, Any] = {
        "string": lambda: CompactingMemory.from_string(memory.to_string()),
        "dict": lambda: CompactingMemory.from_dict(memory.to_dict()),
        "pickle": lambda: pickle.loads(pickle.dumps(memory)),
    }
    assert saved[way]().get() == sent


def test_without_a_model_the_oldest_are_extracted_and_no_warning_is_given(
    entry_point: EntryPoint,
) -> None:
    """Theirs drops the oldest without a word."""
    import warnings

    memory = memory_of(300)
    memory.put_messages([*FERRY, *talk(30)])
    with warnings.catch_warnings():
        warnings.simplefilter("error", CompactionWarning)
        sent: Any = entry_point.call(memory, "get")
    assert sent[0].content.startswith("[Recap]")


# --- of VectorMemory and SimpleComposableMemory --------------------------------------------------


def test_a_turn_comes_back_whole_for_its_question(entry_point: EntryPoint) -> None:
    """Theirs keeps a user message with what follows it as one node."""
    looked = [said("user", "Which crane is broken?"), calling("c1", part=7),
              result("c1", "crane 7: hook bent"), said("assistant", "It is crane 7.")]  # fmt: skip
    memory = memory_of(400)
    memory.put_messages([*looked, *talk(40)])
    sent: Any = entry_point.call(memory, "get", "Which crane is broken?")

    at = next(at for at, one in enumerate(sent) if one.content == looked[0].content)
    assert sent[at : at + 4] == looked


def test_without_a_question_the_history_is_returned(entry_point: EntryPoint) -> None:
    """Theirs returns nothing."""
    memory = memory_of(1000)
    memory.put_messages(FERRY)

    assert entry_point.call(memory, "get") == FERRY
    assert entry_point.call(memory, "get_all") == FERRY


@pytest.mark.parametrize("verb", ["set", "reset"])
def test_what_was_replaced_is_not_found_again(verb: str, entry_point: EntryPoint) -> None:
    """Theirs empties its index for both."""
    memory = memory_of(300)
    memory.put_messages([*FERRY, *talk(40)])
    entry_point.call(memory, "get", ASKED)
    entry_point.call(memory, verb, *([talk(2)] if verb == "set" else []))

    assert "pier 4" not in content(entry_point.call(memory, "get", ASKED))  # pyright: ignore[reportArgumentType] - messages


def test_recent_and_recalled_turns_are_sent_once_each(entry_point: EntryPoint) -> None:
    """Composed memories send the same message from both, and invent a system prompt."""
    memory = memory_of(600)
    memory.put_messages([*talk(60), *FERRY])
    sent: Any = entry_point.call(memory, "get", ASKED)

    assert [message.content for message in sent].count(FERRY[1].content) == 1
    assert all(message.role is not MessageRole.SYSTEM for message in sent)
    assert size(sent) <= 600


def test_what_is_put_once_reaches_recent_and_recalled_alike(entry_point: EntryPoint) -> None:
    """A composed memory writes into each of its parts; one of them may fail."""
    memory = memory_of(300)
    for message in [*FERRY, *talk(40)]:
        entry_point.call(memory, "put", message)

    assert len(memory.get_all()) == 42
    assert "pier 4" in content(entry_point.call(memory, "get", ASKED))  # pyright: ignore[reportArgumentType] - messages
