"""Charge media: images by pixels and detail, documents by pages, audio and video by seconds.

Providers publish the tokens of images; the rest is a middle estimate from the size of the file. The
numbers are in one table, so that a reader can check them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from muntin.messages import Media

__all__ = ("media_tokens",)

_LOW_DETAIL = 85
_TILE = 170
_UNKNOWN_SIDE = 1024
"""Pixels a side of an image with an unreadable size."""
_AREA_PER_TOKEN = 750
_AREA_LIMIT = 1600
_PAGE_BYTES = 100_000
_PAGE_TOKENS = 1500
_SECOND_BYTES = {"audio": 16_000, "video": 250_000}
_SECOND_TOKENS = {"audio": 32, "video": 263}
_UNKNOWN_SECONDS = 30


def media_tokens(thing: Media) -> int:
    """Return the tokens of one image, document, sound or video, in tokens; never 0.

    Images: 85 for low detail, else 85 and 170 per tile of 512 pixels after the image is brought
    inside 2048 x 2048 and its shorter side to 768 (OpenAI's formula), or area / 750 up to 1600
    (Anthropic's). Documents: 1,500 a page of 100 KB. Audio: 32 a second, video: 263.
    """
    if thing.kind == "image":
        return _image(thing)
    if thing.kind in _SECOND_BYTES:
        seconds = _UNKNOWN_SECONDS
        if thing.size is not None:
            seconds = max(1, math.ceil(thing.size / _SECOND_BYTES[thing.kind]))
        return seconds * _SECOND_TOKENS[thing.kind]
    pages = max(1, math.ceil((thing.size or 0) / _PAGE_BYTES))
    return pages * _PAGE_TOKENS


def _image(thing: Media) -> int:
    if thing.detail == "low":
        return _LOW_DETAIL
    width = thing.width or _UNKNOWN_SIDE
    height = thing.height or _UNKNOWN_SIDE
    if thing.by_area:
        return max(1, min(math.ceil(width * height / _AREA_PER_TOKEN), _AREA_LIMIT))
    shrink = min(1.0, 2048 / max(width, height))
    shrink = min(shrink, 768 / min(width, height))
    tiles = math.ceil(width * shrink / 512) * math.ceil(height * shrink / 512)
    return _LOW_DETAIL + _TILE * max(1, tiles)
