"""The postprocessor inside the query engines of LlamaIndex, and in the wrong place among others."""

# Settings are passed on as they come.
# pyright: reportArgumentType=false

from __future__ import annotations

import asyncio
import warnings
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core import StorageContext, get_response_synthesizer
from llama_index.core.base.base_selector import BaseSelector, SelectorResult, SingleSelection
from llama_index.core.indices.query.query_transform import HyDEQueryTransform
from llama_index.core.node_parser import TokenTextSplitter
from llama_index.core.postprocessor import MetadataReplacementPostProcessor
from llama_index.core.query_engine import (
    CitationQueryEngine,
    RetrieverQueryEngine,
    RouterQueryEngine,
    SubQuestionQueryEngine,
    TransformQueryEngine,
)
from llama_index.core.question_gen.types import BaseQuestionGenerator, SubQuestion
from llama_index.core.retrievers import AutoMergingRetriever
from llama_index.core.schema import (
    ImageNode,
    NodeRelationship,
    NodeWithScore,
    TextNode,
)
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.tools import QueryEngineTool

from llama_doubles import FixedRetriever, found, rules, sentence
from llama_index_muntin import BudgetPostprocessor, PlacementWarning, RetrieverSource
from llama_index_muntin.testing import StrictLLM
from muntin import ContextBuilder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from llama_index.core.schema import QueryBundle

    from conftest import EntryPoint

pytestmark = pytest.mark.usefixtures("own_loop")

QUESTION = "What is the cap in rule 7?"
WINDOW = 2500


def model(**more: Any) -> StrictLLM:
    """Make a model that answers everything and refuses what is over its window."""
    return StrictLLM(lambda _: "80 euros.", **{"window": WINDOW, "num_output": 400, **more})


def engine_of(retriever: Any, llm: StrictLLM, *before: Any, **more: Any) -> RetrieverQueryEngine:
    """Make a query engine with a budget, its postprocessor behind those given."""
    return RetrieverQueryEngine.from_args(
        retriever, llm=llm, node_postprocessors=[*before, BudgetPostprocessor(llm=llm)], **more
    )


class First(BaseSelector):
    """Choose the first of several engines."""

    def _select(self, choices: Sequence[Any], query: QueryBundle) -> SelectorResult:
        return SelectorResult(selections=[SingleSelection(index=0, reason="it is the first")])

    async def _aselect(self, choices: Sequence[Any], query: QueryBundle) -> SelectorResult:
        return self._select(choices, query)

    def _get_prompts(self) -> dict[str, Any]:
        return {}

    def _update_prompts(self, prompts_dict: dict[str, Any]) -> None:
        """Nothing to update."""


class Halves(BaseQuestionGenerator):
    """Ask two questions for one."""

    def generate(self, tools: Sequence[Any], query: QueryBundle) -> list[SubQuestion]:
        return [
            SubQuestion(sub_question=f"{query.query_str} ({part})", tool_name="rules")
            for part in ("past", "present")
        ]

    async def agenerate(self, tools: Sequence[Any], query: QueryBundle) -> list[SubQuestion]:
        return self.generate(tools, query)

    def _get_prompts(self) -> dict[str, Any]:
        return {}

    def _update_prompts(self, prompts_dict: dict[str, Any]) -> None:
        """Nothing to update."""


def tool_of(llm: StrictLLM) -> QueryEngineTool:
    """Make the tool of an engine that finds forty rules."""
    return QueryEngineTool.from_defaults(
        engine_of(FixedRetriever(rules(40)), llm), name="rules", description="The travel rules."
    )


def router(llm: StrictLLM) -> Any:
    return RouterQueryEngine(selector=First(), query_engine_tools=[tool_of(llm)], llm=llm)


def sub_questions(llm: StrictLLM) -> Any:
    return SubQuestionQueryEngine.from_defaults(
        query_engine_tools=[tool_of(llm)],
        question_gen=Halves(),
        response_synthesizer=get_response_synthesizer(llm=llm),
        llm=llm,
        use_async=False,
    )


def auto_merging(llm: StrictLLM) -> Any:
    """Leaves whose parents are returned in their place, each of them larger than a leaf."""
    store = SimpleDocumentStore()
    leaves: list[NodeWithScore] = []
    for at in range(40):
        texts = [sentence(at * 4 + part) for part in range(4)]
        parent = TextNode(text=" ".join(texts), id_=f"parent-{at}")
        children = [TextNode(text=text, id_=f"leaf-{at}-{n}") for n, text in enumerate(texts)]
        parent.relationships[NodeRelationship.CHILD] = [
            child.as_related_node_info() for child in children
        ]
        for child in children:
            child.relationships[NodeRelationship.PARENT] = parent.as_related_node_info()
        store.add_documents([parent, *children])
        leaves += [NodeWithScore(node=child, score=0.9 - at / 100) for child in children[:3]]
    retriever = AutoMergingRetriever(
        FixedRetriever(leaves), StorageContext.from_defaults(docstore=store)
    )
    return engine_of(retriever, llm)


def sentences(count: int = 60) -> list[NodeWithScore]:
    """Make a node of each sentence, with the sentences around it in its metadata."""
    texts = [f"Rule {at} is this: {sentence(at, 20)}" for at in range(count)]
    return [
        NodeWithScore(
            node=TextNode(
                text=text,
                id_=f"s{at}",
                metadata={
                    "window": " ".join(texts[max(at - 3, 0) : at + 4]),
                    "original_text": text,
                },
                excluded_llm_metadata_keys=["window", "original_text"],
                excluded_embed_metadata_keys=["window", "original_text"],
            ),
            score=0.9 - at / 1000,
        )
        for at, text in enumerate(texts)
    ]


def sentence_window(llm: StrictLLM) -> Any:
    replacement = MetadataReplacementPostProcessor(target_metadata_key="window")
    return engine_of(FixedRetriever(sentences()), llm, replacement)


def hyde(llm: StrictLLM) -> Any:
    return TransformQueryEngine(
        engine_of(FixedRetriever(rules(40)), llm), HyDEQueryTransform(llm=llm)
    )


ENGINES = {
    "router": (router, 1),
    "sub questions": (sub_questions, 3),
    "auto merging": (auto_merging, 1),
    "sentence window": (sentence_window, 1),
    "hyde": (hyde, 2),
}
"""An engine, and the model calls that one question costs if nothing is split."""


@pytest.mark.parametrize("kind", sorted(ENGINES))
def test_an_engine_sends_what_fits_in_one_call_for_each_answer(
    kind: str, entry_point: EntryPoint
) -> None:
    """Without a budget each answer is refined over the parts of a context that was split."""
    make, calls = ENGINES[kind]
    llm = model()
    response: Any = entry_point.call(make(llm), "query", QUESTION)

    assert str(response) == "80 euros."
    assert llm.calls == calls
    assert max(llm.tokens) <= WINDOW - 400
    assert response.source_nodes


def test_a_streaming_engine_sends_what_fits(entry_point: EntryPoint) -> None:
    """A stream that breaks off in the middle cannot be tried again."""
    llm = model()
    engine = engine_of(FixedRetriever(rules(40)), llm, streaming=True, use_async=False)

    async def stream() -> str:
        response: Any = await engine.aquery(QUESTION)
        return "".join([piece async for piece in response.async_response_gen()])

    if entry_point.name == "async":
        assert asyncio.run(stream()) == "80 euros."
    else:
        response: Any = engine.query(QUESTION)
        assert "".join(response.response_gen) == "80 euros."
    assert llm.calls == 1
    assert 1000 < llm.tokens[0] <= WINDOW - 400


def test_eight_queries_at_once_do_not_disturb_each_other() -> None:
    """One postprocessor serves all requests of a server."""
    llm = model()
    engine = engine_of(FixedRetriever(rules(40)), llm)

    async def ask() -> list[Any]:
        return await asyncio.gather(*(engine.aquery(f"What is rule {at}?") for at in range(8)))

    with warnings.catch_warnings():
        warnings.simplefilter("error", PlacementWarning)
        answers = asyncio.run(ask())
    assert [str(answer) for answer in answers] == ["80 euros."] * 8
    assert llm.calls == 8
    assert max(llm.tokens) <= WINDOW - 400
    for at, answer in enumerate(answers):
        kept = [found.node.node_id for found in answer.source_nodes]
        assert f"n{at}" in kept, "the rule that the question names"


def test_images_and_texts_are_chosen_together(entry_point: EntryPoint) -> None:
    """A picture costs hundreds of tokens that its caption does not show."""
    pictures = [
        NodeWithScore(
            node=ImageNode(image_url=f"https://host/{at}.png", text=f"Map {at}.", id_=f"p{at}"),
            score=0.95 - at / 100,
        )
        for at in range(4)
    ]
    texts = [
        NodeWithScore(node=TextNode(text=f"Rule {at}: {sentence(at)}", id_=f"t{at}"), score=0.9)
        for at in range(6)
    ]
    processor = BudgetPostprocessor(budget=3000)
    given = [*pictures, *texts]
    kept: Any = entry_point.call(processor, "postprocess_nodes", given, query_str="Which map?")
    report = processor.last_report

    assert report is not None
    assert report.used <= 3000
    assert {type(found.node) for found in kept} == {ImageNode, TextNode}
    assert [found.node.image_url for found in kept if isinstance(found.node, ImageNode)]
    assert {one.id for one in report.decisions} == {one.node.node_id for one in given}


# --- placed before what changes the nodes --------------------------------------------------------


def test_a_replacement_behind_the_budget_is_reported() -> None:
    """Sentences fit the budget; the windows that replace them take seven times of it."""
    llm = model()
    budget = BudgetPostprocessor(budget=300)
    replacement = MetadataReplacementPostProcessor(target_metadata_key="window")
    retriever = FixedRetriever(sentences())
    wrong = RetrieverQueryEngine.from_args(
        retriever, llm=llm, node_postprocessors=[budget, replacement]
    )

    with pytest.warns(PlacementWarning, match="place it last"):
        wrong.query(QUESTION)
    right = RetrieverQueryEngine.from_args(
        FixedRetriever(sentences()), llm=llm, node_postprocessors=[replacement, budget]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert right.query(QUESTION).source_nodes


def test_a_citation_engine_that_adds_to_the_nodes_is_reported(entry_point: EntryPoint) -> None:
    """It splits the chosen nodes and puts a heading on each part, after every postprocessor."""
    llm = model()

    def citing(budget: int) -> Any:
        return CitationQueryEngine(
            FixedRetriever(rules(40)),
            llm=llm,
            node_postprocessors=[BudgetPostprocessor(budget=budget)],
            text_splitter=TokenTextSplitter(chunk_size=64, chunk_overlap=16),
        )

    with pytest.warns(PlacementWarning, match=r"got \d+ tokens of nodes.*budget of 900"):
        assert str(entry_point.call(citing(900), "query", QUESTION)) == "80 euros."


def test_an_engine_without_a_budget_is_not_compared_with_another_one() -> None:
    """A warning about a postprocessor that is not there cannot be followed."""
    llm = model(window=60_000)
    BudgetPostprocessor(budget=200).postprocess_nodes(rules(40), query_str=QUESTION)
    others = found(*(sentence(at) for at in range(80)))
    for at, other in enumerate(others):
        other.node.id_ = f"other-{at}"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RetrieverQueryEngine.from_args(FixedRetriever(others), llm=llm).query(QUESTION)


def test_a_retriever_that_merges_is_a_source_of_a_builder() -> None:
    """What engines of LlamaIndex retrieve goes into a prompt of one's own, too."""
    source = RetrieverSource("rag", FixedRetriever(rules(40)))
    context = ContextBuilder(None).build_block(QUESTION, sources=[source], budget=400)

    assert "Rule 7:" in context
