"""Translate between LangChain's values and the core's.

Inputs are not changed. A document comes back as the same object unless its text was shortened. A
message that became a `Message` and is made back is equal to what it was: fields that the neutral
value does not have are kept in its metadata.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from langchain_muntin._shapes import MARK, SHAPE, marked
from muntin.errors import ConfigurationError, SourceError
from muntin.messages import Message, ToolCall, canonical_json
from muntin.passages import Candidate

if TYPE_CHECKING:
    from muntin.passages import Embedding

__all__ = (
    "Score",
    "candidate_of",
    "candidates_of",
    "document_of",
    "from_muntin",
    "to_muntin",
)

Score = str | Callable[[Document], float | None]
"""Where a document's score is: a key of its metadata, or a function of the document."""

RELEVANCE = "relevance_score"
"""The key under which rerankers leave a score, by convention."""
DOCUMENT = "langchain.document"
"""Metadata key of a candidate that was a document."""
_KIND = "langchain.kind"
_FIELDS = "langchain.fields"
_NEUTRAL = frozenset({"content", "type", "name", "id", "tool_call_id"})
"""Fields of a message that a `Message` has as well."""


# --- documents -----------------------------------------------------------------------------------


def candidate_of(
    document: Document, *, score: Score = RELEVANCE, embedding: Embedding | None = None
) -> Candidate:
    """Make a candidate of a document, which travels along in its metadata.

    Args:
        document: The document. Not changed.
        score: Where its score is. Without one it counts by the rank at which it came.
        embedding: Its vector; `None` where there is none.

    ```python
    from langchain_core.documents import Document
    from langchain_muntin import candidate_of

    ranked = Document("Letters weigh 80 grams.", metadata={"relevance_score": 0.9}, id="d7")
    print(candidate_of(ranked))
    #> Candidate(content='Letters weigh 80 grams.', score=0.9, source='', id='d7', pinned=False)
    ```
    """
    found = document.metadata.get(score) if isinstance(score, str) else score(document)
    return Candidate(
        document.page_content,
        _number(found),
        id=document.id or "",
        embedding=embedding,
        metadata={**document.metadata, DOCUMENT: document},
    )


def document_of(candidate: Candidate) -> Document:
    """Return the document a candidate was; a copy with the shorter text where it was shortened.

    A candidate that never was a document becomes one, its source and score in the metadata.
    """
    original = candidate.metadata.get(DOCUMENT)
    if isinstance(original, Document):
        if original.page_content == candidate.content:
            return original
        return original.model_copy(update={"page_content": candidate.content})
    metadata = dict(candidate.metadata)
    if candidate.source:
        metadata.setdefault("source_name", candidate.source)
    if candidate.score is not None:
        metadata.setdefault(RELEVANCE, candidate.score)
    return Document(page_content=candidate.content, id=candidate.id or None, metadata=metadata)


def candidates_of(value: object, *, name: str, score: Score = RELEVANCE) -> list[Candidate]:
    """Read whatever a source or a key of the input holds.

    Args:
        value: `None`, or one or more documents, candidates, strings, messages, or pairs of a
            document and its score.
        name: Name of the source, for errors.
        score: Where a document's score is.

    Raises:
        SourceError: Something among it is none of these.
    """
    if value is None:
        return []
    if isinstance(value, (str, Document, Candidate, BaseMessage)):
        return [_candidate(value, name, score)]
    kind = type(value).__name__
    if isinstance(value, (bytes, Mapping)) or not isinstance(value, Iterable):
        raise SourceError(name, f"holds {kind}: {_ACCEPTED}")
    return [_candidate(item, name, score) for item in cast("Iterable[object]", value)]


_ACCEPTED = "give documents, candidates, strings or messages"


def _candidate(item: object, name: str, score: Score) -> Candidate:
    kind = type(item).__name__
    if isinstance(item, Candidate):
        return item
    if isinstance(item, str):
        return Candidate(item)
    if isinstance(item, Document):
        return candidate_of(item, score=score)
    if isinstance(item, BaseMessage):
        said = SHAPE.view(item)
        text = said.text or "\n".join(result.text for result in said.results)
        return Candidate(f"{said.role}: {text}", id=item.id or "")
    if isinstance(item, tuple):
        pair = cast("tuple[object, ...]", item)
        if len(pair) == 2 and isinstance(pair[0], Document) and _number(pair[1]) is not None:
            given = _number(pair[1])
            return candidate_of(pair[0], score=lambda _: given)
    raise SourceError(name, f"holds a {kind}: {_ACCEPTED}")


def _number(value: object) -> float | None:
    """Read a score; numbers of numpy have `__float__`, too. Bools and NaN are none."""
    if value is None or isinstance(value, (bool, str)):
        return None
    try:
        number = float(cast("float", value))
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


# --- messages ------------------------------------------------------------------------------------


def to_muntin(message: BaseMessage) -> Message:
    """Make a neutral `Message` of a LangChain message, from which `from_muntin` remakes it.

    ```python
    from langchain_core.messages import ToolMessage
    from langchain_muntin import from_muntin, to_muntin

    result = ToolMessage("4 rooms", tool_call_id="c1", artifact={"rooms": [1, 2, 3, 4]})
    neutral = to_muntin(result)
    print(neutral.role, neutral.tool_call_id, from_muntin(neutral) == result)
    #> tool c1 True
    ```
    """
    kept = {
        name: value
        for name, value in message
        if name not in _NEUTRAL and not (name == "tool_calls" and not value)
    }
    calls: tuple[ToolCall, ...] = ()
    if isinstance(message, AIMessage):
        calls = tuple(
            ToolCall(call["id"] or "", call["name"], canonical_json(call["args"]))
            for call in message.tool_calls
        )
    content = message.content
    return Message(
        content if isinstance(content, str) else cast("Any", content),
        SHAPE.view(message).role,
        name=message.name,
        tool_calls=calls,
        tool_call_id=message.tool_call_id if isinstance(message, ToolMessage) else None,
        id=message.id,
        pinned=marked(message) == "pinned",
        metadata={_KIND: type(message), _FIELDS: kept},
    )


def from_muntin(message: Message) -> BaseMessage:
    """Make a LangChain message of a neutral one; what was changed in between stays changed."""
    content: Any = message.content if isinstance(message.content, str) else list(message.content)
    kept = dict(cast("Mapping[str, Any]", message.metadata.get(_FIELDS, {})))
    kind = cast("type[BaseMessage] | None", message.metadata.get(_KIND))
    if kind is None:
        return _made(message, content)
    if message.pinned and not kept.get("additional_kwargs", {}).get(MARK):
        kept["additional_kwargs"] = {**kept.get("additional_kwargs", {}), MARK: "pinned"}
    if message.tool_calls:
        originals = cast("list[dict[str, Any]]", kept.get("tool_calls", []))
        kept["tool_calls"] = [_call(call, originals) for call in message.tool_calls]
    if message.tool_call_id is not None:
        kept["tool_call_id"] = message.tool_call_id
    return kind(content=content, name=message.name, id=message.id, **kept)


def _made(message: Message, content: Any) -> BaseMessage:
    """Make a LangChain message of one that never was one."""
    extra: dict[str, Any] = {"additional_kwargs": {MARK: "pinned"}} if message.pinned else {}
    if message.role == "tool":
        return ToolMessage(
            content=content, name=message.name, id=message.id,
            tool_call_id=message.tool_call_id or "", **extra,
        )  # fmt: skip
    if message.role == "assistant":
        calls = [_call(call, []) for call in message.tool_calls]
        return AIMessage(
            content=content, name=message.name, id=message.id,
            tool_calls=cast("Any", calls), **extra,
        )  # fmt: skip
    made = SHAPE.note("", message.role)
    return type(made)(content=content, name=message.name, id=message.id, **extra)


def _call(call: ToolCall, originals: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Write a call as LangChain does; one that did not change keeps its arguments as they were."""
    for original in originals:
        if (original["id"] or "") == call.id and canonical_json(original["args"]) == call.arguments:
            return {**original, "name": call.name}
    try:
        arguments: object = json.loads(call.arguments)
    except ValueError as error:
        raise ConfigurationError(
            f"the arguments of call {call.id!r} are not valid JSON: {error}"
        ) from None
    if not isinstance(arguments, dict):
        raise ConfigurationError(f"the arguments of call {call.id!r} are not a JSON object")
    return {"name": call.name, "args": arguments, "id": call.id or None, "type": "tool_call"}
