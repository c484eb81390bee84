"""Forms that are recognised and not read, with what to do instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from muntin.cli.forms.message import Raw, as_record

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("unsupported_document", "unsupported_file")

_FILES = (
    (b"PK\x03\x04", "a ZIP archive: unpack it first (a log of inspect: `inspect log dump`)"),
    (b"SQLite format 3\0", "a SQLite database, as editors keep chats: export the chat as JSON"),
    (b"PAR1", "a Parquet file: write it as JSON lines first"),
    (b"%PDF-", "a PDF file, not a conversation: `muntin assemble --docs` reads it"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd: unpack it first, for instance with zstd -d"),
    (b"\xfd7zXZ", "compressed with xz: unpack it first, for instance with xz -d"),
    (b"BZh", "compressed with bzip2: unpack it first, for instance with bunzip2"),
)  # fmt: skip


def unsupported_file(head: bytes) -> str | None:
    """Name a binary file by its first bytes; None for all others."""
    return next((what for mark, what in _FILES if head.startswith(mark)), None)


def _first(document: Any) -> Raw:
    if isinstance(document, list) and document:
        return as_record(cast("list[Any]", document)[0]) or {}
    return as_record(document) or {}


def _is_cline_ui(document: Any) -> bool:
    first = _first(document)
    return "ts" in first and first.get("type") in ("say", "ask")


def _is_copilot(document: Any) -> bool:
    return isinstance(_first(document).get("requests"), list) and any(
        key in _first(document) for key in ("responderUsername", "requesterUsername")
    )


def _is_slack(document: Any) -> bool:
    first = _first(document)
    return first.get("type") == "message" and "ts" in first and "role" not in first


def _is_codex_stream(document: Any) -> bool:
    return _first(document).get("type") in ("thread.started", "turn.started")


def _is_gemini_log(document: Any) -> bool:
    return {"sessionId", "messageId", "message"} <= _first(document).keys()


def _is_open_webui(document: Any) -> bool:
    chat = as_record(_first(document).get("chat")) or _first(document)
    history = as_record(chat.get("history")) or {}
    return isinstance(history.get("messages"), dict)


def _is_har(document: Any) -> bool:
    return isinstance((as_record(_first(document).get("log")) or {}).get("entries"), list)


def _is_flat_span(document: Any) -> bool:
    attributes = as_record(_first(document).get("attributes")) or {}
    marks = ("gen_ai.prompt.0.", "llm.input_messages.0.", "llm.prompts.0.")
    return any(str(key).startswith(marks) for key in attributes)


_DOCUMENTS: tuple[tuple[Callable[[Any], bool], str], ...] = (
    (_is_cline_ui, "Cline's `ui_messages.json`, what the editor shows: name "
     "`api_conversation_history.json` of the same task"),
    (_is_copilot, "a chat exported from VS Code Copilot: save it as text with speakers"),
    (_is_slack, "a Slack export: it holds no messages of a model"),
    (_is_codex_stream, "the event stream of `codex exec --json`: name the rollout under "
     "~/.codex/sessions"),
    (_is_gemini_log, "Gemini CLI's `logs.json`, which holds no answers: name a file of `chats`"),
    (_is_open_webui, "an Open WebUI export: export the chat as text or as OpenAI messages"),
    (_is_har, "a HAR recording: save the body of the request"),
    (_is_flat_span, "spans with one attribute for every message (`gen_ai.prompt.0.role`): export "
     "`gen_ai.input.messages`"),
)  # fmt: skip


def unsupported_document(document: Any) -> str | None:
    """Name a document that is recognised and cannot be read; None for all others."""
    return next((what for is_so, what in _DOCUMENTS if is_so(document)), None)
