"""Messages, requests and batches of OpenAI, Anthropic and Gemini."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from muntin.cli.forms.form import Form, Place, at, places_in
from muntin.cli.forms.message import NativeKind, Raw, as_record
from muntin.messages import ANTHROPIC, GEMINI, OPENAI_CHAT, OPENAI_RESPONSES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from muntin.cli.forms.form import Key
    from muntin.cli.forms.message import Kind

__all__ = ("ANTHROPIC_KIND", "BATCHES", "GEMINI_KIND", "OPENAI_KIND", "PROVIDERS",
           "RESPONSES_KIND", "inside", "provider_kind", "request_in")  # fmt: skip

OPENAI_KIND = NativeKind("openai", OPENAI_CHAT)
ANTHROPIC_KIND = NativeKind("anthropic", ANTHROPIC)
GEMINI_KIND = NativeKind("gemini", GEMINI)


class _ResponsesKind(NativeKind):
    """Read items; a message may come without a type."""

    def owns(self, raw: Raw) -> bool:
        """Return whether a record is an item."""
        return "type" in raw or "role" in raw


RESPONSES_KIND = _ResponsesKind("openai-responses", OPENAI_RESPONSES)

_ANTHROPIC_BLOCKS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking",
                               "server_tool_use", "document"})  # fmt: skip
_RESPONSES_BLOCKS = frozenset({"input_text", "output_text", "input_image", "input_file"})
_ITEMS = frozenset({"message", "reasoning", "compaction"})
_RESPONSES_KEYS = frozenset({"call_id", "arguments", "output", "summary", "content", "action"})
_REPLY = frozenset({"stop_reason", "stop_sequence", "usage"})
"""Keys that only a reply of Anthropic's has besides `role` and `content`."""


def provider_kind(raws: Sequence[Raw]) -> Kind | None:
    """Return how a list of provider messages is read, by keys that only one provider writes."""
    if not all(map(_is_message, raws)):
        return None
    told = {_told(raw) for raw in raws}
    for kind in (OPENAI_KIND, RESPONSES_KIND, ANTHROPIC_KIND):
        if kind.name in told:
            return kind
    if any(raw.get("type") == "message" for raw in raws):
        return RESPONSES_KIND
    return OPENAI_KIND


def _is_message(raw: Raw) -> bool:
    if "role" in raw:
        return "content" in raw or "tool_calls" in raw or "function_call" in raw
    kind = raw.get("type")
    is_item = isinstance(kind, str) and (kind in _ITEMS or kind.endswith(("_call", "_output")))
    return is_item and bool(_RESPONSES_KEYS & raw.keys())


def _told(raw: Raw) -> str:
    """Name the provider a message gives away; `""` for one that any of them could have written."""
    if raw.get("role") in ("tool", "function") or "tool_calls" in raw or "function_call" in raw:
        return OPENAI_KIND.name
    if "role" not in raw:
        return RESPONSES_KIND.name
    content = raw.get("content")
    blocks = cast("list[Any]", content) if isinstance(content, list) else []
    kinds = {str((as_record(block) or {}).get("type")) for block in blocks}
    if kinds & _RESPONSES_BLOCKS:
        return RESPONSES_KIND.name
    if kinds & _ANTHROPIC_BLOCKS or any(
        (as_record(block) or {}).get("type") == "image" and "source" in block for block in blocks
    ):
        return ANTHROPIC_KIND.name
    is_reply = raw.get("type") == "message" and ("text" in kinds or bool(_REPLY & raw.keys()))
    return ANTHROPIC_KIND.name if is_reply else ""


def request_in(document: Any) -> list[Place]:
    """Find the conversation of a request body or list of messages of OpenAI or Anthropic."""
    places = places_in(document, provider_kind)
    known = as_record(document)
    if not places:
        text = (known or {}).get("input")
        if known is not None and isinstance(text, str) and ("model" in known) and text.strip():
            return [_only_text(known)]
        output = (known or {}).get("output")
        if known is not None and known.get("object") == "response" and isinstance(output, list):
            return [Place(kind=RESPONSES_KIND, path=("output",), system=_prompt_of(known))]
        return []
    [place] = places
    if place.path == ("input",):  # plain messages in a Responses request are its items
        return [replace(place, kind=RESPONSES_KIND)]
    if known is not None and place.kind is OPENAI_KIND and place.system == ("system",):
        raws = cast("list[Raw]", at(document, place.path))
        if not any("tool_calls" in raw or raw.get("role") == "tool" for raw in raws):
            return [Place(kind=ANTHROPIC_KIND, path=place.path, system=place.system,
                          tools=place.tools)]  # fmt: skip
    return places


def _prompt_of(known: Raw) -> tuple[Key, ...] | None:
    return ("instructions",) if known.get("instructions") else None


def _only_text(known: Raw) -> Place:
    """Read a Responses request whose `input` is one text."""

    def opened(text: Any) -> list[Any]:
        return [{"role": "user", "content": text}]

    def closed(text: Any, records: list[Any]) -> Any:
        whole = len(records) == 1 and records[0].get("content") == text
        return text if whole else records

    return Place(
        kind=RESPONSES_KIND, path=("input",), system=_prompt_of(known), opened=opened,
        closed=closed, tools=("tools",) if known.get("tools") else None,
    )  # fmt: skip


def _gemini_kind(raws: Sequence[Raw]) -> Kind | None:
    is_gemini = all(isinstance(raw.get("parts"), list) and "content" not in raw for raw in raws)
    has_role = all(raw.get("role", "user") in ("user", "model", "function") for raw in raws)
    plain = not any("type" in (as_record(p) or {}) for raw in raws for p in raw["parts"][:1]) \
        if is_gemini else False  # fmt: skip
    return GEMINI_KIND if is_gemini and has_role and plain else None


def gemini_in(document: Any) -> list[Place]:
    """Find the conversation of a Gemini request, of a saved history, or of a list of contents."""
    keys = ("contents", "history", "clientHistory", "messages", "chat_history")
    system = ("systemInstruction", "system_instruction")
    places = places_in(document, _gemini_kind, keys=keys, system=system)
    config = (as_record(document) or {}).get("config")
    if not places or not isinstance(config, dict):
        return places
    # The Python client keeps instructions and tools in `config`.
    held, [place] = cast("Raw", config), places
    prompt = next((key for key in (*system,) if held.get(key)), None)
    return [
        Place(
            kind=GEMINI_KIND,
            path=place.path,
            system=place.system or (None if prompt is None else ("config", prompt)),
            tools=place.tools or (("config", "tools") if held.get("tools") else None),
        )
    ]


def inside(places: Sequence[Place], *path: Key) -> list[Place]:
    """Return the places of a value as places of the document that holds it at `path`."""
    return [
        replace(
            one,
            path=(*path, *one.path),
            system=None if one.system is None else (*path, *one.system),
            tools=None if one.tools is None else (*path, *one.tools),
        )
        for one in places
    ]


def _as_kind(kind: Kind) -> Callable[[Any], list[Place]]:
    def found(document: Any) -> list[Place]:
        return [replace(place, kind=kind) for place in request_in(document)]

    return found


def _of_kind(name: str, find: Callable[[Any], list[Place]]) -> Callable[[Any], list[Place]]:
    def found(document: Any) -> list[Place]:
        return [place for place in find(document) if place.kind.name == name]

    return found


def _wrapped(path: Sequence[str], marks: Mapping[str, type],
             find: Callable[[Any], list[Place]]) -> Callable[[Any], list[Place]]:  # fmt: skip
    """Find the request in an envelope that has certain keys."""

    def found(document: Any) -> list[Place]:
        known = as_record(document)
        if known is None or not all(isinstance(known.get(k), t) for k, t in marks.items()):
            return []
        return inside(find(at(document, path)), *path)

    return found


def _anthropic_batch(document: Any) -> list[Place]:
    """Find the requests of a batch: one line of it, or the body that creates it."""
    requests = (as_record(document) or {}).get("requests")
    if not isinstance(requests, list):
        return _one_anthropic(document)
    found: list[Place] = []
    for n, one in enumerate(cast("list[Any]", requests)):
        found += inside(_one_anthropic(one), "requests", n)
    return found


_one_anthropic = _wrapped(("params",), {"custom_id": str, "params": dict}, request_in)


def _preference(document: Any) -> list[Place]:
    """Find the input of a preference record; its two outputs stay as they are."""
    known = as_record(document) or {}
    if "preferred_output" not in known or not isinstance(known.get("input"), dict):
        return []
    return inside(request_in(known["input"]), "input")


BATCHES = (
    Form(
        name="openai-batch",
        title="lines of an OpenAI batch (`body`)",
        find=_wrapped(("body",), {"custom_id": str, "body": dict}, request_in),
    ),
    Form(
        name="anthropic-batch",
        title="lines or body of an Anthropic batch (`params`)",
        find=_anthropic_batch,
    ),
    Form(
        name="gemini-batch",
        title="lines of a Gemini batch (`request`)",
        find=_wrapped(("request",), {"request": dict}, gemini_in),
    ),
    Form(
        name="openai-preference",
        title="OpenAI preference fine-tuning lines (`input`, `preferred_output`)",
        find=_preference,
    ),
)
PROVIDERS = (
    Form(
        name="gemini",
        title="Gemini requests (`contents`), histories and lists of contents",
        find=gemini_in,
    ),
    Form(
        name="openai-responses",
        title="OpenAI Responses requests, replies and lists of items",
        find=_of_kind("openai-responses", request_in),
        find_named=_as_kind(RESPONSES_KIND),
    ),
    Form(
        name="anthropic",
        title="Anthropic requests, messages and replies",
        find=_of_kind("anthropic", request_in),
        find_named=_as_kind(ANTHROPIC_KIND),
    ),
    Form(
        name="openai",
        title="OpenAI chat completions: messages, request bodies, fine-tuning lines",
        find=_of_kind("openai", request_in),
        find_named=_as_kind(OPENAI_KIND),
    ),
)
