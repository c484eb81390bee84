"""Find bound reasoning in a message of any form, and make copies of the message without it.

Empty thinking with a signature is complete and counts as reasoning. Thinking without a signature,
`reasoning_content` and the signatures on Gemini's calls are not bound: they must be sent.
"""

from __future__ import annotations

from dataclasses import is_dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from muntin.messages.blanks import is_blank
from muntin.messages.shapes import shape_of
from muntin.messages.shapes.blocks import as_block

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from muntin.messages.bound.models import Rule

    Taken = Callable[[Rule], bool]
    """Whether reasoning of a kind is taken out."""

__all__ = ("FOLLOWERS", "holds_bound", "model_of", "rule_of_item", "without_bound", "without_id")

FOLLOWERS = frozenset({"message", "function_call", "custom_tool_call"})
"""Items of Responses that are written together with the reasoning before them."""
_CONTENT = ("content", "blocks", "parts")
"""Where messages of the known forms keep their blocks."""
_INNER = ("raw", "message", "payload")
"""Where records keep a message of a provider."""
_CALL_IDS = "__openai_function_call_ids__"
"""Key under which LangChain keeps the ids of items next to the calls."""
_BY_POSITION = "thought_signatures"
"""Key under which LlamaIndex keeps Gemini's signatures, one for each block."""
_MODEL_KEYS = ("model_name", "model", "model_id")
_SERVER_IDS = ("msg_", "fc_", "ctc_")


def holds_bound(message: Any) -> Rule | None:
    """Return which kind of bound reasoning a message holds; `None` if it holds none.

    ```python
    from muntin.messages import holds_bound

    block = {"type": "thinking", "thinking": "", "signature": "s1"}
    print(holds_bound({"role": "assistant", "content": [block]}))
    #> signed
    print(holds_bound({"role": "assistant", "content": "Hm.", "reasoning_content": "Plain."}))
    #> None
    ```
    """
    found: list[Rule] = []

    def note(rule: Rule) -> bool:
        found.append(rule)
        return False

    whole = rule_of_item(message)
    if whole is not None:
        return whole
    without_bound(message, note)
    return found[0] if found else None


def rule_of_item(message: Any) -> Rule | None:
    """Return the kind of a message that is reasoning as a whole, an item of Responses."""
    item = as_block(message)
    if item is None:
        item = as_block(getattr(message, "raw", None))
        inner = None if item is None else as_block(item.get("payload"))
        item = inner or item
    if item is None or "role" in item or item.get("type") != "reasoning":
        return None
    return "items" if item.get("encrypted_content") or item.get("id") else None


def model_of(message: Any) -> str | None:
    """Return the name of the model that wrote a message, as far as the message holds it."""
    item = as_block(message)
    if item is not None:
        name = item.get("model")
    else:
        beside = as_block(getattr(message, "response_metadata", None)) or {}
        name = next((beside[key] for key in _MODEL_KEYS if beside.get(key)), None)
        name = name or getattr(message, "model_name", None)
    return name if isinstance(name, str) else None


def without_bound(message: Any, taken: Taken) -> tuple[Any, int]:
    """Return a copy of a message without bound reasoning, and how many blocks were taken out.

    Args:
        message: The message. Not changed.
        taken: Whether reasoning of a kind is taken out.
    """
    item = as_block(message)
    if item is not None:
        return _of_dict(item, taken)
    raw = as_block(getattr(message, "raw", None))
    if raw is not None and is_dataclass(message) and not isinstance(message, type):
        changed, gone = _of_dict(raw, taken)
        return (replace(cast("Any", message), raw=changed), gone) if gone else (message, 0)
    for key in _CONTENT:
        content: Any = getattr(message, key, None)
        if isinstance(content, (list, tuple)):
            return _of_object(message, key, list(cast("Sequence[Any]", content)), taken)
    return _of_object(message, "content", None, taken)


def without_id(item: Any) -> Any:
    """Return an item or block without the id that the server gave it with its reasoning."""
    given = as_block(item)
    if given is not None and str(given.get("id") or "").startswith(_SERVER_IDS):
        return {key: one for key, one in given.items() if key != "id"}
    return item


def is_emptied(message: Any) -> bool:
    """Return whether nothing is left of a message to send."""
    return is_blank(shape_of(message).view(message))


def _of_dict(item: Any, taken: Taken) -> tuple[Any, int]:
    for key in _INNER:
        inner = as_block(item.get(key))
        if inner is not None:
            changed, gone = _of_dict(inner, taken)
            return ({**item, key: changed}, gone) if gone else (item, 0)
    for key in _CONTENT:
        content = item.get(key)
        if isinstance(content, (list, tuple)):
            kept, gone = _of_blocks(list(cast("Sequence[Any]", content)), taken)
            return ({**item, key: kept}, gone) if gone else (item, 0)
    return item, 0


def _of_object(message: Any, key: str, blocks: list[Any] | None, taken: Taken) -> tuple[Any, int]:
    changed: dict[str, Any] = {}
    kept, gone = (blocks, 0) if blocks is None else _of_blocks(blocks, taken)
    if gone:
        changed[key] = kept
    beside = as_block(getattr(message, "additional_kwargs", None))
    if beside is not None:
        signatures = beside.get(_BY_POSITION)
        if gone and isinstance(signatures, list):
            listed = cast("list[Any]", signatures)
            signed = {id(one): sign for one, sign in zip(blocks or (), listed, strict=False)}
            beside = {**beside, _BY_POSITION: [signed.get(id(block)) for block in kept or ()]}
        reasoning = as_block(beside.get("reasoning"))
        is_item = reasoning is not None and (reasoning.get("id") or _has_seal(reasoning))
        if is_item and taken("items"):
            beside = {name: one for name, one in beside.items() if name != "reasoning"}
            gone += 1
        if gone and _CALL_IDS in beside:
            beside = {name: one for name, one in beside.items() if name != _CALL_IDS}
        if beside is not message.additional_kwargs:
            changed["additional_kwargs"] = beside
    if not gone:
        return message, 0
    if hasattr(message, "model_copy"):
        return message.model_copy(update=changed), gone
    if is_dataclass(message) and not isinstance(message, type):
        return replace(cast("Any", message), **changed), gone
    return message, 0


def _of_blocks(blocks: list[Any], taken: Taken) -> tuple[list[Any], int]:
    """Return the blocks without bound reasoning; ids that were given with it go as well."""
    rules: list[Rule | None] = [_rule(block) for block in blocks]
    out = [rule is not None and taken(rule) for rule in rules]
    kept = [block for block, is_out in zip(blocks, out, strict=True) if not is_out]
    if any(is_out and rule == "items" for rule, is_out in zip(rules, out, strict=True)):
        kept = [without_id(block) for block in kept]
    return kept, sum(out)


def _rule(block: Any) -> Rule | None:
    """Return the kind of bound reasoning in one block; `None` for every other block."""
    given = as_block(block)
    if given is None:
        return _rule_of_object(block)
    if given.get("type") == "non_standard":
        return _rule(given.get("value"))
    bedrock = as_block(given.get("reasoningContent") or given.get("reasoning_content"))
    if bedrock is not None:
        told = as_block(bedrock.get("reasoningText")) or bedrock
        return "signed" if told.get("signature") or bedrock.get("redactedContent") else None
    kind = given.get("type")
    if kind in ("thinking", "redacted_thinking"):
        return "signed" if given.get("signature") or given.get("data") else None
    if kind != "reasoning":
        return None
    beside = as_block(given.get("extras")) or {}
    options = given.get("providerMetadata") or given.get("providerOptions")
    for told in map(_mapping, (as_block(options) or {}).values()):
        if told.get("signature") or told.get("redactedData"):
            return "signed"
        if told.get("itemId") or told.get("reasoningEncryptedContent"):
            return "items"
    if given.get("signature") or beside.get("signature"):
        return "signed"
    return "items" if given.get("id") or _has_seal(given) or _has_seal(beside) else None


def _rule_of_object(block: Any) -> Rule | None:
    """Read a block that is an object: of LlamaIndex, or a part of Pydantic AI."""
    if getattr(block, "block_type", None) == "thinking":
        told = as_block(getattr(block, "additional_information", None)) or {}
        if told.get("signature") or told.get("redacted") or told.get("data"):
            return "signed"
        return "items" if told.get("id") or _has_seal(told) else None
    if getattr(block, "part_kind", None) == "thinking":
        if getattr(block, "provider_name", None) == "openai":
            return "items"
        return "signed" if getattr(block, "signature", None) else None
    return None


def _mapping(value: Any) -> Any:
    return as_block(value) or {}


def _has_seal(block: Any) -> bool:
    return bool(block.get("encrypted_content"))
