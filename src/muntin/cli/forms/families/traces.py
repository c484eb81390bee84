"""Logs of inspect and spans of OpenTelemetry."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from muntin.cli.forms.blocks import BlocksKind
from muntin.cli.forms.families.providers import inside
from muntin.cli.forms.form import Form, Place
from muntin.cli.forms.message import PlainKind, Raw, as_record, texts_of
from muntin.messages import canonical_json, replace_result, replace_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from muntin.cli.forms.form import Key
    from muntin.messages import Role, ToolCall

__all__ = ("TRACES",)


class _InspectKind(PlainKind):
    """Read the messages of a sample: a call names its function as a text."""

    name = "inspect"

    def owns(self, raw: Raw) -> bool:
        return "role" in raw and "content" in raw

    def plain(self, raw: Raw, links: tuple[str, ...]) -> Raw:
        del links
        calls = [
            {"id": call.get("id"), "name": call.get("function"), "args": call.get("arguments")}
            for call in cast("list[Raw]", raw.get("tool_calls") or [])
        ]
        return {"role": raw["role"], "content": raw["content"], "tool_calls": calls,
                "tool_call_id": raw.get("tool_call_id"), "id": raw.get("id")}  # fmt: skip

    def put(self, raw: Raw, text: str) -> Raw:
        return {**raw, "content": replace_text(raw["content"], text)}

    def put_result(self, raw: Raw, text: str, *, bare: bool) -> Raw:
        return {**raw, "content": replace_result(raw["content"], text, bare=bare)}

    def made(self, role: Role, text: str, call: ToolCall | None = None) -> Raw:
        made: Raw = {"role": role, "content": text}
        return made if call is None else {**made, "tool_call_id": call.id, "function": call.name}


_INSPECT = _InspectKind()


def _inspect(document: Any) -> list[Place]:
    known = as_record(document) or {}
    samples = known.get("samples")
    if isinstance(samples, list) and "eval" in known:
        found: list[Place] = []
        for n, sample in enumerate(cast("list[Any]", samples)):
            found += inside(_sample(sample), "samples", n)
        return found
    return _sample(known) if "epoch" in known else []


def _sample(value: Any) -> list[Place]:
    sample = as_record(value) or {}
    messages = sample.get("messages")
    if not isinstance(messages, list) or not messages:
        return []
    if not all(_INSPECT.owns(as_record(one) or {}) for one in cast("list[Any]", messages)):
        return []
    label = f"sample {sample.get('id')}, epoch {sample.get('epoch', 1)}"
    return [Place(kind=_INSPECT, path=("messages",), label=label)]


class _SpanKind(BlocksKind):
    """Read messages of the GenAI conventions: a role and parts."""

    name = "otel"
    key = "parts"
    text_key = "content"

    def owns(self, raw: Raw) -> bool:
        return "role" in raw and isinstance(raw.get("parts"), list)

    def opened(self, part: Raw) -> Any:
        kind = part.get("type")
        if kind == "text":
            return {"type": "text", "text": part.get("content")}
        if kind == "reasoning":
            return {"type": "thinking", "thinking": part.get("content")}
        if kind == "tool_call":
            return {"type": "tool_use", "id": part.get("id"), "name": part.get("name"),
                    "input": part.get("arguments")}  # fmt: skip
        if kind == "tool_call_response":
            held = part.get("response", part.get("result"))
            text = held if isinstance(held, str) else canonical_json(held)
            return {"type": "tool_result", "tool_use_id": part.get("id"), "content": text}
        if kind in ("blob", "uri", "file"):
            return {"type": str(part.get("modality") or "file"), "url": part.get("uri"),
                    "data": part.get("content"), "media_type": part.get("mime_type")}  # fmt: skip
        return part

    def closed(self, part: Raw, text: str) -> Raw:
        return {**part, "response" if "response" in part else "result": text}

    def result_part(self, call: ToolCall, text: str) -> Raw:
        return {"type": "tool_call_response", "id": call.id, "response": text}


_SPAN = _SpanKind()
_MESSAGES, _PROMPT = "gen_ai.input.messages", "gen_ai.system_instructions"
_TOOLS = "gen_ai.tool.definitions"


def _opened(held: Any) -> list[Any]:
    """Return messages that are a list, or JSON text of one."""
    value: Any = json.loads(held) if isinstance(held, str) else held
    return cast("list[Any]", value)


def _closed(held: Any, records: list[Any]) -> Any:
    if not isinstance(held, str):
        return records
    compact = '": ' not in held
    return json.dumps(records, ensure_ascii=held.isascii() and "\\u" in held,
                      separators=(",", ":") if compact else None)  # fmt: skip


def _instructions(held: Any) -> Any:
    """Return the text of system instructions, which are a list of parts or JSON text of one."""
    try:
        value: Any = json.loads(held) if isinstance(held, str) else held
    except ValueError:
        return held
    return texts_of(value, "content", "text") or held


def _span(attributes: dict[str, tuple[Key, ...]], document: Any) -> list[Place]:
    """Make the place of a span out of where its attributes are."""
    from muntin.cli.forms.form import at

    path = attributes.get(_MESSAGES)
    if path is None:
        return []
    try:
        records = _opened(at(document, path))
    except ValueError:
        return []
    held = records if isinstance(cast("object", records), list) else []
    if not held or not all(_SPAN.owns(as_record(one) or {}) for one in held):
        return []
    return [
        Place(
            kind=_SPAN,
            path=path,
            system=attributes.get(_PROMPT),
            prompt=_instructions,
            tools=attributes.get(_TOOLS),
            opened=_opened,
            closed=_closed,
        )
    ]


def _otel(document: Any) -> list[Place]:
    """Find spans with messages: in an export of the protocol, or as single spans."""
    found: list[Place] = []
    for path, span in _spans(document, ()):
        attributes = span.get("attributes")
        places: dict[str, tuple[Key, ...]] = {}
        if isinstance(attributes, dict):
            places = {str(key): (*path, "attributes", key) for key in cast("Raw", attributes)}
        elif isinstance(attributes, list):
            for n, one in enumerate(cast("list[Any]", attributes)):
                held = as_record(one) or {}
                if "stringValue" in (as_record(held.get("value")) or {}):
                    places[str(held.get("key"))] = (*path, "attributes", n, "value", "stringValue")
        name = str(span.get("name") or "")
        found += [
            Place(**{f: getattr(one, f) for f in Place.__slots__ if f != "label"}, label=name)
            for one in _span(places, document)
        ]
    return found


def _spans(value: Any, path: tuple[Key, ...]) -> Iterator[tuple[tuple[Key, ...], Raw]]:
    known = as_record(value)
    if known is None:
        return
    if "attributes" in known and ("name" in known or "spanId" in known or "context" in known):
        yield path, known
    for key in ("resourceSpans", "scopeSpans", "spans", "batches"):
        inner = known.get(key)
        for n, one in enumerate(cast("Sequence[Any]", inner) if isinstance(inner, list) else ()):
            yield from _spans(one, (*path, key, n))


TRACES = (
    Form(name="inspect", title="inspect logs (`.json`) and samples", find=_inspect),
    Form(
        name="otel",
        title="OpenTelemetry GenAI spans (`gen_ai.input.messages`)",
        find=_otel,
    ),
)
