"""Dumps of LangChain, LlamaIndex, Anthropic, Responses and data sets go in and come out whole."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, cast

import pytest

from muntin.cli.conversations.chat_file import read_chat
from muntin.messages.shapes import view

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli_runs import Muntin
    from muntin.messages.shapes import MessageView

COMMANDS = (
    ["trim", "--budget", "1200", "--quiet"],
    ["compact", "--trigger", "800", "--summary", "300", "--quiet"],
)
BOTH = pytest.mark.parametrize("command", COMMANDS, ids=["trim", "compact"])


def _langchain(chat: list[dict[str, Any]]) -> list[Any]:
    messages = pytest.importorskip("langchain_core.messages")
    return cast("list[Any]", messages.convert_to_messages(chat))


def _views(path: Path, value: object) -> list[MessageView]:
    path.write_text(json.dumps(value), encoding="utf-8")
    return [view(message) for message in read_chat(path).messages]


def _same(one: MessageView, other: MessageView) -> bool:
    def said(read: MessageView) -> object:
        calls = [(call.id, call.name, call.parsed) for call in read.calls]
        return read.role, read.text, calls, [(r.call_id, r.text) for r in read.results]

    return said(one) == said(other)


@BOTH
@pytest.mark.filterwarnings("ignore:The function `load` is in beta")
@pytest.mark.parametrize("how", ["messages_to_dict", "dumpd"])
def test_langchain_loads_what_comes_out(
    command: list[str], how: str, muntin: Muntin, chat: list[dict[str, Any]],
    tmp_path: Path,
) -> None:  # fmt: skip
    """A history store writes these files and must read the shortened one again."""
    given = _langchain(chat)
    from langchain_core.load import dumpd, load
    from langchain_core.messages import messages_from_dict, messages_to_dict

    written = messages_to_dict(given) if how == "messages_to_dict" else dumpd(given)
    ended = muntin(*command, stdin=json.dumps(written))
    if how == "messages_to_dict":
        out: list[Any] = list(messages_from_dict(json.loads(ended.out)))
    else:
        out = load(json.loads(ended.out), allowed_objects="messages")
    plain = _views(tmp_path / "plain.json", chat)
    read = _views(tmp_path / "dump.json", written)

    assert all(map(_same, read, plain))
    assert len(out) < len(given)
    assert out[0] == given[0]
    assert out[-1] == given[-1]


@BOTH
def test_llama_index_loads_what_comes_out(
    command: list[str], muntin: Muntin, chat: list[dict[str, Any]], tmp_path: Path
) -> None:
    """The same for LlamaIndex, with calls as blocks."""
    types = pytest.importorskip("llama_index.core.base.llms.types")
    given: list[Any] = []
    for message in chat:
        blocks = [types.TextBlock(text=message["content"])] if message["content"] else []
        for call in message.get("tool_calls", ()):
            arguments = json.loads(call["function"]["arguments"])
            block = types.ToolCallBlock(
                tool_call_id=call["id"], tool_name="find", tool_kwargs=arguments
            )
            blocks.append(block)
        beside = {key: message[key] for key in ("tool_call_id",) if key in message}
        given.append(
            types.ChatMessage(role=message["role"], blocks=blocks, additional_kwargs=beside)
        )
    written = [message.model_dump(mode="json") for message in given]
    for stored in (written, {"store": {"user-7": written}, "class_name": "SimpleChatStore"}):
        ended = muntin(*command, stdin=json.dumps(stored))
        value: Any = json.loads(ended.out)
        out: list[Any] = value if stored is written else value["store"]["user-7"]
        loaded = [types.ChatMessage.model_validate(one) for one in out]

        assert len(loaded) < len(given)
        assert loaded[0].blocks == given[0].blocks
        assert loaded[-1].blocks == given[-1].blocks
    assert all(map(_same, _views(tmp_path / "d.json", written), _views(tmp_path / "p.json", chat)))


def _anthropic(chat: list[dict[str, Any]]) -> dict[str, Any]:
    messages: list[dict[str, Any]] = []
    for message in chat[1:]:
        if message["role"] == "tool":
            block = {"type": "tool_result", "tool_use_id": message["tool_call_id"],
                     "content": message["content"]}  # fmt: skip
            messages.append({"role": "user", "content": [block]})
        elif "tool_calls" in message:
            uses = [
                {"type": "tool_use", "id": call["id"], "name": "find",
                 "input": json.loads(call["function"]["arguments"])}
                for call in message["tool_calls"]
            ]  # fmt: skip
            messages.append({"role": "assistant", "content": uses})
        else:
            messages.append(message)
    tool = {"name": "find", "description": "Find an order.", "input_schema": {"type": "object"}}
    return {"model": "claude", "max_tokens": 9, "system": chat[0]["content"], "tools": [tool],
            "messages": messages}  # fmt: skip


@BOTH
def test_an_anthropic_request_stays_one(
    command: list[str], muntin: Muntin, chat: list[dict[str, Any]]
) -> None:
    """`system` stands beside the messages there, and a system message among them is refused."""
    request = _anthropic(chat)
    out = json.loads(muntin(*command, stdin=json.dumps(request)).out)
    messages = out.pop("messages")
    used = [b["id"] for m in messages if isinstance(m["content"], list)
            for b in m["content"] if b["type"] == "tool_use"]  # fmt: skip
    answered = [b["tool_use_id"] for m in messages if isinstance(m["content"], list)
                for b in m["content"] if b["type"] == "tool_result"]  # fmt: skip

    assert out == {key: value for key, value in request.items() if key != "messages"}
    assert len(messages) < len(request["messages"])
    assert {message["role"] for message in messages} == {"user", "assistant"}
    assert messages[-1] == request["messages"][-1]
    assert used == answered


@BOTH
def test_a_responses_request_stays_one(
    command: list[str], muntin: Muntin, chat: list[dict[str, Any]]
) -> None:
    """Items have no roles where they are calls and outputs."""
    items: list[dict[str, Any]] = []
    for message in chat[1:]:
        if message["role"] == "tool":
            items.append({"type": "function_call_output", "call_id": message["tool_call_id"],
                          "output": message["content"]})  # fmt: skip
        elif "tool_calls" in message:
            items += [
                {"type": "function_call", "call_id": call["id"], **call["function"]}
                for call in message["tool_calls"]
            ]
        else:
            items.append(message)
    request = {"model": "gpt-4o", "instructions": chat[0]["content"], "input": items}
    out = json.loads(muntin(*command, stdin=json.dumps(request)).out)
    calls = [one["call_id"] for one in out["input"] if one.get("type") == "function_call"]
    outputs = [one["call_id"] for one in out["input"] if "output" in one]

    assert out["instructions"] == request["instructions"]
    assert len(out["input"]) < len(items)
    assert out["input"][-1] == items[-1]
    assert calls == outputs


def _sharegpt(who: str, text: str) -> dict[str, str]:
    return {"from": who, "value": text}


def _speaker(who: str, text: str) -> dict[str, str]:
    return {"role": "user" if who == "human" else "assistant", "speaker": "Ann", "text": text}


@BOTH
@pytest.mark.parametrize(
    ("key", "turn"),
    [
        ("conversations", _sharegpt),
        ("turns", _speaker),
    ],
    ids=["sharegpt", "turns"],
)  # fmt: skip
def test_turns_of_data_sets_keep_their_keys(
    command: list[str],
    key: str,
    turn: Callable[[str, str], dict[str, str]],
    muntin: Muntin,
) -> None:
    """Data sets name role and text otherwise; what comes out must load where the rest does."""
    talk = [turn("human" if n % 2 == 0 else "gpt", f"Turn {n} about part {n * 7}. " * 8)
            for n in range(61)]  # fmt: skip
    out = json.loads(muntin(*command, stdin=json.dumps({"id": "x", key: talk})).out)

    assert out["id"] == "x"
    assert 2 < len(out[key]) < len(talk)
    assert out[key][-1] == talk[-1]
    text, role = ("value", "from") if key == "conversations" else ("text", "role")
    assert all(text in one and role in one for one in out[key])


def test_blocks_of_langchain_and_llama_index_are_read_for_what_they_are(tmp_path: Path) -> None:
    """An image counted as its base64 would be charged a thousandfold."""
    header = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\10\6\0\0\0"
    image = base64.b64encode(header + b"x" * 90).decode()
    uri = f"data:image/png;base64,{image}"
    llama: dict[str, Any] = {"role": "user", "additional_kwargs": {}, "blocks": [
        {"block_type": "text", "text": "see"},
        {"block_type": "image", "image": image, "image_mimetype": "image/png"},
        {"block_type": "thinking", "content": "hm"}]}  # fmt: skip
    human: dict[str, Any] = {"type": "human", "data": {"type": "human", "content": [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": uri}}]}}  # fmt: skip
    for message in (llama, human):
        read = _views(tmp_path / "x.json", [message])[0]

        assert read.text == "see"
        assert [(thing.kind, thing.width) for thing in read.media] == [("image", 1)]
        assert read.unknown == ()
