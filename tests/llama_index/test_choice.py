"""What postprocessor and retriever promise alike: inside the budget, never empty, the caller's own.

Every test goes through both, by the sync and by the async entry point.
"""

# Settings are passed on as they come.
# pyright: reportArgumentType=false

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import (
    Document,
    ImageNode,
    MediaResource,
    MetadataMode,
    Node,
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    RelatedNodeInfo,
    TextNode,
)

from llama_doubles import EXACT, FixedRetriever, found
from llama_index_muntin import AssembledRetriever, BudgetPostprocessor
from llama_index_muntin.testing import StrictLLM
from muntin import ContextConfig, ContextWindowExceeded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conftest import EntryPoint
    from muntin.report import AssemblyReport

pytestmark = pytest.mark.usefixtures("own_loop")

PARTIES = ("postprocessor", "retriever")
PROSE = "Every rule of the depot is written here. "
RULES = " ".join(f"Rule {n} of depot {n % 7} is written here." for n in range(60))


def chosen(
    entry_point: EntryPoint,
    party: str,
    nodes: Sequence[NodeWithScore],
    budget: int,
    *,
    shorten: bool = False,
) -> tuple[list[NodeWithScore], AssemblyReport]:
    """Let one of the two choose, and hand back the nodes and the report."""
    if party == "postprocessor":
        owner: Any = BudgetPostprocessor(budget=budget, shorten=shorten, token_counter=EXACT)
        out: Any = entry_point.call(owner, "postprocess_nodes", list(nodes), query_str="?")
    else:
        owner = AssembledRetriever(
            {"rag": FixedRetriever(list(nodes))},
            budget=budget,
            counter=EXACT,
            config=ContextConfig(shorten=shorten),
        )
        out = entry_point.call(owner, "retrieve", "?")
    return out, owner.last_report


def sent(nodes: Sequence[NodeWithScore]) -> str:
    """Join nodes as the default synthesizer does."""
    texts = [one.node.get_content(metadata_mode=MetadataMode.LLM).strip() for one in nodes]
    return "\n\n".join(text for text in texts if text)


def scored(*nodes: Any) -> list[NodeWithScore]:
    """Give nodes scores that fall."""
    return [NodeWithScore(node=node, score=0.9 - at / 100) for at, node in enumerate(nodes)]


TEMPLATES = {
    "the default": "{metadata_str}\n\n{content}",
    "text first": "{content}\n\n{metadata_str}",
    "text inside": "<doc>{content}</doc>\nmeta: {metadata_str}",
    "text twice": "{content}\n{metadata_str}\n{content}",
}


# --- the budget ----------------------------------------------------------------------------------


@pytest.mark.parametrize("party", PARTIES)
@pytest.mark.parametrize("template", sorted(TEMPLATES))
@pytest.mark.parametrize(
    "text", [RULES, RULES.replace(". ", ".\n"), "  \n" + RULES], ids=["prose", "lines", "blank"]
)
def test_a_shortened_node_is_handed_out_shortened(
    entry_point: EntryPoint, party: str, template: str, text: str
) -> None:
    """The report said shortened, and the node that came out was whole: eleven times the budget."""
    node = TextNode(text=text, metadata={"file": "a.pdf"}, text_template=TEMPLATES[template])

    out, report = chosen(entry_point, party, scored(node), 100, shorten=True)

    assert 40 < EXACT(sent(out)) == report.used <= 100
    assert [one.kind for one in report.decisions] == ["shortened"]
    assert "a.pdf" in sent(out)


OVERSIZED = {
    "one line": TextNode(text="word " * 5000),
    "Chinese": TextNode(text="规则" * 3000),
    "base64": TextNode(text="QUJD0x" * 5000),
    "a first sentence over the budget": TextNode(text="word " * 800 + "end. Short."),
    "prose": TextNode(text=PROSE * 400),
    "metadata": TextNode(text="The answer is 42.", metadata={"toc": "entry " * 400, "page": 7}),
    "metadata and text": TextNode(text=PROSE * 400, metadata={"toc": "entry " * 280, "page": 7}),
    "metadata alone": TextNode(metadata={"toc": "entry " * 800}),
}


@pytest.mark.parametrize("party", PARTIES)
@pytest.mark.parametrize("kind", sorted(OVERSIZED))
def test_where_not_even_the_best_node_fits_it_is_shortened(
    entry_point: EntryPoint, party: str, kind: str
) -> None:
    """An engine that is left without any node says "Empty Response" and asks no model."""
    out, report = chosen(entry_point, party, scored(OVERSIZED[kind]), 300)

    assert 5 < EXACT(sent(out)) == report.used <= 300
    if kind.startswith("metadata and") or kind == "metadata":
        assert sent(out).startswith("page: 7\n\n")
        assert "metadata" in " ".join(report.notes)


@pytest.mark.parametrize("party", PARTIES)
@pytest.mark.parametrize("budget", [1, 2, 3, 5, 10, 25])
def test_a_tiny_budget_gives_a_tiny_node(entry_point: EntryPoint, party: str, budget: int) -> None:
    """However little room is left, it is used or refused, and never overrun."""
    out, report = chosen(entry_point, party, found(PROSE * 9), budget)

    assert 0 < EXACT(sent(out)) == report.used <= budget


def test_a_question_that_leaves_no_room_is_refused_by_an_error_with_numbers(
    entry_point: EntryPoint,
) -> None:
    """It came back as "Empty Response", as if nothing had been found."""
    llm = StrictLLM(["x"], window=2000)
    engine = RetrieverQueryEngine.from_args(
        FixedRetriever(found(PROSE)),
        llm=llm,
        node_postprocessors=[BudgetPostprocessor(llm=llm)],
    )
    with pytest.raises(ContextWindowExceeded) as refused:
        entry_point.call(engine, "query", "why " * 1500)

    assert refused.value.needed > refused.value.available == 0
    assert llm.calls == 0


# --- media ---------------------------------------------------------------------------------------


def _picture(at: int, **more: Any) -> MediaResource:
    return MediaResource(url=f"http://x/{at}.png", **more)


MEDIA = {
    "links": lambda at: ImageNode(image_url=f"http://x/{at}.png", id_=f"i{at}"),
    "bytes": lambda at: ImageNode(image=f"QUJDRE{at}", id_=f"i{at}"),
    "one caption": lambda at: ImageNode(
        text="The front of the house in spring", image_path=f"/x/{at}.png", id_=f"i{at}"
    ),
    "resources": lambda at: Node(image_resource=_picture(at), id_=f"i{at}"),
    "pictures in documents": lambda at: Document(
        text=PROSE, image_resource=_picture(at), id_=f"i{at}"
    ),
}


@pytest.mark.parametrize("party", PARTIES)
@pytest.mark.parametrize("kind", sorted(MEDIA))
def test_different_pictures_are_no_copies_and_have_their_price(
    entry_point: EntryPoint, party: str, kind: str
) -> None:
    """Three pictures without text were one picture twice repeated, and cost a token."""
    nodes = scored(*(MEDIA[kind](at) for at in range(3)), TextNode(text="hello world", id_="t"))

    out, report = chosen(entry_point, party, nodes, 3000)

    assert sorted(one.node.node_id for one in out) == ["i0", "i1", "i2", "t"]
    assert report.used >= 3 * 765
    assert chosen(entry_point, party, nodes, 900)[1].used <= 900


@pytest.mark.parametrize("party", PARTIES)
def test_the_same_picture_under_two_ids_is_handed_out_once(
    entry_point: EntryPoint, party: str
) -> None:
    """A picture is compared by what it is, not by where it was found."""
    nodes = scored(*(ImageNode(image_url="http://x/0.png", id_=name) for name in "ab"))

    out, report = chosen(entry_point, party, nodes, 3000)

    assert [one.node.node_id for one in out] == ["a"]
    assert report.decisions[1].reason == "exact_duplicate"


@pytest.mark.parametrize("party", PARTIES)
def test_nodes_that_are_metadata_alone_are_told_apart_by_them(
    entry_point: EntryPoint, party: str
) -> None:
    """Their texts are all the same: there are none."""
    nodes = scored(*(TextNode(metadata={"title": title}) for title in ("Tea", "Coffee", "Tea")))

    out, report = chosen(entry_point, party, nodes, 300)

    assert sent(out) == "title: Tea\n\ntitle: Coffee"
    assert report.decisions[2].reason == "exact_duplicate"


# --- copies --------------------------------------------------------------------------------------


def test_every_node_that_goes_out_can_be_written(entry_point: EntryPoint) -> None:
    """One lone surrogate, in a text or in its metadata, makes the whole request unwritable."""
    broken = TextNode(text="bad \ud800 text", metadata={"ti\udc00tle": "half \ud83d", "n": [1]})
    retriever = AssembledRetriever({"a": lambda query: ["more \udfff"]}, budget=99)
    nodes: Any = entry_point.call(retriever, "retrieve", "?")
    for party in PARTIES:
        nodes += chosen(entry_point, party, scored(broken), 300)[0]

    for one in nodes:
        one.node.get_content(metadata_mode=MetadataMode.ALL).encode("utf-8")
        one.node.model_dump_json()
    assert broken.text == "bad \ud800 text"


@pytest.mark.parametrize("party", PARTIES)
def test_what_is_done_to_a_node_that_was_handed_out_reaches_no_other(
    entry_point: EntryPoint, party: str
) -> None:
    """Its parts were shared: whoever rewrote the copy rewrote the caller's document."""
    document = Document(
        text="short",
        metadata={"tags": ["a"]},
        embedding=[1.0],
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id="s", metadata={"k": 1})},
    )
    nodes = scored(document)
    before = copy.deepcopy(nodes)

    (one,), _ = chosen(entry_point, party, nodes, 300)
    own: Any = one.node
    own.text_resource.text = "rewritten"
    own.relationships[NodeRelationship.SOURCE].metadata["k"] = 2
    own.metadata["tags"].append("b")
    own.embedding[0] = 2.0

    assert nodes == before


@pytest.mark.parametrize("party", PARTIES)
@pytest.mark.parametrize("text", [PROSE * 60, "word " * 900])
def test_a_shortened_node_says_where_it_ends(
    entry_point: EntryPoint, party: str, text: str
) -> None:
    """Whoever highlights its place in the document would mark what the model never saw."""
    node = TextNode(text=text, start_char_idx=50, end_char_idx=50 + len(text))

    (one,), _ = chosen(entry_point, party, scored(node), 100)

    own: Any = one.node
    kept = own.text.removesuffix("…")
    assert text.startswith(kept)
    assert (own.start_char_idx, own.end_char_idx) == (50, 50 + len(kept))


# --- the bundle ----------------------------------------------------------------------------------


def test_a_transformed_question_reaches_every_retriever_whole(entry_point: EntryPoint) -> None:
    """What is to be embedded in its place was dropped, so a transform paid a model for nothing."""
    bundle = QueryBundle(
        "q?", custom_embedding_strs=["a passage", "q?"], embedding=[1.0], image_path="p.png"
    )
    before = copy.deepcopy(bundle)
    inner = [FixedRetriever(found("x")), FixedRetriever(found("y"))]
    heard: list[str] = []

    def search(query: str) -> list[str]:
        heard.append(query)
        return []

    nested = AssembledRetriever({"rag": inner[1]}, budget=99)
    retriever = AssembledRetriever({"rag": inner[0], "memory": nested, "tool": search},
                                   budget=300)  # fmt: skip
    entry_point.call(retriever, "retrieve", bundle)

    asked: list[Any] = [one.asked[0] for one in inner]
    assert asked == [before, before]
    assert heard == ["q?"]
    assert all(one is not bundle for one in asked)
    asked[0].embedding.append(2.0)
    assert bundle == before


@pytest.mark.parametrize("party", PARTIES)
def test_what_a_transform_wants_embedded_votes_in_place_of_the_question(
    entry_point: EntryPoint, party: str
) -> None:
    """The hypothetical answer is nearer to the passage than the question is."""

    class Model:
        def get_agg_embedding_from_queries(self, queries: list[str]) -> list[float]:
            return [0.0, 1.0] if queries == ["a passage"] else [1.0, 0.0]

        async def aget_agg_embedding_from_queries(self, queries: list[str]) -> list[float]:
            return self.get_agg_embedding_from_queries(queries)

    nodes = found("first", "second", scores=[0.6, 0.5])
    for one, vector in zip(nodes, ([1.0, 0.0], [0.0, 1.0]), strict=True):
        one.node.embedding = vector
    bundle = QueryBundle("q?", custom_embedding_strs=["a passage"])
    if party == "postprocessor":
        owner: Any = BudgetPostprocessor(budget=99, embed_model=Model())
        out: Any = entry_point.call(owner, "postprocess_nodes", nodes, query_bundle=bundle)
    else:
        owner = AssembledRetriever({"rag": FixedRetriever(nodes)}, budget=99, embed_model=Model())
        out = entry_point.call(owner, "retrieve", bundle)

    assert out[0].node.get_content() == "second"
