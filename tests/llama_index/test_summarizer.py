"""Any LlamaIndex model can write recaps, through the entry point it was asked at."""

# Settings are passed on as they come.
# pyright: reportArgumentType=false

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core.base.llms.types import ChatMessage, ChatResponse

from llama_doubles import talk
from llama_index_muntin import LLMSummarizer
from llama_index_muntin.summarizer import summarizer_for
from llama_index_muntin.testing import StrictLLM
from muntin import ConfigurationError, HistoryCompactor, SummaryError
from muntin.runtime.flow import SummaryRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conftest import EntryPoint

pytestmark = pytest.mark.usefixtures("own_loop")

REQUEST = SummaryRequest(text="A long story.", instruction="Shorter.", max_tokens=20)


class EntryPointLLM(StrictLLM):
    """Say through which entry point it was asked."""

    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return ChatResponse(message=ChatMessage(role="assistant", content="sync"))

    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        await asyncio.sleep(0.05)
        return ChatResponse(message=ChatMessage(role="assistant", content="async"))


def test_it_is_asked_at_the_entry_point_the_caller_uses(entry_point: EntryPoint) -> None:
    """A sync call behind an async entry point would block everybody else."""
    assert entry_point.call(LLMSummarizer(EntryPointLLM()), "answer", REQUEST) == entry_point.name


def test_text_is_the_users_and_the_instruction_the_systems(entry_point: EntryPoint) -> None:
    """A conversation that is summarised must not give the summariser orders."""
    llm = StrictLLM(["Short."])

    assert entry_point.call(LLMSummarizer(llm), "answer", REQUEST) == "Short."
    assert [(m.role.value, m.content) for m in llm.requests[0]] == [
        ("system", "Shorter."), ("user", "A long story."),
    ]  # fmt: skip


def test_a_model_that_does_not_answer_is_not_waited_for() -> None:
    """A summary that hangs must not hang the turn."""
    slow = LLMSummarizer(EntryPointLLM()).within(0.01)
    with pytest.raises(SummaryError, match=r"0\.01 s"):
        asyncio.run(slow.aanswer(REQUEST))


def test_what_it_is_given_fits_its_window(entry_point: EntryPoint) -> None:
    """A small model summarises a long history in parts."""
    llm = StrictLLM(lambda _: "They spoke of rules.", window=1200, num_output=200)
    compactor = HistoryCompactor(
        LLMSummarizer(llm), keep_recent=2, trigger_tokens=500, max_summary_tokens=100
    )
    entry_point.call(compactor, "compact", talk(200))

    assert llm.calls > 3
    assert max(llm.tokens) <= 1000


def test_whatever_can_summarise_is_taken_and_nothing_else() -> None:
    """A mistake is said at construction, not at the first summary."""
    assert summarizer_for(None) is None
    assert isinstance(summarizer_for(StrictLLM()), LLMSummarizer)
    with pytest.raises(ConfigurationError):
        summarizer_for(3)
