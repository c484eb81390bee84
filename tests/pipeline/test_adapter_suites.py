"""Both adapters pass the suites that a third one would be held to."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("langchain_core")
pytest.importorskip("llama_index.core")

import langchain_muntin
import llama_index_muntin
from langchain_muntin.testing import StrictChatModel
from llama_index_muntin.testing import StrictLLM
from muntin import CallableSource, count_tokens
from muntin.testing import RetrieverSuite, SummarizerSuite

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from muntin import Candidate, ContextConfig
    from muntin.report import AssemblyReport
    from muntin.runtime import Summarizer

pytestmark = pytest.mark.usefixtures("own_loop")


def _named(sources: Mapping[str, Sequence[Candidate]]) -> dict[str, Any]:
    return {
        name: CallableSource(name, lambda query, _found=found: _found)
        for name, found in sources.items()
    }


class TestLangChainRetriever(RetrieverSuite):
    """Retrieve through LangChain."""

    def retrieve(
        self,
        sources: Mapping[str, Sequence[Candidate]],
        budget: int,
        config: ContextConfig | None,
    ) -> tuple[list[str], AssemblyReport]:
        retriever = langchain_muntin.AssembledRetriever(
            sources=_named(sources), budget=budget, config=config, counter=count_tokens
        )
        texts = [document.page_content for document in retriever.invoke("when?")]
        assert retriever.last_report is not None
        return texts, retriever.last_report


class TestLlamaIndexRetriever(RetrieverSuite):
    """Retrieve through LlamaIndex."""

    def retrieve(
        self,
        sources: Mapping[str, Sequence[Candidate]],
        budget: int,
        config: ContextConfig | None,
    ) -> tuple[list[str], AssemblyReport]:
        retriever = llama_index_muntin.AssembledRetriever(
            _named(sources), budget=budget, config=config, counter=count_tokens
        )
        texts = [node.text for node in retriever.retrieve("when?")]
        assert retriever.last_report is not None
        return texts, retriever.last_report


class TestLangChainSummarizer(SummarizerSuite):
    """Summarise with a LangChain model."""

    def make(self, reply: str) -> Summarizer:
        return langchain_muntin.ModelSummarizer(StrictChatModel(window=4000, replies=[reply]))

    def make_slow(self, seconds: float) -> Summarizer:
        def wait(_: Any) -> str:
            time.sleep(seconds)
            return "late"

        return langchain_muntin.ModelSummarizer(StrictChatModel(window=4000, replies=wait))


class _SlowLLM(StrictLLM):
    """Answer late, without blocking the loop."""

    def chat(self, messages: Any, **kwargs: Any) -> Any:
        time.sleep(0.5)
        return StrictLLM.chat(self, messages, **kwargs)

    async def achat(self, messages: Any, **kwargs: Any) -> Any:
        await asyncio.sleep(0.5)
        return await StrictLLM.achat(self, messages, **kwargs)


class TestLlamaIndexSummarizer(SummarizerSuite):
    """Summarise with a LlamaIndex model."""

    def make(self, reply: str) -> Summarizer:
        return llama_index_muntin.LLMSummarizer(StrictLLM([reply]))

    def make_slow(self, seconds: float) -> Summarizer:
        late: Any = _SlowLLM
        return llama_index_muntin.LLMSummarizer(late(["late"]))
