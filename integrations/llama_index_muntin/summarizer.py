"""Let any LlamaIndex model write recaps, through its sync and its async chat."""

from __future__ import annotations

from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.llms.llm import LLM

from muntin.adapting import ChatSummarizer
from muntin.runtime import Summarizer, summarizer_of

__all__ = ("LLMSummarizer", "summarizer_for")


class LLMSummarizer(ChatSummarizer):
    """Ask a LlamaIndex model for a summary.

    The text is the user's message and the instruction the system's, so that nothing in the text is
    read as an instruction.

    Args:
        llm: Any `LLM`.
        timeout: Seconds one summary may take; `None` sets no limit.

    ```python
    from llama_index_muntin import LLMSummarizer
    from llama_index_muntin.testing import StrictLLM
    from muntin import HistoryCompactor, Message

    llm = StrictLLM(["They talked about the weather."])
    compactor = HistoryCompactor(LLMSummarizer(llm), keep_recent=1, trigger_tokens=40)
    history = [
        Message("It is raining again. " * 6, "user"),
        Message("Take a coat. " * 6, "assistant"),
        Message("And tomorrow?", "user"),
    ]
    print(compactor.compact(history)[0].content)
    #> [Recap] They talked about the weather.
    ```
    """

    def __init__(self, llm: LLM, *, timeout: float | None = None) -> None:
        super().__init__(timeout=timeout)
        self.llm = llm

    @property
    def context_window(self) -> int:
        """Tokens of the model's window; requests for summaries keep within it."""
        return self.llm.metadata.context_window

    @property
    def max_output_tokens(self) -> int:
        """Tokens the model reserves for an answer; 0 or less if it reports none."""
        return self.llm.metadata.num_output

    def ask(self, instruction: str, text: str, max_tokens: int) -> Any:  # noqa: ARG002 - models have no common option for it
        """Ask the model."""
        return self.llm.chat(_prompt(instruction, text)).message.content

    async def aask(self, instruction: str, text: str, max_tokens: int) -> Any:  # noqa: ARG002 - models have no common option for it
        """Ask the model without blocking the event loop."""
        return (await self.llm.achat(_prompt(instruction, text))).message.content


def summarizer_for(given: Any) -> Any:
    """Take a model or anything else that summarises; `None` stays `None`.

    Raises:
        ConfigurationError: It cannot summarise.
    """
    if given is None or isinstance(given, Summarizer):
        return given
    if isinstance(given, LLM):
        return LLMSummarizer(given)
    summarizer_of(given)  # refused here, not at the first summary
    return given


def _prompt(instruction: str, text: str) -> list[ChatMessage]:
    return [
        ChatMessage(role=MessageRole.SYSTEM, content=instruction),
        ChatMessage(role=MessageRole.USER, content=text),
    ]
