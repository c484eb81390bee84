"""Let a chat model write recaps; its input is bounded and its tokens are not streamed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.runnables import Runnable

from langchain_muntin._values.models import ModelFacts
from muntin.adapting import ChatSummarizer
from muntin.config import WindowBudgetConfig
from muntin.conversations import ExtractiveSummarizer
from muntin.counting import REPLY_TOKENS, checked_tokens, framing_of, truncate_to_tokens
from muntin.runtime import Summarizer, summarizer_of

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from muntin.runtime import AnySummarizer

__all__ = ("ModelSummarizer", "summarizer_for")

_INPUT_TOKENS = 16_000
"""Tokens a model of unknown window is given to read: half of what small models hold."""
_CONFIG: RunnableConfig = {
    # LangGraph does not stream calls with this tag; front ends hide messages with this source.
    "tags": ["nostream", "muntin:summary"],
    "metadata": {"lc_source": "summarization"},
    "run_name": "muntin.summary",
}


class ModelSummarizer(ChatSummarizer):
    """Make a summariser of a chat model.

    A text that exceeds the window of the model is first cut down to its most important sentences.
    One request is one call; failures are raised, and the policy that asked goes on without a
    summary.

    Args:
        model: Any chat model, alone or wrapped.
        max_input_tokens: Tokens it is given at most, the instruction included; `None` takes what
            its window leaves after the answer, or 16,000 where that is unknown.

    ```python
    from langchain_muntin import ModelSummarizer
    from langchain_muntin.testing import StrictChatModel
    from muntin import HistoryCompactor

    model = StrictChatModel(window=8000, replies=["They spoke of the weather."])
    compactor = HistoryCompactor(ModelSummarizer(model), keep_recent=1, trigger_tokens=20)
    talk = [{"role": "user", "content": "It rains and rains and rains. " * 9},
            {"role": "assistant", "content": "Yes, it does. " * 9},
            {"role": "user", "content": "Bye."}]
    print(compactor.compact(talk)[0]["content"])
    #> [Recap] They spoke of the weather.
    ```
    """

    def __init__(self, model: Runnable[Any, Any], *, max_input_tokens: int | None = None) -> None:
        super().__init__()
        if max_input_tokens is not None:
            max_input_tokens = checked_tokens(max_input_tokens, "max_input_tokens")
        self.model = model
        self._facts = ModelFacts.of(model)
        self._counter = self._facts.counter()
        self._max_input_tokens = max_input_tokens

    @property
    def context_window(self) -> int | None:
        """Tokens of the model's window; `None` when unknown."""
        window = self._facts.window(None)
        return None if window is None else window.tokens

    def ask(self, instruction: str, text: str, max_tokens: int) -> Any:
        """Ask the model."""
        return self.model.invoke(self._prompt(instruction, text, max_tokens), _CONFIG)

    async def aask(self, instruction: str, text: str, max_tokens: int) -> Any:
        """Ask the model without blocking the event loop."""
        return await self.model.ainvoke(self._prompt(instruction, text, max_tokens), _CONFIG)

    def _prompt(
        self, instruction: str, text: str, max_tokens: int
    ) -> list[SystemMessage | HumanMessage]:
        """Write messages that fit: the instruction whole, of the text what fits."""
        limit = self._limit(instruction, max_tokens)
        if self._counter(text) > limit:
            short = ExtractiveSummarizer(counter=self._counter)(text, max_tokens=limit)
            text = short or truncate_to_tokens(text, limit, self._counter)
        return [SystemMessage(instruction), HumanMessage(text)]

    def _limit(self, instruction: str, max_tokens: int) -> int:
        """Return the tokens the text may take."""
        given = self._max_input_tokens
        if given is None:
            divided = self._facts.division(None, WindowBudgetConfig())
            if divided is None:
                given = _INPUT_TOKENS
            else:
                window, reserve = divided
                given = window.tokens - max(reserve, max_tokens)
        framing = 2 * framing_of(self._counter) + REPLY_TOKENS
        # Joined counts may differ from counts of parts by a few tokens: a little is left free.
        return max(int(0.97 * given) - self._counter(instruction) - framing, 1)


def summarizer_for(given: Any) -> Any:
    """Make a summariser of whatever a caller has; a LangChain model or chain among it.

    Raises:
        ConfigurationError: It cannot summarise.
    """
    if given is None or isinstance(given, Summarizer):
        return given
    if isinstance(ModelFacts.of(given).model, BaseChatModel) or isinstance(given, Runnable):
        return ModelSummarizer(cast("Runnable[Any, Any]", given))
    return summarizer_of(cast("AnySummarizer", given))
