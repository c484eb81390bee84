"""Retrieve from several sources at once and hand out what deserves a place, within a budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from llama_index.core.base.base_retriever import BaseRetriever

from llama_index_muntin._conversion import node_of
from llama_index_muntin._models import counter_of
from llama_index_muntin.sources import source_of
from muntin.builder import ContextBuilder
from muntin.config import ContextConfig
from muntin.errors import ConfigurationError
from muntin.layout import Layout
from muntin.sources import Gathered, agather, check_sources, gather

if TYPE_CHECKING:
    from collections.abc import Mapping

    from llama_index.core.schema import NodeWithScore, QueryBundle

    from muntin.candidates import Embedding
    from muntin.report import AssemblyReport
    from muntin.tokens import TokenCounter

__all__ = ("AssembledRetriever",)


class AssembledRetriever(BaseRetriever):
    """Retrieve from several sources as one retriever.

    All sources are asked at the same time, also the sync ones of the async door. What two of them
    say is kept once, and the budget is divided by the ratios, idle shares going to who can use
    them.

    Args:
        sources: Retrievers, `ContextSource`s or functions of the question, by name.
        max_tokens: Tokens of what is handed out, as a context with headings would take.
        ratios: Share of each source; `None` takes equal shares.
        config: The other knobs; its budget and ratios are replaced by what is given here.
        counter: Counts tokens: a counter, a model or its name. `None` takes the estimate.
        order: Order of the nodes within a source.
        embed_model: Where given, the question's own vector votes on relevance.
        more: What every `BaseRetriever` takes.

    Raises:
        ConfigurationError: A number is out of range, or something is no source.

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
        if max_tokens < 1:
            raise ConfigurationError(f"max_tokens is at least 1, not {max_tokens}")
        self._sources = [source_of(name, given) for name, given in sources.items()]
        check_sources(self._sources, ratios or sources)
        self._budget = max_tokens
        self._embed_model = embed_model
        knobs = config or ContextConfig()
        self._builder = ContextBuilder(
            ContextConfig(
                source_ratios=ratios or dict.fromkeys(sources, 1.0),
                mmr_lambda=knobs.mmr_lambda,
                dedup_threshold=knobs.dedup_threshold,
                allow_borrow=knobs.allow_borrow,
                dedup_across_sources=knobs.dedup_across_sources,
                similarity=knobs.similarity,
                fill=knobs.fill,
                shorten=knobs.shorten,
            ),
            token_counter=counter_of(counter),
            layout=Layout(ordering=order),
        )
        self._report: AssemblyReport | None = None

    @property
    def last_report(self) -> AssemblyReport | None:
        """What became of the candidates of the call that ended last; `None` before the first."""
        return self._report

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        vector = query_bundle.embedding
        if vector is None and self._embed_model is not None:
            vector = self._embed_model.get_query_embedding(query_bundle.query_str)
        gathered = gather(self._sources, query_bundle.query_str)
        return self._nodes(query_bundle, gathered, vector)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        vector = query_bundle.embedding
        if vector is None and self._embed_model is not None:
            vector = await self._embed_model.aget_query_embedding(query_bundle.query_str)
        gathered = await agather(self._sources, query_bundle.query_str)
        return self._nodes(query_bundle, gathered, vector)

    def _nodes(
        self, query: QueryBundle, gathered: Gathered, vector: Embedding | None
    ) -> list[NodeWithScore]:
        context = self._builder.assemble_block(
            query.query_str, gathered, budget=self._budget, query_embedding=vector
        )
        self._report = context.report
        return [node_of(candidate) for candidate in context.candidates]
