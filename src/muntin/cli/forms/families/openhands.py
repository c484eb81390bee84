"""Events of OpenHands: actions and observations of its first version, and those of its SDK.

An action that an observation answers is a call, and the observation is its result; all other events
about the state of the program stay where they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from muntin.cli.forms.form import Form, Place
from muntin.cli.forms.message import PlainKind, Raw, as_record, texts_of
from muntin.messages import canonical_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muntin.messages import Role, ToolCall

__all__ = ("OPENHANDS",)

_STATE = frozenset({"agent_state_changed", "change_agent_state", "recall", "null", "condensation",
                    "condensation_request", "loop_recovery", "initialize", "start"})  # fmt: skip


class _EventKind(PlainKind):
    """Read events of the first version."""

    name = "openhands"

    def owns(self, raw: Raw) -> bool:
        named = raw.get("action", raw.get("observation"))
        if not isinstance(named, str) or named in _STATE:
            return False
        return isinstance(raw.get("args"), dict) if "action" in raw else "content" in raw

    def links(self, raws: Sequence[Raw]) -> list[tuple[str, ...]]:
        actions = {str(raw.get("id")) for raw in raws if _is_call(raw)}
        answered = {str(raw.get("cause")) for raw in raws if "observation" in raw} & actions
        links: list[tuple[str, ...]] = []
        for raw in raws:
            event = str(raw.get("id") if "action" in raw else raw.get("cause"))
            linked = event in answered and ("observation" in raw or _is_call(raw))
            links.append((f"event-{event}",) if linked else ())
        return links

    def plain(self, raw: Raw, links: tuple[str, ...]) -> Raw:
        role = "user" if raw.get("source") == "user" else "assistant"
        if "observation" in raw:
            if links:
                return {"role": "tool", "tool_call_id": links[0], "content": str(raw["content"])}
            return {"role": role, "content": str(raw["content"])}
        args = cast("Raw", raw["args"])
        if raw["action"] == "system":
            return {"role": "system", "content": args.get("content")}
        text = str(args.get(_text_key(raw)) or "")
        if not _is_call(raw):
            return {"role": role, "content": text}
        rest = {key: value for key, value in args.items() if key != "thought" and value is not None}
        if not links:  # without a result the action is text
            return {"role": role, "content": f"{text}\n{raw['action']} {canonical_json(rest)}"}
        named = (as_record(raw.get("tool_call_metadata")) or {}).get("function_name")
        call = {"id": links[0], "name": named or raw["action"], "args": rest}
        return {"role": "assistant", "content": text, "tool_calls": [call]}

    def put(self, raw: Raw, text: str) -> Raw:
        if "observation" in raw:
            return {**raw, "content": text}
        args, key = cast("Raw", raw["args"]), _text_key(raw)
        copy = {"message": text} if raw.get("message") == args.get(key) else {}
        return {**raw, **copy, "args": {**args, key: text}}

    def made(self, role: Role, text: str, call: ToolCall | None = None) -> Raw:
        if call is not None:
            cause = call.id.removeprefix("event-")
            return {"source": "environment", "observation": "error", "content": text,
                    "cause": int(cause) if cause.isdigit() else cause}  # fmt: skip
        source = "agent" if role == "assistant" else "user"
        return {"source": source, "action": "message", "args": {"content": text}, "message": text}


def _is_call(raw: Raw) -> bool:
    return "action" in raw and raw["action"] not in ("message", "system", "finish")


def _text_key(raw: Raw) -> str:
    args = cast("Raw", raw["args"])
    if raw["action"] in ("message", "system"):
        return "content"
    if raw["action"] == "finish":
        return "final_thought" if "final_thought" in args else "thought"
    return "thought"


_SDK = frozenset({"MessageEvent", "ActionEvent", "ObservationEvent", "AgentErrorEvent",
                  "SystemPromptEvent", "UserRejectObservation"})  # fmt: skip
_RESULTS = ("ObservationEvent", "AgentErrorEvent", "UserRejectObservation")


class _SdkKind(PlainKind):
    """Read events of the SDK."""

    name = "openhands-sdk"

    def owns(self, raw: Raw) -> bool:
        return raw.get("kind") in _SDK

    def links(self, raws: Sequence[Raw]) -> list[tuple[str, ...]]:
        called = {str(raw.get("tool_call_id")) for raw in raws if raw["kind"] == "ActionEvent"}
        return [
            (str(raw.get("tool_call_id")),) if str(raw.get("tool_call_id")) in called else ()
            for raw in raws
        ]

    def plain(self, raw: Raw, links: tuple[str, ...]) -> Raw:
        kind = raw["kind"]
        if kind == "MessageEvent":
            message = as_record(raw.get("llm_message")) or {}
            return {"role": message.get("role"), "content": message.get("content")}
        if kind == "SystemPromptEvent":
            prompt = as_record(raw.get("system_prompt")) or {}
            return {"role": "system", "content": prompt.get("text")}
        if kind == "ActionEvent":
            call = as_record(raw.get("tool_call")) or {}
            made: Raw = {"id": str(raw.get("tool_call_id")), "name": raw.get("tool_name"),
                    "arguments": call.get("arguments") or raw.get("action") or {}}  # fmt: skip
            return {"role": "assistant", "content": texts_of(raw.get("thought"), "text"),
                    "tool_calls": [made]}  # fmt: skip
        text = _observed(raw)
        if links:
            return {"role": "tool", "tool_call_id": links[0], "content": text}
        return {"role": "assistant", "content": text}

    def put(self, raw: Raw, text: str) -> Raw:
        part = [{"type": "text", "text": text}]
        if raw["kind"] == "MessageEvent":
            return {**raw, "llm_message": {**raw["llm_message"], "content": part}}
        if raw["kind"] == "ActionEvent":
            return {**raw, "thought": part}
        if raw["kind"] == "SystemPromptEvent":
            return {**raw, "system_prompt": {**raw["system_prompt"], "text": text}}
        observed = as_record(raw.get("observation"))
        if observed is None:
            return {**raw, "rejection_reason" if "rejection_reason" in raw else "error": text}
        key = "content" if "content" in observed else "output"
        held = part if isinstance(observed.get(key), list) else text
        return {**raw, "observation": {**observed, key: held}}

    def made(self, role: Role, text: str, call: ToolCall | None = None) -> Raw:
        if call is not None:
            return {"kind": "AgentErrorEvent", "source": "agent", "error": text,
                    "tool_name": call.name, "tool_call_id": call.id}  # fmt: skip
        message = {"role": role, "content": [{"type": "text", "text": text}]}
        source = "agent" if role == "assistant" else "user"
        return {"kind": "MessageEvent", "source": source, "llm_message": message}


def _observed(raw: Raw) -> str:
    observed = as_record(raw.get("observation"))
    if observed is None:
        return str(raw.get("error") or raw.get("rejection_reason") or "")
    return texts_of(observed.get("content", observed.get("output")), "text")


_KINDS = (_SdkKind(), _EventKind())


def _openhands(document: Any) -> list[Place]:
    """Find the events: a list of them, or `history` of a record of an evaluation."""
    known = as_record(document)
    events = document if known is None else known.get("history")
    if not isinstance(events, list):
        return []
    known_events = map(as_record, cast("list[Any]", events))
    held = [one for one in known_events if one is not None]
    for kind in _KINDS:
        if any(map(kind.owns, held)) and all(_is_event(one) for one in held):
            return [Place(kind=kind, path=() if known is None else ("history",))]
    return []


def _is_event(raw: Raw) -> bool:
    return "source" in raw and ("action" in raw or "observation" in raw or "kind" in raw)


OPENHANDS = Form(
    name="openhands",
    title="OpenHands trajectories (events) and records of its evaluations (`history`)",
    find=_openhands,
    session=True,
)
