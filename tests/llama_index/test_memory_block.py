"""The block for `Memory` keeps what its queue lets go, session by session, within a budget."""

# Settings are passed on as they come.
# pyright: reportArgumentType=false

from __future__ import annotations

import asyncio
import json
import pickle
import warnings
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core.memory import Memory

from llama_doubles import EXACT, said, sentence, talk
from llama_index_muntin import MuntinMemoryBlock
from muntin import SummaryError

if TYPE_CHECKING:
    from llama_index.core.base.llms.types import ChatMessage

pytestmark = pytest.mark.usefixtures("own_loop")


def block_of(**more: Any) -> MuntinMemoryBlock:
    """Make a block that counts exactly."""
    return MuntinMemoryBlock(
        **{"name": "earlier", "max_tokens": 300, "token_counter": EXACT, **more}
    )


def told(block: MuntinMemoryBlock, question: str = "what?", **more: Any) -> str:
    """Ask a block for its text."""
    return asyncio.run(block.aget([said("user", question)], **more))


def put(block: MuntinMemoryBlock, messages: list[ChatMessage], **more: Any) -> None:
    """Flush messages into a block."""
    asyncio.run(block.aput(messages, from_short_term_memory=True, **more))


def test_an_empty_block_says_nothing() -> None:
    """A block in every prompt must cost nothing before anything was flushed."""
    assert told(block_of()) == ""


@pytest.mark.parametrize("count", [1, 10, 80])
def test_its_text_is_inside_its_budget(count: int) -> None:
    """60 blocks of two words took 1147 tokens of a limit of 400."""
    block = block_of()
    for message in talk(count):
        put(block, [message])

    assert 0 < EXACT(told(block)) <= 300


def test_what_speaks_of_the_question_is_told() -> None:
    """The oldest remark may be the one that is asked for."""
    block = block_of(max_tokens=400)
    put(block, [said("user", "My daughter Ada is allergic to walnuts."), *talk(9)])

    assert "walnuts" in told(block, "Is Ada allergic to walnuts?")


def test_one_session_does_not_read_another() -> None:
    """A filter that stayed on the first session showed Ada's messages to Bob."""
    block = block_of()
    put(block, [said("user", "alpha")], session_id="ada")
    put(block, [said("user", "beta")], session_id="bob")

    assert told(block, session_id="ada") == "user: alpha"
    assert told(block, session_id="bob") == "user: beta"


def test_a_summariser_that_fails_does_not_end_the_users_turn() -> None:
    """A fact block raises out of `aput`, and the messages are archived already."""

    def fail(text: str, instruction: str) -> str:
        raise SummaryError("down")

    block = block_of(summarizer=fail)
    put(block, talk(40))

    assert sum(len(log.messages) for log in block.logs.values()) == 40
    assert 0 < EXACT(told(block)) <= 300


def test_the_block_can_be_shortened() -> None:
    """The default drops all of it."""
    block = block_of()
    put(block, talk(10))
    text = told(block)
    shorter = asyncio.run(block.atruncate(text, 100))

    assert shorter is not None
    assert 0 < EXACT(shorter) <= EXACT(text) - 100
    assert asyncio.run(block.atruncate(text, 10_000)) is None


def test_it_can_be_saved_and_read_back() -> None:
    """A restart must not empty it."""
    block = block_of()
    put(block, talk(30), session_id="ada")
    restored = MuntinMemoryBlock.model_validate(json.loads(block.model_dump_json()))

    assert told(restored, session_id="ada") == told(block, session_id="ada")


def test_it_works_inside_memory() -> None:
    """What the queue flushes comes back in the system message."""
    block = block_of(max_tokens=400)

    async def chat() -> str:
        memory = Memory.from_defaults(
            session_id="ada", token_limit=900, chat_history_token_ratio=0.5,
            token_flush_size=300, memory_blocks=[block],
        )  # fmt: skip
        await memory.aput(said("user", "My daughter is called Ada."))
        for at in range(30):
            await memory.aput(said("assistant" if at % 2 else "user", sentence(at)))
        messages = await memory.aget(input="What is my daughter called?")
        engine = memory.sql_store._async_engine  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType] - it has no other way to close
        await engine.dispose()  # pyright: ignore[reportUnknownMemberType] - the same
        return "\n".join(str(message.content) for message in messages)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        text = asyncio.run(chat())

    assert "<earlier>" in text
    assert block.logs["ada"].messages[0] == said("user", "My daughter is called Ada.")


@pytest.mark.parametrize(
    "own", [{"summarizer": lambda text, _: text[:9]}, {"token_counter": lambda text: len(text)}]
)
def test_what_cannot_be_pickled_stays_behind_and_the_messages_do_not(own: dict[str, Any]) -> None:
    """A worker process could not take it over, though it could a memory with the same objects."""
    block = block_of(**own)
    put(block, talk(3))

    back: MuntinMemoryBlock = pickle.loads(pickle.dumps(block))
    put(back, talk(1))

    assert len(back.logs[""].messages) == 4
    assert told(back)
    assert all(getattr(block, name) is value for name, value in own.items())
    assert told(block)
