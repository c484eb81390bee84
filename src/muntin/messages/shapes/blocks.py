"""Read content blocks: the parts from which every provider builds a message.

One reader knows the blocks of all providers, because conversations mix them (a framework passes on
a provider's block as it is). An unknown block, or a known one with its text under another key,
is kept as canonical JSON, so that it is counted. Base64 inside it is taken out first: it is never
charged as text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

from muntin.errors import ConfigurationError
from muntin.messages.message import Block, ToolCall
from muntin.messages.shapes.media import media_of
from muntin.messages.shapes.views import Media, MediaKind, ToolResult

__all__ = ("BlockReader", "as_block", "canonical_json", "replace_result", "replace_text",
           "without_text")  # fmt: skip

BlockT = TypeVar("BlockT")

_TEXT = {"text": "text", "input_text": "text", "output_text": "text", "text-plain": "text",
         "refusal": "refusal", "summary_text": "text", "reasoning_text": "text"}  # fmt: skip
_MEDIA: dict[str, MediaKind] = {
    "image": "image", "image_url": "image", "input_image": "image",
    "document": "document", "file": "document", "input_file": "document",
    "audio": "audio", "input_audio": "audio",
    "video": "video", "video_url": "video", "input_video": "video",
    "container_upload": "file",
}  # fmt: skip
_ARGUMENTS = ("input", "arguments", "args")
_CALLS = frozenset({"tool_use", "tool_call", "function_call", "custom_tool_call"})
_SERVER = frozenset({"server_tool_use", "server_tool_call", "server_tool_result", "mcp_tool_use",
                     "mcp_call", "web_search_call", "file_search_call", "code_interpreter_call",
                     "image_generation_call"})  # fmt: skip
_TOOL_CHANGES = frozenset({"tool_addition", "tool_removal", "toolAddition", "toolRemoval",
                           "additional_tools"})  # fmt: skip
"""Types and keys of blocks that add or remove tools inside a conversation."""
_RESULTS = ("output", "result", "value", "response")
"""Keys that hold a result if it has no content."""
_ASIDE = frozenset(
    {
        "type",
        "id",
        "index",
        "call_id",
        "tool_use_id",
        "tool_call_id",
        "name",
        "status",
        "annotations",
        "citations",
        "logprobs",
        "cache_control",
        "cachePoint",
        "extras",
        "is_error",
        "signature",
        "summary",
        "encrypted_content",
        "detail",
        "format",
        "phase",
    }
)
"""Keys that carry no text of their own."""
_SEALED = frozenset({"encrypted_content", "encrypted_index", "encrypted_stdout", "signature"})
_SEALED_PART = 3
"""A sealed summary is charged as one part in so many of its base64: the text in it is smaller."""
_BLOB = re.compile(r"(?:data:[^,;]{0,80};base64,)?[A-Za-z0-9+/_-]{512,}={0,2}")


def canonical_json(value: Any) -> str:
    """Write a value as compact JSON with sorted keys, so that key order never changes a count.

    Raises:
        ConfigurationError: The value contains itself, or is nested too deep to be written.
    """
    try:
        return _written(value)
    except TypeError:  # keys of several types, which cannot be sorted
        return _written(_with_text_keys(value))
    except (RecursionError, ValueError) as error:
        raise _too_deep() from error


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), default=str)


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, (str, list, dict, tuple)) and not value)


def _with_text_keys(value: Any) -> Any:
    if isinstance(value, Mapping):
        pairs = cast("Mapping[Any, Any]", value)
        return {str(key): _with_text_keys(one) for key, one in pairs.items()}
    if isinstance(value, (list, tuple)):
        return [_with_text_keys(one) for one in cast("Sequence[Any]", value)]
    return value


def _too_deep() -> ConfigurationError:
    return ConfigurationError(
        "a schema, an argument or a block contains itself or is nested too deep to be written as "
        "JSON: pass plain nested dicts and lists"
    )


def as_block(value: Any) -> Block | None:
    """Return the value when it is a mapping, `None` otherwise."""
    # Asking for `dict` first spares most values the slower question.
    return cast("Block", value) if isinstance(value, (dict, Mapping)) else None


class BlockReader:
    """Collect texts, calls, results and media of content blocks, in their order."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._media: list[Media] = []
        self._calls: list[ToolCall] = []
        self._results: list[ToolResult] = []
        self._server: list[str] = []
        self._reasoning: list[str] = []
        self._unknown: list[tuple[str, str]] = []
        self.signed = False
        self.changes_tools = False
        self.compacts = False

    @property
    def text(self) -> str:
        """Readable text, parts joined by line breaks."""
        return self._texts[0] if len(self._texts) == 1 else "\n".join(self._texts)

    @property
    def reasoning(self) -> str:
        """Readable reasoning, parts joined by line breaks."""
        return "\n".join(self._reasoning)

    @property
    def media(self) -> tuple[Media, ...]:
        """Everything that is not text."""
        return tuple(self._media)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """Calls in the order they were made."""
        return tuple(self._calls)

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """Results of earlier calls."""
        return tuple(self._results)

    @property
    def server(self) -> tuple[str, ...]:
        """Calls the provider ran itself, and their results."""
        return tuple(self._server)

    @property
    def is_silent(self) -> bool:
        """Whether nothing that was read has a text."""
        return not self._texts

    @property
    def unknown(self) -> tuple[tuple[str, str], ...]:
        """Blocks of unknown types."""
        return tuple(self._unknown)

    def calls_besides(self, known: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
        """Return the calls that are not in `known`: some shapes hold each call twice."""
        if not self._calls:
            return ()
        ids = {call.id for call in known}
        return tuple(call for call in self._calls if call.id not in ids)

    def content(self, content: Any) -> None:
        """Read text, one block, or a list of blocks; `None` has no content."""
        if content is None:
            return
        if isinstance(content, str):
            self._texts.append(content)
        elif isinstance(content, Mapping):
            self.block(cast("Mapping[str, Any]", content))
        elif isinstance(content, Sequence):
            for block in cast("Sequence[Any]", content):
                self.content(block)
        else:
            self._unknown.append((type(content).__name__, str(content)))

    def block(self, block: Mapping[str, Any]) -> None:
        """Read one block."""
        kind = str(block.get("type", ""))
        if kind in _TEXT:
            self._told(kind, block)
        elif kind == "tool_result":
            self._tool_result(block)
        elif kind in _CALLS:
            self._calls.append(_call(block))
        elif kind in ("thinking", "redacted_thinking", "reasoning"):
            self._thinking(block)
        elif kind in _SERVER or kind.endswith("_tool_result"):
            self._server.append(self._json(block))
        elif kind == "compaction":
            self._compaction(block)
        elif kind in _MEDIA:
            self._thing(_MEDIA[kind], block)
        elif kind == "search_result":
            self._texts.append(_text(block.get("title")))
            self.content(block.get("content"))
        elif "cachePoint" not in block:
            # Calls behind a change of the tools are only valid while the model sees it.
            self.changes_tools |= kind in _TOOL_CHANGES or not _TOOL_CHANGES.isdisjoint(block)
            self._unknown.append((kind or "untyped", self._json(block)))

    def _told(self, kind: str, block: Mapping[str, Any]) -> None:
        """Read a block of text."""
        text = block.get(_TEXT[kind])
        if text is None:
            self._rest(kind, block)
        else:
            self._texts.append(_text(text))

    def _rest(self, kind: str, block: Mapping[str, Any]) -> bool:
        """Keep what a block of a known type holds under unknown keys; return whether it does."""
        rest = {key: one for key, one in block.items() if key not in _ASIDE and not _is_empty(one)}
        if rest:
            self._unknown.append((kind, self._json(rest)))
        return bool(rest)

    def _json(self, value: Any) -> str:
        try:
            return canonical_json(self._plain(value))
        except RecursionError as error:
            raise _too_deep() from error

    def _tool_result(self, block: Mapping[str, Any]) -> None:
        inner = BlockReader()
        content = block.get("content")
        if content is None:
            content = next((block[key] for key in _RESULTS if block.get(key) is not None), None)
        inner.content(content)
        if content is None:
            inner._rest("tool_result", block)
        self._media += inner.media
        self._unknown += inner.unknown
        self._results.append(
            ToolResult(
                call_id=_text(block.get("tool_use_id")),
                text=inner.text,
                is_error=bool(block.get("is_error", False)),
                media=inner.media,
            )
        )

    def _thinking(self, block: Mapping[str, Any]) -> None:
        before = len(self._reasoning)
        for key in ("thinking", "reasoning", "text"):
            if isinstance(block.get(key), str):
                self._reasoning.append(block[key])
        for key in ("summary", "content"):
            inner = BlockReader()
            inner.content(block.get(key))
            self._reasoning += inner._texts
        sealed = as_block(block.get("extras")) or {}
        if block.get("type") == "redacted_thinking" or any(
            block.get(key) or sealed.get(key) for key in _SEALED
        ):
            self.signed = True
        elif len(self._reasoning) == before:
            self._rest(str(block.get("type")), block)

    def _compaction(self, block: Mapping[str, Any]) -> None:
        """Read a provider's summary; one without content failed and has no effect."""
        content, sealed = block.get("content"), block.get("encrypted_content")
        if content:
            self.compacts = True
            self._server.append(content if isinstance(content, str) else self._json(content))
        elif "content" not in block and isinstance(sealed, str) and sealed:
            self.compacts = True
            self._server.append(sealed[: len(sealed) // _SEALED_PART])

    def _thing(self, kind: MediaKind, block: Mapping[str, Any]) -> None:
        source = as_block(block.get("source"))
        if source is not None and source.get("type") in ("text", "content"):
            self._texts.append(_text(block.get("title")))
            self.content(source.get("data") or source.get("content"))
            return
        if isinstance(block.get("text"), str):
            self._texts.append(block["text"])
            return
        self._media.append(media_of(kind, block))

    def _plain(self, value: Any) -> Any:
        """Copy a value without what is sealed, and turn base64 into media."""
        if isinstance(value, Mapping):
            pairs = cast("Mapping[Any, Any]", value)
            return {str(k): self._plain(v) for k, v in pairs.items() if k not in _SEALED}
        if isinstance(value, (list, tuple)):
            return [self._plain(part) for part in cast("Sequence[Any]", value)]
        if isinstance(value, (bytes, bytearray)):
            self._media.append(Media(kind="file", size=len(value)))
            return "(bytes)"
        if isinstance(value, str) and len(value) >= 512 and _BLOB.fullmatch(value):
            self._media.append(Media(kind="file", size=len(value) * 3 // 4))
            return "(base64)"
        return value


def replace_text(content: Any, text: str) -> Any:
    """Return content that reads `text`: blocks that are not text stay, in their order."""
    if not isinstance(content, (list, tuple)):
        return text
    kept: list[Any] = []
    placed = False
    for block in cast("Sequence[Any]", content):
        kind = (as_block(block) or {}).get("type")
        if kind is None and not isinstance(block, str):
            kept.append(block)
        elif isinstance(block, str) or kind in _TEXT:
            if not placed:
                kept.append(text if isinstance(block, str) else {**block, _TEXT[str(kind)]: text})
                placed = True
        else:
            kept.append(block)
    if not placed:
        kept.append({"type": "text", "text": text})
    return kept if isinstance(content, list) else tuple(kept)


def replace_result(
    content: Any,
    text: str,
    *,
    bare: bool,
    kind: str = "text",
    read: Callable[[BlockReader, Any], None] = BlockReader.content,
) -> Any:
    """Return content of a tool result that reads `text` and holds what else stood in it.

    Args:
        content: A text, a block or a list of blocks.
        text: What it is to read.
        bare: Whether media go as well.
        kind: Type of a text block.
        read: How a block is read.
    """
    blocks: Any = [content] if isinstance(content, Mapping) else content
    if not isinstance(blocks, (list, tuple)):
        return text
    kept = without_text(cast("Sequence[Any]", blocks), bare=bare, read=read)
    if not kept:
        return text
    return [{"type": kind, "text": text}, *kept] if text else kept


def without_text(
    blocks: Sequence[BlockT], *, bare: bool, read: Callable[[BlockReader, BlockT], None]
) -> list[BlockT]:
    """Return the blocks without text; with `bare`, media are left out too."""
    kept: list[BlockT] = []
    for block in blocks:
        reader = BlockReader()
        read(reader, block)
        if reader.is_silent and not (bare and reader.media):
            kept.append(block)
    return kept


def _call(block: Mapping[str, Any]) -> ToolCall:
    """Read a call; arguments become JSON text, whichever form and key they have."""
    key = next((key for key in _ARGUMENTS if key in block), None)
    if key is not None:
        given = block[key]
    else:
        given = {key: one for key, one in block.items() if key not in _ASIDE and not _is_empty(one)}
        given = given.get("value", given)
    arguments = given if isinstance(given, str) else canonical_json(given)
    return ToolCall(
        _text(block.get("call_id") or block.get("id")), _text(block.get("name")), arguments
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)
