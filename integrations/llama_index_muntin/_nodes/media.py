"""Media of a node: pictures, sound and video, with an id and a price.

A synthesizer of a model that sees sends them along, so they take their place in a budget at the
price of the core's table. An id distinguishes one picture from another without reading what was
written about it; it is made of the bytes, the path or the link, and nothing is ever fetched.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any, cast

from llama_index.core.schema import ImageNode

from muntin.counting import counter_name, is_exact, media_tokens
from muntin.messages import media_of

if TYPE_CHECKING:
    from llama_index.core.schema import BaseNode

    from muntin.counting import TokenCounter
    from muntin.messages import MediaKind

__all__ = ("PricedCounter", "mark_of_media", "name_of_media")

_KINDS: tuple[MediaKind, ...] = ("image", "audio", "video")
_MARK = "\ufdd0"
"""Encloses a price in a text. Unicode reserves it for internal use; a foreign text that holds it
costs more, never less."""
_PRICE = re.compile(f"{_MARK}([0-9]{{1,9}}){_MARK}")


def name_of_media(node: BaseNode) -> str:
    """Name what a node carries, and its text with it; `""` where it is text alone."""
    carried = _carried(node)
    if not carried:
        return ""
    told = repr((carried, node.get_content()))
    digest = hashlib.sha256(told.encode("utf-8", "backslashreplace")).hexdigest()[:16]
    return f"[{carried[0][0]} {digest}]"


def mark_of_media(node: BaseNode) -> str:
    """Write what the media of a node cost, for a `PricedCounter` to read; `""` for none."""
    price = sum(media_tokens(media_of(kind, {"data": data})) for kind, data, _ in _carried(node))
    return f"{_MARK}{price}{_MARK}" if price else ""


class PricedCounter:
    """Count text by another counter, and the media marked in it at their price."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self.name = counter_name(counter)
        self.exact = is_exact(counter)

    def __call__(self, text: str) -> int:
        """Count a text and what is marked in it."""
        if _MARK not in text:
            return self._counter(text)
        return self._counter(text) + sum(int(price) for price in _PRICE.findall(text))


def _carried(node: BaseNode) -> list[tuple[MediaKind, str, str]]:
    """List kind, base64 and place of each medium; the base64 is `""` where there is a place."""
    if isinstance(node, ImageNode):
        place = node.image_path or node.image_url or ""
        return [("image", node.image or "", place)] if node.image or place else []
    carried: list[tuple[MediaKind, str, str]] = []
    for kind in _KINDS:
        resource = cast("Any", getattr(node, f"{kind}_resource", None))
        if resource is not None and (resource.data or resource.path or resource.url):
            data = (resource.data or b"").decode("ascii", "ignore")
            carried.append((kind, data, str(resource.path or resource.url or "")))
    return carried
