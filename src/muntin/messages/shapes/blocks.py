"""Read content blocks: the parts from which every provider builds a message.

One reader knows the blocks of all providers, because conversations mix them (a framework passes a
provider's block on as it is). A block nobody knows is kept as canonical JSON, so that it can be
priced; base64 inside it is taken out first, because nobody is charged for base64 as text.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

from muntin.messages.message import Block, ToolCall
from muntin.messages.shapes.views import Media, MediaKind, ToolResult

__all__ = ("BlockReader", "as_block", "canonical_json", "image_size", "media_of",
           "replace_result", "replace_text", "without_text")  # fmt: skip

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
_CALLS = frozenset({"tool_use", "tool_call", "function_call", "custom_tool_call"})
_SERVER = frozenset({"server_tool_use", "server_tool_call", "server_tool_result", "mcp_tool_use",
                     "mcp_call", "web_search_call", "file_search_call", "code_interpreter_call",
                     "image_generation_call"})  # fmt: skip
_SEALED = frozenset({"encrypted_content", "encrypted_index", "encrypted_stdout", "signature"})
_BLOB = re.compile(r"(?:data:[^,;]{0,80};base64,)?[A-Za-z0-9+/_-]{512,}={0,2}")
_DATA_URI = re.compile(r"data:([^,;]*)[^,]*;base64,")


def canonical_json(value: Any) -> str:
    """Write a value as compact JSON with sorted keys, so that key order never changes a count."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), default=str)


def as_block(value: Any) -> Block | None:
    """Return the value when it is a mapping, `None` otherwise."""
    # Asking for `dict` first spares most values the slower question.
    return cast("Block", value) if isinstance(value, (dict, Mapping)) else None


class BlockReader:
    """Collect what content blocks say, in their order."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._media: list[Media] = []
        self._calls: list[ToolCall] = []
        self._results: list[ToolResult] = []
        self._server: list[str] = []
        self._reasoning: list[str] = []
        self._unknown: list[tuple[str, str]] = []
        self.signed = False

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
        """Whether nothing that was read says anything in words."""
        return not self._texts

    @property
    def unknown(self) -> tuple[tuple[str, str], ...]:
        """Blocks nobody here knows."""
        return tuple(self._unknown)

    def calls_besides(self, known: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
        """Return the calls that do not also stand in `known`: they live twice in some shapes."""
        if not self._calls:
            return ()
        ids = {call.id for call in known}
        return tuple(call for call in self._calls if call.id not in ids)

    def content(self, content: Any) -> None:
        """Read text, one block, or a list of blocks; `None` says nothing."""
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
            self._texts.append(_text(block.get(_TEXT[kind])))
        elif kind == "tool_result":
            self._tool_result(block)
        elif kind in _CALLS:
            self._calls.append(_call(block))
        elif kind in ("thinking", "redacted_thinking", "reasoning"):
            self._thinking(block)
        elif kind in _SERVER or kind.endswith("_tool_result"):
            self._server.append(canonical_json(self._plain(block)))
        elif kind in _MEDIA:
            self._thing(_MEDIA[kind], block)
        elif kind == "search_result":
            self._texts.append(_text(block.get("title")))
            self.content(block.get("content"))
        else:
            self._unknown.append((kind or "untyped", canonical_json(self._plain(block))))

    def _tool_result(self, block: Mapping[str, Any]) -> None:
        inner = BlockReader()
        inner.content(block.get("content"))
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
    """List the blocks that say nothing in words; where they are `bare`, media go too."""
    kept: list[BlockT] = []
    for block in blocks:
        reader = BlockReader()
        read(reader, block)
        if reader.is_silent and not (bare and reader.media):
            kept.append(block)
    return kept


def media_of(kind: MediaKind, block: Mapping[str, Any]) -> Media:
    """Read size, pixels and detail of a media block of any provider."""
    data, label = _payload(block)
    label = label or _text(block.get("filename") or block.get("title") or block.get("file_id"))
    detail = _first(block, "detail")
    size = len(data) * 3 // 4 if data else None
    pixels = image_size(data) if kind == "image" and data else None
    return Media(
        kind=kind,
        size=size,
        width=pixels[0] if pixels else None,
        height=pixels[1] if pixels else None,
        detail=_text(detail),
        by_area=isinstance(block.get("source"), Mapping),
        label=label[:80],
    )


_NESTED = ("image_url", "input_audio", "file", "source", "video_url", "audio", "image", "document")
_DATA_KEYS = ("data", "base64", "file_data", "url", "image_url", "video_url")
_TYPE_KEYS = ("media_type", "mime_type", "format")


def _first(block: Mapping[str, Any], key: str) -> Any:
    """Find a key in the block or one level below it."""
    if block.get(key) is not None:
        return block[key]
    for outer in _NESTED:
        inner = as_block(block.get(outer))
        if inner is not None and inner.get(key) is not None:
            return inner[key]
    return None


def _payload(block: Mapping[str, Any]) -> tuple[str, str]:
    """Return the base64 of a media block (`""` for links and ids) and its media type."""
    label = next((_text(v) for k in _TYPE_KEYS if (v := _first(block, k)) is not None), "")
    for key in _DATA_KEYS:
        value = _first(block, key)
        if isinstance(value, (bytes, bytearray)):
            return base64.b64encode(value).decode(), label
        if not isinstance(value, str) or not value:
            continue
        uri = _DATA_URI.match(value[:200])
        if uri:
            return value[uri.end() :], label or uri[1]
        if not value[:8].lower().startswith(("http", "file:", "gs:", "s3:")):
            return value, label
    return "", label


def image_size(data: str) -> tuple[int, int] | None:
    """Read width and height in pixels from the header of a base64 image; `None` if unreadable."""
    # A JPEG may carry a long preview before its frame header: 64 KB covers what cameras write.
    text = data[: 88_000 - 88_000 % 4]
    try:
        head = base64.b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        return None
    for magic, read in _HEADERS:
        if head.startswith(magic):
            return read(head)
    return None


def _big(head: bytes, at: int, size: int) -> int:
    return int.from_bytes(head[at : at + size], "big")


def _little(head: bytes, at: int, size: int) -> int:
    return int.from_bytes(head[at : at + size], "little")


def _png(head: bytes) -> tuple[int, int] | None:
    return (_big(head, 16, 4), _big(head, 20, 4)) if len(head) >= 24 else None


def _gif(head: bytes) -> tuple[int, int] | None:
    return (_little(head, 6, 2), _little(head, 8, 2)) if len(head) >= 10 else None


def _webp(head: bytes) -> tuple[int, int] | None:
    if len(head) < 30 or head[8:12] != b"WEBP":
        return None
    if head[12:16] == b"VP8X":
        return _little(head, 24, 3) + 1, _little(head, 27, 3) + 1
    if head[12:16] == b"VP8 ":
        return _little(head, 26, 2) & 0x3FFF, _little(head, 28, 2) & 0x3FFF
    bits = _little(head, 21, 4)
    return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1


def _jpeg(head: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 9 < len(head) and head[at] == 0xFF:
        marker = head[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return _big(head, at + 7, 2), _big(head, at + 5, 2)
        at += 2 + _big(head, at + 2, 2)
    return None


_HEADERS: tuple[tuple[bytes, Callable[[bytes], tuple[int, int] | None]], ...] = (
    (b"\x89PNG", _png),
    (b"GIF8", _gif),
    (b"RIFF", _webp),
    (b"\xff\xd8", _jpeg),
)


def _call(block: Mapping[str, Any]) -> ToolCall:
    """Read a call; arguments become JSON text whichever form they come in."""
    for key in ("input", "arguments", "args"):
        if key in block:
            given = block[key]
            arguments = given if isinstance(given, str) else canonical_json(given)
            break
    else:
        arguments = "{}"
    return ToolCall(
        _text(block.get("call_id") or block.get("id")), _text(block.get("name")), arguments
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)
