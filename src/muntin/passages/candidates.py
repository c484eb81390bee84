"""What a source offers: passages with a score, and the scope they were fetched for.

A candidate is a value: two with the same content, score and source are equal, wherever they came
from. An embedding is ballast for selection, not identity, so it takes no part in comparison.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from muntin.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

__all__ = ("Candidate", "Embedding", "RetrievalResult", "Scope", "candidate_of")

Embedding: TypeAlias = "Sequence[float] | NDArray[np.floating[Any]]"
"""A vector of shape `(d,)`: any sequence of floats or a numpy array."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Offer one passage for a place in the context.

    ```python
    from muntin import Candidate

    fact = Candidate("Letters weigh 80 grams at most.", score=0.9, source="rag")
    print(fact.content, fact.score)
    #> Letters weigh 80 grams at most. 0.9
    ```
    """

    content: str
    """The passage, as it is to be read by the model."""
    score: float | None = None
    """Relevance as the retriever gave it, higher is better, on any scale. `None` means unknown:
    the candidate then keeps the rank at which its source delivered it."""
    source: str = ""
    """Name of the source. A builder fills it in where it is empty."""
    id: str = ""
    """The retriever's own identifier; `""` where it has none."""
    embedding: Embedding | None = field(default=None, repr=False, compare=False)
    """Vector of the passage, shape `(d,)`. `None`, empty, or with a value that is not finite
    means no embedding: similarity is then judged by the words."""
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False, compare=False)
    """Other values from the retriever, passed through. Titles, paths, ids and the fields of item
    templates are read from it."""
    pinned: bool = False
    """Whether it must be placed. A pinned candidate is placed first and never dropped."""

    def __post_init__(self) -> None:
        if not isinstance(cast("object", self.content), str):
            raise ConfigurationError(
                f"a candidate's content is a str, not {type(self.content).__name__}"
            )

    def __hash__(self) -> int:
        return hash((self.content, self.score, self.source, self.id))


RetrievalResult = Candidate
"""The name reference documents use for a `Candidate`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The user, agent, session and app that a run fetches for. `""` counts as `None`."""

    base: str | None = None
    """Whatever all the rest lives under, for instance a tenant."""
    user: str | None = None
    """The person asking."""
    agent: str | None = None
    """The agent at work."""
    session: str | None = None
    """The conversation."""
    app: str | None = None
    """The application."""

    def __post_init__(self) -> None:
        for name in ("base", "user", "agent", "session", "app"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise ConfigurationError(f"scope {name} is a str or None, not {value!r}")
            if value == "":
                object.__setattr__(self, name, None)


def candidate_of(item: object, source: str = "") -> Candidate | None:
    """Return an object as a candidate, or `None` where it is not one.

    Accepts candidates, strings (their score is unknown), and objects with a `content` text and a
    `score`, such as agentmaker's `RetrievalResult`.

    Args:
        item: What a source returned.
        source: Name of the source, used where the object names none.
    """
    if isinstance(item, Candidate):
        return item if item.source or not source else replace(item, source=source)
    if isinstance(item, str):
        return Candidate(item, source=source)
    content = getattr(item, "content", None)
    if not isinstance(content, str) or not hasattr(item, "score"):
        return None
    return Candidate(
        content,
        cast("Any", item).score,
        source=getattr(item, "source", "") or source,
        id=getattr(item, "id", "") or "",
        embedding=getattr(item, "embedding", None),
        metadata=getattr(item, "metadata", None) or {},
    )
