"""Summarise with a framework's chat model, from sync and async code, with a timeout."""

from __future__ import annotations

import copy
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Self

from muntin.runtime import Summarizer, text_of

if TYPE_CHECKING:
    from muntin.runtime import SummaryRequest

__all__ = ("ChatSummarizer",)


class ChatSummarizer(Summarizer):
    """Summarise with a chat model: implement `ask` and `aask`.

    The instruction is for the system's message and the text for the user's, so that nothing in the
    text is read as an instruction. Failures are raised; the policy that asked goes on without a
    summary.

    Args:
        timeout: Seconds one summary may take; `None` sets no limit.
    """

    def __init__(self, *, timeout: float | None = None) -> None:
        super().__init__(self._asked, is_async=False, timeout=timeout)

    @abstractmethod
    def ask(self, instruction: str, text: str, max_tokens: int) -> Any:
        """Ask the model and return its reply: a text, or anything `text_of` reads."""

    @abstractmethod
    async def aask(self, instruction: str, text: str, max_tokens: int) -> Any:
        """Ask the model without blocking the event loop."""

    def within(self, timeout: float) -> Self:
        """Return the same summariser with another timeout, in seconds."""
        made = copy.copy(self)
        made.__dict__.update(_timeout=timeout, _ask=made._asked)
        return made

    async def aanswer(self, request: SummaryRequest) -> str:
        """Answer a request without blocking the event loop.

        Raises:
            SummaryError: No answer came in time, or it holds no text.
        """
        import asyncio

        clock = asyncio.timeout(self._timeout)
        try:
            async with clock:
                reply = await self.aask(request.instruction, request.text, request.max_tokens)
        except TimeoutError as late:
            if not clock.expired():  # a timeout of the model itself
                raise
            raise self._too_late() from late
        return text_of(reply)

    def _asked(self, request: SummaryRequest) -> Any:
        return self.ask(request.instruction, request.text, request.max_tokens)
