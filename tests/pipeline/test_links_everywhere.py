"""Names and links decide at every entry point that gives passages, and can be switched off there.

The passage with the answer shares no word with the question: it is about a person whom another
passage names. An entry point that goes by scores alone leaves it out.
"""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("langchain_core")
pytest.importorskip("llama_index.core")

from langchain_core.documents import Document
from llama_index.core.schema import NodeWithScore, TextNode
from typer.testing import CliRunner

import langchain_muntin
import llama_index_muntin
from muntin import CallableSource, Candidate, ContextBuilder, ContextConfig, count_tokens
from muntin.adapting import PassagePolicy
from muntin.cli.app import app
from muntin.passages import gather

if TYPE_CHECKING:
    from collections.abc import Callable

    from muntin.report import AssemblyReport

    Answer = tuple[str, AssemblyReport]

pytestmark = pytest.mark.usefixtures("own_loop")

NOVEL = "Winter Harbour is a novel by Ada Berg about two sisters."
AUTHOR = "Ada Berg (born 1961) grew up in Lund and lives there today."
FOUND = [
    Candidate(NOVEL, 0.9, id="novel"),
    Candidate("A harbour is icebound in winter when the sea freezes.", 0.7, id="ice"),
    Candidate("A novel is a long work of prose; in winter more are sold.", 0.6, id="prose"),
    Candidate(AUTHOR, 0.2, id="author"),
]
ASKED = "Where does the author of Winter Harbour live?"
BUDGET = 34
"""Tokens for two of the passages."""
OFF = ContextConfig(source_ratios={"rag": 1.0}, link_weight=0.0, coverage_weight=0.0)


def _documents(question: str = "") -> list[Document]:
    return [
        Document(one.content, id=one.id, metadata={"relevance_score": one.score}) for one in FOUND
    ]


def _builder(config: ContextConfig | None) -> Answer:
    builder = ContextBuilder(config or ContextConfig(), counter=count_tokens)
    context = builder.assemble(
        ASKED,
        sources=[CallableSource("rag", lambda query: FOUND)],
        budget=BUDGET + count_tokens(f"[Knowledge]\n\n\n[Current question]\n{ASKED}"),
    )
    return context.text, context.report


def _policy(config: ContextConfig | None) -> Answer:
    policy = PassagePolicy(budget=BUDGET, counter=count_tokens, config=config)
    gathered = gather([CallableSource("rag", lambda query: FOUND)], ASKED)
    chosen = policy.choose(gathered, ASKED)
    return "\n".join(one.content for one in chosen.candidates), chosen.report


def _assembler(config: ContextConfig | None) -> Answer:
    assembler = langchain_muntin.ContextAssembler(
        budget=BUDGET + 28,
        sources={"rag": _documents},
        config=config,
        counter=count_tokens,
    )
    prompt = assembler.invoke(ASKED)
    return prompt.to_string(), prompt.report


def _langchain(config: ContextConfig | None) -> Answer:
    retriever = langchain_muntin.AssembledRetriever(
        sources={"rag": _documents}, budget=BUDGET, config=config, counter=count_tokens
    )
    found = retriever.invoke(ASKED)
    assert retriever.last_report is not None
    return "\n".join(one.page_content for one in found), retriever.last_report


def _llama_index(config: ContextConfig | None) -> Answer:
    retriever = llama_index_muntin.AssembledRetriever(
        {"rag": lambda query: FOUND}, budget=BUDGET, config=config, counter=count_tokens
    )
    found = retriever.retrieve(ASKED)
    assert retriever.last_report is not None
    return "\n".join(node.text for node in found), retriever.last_report


def _compressor(config: ContextConfig | None) -> Answer:
    compressor = langchain_muntin.BudgetCompressor(
        budget=BUDGET, counter=count_tokens, mmr_lambda=1.0
    )
    found = compressor.compress_documents(_documents(), ASKED)
    assert compressor.last_report is not None
    return "\n".join(one.page_content for one in found), compressor.last_report


def _postprocessor(config: ContextConfig | None) -> Answer:
    processor = llama_index_muntin.BudgetPostprocessor(budget=BUDGET, counter=count_tokens)
    nodes = [
        NodeWithScore(node=TextNode(text=one.content, id_=one.id), score=one.score or 0.0)
        for one in FOUND
    ]
    found = processor.postprocess_nodes(nodes, query_str=ASKED)
    assert processor.last_report is not None
    return "\n".join(node.text for node in found), processor.last_report


ENTRY_POINTS: dict[str, Callable[[ContextConfig | None], Answer]] = {
    "ContextBuilder": _builder,
    "PassagePolicy": _policy,
    "ContextAssembler": _assembler,
    "LangChain AssembledRetriever": _langchain,
    "LlamaIndex AssembledRetriever": _llama_index,
    "BudgetCompressor": _compressor,
    "BudgetPostprocessor": _postprocessor,
}
CONFIGURED = [name for name in ENTRY_POINTS if not name.startswith("Budget")]


@pytest.mark.parametrize("entry", ENTRY_POINTS)
def test_the_second_passage_of_the_answer_is_given(entry: str) -> None:
    """Half of a two-step answer is no answer."""
    text, report = ENTRY_POINTS[entry](None)
    reasons = {one.id: (one.reason, one.nearest) for one in report.decisions}

    assert NOVEL in text
    assert AUTHOR in text
    assert reasons["novel"] == ("named_in_question", None)
    assert reasons["author"] == ("named_in_chosen", "novel")


@pytest.mark.parametrize("entry", CONFIGURED)
def test_links_can_be_switched_off(entry: str) -> None:
    """A ranking that a reranker has made must be usable as it is."""
    text, report = ENTRY_POINTS[entry](OFF)

    assert NOVEL in text
    assert AUTHOR not in text
    assert {one.reason for one in report.decisions if one.kind == "kept"} == {"placed"}


def test_the_command_line_follows_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The path in front of each passage hid the names, so the second half was left out."""
    texts = {
        "n1": NOVEL,
        "i2": "A harbour is icebound in winter when the sea freezes.",
        "w3": "A novel is a long work of prose; in winter more are sold.",
        "p4": "Ada Berg (born 1961) grew up in Lund, where she and her sisters live.",
        "x5": "A harbour in winter is no place to live, says the pilot.",
    }
    folder = tmp_path / "d"
    folder.mkdir()
    monkeypatch.chdir(tmp_path)
    for name, text in texts.items():
        (folder / f"{name}.md").write_text(text)

    ended = CliRunner().invoke(
        app,
        ["assemble", "-q", ASKED, "--docs", "d", "--window", "100", "--reserve", "0",
         "--json"],
    )  # fmt: skip
    decided = {Path(one["id"]).name: one for one in json.loads(ended.stdout)["report"]["decisions"]}

    assert decided["n1.md:1"]["reason"] == "named_in_question"
    assert decided["p4.md:1"]["reason"] == "named_in_chosen"
    assert decided["p4.md:1"]["nearest"] == decided["n1.md:1"]["id"]
    assert decided["i2.md:1"]["kind"] == "dropped"
