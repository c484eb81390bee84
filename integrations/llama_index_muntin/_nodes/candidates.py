"""Translate between LlamaIndex's nodes and the core's candidates, and copy what is returned.

Nothing that is given is changed. What is returned is a copy that shares nothing that can change and
can be written as UTF-8. Scores and embeddings are kept; only a node with a shortened text loses its
embedding, because it was computed from the whole text.

A candidate that was changed is returned as a node with the same text as the candidate: if the text
no longer follows the node's template, the model is not shown the metadata a second time.
"""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, TextNode

from llama_index_muntin._nodes.media import name_of_media
from muntin.conversations import cleaned
from muntin.errors import SourceError
from muntin.passages import Candidate

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from muntin.counting import TokenCounter
    from muntin.passages import Embedding

__all__ = (
    "by_own_words",
    "candidate_of",
    "candidates_of",
    "copy_of_node",
    "node_of",
    "node_read",
    "with_less_metadata",
)

_NODE = "llama_index.node"
"""Metadata key of a candidate that was a node."""
_READ = "llama_index.read"
"""Metadata key of what was read of it: which metadata, and the content."""
_HOLE = "\0"
"""Placeholder for the text of a node when its template is read."""


def candidate_of(
    found: NodeWithScore,
    *,
    mode: MetadataMode = MetadataMode.LLM,
    embedding: Embedding | None = None,
) -> Candidate:
    """Make a candidate of a retrieved node, which travels along in its metadata.

    Args:
        found: The node and its score. Not changed. A score that is not a finite number is unknown.
        mode: Which metadata is part of the text: by default what a synthesizer would send.
        embedding: Its vector; `None` takes the one the node carries, if any.

    ```python
    from llama_index.core.schema import NodeWithScore, TextNode
    from llama_index_muntin import candidate_of

    node = TextNode(text="Letters weigh 80 grams.", id_="post")
    print(candidate_of(NodeWithScore(node=node, score=0.9)))
    #> Candidate(content='Letters weigh 80 grams.', score=0.9, source='', id='post', pinned=False)
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
        metadata={**node.metadata, _NODE: found, _READ: (mode, content)},
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


def by_own_words(candidate: Candidate) -> Candidate:
    """Return a candidate that is compared by its own content alone.

    That is its text without the metadata, which would make copies differ; if it has no text, its
    metadata; and if it carries media, their id: pictures under one caption are not one picture.

    A candidate that was not a node, or has a changed text, is returned unchanged.
    """
    found = _unchanged(candidate)
    if found is None:
        return candidate
    node, mode = found.node, MetadataMode.NONE
    content = name_of_media(node) or node.get_content(metadata_mode=mode)
    if not content.strip():
        mode = MetadataMode.LLM
        content = node.get_content(metadata_mode=mode)
    return replace(
        candidate, content=content, metadata={**candidate.metadata, _READ: (mode, content)}
    )


def with_less_metadata(candidate: Candidate, max_tokens: int, counter: TokenCounter) -> Candidate:
    """Take the longest metadata out of what a model is shown of a node, until the rest fits.

    A node without other text keeps all of them.
    """
    found = _unchanged(candidate)
    if found is None or candidate.metadata[_READ][0] is not MetadataMode.NONE:
        return candidate
    node = found.node
    sizes = {
        key: counter(node.metadata_template.format(key=key, value=value) + node.metadata_separator)
        for key, value in node.metadata.items()
        if key not in node.excluded_llm_metadata_keys
    }
    hidden = sorted(sizes, key=sizes.__getitem__)
    while hidden and sizes[hidden[0]] <= max_tokens:
        max_tokens -= sizes[hidden.pop(0)]
    short = _without_metadata(found, hidden)
    return replace(candidate, metadata={**candidate.metadata, _NODE: short})


def node_read(candidate: Candidate) -> BaseNode | None:
    """Return the node whose text a model will read, not to be changed; `None` if it never was one.

    It is the original node if `node_of` would return a copy of the original.
    """
    found = _unchanged(candidate)
    if found is None and _NODE in candidate.metadata:
        found = node_of(candidate)
    return None if found is None else found.node


def node_of(candidate: Candidate) -> NodeWithScore:
    """Return a copy of the node a candidate was, or make one of a candidate that never was one.

    A candidate that was shortened comes back as a node with the shorter text; one that carries
    media comes back whole.
    """
    found = candidate.metadata.get(_NODE)
    if not isinstance(found, NodeWithScore):
        return _made(candidate)
    mode, content = cast("tuple[MetadataMode, str]", candidate.metadata[_READ])
    if candidate.content == content or (mode is MetadataMode.NONE and name_of_media(found.node)):
        return copy_of_node(found)
    hollow = _shortened(found, _HOLE).node.get_content(metadata_mode=mode)
    head, _, tail = hollow.partition(_HOLE)
    short = _shortened(found, candidate.content.removeprefix(head).removesuffix(tail))
    said = short.node.get_content(metadata_mode=mode).strip()
    if said == cleaned(candidate.content).strip():
        return short
    return _without_metadata(_shortened(found, candidate.content), found.node.metadata)


def copy_of_node(found: NodeWithScore) -> NodeWithScore:
    """Copy a node with its score, so that changing the copy changes nothing else.

    An object that an index node leads to is shared: it may be a whole query engine. Lone
    surrogates in text and metadata are replaced.
    """
    node = found.node
    shared = getattr(node, "obj", None)
    copied: dict[int, Any] = {id(shared): shared}
    if node.embedding is not None:
        copied[id(node.embedding)] = list(node.embedding)  # a thousand numbers need no deep look
    own = copy.deepcopy(node, copied)
    text = own.get_content(metadata_mode=MetadataMode.NONE)
    if cleaned(text) is not text:
        own.set_content(cleaned(text))
    if cleaned(own.metadata) is not own.metadata:
        own.metadata = cleaned(own.metadata)
    return NodeWithScore(node=own, score=found.score)


def _unchanged(candidate: Candidate) -> NodeWithScore | None:
    """Return the node a candidate was and still reads as; `None` where there is none."""
    found = candidate.metadata.get(_NODE)
    if not isinstance(found, NodeWithScore) or candidate.content != candidate.metadata[_READ][1]:
        return None
    return found


def _shortened(found: NodeWithScore, text: str) -> NodeWithScore:
    """Copy a node with a shorter text and without its embedding.

    If the node has character positions, they are those of the part that is left.
    """
    copied = copy_of_node(found)
    node = copied.node
    if isinstance(node, TextNode) and node.end_char_idx is not None:
        start = node.start_char_idx
        pairs = enumerate(zip(node.text, text, strict=False))
        left = next((at for at, (old, new) in pairs if old != new), min(len(node.text), len(text)))
        node.end_char_idx = None if start is None else start + left
    node.set_content(cleaned(text))
    node.embedding = None
    return copied


def _without_metadata(found: NodeWithScore, keys: Iterable[str]) -> NodeWithScore:
    """Copy a node that does not show some of its metadata to a model; it still has them."""
    copied = copy_of_node(found)
    keys = list(keys)
    copied.node.excluded_llm_metadata_keys = _with(copied.node.excluded_llm_metadata_keys, keys)
    copied.node.excluded_embed_metadata_keys = _with(copied.node.excluded_embed_metadata_keys, keys)
    return copied


def _with(listed: Sequence[str], more: Sequence[str]) -> list[str]:
    return list(dict.fromkeys((*listed, *more)))


def _made(candidate: Candidate) -> NodeWithScore:
    """Make a node of a candidate that never was one; the model is shown its text alone."""
    origin = {"source_name": candidate.source} if candidate.source else {}
    metadata = cleaned({**candidate.metadata, **origin})
    made = TextNode(
        text=cleaned(candidate.content),
        metadata=metadata,
        excluded_llm_metadata_keys=list(metadata),
        excluded_embed_metadata_keys=list(metadata),
        **({"id_": candidate.id} if candidate.id else {}),
    )
    return NodeWithScore(node=made, score=candidate.score)
