"""What ChatGPT and Claude export: `conversations.json`."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, cast

from muntin.cli.forms.form import Form, Place
from muntin.cli.forms.message import (
    Kind,
    NewResults,
    PlainKind,
    Raw,
    as_record,
    plain_result,
    texts_of,
)
from muntin.messages import ANTHROPIC, canonical_json, replace_result, replace_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from muntin.messages import MessageView, Role, ToolCall

__all__ = ("EXPORTS",)


class _ChatGptKind(PlainKind):
    """Read nodes of a conversation of ChatGPT. A call goes to a `recipient`; it has no id."""

    name = "chatgpt-export"

    def owns(self, raw: Raw) -> bool:
        message = as_record(raw.get("message"))
        return message is not None and bool(_text_of(message) or _thinks(message))

    def links(self, raws: Sequence[Raw]) -> list[tuple[str, ...]]:
        links: list[tuple[str, ...]] = [()] * len(raws)
        at = 0
        while at < len(raws):
            results = at + 1
            while results < len(raws) and _role(raws[results]) == "tool":
                results += 1
            if results > at + 1 and _role(raws[at]) == "assistant":
                links[at] = tuple(f"call-{at}-{n}" for n in range(results - at - 1))
                links[at + 1 : results] = [(one,) for one in links[at]]
            at = results
        return links

    def plain(self, raw: Raw, links: tuple[str, ...]) -> Raw:
        message = cast("Raw", raw["message"])
        role, text = _role(raw), _text_of(message)
        name = (as_record(message.get("author")) or {}).get("name")
        if role == "tool":
            return plain_result(text, links)
        if _thinks(message):
            return {"role": role, "content": None, "reasoning_content": _thoughts(message)}
        plain: Raw = {"role": role, "content": text}
        if role == "user" and isinstance(name, str):
            plain["name"] = name
        recipient = str(message.get("recipient") or "all")
        if links:
            plain["content"] = None if recipient != "all" else text
            arguments = text if recipient != "all" else ""
            plain["tool_calls"] = [
                {"id": one, "name": recipient, "arguments": arguments if one is links[0] else ""}
                for one in links
            ]
        return plain

    def put(self, raw: Raw, text: str) -> Raw:
        message = cast("Raw", raw["message"])
        content = cast("Raw", message["content"])
        if isinstance(content.get("parts"), list):
            media = [part for part in content["parts"] if not isinstance(part, str)]
            changed = {**content, "parts": [text, *media]}
        else:
            key = "text" if "text" in content else "result"
            changed = {**content, key: text}
        return {**raw, "message": {**message, "content": changed}}

    def made(self, role: Role, text: str, call: ToolCall | None = None) -> Raw:
        author: Raw = {"role": role, "name": None if call is None else call.name, "metadata": {}}
        return {"message": {"author": author, "recipient": "all", "metadata": {},
                            "content": {"content_type": "text", "parts": [text]}}}  # fmt: skip


def _role(raw: Raw) -> str:
    author = as_record((as_record(raw.get("message")) or {}).get("author")) or {}
    return str(author.get("role"))


def _text_of(message: Raw) -> str:
    content = as_record(message.get("content")) or {}
    if isinstance(content.get("parts"), list):
        return "\n".join(part for part in content["parts"] if isinstance(part, str))
    for key in ("text", "result"):
        if isinstance(content.get(key), str):
            return content[key]
    return ""


def _thinks(message: Raw) -> bool:
    return (as_record(message.get("content")) or {}).get("content_type") == "thoughts"


def _thoughts(message: Raw) -> str:
    held = (as_record(message.get("content")) or {}).get("thoughts")
    return texts_of(held, "content", "summary")


_CHATGPT = _ChatGptKind()


def _path(conversation: Raw) -> list[Any]:
    """Return the nodes from the root to the current one: what the user sees."""
    mapping = cast("dict[str, Raw]", conversation["mapping"])
    own = conversation.get("current_node")
    if own not in mapping:
        # The newest leaf: the last node in the file that is the parent of no other.
        parents = {node.get("parent") for node in mapping.values()}
        own = next((key for key in reversed(mapping) if key not in parents), None)
    nodes: list[Any] = []
    met: set[str] = set()
    while own in mapping and own not in met:
        met.add(str(own))
        node = mapping[str(own)]
        nodes.append({"id": str(own), **node} if "id" not in node else node)
        own = node.get("parent")
    return nodes[::-1]


def _with_path(conversation: Raw, nodes: list[Any]) -> Raw:
    """Write another path into the tree; other branches keep the nearest node that is left."""
    mapping = dict(cast("dict[str, Raw]", conversation["mapping"]))
    given = [str(node["id"]) for node in _path(conversation)]
    last: str | None = None
    kept: list[Raw] = []
    for node in cast("list[Raw]", nodes):
        if "id" in node:
            own = str(node["id"])
        else:
            own = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{last}{canonical_json(node)}"))
            message = {"id": own, **node["message"]}
            added: Raw = {"id": own, "message": message, "parent": last, "children": []}
            node = added
        kept.append(node)
        last = own
    left = {str(node["id"]) for node in kept}
    if [str(node["id"]) for node in kept] == given:
        for node in kept:
            mapping[str(node["id"])] = node
        return {**conversation, "mapping": mapping}
    heir: dict[str, str | None] = {}
    near: str | None = None
    for own in given:
        near = own if own in left else near
        heir[own] = near
    branches: dict[str | None, list[str]] = {}
    for own, node in mapping.items():
        if own not in heir and node.get("parent") in heir:
            parent = heir[str(node.get("parent"))]
            branches.setdefault(parent, []).append(own)
            if parent != node.get("parent"):
                mapping[own] = {**node, "parent": parent}
    for own in given:
        if own not in left:
            del mapping[own]
    for n, node in enumerate(kept):
        own = str(node["id"])
        below = [str(kept[n + 1]["id"])] if n + 1 < len(kept) else []
        parent = str(kept[n - 1]["id"]) if n else None
        children = [*branches.get(own, []), *below]
        mapping[own] = {**node, "parent": parent, "children": children}
    current = {"current_node": last} if "current_node" in conversation else {}
    return {**conversation, "mapping": mapping, **current}


def _chatgpt(document: Any) -> list[Place]:
    known = as_record(document)
    if known is None or not isinstance(known.get("mapping"), dict):
        return []
    nodes = cast("dict[str, Any]", known["mapping"]).values()
    if not nodes or not all("parent" in (as_record(node) or {}) for node in nodes):
        return []
    title = known.get("title")
    return [Place(kind=_CHATGPT, opened=_path, closed=_with_path,
                  label=title if isinstance(title, str) else "")]  # fmt: skip


_RESULT, _ID = "tool_result_block", "tool_call_ids"
"""Keys of the pieces of a message, which are never written."""


class _ClaudeKind(Kind):
    """Read messages of a Claude export. Calls and their results are blocks of one message."""

    name = "claude-export"

    def owns(self, raw: Raw) -> bool:
        return raw.get("sender") in ("human", "assistant") and ("text" in raw or "content" in raw)

    def view(self, raw: Raw, links: tuple[str, ...]) -> MessageView:
        del links
        if _RESULT in raw:
            block = {**raw[_RESULT], "tool_use_id": raw[_ID]}
            return ANTHROPIC.view({"role": "user", "content": [_known(block)]})
        ids = cast("dict[int, str]", raw.get(_ID) or {})
        blocks: list[Any] = []
        for n, block in enumerate(_content(raw)):
            if block.get("type") not in ("tool_use", "tool_result"):
                blocks.append(_known(block))
            elif n in ids:
                blocks.append(_known({**block, "id": ids[n]}))
            else:  # without its counterpart in the message it waits for nothing
                blocks.append({**_known(block), "type": f"server_{block['type']}"})
        content = blocks or [{"type": "text", "text": str(raw.get("text") or "")}]
        for one in cast("list[Raw]", raw.get("attachments") or []):
            if one.get("extracted_content"):
                content.append({"type": "attachment", "text": one["extracted_content"]})
        role = "assistant" if raw["sender"] == "assistant" else "user"
        return ANTHROPIC.view({"role": role, "content": content, "id": raw.get("uuid")})

    def with_text(self, raw: Raw, text: str) -> Raw:
        changed = {**raw, "text": text} if "text" in raw else dict(raw)
        if isinstance(raw.get("content"), list):
            changed["content"] = replace_text(raw["content"], text)
        return changed

    def with_results(self, raw: Raw, links: tuple[str, ...], new: NewResults) -> Raw:
        del links
        block = as_record(raw.get(_RESULT))
        called = str(raw.get(_ID))
        text = new.texts.get(called)
        if block is None or text is None:
            return raw
        content = replace_result(block.get("content"), text, bare=called in new.bare)
        if isinstance(block.get("content"), list) and isinstance(content, str):
            content = [{"type": "text", "text": content}]
        return {**raw, _RESULT: {**block, "content": content}}

    def note(self, text: str, role: Role) -> Raw:
        sender = "assistant" if role == "assistant" else "human"
        block = {"type": "text", "text": text}
        return {"text": text, "content": [block], "sender": sender, "attachments": [], "files": []}

    def answer(self, call: ToolCall, text: str) -> Raw:
        return self.note(f"{call.name}: {text}", "user")

    def split(self, raw: Raw) -> list[Raw]:
        pieces: list[Raw] = []
        groups = _groups(_content(raw))
        if len(groups) == 1 and not groups[0][1]:
            return [raw]
        for number, (said, results) in enumerate(groups):
            calls = [n for n, block in enumerate(said) if block.get("type") == "tool_use"]
            ids = {n: f"{raw.get('uuid')}/{number}/{n}" for n in calls[: len(results)]}
            text = {"text": texts_of(said, "text")} if "text" in raw else {}
            attached = {} if number else {"attachments": raw.get("attachments")}
            pieces.append(
                {**raw, "attachments": None, **attached, **text, "content": said, _ID: ids}
            )
            pieces += [
                {"sender": "tool", _RESULT: block, _ID: called}
                for block, called in zip(results, ids.values(), strict=False)
            ]
        return pieces

    def join(self, original: Raw, pieces: Mapping[int, Raw]) -> Raw:
        groups = _groups(_content(original))
        if len(groups) == 1 and not groups[0][1]:
            return pieces[0]
        blocks: list[Any] = []
        for _, piece in sorted(pieces.items()):
            blocks += [piece[_RESULT]] if _RESULT in piece else _content(piece)
        # Calls stay in front of their results: pieces are numbered in this order.
        text = {"text": texts_of(blocks, "text")} if "text" in original else {}
        return {**original, **text, "content": blocks}

    def settled(self, raw: Raw, before: Raw | None, after: Raw | None) -> Raw:
        near = before or after or {}
        own = uuid.uuid5(uuid.NAMESPACE_OID, f"{near.get('uuid')}{canonical_json(raw)}")
        same = {key: near[key] for key in ("created_at", "updated_at") if key in near}
        return {"uuid": str(own), **same, **raw}


def _content(raw: Raw) -> list[Raw]:
    content = raw.get("content")
    return cast("list[Raw]", content) if isinstance(content, list) else []


def _known(block: Raw) -> Raw:
    """Leave out keys without a value; the export writes every key it knows."""
    return {key: value for key, value in block.items() if value is not None}


def _groups(blocks: Sequence[Raw]) -> list[tuple[list[Raw], list[Raw]]]:
    """Divide blocks into model turns: text and calls, and the results of the calls."""
    groups: list[tuple[list[Raw], list[Raw]]] = [([], [])]
    for block in blocks:
        calls = sum(one.get("type") == "tool_use" for one in groups[-1][0])
        if block.get("type") == "tool_result" and len(groups[-1][1]) < calls:
            groups[-1][1].append(block)
            continue
        if groups[-1][1]:
            groups.append(([], []))
        groups[-1][0].append(block)
    return groups


_CLAUDE = _ClaudeKind()


def _claude(document: Any) -> list[Place]:
    known = as_record(document)
    messages = None if known is None else known.get("chat_messages")
    if known is None or not isinstance(messages, list):
        return []
    name = known.get("name")
    return [Place(kind=_CLAUDE, path=("chat_messages",),
                  label=name if isinstance(name, str) else "")]  # fmt: skip


EXPORTS = (
    Form(name="chatgpt-export", title="ChatGPT export (`conversations.json`)", find=_chatgpt),
    Form(name="claude-export", title="Claude export (`conversations.json`)", find=_claude),
)
