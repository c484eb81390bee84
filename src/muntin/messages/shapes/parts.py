"""Read the parts of a Gemini message as the blocks they correspond to.

Both spellings are read: `function_call` as the Python client writes it, `functionCall` as it is
sent. A call without an id gets one from its name and its position among the calls of that name.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, cast

from muntin.messages.message import UNNAMED
from muntin.messages.shapes.blocks import as_block, canonical_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from muntin.messages.message import Block
    from muntin.messages.shapes.views import MediaKind

__all__ = ("SAID", "held_in", "identified", "parts_as_blocks", "response_of")

SAID = ("result", "output", "error")
"""Keys under which a response holds nothing but a text."""
_KINDS: dict[str, MediaKind] = {"image": "image", "audio": "audio", "video": "video"}


def parts_as_blocks(message: Mapping[str, Any]) -> list[Any]:
    """Return the parts of a message as the blocks they correspond to."""
    return [_block_of(part, identifier) for part, identifier in identified(message)]


def held_in(part: Any, *keys: str) -> tuple[str, Block | None]:
    """Return the key and the value that a part holds, in either spelling."""
    block = as_block(part) or {}
    for key in keys:
        held = as_block(block.get(key))
        if held is not None:
            return key, held
    return "", None


def response_of(response: Block) -> Block:
    """Return what a function response holds."""
    return as_block(response.get("response")) or {}


def identified(message: Mapping[str, Any]) -> Iterator[tuple[Any, str]]:
    """List the parts, each call and response with the id it is known by."""
    met: Counter[tuple[str, str]] = Counter()
    for part in cast("Sequence[Any]", message["parts"]):
        identifier = ""
        for kind in ("call", "response"):
            _, held = held_in(part, f"function_{kind}", f"function{kind.title()}")
            if held is None:
                continue
            name = str(held.get("name") or "")
            met[kind, name] += 1
            same = met[kind, name]
            unnamed = f"{UNNAMED}{name}" if same == 1 else f"{UNNAMED}{name}#{same}"
            identifier = str(held.get("id") or unnamed)
        yield part, identifier


def _block_of(part: Any, identifier: str) -> Any:
    """Write a part as the block it corresponds to."""
    block = as_block(part)
    if block is None:
        return part
    sealed = block.get("thought_signature") or block.get("thoughtSignature")
    _, call = held_in(part, "function_call", "functionCall")
    if call is not None:
        return {
            "type": "tool_use", "id": identifier, "name": call.get("name"),
            "input": call.get("args") or {},
        }  # fmt: skip
    _, response = held_in(part, "function_response", "functionResponse")
    if response is not None:
        content = _text_of(response_of(response))
        failed = set(response_of(response)) == {"error"}
        return {
            "type": "tool_result", "tool_use_id": identifier, "content": content,
            "is_error": failed,
        }  # fmt: skip
    if isinstance(block.get("text"), str):
        if block.get("thought"):
            return {"type": "thinking", "thinking": block["text"], "signature": sealed}
        return {"type": "text", "text": block["text"]}
    for keys, place in (
        (("inline_data", "inlineData"), "data"),
        (("file_data", "fileData"), "url"),
    ):
        _, held = held_in(part, *keys)
        if held is not None:
            label = str(held.get("mime_type") or held.get("mimeType") or "")
            data = held.get("data") or held.get("file_uri") or held.get("fileUri")
            kind = _KINDS.get(label.partition("/")[0], "document")
            return {"type": kind, place: data, "media_type": label}
    return {"type": next(iter(block), "untyped"), **block}


def _text_of(response: Block) -> str:
    """Read a response: its text where it is nothing else, JSON otherwise."""
    if len(response) == 1:
        key, only = next(iter(response.items()))
        if key in SAID and isinstance(only, str):
            return only
    return canonical_json(response)
