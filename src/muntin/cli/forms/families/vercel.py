"""Messages of the Vercel AI SDK: what its user interface stores, and what it sends to a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from muntin.cli.forms.blocks import BlocksKind
from muntin.cli.forms.message import Kind, NewResults, Raw, as_record
from muntin.messages import ANTHROPIC, canonical_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from muntin.messages import MessageView, Role, ToolCall

__all__ = ("VERCEL_KINDS",)

_DONE = frozenset({"output-available", "output-error", "result", "output-denied"})


class _ModelKind(BlocksKind):
    """Read `ModelMessage`s (version 5) and `CoreMessage`s (version 4)."""

    name = "vercel-model"

    def owns(self, raw: Raw) -> bool:
        content = raw.get("content")
        return "role" in raw and isinstance(content, (str, list))

    def owns_all(self, raws: Sequence[Raw]) -> bool:
        """Return whether the records are messages of a model and one of them gives it away."""
        if not all(map(self.owns, raws)):
            return False
        parts = [
            as_record(part) or {}
            for raw in raws
            if isinstance(raw["content"], list)
            for part in cast("list[Any]", raw["content"])
        ]
        kinds = {str(part.get("type")) for part in parts}
        return bool(kinds & {"tool-call", "tool-result"})

    def opened(self, part: Raw) -> Any:
        kind = part.get("type")
        if kind == "tool-call":
            given = part.get("input", part.get("args"))
            return {"type": "tool_use", "id": part.get("toolCallId"), "name": part.get("toolName"),
                    "input": given}  # fmt: skip
        if kind == "tool-result":
            return {"type": "tool_result", "tool_use_id": part.get("toolCallId"),
                    "content": _value_text(part.get("output", part.get("result"))),
                    "is_error": bool(part.get("isError"))}  # fmt: skip
        return _opened(part)

    def closed(self, part: Raw, text: str) -> Raw:
        if "result" in part:
            return {**part, "result": text}
        output = as_record(part.get("output"))
        if output is not None and "value" in output:
            failed = str(output.get("type")).startswith("error")
            return {**part, "output": {"type": "error-text" if failed else "text", "value": text}}
        return {**part, "output": text}

    def result_part(self, call: ToolCall, text: str) -> Raw:
        return {"type": "tool-result", "toolCallId": call.id, "toolName": call.name,
                "output": {"type": "text", "value": text}}  # fmt: skip

    def note(self, text: str, role: Role) -> Raw:
        return {"role": role, "content": text}


def _opened(part: Raw) -> Any:
    """Write any other part as a block; None for a part that is never sent."""
    kind = str(part.get("type"))
    if kind == "reasoning":
        return {"type": "thinking", "thinking": part.get("text") or part.get("reasoning") or ""}
    if kind == "file":
        label = str(part.get("mediaType") or part.get("mimeType") or "")
        known = label.partition("/")[0]
        return {"type": known if known in ("image", "audio", "video") else "document",
                "url": part.get("url") or part.get("data"), "media_type": label}  # fmt: skip
    if kind == "image":
        return {"type": "image", "url": part.get("image")}
    if kind in ("step-start", "source", "source-url", "source-document") or kind.startswith(
        "data-"
    ):
        return None
    return part


def _value_text(value: Any) -> str:
    """Read what a tool returned: its text where it is nothing else, JSON otherwise."""
    held = as_record(value)
    if held is not None and "value" in held and "type" in held:
        value = held["value"]
    if isinstance(value, str):
        return value
    return "" if value is None else canonical_json(value)


def _tool_of(part: Raw) -> Raw | None:
    """Return id, name, input and output of a tool part; None for other parts."""
    kind = str(part.get("type"))
    if kind == "tool-invocation":
        held = as_record(part.get("toolInvocation")) or {}
        return {"id": held.get("toolCallId"), "name": held.get("toolName"),
                "input": held.get("args"), "output": held.get("result"),
                "done": held.get("state") in _DONE}  # fmt: skip
    if kind == "dynamic-tool" or (kind.startswith("tool-") and "toolCallId" in part):
        name = part.get("toolName") if kind == "dynamic-tool" else kind.removeprefix("tool-")
        output = part.get("errorText") if part.get("state") == "output-error" \
            else part.get("output")  # fmt: skip
        return {"id": part.get("toolCallId"), "name": name, "input": part.get("input"),
                "output": output, "done": part.get("state") in _DONE,
                "is_error": part.get("state") == "output-error"}  # fmt: skip
    return None


def _with_output(part: Raw, text: str) -> Raw:
    if part.get("type") == "tool-invocation":
        return {**part, "toolInvocation": {**part["toolInvocation"], "result": text}}
    key = "errorText" if part.get("state") == "output-error" else "output"
    return {**part, key: text}


_RESULT = "toolResultPart"
"""Key of the piece of a record that is the result of one call."""


class _UIKind(Kind):
    """Read `UIMessage`s, in which a call and its result are one part."""

    name = "vercel-ui"

    def owns(self, raw: Raw) -> bool:
        if "role" not in raw:
            return False
        parts = raw.get("parts")
        if isinstance(parts, list):
            return all("type" in (as_record(part) or {}) for part in cast("list[Any]", parts))
        return isinstance(raw.get("content"), str)

    def owns_all(self, raws: Sequence[Raw]) -> bool:
        """Return whether the records are messages and one of them gives the user interface away."""
        mark = any(isinstance(raw.get("parts"), list) or "toolInvocations" in raw for raw in raws)
        return mark and all(map(self.owns, raws))

    def view(self, raw: Raw, links: tuple[str, ...]) -> MessageView:
        del links
        result = as_record(raw.get(_RESULT))
        if result is not None:
            tool = _tool_of(result) or {}
            block = {"type": "tool_result", "tool_use_id": tool.get("id"),
                     "content": _value_text(tool.get("output")),
                     "is_error": bool(tool.get("is_error"))}  # fmt: skip
            return ANTHROPIC.view({"role": "user", "content": [block]})
        blocks: list[Any] = []
        for part in _parts(raw):
            tool = _tool_of(part)
            if tool is None:
                block = _opened(part)
                blocks += [] if block is None else [block]
            elif tool["done"]:
                blocks.append({"type": "tool_use", "id": tool["id"], "name": tool["name"],
                               "input": tool["input"]})  # fmt: skip
        return ANTHROPIC.view({"role": raw.get("role"), "content": blocks, "id": raw.get("id")})

    def with_text(self, raw: Raw, text: str) -> Raw:
        kept: list[Raw] = []
        placed = False
        for part in _parts(raw):
            if part.get("type") != "text":
                kept.append(part)
            elif not placed:
                kept.append({**part, "text": text})
                placed = True
        kept = kept if placed else [{"type": "text", "text": text}, *kept]
        return _with_parts(raw, kept)

    def with_results(self, raw: Raw, links: tuple[str, ...], new: NewResults) -> Raw:
        del links
        result = as_record(raw.get(_RESULT))
        text = None if result is None else new.texts.get(str((_tool_of(result) or {}).get("id")))
        if result is None or text is None:
            return raw
        return {**raw, _RESULT: _with_output(result, text)}

    def note(self, text: str, role: Role) -> Raw:
        return {"id": f"note-{len(text)}", "role": role, "parts": [{"type": "text", "text": text}]}

    def answer(self, call: ToolCall, text: str) -> Raw:
        # A call without an output has no part of its own to put the answer into.
        return self.note(f"{call.name}: {text}", "user")

    def split(self, raw: Raw) -> list[Raw]:
        parts = _parts(raw)
        if not any((_tool_of(part) or {}).get("done") for part in parts):
            return [raw]
        pieces: list[Raw] = []
        for group, tools in _groups(parts):
            pieces.append(_with_parts(raw, group))
            pieces += [{"role": "tool", _RESULT: part} for part in tools]
        return pieces

    def join(self, original: Raw, pieces: Mapping[int, Raw]) -> Raw:
        groups = _groups(_parts(original))
        if len(groups) == 1 and not groups[0][1]:
            return pieces[0]
        kept: list[Raw] = []
        n = 0
        for _, tools in groups:
            group = pieces.get(n)
            results = {
                str((_tool_of(part) or {}).get("id")): pieces.get(n + 1 + at)
                for at, part in enumerate(tools)
            }
            n += 1 + len(tools)
            if group is None:
                continue
            for part in _parts(group):
                tool = _tool_of(part)
                result = None if tool is None else results.get(str(tool.get("id")))
                kept.append(part if result is None else cast("Raw", result[_RESULT]))
        return _with_parts(original, kept)


def _parts(raw: Raw) -> list[Raw]:
    """Return the parts of a message; a message without any is read as the parts it would have."""
    if isinstance(raw.get("parts"), list):
        return cast("list[Raw]", raw["parts"])
    calls = cast("list[Raw]", raw.get("toolInvocations") or [])
    parts: list[Raw] = [{"type": "tool-invocation", "toolInvocation": call} for call in calls]
    content = raw.get("content")
    return [*parts, {"type": "text", "text": content}] if content else parts


def _with_parts(raw: Raw, parts: list[Raw]) -> Raw:
    """Copy a message with other parts, under the keys it has."""
    changed = dict(raw)
    if isinstance(raw.get("parts"), list):
        changed["parts"] = parts
    if isinstance(raw.get("content"), str):
        changed["content"] = "\n".join(p["text"] for p in parts if p.get("type") == "text")
    if "toolInvocations" in raw:
        changed["toolInvocations"] = [
            part["toolInvocation"] for part in parts if part.get("type") == "tool-invocation"
        ]
    return changed


def _groups(parts: Sequence[Raw]) -> list[tuple[list[Raw], list[Raw]]]:
    """Divide parts into model turns: text and calls, and the calls that have results."""
    groups: list[tuple[list[Raw], list[Raw]]] = [([], [])]
    for part in parts:
        tool = _tool_of(part)
        if tool is None and groups[-1][1]:
            groups.append(([], []))
        groups[-1][0].append(part)
        if tool is not None and tool["done"]:
            groups[-1][1].append(part)
    return groups


VERCEL_KINDS = (_UIKind(), _ModelKind())
"""The kinds of the SDK, the most particular first."""
