"""Dumps of LangChain, LlamaIndex, Anthropic, Responses and data sets go in and come out whole."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, cast

import pytest

from form_samples import SAMPLES
from muntin.cli.conversations.opening import read_chat
from muntin.messages import pairing_problems
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


def _session(muntin: Muntin, path: Path, budget: int) -> list[Any]:
    out = muntin("trim", path, "-b", str(budget), "--quiet").out
    return [json.loads(line) for line in out.splitlines()]


def test_lines_of_a_claude_code_session_name_parents_that_are_there(
    muntin: Muntin, tmp_path: Path
) -> None:
    """A line whose parent is gone cuts the session off for the program that resumes it."""
    [sample] = [one for one in SAMPLES if one.form == "claude-code"]
    path = tmp_path / "s.jsonl"
    odd = b'"a note"\n7\n'  # lines that are no objects stay, too
    path.write_bytes(sample.data + odd)
    for budget in range(200, 2600, 150):
        lines = _session(muntin, path, budget)
        objects: list[dict[str, Any]] = [one for one in lines if isinstance(one, dict)]
        named = [one for one in objects if "parentUuid" in one]
        ids = [one["uuid"] for one in named]

        assert len(set(ids)) == len(ids)
        for at, one in enumerate(named):
            assert one["parentUuid"] is None if at == 0 else one["parentUuid"] in ids[:at]
        assert all(one["sessionId"] == "s1" for one in named)
        assert lines[-2:] == ["a note", 7]


def test_what_was_before_a_compaction_of_claude_code_is_neither_sent_nor_changed(
    muntin: Muntin, tmp_path: Path
) -> None:
    """The program sends only what comes after the boundary; the rest is history on disk."""
    [sample] = [one for one in SAMPLES if one.form == "claude-code"]
    lines = sample.data.decode().splitlines()
    boundary = json.dumps({"type": "system", "subtype": "compact_boundary", "uuid": "cb",
                           "parentUuid": None, "sessionId": "s1"})  # fmt: skip
    path = tmp_path / "s.jsonl"
    path.write_text("\n".join([*lines[:15], boundary, *lines[15:]]) + "\n")
    counted = muntin("count", "--chat", path, "--json").json["total"]["tokens"]["estimate"]
    out = muntin("trim", path, "-b", "700", "--quiet").out.splitlines()

    assert out[:16] == [*lines[:15], boundary]
    assert counted < muntin("count", "--chat", "-", "--json",
                            stdin=sample.data).json["total"]["tokens"]["estimate"]  # fmt: skip


def test_the_tree_of_a_chatgpt_export_stays_one(muntin: Muntin, tmp_path: Path) -> None:
    """Parents and children must agree, and the current node be there, or the import fails."""
    [sample] = [one for one in SAMPLES if one.form == "chatgpt-export"]
    path = tmp_path / "conversations.json"
    path.write_bytes(sample.data)
    for budget in range(180, 2600, 150):
        [conversation] = json.loads(muntin("trim", path, "-b", str(budget), "--quiet").out)
        mapping = conversation["mapping"]
        for key, node in mapping.items():
            assert node["id"] == key
            assert node["parent"] is None or key in mapping[node["parent"]]["children"]
            assert all(mapping[child]["parent"] == key for child in node["children"])
        assert [key for key, node in mapping.items() if node["parent"] is None] == ["root"]
        assert conversation["current_node"] in mapping


def test_tool_turns_of_sharegpt_answer_the_calls_before_them(
    muntin: Muntin, tmp_path: Path
) -> None:
    """Turns without ids: the result was protected as the question, and the question was lost."""
    turns = [
        {"from": "human", "value": "Where is order A-1?"},
        {"from": "function_call", "value": json.dumps([{"name": "find", "arguments": {"n": 1}},
                                                       {"name": "find", "arguments": {"n": 2}}])},
        {"from": "observation", "value": "late " * 400},
        {"from": "observation", "value": "lost " * 400},
        {"from": "gpt", "value": "It is late."},
        {"from": "human", "value": "Is it <tool> or not?"},
        {"from": "gpt", "value": "<tool_call>{}</tool_call>"},
        {"from": "tool", "value": "log line\n" * 500},
    ]  # fmt: skip
    (tmp_path / "x.json").write_text(json.dumps({"conversations": turns}))
    views = [view(message) for message in read_chat(tmp_path / "x.json").messages]
    written = json.loads(muntin("trim", "x.json", "-b", "300").out)["conversations"]

    assert [one.role for one in views] == [
        "user", "assistant", "tool", "tool", "assistant", "user", "assistant", "tool",
    ]  # fmt: skip
    assert [len(one.calls) for one in views] == [0, 2, 0, 0, 0, 0, 1, 0]
    assert pairing_problems(views) == ()
    assert turns[5] in written
    assert [one["from"] for one in written][-2:] == ["gpt", "tool"]


@pytest.mark.parametrize(
    "document",
    [
        {"system": "word " * 90, "conversations": [_sharegpt("human", "hi")]},
        {"system": "word " * 90, "turns": [{"role": "user", "text": "hi"}]},
        {"system": "word " * 90, "messages": [{"type": "human", "data": {"content": "hi"}}]},
        {"tools": json.dumps([{"name": "find", "description": "word " * 90}]),
         "conversations": [_sharegpt("human", "hi")]},
        {"functions": [{"name": "find", "description": "word " * 90}],
         "messages": [{"role": "user", "content": "hi"}]},
        {"system_instruction": {"parts": [{"text": "word " * 90}]},
         "contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
        {"config": {"system_instruction": "word " * 90},
         "contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
    ],
)  # fmt: skip
def test_what_is_sent_beside_the_messages_is_charged(
    document: dict[str, Any], muntin: Muntin
) -> None:
    """A prompt or a schema that counts nothing lets the request overrun, or ended in KeyError."""
    given = json.dumps(document)
    told = muntin("count", "--chat", "--json", stdin=given)
    same = muntin("trim", "-b", "1k", "--quiet", stdin=given)

    assert told.json["total"]["tokens"]["estimate"] > 95
    assert told.json["total"]["characters"] > 400
    assert json.loads(same.out) == document


def test_only_what_follows_the_last_compaction_of_codex_is_changed(
    muntin: Muntin, tmp_path: Path
) -> None:
    """The summary replaces everything before it, and everything after builds on it."""
    [sample] = [one for one in SAMPLES if one.form == "codex" and b"session_meta" in one.data]
    lines = sample.data.decode().splitlines()
    summary = json.dumps({"timestamp": "t", "type": "compacted",
                          "payload": {"message": "Orders A-1 to A-3 are late."}})  # fmt: skip
    path = tmp_path / "rollout.jsonl"
    path.write_text("\n".join([*lines[:18], summary, *lines[18:]]) + "\n")
    views = [view(message) for message in read_chat(path).messages]
    out = muntin("trim", path, "-b", "600", "--quiet").out.splitlines()

    assert out[:19] == [*lines[:18], summary]
    assert any("A-1 to A-3 are late" in one.text for one in views)
    assert len(out) < len(lines)


def test_a_form_that_is_named_is_not_guessed(muntin: Muntin, tmp_path: Path) -> None:
    """Two messages with a role and a text could be of three providers; the user knows of which."""
    (tmp_path / "x.json").write_text('[{"role": "user", "content": "hi"}]')
    for form in ("openai", "anthropic", "openai-responses"):
        told = muntin("trim", "x.json", "-b", "1k", "--form", form, "--json").json
        assert told["conversations"][0]["form"] == form
    other = muntin("trim", "x.json", "-b", "1k", "--form", "codex")
    unknown = muntin("trim", "x.json", "-b", "1k", "--form", "mine")

    assert (other.code, "is not of the form codex" in other.err) == (2, True)
    assert (unknown.code, "there is no form 'mine'" in unknown.err) == (2, True)


def test_replies_of_anthropic_in_a_list_are_not_items_of_responses(tmp_path: Path) -> None:
    """`"type": "message"` alone made the whole file Responses: the question was lost."""
    reply = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": [{"type": "text", "text": "It is late."}],
        "stop_reason": "end_turn",
    }
    messages = [{"role": "user", "content": "Where is it?"}, reply,
                {"role": "user", "content": "And why?"}]  # fmt: skip
    (tmp_path / "x.json").write_text(json.dumps(messages))
    chat = read_chat(tmp_path / "x.json")

    assert chat.form == "anthropic"
    assert [view(one).text for one in chat.messages] == ["Where is it?", "It is late.", "And why?"]


def test_a_question_that_is_only_in_the_chat_brings_its_answer_back(
    muntin: Muntin, tmp_path: Path
) -> None:
    """The question was printed in the report and its answer was not in the result."""
    messages: list[dict[str, Any]] = []
    for n in range(60):
        call = {
            "id": f"c{n}",
            "type": "function",
            "function": {"name": "open", "arguments": json.dumps({"payment": f"pay-{n}"})},
        }
        result = json.dumps({"ticket": f"TCK-{7000 + n * 13}", "payment": f"pay-{n}"})
        messages += [
            {"role": "user", "content": f"Please open a ticket for pay-{n}."},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{n}", "content": result + " log line" * 30},
            {"role": "assistant", "content": f"Done, the ticket for pay-{n} is open."},
        ]  # fmt: skip
    messages.append({"role": "user", "content": "What was the ticket for pay-7?"})
    (tmp_path / "x.json").write_text(json.dumps(messages))
    for budget in ("1500", "2500", "4000"):
        assert "TCK-7091" in muntin("trim", "x.json", "-b", budget, "--quiet").out
