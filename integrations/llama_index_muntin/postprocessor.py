"""Choose among retrieved nodes: without duplicates, the most useful first, within a token budget.

A postprocessor is the last step between a retriever and the synthesizer that writes the prompt.
Nodes within the budget are not split or cut by the synthesizer, so a query costs one model call.
The returned nodes are copies, with scores and embeddings.
"""

from __future__ import annotations

import asyncio
import copy
from typing import TYPE_CHECKING, Any, Literal

from llama_index.core import instrumentation
from llama_index.core.callbacks.schema import CBEventType, EventPayload
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import MetadataMode
from pydantic import Field, PrivateAttr

from llama_index_muntin._models import counter_named, counter_of
from llama_index_muntin._nodes import NodeVectors, candidate_of, choose, watch
from llama_index_muntin.ledger import WindowLedger
from muntin.adapting import check_given, construct
from muntin.config import ContextConfig
from muntin.errors import ConfigurationError
from muntin.passages import Gathered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from llama_index.core.schema import NodeWithScore, QueryBundle

    from llama_index_muntin._nodes import Vectors
    from muntin.passages import Candidate, Embedding
    from muntin.report import AssemblyReport

__all__ = ("BudgetPostprocessor", "NodesChosenEvent")

_dispatcher = instrumentation.get_dispatcher(__name__)  # pyright: ignore[reportPrivateImportUsage] - the documented way
_DEFAULTS = ContextConfig()
_SOURCE = "rag"
_ALIASES = {"max_tokens": "budget", "model": "llm", "ordering": "order", "k": "top_n",
            "top_k": "top_n"}  # fmt: skip
_POLICY = "muntin: de-duplicate, diversify, fit"


class NodesChosenEvent(BaseEvent):
    """Report what happened to every retrieved node, and how tokens were spent."""

    query: str
    """The question."""
    report: dict[str, Any]
    """`AssemblyReport.to_dict()`: each node with its reason and tokens."""
    ledger: dict[str, Any] | None = None
    """`WindowLedger.to_dict()`, where one is shared."""

    @classmethod
    def class_name(cls) -> str:
        """Name the event in traces."""
        return "NodesChosenEvent"


class BudgetPostprocessor(BaseNodePostprocessor):
    """Keep the nodes that fit a token budget: relevant and without duplicates.

    Give it a number, a model or a ledger to know the budget. Near-copies are found by the vectors
    that nodes carry, by those a `vector_store` holds, by an `embed_model`, else by their words.
    With an `embed_model`, the vector of the question also determines relevance.

    ```python
    from llama_index.core.schema import NodeWithScore, TextNode
    from llama_index_muntin import BudgetPostprocessor

    texts = ["Letters weigh 80 grams at most.", "Letters weigh 80 grams at most!", "Keep forms."]
    found = [NodeWithScore(node=TextNode(text=text, id_=str(n)), score=0.9 - n / 10)
             for n, text in enumerate(texts)]
    processor = BudgetPostprocessor(budget=100)
    kept = processor.postprocess_nodes(found, query_str="letters?")
    print([node.node_id for node in kept], processor.last_report.decisions[1].reason)
    #> ['0', '2'] near_duplicate
    ```

    Raises:
        ConfigurationError: No budget can be known, or a number is out of range.
    """

    budget: int | None = Field(
        default=None,
        gt=0,
        strict=True,
        description="Tokens of the nodes together, as a synthesizer sends them.",
    )
    mmr_lambda: float = Field(
        default=_DEFAULTS.mmr_lambda, ge=0, le=1, description="Relevance against diversity."
    )
    dedup_threshold: float = Field(
        default=_DEFAULTS.dedup_threshold,
        ge=0,
        description="Similarity from which a node is a near-duplicate; above 1 none is.",
    )
    similarity: Literal["auto", "embedding", "lexical"] = Field(
        default="auto", description="How near-duplicates are found."
    )
    order: Literal["selection", "ascending", "lost-in-the-middle", "document"] = Field(
        default="selection", description="Order of the nodes that are kept."
    )
    shorten: bool = Field(
        default=False, description="Whether the best node that does not fit is cut to what is left."
    )
    top_n: int | None = Field(
        default=None, ge=1, strict=True, description="Most nodes; None takes all that fit."
    )
    counter: Any = Field(
        default="estimate:o200k_base", description="A token counter, or the name of one."
    )
    ledger: Any = Field(default=None, exclude=True, description="A WindowLedger that is shared.")
    llm: Any = Field(default=None, exclude=True, description="The model whose window it is.")
    embed_model: Any = Field(default=None, exclude=True, description="Computes missing vectors.")
    vector_store: Any = Field(default=None, exclude=True, description="Holds the nodes' vectors.")
    given: Any = Field(
        default=(),
        exclude=True,
        description="What the model has already, or a function that returns it: left out.",
    )
    token_counter: Any = Field(default=None, exclude=True, description="A counter of one's own.")

    _room: WindowLedger | None = PrivateAttr(default=None)
    _vectors: NodeVectors = PrivateAttr()
    _count: Any = PrivateAttr()
    _report: Any = PrivateAttr(default=None)

    if not TYPE_CHECKING:  # type checkers see the signature of the fields

        def __init__(self, **fields: Any) -> None:
            if not isinstance(fields.get("counter", ""), str):  # the field holds a counter's name
                fields["token_counter"] = fields.pop("counter")
            construct(super().__init__, type(self), fields, _ALIASES)
            check_given(self.given)
            self._find_budget()

    def _find_budget(self) -> None:
        """Resolve the budget and the counter.

        Raises:
            ConfigurationError: No budget can be known, or the ledger is not one.
        """
        ledger, llm, token_counter = self.ledger, self.llm, self.token_counter
        if ledger is not None and not isinstance(ledger, WindowLedger):
            raise ConfigurationError(f"ledger must be a WindowLedger, got {type(ledger).__name__}")
        if ledger is None and llm is None and self.budget is None:
            raise ConfigurationError("BudgetPostprocessor needs budget=, llm= or ledger=")
        self._room = ledger
        if ledger is None and self.budget is None:
            self._room = WindowLedger(llm, rag_ratio=1.0, counter=token_counter)
        if token_counter is not None or llm is not None:
            self._count = counter_of(token_counter, llm)
        else:
            self._count = counter_named(self.counter) if self._room is None else self._room.counter
        self.counter = self._count.name
        self._vectors = NodeVectors(self.embed_model, self.vector_store)

    @classmethod
    def class_name(cls) -> str:
        """Name the class in saved forms."""
        return "BudgetPostprocessor"

    @property
    def last_report(self) -> AssemblyReport | None:
        """What became of the nodes of the call that ended last; `None` before the first."""
        return self._report

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        _started(nodes, query_bundle)
        vectors, asked = self._vectors.found(nodes), self._vectors.question(query_bundle)
        return self._chosen(nodes, query_bundle, vectors, asked)

    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        _started(nodes, query_bundle)
        vectors = await self._vectors.afound(nodes)
        asked = await self._vectors.aquestion(query_bundle)
        return await asyncio.to_thread(self._chosen, nodes, query_bundle, vectors, asked)

    def _chosen(
        self,
        nodes: Sequence[NodeWithScore],
        query: QueryBundle | None,
        vectors: Vectors,
        asked: Embedding | None,
    ) -> list[NodeWithScore]:
        question = "" if query is None else query.query_str
        budget = self._budget(question)
        with self.callback_manager.event(
            CBEventType.RERANKING,
            payload={
                EventPayload.NODES: list(nodes),
                EventPayload.MODEL_NAME: _POLICY,
                EventPayload.QUERY_STR: question,
                EventPayload.TOP_K: len(nodes),
            },
        ) as event:
            choice = choose(
                Gathered(candidates={_SOURCE: _candidates(nodes, vectors.of_nodes)}),
                question=question,
                query_embedding=asked,
                budget=budget,
                config=self._config(),
                ordering=self.order,
                top_k=self.top_n,
                counter=self._count,
                given=self.given,
                notes=_notes(nodes, vectors),
            )
            event.on_end(payload={EventPayload.NODES: choice.nodes})
        if self._room is not None:
            self._room.charge_context(question, choice.report.used)
        self._report = choice.report
        watch(question, choice.nodes, budget, self._count)
        _dispatcher.event(ReRankEndEvent(nodes=choice.nodes))
        account = None if self.ledger is None else self.ledger.to_dict()
        _dispatcher.event(
            NodesChosenEvent(query=question, report=dict(choice.report.to_dict()), ledger=account)
        )
        return choice.nodes

    def _budget(self, question: str) -> int:
        if self._room is None:
            return self.budget or 0
        room = self._room.context_room(question)
        return room if self.budget is None else min(room, self.budget)

    def _config(self) -> ContextConfig:
        return ContextConfig(
            source_ratios={_SOURCE: 1.0},
            mmr_lambda=float(self.mmr_lambda),
            dedup_threshold=float(self.dedup_threshold),
            similarity=self.similarity,
            shorten=self.shorten,
        )

    def to_dict(self, **kwargs: Any) -> dict[str, Any]:
        """Return the settings in plain JSON types; models and stores are left out.

        A budget that came from a model or a ledger is written as a number.
        """
        saved = super().to_dict(**kwargs)
        saved["budget"] = self._lasting_budget()
        return saved

    def __getstate__(self) -> dict[str, Any]:
        """Keep what can be pickled; a budget whose model or ledger cannot is kept as a number."""
        # The base class removes what cannot be pickled from the object itself: pass it a copy.
        state = super(BudgetPostprocessor, copy.copy(self)).__getstate__()
        if {"ledger", "llm"} - state["__dict__"].keys():
            state["__dict__"]["budget"] = self._lasting_budget()
        return state

    def _lasting_budget(self) -> int | None:
        """Return a budget that needs neither model nor ledger to be known."""
        if self.budget is not None or self._room is None:
            return self.budget
        return max(1, int(self._room.spendable * self._room.rag_ratio))


def _candidates(
    nodes: Sequence[NodeWithScore], vectors: Sequence[Embedding | None]
) -> tuple[Candidate, ...]:
    return tuple(
        candidate_of(found, mode=MetadataMode.NONE, embedding=vector)
        for found, vector in zip(nodes, vectors, strict=True)
    )


def _notes(nodes: Sequence[NodeWithScore], vectors: Vectors) -> list[str]:
    """Return notes for the report on how nodes were compared."""
    notes: list[str] = [vectors.note] if vectors.note else []
    bare = sum(vector is None for vector in vectors.of_nodes)
    if bare and len(nodes) > 1:
        notes.append(f"{bare} of {len(nodes)} nodes have no vector: they were compared by words")
    strange = sum(
        found.score is not None and not abs(found.score) < float("inf") for found in nodes
    )
    if strange:
        notes.append(f"{strange} scores are not finite and count as unknown")
    return notes


def _started(nodes: Sequence[NodeWithScore], query: QueryBundle | None) -> None:
    _dispatcher.event(
        ReRankStartEvent(query=query, nodes=list(nodes), top_n=len(nodes), model_name=_POLICY)
    )
