"""Records whose content is a list of parts, read as the Anthropic blocks they correspond to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from muntin.cli.forms.message import Kind, NewResults, Raw, as_record
from muntin.messages import ANTHROPIC

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muntin.messages import MessageView, Role, ToolCall

__all__ = ("BlocksKind",)


class BlocksKind(Kind):
    """Read records with parts. Subclasses translate one part and write a new one."""

    key = "content"
    """Where a record has its parts."""
    text_key = "text"
    """Where a text part has its text."""

    def opened(self, part: Raw) -> Any:
        """Write a part as an Anthropic block."""
        raise NotImplementedError

    def closed(self, part: Raw, text: str) -> Raw:
        """Copy the part of a result with another text."""
        raise NotImplementedError

    def text_part(self, text: str) -> Any:
        """Make a part that holds a text."""
        return {"type": "text", self.text_key: text}

    def result_part(self, call: ToolCall, text: str) -> Raw:
        """Make a part that answers a call."""
        raise NotImplementedError

    def role(self, raw: Raw) -> str:
        """Return the role."""
        return str(raw.get("role"))

    def _blocks(self, raw: Raw) -> Any:
        parts = raw.get(self.key)
        if not isinstance(parts, list):
            return parts
        blocks: list[Any] = []
        for part in cast("Sequence[Any]", parts):
            held = as_record(part)
            block = part if held is None else self.opened(held)
            if block is not None:
                blocks.append(block)
        return blocks

    def view(self, raw: Raw, links: tuple[str, ...]) -> MessageView:
        """Read the record."""
        del links
        read = ANTHROPIC.view({"role": self.role(raw), "content": self._blocks(raw)})
        name, identifier = raw.get("name"), raw.get("id")
        return read._replace(
            name=name if isinstance(name, str) else None,
            id=identifier if isinstance(identifier, str) else None,
        )

    def with_text(self, raw: Raw, text: str) -> Raw:
        """Copy the record with another readable text; other parts stay."""
        parts = raw.get(self.key)
        if not isinstance(parts, list):
            return {**raw, self.key: text}
        kept: list[Any] = []
        placed = False
        for part in cast("list[Any]", parts):
            held = as_record(part)
            block = as_record(None if held is None else self.opened(held))
            if held is not None and (block is None or block.get("type") != "text"):
                kept.append(part)
            elif not placed:
                kept.append(text if held is None else {**held, self.text_key: text})
                placed = True
        return {**raw, self.key: kept if placed else [self.text_part(text), *kept]}

    def with_results(self, raw: Raw, links: tuple[str, ...], new: NewResults) -> Raw:
        """Copy the record with other result texts."""
        del links
        parts = raw.get(self.key)
        if not isinstance(parts, list):
            return raw
        kept: list[Any] = []
        for part in cast("list[Any]", parts):
            held = as_record(part)
            block = as_record(None if held is None else self.opened(held)) or {}
            called = str(block.get("tool_use_id"))
            if held is None or block.get("type") != "tool_result" or called not in new.texts:
                kept.append(part)
                continue
            text = new.texts[called]
            if text is not None:
                kept.append(self.closed(held, text))
        return {**raw, self.key: kept}

    def note(self, text: str, role: Role) -> Raw:
        """Make a record that holds a text."""
        return {"role": role, self.key: [self.text_part(text)]}

    def answer(self, call: ToolCall, text: str) -> Raw:
        """Make a record that answers a call."""
        return {"role": "tool", self.key: [self.result_part(call, text)]}
