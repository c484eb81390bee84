# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# Functions given to LangChain's runnables have parameters that only the chain knows.
"""Documents in, documents out: the retriever over several sources, and the compressor."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("langchain_core")

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from langchain_agents import prose
from langchain_muntin import AssembledRetriever, BudgetCompressor, ContextAssembler
from langchain_worlds import LIBRARY, BM25Retriever, WordEmbeddings, library_store
from muntin import (
    CallableSource,
    Candidate,
    ContextWindowExceeded,
    Scope,
    SourceError,
    count_tokens,
    counter_for,
)
from muntin.adapting import PassagePolicy
from muntin.errors import ConfigurationError
from muntin.passages import Gathered

if TYPE_CHECKING:
    from conftest import EntryPoint

COUNT = counter_for(None)


def found(
    entry_point: EntryPoint, retriever: AssembledRetriever, query: str, **more: Any
) -> list[Document]:
    return entry_point(retriever.invoke, retriever.ainvoke, query, **more)


def both() -> dict[str, Any]:
    return {
        "rag": library_store().as_retriever(search_kwargs={"k": 5}),
        "words": BM25Retriever(documents=LIBRARY, k=5),
    }


# --- the retriever -------------------------------------------------------------------------------


def test_what_two_sources_find_is_returned_once(entry_point: EntryPoint) -> None:
    """A document that two retrievers find is one document, in its better-ranked copy."""
    documents = found(entry_point, AssembledRetriever(sources=both()), "meals per day")
    ids = [document.id for document in documents]

    assert len(ids) == len(set(ids))
    assert ids[0] in ("d0", "d5")


def test_documents_fit_the_budget_joined(entry_point: EntryPoint) -> None:
    """Three documents of a hundred thousand characters are what nobody limits."""
    retriever = AssembledRetriever(sources={"rag": lambda q: LIBRARY}, budget=60)
    documents = found(entry_point, retriever, "meals")

    assert documents
    assert COUNT("\n\n".join(document.page_content for document in documents)) <= 60


def test_k_and_scope_can_be_given_per_call(entry_point: EntryPoint) -> None:
    """A search box decides how many; a request decides for whom."""

    def remember(query: str, scope: Scope) -> list[str]:
        return [f"{scope.user} {n}: {prose(20, n)}" for n in range(5)]

    retriever = AssembledRetriever(sources={"memory": remember}, scope=Scope(user="bob"), k=3)

    assert len(found(entry_point, retriever, "q")) == 3
    documents = found(entry_point, retriever, "q", k=2, scope=Scope(user="ada"))
    assert [document.page_content[:3] for document in documents] == ["ada", "ada"]


@pytest.mark.parametrize("k", [0, -1])
def test_a_k_that_is_no_number_of_documents_is_an_error(entry_point: EntryPoint, k: int) -> None:
    """None wanted must not become all, nor all but the last."""
    retriever = AssembledRetriever(sources={"rag": lambda q: LIBRARY})

    with pytest.raises(ConfigurationError, match=f"k must be at least 1, got {k}"):
        found(entry_point, retriever, "meals", k=k)
    with pytest.raises(ConfigurationError, match="k: "):
        AssembledRetriever(sources={"rag": lambda q: LIBRARY}, k=k)


@pytest.mark.parametrize(
    "kind", [AssembledRetriever, BudgetCompressor], ids=lambda kind: kind.__name__
)
@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"budgets": 50}, "no argument 'budgets': did you mean 'budget'"),
        ({"max_token": 50}, "no argument 'max_token'"),
        ({"max_tokens": 50, "budget": 60}, "its alias 'max_tokens'"),
        ({"budget": "300"}, "budget: .*'300'"),
        ({"budget": 0}, "budget: "),
        ({"budget": 1.5}, "budget: "),
        ({"budget": True}, "budget: "),
        ({"ordering": "best"}, "ordering: "),
    ],
    ids=str,
)
def test_a_wrong_keyword_is_refused_by_its_name(kind: Any, given: Any, match: str) -> None:
    """A misspelt budget is no budget, and a raw pydantic error is not one of ours."""
    sources = {"sources": {"rag": lambda q: LIBRARY}} if kind is AssembledRetriever else {}
    with pytest.raises(ConfigurationError, match=match):
        kind(**sources, **given)


@pytest.mark.parametrize("sources", [None, {}, 3, "rag", BM25Retriever(documents=LIBRARY)])
def test_sources_of_the_wrong_type_are_refused_at_construction(sources: Any) -> None:
    """A bare retriever raised a TypeError at the first question."""
    with pytest.raises(ConfigurationError, match="source"):
        AssembledRetriever(sources=sources)


class Miscounting(Embeddings):
    """Embed some texts too few, or too many."""

    def __init__(self, more: int) -> None:
        self.more = more

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[1.0, float(at)] for at in range(len(texts) + self.more)]

    def embed_query(self, text: str) -> list[float]:
        return [1.0, 0.0]


@pytest.mark.parametrize("more", [-2, -1, 1])
def test_vectors_that_belong_to_no_text_are_an_error(entry_point: EntryPoint, more: int) -> None:
    """Vectors that are off by one give every text the meaning of its neighbour."""
    embeddings = Miscounting(more)
    retriever = AssembledRetriever(sources={"rag": lambda q: LIBRARY}, embeddings=embeddings)
    compressor = BudgetCompressor(embeddings=embeddings)
    assembler = ContextAssembler(
        window=8000, sources={"rag": lambda q: LIBRARY}, embeddings=embeddings
    )
    entry_points: tuple[Any, ...] = (
        (retriever.invoke, retriever.ainvoke, ("meals",)),
        (assembler.invoke, assembler.ainvoke, ("meals",)),
        (compressor.compress_documents, compressor.acompress_documents, (LIBRARY, "meals")),
    )
    for plain, twin, asked in entry_points:
        with pytest.raises(ConfigurationError, match=f"returned {8 + more} vectors for 8 texts"):
            entry_point(plain, twin, *asked)


def test_embeddings_and_orderings(entry_point: EntryPoint) -> None:
    """The strongest at both ends, or as the sources had them."""
    sources = {"rag": lambda q: LIBRARY}
    plain = AssembledRetriever(sources=sources, embeddings=WordEmbeddings(), k=5)
    ends = AssembledRetriever(
        sources=sources, embeddings=WordEmbeddings(), k=5, ordering="lost-in-the-middle"
    )
    as_found = AssembledRetriever(
        sources=sources, embeddings=WordEmbeddings(), k=5, ordering="document"
    )
    best = [document.id for document in found(entry_point, plain, "meals per day")]

    assert [d.id for d in found(entry_point, ends, "meals per day")] == [
        best[0], best[2], best[4], best[3], best[1],
    ]  # fmt: skip
    assert [d.id for d in found(entry_point, as_found, "meals per day")] == sorted(best, key=str)


def test_a_failing_source_is_named(entry_point: EntryPoint) -> None:
    """A retriever that silently returns less is one nobody can trust."""

    def broken(query: str) -> list[str]:
        raise RuntimeError("no index")

    with pytest.raises(SourceError, match="source 'rag'"):
        found(entry_point, AssembledRetriever(sources={"rag": broken}), "q")
    lenient = AssembledRetriever(
        sources=[
            CallableSource("rag", broken, on_error="skip"),
            CallableSource("memory", lambda q: ["x"]),
        ]
    )
    assert [document.page_content for document in found(entry_point, lenient, "q")] == ["x"]


def test_the_retrievers_below_are_children_in_the_trace(entry_point: EntryPoint) -> None:
    """The run of the whole shows the runs of its parts."""
    parents: dict[str, Any] = {}

    class Listener(BaseCallbackHandler):
        def on_retriever_start(self, serialized: Any, query: str, **kwargs: Any) -> None:
            parents[kwargs["name"]] = (kwargs["run_id"], kwargs["parent_run_id"])

    found(entry_point, AssembledRetriever(sources=both()), "q", config={"callbacks": [Listener()]})
    own, above = parents.pop("AssembledRetriever")

    assert above is None
    assert {parent for _, parent in parents.values()} == {own}
    assert len(parents) == 2


# --- the compressor ------------------------------------------------------------------------------


def compressed(
    entry_point: EntryPoint,
    compressor: BudgetCompressor,
    documents: list[Document],
    query: str = "meals",
) -> list[Document]:
    kept = entry_point(
        compressor.compress_documents, compressor.acompress_documents, documents, query
    )
    return list(kept)


@pytest.mark.parametrize("embeddings", [None, WordEmbeddings()])
@pytest.mark.parametrize("swapped", [False, True])
def test_the_better_copy_of_two_stays(
    entry_point: EntryPoint,
    embeddings: Embeddings | None,
    swapped: bool,  # noqa: FBT001 - both orders
) -> None:
    """The filter of the community package drops whichever came first: often the better one."""
    low = Document("Meals are capped at 80 per day!", metadata={"relevance_score": 0.2}, id="low")
    high = Document("Meals are capped at 80 per day.", metadata={"relevance_score": 0.9}, id="high")
    given = [high, low] if swapped else [low, high]
    (kept,) = compressed(entry_point, BudgetCompressor(embeddings=embeddings), given)

    assert kept is high


def test_a_chain_of_likenesses_keeps_its_ends(entry_point: EntryPoint) -> None:
    """A is like b, b is like c, but a is not like c: c must stay."""
    vectors = {"a": [1.0, 0.0], "b": [0.96, 0.28], "c": [0.8432, 0.5376]}

    class Three(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [vectors[text] for text in texts]

        def embed_query(self, text: str) -> list[float]:
            return [1.0, 0.0]

    documents = [
        Document(name, metadata={"relevance_score": 1 - at / 10}) for at, name in enumerate("abc")
    ]
    kept = compressed(entry_point, BudgetCompressor(embeddings=Three()), documents)

    assert [document.page_content for document in kept] == ["a", "c"]


@pytest.mark.parametrize("bad", [[0.0, 0.0], [float("nan"), 1.0]])
def test_a_vector_that_says_nothing_is_no_vector(entry_point: EntryPoint, bad: list[float]) -> None:
    """One document that could not be embedded must not undo the ranking of the others."""

    class Broken(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [bad if "taxi" in text.lower() else [1.0, 0.1 * len(text)] for text in texts]

        def embed_query(self, text: str) -> list[float]:
            return bad

    kept = compressed(
        entry_point, BudgetCompressor(embeddings=Broken(), dedup_threshold=2), LIBRARY
    )

    assert {document.id for document in kept} == {document.id for document in LIBRARY}


def test_orderings_of_the_compressor(entry_point: EntryPoint) -> None:
    """What the reorder transformer of the community package is used for."""
    documents = [
        Document(prose(9, at), metadata={"relevance_score": 1 - at / 10}, id=str(at))
        for at in range(7)
    ]
    compressor = BudgetCompressor(mmr_lambda=1.0, ordering="lost-in-the-middle")

    assert [d.id for d in compressed(entry_point, compressor, documents)] == list("0246531")
    last = BudgetCompressor(mmr_lambda=1.0, ordering="document", top_k=3)
    assert [d.id for d in compressed(entry_point, last, documents[::-1])] == list("210")


@pytest.mark.parametrize("party", ["retriever", "compressor"])
def test_the_best_document_is_shortened_when_none_fits(entry_point: EntryPoint, party: str) -> None:
    """A chain must not ask its model with an empty context because one document is long."""
    giant = Document("Parcels leave the depot at nine. " * 400, id="giant")
    owner: Any = (
        AssembledRetriever(sources={"rag": lambda q: [giant]}, budget=50)
        if party == "retriever"
        else BudgetCompressor(budget=50)
    )
    kept = (
        found(entry_point, owner, "when?")
        if party == "retriever"
        else compressed(entry_point, owner, [giant], "when?")
    )

    assert len(kept) == 1
    assert kept[0].id == "giant"
    assert 0 < COUNT(kept[0].page_content) <= 50
    assert owner.last_report.decisions[0].kind == "shortened"
    assert giant.page_content.endswith("nine. ")


@pytest.mark.parametrize("party", ["retriever", "compressor"])
def test_no_room_for_any_document_is_said(entry_point: EntryPoint, party: str) -> None:
    """An empty list without a word looks like a search that found nothing."""
    word = Document("Parcels leave at nine.")
    tight: Any = {"budget": 1, "counter": lambda text: 10 * len(text)}

    def ask(*, strict: bool) -> Any:
        if party == "retriever":
            owner = AssembledRetriever(sources={"rag": lambda q: [word]}, strict=strict, **tight)
            return found(entry_point, owner, "when?")
        return compressed(entry_point, BudgetCompressor(strict=strict, **tight), [word])

    with pytest.warns(UserWarning, match="no document fits"):
        assert ask(strict=False) == []
    with pytest.raises(ContextWindowExceeded):
        ask(strict=True)


def test_ratios_divide_the_budget_and_idle_tokens_are_lent(entry_point: EntryPoint) -> None:
    """Ratios were ignored: the source with the larger scores took everything."""
    sources = {
        "loud": lambda q: [Candidate(f"loud {prose(20, n)}", 0.9) for n in range(20)],
        "quiet": lambda q: [Candidate(f"quiet {prose(20, 50 + n)}", 0.1) for n in range(20)],
    }
    shares = {}
    for ratio in (0.1, 0.9):
        retriever = AssembledRetriever(
            sources=sources, budget=400, ratios={"loud": ratio, "quiet": 1 - ratio}
        )
        documents = found(entry_point, retriever, "q")
        shares[ratio] = sum(d.page_content.startswith("loud") for d in documents) / len(documents)
        report = retriever.last_report
        assert report is not None
        assert {source.name: source.quota for source in report.sources}["loud"] == pytest.approx(
            400 * ratio, abs=12
        )

    assert shares[0.1] < 0.3
    assert shares[0.9] > 0.7


def test_a_text_is_embedded_once(entry_point: EntryPoint) -> None:
    """The same passages were embedded again for every question."""

    class Counting(WordEmbeddings):
        texts: list[str]

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            asked.extend(texts)
            return super().embed_documents(texts)

    asked: list[str] = []
    retriever = AssembledRetriever(sources={"rag": lambda q: LIBRARY}, embeddings=Counting())
    compressor = BudgetCompressor(embeddings=Counting())
    assembler = ContextAssembler(
        window=8000, sources={"rag": lambda q: LIBRARY}, embeddings=Counting()
    )
    for ask in (
        lambda: found(entry_point, retriever, "meals"),
        lambda: compressed(entry_point, compressor, LIBRARY),
        lambda: entry_point(assembler.invoke, assembler.ainvoke, "meals?"),
    ):
        asked.clear()
        for _ in range(3):
            ask()
        assert len(asked) == len({document.page_content for document in LIBRARY})


def test_a_giant_is_passed_over_for_what_fits(entry_point: EntryPoint) -> None:
    """One document larger than the budget must not leave it empty."""
    giant = Document(prose(5000), metadata={"relevance_score": 1.0})
    kept = compressed(entry_point, BudgetCompressor(budget=100), [giant, *LIBRARY[:3]])

    assert {document.id for document in kept} == {"d0", "d1", "d2"}


def test_nothing_in_nothing_out(entry_point: EntryPoint) -> None:
    """An empty retrieval is no error."""
    assert compressed(entry_point, BudgetCompressor(embeddings=WordEmbeddings()), []) == []


def test_the_compressor_drops_into_what_takes_compressors(entry_point: EntryPoint) -> None:
    """Compression retrievers and pipelines of LangChain take it as it is."""
    pytest.importorskip("langchain_classic")
    from langchain_classic.retrievers import ContextualCompressionRetriever
    from langchain_classic.retrievers.document_compressors import DocumentCompressorPipeline

    pipeline = DocumentCompressorPipeline(transformers=[BudgetCompressor(budget=60)])
    retriever = ContextualCompressionRetriever(
        base_retriever=BM25Retriever(documents=LIBRARY), base_compressor=pipeline
    )
    documents: list[Document] = entry_point(retriever.invoke, retriever.ainvoke, "meals per day")

    assert 1 <= len(documents) <= 3
    assert len({d.page_content[:20] for d in documents}) == len(documents)


@given(
    st.lists(st.text(max_size=40), max_size=12),
    st.integers(1, 80),
    st.none() | st.integers(1, 5),
    st.sampled_from(["selection", "document", "lost-in-the-middle"]),
)
def test_what_is_chosen_fits_joined(
    texts: list[str], budget: int, most: int | None, ordering: Any
) -> None:
    """Tokens are not additive: the joined text is what has to fit, in the order of the answer."""
    policy = PassagePolicy(budget=budget, counter=count_tokens, top_k=most, ordering=ordering)
    offered = {
        "a": tuple(Candidate(text) for text in texts[::2]),
        "b": tuple(Candidate(text) for text in texts[1::2]),
    }
    chosen = policy.choose(Gathered(candidates=offered), "?")
    joined = "\n\n".join(one.content for one in chosen.candidates)
    report = chosen.report

    assert count_tokens(joined) == report.used <= budget
    assert "".join(piece.text or "" for piece in report.pieces) == joined
    assert len(chosen.candidates) <= (most or len(texts))
    assert len(report.decisions) == len(texts)
    kept = sum(one.kind in ("kept", "shortened") for one in report.decisions)
    assert kept == len(chosen.candidates)


def test_what_is_given_is_never_changed(entry_point: EntryPoint) -> None:
    """Documents are shared with the store they came from."""
    before = copy.deepcopy(LIBRARY)
    compressed(entry_point, BudgetCompressor(budget=50, embeddings=WordEmbeddings()), LIBRARY)
    found(entry_point, AssembledRetriever(sources={"rag": lambda q: LIBRARY}, budget=50), "meals")

    assert before == LIBRARY
