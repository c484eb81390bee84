"""Retrieve from several sources at once: one ranking without duplicates inside one budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llama_index.core.base.base_retriever import BaseRetriever

from llama_index_muntin._models import counter_of
from llama_index_muntin._nodes import NodeVectors, choose
from llama_index_muntin.sources import Question, sources_of
from muntin.adapting import (
    arranged,
    check_given,
    check_retrieval,
    refuse_unknown,
    renamed,
)
from muntin.counting import checked_tokens
from muntin.errors import ConfigurationError
from muntin.passages import agather, gather
from muntin.runtime import off_loop

if TYPE_CHECKING:
    from collections.abc import Mapping

    from llama_index.core.schema import NodeWithScore, QueryBundle

    from muntin.adapting import Ordering
    from muntin.config import ContextConfig
    from muntin.passages import AnyGiven, Embedding, Gathered
    from muntin.report import AssemblyReport

__all__ = ("AssembledRetriever",)

_THEIRS = ("callback_manager", "object_map", "objects", "verbose")
_ALIASES = {"max_tokens": "budget", "model": "counter", "llm": "counter", "ordering": "order",
            "k": "top_k", "top_n": "top_k", "token_counter": "counter"}  # fmt: skip


class AssembledRetriever(BaseRetriever):
    """Retrieve from several sources as one retriever.

    All sources are asked at the same time, sync ones in threads. A passage that two sources return
    is kept once, and the budget is divided by the ratios; what one source leaves goes to the
    others.

    Args:
        sources: Retrievers, `ContextSource`s or functions of the question, by name.
        budget: Tokens of the returned nodes, as a synthesizer sends them. `max_tokens` is an alias.
        ratios: Share of each source; `None` takes those set in `config`, else equal shares.
        config: Options of selection and allocation; `None` takes the defaults.
        counter: Counts tokens: a counter, a model or its name. `None` takes the estimate.
        order: The best first over all sources, the strongest at both ends, or source by source.
        top_k: Most nodes; `None` takes all that fit.
        embed_model: Where given, the question's own vector votes on relevance.
        given: What the model has already, such as the messages of a memory, or a function that
            returns it. Nodes in it are left out, but the best one if that is every node.
        more: Aliases, and what every `BaseRetriever` takes.

    Raises:
        ConfigurationError: A number is out of range, a keyword is unknown, or a source is not one.

    If not even the best of what was found fits, it is shortened; `retrieve` raises
    `ContextWindowExceeded` if nothing of it fits.

    ```python
    from llama_index_muntin import AssembledRetriever
    from muntin import Candidate

    retriever = AssembledRetriever(
        {
            "manual": lambda query: [Candidate("Parcels ship on weekdays.", 0.9)],
            "memory": lambda query: [Candidate("Ada prefers the depot in Lund.", 0.5)],
        },
        budget=200,
    )
    print([node.text for node in retriever.retrieve("when do parcels ship?")])
    #> ['Parcels ship on weekdays.', 'Ada prefers the depot in Lund.']
    ```
    """

    def __init__(
        self,
        sources: Mapping[str, Any],
        *,
        budget: int | None = None,
        ratios: Mapping[str, float] | None = None,
        config: ContextConfig | None = None,
        counter: Any = None,
        order: Ordering = "selection",
        top_k: int | None = None,
        embed_model: Any = None,
        given: AnyGiven = (),
        **more: Any,
    ) -> None:
        own: dict[str, Any] = {"budget": budget, "counter": counter, "order": order, "top_k": top_k}
        aliased = {_ALIASES[name] for name in more if name in _ALIASES}
        chosen = {name: value for name, value in own.items() if value != _DEFAULTS.get(name)}
        named = renamed("AssembledRetriever", {**chosen, **more}, _ALIASES)
        refuse_unknown("AssembledRetriever", named, (*_OWN, *_THEIRS))
        own |= {name: named.pop(name) for name in (*chosen, *aliased)}
        theirs: dict[str, Any] = named
        super().__init__(**theirs)  # pyright: ignore[reportUnknownMemberType] - theirs is partly untyped
        if own["budget"] is None:
            raise ConfigurationError("AssembledRetriever needs budget=, in tokens")
        self._budget = checked_tokens(own["budget"], "budget")
        self._sources = sources_of(sources)
        check_retrieval(self._sources, ratios, config)
        check_given(given)
        self._given = given
        self._ratios = ratios
        self._config = config
        self._vectors = NodeVectors(embed_model)
        self._counter = counter_of(own["counter"])
        top_k = own["top_k"]
        self._top_k = None if top_k is None else checked_tokens(top_k, "top_k")
        self._order: Ordering = own["order"]
        if self._order != "document":
            arranged((), self._order)  # refuses an unknown order here, not at the first question
        self._report: AssemblyReport | None = None

    @property
    def last_report(self) -> AssemblyReport | None:
        """What became of the candidates of the last call that ended; `None` before the first."""
        return self._report

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        vector = self._vectors.question(query_bundle)
        gathered = gather(self._sources, Question(query_bundle))
        return self._nodes(query_bundle, gathered, vector)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        vector = await self._vectors.aquestion(query_bundle)
        gathered = await agather(self._sources, Question(query_bundle))
        return await off_loop(
            lambda: self._nodes(query_bundle, gathered, vector), size=gathered.characters
        )

    def _nodes(
        self, query: QueryBundle, gathered: Gathered, vector: Embedding | None
    ) -> list[NodeWithScore]:
        choice = choose(
            gathered,
            question=query.query_str,
            query_embedding=vector,
            budget=self._budget,
            config=self._config,
            ratios=self._ratios,
            top_k=self._top_k,
            ordering=self._order,
            counter=self._counter,
            given=self._given,
        )
        self._report = choice.report
        return choice.nodes


_DEFAULTS = {"order": "selection"}
_OWN = ("sources", "budget", "ratios", "config", "counter", "order", "top_k", "embed_model",
        "given")  # fmt: skip
