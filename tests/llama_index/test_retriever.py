"""Several retrievers become one that keeps a budget, and none of them holds up the loop."""

# Settings are passed on as they come.
# pyright: reportArgumentType=false

from __future__ import annotations

import asyncio
import math
import time
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.query_engine import RetrieverQueryEngine

from llama_doubles import EXACT, FixedRetriever, found, rules
from llama_index_muntin import AssembledRetriever, RetrieverSource
from llama_index_muntin.testing import StrictLLM
from muntin import CallableSource, Candidate, ConfigurationError, ContextBuilder, SourceError
from muntin.testing import FakeEmbedder

if TYPE_CHECKING:
    from llama_index.core.schema import NodeWithScore, QueryBundle

    from conftest import EntryPoint

pytestmark = pytest.mark.usefixtures("own_loop")


class SlowRetriever(FixedRetriever):
    """Search for a while, on whatever thread it is asked."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        time.sleep(0.2)
        return super()._retrieve(query_bundle)


class AsyncRetriever(FixedRetriever):
    """Search without blocking."""

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        await asyncio.sleep(0.2)
        return list(self.nodes)


def test_a_retriever_is_a_source_like_any_other() -> None:
    """It takes its place in a builder beside memory and tools."""
    source = RetrieverSource("rag", FixedRetriever(found("Meals are capped at 80.")))
    block = ContextBuilder().build_block("meals?", sources=[source], budget=100)

    assert block == "[Knowledge]\n- Meals are capped at 80."


@pytest.mark.parametrize("knob", [{"timeout": 0}, {"on_error": "ignore"}], ids=str)
def test_a_knob_out_of_range_is_refused_where_it_is_given(knob: dict[str, Any]) -> None:
    """A misspelt `on_error` found out when a source fails is found out in production."""
    with pytest.raises(ConfigurationError, match=next(iter(knob))):
        RetrieverSource("rag", FixedRetriever(found("x")), **knob)


def test_each_question_is_asked_in_a_bundle_of_its_own() -> None:
    """Sync retrievers write the question's vector into it."""
    retriever = FixedRetriever(found("x"))
    source = RetrieverSource("rag", retriever)
    source.fetch("a")
    source.fetch("a")

    assert retriever.asked[0] is not retriever.asked[1]


@pytest.mark.parametrize("kind", [SlowRetriever, AsyncRetriever])
def test_two_slow_retrievers_take_the_time_of_one(kind: type[FixedRetriever]) -> None:
    """The base class searches on the loop, so two take twice as long."""
    sources = [RetrieverSource(name, kind(found(name))) for name in ("rag", "memory")]

    async def both() -> float:
        begun = time.perf_counter()
        await asyncio.gather(*(source.afetch("?") for source in sources))
        return time.perf_counter() - begun

    assert asyncio.run(both()) < 0.39


def test_the_sources_of_a_retriever_are_asked_at_the_same_time(entry_point: EntryPoint) -> None:
    """A retriever over three sources is as slow as its slowest."""
    retriever = AssembledRetriever(
        {
            name: SlowRetriever(found(*(f"{name} {n} says so" for n in range(place + 1)))[place:])
            for place, name in enumerate(("rag", "memory", "tool"))
        },
        budget=500,
    )
    begun = time.perf_counter()
    nodes: Any = entry_point.call(retriever, "retrieve", "?")

    assert len(nodes) == 3
    assert time.perf_counter() - begun < 0.55


def test_what_two_sources_say_is_handed_out_once(entry_point: EntryPoint) -> None:
    """LlamaIndex de-duplicates by id, so the same text under another id survives."""
    retriever = AssembledRetriever(
        {
            "rag": FixedRetriever(found("Meals are capped at 80.", "Keep receipts.")),
            "memory": lambda query: [Candidate("Meals are capped at 80.", 0.5)],
        },
        budget=500,
    )
    nodes: Any = entry_point.call(retriever, "retrieve", "meals?")

    assert sorted(one.text for one in nodes) == ["Keep receipts.", "Meals are capped at 80."]
    assert retriever.last_report is not None
    assert len(retriever.last_report.decisions) == 3


def test_a_message_from_history_and_from_recall_is_sent_once_and_history_keeps_it(
    entry_point: EntryPoint,
) -> None:
    """Composed memories sent what stood in the chat a second time, as something remembered."""
    said = "The invoice number is 4711."
    retriever = AssembledRetriever(
        {
            "memory": lambda query: [Candidate(said, 0.8)],
            "history": lambda query: [Candidate(said, 0.8)],
        },
        budget=500,
    )
    nodes: Any = entry_point.call(retriever, "retrieve", "which invoice?")

    assert [one.text for one in nodes] == [said]
    assert retriever.last_report is not None
    kept = [d.source for d in retriever.last_report.decisions if d.kind == "kept"]
    assert kept == ["history"]


@pytest.mark.parametrize("budget", [30, 200, 1000])
def test_the_budget_holds(entry_point: EntryPoint, budget: int) -> None:
    """A retriever that hands out more than asked for is cut by somebody else."""
    retriever = AssembledRetriever(
        {"rag": FixedRetriever(rules(20)), "memory": lambda query: ["Ada is a vegetarian."]},
        budget=budget,
        counter=EXACT,
    )
    nodes: Any = entry_point.call(retriever, "retrieve", "cap?")

    assert nodes
    assert sum(EXACT(one.text) for one in nodes) <= budget


def test_functions_may_return_nodes_candidates_or_strings_sync_or_async(
    entry_point: EntryPoint,
) -> None:
    """People bring what they have."""

    async def search(query: str) -> list[Any]:
        return found("from a node")

    if entry_point.name == "sync":
        retriever = AssembledRetriever({"rag": lambda query: found("from a node")}, budget=99)
    else:
        retriever = AssembledRetriever({"rag": search}, budget=99)
    nodes: Any = entry_point.call(retriever, "retrieve", "?")

    assert [one.text for one in nodes] == ["from a node"]


def test_a_retriever_of_ours_is_a_retriever_of_theirs() -> None:
    """A query engine takes it, and the model is asked once."""
    llm = StrictLLM(["80 euros."], window=3000)
    retriever = AssembledRetriever({"rag": FixedRetriever(rules(30))}, budget=1500)
    engine = RetrieverQueryEngine.from_args(retriever, llm=llm)

    assert isinstance(retriever, BaseRetriever)
    assert str(engine.query("cap?")) == "80 euros."
    assert llm.calls == 1


def test_scores_and_ids_come_through(entry_point: EntryPoint) -> None:
    """Whoever comes after may filter by them."""
    retriever = AssembledRetriever({"rag": FixedRetriever(found("a b", "c d"))}, budget=99)
    nodes: Any = entry_point.call(retriever, "retrieve", "?")

    assert {(one.node.node_id, one.score) for one in nodes} == {("n0", 0.9), ("n1", 0.89)}


def test_the_vector_of_the_question_votes_where_there_is_a_model(entry_point: EntryPoint) -> None:
    """A hybrid of a lexical and a dense judgement finds more than either."""

    class Model:
        def get_query_embedding(self, query: str) -> list[float]:
            return FakeEmbedder(8).embed_query(query)

        async def aget_query_embedding(self, query: str) -> list[float]:
            return self.get_query_embedding(query)

    nodes = found("first", "second", scores=[0.6, 0.5])
    for one in nodes:
        one.node.embedding = FakeEmbedder(8).embed_query(one.node.get_content())
    retriever = AssembledRetriever({"rag": FixedRetriever(nodes)}, budget=99, embed_model=Model())
    chosen: Any = entry_point.call(retriever, "retrieve", "second")

    assert chosen[0].text == "second"


@pytest.mark.parametrize(
    ("sources", "more", "match"),
    [
        ({}, {}, "at least one source"),
        ({"rag": 3}, {}, "must be a retriever"),
        ({"rag": FixedRetriever([])}, {"max_tokens": 0}, "positive int"),
        ({"rag": FixedRetriever([])}, {"max_tokens": 50.5}, "positive int"),
        ({"rag": FixedRetriever([])}, {"max_tokens": "50"}, "positive int"),
        ({"rag": FixedRetriever([])}, {"max_tokens": math.nan}, "positive int"),
        ({"rag": CallableSource("other", lambda q: [])}, {}, "is given as"),
        ({"rag": FixedRetriever([])}, {"ratios": {"other": 1.0}}, "no ratio"),
        ({"rag": FixedRetriever([])}, {"top_k": 0}, "top_k must be a positive"),
        ({"rag": FixedRetriever([])}, {"order": "best"}, "ordering must be"),
        ({"rag": FixedRetriever([])}, {"max_token": 9}, "no argument 'max_token'"),
        ({"rag": FixedRetriever([])}, {"budget": 9}, "its alias 'max_tokens'"),
        (3, {}, "sources must be"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_asked(
    sources: Any, more: Any, match: str
) -> None:
    """The error names what was given and what to change."""
    with pytest.raises(ConfigurationError, match=match):
        AssembledRetriever(sources, **{"max_tokens": 100, **more})


def test_a_source_that_hands_out_something_else_is_named(entry_point: EntryPoint) -> None:
    """A stray dict must not become text."""
    retriever = AssembledRetriever({"rag": lambda query: [{"text": "x"}]}, budget=99)
    with pytest.raises(SourceError, match=r"'rag' .*dict"):
        entry_point.call(retriever, "retrieve", "?")


def test_a_source_that_fails_can_be_left_out(entry_point: EntryPoint) -> None:
    """One service that is down must not end every answer."""

    class Broken(BaseRetriever):
        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            raise RuntimeError("down")

    retriever = AssembledRetriever(
        {"rag": FixedRetriever(found("here")),
         "memory": RetrieverSource("memory", Broken(), on_error="skip")},
        budget=99,
    )  # fmt: skip
    nodes: Any = entry_point.call(retriever, "retrieve", "?")

    assert [one.text for one in nodes] == ["here"]
    assert retriever.last_report is not None
    assert "down" in " ".join(retriever.last_report.notes)
