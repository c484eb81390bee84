"""Read size, pixels, detail and type of an image, a document, audio or video in a block.

It reads headers only; nothing is decoded and no link is followed.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from muntin.messages.shapes.views import Media, MediaKind

__all__ = ("image_size", "media_of")

_DATA_URI = re.compile(r"data:([^,;]*)[^,]*;base64,")


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
        inner = _mapping(block.get(outer))
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


def _mapping(value: Any) -> Mapping[str, Any] | None:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)
