"""The check of preserved thinking: a signed block is only valid behind its own prefix.

The prefix is the system prompt, the tools and all earlier messages, from the newest compaction
block on. Cache marks do not count, and neither do thinking blocks that were taken out from the
front of their chain; a block that is missing between others makes the later ones invalid.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from muntin.testing.wire.anthropic import joined_turns
from muntin.testing.wire.refused import block_of, blocks_of, listed, refuse

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ("BoundThinking",)

_THINKING = ("thinking", "redacted_thinking")


@dataclass(frozen=True, slots=True)
class _Written:
    """What a block was written behind."""

    prefix: str
    chain: tuple[str, ...]
    """Signatures of the blocks before it."""
    model: str


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
        self._written: dict[str, _Written] = {}

    @property
    def written(self) -> int:
        """How many blocks were signed."""
        return len(self._written)

    def sign(self, body: Mapping[str, Any], text: str) -> dict[str, str]:
        """Return a thinking block that is valid as the next thing after this request."""
        messages = _from_compaction(blocks_of(body.get("messages")))
        written = _Written(_digest(body, messages), _chain(messages), str(body.get("model") or ""))
        seed = f"{written.prefix}{len(self._written)}"
        signature = blake2b(seed.encode(), digest_size=12).hexdigest()
        self._written[signature] = written
        return {"type": "thinking", "thinking": text, "signature": signature}

    def sent(self, body: Mapping[str, Any]) -> int:
        """Return how many blocks of this object a request holds."""
        chain = _chain(_from_compaction(blocks_of(body.get("messages"))))
        return sum(signature in self._written for signature in chain)

    def dropped(self, body: Mapping[str, Any]) -> int:
        """Return how many blocks another model wrote, which the API leaves out without an error."""
        model = str(body.get("model") or "")
        chain = _chain(_from_compaction(blocks_of(body.get("messages"))))
        written = [self._written[one] for one in chain if one in self._written]
        return sum(bool(one.model) and one.model != model for one in written)

    def stale(self, body: Mapping[str, Any]) -> int:
        """Return how many blocks of a request were signed behind another prefix."""
        return sum(1 for _ in self._stale(body))

    def check(self, body: Mapping[str, Any]) -> None:
        """Refuse a request that holds a block this object signed behind another prefix.

        Raises:
            RequestRefused: With the provider's text.
        """
        for index, at in self._stale(body):
            raise refuse(
                "thinking_bound",
                index,
                f"messages.{index}.content.{at}: Invalid `signature` in `thinking` block. The "
                f"block is bound to a different conversation.",
            )

    def _stale(self, body: Mapping[str, Any]) -> Iterator[tuple[int, int]]:
        """Yield the positions of blocks behind another prefix: message and block."""
        messages = _from_compaction(blocks_of(body.get("messages")))
        for index, message in enumerate(messages):
            for at, block in enumerate(blocks_of(message.get("content"))):
                written = self._written.get(str(block.get("signature")))
                if written is None or (written.model and written.model != body.get("model")):
                    continue
                chain = _chain([*messages[:index], _until(message, at)])
                follows = chain == written.chain[len(written.chain) - len(chain) :]
                if not follows or written.prefix != _digest(body, messages[:index]):
                    yield index, at


def _from_compaction(messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Leave out what the server ignores: all that precedes the newest compaction block."""
    for index in range(len(messages) - 1, -1, -1):
        blocks = blocks_of(messages[index].get("content"))
        for at in range(len(blocks) - 1, -1, -1):
            if blocks[at].get("type") == "compaction" and blocks[at].get("content"):
                return [{**messages[index], "content": blocks[at:]}, *messages[index + 1 :]]
    return list(messages)


def _until(message: Mapping[str, Any], at: int) -> Mapping[str, Any]:
    return {**message, "content": blocks_of(message.get("content"))[:at]}


def _chain(messages: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """List the signatures of all thinking blocks, in order."""
    return tuple(
        str(block.get("signature") or block.get("data"))
        for message in messages
        for block in blocks_of(message.get("content"))
        if block.get("type") in _THINKING
    )


def _digest(body: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> str:
    """Digest what precedes a message, without thinking, cache marks and the wrapping of texts."""
    turns = [(role, _plain(_spoken(blocks))) for _, role, blocks in joined_turns(messages)]
    turns = [turn for turn in turns if turn[1]]
    system = body.get("system") or ""
    texts = [block.get("text") for block in blocks_of(system)] if listed(system) else [system]
    told = json.dumps([texts, _plain(body.get("tools") or []), turns], sort_keys=True, default=str)
    return blake2b(told.encode(), digest_size=12).hexdigest()


def _spoken(blocks: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [block for block in blocks if block.get("type") not in _THINKING]


def _plain(value: Any) -> Any:
    children = listed(value)
    if children is not None:
        return [_plain(one) for one in children]
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in block_of(value).items() if key != "cache_control"}
    return value
