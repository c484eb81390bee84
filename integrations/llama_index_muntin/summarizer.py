"""Let any LlamaIndex model write recaps, through its sync and its async chat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.llms.llm import LLM

from muntin.errors import SummaryError
from muntin.runtime import Summarizer, summarizer_of, text_of

if TYPE_CHECKING:
    from muntin.runtime import SummaryRequest

__all__ = ("LLMSummarizer", "summarizer_for")


class LLMSummarizer(Summarizer):
    """Ask a LlamaIndex model for a summary.

    What is summarised is told as the user's message, the instruction as the system's, so that
    nothing in the text reads as an instruction.

    Args:
        llm: Any `LLM`.
        timeout: Seconds one summary may take; `None` waits for ever.

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
        super().__init__(self._chat, is_async=False, timeout=timeout)
        self.llm = llm
        self._seconds = timeout

    @property
    def context_window(self) -> int:
        """Tokens of the model's window; requests for summaries keep within it."""
        return self.llm.metadata.context_window

    @property
    def max_output_tokens(self) -> int:
        """Tokens the model sets aside for an answer; 0 or less where it does not say."""
        return self.llm.metadata.num_output

    def within(self, timeout: float) -> LLMSummarizer:
        """Return the same summariser with another timeout, in seconds."""
        return LLMSummarizer(self.llm, timeout=timeout)

    async def aanswer(self, request: SummaryRequest) -> str:
        """Answer a request without blocking the loop.

        Raises:
            SummaryError: No answer came in time, or it holds no text.
        """
        import asyncio

        scope = asyncio.timeout(self._seconds)
        try:
            async with scope:
                reply = await self.llm.achat(_prompt(request))
        except TimeoutError as late:
            if not scope.expired():  # the model's own, which is no less an error
                raise
            raise SummaryError(
                f"the model gave no summary within {self._seconds:g} s: raise `timeout`"
            ) from late
        return text_of(reply.message.content)

    def _chat(self, request: SummaryRequest) -> object:
        return self.llm.chat(_prompt(request)).message.content


def summarizer_for(given: Any) -> Any:
    """Take a model or anything else that summarises; `None` stays `None`.

    Raises:
        ConfigurationError: It cannot summarise.
    """
    if given is None or isinstance(given, Summarizer):
        return given
    if isinstance(given, LLM):
        return LLMSummarizer(given)
    summarizer_of(given)  # said here, not at the first summary
    return given


def _prompt(request: SummaryRequest) -> list[ChatMessage]:
    return [
        ChatMessage(role=MessageRole.SYSTEM, content=request.instruction),
        ChatMessage(role=MessageRole.USER, content=request.text),
    ]
