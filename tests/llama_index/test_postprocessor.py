"""The postprocessor keeps what fits and says each thing once, whatever the store handed out."""

# Settings are passed on as they come.
# pyright: reportArgumentType=false

from __future__ import annotations

import asyncio
import copy
import math
import pickle
import random
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.indices.query.embedding_utils import get_top_k_mmr_embeddings
from llama_index.core.instrumentation import get_dispatcher  # pyright: ignore[reportPrivateImportUsage] - the documented way
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.llms import ChatMessage, LLMMetadata
from llama_index.core.memory import VectorMemoryBlock
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle, TextNode
from llama_index.core.vector_stores import SimpleVectorStore, VectorStoreQueryResult
from pydantic import Field

from llama_doubles import EXACT, FixedRetriever, found, rules
from llama_index_muntin import BudgetPostprocessor, WindowLedger
from llama_index_muntin.testing import StrictLLM
from muntin import ConfigurationError
from shared_data import data_path, json_lines, needs_data

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conftest import EntryPoint
    from muntin.report import AssemblyReport


# LlamaIndex looks for LangChain when it resolves an embedding model, and finds a sunset package.
pytestmark = [
    pytest.mark.usefixtures("own_loop"),
    pytest.mark.filterwarnings("ignore:.langchain-community:DeprecationWarning"),
]


def kept(processor: BudgetPostprocessor, nodes: list[NodeWithScore], query: str = "?") -> list[str]:
    """Run it and name what it kept."""
    return [one.node.node_id for one in processor.postprocess_nodes(nodes, query_str=query)]


def joined(nodes: Sequence[NodeWithScore]) -> str:
    """Join nodes as the default synthesizer does."""
    texts = [one.node.get_content(metadata_mode=MetadataMode.LLM).strip() for one in nodes]
    return "\n\n".join(text for text in texts if text)


def report_of(processor: BudgetPostprocessor) -> AssemblyReport:
    """Return the last report, which there must be."""
    report = processor.last_report
    assert report is not None
    return report


class CountingEmbedding(BaseEmbedding):
    """Embed by the first word, and count the texts and the calls."""

    texts: int = 0
    batches: int = 0
    queries: int = 0

    def _vector(self, text: str) -> list[float]:
        rng = random.Random(text.split()[0] if text.split() else "")
        return [rng.gauss(0, 1) for _ in range(16)]

    def _get_query_embedding(self, query: str) -> list[float]:
        self.queries += 1
        return self._vector(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        self.texts += 1
        return self._vector(text)

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        self.batches += 1
        return [self._get_text_embedding(text) for text in texts]

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self._get_text_embeddings(texts)


class LocalModel:
    """A model that holds what no pickle can."""

    metadata = LLMMetadata(context_window=2000, num_output=100, model_name="gpt-4o")

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def chat(self, messages: Sequence[ChatMessage]) -> str:
        """Never asked."""
        raise AssertionError(messages)


# --- the budget ----------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [1, 40, 120, 333, 1000, 5000])
def test_what_a_synthesizer_joins_is_inside_the_budget(
    entry_point: EntryPoint, budget: int
) -> None:
    """Metadata is sent along; a budget that overlooks it is none."""
    nodes = rules(20)
    for one in nodes:
        one.node.metadata = {"file": "rules.md", "page": 7}
    processor = BudgetPostprocessor(budget=budget, token_counter=EXACT)

    chosen: Any = entry_point.call(processor, "postprocess_nodes", nodes, query_str="cap?")

    assert EXACT(joined(chosen)) == report_of(processor).used <= budget


def test_the_best_node_is_shortened_where_not_one_fits() -> None:
    """An engine left without any node answers "Empty Response" and never asks the model."""
    text = " ".join(f"Sentence number {n} says something." for n in range(80))
    processor = BudgetPostprocessor(budget=60, token_counter=EXACT)

    chosen = processor.postprocess_nodes(found(text, scores=[0.9]), query_str="?")

    assert len(chosen) == 1
    assert text.startswith(chosen[0].node.get_content())
    assert 20 < EXACT(joined(chosen)) <= 60
    assert report_of(processor).decisions[0].kind == "shortened"


def test_every_node_is_accounted_for() -> None:
    """Nobody could tell why a passage was missing: now the report does."""
    processor = BudgetPostprocessor(budget=300, token_counter=EXACT)
    nodes = [*rules(8), *rules(2)]

    chosen = processor.postprocess_nodes(nodes, query_str="?")

    decisions = report_of(processor).decisions
    assert len(decisions) == len(nodes)
    assert sum(one.kind in ("kept", "shortened") for one in decisions) == len(chosen)
    assert {one.reason for one in decisions} >= {"placed", "exact_duplicate"}


def test_nothing_in_is_nothing_out(entry_point: EntryPoint) -> None:
    """A retriever may find nothing."""
    processor = BudgetPostprocessor(budget=10)

    assert entry_point.call(processor, "postprocess_nodes", [], query_str="?") == []


def test_the_question_may_be_missing() -> None:
    """Some callers hand over nodes alone."""
    assert len(BudgetPostprocessor(budget=100).postprocess_nodes(found("a passage"))) == 1


def test_two_questions_at_once_are_refused_as_everywhere() -> None:
    """The base class promises it."""
    processor = BudgetPostprocessor(budget=100)
    with pytest.raises(ValueError, match="Cannot specify both"):
        processor.postprocess_nodes([], QueryBundle("a"), "b")


@pytest.mark.parametrize(
    "knobs",
    [{}, {"max_tokens": 0}, {"max_tokens": 10, "mmr_lambda": 1.5}, {"max_tokens": 9, "order": "x"},
     {"max_tokens": 9, "ledger": "mine"}, {"budget": "300"}, {"budget": True}, {"budgets": 9},
     {"budget": 9, "max_tokens": 9}, {"budget": 9, "top_n": 0}, {"budget": 9, "cutoff": 3}],
)  # fmt: skip
def test_settings_that_cannot_work_are_refused_at_construction(knobs: dict[str, Any]) -> None:
    """A typo must not wait for the first query to be found."""
    with pytest.raises(ConfigurationError):
        BudgetPostprocessor(**knobs)


def test_the_number_of_nodes_can_be_limited_too(entry_point: EntryPoint) -> None:
    """`top_n` was taken without a word and ignored."""
    processor = BudgetPostprocessor(budget=5000, top_n=2)
    nodes: Any = entry_point.call(processor, "postprocess_nodes", rules(9), query_str="cap?")

    assert len(nodes) == 2
    reasons = [one.reason for one in report_of(processor).decisions]
    assert reasons.count("beyond_top_k") == 7


# --- duplicates ----------------------------------------------------------------------------------

COPIES = (
    "Meals are capped at 80 euros per day, no receipt is needed for them.",
    "Meals are capped at 80 euros per day; no receipt is needed for them!",
    "Hotels are capped at 500 euros per night, and a receipt is required.",
)


def test_near_copies_are_found_by_their_words_where_there_are_no_vectors() -> None:
    """Five of six stores hand out no vectors; de-duplication must not be a silent no-op."""
    processor = BudgetPostprocessor(budget=500)

    assert kept(processor, found(*COPIES)) == ["n0", "n2"]
    assert "compared by words" in " ".join(report_of(processor).notes)


def test_metadata_does_not_hide_a_copy() -> None:
    """The same passage in two files is still the same passage."""
    nodes = found(*COPIES)
    for at, one in enumerate(nodes):
        one.node.metadata = {"file": f"some/long/path/to/a/file/number-{at}.md", "chunk": at * 1000}

    assert kept(BudgetPostprocessor(budget=500), nodes) == ["n0", "n2"]


def test_vectors_come_from_the_node_then_the_store_then_the_model(entry_point: EntryPoint) -> None:
    """What is there already must not be paid for again."""
    nodes = found("Alpha one two.", "Beta one two.", "Gamma one two.")
    nodes[0].node.embedding = [1.0, 0.0]
    store = SimpleVectorStore()
    store.add([TextNode(text="Beta one two.", id_="n1", embedding=[0.999, 0.001])])
    model = CountingEmbedding()
    processor = BudgetPostprocessor(
        budget=500, embed_model=model, vector_store=store, similarity="embedding"
    )

    chosen: Any = entry_point.call(processor, "postprocess_nodes", nodes, query_str="?")

    assert [one.node.node_id for one in chosen] == ["n0", "n2"]
    assert (model.batches, model.texts) == (1, 1)


def test_a_text_is_embedded_once(entry_point: EntryPoint) -> None:
    """The same passages come back query after query."""
    model = CountingEmbedding()
    processor = BudgetPostprocessor(budget=500, embed_model=model)
    for _ in range(3):
        entry_point.call(
            processor, "postprocess_nodes", found("Alpha x.", "Beta x."), query_str="q"
        )

    assert (model.batches, model.texts, model.queries) == (1, 2, 3)


def test_the_vector_of_the_question_votes() -> None:
    """With a model at hand, what the question is about counts for more than an odd score."""
    nodes = found("Alpha is here.", "Beta is there.", scores=[0.6, 0.5])
    processor = BudgetPostprocessor(budget=500, embed_model=CountingEmbedding())

    assert kept(processor, nodes, "Beta")[0] == "n1"


def test_a_vector_in_the_bundle_is_taken() -> None:
    """A sync retriever leaves the question's vector in it."""
    model = CountingEmbedding()
    bundle = QueryBundle("Beta", embedding=model._vector("Beta"))  # pyright: ignore[reportPrivateUsage] - our own double
    nodes = found("Alpha is here.", "Beta is there.", scores=[0.6, 0.5])
    for one in nodes:
        one.node.embedding = model._vector(one.node.get_content())  # pyright: ignore[reportPrivateUsage] - our own double
    chosen = BudgetPostprocessor(budget=500).postprocess_nodes(nodes, bundle)

    assert chosen[0].node.node_id == "n1"
    assert model.queries == 0


def test_a_scored_copy_wins_over_an_unscored_one() -> None:
    """A neighbour without a score must not replace the hit it is a copy of."""
    nodes = found("b text here", "a text there", "b text here", scores=[0.9, 0.8, None])
    chosen = BudgetPostprocessor(budget=500).postprocess_nodes(nodes, query_str="?")

    assert [(one.node.node_id, one.score) for one in chosen] == [("n0", 0.9), ("n1", 0.8)]


@pytest.mark.parametrize("similarity", ["auto", "embedding", "lexical"])
def test_scores_that_say_nothing_drop_nothing_and_crash_nothing(similarity: Any) -> None:
    """Stores hand out None, NaN and negative scores, fused ones too."""
    nodes = found("one apple", "two pears", "three plums", "four figs",
                  scores=[None, math.nan, -0.2, 0.9])  # fmt: skip
    processor = BudgetPostprocessor(budget=500, similarity=similarity)

    assert sorted(kept(processor, nodes)) == ["n0", "n1", "n2", "n3"]
    assert "not finite" in " ".join(report_of(processor).notes)


@pytest.mark.parametrize("vector", [[0.0, 0.0], [math.nan, 1.0], [math.inf, 0.0], [1.0], []])
def test_vectors_that_say_nothing_crash_nothing(vector: list[float]) -> None:
    """A zero vector or a NaN ends LlamaIndex's own MMR in a KeyError."""
    nodes = found("one apple", "two pears", "three plums")
    for one in nodes[:2]:
        one.node.embedding = [1.0, 0.5]
    nodes[2].node.embedding = vector

    assert "n2" in kept(BudgetPostprocessor(budget=500), nodes)


def test_the_same_id_twice_crashes_nothing() -> None:
    """Two retrievers may find the same node."""
    nodes = found("one apple", "two pears")
    nodes.append(copy.deepcopy(nodes[0]))

    assert kept(BudgetPostprocessor(budget=500), nodes) == ["n0", "n1"]


def test_diversity_remembers_all_earlier_picks() -> None:
    """LlamaIndex's MMR penalises the last pick only, so a near-copy of the first comes back."""
    vectors = [[1, 0, 0], [0.999, 0.0447, 0], [0.7, 0.714, 0], [0.65, 0, 0.76]]
    nodes = found("alpha", "bravo", "charlie", "delta", scores=[1.0, 0.99, 0.7, 0.65])
    for one, vector in zip(nodes, vectors, strict=True):
        one.node.embedding = [float(part) for part in vector]
    processor = BudgetPostprocessor(budget=500, mmr_lambda=0.5, dedup_threshold=0.99)

    assert "n1" not in kept(processor, nodes)


def test_pure_diversity_is_legal() -> None:
    """A lambda of 0 is a choice, not a missing value."""
    nodes = found("alpha", "bravo", "charlie", scores=[1.0, 0.99, 0.1])
    for one, vector in zip(nodes, ([1, 0], [0.95, 0.3], [0, 1]), strict=True):
        one.node.embedding = [float(part) for part in vector]
    processor = BudgetPostprocessor(budget=500, mmr_lambda=0.0, dedup_threshold=2.0)

    assert kept(processor, nodes)[1] == "n2"


def _near_pairs(vectors: list[list[float]], picks: Sequence[int]) -> int:
    import numpy as np

    rows = np.array([vectors[at] for at in picks])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    cosines = rows @ rows.T
    return int((np.triu(cosines, 1) > 0.95).sum())


@pytest.mark.parametrize("trials", [30, pytest.param(200, marks=pytest.mark.slow)])
def test_near_copies_per_list_are_no_more_than_the_reference_leaves(trials: int) -> None:
    """Over 200 random lists LlamaIndex leaves 3.5 pairs of near-copies each, the formula 0.17."""
    rng = random.Random(7)
    ours = theirs = 0
    for _ in range(trials):
        topics = [[rng.gauss(0, 1) for _ in range(16)] for _ in range(10)]
        vectors = [
            [part + rng.gauss(0, 0.05) for part in topic] for topic in topics for _ in range(3)
        ]
        query = [rng.gauss(0, 1) for _ in range(16)]
        nodes = found(*(f"passage number {at}" for at in range(30)))
        for one, vector in zip(nodes, vectors, strict=True):
            one.node.embedding = vector
            one.score = _cosine(query, vector)
        processor = BudgetPostprocessor(budget=10_000, mmr_lambda=0.5)
        picked = [int(name[1:]) for name in kept(processor, nodes)][:8]
        ours += _near_pairs(vectors, picked)
        _, ids = get_top_k_mmr_embeddings(
            query, vectors, similarity_top_k=8, embedding_ids=list(range(30))
        )
        theirs += _near_pairs(vectors, ids)

    assert ours / trials <= 0.17
    assert theirs / trials > 1


def _cosine(one: list[float], other: list[float]) -> float:
    dot = sum(a * b for a, b in zip(one, other, strict=True))
    return dot / (math.hypot(*one) * math.hypot(*other))


# --- what goes in and what comes out -------------------------------------------------------------


def test_the_callers_nodes_are_not_touched() -> None:
    """Other postprocessors write into them, and the next query finds the changed text."""
    nodes = rules(10)
    for one in nodes:
        one.node.embedding = [1.0, float(len(one.node.get_content()))]
    before = copy.deepcopy(nodes)
    chosen = BudgetPostprocessor(budget=300, shorten=True).postprocess_nodes(nodes, query_str="?")
    chosen[0].node.metadata["x"] = 1
    chosen[0].node.set_content("other")

    assert nodes == before


def test_scores_and_vectors_come_through() -> None:
    """Whoever comes after may need them."""
    nodes = found("alpha beta", "gamma delta")
    nodes[0].node.embedding = [0.5, 0.5]
    chosen = BudgetPostprocessor(budget=500).postprocess_nodes(nodes, query_str="?")

    assert [(one.score, one.node.embedding) for one in chosen] == [(0.9, [0.5, 0.5]), (0.89, None)]


def test_the_order_can_be_chosen() -> None:
    """Best first, best at both ends, or as found."""
    nodes = found("apple pie", "plum cake", "fig jam", "pear wine", "nut oil",
                  scores=[0.1, 0.9, 0.5, 0.7, 0.3])  # fmt: skip
    orders = {
        order: kept(BudgetPostprocessor(budget=500, order=order, mmr_lambda=1.0), nodes)
        for order in ("selection", "lost-in-the-middle", "document")
    }

    assert orders["selection"] == ["n1", "n3", "n2", "n4", "n0"]
    assert orders["lost-in-the-middle"] == ["n1", "n2", "n0", "n4", "n3"]
    assert orders["document"] == ["n0", "n1", "n2", "n3", "n4"]


def test_sentences_keep_their_order_in_a_shortened_node() -> None:
    """A sentence optimizer that sorts by similarity turns a text around."""
    text = "Bar is first. Foo is second. " * 20
    processor = BudgetPostprocessor(budget=60, shorten=True, token_counter=EXACT)
    chosen = processor.postprocess_nodes(found(text), query_str="foo")

    assert text.startswith(chosen[0].node.get_content())


def test_it_can_be_saved_and_read_back() -> None:
    """Pipelines are stored as JSON."""
    processor = BudgetPostprocessor(
        budget=321, mmr_lambda=0.4, order="document", token_counter=EXACT
    )
    for restored in (
        BudgetPostprocessor.from_dict(processor.to_dict()),
        BudgetPostprocessor.from_json(processor.to_json()),
        pickle.loads(pickle.dumps(processor)),
        copy.deepcopy(processor),
    ):
        assert restored.to_dict() == processor.to_dict()
        assert kept(restored, rules(9)) == kept(processor, rules(9))
    assert processor.to_dict()["class_name"] == "BudgetPostprocessor"


def test_a_budget_that_came_from_a_model_is_saved_as_a_number() -> None:
    """What is restored has no model, but must still keep a budget."""
    saved = BudgetPostprocessor(llm=StrictLLM(window=4000)).to_dict()

    assert 2000 < saved["budget"] < 4000
    assert BudgetPostprocessor.from_dict(saved).budget == saved["budget"]


@pytest.mark.parametrize(
    "knobs",
    [
        {"ledger": WindowLedger(window=4000, counter=lambda text: len(text))},
        {"ledger": WindowLedger(window=4000, counter=lambda text: len(text)), "budget": 300},
        {"budget": 300, "token_counter": lambda text: len(text)},
        {"llm": LocalModel()},
    ],
    ids=["ledger", "ledger and number", "counter", "model"],
)
def test_what_cannot_be_pickled_stays_behind_and_the_budget_does_not(knobs: dict[str, Any]) -> None:
    """It came back without a budget and failed at the first question; the original lost its own."""
    processor = BudgetPostprocessor(**knobs)

    back = pickle.loads(pickle.dumps(processor))

    assert kept(back, found("hello")) == ["n0"]
    assert report_of(back).budget == processor.to_dict()["budget"]
    assert all(getattr(processor, name) is value for name, value in knobs.items())
    assert kept(processor, found("hello")) == ["n0"]


def test_threads_do_not_disturb_each_other() -> None:
    """The async default of the base class runs it in threads."""
    processor = BudgetPostprocessor(budget=400, token_counter=EXACT)
    expected = kept(processor, rules(12))
    results: list[list[str]] = []
    threads = [
        threading.Thread(target=lambda: results.append(kept(processor, rules(12))))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert results == [expected] * 8


def test_the_loop_is_not_held_up() -> None:
    """A slow count must not stop every other conversation of a server."""

    def slow(text: str) -> int:
        time.sleep(0.02)
        return len(text) // 4

    async def both() -> float:
        processor = BudgetPostprocessor(budget=4000, token_counter=slow)
        begun = time.perf_counter()
        ticks: list[float] = []

        async def tick() -> None:
            while True:
                ticks.append(time.perf_counter())
                await asyncio.sleep(0.01)

        beat = asyncio.create_task(tick())
        await processor.apostprocess_nodes(rules(10), query_str="?")
        beat.cancel()
        return max(b - a for a, b in zip([begun, *ticks], ticks, strict=False))

    assert asyncio.run(both()) < 0.15


# --- in LlamaIndex -------------------------------------------------------------------------------


class Recorder(BaseEventHandler):
    """Remember what events were sent."""

    seen: list[Any] = Field(default_factory=list)

    @classmethod
    def class_name(cls) -> str:
        return "Recorder"

    def handle(self, event: Any, **kwargs: Any) -> None:
        self.seen.append(event)


def test_it_is_a_postprocessor_like_any_other() -> None:
    """Engines assign a callback manager to it, and blocks check its type."""
    processor = BudgetPostprocessor(budget=100)
    from llama_index.core.callbacks import CallbackManager

    processor.callback_manager = CallbackManager()

    assert isinstance(processor, BaseNodePostprocessor)
    assert "BaseNodePostprocessor" in [kind.__name__ for kind in type(processor).__mro__]


def test_traces_show_the_step_and_the_account() -> None:
    """A trace viewer knows the rerank events; ours carries what became of every node."""
    recorder = Recorder(seen=[])
    root = get_dispatcher()
    root.add_event_handler(recorder)
    try:
        ledger = WindowLedger(StrictLLM(window=4000))
        BudgetPostprocessor(ledger=ledger).postprocess_nodes(found(*COPIES), query_str="meals?")
    finally:
        root.event_handlers.remove(recorder)
    events = {event.class_name(): event for event in recorder.seen}

    assert {"ReRankStartEvent", "ReRankEndEvent", "NodesChosenEvent"} <= events.keys()
    assert len(events["ReRankEndEvent"].nodes) == 2
    told = events["NodesChosenEvent"]
    assert [one["reason"] for one in told.report["decisions"]] == [
        "named_in_question", "near_duplicate", "placed",
    ]  # fmt: skip
    assert told.ledger["context"] == told.report["used"]


def test_a_query_engine_asks_the_model_once(entry_point: EntryPoint) -> None:
    """Too much context turns into more model calls, not into fewer nodes, without a budget."""
    llm = StrictLLM(lambda _: "80 euros.", window=2500, num_output=400)
    plain = StrictLLM(lambda _: "80 euros.", window=2500, num_output=400)
    engine = RetrieverQueryEngine.from_args(
        FixedRetriever(rules(40)), llm=llm, node_postprocessors=[BudgetPostprocessor(llm=llm)]
    )
    without = RetrieverQueryEngine.from_args(FixedRetriever(rules(40)), llm=plain)

    response: Any = entry_point.call(engine, "query", "What is the cap in rule 7?")
    entry_point.call(without, "query", "What is the cap in rule 7?")

    assert str(response) == "80 euros."
    assert (llm.calls, plain.calls > 1) == (1, True)
    assert 0 < len(response.source_nodes) < 40


def test_it_works_behind_a_vector_index() -> None:
    """Vectors stay in the store and are looked up there."""
    nodes = [one.node for one in rules(12)]
    index = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=8))
    llm = StrictLLM(lambda _: "ok", window=2500)
    processor = BudgetPostprocessor(llm=llm, vector_store=index.vector_store, similarity="lexical")
    engine = index.as_query_engine(similarity_top_k=12, llm=llm, node_postprocessors=[processor])

    assert str(engine.query("cap?")) == "ok"
    assert llm.calls == 1
    assert len(report_of(processor).decisions) == 12


class TextStore(SimpleVectorStore):
    """Say that it keeps the texts, which a memory block insists on, and keep them."""

    stores_text: bool = True

    def query(self, query: Any, **kwargs: Any) -> VectorStoreQueryResult:
        nodes = [one.node for one in found(*COPIES)]
        return VectorStoreQueryResult(
            nodes=nodes, similarities=[0.9, 0.8, 0.7], ids=["0", "1", "2"]
        )

    async def aquery(self, query: Any, **kwargs: Any) -> VectorStoreQueryResult:
        return self.query(query)


def test_it_works_in_a_vector_memory_block() -> None:
    """The block calls it with the bare text of the question."""
    processor = BudgetPostprocessor(budget=50)
    block = VectorMemoryBlock(
        vector_store=TextStore(),
        embed_model=MockEmbedding(embed_dim=4),
        node_postprocessors=[processor],
    )
    asked = [ChatMessage(role="user", content="How much for meals?")]

    told = asyncio.run(block.aget(asked))

    assert told.count("Meals are capped") == 1
    assert len(report_of(processor).decisions) == 3


class TableEmbedding(BaseEmbedding):
    """Look vectors up in a table by text."""

    table: dict[str, list[float]]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self.table[query]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self.table[query]

    def _get_text_embedding(self, text: str) -> list[float]:
        return self.table[text]


@pytest.mark.slow
@needs_data
def test_real_passages_with_real_vectors_keep_the_answer_and_lose_the_copies() -> None:
    """On real questions with planted near-copies, the copies go and the gold passage stays."""
    import numpy as np

    vectors = np.load(data_path("retrieval.dev.embeddings.npy")).astype(np.float32)
    copies = gold = asked = 0
    for record in list(json_lines("retrieval.dev.jsonl.gz"))[:30]:
        table = {record["question"]: vectors[record["emb"]].tolist()}
        nodes: list[TextNode] = []
        for passage in record["passages"]:
            table[passage["text"]] = vectors[passage["emb"]].tolist()
            nodes.append(TextNode(text=passage["text"], id_=passage["id"]))
            twin = passage.get("dup")
            if twin:
                table[twin["text"]] = vectors[twin["emb"]].tolist()
                nodes.append(TextNode(text=twin["text"], id_=f"{passage['id']}-copy"))
        model = TableEmbedding(table=table)
        index = VectorStoreIndex(nodes, embed_model=model)
        processor = BudgetPostprocessor(
            budget=1500, vector_store=index.vector_store, token_counter=EXACT
        )
        hits = index.as_retriever(similarity_top_k=len(nodes)).retrieve(record["question"])
        chosen = processor.postprocess_nodes(hits, QueryBundle(record["question"]))
        names = {one.node.node_id.removesuffix("-copy") for one in chosen}
        asked += 1
        copies += len(chosen) - len(names)
        gold += record["gold_id"] in names
        assert EXACT(joined(chosen)) <= 1500

    assert asked == 30
    assert copies <= 1
    assert gold >= 24


def test_an_unknown_window_is_an_error_not_a_guess() -> None:
    """A made-up window overruns the real one."""
    with pytest.raises(ConfigurationError, match="budget=, llm= or ledger="):
        BudgetPostprocessor()


def test_it_finds_passages_of_a_bm25_retriever() -> None:
    """BM25 scores lie on their own scale and come without vectors."""
    bm25 = pytest.importorskip("llama_index.retrievers.bm25", exc_type=ImportError)
    retriever = bm25.BM25Retriever.from_defaults(
        nodes=[one.node for one in found(*COPIES, *(f"filler text number {n}" for n in range(5)))],
        similarity_top_k=3,
    )
    processor = BudgetPostprocessor(budget=200)
    chosen = processor.postprocess_nodes(retriever.retrieve("meals receipt"), query_str="meals")

    assert "n2" in [one.node.node_id for one in chosen]
    assert {"n0", "n1"} - {one.node.node_id for one in chosen}
