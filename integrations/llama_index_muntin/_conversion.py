"""Translate between LlamaIndex's values and the core's: the one place that knows both.

Nothing that is given is changed, and what is handed out is a copy: a caller who rewrites it (agents
rewrite the text of the last message) does not reach what is stored. Scores and embeddings come
through; only a node whose text was shortened loses its embedding, because that was another text's.
"""

from __future__ import annotations

import copy
import json
import math
from typing import TYPE_CHECKING, Any, cast

from llama_index.core.base.llms import types
from llama_index.core.base.llms.types import ChatMessage, MessageRole, TextBlock
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, TextNode

from llama_index_muntin._shapes import SHAPE, answered_call
from muntin.candidates import Candidate
from muntin.errors import SourceError
from muntin.messages import Message, ToolCall
from muntin.shapes import view
from muntin.shapes.blocks import as_block, canonical_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from muntin.candidates import Embedding
    from muntin.messages import Block

__all__ = (
    "LiteralText",
    "as_chat_message",
    "candidate_of",
    "candidates_of",
    "copy_of_message",
    "copy_of_node",
    "from_muntin",
    "node_of",
    "shortened",
    "to_muntin",
)

NODE = "llama_index.node"
"""Metadata key of a candidate that was a node."""
_READ = "llama_index.read"
_MESSAGE = "llama_index.message"


# --- nodes ---------------------------------------------------------------------------------------


def candidate_of(
    found: NodeWithScore,
    *,
    mode: MetadataMode = MetadataMode.LLM,
    embedding: Embedding | None = None,
) -> Candidate:
    """Make a candidate of a retrieved node, which travels along in its metadata.

    Args:
        found: The node and its score. Not changed. A score that is no finite number is unknown.
        mode: Which metadata is part of the text: by default what a synthesizer would send.
        embedding: Its vector; `None` takes the one the node carries, if any.

    ```python
    from llama_index.core.schema import NodeWithScore, TextNode
    from llama_index_muntin import candidate_of

    node = TextNode(text="Meals are capped at 80.", id_="meals")
    print(candidate_of(NodeWithScore(node=node, score=0.9)))
    #> Candidate(content='Meals are capped at 80.', score=0.9, source='', id='meals', pinned=False)
    ```
    """
    node = found.node
    content = node.get_content(metadata_mode=mode)
    score = found.score
    return Candidate(
        content,
        None if score is None or not math.isfinite(score) else float(score),
        id=node.node_id,
        embedding=node.embedding if embedding is None else embedding,
        metadata={**node.metadata, NODE: found, _READ: (mode, content)},
    )


def candidates_of(found: object, *, name: str) -> list[Candidate]:
    """Read what a retriever or a function returned: nodes, candidates or strings.

    Raises:
        SourceError: Something among it is none of these.
    """
    read: list[Candidate] = []
    for item in cast("Iterable[object]", found or ()):
        if isinstance(item, NodeWithScore):
            read.append(candidate_of(item))
        elif isinstance(item, BaseNode):
            read.append(candidate_of(NodeWithScore(node=item)))
        elif isinstance(item, Candidate):
            read.append(item)
        elif isinstance(item, str):
            read.append(Candidate(item))
        else:
            kind = type(item).__name__
            raise SourceError(name, f"holds a {kind}: give nodes, candidates or strings")
    return read


def node_of(candidate: Candidate) -> NodeWithScore:
    """Return a copy of the node a candidate was, or make one of a candidate that never was one.

    A candidate that was shortened comes back as a node with the shorter text.
    """
    found = candidate.metadata.get(NODE)
    if not isinstance(found, NodeWithScore):
        metadata = {"source_name": candidate.source} if candidate.source else {}
        made = TextNode(
            text=candidate.content,
            metadata={**candidate.metadata, **metadata},
            excluded_llm_metadata_keys=[*candidate.metadata, *metadata],
            excluded_embed_metadata_keys=[*candidate.metadata, *metadata],
            **({"id_": candidate.id} if candidate.id else {}),
        )
        return NodeWithScore(node=made, score=candidate.score)
    mode, content = cast("tuple[MetadataMode, str]", candidate.metadata[_READ])
    if candidate.content == content:
        return copy_of_node(found)
    # Only a text that the template puts last can be cut at the end without touching the metadata.
    head = content.removesuffix(found.node.get_content(metadata_mode=MetadataMode.NONE))
    if mode is not MetadataMode.NONE and not candidate.content.startswith(head):
        return copy_of_node(found)
    return shortened(found, candidate.content.removeprefix(head))


def copy_of_node(found: NodeWithScore) -> NodeWithScore:
    """Copy a node with its score, so that changing the copy changes nothing else.

    An object that an index node leads to is shared: it may be a whole query engine.
    """
    node = found.node
    update: dict[str, Any] = {
        "metadata": copy.deepcopy(node.metadata),
        "relationships": dict(node.relationships),
        "excluded_llm_metadata_keys": list(node.excluded_llm_metadata_keys),
        "excluded_embed_metadata_keys": list(node.excluded_embed_metadata_keys),
        "embedding": None if node.embedding is None else list(node.embedding),
    }
    return NodeWithScore(node=node.model_copy(update=update), score=found.score)


def shortened(found: NodeWithScore, text: str) -> NodeWithScore:
    """Copy a node with a shorter text; its embedding stays behind."""
    copied = copy_of_node(found)
    copied.node.set_content(text)
    copied.node.embedding = None
    return copied


# --- messages ------------------------------------------------------------------------------------


class LiteralText(TextBlock):
    """A text that is no template.

    The chat engines put the history into a prompt *template*, so a user's `{context_str}` would
    come out as the retrieved documents. A block of this class stands as it is.
    """

    @property
    def templatable_attributes(self) -> list[str]:
        """Nothing here is filled in."""
        return []

    def get_template_vars(self) -> list[str]:
        """Nothing here is a variable."""
        return []

    def format_vars(self, **_: Any) -> LiteralText:
        """Stay as it is."""
        return self

    def __eq__(self, other: object) -> bool:
        """Equal any text block that reads the same."""
        return isinstance(other, TextBlock) and other.text == self.text

    __hash__ = None  # pyright: ignore[reportAssignmentType] - as mutable as every block


def copy_of_message(message: ChatMessage, *, literal: bool = False) -> ChatMessage:
    """Copy a message so that changing the copy changes nothing else.

    Args:
        message: The message.
        literal: Whether texts with braces are kept from being filled in as templates.
    """
    blocks: list[Any] = []
    for block in message.blocks:
        if type(block) is TextBlock:
            braced = literal and "{" in block.text
            blocks.append((LiteralText if braced else TextBlock)(text=block.text))
        else:
            blocks.append(block.model_copy(deep=True))
    kwargs = message.additional_kwargs
    return message.model_copy(
        update={"blocks": blocks, "additional_kwargs": copy.deepcopy(kwargs) if kwargs else {}}
    )


def to_muntin(message: ChatMessage) -> Message:
    """Make a neutral `Message` of a chat message, from which `from_muntin` remakes it.

    ```python
    from llama_index.core.llms import ChatMessage
    from llama_index_muntin import from_muntin, to_muntin

    result = ChatMessage(role="tool", content="4 rooms", additional_kwargs={"tool_call_id": "c1"})
    neutral = to_muntin(result)
    print(neutral.role, neutral.tool_call_id, from_muntin(neutral) == result)
    #> tool c1 True
    ```
    """
    seen = SHAPE.view(message)
    kept = copy_of_message(message)
    content = _content_of(message)
    return Message(
        content,
        seen.role,
        name=seen.name,
        tool_calls=seen.calls,
        tool_call_id=answered_call(message),
        metadata={_MESSAGE: kept},
    )


def from_muntin(message: Message) -> ChatMessage:
    """Make a chat message of a neutral one; what was changed in between stays changed."""
    original = message.metadata.get(_MESSAGE)
    if not isinstance(original, ChatMessage):
        return _made(message)
    before = to_muntin(original)
    same_calls = tuple(message.tool_calls) == tuple(before.tool_calls)
    if message.tool_call_id == before.tool_call_id and same_calls and message.role == before.role:
        if message.content == before.content:
            return copy_of_message(original)
        if isinstance(message.content, str):
            return copy_of_message(SHAPE.with_text(original, message.content))
    return _made(message)


def as_chat_message(message: Any) -> ChatMessage:
    """Return a message of any shape as a chat message: a stand-in, or a note in its shape."""
    if isinstance(message, ChatMessage):
        return message
    if isinstance(message, Message):
        return from_muntin(message)
    said = view(message)
    return ChatMessage(role=MessageRole(said.role), content=said.text)


def _content_of(message: ChatMessage) -> str | list[Block]:
    """Write the blocks as neutral ones; a message of plain text as its text."""
    texts = [block.text for block in message.blocks if isinstance(block, TextBlock)]
    others = [block for block in message.blocks if getattr(block, "block_type", "") != "tool_call"]
    if len(texts) == len(others) <= 1:
        return texts[0] if texts else ""
    return [_neutral_block(block) for block in others]


def _neutral_block(block: Any) -> Block:
    """Write one block as the neutral reader knows it."""
    kind = block.block_type
    if kind == "text":
        return {"type": "text", "text": block.text}
    if kind == "thinking":
        return {"type": "thinking", "thinking": block.content or "", **block.additional_information}
    if kind == "image":
        data = block.image.decode("ascii", "ignore") if isinstance(block.image, bytes) else None
        return {
            "type": "image",
            "base64": data,
            "mime_type": block.image_mimetype,
            "url": str(block.url) if block.url else None,
            "detail": block.detail,
        }
    return {**json.loads(block.model_dump_json()), "type": kind}


def _made(message: Message) -> ChatMessage:
    """Make a chat message of one that never was one, or is one no more."""
    content = message.content
    blocks: list[Any] = (
        ([TextBlock(text=content)] if content or not message.tool_calls else [])
        if isinstance(content, str)
        else [_block_of(block) for block in content]
    )
    kwargs: dict[str, Any] = {}
    if message.name is not None:
        kwargs["name"] = message.name
    if message.tool_call_id is not None:
        kwargs["tool_call_id"] = message.tool_call_id
    calls = [_call_block(call) for call in message.tool_calls]
    if calls and calls[0] is None:
        kwargs["tool_calls"] = [_wire_call(call) for call in message.tool_calls]
    blocks += [block for block in calls if block is not None]
    return ChatMessage(role=MessageRole(message.role), blocks=blocks, additional_kwargs=kwargs)


def _block_of(block: Block) -> Any:
    """Make a block of a neutral one; what LlamaIndex has no block for is kept as JSON text."""
    kind = str(block.get("type"))
    if kind == "text":
        return TextBlock(text=str(block.get("text") or ""))
    if kind == "image" or kind == "image_url":
        inner = as_block(block.get("image_url")) or block
        data = block.get("base64") or block.get("data")
        return types.ImageBlock(
            image=data.encode() if isinstance(data, str) else None,
            url=cast("str | None", inner.get("url")),
            image_mimetype=cast("str | None", block.get("mime_type")),
            detail=cast("str | None", inner.get("detail")),
        )
    thinking = getattr(types, "ThinkingBlock", None)
    if kind == "thinking" and thinking is not None:
        known = ("type", "thinking")
        rest = {key: value for key, value in block.items() if key not in known}
        return thinking(content=block.get("thinking"), additional_information=rest)
    return TextBlock(text=canonical_json(block))


def _call_block(call: ToolCall) -> Any:
    """Make a call block, where this version of the core has one."""
    block = getattr(types, "ToolCallBlock", None)
    if block is None:
        return None
    parsed = call.parsed
    kwargs = cast("Mapping[str, Any]", parsed) if isinstance(parsed, dict) else call.arguments
    return block(tool_call_id=call.id, tool_name=call.name, tool_kwargs=kwargs)


def _wire_call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def text_of_messages(messages: Sequence[ChatMessage]) -> str:
    """Write messages as a transcript, a line each: who, and what they said."""
    lines: list[str] = []
    for message in messages:
        seen = SHAPE.view(message)
        said = [seen.text, *(f"{call.name}({call.arguments})" for call in seen.calls)]
        said += [result.text for result in seen.results]
        lines.append(f"{seen.role}: " + " ".join(part for part in said if part))
    return "\n".join(lines)
