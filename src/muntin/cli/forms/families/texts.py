"""Conversations as text: Aider histories, and speakers at the beginning of lines."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from muntin.cli.forms.form import Form, Place
from muntin.cli.forms.message import PlainKind, Raw

if TYPE_CHECKING:
    from muntin.messages import Role, ToolCall

__all__ = ("TEXTS",)


class _SegmentKind(PlainKind):
    """Read segments of a text: `before` and `after` are the characters around the message."""

    def owns(self, raw: Raw) -> bool:
        """Return whether a segment is a message."""
        return "role" in raw

    def plain(self, raw: Raw, links: tuple[str, ...]) -> Raw:
        """Write the segment as a chat-completions message."""
        del links
        return {"role": raw["role"], "content": raw["text"]}

    def put(self, raw: Raw, text: str) -> Raw:
        """Copy the segment with another text."""
        return {**raw, "text": text}

    def made(self, role: Role, text: str, call: ToolCall | None = None) -> Raw:
        """Write a new segment; `settled` gives it the style of its neighbours."""
        said = text if call is None else f"{call.name}: {text}"
        return {"role": role, "text": said, "before": "", "after": "\n\n"}


class _AiderKind(_SegmentKind):
    name = "aider"


_AIDER = _AiderKind()
_STARTED = re.compile(r"# aider chat started at ")


def _aider_segments(text: str) -> list[Any]:
    """Divide a history: `####` lines are the user's, all others the model's or the program's."""
    segments: list[Raw] = []
    lines: list[str] = []
    current = ""
    was_blank = False

    def close() -> None:
        if not lines:
            return
        held = "".join(lines)
        said = held.rstrip()
        after = held[len(said) :]
        if not current or not said:
            segments.append({"head": held})
        elif current == "user":
            plain = "\n".join(re.sub(r"^#### ?", "", line) for line in said.split("\n"))
            segments.append({"role": "user", "text": plain, "before": "", "after": after})
        else:
            segments.append({"role": "assistant", "text": said, "before": "", "after": after})
        lines.clear()

    for line in text.splitlines(keepends=True):
        if _STARTED.match(line):
            role = ""
        elif line.startswith("####"):
            role = "user"
        elif not current and not line.startswith("####"):
            role = ""  # notes of the program before the first question
        else:
            role = "user" if current == "user" and not line.strip() else "assistant"
        is_next = role == "user" and was_blank and bool(line.strip())
        if role != current or is_next or (not role and _STARTED.match(line)):
            close()
            current = role
        was_blank = not line.strip()
        lines.append(line)
    close()
    return segments


def _aider_text(text: str, segments: list[Any]) -> str:
    del text
    written: list[str] = []
    for one in segments:
        if "head" in one:
            written.append(one["head"])
        elif one["role"] == "assistant":
            written.append(f"{one['text']}{one['after']}")
        else:
            lines = "\n".join(f"#### {line}".rstrip() for line in one["text"].split("\n"))
            written.append(f"{lines}{one['after']}")
    return "".join(written)


def _aider(document: Any) -> list[Place]:
    if not isinstance(document, str):
        return []
    if not _STARTED.search(document[:4096]) and not document.lstrip().startswith(("#### ", "> ")):
        return []
    if not re.search(r"^#### ", document, re.MULTILINE):
        return []
    return [Place(kind=_AIDER, opened=_aider_segments, closed=_aider_text)]


_ROLES: dict[str, Role] = {
    "user": "user", "human": "user", "you": "user", "question": "user", "customer": "user",
    "assistant": "assistant", "ai": "assistant", "bot": "assistant", "model": "assistant",
    "chatgpt": "assistant", "gpt": "assistant", "claude": "assistant", "gemini": "assistant",
    "agent": "assistant", "answer": "assistant", "system": "system",
}  # fmt: skip
_SPEAKER = re.compile(
    r"^(?P<open>(?:#{1,6} +|\*\*|> ?)?)(?P<who>"
    + "|".join(_ROLES)
    + r")(?P<close>(?:\*\*)?: ?(?:\*\*)?[ \t]*|[ \t]*$)",
    re.IGNORECASE | re.MULTILINE,
)


class _PlainTextKind(_SegmentKind):
    name = "text"

    def settled(self, raw: Raw, before: Raw | None, after: Raw | None) -> Raw:
        """Give an added segment the label its speaker would have in this text."""
        near = after if after is not None and after.get("before") else before or {}
        label = str(near.get("before") or "User: ")
        found = _SPEAKER.search(label)
        who = "User" if found is None else found["who"]
        named = {"user": "user", "assistant": "assistant", "system": "system"}[raw["role"]]
        named = named if who.islower() else named.upper() if who.isupper() else named.title()
        same = _ROLES.get(who.lower()) == raw["role"]
        made = label if same or found is None else label.replace(who, named, 1)
        return {**raw, "before": made, "after": near.get("after") or "\n\n"}


_TEXT = _PlainTextKind()


def _text_segments(text: str) -> list[Any]:
    marks = [one for one in _SPEAKER.finditer(text) if _is_mark(one)]
    segments: list[Raw] = []
    if marks and marks[0].start():
        segments.append({"head": text[: marks[0].start()]})
    for n, mark in enumerate(marks):
        end = marks[n + 1].start() if n + 1 < len(marks) else len(text)
        held = text[mark.end() : end]
        said = held.strip()
        lead = held[: len(held) - len(held.lstrip())]
        segments.append({
            "role": _ROLES[mark["who"].lower()], "text": said, "before": mark[0] + lead,
            "after": held[len(lead) + len(said) :],
        })  # fmt: skip
    return segments


def _is_mark(mark: re.Match[str]) -> bool:
    """Return whether a line names a speaker: it has a colon, or is a heading or bold."""
    return ":" in mark["close"] or mark["open"].startswith("#")


def _text_of(text: str, segments: list[Any]) -> str:
    del text
    return "".join(
        one["head"] if "head" in one else f"{one['before']}{one['text']}{one['after']}"
        for one in segments
    )


def _plain_text(document: Any) -> list[Place]:
    if not isinstance(document, str):
        return []
    segments = _text_segments(document)
    said = {one.get("role") for one in segments if one.get("text")}
    # A heading of the text may come first, but not a text in which a speaker is named by chance.
    head = str(segments[0].get("head") or "") if segments else ""
    if not {"user", "assistant"} <= said or len(head.strip().splitlines()) > 3:
        return []
    return [Place(kind=_TEXT, opened=_text_segments, closed=_text_of)]


def _any_text(document: Any) -> list[Place]:
    """Read a text with at least one speaker, for `--form text`."""
    if not isinstance(document, str) or not any("role" in one for one in _text_segments(document)):
        return []
    return [Place(kind=_TEXT, opened=_text_segments, closed=_text_of)]


def _any_aider(document: Any) -> list[Place]:
    """Read a text with questions of a user, for `--form aider`."""
    if not isinstance(document, str) or not re.search(r"^####", document, re.MULTILINE):
        return []
    return [Place(kind=_AIDER, opened=_aider_segments, closed=_aider_text)]


TEXTS = (
    Form(
        name="aider",
        title="Aider histories (`.aider.chat.history.md`)",
        find=_aider,
        find_named=_any_aider,
        text=True,
    ),
    Form(
        name="text",
        title='plain text with speakers ("User: ...")',
        find=_plain_text,
        find_named=_any_text,
        text=True,
    ),
)
