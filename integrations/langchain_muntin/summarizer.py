"""Let a chat model write recaps: its input bounded, its tokens kept off the user's screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.runnables import Runnable

from langchain_muntin._models import ModelFacts
from muntin.config import WindowBudgetConfig
from muntin.conversations import ExtractiveSummarizer
from muntin.counting import FRAMING_TOKENS, REPLY_TOKENS, truncate_to_tokens
from muntin.errors import ConfigurationError
from muntin.runtime import Summarizer, SummaryRequest, summarizer_of, text_of

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from muntin.runtime import AnySummarizer

__all__ = ("ModelSummarizer", "summarizer_for")

_INPUT_TOKENS = 16_000
"""What a model of unknown window is given to read: half of what small models hold."""
_CONFIG: RunnableConfig = {
    # LangGraph does not stream what carries this tag; frontends hide what says where it is from.
    "tags": ["nostream", "muntin:summary"],
    "metadata": {"lc_source": "summarization"},
    "run_name": "muntin.summary",
}


class ModelSummarizer(Summarizer):
    """Make a summariser of a chat model.

    What it is given to read never exceeds its window: more is first cut down to the sentences that
    carry most. One request is one call; failures are raised, and whoever asked for the recap goes
    on without.

    Args:
        model: Any chat model, alone or wrapped.
        max_input_tokens: Tokens it is given at most, the instruction included; `None` takes what
            its window leaves beside the answer, or 16,000 where that is unknown.

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
        if max_input_tokens is not None and max_input_tokens < 1:
            raise ConfigurationError(f"max_input_tokens must be 1 or more, not {max_input_tokens}")
        self.model = model
        self._facts = ModelFacts.of(model)
        self._counter = self._facts.counter()
        self._max_input_tokens = max_input_tokens
        super().__init__(self._invoke, is_async=False)

    @property
    def context_window(self) -> int | None:
        """Tokens of the model's window; `None` when unknown."""
        window = self._facts.window(None)
        return None if window is None else window.tokens

    def within(self, timeout: float) -> Summarizer:
        """Return the same summariser with a timeout, in seconds."""
        made = ModelSummarizer(self.model, max_input_tokens=self._max_input_tokens)
        made._timeout = timeout
        return made

    async def aanswer(self, request: SummaryRequest) -> str:
        """Answer a request without blocking the loop.

        Raises:
            SummaryError: No answer came in time, or it holds no text.
        """
        import asyncio

        scope = asyncio.timeout(self._timeout)
        try:
            async with scope:
                return text_of(await self.model.ainvoke(self._prompt(request), _CONFIG))
        except TimeoutError as late:
            if not scope.expired():  # the model's own, which is no less an error
                raise
            raise self._too_late() from late

    def _invoke(self, request: SummaryRequest) -> object:
        return self.model.invoke(self._prompt(request), _CONFIG)

    def _prompt(self, request: SummaryRequest) -> list[SystemMessage | HumanMessage]:
        """Write the request as messages that fit: the instruction whole, the text as it fits."""
        text, room = request.text, self._room(request)
        if self._counter(text) > room:
            text = ExtractiveSummarizer(counter=self._counter)(text, max_tokens=room)
            text = text or truncate_to_tokens(request.text, room, self._counter)
        return [SystemMessage(request.instruction), HumanMessage(text)]

    def _room(self, request: SummaryRequest) -> int:
        given = self._max_input_tokens
        if given is None:
            divided = self._facts.division(None, WindowBudgetConfig())
            if divided is None:
                given = _INPUT_TOKENS
            else:
                window, reserve = divided
                given = window.tokens - max(reserve, request.max_tokens)
        framing = 2 * FRAMING_TOKENS + REPLY_TOKENS
        # Joined counts may differ from counts of parts by a few tokens: a little is left free.
        return max(int(0.97 * given) - self._counter(request.instruction) - framing, 1)


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
