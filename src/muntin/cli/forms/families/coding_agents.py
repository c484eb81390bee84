"""Sessions and trajectories of coding agents."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, cast

from muntin.cli.forms.families.providers import provider_kind
from muntin.cli.forms.form import Form, Place
from muntin.cli.forms.message import NativeKind, NewResults, PlainKind, Raw, as_record, texts_of
from muntin.messages import (
    ANTHROPIC,
    OPENAI_CHAT,
    OPENAI_RESPONSES,
    MessageView,
    canonical_json,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muntin.messages import Role, ToolCall

__all__ = ("CODING_AGENTS",)


class _ClaudeCodeKind(NativeKind):
    """Read the lines of a Claude Code session: Anthropic messages that name their parents."""

    def __init__(self) -> None:
        super().__init__("claude-code", ANTHROPIC, inside="message")

    def owns(self, raw: Raw) -> bool:
        """Return whether a line is part of what the main agent sends."""
        return (
            raw.get("type") in ("user", "assistant")
            and isinstance(raw.get("message"), dict)
            and not raw.get("isSidechain")
        )

    def view(self, raw: Raw, links: tuple[str, ...]) -> MessageView:
        """Read the message; what the program added is not a request."""
        read = super().view(raw, links)
        added = raw.get("isMeta") or raw.get("isCompactSummary")
        return read._replace(injected=True) if added else read

    def enveloped(self, inner: Raw) -> Raw:
        """Put a message on a line."""
        return {"type": str(inner.get("role")), "message": inner}

    def settled(self, raw: Raw, before: Raw | None, after: Raw | None) -> Raw:
        """Give an added line the session of its neighbours, and an id made from its place."""
        near = before if before is not None and "uuid" in before else after or {}
        same = ("isSidechain", "userType", "cwd", "sessionId", "version", "gitBranch", "timestamp")
        own = uuid.uuid5(uuid.NAMESPACE_OID, f"{near.get('uuid')}{canonical_json(raw)}")
        kept = {key: near[key] for key in same if key in near}
        return {"parentUuid": None, **kept, **raw, "uuid": str(own)}

    def linked(self, given: Sequence[Any], written: list[Any]) -> list[Any]:
        """Let the children of removed lines follow the nearest ancestor that is left."""
        lines = [one for one in map(as_record, given) if one is not None and "uuid" in one]
        parents = {str(one["uuid"]): one.get("parentUuid") for one in lines}
        left = {str(one["uuid"]) for one in map(as_record, written) if one and "uuid" in one}
        linked: list[Any] = []
        added: dict[str | None, str] = {}
        last: str | None = None
        for value in written:
            one = as_record(value) or {}
            if "uuid" not in one or "parentUuid" not in one:
                linked.append(value)
                continue
            own, parent = str(one["uuid"]), one["parentUuid"]
            if own not in parents:
                parent, added[last] = last, own
            else:
                while parent is not None and parent not in left:
                    parent = parents.get(str(parent))
                parent = added.pop(parent, parent)
            linked.append(one if parent == one["parentUuid"] else {**one, "parentUuid": parent})
            last = own
        return linked


_CLAUDE_CODE = _ClaudeCodeKind()


def _claude_code(document: Any) -> list[Place]:
    lines = _lines(document)
    known = [one for one in lines if _CLAUDE_CODE.owns(one) and ("uuid" in one or
             "sessionId" in one)]  # fmt: skip
    if not known:
        return []
    return [Place(kind=_CLAUDE_CODE, opened=_after_compaction, closed=_with_earlier)]


def _is_boundary(line: Any) -> bool:
    return (as_record(line) or {}).get("subtype") == "compact_boundary"


def _last_boundary(lines: Sequence[Any]) -> int:
    return max((n + 1 for n, line in enumerate(lines) if _is_boundary(line)), default=0)


def _after_compaction(lines: list[Any]) -> list[Any]:
    """Return the lines that are still sent: those after the last compaction."""
    return lines[_last_boundary(lines) :]


def _with_earlier(lines: list[Any], records: list[Any]) -> list[Any]:
    return [*lines[: _last_boundary(lines)], *records]


_CODEX_LINES = frozenset({"session_meta", "response_item", "event_msg", "turn_context",
                          "compacted"})  # fmt: skip
_ITEMS = frozenset({
    "message", "reasoning", "function_call", "function_call_output", "custom_tool_call",
    "custom_tool_call_output", "local_shell_call", "web_search_call",
})  # fmt: skip


class _CodexKind(NativeKind):
    """Read the lines of a Codex rollout whose payload is a Responses item."""

    def __init__(self) -> None:
        super().__init__("codex", OPENAI_RESPONSES, inside="payload")

    def owns(self, raw: Raw) -> bool:
        """Return whether a line is an item that is sent."""
        payload = as_record(raw.get("payload")) or {}
        is_item = payload.get("type") in _ITEMS or {"role", "content"} <= payload.keys()
        return (raw.get("type") == "response_item" and is_item) or raw.get("type") == "compacted"

    def view(self, raw: Raw, links: tuple[str, ...]) -> MessageView:
        """Read the item; a compaction stays as it is, because everything after builds on it."""
        if raw.get("type") != "compacted":
            return super().view(raw, links)
        payload = as_record(raw.get("payload")) or {}
        kept = payload.get("replacement_history")
        text = canonical_json(kept) if kept else str(payload.get("message") or "")
        # As a leading system message: a note must come after it, or it would not be read again.
        return MessageView(role="system", text=text, pinned=True)

    def enveloped(self, inner: Raw) -> Raw:
        """Put an item on a line."""
        if isinstance(inner.get("content"), str):
            said = "output_text" if inner["role"] == "assistant" else "input_text"
            part = {"type": said, "text": inner["content"]}
            inner = {"type": "message", "role": inner["role"], "content": [part]}
        return {"type": "response_item", "payload": inner}

    def settled(self, raw: Raw, before: Raw | None, after: Raw | None) -> Raw:
        """Give an added line the time of its neighbour."""
        near = before or after or {}
        return {"timestamp": near["timestamp"], **raw} if "timestamp" in near else raw


class _OldCodexKind(NativeKind):
    """Read the lines of an early Codex rollout, which are Responses items themselves."""

    def __init__(self) -> None:
        super().__init__("codex-early", OPENAI_RESPONSES)

    def owns(self, raw: Raw) -> bool:
        """Return whether a line is an item that is sent."""
        return raw.get("type") in _ITEMS

    def enveloped(self, inner: Raw) -> Raw:
        """Write an item as Codex does."""
        return cast("Raw", _CODEX.enveloped(inner)["payload"])


_CODEX = _CodexKind()
_OLD_CODEX = _OldCodexKind()


def _codex(document: Any) -> list[Place]:
    lines = _lines(document)
    if not lines:
        return []
    prompt: tuple[str | int, ...] | None = None
    if any(one.get("type") in _CODEX_LINES and isinstance(one.get("payload"), dict)
           for one in lines):  # fmt: skip
        for n, one in enumerate(lines):
            base = (as_record(one.get("payload")) or {}).get("base_instructions")
            if isinstance((as_record(base) or {}).get("text"), str):
                prompt = (n, "payload", "base_instructions", "text")
        last = max((n for n, one in enumerate(lines) if one.get("type") == "compacted"), default=0)
        return [
            Place(
                kind=_CODEX,
                system=prompt,
                opened=lambda held: held[last:],
                closed=lambda held, records: [*held[:last], *records],
            )
        ]
    first = lines[0]
    is_early = "timestamp" in first and "id" in first and "instructions" in first
    if is_early and "type" not in first and any(map(_OLD_CODEX.owns, lines)):
        return [Place(kind=_OLD_CODEX, system=(0, "instructions") if first["instructions"] else
                      None)]  # fmt: skip
    return []


def _lines(document: Any) -> list[Raw]:
    """Return the lines of a session; nothing for a document that is none."""
    if not isinstance(document, list):
        return []
    return [as_record(one) or {} for one in cast("list[Any]", document)]


class _GeminiCliKind(PlainKind):
    """Read messages of a Gemini CLI session, in which a call holds its result."""

    name = "gemini-cli"

    def owns(self, raw: Raw) -> bool:
        return raw.get("type") in ("user", "gemini") and "content" in raw

    def plain(self, raw: Raw, links: tuple[str, ...]) -> Raw:
        del links
        if "toolResult" in raw:
            call = raw["toolResult"]
            return {"role": "tool", "tool_call_id": str(call.get("id")),
                    "content": _response_text(call)}  # fmt: skip
        calls: list[Raw] = [
            {"id": str(call.get("id")), "name": call.get("name"), "args": call.get("args") or {}}
            for call in cast("list[Raw]", raw.get("toolCalls") or [])
        ]
        role = "assistant" if raw["type"] == "gemini" else "user"
        return {"role": role, "content": texts_of(raw["content"], "text"), "tool_calls": calls,
                "id": raw.get("id")}  # fmt: skip

    def put(self, raw: Raw, text: str) -> Raw:
        if "toolResult" in raw:
            return {**raw, "toolResult": _with_response(raw["toolResult"], text)}
        is_text = isinstance(raw["content"], str)
        return {**raw, "content": text if is_text else [{"text": text}]}

    def made(self, role: Role, text: str, call: ToolCall | None = None) -> Raw:
        said = text if call is None else f"{call.name}: {text}"
        return {"type": "gemini" if role == "assistant" else "user", "content": said}

    def split(self, raw: Raw) -> list[Raw]:
        calls = cast("list[Raw]", raw.get("toolCalls") or [])
        if not calls:
            return [raw]
        return [raw, *({"type": "tool", "content": "", "toolResult": call} for call in calls)]

    def join(self, original: Raw, pieces: Any) -> Raw:
        if 0 not in pieces:
            return original
        changed = dict(pieces[0])
        if original.get("toolCalls"):
            calls = cast("list[Raw]", original["toolCalls"])
            changed["toolCalls"] = [
                pieces[n]["toolResult"] if n in pieces else call
                for n, call in enumerate(calls, start=1)
            ]
        return changed

    def settled(self, raw: Raw, before: Raw | None, after: Raw | None) -> Raw:
        near = before or after or {}
        own = uuid.uuid5(uuid.NAMESPACE_OID, f"{near.get('id')}{canonical_json(raw)}")
        when = {"timestamp": near["timestamp"]} if "timestamp" in near else {}
        return {"id": str(own), **when, **raw}


def _responses(call: Raw) -> list[Raw]:
    found = call.get("result")
    parts = cast("list[Any]", found) if isinstance(found, list) else []
    held = [as_record((as_record(part) or {}).get("functionResponse")) for part in parts]
    return [one for one in held if one is not None]


def _response_text(call: Raw) -> str:
    """Read what a call returned: the texts of its responses, or JSON where there are none."""
    found = call.get("result")
    texts: list[str] = []
    for one in _responses(call):
        value = as_record(one.get("response")) or {}
        only = value.get("output", value.get("error"))
        texts.append(only if len(value) == 1 and isinstance(only, str) else canonical_json(value))
    if texts:
        return "\n".join(texts)
    return found if isinstance(found, str) else "" if found is None else canonical_json(found)


def _with_response(call: Raw, text: str) -> Raw:
    responses = _responses(call)
    if not responses:
        return {**call, "result": text}
    first = {**responses[0], "response": {"output": text}}
    others = [p for p in cast("list[Raw]", call["result"]) if "functionResponse" not in p]
    return {**call, "result": [{"functionResponse": first}, *others]}


_GEMINI_CLI = _GeminiCliKind()


def _is_gemini_cli(value: Any) -> bool:
    kind = (as_record(value) or {}).get("type")
    return kind in ("user", "gemini", "info", "error", "warning")


def _gemini_cli(document: Any) -> list[Place]:
    known = as_record(document)
    messages = None if known is None else known.get("messages")
    if known is None or "sessionId" not in known or not isinstance(messages, list):
        return []
    if not all(_is_gemini_cli(one) for one in cast("list[Any]", messages)):
        return []
    return [Place(kind=_GEMINI_CLI, path=("messages",))]


class _ClineKind(NativeKind):
    """Read Anthropic messages with the time of each."""

    def __init__(self) -> None:
        super().__init__("cline", ANTHROPIC)

    def settled(self, raw: Raw, before: Raw | None, after: Raw | None) -> Raw:
        """Give an added message the time of its neighbour."""
        near = before or after or {}
        return {**raw, "ts": near.get("ts", 0)}


_CLINE = _ClineKind()


def _cline(document: Any) -> list[Place]:
    """Find Cline's and Roo's `api_conversation_history.json`: messages with the time of each."""
    lines = _lines(document)
    is_cline = all("ts" in one and isinstance(one.get("content"), (list, str))
                   and one.get("role") in ("user", "assistant") for one in lines)  # fmt: skip
    return [Place(kind=_CLINE)] if lines and is_cline else []


class _SweAgentKind(NativeKind):
    """Read the history of SWE-agent: chat messages whose results name a list of calls."""

    def __init__(self) -> None:
        super().__init__("swe-agent", OPENAI_CHAT)

    def _opened(self, raw: Raw) -> Raw:
        ids = raw.get("tool_call_ids")
        if isinstance(ids, list) and ids and "tool_call_id" not in raw:
            return {**raw, "tool_call_id": str(cast("list[Any]", ids)[0])}
        return raw

    def view(self, raw: Raw, links: tuple[str, ...]) -> MessageView:
        """Read the message."""
        return super().view(self._opened(raw), links)

    def with_results(self, raw: Raw, links: tuple[str, ...], new: NewResults) -> Raw:
        """Copy the message with other result texts."""
        opened = self._opened(raw)
        changed = super().with_results(opened, links, new)
        return raw if changed is opened else {**raw, "content": changed["content"]}

    def answer(self, call: ToolCall, text: str) -> Raw:
        """Make a message that answers a call."""
        return {"role": "tool", "content": text, "tool_call_ids": [call.id]}


_SWE_AGENT = _SweAgentKind()


def _swe_agent(document: Any) -> list[Place]:
    known = as_record(document) or {}
    history = known.get("history")
    if not isinstance(history, list) or not history:
        return []
    records = [as_record(one) or {} for one in cast("list[Any]", history)]
    is_marked = isinstance(known.get("trajectory"), list) or any(
        "message_type" in one and "agent" in one for one in records
    )
    if not is_marked or not all(map(_SWE_AGENT.owns, records)):
        return []
    return [Place(kind=_SWE_AGENT, path=("history",))]


def _mini_swe_agent(document: Any) -> list[Place]:
    known = as_record(document) or {}
    messages = known.get("messages")
    told = "trajectory_format" in known or isinstance(known.get("info"), dict)
    if not told or not isinstance(messages, list) or not messages:
        return []
    if not all(isinstance(one, dict) for one in cast("list[Any]", messages)):
        return []
    kind = provider_kind(cast("list[Raw]", messages))
    return [] if kind is None else [Place(kind=kind, path=("messages",))]


CODING_AGENTS = (
    Form(
        name="claude-code",
        title="Claude Code sessions (JSON lines)",
        find=_claude_code,
        session=True,
    ),
    Form(name="codex", title="Codex rollouts (JSON lines)", find=_codex, session=True),
    Form(name="gemini-cli", title="Gemini CLI sessions", find=_gemini_cli),
    Form(name="cline", title="Cline and Roo `api_conversation_history.json`", find=_cline),
    Form(name="swe-agent", title="SWE-agent trajectories (`.traj`)", find=_swe_agent),
    Form(name="mini-swe-agent", title="mini-swe-agent trajectories", find=_mini_swe_agent),
)
