"""Test doubles for models, embedders and summarisers that do exactly what a test sets."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from muntin.errors import SummaryError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

__all__ = (
    "FailingSummarizer",
    "FakeEmbedder",
    "ScriptedLLM",
    "ScriptedReply",
    "SlowSummarizer",
    "words_counter",
)


@dataclass(frozen=True, slots=True)
class ScriptedReply:
    """Hold what a scripted model answers."""

    content: str
    """The text of the answer."""


class ScriptedLLM:
    """Answer with prepared replies, in order, and remember what was asked.

    Args:
        replies: What to answer, one for each call; an exception among them is raised.
        context_window: Tokens of the window it claims to have; `None` leaves it unknown.
        max_output_tokens: Tokens it claims to write at most; `None` leaves it unknown.

    ```python
    import asyncio

    from muntin.testing import ScriptedLLM

    llm = ScriptedLLM(["Hello."])
    print(asyncio.run(llm.chat([{"role": "user", "content": "Hi"}])).content, llm.calls)
    #> Hello. 1
    ```
    """

    def __init__(
        self,
        replies: Iterable[str | Exception] = (),
        *,
        context_window: int | None = None,
        max_output_tokens: int | None = None,
    ) -> None:
        self._replies = list(replies)
        self.requests: list[Any] = []
        """The messages of every call so far."""
        self.context_window = context_window
        self.max_output_tokens = max_output_tokens

    @property
    def calls(self) -> int:
        """Number of calls."""
        return len(self.requests)

    async def chat(self, messages: Sequence[Any]) -> ScriptedReply:
        """Return the next reply.

        Raises:
            AssertionError: It was asked more often than it has replies.
        """
        self.requests.append(messages)
        if self.calls > len(self._replies):
            raise AssertionError(
                f"ScriptedLLM was asked {self.calls} times and has {len(self._replies)} replies"
            )
        reply = self._replies[self.calls - 1]
        if isinstance(reply, Exception):
            raise reply
        return ScriptedReply(reply)


class FakeEmbedder:
    """Give every text a vector of its own: equal texts equal vectors, others nearly orthogonal.

    Args:
        dim: Numbers in a vector.

    ```python
    from muntin.testing import FakeEmbedder

    embedder = FakeEmbedder(dim=4)
    print((embedder.embed("a") == embedder.embed("a")).all(), embedder.embed("b").shape)
    #> True (4,)
    ```
    """

    def __init__(self, dim: int = 8) -> None:
        self.dim = dim

    def embed(self, text: str) -> NDArray[np.float32]:
        """Return the unit vector of a text, shape `(dim,)`."""
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        draw = np.random.default_rng(np.frombuffer(digest, dtype=np.uint32))
        vector = draw.normal(size=self.dim)
        return (vector / np.linalg.norm(vector)).astype(np.float32)

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a question, as LangChain's embeddings do."""
        return self.embed(text).tolist()

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """Return the vectors of passages, as LangChain's embeddings do."""
        return [self.embed_query(text) for text in texts]


class FailingSummarizer:
    """Raise at every call, and count the calls."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error or SummaryError("this summariser always fails")
        self.calls = 0

    def __call__(self, text: str, instruction: str) -> str:  # noqa: ARG002 - a summariser's signature
        """Raise."""
        self.calls += 1
        raise self.error


class SlowSummarizer:
    """Answer after some seconds.

    Args:
        seconds: How long to take.
        answer: What to answer in the end.
        sleep: How to wait; replace it to make time pass without waiting.
    """

    def __init__(
        self,
        seconds: float,
        answer: str = "a summary",
        *,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.seconds, self.answer, self.calls = seconds, answer, 0
        self._sleep = sleep

    def __call__(self, text: str, instruction: str) -> str:  # noqa: ARG002 - a summariser's signature
        """Wait, then answer."""
        self.calls += 1
        self._sleep(self.seconds)
        return self.answer


def words_counter(text: str) -> int:
    """Count words, for tests with figures that a reader can check."""
    return len(text.split())
