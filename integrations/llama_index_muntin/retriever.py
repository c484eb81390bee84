"""Retrieve from several sources at once and hand out what deserves a place, within a budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

from llama_index.core.base.base_retriever import BaseRetriever

from llama_index_muntin._choice import NodeLayout, choose
from llama_index_muntin._models import counter_of
from llama_index_muntin._vectors import NodeVectors
from llama_index_muntin.sources import Question, source_of
from muntin.config import ContextConfig
from muntin.errors import ConfigurationError
from muntin.passages import Gathered, agather, check_sources, gather

if TYPE_CHECKING:
    from collections.abc import Mapping

    from llama_index.core.schema import NodeWithScore, QueryBundle

    from muntin.counting import TokenCounter
    from muntin.passages import Embedding
    from muntin.report import AssemblyReport

__all__ = ("AssembledRetriever",)


class AssembledRetriever(BaseRetriever):
    """Retrieve from several sources as one retriever.

    All sources are asked at the same time, also the sync ones of the async door. What two of them
    say is kept once, and the budget is divided by the ratios, idle shares going to who can use
    them.

    Args:
        sources: Retrievers, `ContextSource`s or functions of the question, by name.
        max_tokens: Tokens of what is handed out, as a synthesizer sends it.
        ratios: Share of each source; `None` takes equal shares.
        config: The other knobs; its budget and ratios are replaced by what is given here.
        counter: Counts tokens: a counter, a model or its name. `None` takes the estimate.
        order: Order of the nodes within a source.
        embed_model: Where given, the question's own vector votes on relevance.
        more: What every `BaseRetriever` takes.

    Raises:
        ConfigurationError: A number is out of range, or something is no source.

    Where not even the best of what was found fits, it is shortened; `retrieve` raises
    `ContextWindowExceeded` where nothing of it fits.

    ```python
    from llama_index_muntin import AssembledRetriever
    from muntin import Candidate

    retriever = AssembledRetriever(
        {
            "rag": lambda query: [Candidate("Meals are capped at 80.", 0.9)],
            "memory": lambda query: [Candidate("Ada is a vegetarian.", 0.5)],
        },
        max_tokens=200,
    )
    print(sorted(node.text for node in retriever.retrieve("lunch?")))
    #> ['Ada is a vegetarian.', 'Meals are capped at 80.']
    ```
    """

    def __init__(
        self,
        sources: Mapping[str, Any],
        *,
        max_tokens: int,
        ratios: Mapping[str, float] | None = None,
        config: ContextConfig | None = None,
        counter: TokenCounter | str | None = None,
        order: Literal["selection", "lost-in-the-middle", "document"] = "selection",
        embed_model: Any = None,
        **more: Any,
    ) -> None:
        super().__init__(**more)  # pyright: ignore[reportUnknownMemberType] - theirs is partly untyped
        if not sources:
            raise ConfigurationError("an AssembledRetriever needs at least one source")
        if not isinstance(cast("object", max_tokens), int) or max_tokens < 1:
            raise ConfigurationError(
                f"max_tokens is a whole number and at least 1, not {max_tokens!r}"
            )
        self._sources = [source_of(name, given) for name, given in sources.items()]
        check_sources(self._sources, ratios or sources)
        self._budget = max_tokens
        self._vectors = NodeVectors(embed_model)
        self._counter = counter_of(counter)
        self._ordering = NodeLayout(ordering=order).ordering
        knobs = config or ContextConfig()
        self._config = ContextConfig(
            source_ratios=ratios or dict.fromkeys(sources, 1.0),
            mmr_lambda=knobs.mmr_lambda,
            dedup_threshold=knobs.dedup_threshold,
            allow_borrow=knobs.allow_borrow,
            dedup_across_sources=knobs.dedup_across_sources,
            similarity=knobs.similarity,
            fill=knobs.fill,
            shorten=knobs.shorten,
        )
        self._report: AssemblyReport | None = None

    @property
    def last_report(self) -> AssemblyReport | None:
        """What became of the candidates of the call that ended last; `None` before the first."""
        return self._report

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        vector = self._vectors.question(query_bundle)
        gathered = gather(self._sources, Question(query_bundle))
        return self._nodes(query_bundle, gathered, vector)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        vector = await self._vectors.aquestion(query_bundle)
        gathered = await agather(self._sources, Question(query_bundle))
        return self._nodes(query_bundle, gathered, vector)

    def _nodes(
        self, query: QueryBundle, gathered: Gathered, vector: Embedding | None
    ) -> list[NodeWithScore]:
        choice = choose(
            gathered,
            question=query.query_str,
            query_embedding=vector,
            budget=self._budget,
            config=self._config,
            ordering=self._ordering,
            counter=self._counter,
        )
        self._report = choice.report
        return choice.nodes
