"""Conversations of data sets: ShareGPT, turns with a role and a text, Alpaca with a history."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from muntin.cli.forms.blocks import BlocksKind
from muntin.cli.forms.form import Form, Place
from muntin.cli.forms.message import NewResults, PlainKind, Raw, as_record, plain_result
from muntin.messages import ANTHROPIC, canonical_json, role_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muntin.messages import MessageView, Role, ToolCall

__all__ = ("ALPACA", "DATASET_KINDS")

_SPEAKERS: dict[str, Role] = {"gpt": "assistant", "chatgpt": "assistant", "bot": "assistant",
                              "bard": "assistant", "bing": "assistant"}  # fmt: skip
_CALLS = frozenset({"function_call", "tool_call", "function-call"})
_RESULTS = frozenset({"observation", "tool", "function_response", "tool_response", "function",
                      "ipython", "tool_result"})  # fmt: skip


class _TurnKind(PlainKind):
    """Read records with a speaker under one key and a text under another.

    Calls and results have no ids: a result answers the calls before it by its position. Where no
    message is marked as a call of a tool, a result answers the assistant message before it.
    """

    def __init__(self, name: str, role: str, text: str) -> None:
        self.name, self._role, self._text = name, role, text
        super().__init__()

    def owns(self, raw: Raw) -> bool:
        """Return whether a record has both keys."""
        return isinstance(raw.get(self._role), str) and isinstance(raw.get(self._text), str) and (
            self._text == "content" or "content" not in raw
        )  # fmt: skip

    def links(self, raws: Sequence[Raw]) -> list[tuple[str, ...]]:
        """Give calls and results ids by their position."""
        links: list[tuple[str, ...]] = [()] * len(raws)
        at = 0
        while at < len(raws):
            results = at + 1
            while results < len(raws) and self._said(raws[results]) in _RESULTS:
                results += 1
            answers = results - at - 1
            said = self._said(raws[at])
            calls = len(_calls(raws[at][self._text])) if said in _CALLS else 1
            if said in _CALLS or (answers and self._speaker(said) == "assistant"):
                # With fewer results than calls, the results answer all of them together.
                ids = answers if said not in _CALLS else calls if calls <= answers else 1
                links[at] = tuple(f"call-{at}-{n}" for n in range(ids))
                for n in range(answers):
                    links[at + 1 + n] = (links[at][min(n, len(links[at]) - 1)],)
                for n in range(len(links[at]), answers):
                    links[at + 1 + n] = ()
            at = results
        return links

    def _said(self, raw: Raw) -> str:
        return str(raw[self._role]).lower()

    def _speaker(self, said: str) -> Role:
        return _SPEAKERS.get(said) or role_of(said)

    def plain(self, raw: Raw, links: tuple[str, ...]) -> Raw:
        """Write the record as a chat-completions message."""
        said, text = self._said(raw), raw[self._text]
        name = raw.get("speaker")
        if said in _RESULTS:
            return plain_result(text, links)
        if said in _CALLS:
            calls = _calls(text)
            if len(calls) != len(links):
                calls = [("tools" if len(calls) > 1 else calls[0][0], text)]
            made = [
                {"id": link, "name": tool, "arguments": arguments}
                for link, (tool, arguments) in zip(links, calls, strict=False)
            ]
            return {"role": "assistant", "content": None, "tool_calls": made}
        plain: Raw = {"role": self._speaker(said), "content": text, "name": name}
        if links:
            plain["tool_calls"] = [{"id": one, "name": "tool", "arguments": ""} for one in links]
        return plain

    def put(self, raw: Raw, text: str) -> Raw:
        """Copy the record with another text."""
        return {**raw, self._text: text}

    def made(self, role: Role, text: str, call: ToolCall | None = None) -> Raw:
        """Write a new record."""
        del call
        if self._role != "from":
            return {self._role: role, self._text: text}
        named = {"user": "human", "assistant": "gpt", "tool": "observation"}
        return {"from": named.get(role, role), self._text: text}


def _calls(text: str) -> list[tuple[str, str]]:
    """Read the calls a text holds, as names and arguments; a text that is not JSON is one call."""
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return [("tool", text)]
    found: list[tuple[str, str]] = []
    for one in cast("list[Any]", value) if isinstance(value, list) else [value]:
        held = as_record(one)
        if held is None:
            return [("tool", text)]
        given = held.get("arguments", held.get("parameters", {}))
        arguments = given if isinstance(given, str) else canonical_json(given)
        found.append((str(held.get("name") or "tool"), arguments))
    return found or [("tool", text)]


SHAREGPT_KIND = _TurnKind("sharegpt", "from", "value")
TURNS_KIND = _TurnKind("turns", "role", "text")


class _ValuesKind(BlocksKind):
    """Read messages of LLaMA-Factory's own form: parts with a `type` and a `value`, without ids."""

    name = "llama-factory"
    text_key = "value"

    def owns(self, raw: Raw) -> bool:
        content = raw.get("content")
        return "role" in raw and isinstance(content, list) and all(
            {"type", "value"} <= (as_record(part) or {}).keys()
            for part in cast("list[Any]", content)
        )  # fmt: skip

    def links(self, raws: Sequence[Raw]) -> list[tuple[str, ...]]:
        links: list[tuple[str, ...]] = [()] * len(raws)
        waiting: list[str] = []
        for n, raw in enumerate(raws):
            if raw["role"] == "tool":
                links[n] = (waiting.pop(0),) if waiting else ()
                continue
            results = 0
            while n + 1 + results < len(raws) and raws[n + 1 + results]["role"] == "tool":
                results += 1
            calls = sum(part["type"] == "tool_call" for part in raw["content"])
            waiting = [f"call-{n}-{at}" for at in range(min(calls, results))]
            links[n] = tuple(waiting)
        return links

    def view(self, raw: Raw, links: tuple[str, ...]) -> MessageView:
        if raw["role"] == "tool" and links:
            text = "\n".join(str(part["value"]) for part in raw["content"])
            result = {"type": "tool_result", "tool_use_id": links[0], "content": text}
            return ANTHROPIC.view({"role": "user", "content": [result]})
        ids = iter(links)
        blocks: list[Any] = []
        for part in cast("list[Raw]", raw["content"]):
            block = self.opened(part)
            if block["type"] == "tool_use":
                block["id"] = next(ids, None)
                if block["id"] is None:  # nothing came back: it waits for no result
                    block["type"] = "server_tool_use"
            blocks.append(block)
        role = "assistant" if raw["role"] == "tool" else raw["role"]
        return ANTHROPIC.view({"role": role, "content": blocks})

    def opened(self, part: Raw) -> Any:
        kind, value = part["type"], part["value"]
        if kind == "text":
            return {"type": "text", "text": value}
        if kind == "reasoning":
            return {"type": "thinking", "thinking": value}
        if kind == "tool_call":
            [name, arguments] = _calls(str(value))[0]
            return {"type": "tool_use", "name": name, "input": arguments}
        return {"type": str(kind).removesuffix("_url"), "url": value}

    def with_results(self, raw: Raw, links: tuple[str, ...], new: NewResults) -> Raw:
        text = new.texts.get(links[0]) if raw["role"] == "tool" and links else None
        return raw if text is None else {**raw, "content": [self.text_part(text)]}

    def answer(self, call: ToolCall, text: str) -> Raw:
        del call
        return {"role": "tool", "content": [self.text_part(text)]}


LLAMA_FACTORY_KIND = _ValuesKind()


class _AlpacaKind(_TurnKind):
    """Read the turns of an Alpaca record; see `_alpaca`."""

    def view(self, raw: Raw, links: tuple[str, ...]) -> MessageView:
        """Read a turn; the record's own question and answer stay as they are."""
        return super().view(raw, links)._replace(pinned=bool(raw.get("last")))


DATASET_KINDS = (SHAREGPT_KIND, TURNS_KIND, LLAMA_FACTORY_KIND)
"""The kinds of data sets, the most particular first."""

_ALPACA = _AlpacaKind("alpaca", "role", "text")


def _alpaca(document: Any) -> list[Place]:
    """Find the turns of a record: `history` in pairs, then `instruction` with `input`, `output`.

    Instruction and output are the record's own question and answer and stay as they are; a pair of
    the history is changed as a whole.
    """
    known = as_record(document)
    if known is None or not isinstance(known.get("instruction"), str) or "output" not in known:
        return []
    history = known.get("history")
    if history is not None and not (
        isinstance(history, list) and all(_is_pair(one) for one in cast("list[Any]", history))
    ):
        return []
    place = Place(
        kind=_ALPACA,
        system=("system",) if known.get("system") else None,
        opened=_turns,
        closed=_record,
        tools=("tools",) if known.get("tools") else None,
    )
    return [place]


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(cast("list[Any]", value)) == 2


def _turns(record: Raw) -> list[Any]:
    turns: list[Raw] = []
    for asked, answered in cast("list[list[Any]]", record.get("history") or []):
        # An empty half only fills a pair; it is not a message.
        pair = (("user", str(asked)), ("assistant", str(answered)))
        turns += [{"role": role, "text": text} for role, text in pair if text]
    question = "\n".join(str(t) for t in (record["instruction"], record.get("input")) if t)
    turns.append({"role": "user", "text": question, "last": True})
    if isinstance(record.get("output"), str) and record["output"]:
        turns.append({"role": "assistant", "text": record["output"], "last": True})
    return turns


def _record(record: Raw, turns: list[Any]) -> Raw:
    """Write the turns before the last question in pairs; an unpaired turn gets an empty one."""
    changed = dict(record)
    pairs: list[list[str]] = []
    for turn in cast("list[Raw]", turns):
        if turn.get("last"):
            continue
        if turn["role"] == "assistant" and pairs and not pairs[-1][1]:
            pairs[-1][1] = turn["text"]
        elif turn["role"] == "assistant":
            pairs.append(["", turn["text"]])
        else:
            pairs.append([turn["text"], ""])
    if "history" in record or pairs:
        changed["history"] = pairs
    return changed


ALPACA = Form(
    name="alpaca",
    title="Alpaca records of LLaMA-Factory (`instruction`, `input`, `output`, `history`)",
    find=_alpaca,
)
