"""The same sources through every retriever and builder: one policy, one report.

Two retrievers with one name gave two answers to the same question, and settings that one obeyed
were ignored by the other.
"""

# Functions given to LangChain's runnables have parameters that only the chain knows.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("langchain_core")
pytest.importorskip("llama_index.core")

import langchain_muntin
import llama_index_muntin
from muntin import CallableSource, Candidate, ContextBuilder, ContextConfig, count_tokens
from muntin.adapting import JoinedLayout, PassagePolicy
from muntin.passages import gather

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from muntin.report import AssemblyReport

pytestmark = pytest.mark.usefixtures("own_loop")

_LONG = " ".join(f"The long parcel note has sentence {n}." for n in range(12))
LOUD = [
    Candidate("Parcels for Lund ship on Monday at nine.", 0.95, id="a"),
    Candidate("Parcels for Lund ship on Monday at nine!", 0.94, id="b"),
    Candidate(_LONG, 0.93, id="c"),
    Candidate("Depot Lund opens at seven and closes at six.", 0.9, id="d", embedding=[1.0, 0.0]),
    Candidate("Couriers carry at most thirty kilograms each.", 0.8, id="e", embedding=[0.9, 0.43]),
    Candidate("Returns are free within fourteen days.", 0.7, id="f", embedding=[0.0, 1.0]),
]
QUIET = [
    Candidate("Ada asked for parcels to be left at the depot.", 0.4, id="g"),
    Candidate("Depot Lund opens at seven and closes at six.", 0.35, id="h"),
    Candidate("Bo is away in July.", 0.3, id="i"),
    Candidate("  ", 0.99, id="j"),
]

ASKED = "when do parcels ship?"
Answer = tuple[list[str], "AssemblyReport"]


def sources() -> list[CallableSource]:
    return [CallableSource("loud", lambda q: LOUD), CallableSource("quiet", lambda q: QUIET)]


def by_langchain(budget: int, config: ContextConfig | None, **more: Any) -> Answer:
    """Retrieve through LangChain."""
    retriever = langchain_muntin.AssembledRetriever(
        sources=sources(), budget=budget, config=config, counter=count_tokens, **more
    )
    documents = retriever.invoke(ASKED)
    assert retriever.last_report is not None
    return [document.page_content for document in documents], retriever.last_report


def by_llama_index(budget: int, config: ContextConfig | None, **more: Any) -> Answer:
    """Retrieve through LlamaIndex."""
    named: Any = {source.name: source for source in sources()}
    retriever = llama_index_muntin.AssembledRetriever(
        named, budget=budget, config=config, counter=count_tokens, **more
    )
    nodes = retriever.retrieve(ASKED)
    assert retriever.last_report is not None
    return [node.text for node in nodes], retriever.last_report


def by_policy(budget: int, config: ContextConfig | None, **more: Any) -> Answer:
    """Choose with the kit itself."""
    policy = PassagePolicy(
        budget=budget,
        counter=count_tokens,
        config=config,
        ratios=more.get("ratios"),
        top_k=more.get("k"),
        ordering=more.get("ordering", "selection"),
    )
    chosen = policy.choose(gather(sources(), ASKED), ASKED)
    return [candidate.content for candidate in chosen.candidates], chosen.report


def decisions(report: AssemblyReport) -> list[tuple[Any, ...]]:
    """Return what a report says of every passage."""
    return sorted(
        (one.source, one.index, one.kind, one.reason, one.tokens, one.kept_tokens, one.nearest)
        for one in report.decisions
    )


_RATIOS = {"loud": 0.1, "quiet": 0.9}
CONFIGS: dict[str, ContextConfig | None] = {
    "defaults": None,
    "ratios": ContextConfig(source_ratios=_RATIOS),
    "no borrowing": ContextConfig(source_ratios=_RATIOS, allow_borrow=False),
    "shorten": ContextConfig(source_ratios={"loud": 0.9, "quiet": 0.1}, shorten=True),
    "no filling": ContextConfig(source_ratios={"loud": 0.9, "quiet": 0.1}, fill=False),
    "diversity": ContextConfig(source_ratios={"loud": 0.5, "quiet": 0.5}, mmr_lambda=0.2),
    "no duplicates found": ContextConfig(
        source_ratios={"loud": 0.5, "quiet": 0.5}, dedup_threshold=1.1
    ),
    "sources apart": ContextConfig(
        source_ratios={"loud": 0.5, "quiet": 0.5}, dedup_across_sources=False
    ),
    "reference": ContextConfig.reference(source_ratios={"loud": 0.5, "quiet": 0.5}),
}


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("budget", [12, 30, 60, 90, 400])
def test_every_retriever_returns_the_same(budget: int, config: ContextConfig | None) -> None:
    """The framework must not decide which passages the model reads."""
    texts, report = by_policy(budget, config)

    for answer in (by_langchain(budget, config), by_llama_index(budget, config)):
        assert answer[0] == texts
        assert decisions(answer[1]) == decisions(report)
        assert (answer[1].budget, answer[1].used) == (report.budget, report.used)
    assert report.used <= budget


@pytest.mark.parametrize("ordering", ["selection", "lost-in-the-middle", "document"])
@pytest.mark.parametrize("k", [None, 1, 3])
def test_orders_and_numbers_of_passages_mean_the_same(ordering: Any, k: int | None) -> None:
    """One word in two adapters with two meanings is found out in production."""
    texts, report = by_policy(400, None, ordering=ordering, k=k)
    ways: Sequence[Callable[..., Answer]] = (by_langchain, by_llama_index)
    for way in ways:
        named = {"ordering": ordering} if way is by_langchain else {"order": ordering}
        found, said = way(400, None, k=k, **named)
        assert found == texts
        assert decisions(said) == decisions(report)
    assert k is None or len(texts) == k


@pytest.mark.parametrize(
    "name", [name for name in CONFIGS if name not in ("defaults", "reference")]
)
def test_every_setting_has_an_effect(name: str) -> None:
    """A setting that is read by nothing is worse than none: people rely on it."""
    config = CONFIGS[name]
    assert config is not None
    plain = ContextConfig(source_ratios=config.source_ratios)
    if name == "ratios":
        plain = ContextConfig(source_ratios={"loud": 0.9, "quiet": 0.1})

    for way in (by_langchain, by_llama_index):
        answers = [
            decisions(way(budget, config)[1]) != decisions(way(budget, plain)[1])
            for budget in (12, 30, 60, 90, 400)
        ]
        assert any(answers), name


@pytest.mark.parametrize(
    "config", [c for c in CONFIGS.values() if c], ids=[n for n in CONFIGS if CONFIGS[n]]
)
@pytest.mark.parametrize("budget", [60, 90, 400])
def test_the_builder_decides_what_the_retrievers_decide(budget: int, config: ContextConfig) -> None:
    """A retriever in front of a prompt must not choose otherwise than a builder would."""
    builder = ContextBuilder(config, token_counter=count_tokens, layout=JoinedLayout())
    context = builder.assemble_block(ASKED, gather(sources(), ASKED), budget=budget)
    placed = [candidate.content for candidate in context.ranked]

    if placed:
        assert placed == by_langchain(budget, config)[0] == by_llama_index(budget, config)[0]


def test_the_compressor_and_the_postprocessor_choose_alike() -> None:
    """One source of documents, one source of nodes: the same passages."""
    from langchain_core.documents import Document
    from llama_index.core.schema import NodeWithScore, TextNode

    for budget in (12, 30, 60, 90, 400):
        compressor = langchain_muntin.BudgetCompressor(
            budget=budget, mmr_lambda=1.0, counter=count_tokens
        )
        documents = compressor.compress_documents(
            [
                Document(one.content, metadata={"relevance_score": one.score}, id=one.id)
                for one in LOUD
            ],
            "?",
        )
        processor = llama_index_muntin.BudgetPostprocessor(budget=budget, counter=count_tokens)
        nodes = processor.postprocess_nodes(
            [
                NodeWithScore(node=TextNode(text=one.content, id_=one.id), score=one.score)
                for one in LOUD
            ],
            query_str="?",
        )
        assert [document.id for document in documents] == [node.node_id for node in nodes]
