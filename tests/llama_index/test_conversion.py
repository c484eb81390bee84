"""Nodes and messages go to the core and back without a loss, and never the caller's own objects."""

# Settings are passed on as they come.
# pyright: reportArgumentType=false

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core.base.llms import types
from llama_index.core.base.llms.types import ChatMessage, MessageRole, TextBlock
from llama_index.core.schema import IndexNode, MetadataMode, NodeWithScore, TextNode

from llama_doubles import calling, found, result, said
from llama_index_muntin import candidate_of, from_muntin, node_of, to_muntin
from llama_index_muntin._conversion import LiteralText, copy_of_message
from llama_index_muntin._nodes import copy_of_node
from muntin import Candidate, Message
from muntin.messages.message import ToolCall
from muntin.messages.shapes import view

pytestmark = pytest.mark.usefixtures("own_loop")

MESSAGES: dict[str, Any] = {
    "text": lambda: said("user", "hi"),
    "empty": lambda: ChatMessage(role=MessageRole.ASSISTANT, blocks=[]),
    "call in a block": lambda: calling("c1", "look", part=1),
    "call beside": lambda: calling("c1", "look", form="openai", part=1),
    "result": lambda: result("c1", "a door"),
    "image": lambda: ChatMessage(
        role=MessageRole.USER,
        blocks=[TextBlock(text="see"), types.ImageBlock(image=b"\x89PNG", detail="low")],
    ),
    "thinking": lambda: ChatMessage(
        role=MessageRole.ASSISTANT,
        blocks=[
            types.ThinkingBlock(content="hm", additional_information={"signature": "s"}),
            TextBlock(text="yes"),
        ],
    ),
    "document": lambda: ChatMessage(
        role=MessageRole.USER, blocks=[types.DocumentBlock(data=b"%PDF-1.4", title="a.pdf")]
    ),
    "audio": lambda: ChatMessage(
        role=MessageRole.USER, blocks=[types.AudioBlock(audio=b"RIFF0000", format="wav")]
    ),
    "citation": lambda: ChatMessage(
        role=MessageRole.ASSISTANT,
        blocks=[
            types.CitationBlock(
                title="t", source="s", cited_content="c", additional_location_info={"page": 1}
            )
        ],
    ),
    "kwargs": lambda: said("assistant", "x", anything={"deep": [1]}),
}


if not hasattr(types, "ThinkingBlock"):  # older cores
    del MESSAGES["thinking"]


@pytest.mark.parametrize("kind", sorted(MESSAGES))
def test_a_message_comes_back_as_it_was(kind: str) -> None:
    """What only LlamaIndex knows about a message must survive the trip through the core."""
    message = MESSAGES[kind]()
    before = copy.deepcopy(message)

    back = from_muntin(to_muntin(message))

    assert back == before == message
    assert back is not message


def test_what_was_changed_in_between_stays_changed() -> None:
    """A converter that restores the original would undo what the core did."""
    neutral = replace(to_muntin(said("user", "long story", mark=1)), content="short")

    back = from_muntin(neutral)

    assert (back.content, back.additional_kwargs) == ("short", {"mark": 1})


def test_a_message_from_elsewhere_becomes_one() -> None:
    """A conversation may start in another framework."""
    call = from_muntin(Message("", "assistant", tool_calls=[ToolCall("c1", "look", '{"a": 1}')]))
    answer = from_muntin(Message("a door", "tool", tool_call_id="c1", name="look"))

    assert [(one.id, one.name, one.parsed) for one in view(call).calls] == [
        ("c1", "look", {"a": 1})
    ]
    assert answer.additional_kwargs == {"name": "look", "tool_call_id": "c1"}


def test_a_copy_of_a_message_shares_nothing_that_can_change() -> None:
    """Agents rewrite the text of the last message they get; the stored one must not follow."""
    message = said("user", "hello", deep={"list": [1]})
    copied = copy_of_message(message)
    block = copied.blocks[0]
    assert isinstance(block, TextBlock)
    block.text = "rewritten"
    copied.additional_kwargs["deep"]["list"].append(2)

    assert message == said("user", "hello", deep={"list": [1]})


def test_a_text_with_braces_is_copied_as_one_that_is_no_template() -> None:
    """The chat engines fill in `{context_str}` wherever it stands in the history."""
    copied = copy_of_message(said("user", "what is {context_str}?"), literal=True)

    assert isinstance(copied.blocks[0], LiteralText)
    assert copied == said("user", "what is {context_str}?")
    assert said("user", "what is {context_str}?") == copied
    assert ChatMessage.model_validate(copied.model_dump()) == copied


def test_a_node_becomes_a_candidate_with_what_a_model_would_read() -> None:
    """Synthesizers send the metadata along, so it has to be counted."""
    node = TextNode(text="80 per day", id_="r1", metadata={"page": 3}, embedding=[1.0, 0.0])
    candidate = candidate_of(NodeWithScore(node=node, score=0.5))

    assert candidate.content == node.get_content(MetadataMode.LLM) == "page: 3\n\n80 per day"
    assert (candidate.id, candidate.score, candidate.embedding) == ("r1", 0.5, [1.0, 0.0])


@pytest.mark.parametrize("score", [None, float("nan"), float("inf")])
def test_a_score_that_says_nothing_is_unknown(score: float | None) -> None:
    """Stores hand out None and NaN; neither is a reason to crash or to drop a node."""
    assert candidate_of(NodeWithScore(node=TextNode(text="x"), score=score)).score is None


def test_a_candidate_comes_back_as_a_copy_of_its_node() -> None:
    """Postprocessors that write into the caller's nodes change what the next query finds."""
    original = NodeWithScore(
        node=TextNode(text="80 per day", metadata={"a": [1]}, embedding=[1.0]), score=0.5
    )
    before = copy.deepcopy(original)

    back = node_of(candidate_of(original))
    back.node.metadata["a"].append(2)
    assert back.node.embedding is not None
    back.node.embedding[0] = 9.0

    assert original == before
    assert (back.score, back.node.node_id) == (0.5, original.node.node_id)


def test_a_shortened_candidate_comes_back_as_a_shorter_node_without_the_old_vector() -> None:
    """The vector of a text that is no longer there misleads whoever ranks again."""
    original = NodeWithScore(
        node=TextNode(text="One. Two.", metadata={"page": 3}, embedding=[1.0]), score=0.5
    )
    candidate = candidate_of(original)

    back = node_of(replace(candidate, content="page: 3\n\nOne."))

    assert back.node.get_content() == "One."
    assert back.node.embedding is None
    assert back.node.metadata == {"page": 3}


@pytest.mark.parametrize("text", ["One. Two. Three.", " \n led by space.\n", "\0 and {braces}", ""])
@pytest.mark.parametrize(
    "template",
    ["{metadata_str}\n\n{content}", "{content}\n{metadata_str}", "<d>{content}</d> {metadata_str}"],
)
@pytest.mark.parametrize("metadata", [{}, {"page": 3}, {"x": "\0"}])
@pytest.mark.parametrize("mode", [MetadataMode.NONE, MetadataMode.LLM, MetadataMode.EMBED])
def test_a_node_reads_as_the_candidate_does_however_that_was_cut(
    text: str, template: str, metadata: dict[str, Any], mode: MetadataMode
) -> None:
    """What was measured was the candidate: a node that says more overruns the budget."""
    node = TextNode(text=text, metadata=metadata, text_template=template)
    candidate = candidate_of(NodeWithScore(node=node), mode=mode)
    for end in range(len(candidate.content) + 1):
        cut = candidate.content[:end]
        back = node_of(replace(candidate, content=cut))
        assert back.node.get_content(metadata_mode=mode).strip() == cut.strip()


def test_a_candidate_that_never_was_a_node_becomes_one() -> None:
    """Other sources take part in a retriever, too."""
    node = node_of(Candidate("Ada is a vegetarian.", 0.4, source="memory", id="m1"))

    assert (node.node.node_id, node.score, node.text) == ("m1", 0.4, "Ada is a vegetarian.")
    assert node.node.get_content(MetadataMode.LLM) == "Ada is a vegetarian."


def test_what_an_index_node_leads_to_is_not_copied() -> None:
    """It may be a whole query engine with its models."""
    target = object()
    node = IndexNode(text="go there", index_id="x", obj=target)
    copied = copy_of_node(NodeWithScore(node=node))

    assert isinstance(copied.node, IndexNode)
    assert copied.node.obj is target


def test_the_scores_of_several_nodes_stay_theirs() -> None:
    """A shared template node must not carry one score for all."""
    nodes = found("a", "b", scores=[0.2, None])

    assert [node_of(candidate_of(one)).score for one in nodes] == [0.2, None]
