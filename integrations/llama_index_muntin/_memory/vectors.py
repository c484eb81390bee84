"""Vectors of folded turns and of the question, computed by an embedding model and remembered."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import numpy as np

from llama_index_muntin._memory.port import Call
from llama_index_muntin._memory.send import Recall

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from llama_index_muntin._memory.port import Operation

__all__ = ("TurnVectors",)

_REMEMBERED = 20_000
"""Vectors that are kept, by text; those not used for longest are forgotten first."""


class TurnVectors:
    """Compute the vectors that turns are recalled by.

    Args:
        embed_model: A LlamaIndex embedding model.
    """

    def __init__(self, embed_model: Any) -> None:
        self.model = embed_model
        self._turns: OrderedDict[str, NDArray[np.float32]] = OrderedDict()
        self._asked: tuple[str, NDArray[np.float32]] | None = None

    def recall(self, question: str, turns: Sequence[tuple[int, str]]) -> Operation[Recall]:
        """Return the vectors of a question and of turns; only new texts are computed.

        Args:
            question: The question.
            turns: First position and text of each turn; one without text gets no vector.
        """
        texts = dict.fromkeys(text for _, text in turns if text.strip())
        missing = [text for text in texts if text not in self._turns]
        if missing:
            method = "get_text_embedding_batch"
            vectors = yield Call(f"a{method}", method, (missing,))
            self._turns.update(zip(missing, map(_unit, vectors), strict=True))
            while len(self._turns) > max(_REMEMBERED, len(texts)):
                self._turns.popitem(last=False)
        if self._asked is None or self._asked[0] != question:
            asked = yield Call("aget_query_embedding", "get_query_embedding", (question,))
            self._asked = (question, _unit(asked))
        known = {at: self._turns[text] for at, text in turns if text in self._turns}
        return Recall(asked=self._asked[1], vectors=known)


def _unit(vector: Sequence[float]) -> NDArray[np.float32]:
    """Return a vector of length 1; one that is zero or not finite becomes zero, like no turn."""
    array = np.asarray(vector, dtype=np.float32)
    length = float(np.linalg.norm(array))
    return array / length if np.isfinite(length) and length > 0 else np.zeros_like(array)
