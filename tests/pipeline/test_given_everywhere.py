"""What stands in the conversation is not given again, at every entry point that gives passages.

A chain that retrieves on every turn sent the same passages again and again, in place of new ones.
"""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("langchain_core")
pytest.importorskip("llama_index.core")

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from llama_index.core.llms import ChatMessage
from llama_index.core.schema import NodeWithScore, TextNode
from typer.testing import CliRunner

import langchain_muntin
import llama_index_muntin
from muntin import (
    CallableSource,
    Candidate,
    ConfigurationError,
    ContextBuilder,
    ContextConfig,
    count_tokens,
)
from muntin.adapting import PassagePolicy
from muntin.cli.app import app
from muntin.passages import Gathered, gather

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Result = tuple[str, Any]

pytestmark = pytest.mark.usefixtures("own_loop")

OLD = "Parcels to Lund travel on Mondays, and the depot there opens at seven."
NEW = "Parcels to Oslo travel on Fridays, and nobody has to sign for them."
ASKED = "When do parcels travel?"
FOUND = [Candidate(OLD, 0.9), Candidate(NEW, 0.8)]
MESSAGES = [
    {"role": "user", "content": "What about Lund?"},
    {"role": "assistant", "content": f"The handbook says: {OLD}"},
]


def _source() -> CallableSource:
    return CallableSource("rag", lambda query: FOUND)


def _builder() -> ContextBuilder:
    return ContextBuilder(ContextConfig(max_tokens=2000), counter=count_tokens)


def _documents() -> list[Document]:
    return [Document(OLD), Document(NEW)]


def _nodes() -> list[NodeWithScore]:
    return [NodeWithScore(node=TextNode(text=one.content), score=one.score or 0.0) for one in FOUND]


def _retrieved(retriever: Any, **more: Any) -> Result:
    found = retriever.invoke(ASKED, **more)
    return "\n".join(one.page_content for one in found), retriever.last_report


def _langchain(**fields: Any) -> langchain_muntin.AssembledRetriever:
    return langchain_muntin.AssembledRetriever(
        sources={"rag": lambda question: _documents()}, budget=500, **fields
    )


def _assembler(given: Any) -> Result:
    assembler = langchain_muntin.ContextAssembler(
        window=4000,
        sources={"rag": lambda question: _documents()},
        given=given,
        counter=count_tokens,
    )
    prompt = assembler.invoke({"question": ASKED})
    return prompt.to_string(), prompt.report


def _llama_retriever(given: Any) -> Result:
    retriever = llama_index_muntin.AssembledRetriever(
        {"rag": lambda query: FOUND}, budget=500, given=given
    )
    nodes = retriever.retrieve(ASKED)
    return "\n".join(node.text for node in nodes), retriever.last_report


def _postprocessor(given: Any) -> Result:
    processor = llama_index_muntin.BudgetPostprocessor(budget=500, given=given)
    nodes = processor.postprocess_nodes(_nodes(), query_str=ASKED)
    return "\n".join(node.text for node in nodes), processor.last_report


def _compressor(given: Any) -> Result:
    compressor = langchain_muntin.BudgetCompressor(budget=500, given=given)
    found = compressor.compress_documents(_documents(), ASKED)
    return "\n".join(one.page_content for one in found), compressor.last_report


def _policy(given: Any) -> Result:
    policy = PassagePolicy(budget=500, counter=count_tokens)
    chosen = policy.choose(gather([_source()], ASKED), ASKED, given=given)
    return "\n".join(one.content for one in chosen.candidates), chosen.report


def _assembled(context: Any) -> Result:
    return context.text.removesuffix(ASKED), context.report


ENTRY_POINTS: dict[str, Callable[[Any], Result]] = {
    "ContextBuilder.assemble": lambda given: _assembled(
        _builder().assemble(ASKED, sources=[_source()], given=given)
    ),
    "ContextBuilder.aassemble": lambda given: _assembled(
        asyncio.run(_builder().aassemble(ASKED, sources=[_source()], given=given))
    ),
    "ContextBuilder.assemble_block": lambda given: _assembled(
        _builder().assemble_block(
            ASKED, Gathered(candidates={"rag": tuple(FOUND)}), budget=500, given=given
        )
    ),
    "ContextBuilder.build": lambda given: (
        _builder().build(ASKED, sources=[_source()], given=given), None
    ),
    "ContextBuilder.abuild": lambda given: (
        asyncio.run(_builder().abuild(ASKED, sources=[_source()], given=given)), None
    ),
    "ContextBuilder.build_block": lambda given: (
        _builder().build_block(ASKED, sources=[_source()], given=given), None
    ),
    "ContextBuilder.abuild_block": lambda given: (
        asyncio.run(_builder().abuild_block(ASKED, sources=[_source()], given=given)), None
    ),
    "PassagePolicy": _policy,
    "ContextAssembler": _assembler,
    "LangChain AssembledRetriever": lambda given: _retrieved(_langchain(given=given)),
    "LangChain AssembledRetriever.invoke": lambda given: _retrieved(_langchain(), given=given),
    "BudgetCompressor": _compressor,
    "LlamaIndex AssembledRetriever": _llama_retriever,
    "BudgetPostprocessor": _postprocessor,
}  # fmt: skip

GIVEN: dict[str, Any] = {
    "messages": MESSAGES,
    "LangChain messages": [HumanMessage("Lund?"), ToolMessage(OLD, tool_call_id="1")],
    "LlamaIndex messages": [ChatMessage(role="assistant", content=OLD)],
    "documents": [Document(OLD)],
    "nodes": [NodeWithScore(node=TextNode(text=OLD), score=0.5)],
    "a function": lambda: MESSAGES,
    "a text": OLD,
}


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("entry", ENTRY_POINTS)
def test_a_passage_that_the_model_has_is_left_out(entry: str, given: str) -> None:
    """The tokens of a repeated passage are taken from one that would be new."""
    text, report = ENTRY_POINTS[entry](GIVEN[given])

    assert NEW in text
    assert OLD not in text
    assert report is None or report.decisions[0].reason == "already_given"


@pytest.mark.parametrize("entry", ENTRY_POINTS)
def test_without_it_every_passage_is_given(entry: str) -> None:
    """An entry point that always leaves the passage out would pass the test above."""
    text, _ = ENTRY_POINTS[entry](())

    assert OLD in text
    assert NEW in text


@pytest.mark.parametrize("wrong", [5, b"bytes", [None], [3.5], object(), lambda: 7])
@pytest.mark.parametrize("entry", ENTRY_POINTS)
def test_what_cannot_be_read_is_refused(entry: str, wrong: Any) -> None:
    """A conversation that is silently ignored costs its tokens twice."""
    with pytest.raises(ConfigurationError, match="given must be"):
        ENTRY_POINTS[entry](wrong)


LASTING = [name for name in ENTRY_POINTS if name.startswith(("Context", "L", "B"))
           and "Builder" not in name and "invoke" not in name]  # fmt: skip


@pytest.mark.parametrize("entry", LASTING)
def test_an_iterator_is_refused_as_a_setting(entry: str) -> None:
    """It would be read at the first request and be empty at the second."""
    with pytest.raises(ConfigurationError, match="iterator"):
        ENTRY_POINTS[entry](iter(MESSAGES))


def _talk(*messages: Any, window: int = 4000, **fields: Any) -> Any:
    assembler = langchain_muntin.ContextAssembler(
        window=window,
        reserve=0,
        sources={"rag": lambda question: _documents()},
        counter=count_tokens,
        **fields,
    )
    return assembler.invoke({"history": list(messages), "question": ASKED})


@pytest.mark.parametrize("kind", ["answer", "result", "system"])
def test_an_assembler_reads_the_conversation_by_itself(kind: str) -> None:
    """A chain with memory should not have to be told what it sends anyway."""
    call = AIMessage("", tool_calls=[{"id": "1", "name": "search", "args": {}}])
    said: dict[str, list[Any]] = {
        "answer": [HumanMessage("Lund?"), AIMessage(OLD)],
        "result": [HumanMessage("Lund?"), call, ToolMessage(OLD, tool_call_id="1"), AIMessage("k")],
        "system": [SystemMessage(f"Know this: {OLD}")],
    }
    prompt = _talk(*said[kind])

    assert prompt.to_string().count(OLD) == 1
    assert NEW in prompt.to_string()
    assert prompt.report.decisions[0].reason == "already_given"


def test_a_passage_pasted_into_the_question_is_still_given() -> None:
    """A user who asks whether a text is right needs the source of it."""
    assembler = langchain_muntin.ContextAssembler(
        window=4000, sources={"rag": lambda question: _documents()}, counter=count_tokens
    )

    assert assembler.invoke(f"Is this right: {OLD}").to_string().count(OLD) == 2


def test_an_assembler_can_be_told_to_give_passages_again() -> None:
    """A chain that cites passages by number needs them in the block of this request."""
    assert _talk(HumanMessage("Lund?"), AIMessage(OLD), given=()).to_string().count(OLD) == 2


_FILLER = [
    HumanMessage(f"Question {n} about the weather of that day in the north")
    if n % 2 == 0
    else AIMessage(f"Answer {n}: it rained, and the wind came from the west all day long")
    for n in range(24)
]


@pytest.mark.parametrize("window", range(60, 700, 40))
def test_a_passage_is_never_lost_with_the_message_that_held_it(window: int) -> None:
    """The old message is cut to make space, so the passage has to be given after all."""
    prompt = _talk(HumanMessage("Lund?"), AIMessage(OLD), *_FILLER, window=window)
    text = prompt.to_string()

    decision = prompt.report.decisions[0]
    assert decision.reason != "already_given" or OLD in text
    assert count_tokens(text) <= window


@pytest.mark.parametrize("entry", ["LlamaIndex AssembledRetriever", "BudgetPostprocessor"])
def test_an_engine_gets_a_node_though_all_are_known(entry: str) -> None:
    """LlamaIndex answers "Empty Response" without asking the model when it gets no node."""
    text, report = ENTRY_POINTS[entry]([OLD, NEW])

    assert text == OLD
    assert any("every node is in the conversation already" in note for note in report.notes)


def test_a_retriever_of_known_documents_returns_none_without_a_warning() -> None:
    """Nothing is missing, so nothing is to be warned about."""
    assert _retrieved(_langchain(given=[OLD, NEW]))[0] == ""


@pytest.mark.parametrize("form", ["conversation", "text"])
def test_the_command_line_leaves_out_what_a_file_holds(form: str, tmp_path: Path) -> None:
    """A user who pipes a context into a running conversation has the first passages in it."""
    for name, text in (("lund.md", OLD), ("oslo.md", NEW)):
        (tmp_path / name).write_text(text)
    file = tmp_path / ("chat.json" if form == "conversation" else "context.txt")
    file.write_text(json.dumps(MESSAGES) if form == "conversation" else f"Before: {OLD}")
    docs = [part for name in ("lund.md", "oslo.md") for part in ("--docs", str(tmp_path / name))]
    command = ["assemble", "-q", ASKED, *docs, "--json"]

    ended = CliRunner().invoke(app, [*command, "--given", str(file)])
    before = json.loads(CliRunner().invoke(app, command).stdout)
    after = json.loads(ended.stdout)

    assert OLD in before["text"]
    assert NEW in before["text"]
    assert OLD not in after["text"]
    assert NEW in after["text"]
    assert "already_given" in {one["reason"] for one in after["report"]["decisions"]}
