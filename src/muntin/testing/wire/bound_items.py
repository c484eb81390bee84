"""The check of OpenAI's reasoning items: an item behind a changed prefix is left out in silence.

The prefix is the tools, the format of the answer and all items before it; the newest compaction
item begins a new one. The server answers as if nothing had happened and lists what it left out in
`input_transformations`.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from muntin.testing.wire.refused import block_of, blocks_of, listed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ("BoundItems",)

_ASIDE = ("id", "status")
"""Keys that clients add and leave out; they are not compared."""


class BoundItems:
    """Remember behind which items reasoning was written, and report what is left out.

    ```python
    from muntin.testing import BoundItems

    bound = BoundItems()
    body = {"model": "gpt-6.2-sol", "input": [{"role": "user", "content": "Hi"}]}
    item = bound.write(body, "A greeting.")
    print(bound.transformations({**body, "input": [*body["input"], item]}))
    #> []
    print(bound.transformations({**body, "input": [item]})[0]["reason"])
    #> prefix_mismatch
    ```
    """

    def __init__(self) -> None:
        self._written: dict[str, tuple[str, str]] = {}

    @property
    def written(self) -> int:
        """How many items were written."""
        return len(self._written)

    def write(self, body: Mapping[str, Any], text: str) -> dict[str, Any]:
        """Return a reasoning item that is valid as the next thing after this request."""
        identifier = f"rs_{len(self._written)}"
        prefix = _digest(body, _from_compaction(_items(body)))
        self._written[identifier] = (prefix, str(body.get("model") or ""))
        return {
            "type": "reasoning",
            "id": identifier,
            "summary": [{"type": "summary_text", "text": text}],
            "encrypted_content": f"gAAA{identifier}",
        }

    def sent(self, body: Mapping[str, Any]) -> int:
        """Return how many items of this object a request holds."""
        return sum(str(item.get("id")) in self._written for item in _items(body))

    def transformations(self, body: Mapping[str, Any]) -> list[dict[str, Any]]:
        """List the reasoning items that the server leaves out, with the reason."""
        items = _from_compaction(_items(body))
        out: list[dict[str, Any]] = []
        for index, item in enumerate(items):
            written = self._written.get(str(item.get("id")))
            if item.get("type") != "reasoning" or written is None:
                continue
            prefix, model = written
            reason = ""
            if prefix != _digest(body, items[:index]):
                reason = "prefix_mismatch"
            elif model and model != str(body.get("model") or ""):
                reason = "model_mismatch"
            if reason:
                removed = {"type": "reasoning", "id": item["id"], "action": "removed"}
                out.append({**removed, "reason": reason})
        return out


def _items(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    given = body.get("input")
    return [{"role": "user", "content": given}] if isinstance(given, str) else blocks_of(given)


def _from_compaction(items: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    for index in range(len(items) - 1, -1, -1):
        if items[index].get("type") == "compaction" and items[index].get("encrypted_content"):
            return list(items[index:])
    return list(items)


def _digest(body: Mapping[str, Any], items: Sequence[Mapping[str, Any]]) -> str:
    digest = blake2b(digest_size=12)
    for part in (body.get("tools"), body.get("text"), [_plain(item) for item in items]):
        digest.update(json.dumps(part or "", sort_keys=True, default=str).encode())
    return digest.hexdigest()


def _plain(value: Any) -> Any:
    """Return an item as it is compared: texts unwrapped, without ids and kinds of message."""
    children = listed(value)
    if children is not None:
        return [_plain(one) for one in children]
    if not isinstance(value, dict):
        return value
    given = block_of(value)
    kept = {key: _plain(one) for key, one in given.items() if key not in _ASIDE}
    if kept.get("type") == "message":
        del kept["type"]
    content = given.get("content")
    if "role" in given and isinstance(content, str):
        kept["content"] = [content]
    elif "role" in given:
        kept["content"] = [block.get("text", _plain(block)) for block in blocks_of(content)]
    return kept
