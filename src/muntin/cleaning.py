"""Repair messages that cannot be written as UTF-8.

A lone surrogate is half a character: legal in a `str`, impossible in a request. It becomes U+FFFD,
in copies; a conversation without any comes back as the same object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from muntin.segmentation import clean_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muntin.measured import Conversation, Measured
    from muntin.message_counts import MessageCounts

__all__ = ("clean_messages",)


def clean_messages(
    messages: Sequence[Any], counts: MessageCounts
) -> tuple[Sequence[Any], Conversation]:
    """Replace messages that hold lone surrogates, and measure all on the way.

    Returns:
        The messages (the same object when there was nothing to replace), and what they cost.
    """
    read = counts.read(messages)
    if read.is_encodable:
        return messages, read
    clean = [
        message if one.is_encodable else _cleaned(message, one)
        for message, one in zip(messages, read.measured, strict=True)
    ]
    return clean, counts.read(clean)


def _cleaned(message: Any, measured: Measured) -> Any:
    if isinstance(message, dict):
        return _clean(cast("dict[Any, Any]", message))
    view, shape = measured.view, measured.shape
    if view.text != clean_text(view.text):
        message = shape.with_text(message, clean_text(view.text))
    texts = {result.call_id: clean_text(result.text) for result in view.results}
    return shape.with_results(message, cast("dict[str, str | None]", texts)) if texts else message


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {_clean(key): _clean(part) for key, part in cast("dict[Any, Any]", value).items()}
    if isinstance(value, list):
        return [_clean(part) for part in cast("list[Any]", value)]
    return value
