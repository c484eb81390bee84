"""The check of preserved thinking: a signed block is only valid behind its own prefix.

The prefix is the system prompt, the tools and all earlier messages. Cache marks do not count.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from muntin.testing.wire.anthropic import joined_turns
from muntin.testing.wire.refused import block_of, blocks_of, listed, refuse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ("BoundThinking",)


class BoundThinking:
    """Remember behind which prefix signed thinking was written, and refuse it behind another.

    ```python
    from muntin.testing import BoundThinking, RequestRefused

    bound = BoundThinking()
    body = {"system": "Be brief.", "messages": [{"role": "user", "content": "Hi"}]}
    block = bound.sign(body, "A greeting.")
    answer = {"role": "assistant", "content": [block]}
    bound.check({**body, "messages": [*body["messages"], answer]})
    try:
        bound.check({"messages": [answer]})
    except RequestRefused as refused:
        print(refused.code)
    #> thinking_bound
    ```
    """

    def __init__(self) -> None:
        self._prefixes: dict[str, str] = {}

    def sign(self, body: Mapping[str, Any], text: str) -> dict[str, str]:
        """Return a thinking block that is valid as the next thing after this request."""
        prefix = _digest(body, blocks_of(body.get("messages")))
        signature = blake2b(f"{prefix}{len(self._prefixes)}".encode(), digest_size=12).hexdigest()
        self._prefixes[signature] = prefix
        return {"type": "thinking", "thinking": text, "signature": signature}

    def check(self, body: Mapping[str, Any]) -> None:
        """Refuse a request that holds a block this object signed behind another prefix.

        Raises:
            RequestRefused: With the provider's text.
        """
        messages = blocks_of(body.get("messages"))
        for index, message in enumerate(messages):
            for at, block in enumerate(blocks_of(message.get("content"))):
                bound = self._prefixes.get(str(block.get("signature")))
                if bound is not None and bound != _digest(body, messages[:index]):
                    raise refuse(
                        "thinking_bound",
                        index,
                        f"messages.{index}.content.{at}: Invalid "
                        f"`signature` in `thinking` block. The block is bound to a "
                        f"different conversation.",
                    )


def _digest(body: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> str:
    """Digest what precedes a message; cache marks do not count, nor how texts are wrapped."""
    turns = [(role, _plain(blocks)) for _, role, blocks in joined_turns(messages)]
    system = body.get("system") or ""
    texts = [block.get("text") for block in blocks_of(system)] if listed(system) else [system]
    told = json.dumps([texts, _plain(body.get("tools") or []), turns], sort_keys=True, default=str)
    return blake2b(told.encode(), digest_size=12).hexdigest()


def _plain(value: Any) -> Any:
    children = listed(value)
    if children is not None:
        return [_plain(one) for one in children]
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in block_of(value).items() if key != "cache_control"}
    return value
