"""One small conversation written in every form that the command line reads.

The same rounds are written by one function for each form, so that what a form may lose shows.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("QUESTION", "SAMPLES", "Sample", "rounds")

PROMPT = "You look after the orders of a lamp shop."
QUESTION = "And which order was the first that came late?"
ROUNDS = 9

Record = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One request: the question, the call, what it returned, and the answer."""

    number: int
    asked: str
    arguments: Record
    returned: str
    answered: str

    @property
    def call(self) -> str:
        return f"call_{self.number}"


def rounds() -> list[Round]:
    """The rounds of the conversation; the last question comes after them."""
    return [
        Round(
            number=n,
            asked=f"Where is order A-{n}? It went to street number {n * 3}.",
            arguments={"order": f"A-{n}"},
            returned=f"order: A-{n}\nstatus: late by {n} days\n" + f"line of log {n}\n" * 30,
            answered=f"Order A-{n} is late by {n} days, and the carrier knows of it.",
        )
        for n in range(1, ROUNDS + 1)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A file of one form."""

    form: str
    data: bytes
    outside: Callable[[Any], Any]
    """What of the parsed file is no message, and so must stay."""
    suffix: str = ".json"
    has_calls: bool = True
    fixed: int = 0
    """Tokens that cannot go, beyond the prompt and the question."""


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()


def _lines(values: list[Any]) -> bytes:
    return "".join(f"{json.dumps(one, separators=(',', ':'))}\n" for one in values).encode()


def _without(*path: str | int) -> Callable[[Any], Any]:
    """Replace what is at a path, and so compare the rest."""

    def outside(value: Any) -> Any:
        if not path:
            return None
        copy = json.loads(json.dumps(value))
        held = copy
        for key in path[:-1]:
            held = held[key]
        held[path[-1]] = None
        return copy

    return outside


def _others(is_message: Callable[[Record], bool]) -> Callable[[Any], Any]:
    return lambda values: [one for one in values if not is_message(one)]


TOOL = {"type": "function", "function": {"name": "find", "description": "Find an order.",
        "parameters": {"type": "object", "properties": {"order": {"type": "string"}}}}}  # fmt: skip


def _openai(*, system: bool = True) -> list[Record]:
    messages: list[Record] = [{"role": "system", "content": PROMPT}] if system else []
    for one in rounds():
        call = {"id": one.call, "type": "function",
                "function": {"name": "find", "arguments": json.dumps(one.arguments)}}  # fmt: skip
        messages += [
            {"role": "user", "content": one.asked},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": one.call, "content": one.returned},
            {"role": "assistant", "content": one.answered},
        ]
    return [*messages, {"role": "user", "content": QUESTION}]


def _anthropic(*, replies: bool = False) -> list[Record]:
    extra = {"id": "msg_01", "type": "message", "model": "claude", "stop_reason": "end_turn",
             "usage": {"input_tokens": 3}} if replies else {}  # fmt: skip
    messages: list[Record] = []
    for one in rounds():
        use = {"type": "tool_use", "id": one.call, "name": "find", "input": one.arguments}
        result = {"type": "tool_result", "tool_use_id": one.call, "content": one.returned}
        messages += [
            {"role": "user", "content": one.asked},
            {"role": "assistant", "content": [use], **extra},
            {"role": "user", "content": [result]},
            {"role": "assistant", "content": [{"type": "text", "text": one.answered}], **extra},
        ]
    return [*messages, {"role": "user", "content": QUESTION}]


def _responses() -> list[Record]:
    items: list[Record] = []
    for one in rounds():
        items += [
            {"role": "user", "content": one.asked},
            {"type": "function_call", "call_id": one.call, "name": "find",
             "arguments": json.dumps(one.arguments)},
            {"type": "function_call_output", "call_id": one.call, "output": one.returned},
            {"type": "message", "role": "assistant", "id": f"m{one.number}",
             "content": [{"type": "output_text", "text": one.answered}]},
        ]  # fmt: skip
    return [*items, {"role": "user", "content": QUESTION}]


def _gemini() -> list[Record]:
    contents: list[Record] = []
    for one in rounds():
        contents += [
            {"role": "user", "parts": [{"text": one.asked}]},
            {"role": "model", "parts": [{"functionCall": {"name": "find", "args": one.arguments}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "find",
             "response": {"result": one.returned}}}]},
            {"role": "model", "parts": [{"text": one.answered}]},
        ]  # fmt: skip
    return [*contents, {"role": "user", "parts": [{"text": QUESTION}]}]


def _claude_code() -> list[Record]:
    lines: list[Record] = [
        {"type": "summary", "summary": "Late orders", "leafUuid": "u1"},
        {"type": "file-history-snapshot", "messageId": "u1", "snapshot": {}},
    ]
    parent: str | None = None
    for n, message in enumerate(_anthropic()):
        own = f"u{n}"
        lines.append({
            "parentUuid": parent, "isSidechain": False, "userType": "external", "cwd": "/shop",
            "sessionId": "s1", "version": "2.0.1", "gitBranch": "main", "type": message["role"],
            "message": message, "uuid": own, "timestamp": f"2026-01-01T00:00:{n:02}Z",
        })  # fmt: skip
        if n % 7 == 3:
            lines.append({"parentUuid": own, "isSidechain": False, "type": "system",
                          "uuid": f"s{n}", "durationMs": n, "sessionId": "s1"})  # fmt: skip
            own = f"s{n}"
        parent = own
    return lines


def _is_claude_code_message(line: Record) -> bool:
    return "message" in line


def _codex() -> list[Record]:
    lines: list[Record] = [
        {"timestamp": "t0", "type": "session_meta", "payload": {"id": "s", "cwd": "/shop",
         "base_instructions": {"text": PROMPT}}},
        {"timestamp": "t0", "type": "turn_context", "payload": {"model": "gpt-5"}},
    ]  # fmt: skip
    for n, item in enumerate(_responses()):
        if "type" not in item:
            part = {"type": "input_text", "text": item["content"]}
            item = {"type": "message", "role": "user", "content": [part]}
            lines.append({"timestamp": f"t{n}", "type": "event_msg",
                          "payload": {"type": "user_message", "message": "seen"}})  # fmt: skip
        lines.append({"timestamp": f"t{n}", "type": "response_item", "payload": item})
    return lines


def _codex_early() -> list[Record]:
    lines: list[Record] = [{"id": "s", "timestamp": "t0", "instructions": None, "git": {}},
                           {"record_type": "state"}]  # fmt: skip
    return [*lines, *(one["payload"] for one in _codex() if one["type"] == "response_item")]


def _gemini_cli() -> Record:
    messages: list[Record] = []
    for one in rounds():
        response = {"id": one.call, "name": "find", "response": {"output": one.returned}}
        messages += [
            {"id": f"a{one.number}", "timestamp": "t", "type": "user", "content": one.asked},
            {"id": f"b{one.number}", "timestamp": "t", "type": "gemini", "content": "",
             "thoughts": [], "toolCalls": [{"id": one.call, "name": "find", "args": one.arguments,
             "status": "success", "result": [{"functionResponse": response}]}]},
            {"id": f"c{one.number}", "timestamp": "t", "type": "info", "content": "saved"},
            {"id": f"d{one.number}", "timestamp": "t", "type": "gemini", "content": one.answered},
        ]  # fmt: skip
    messages.append({"id": "z", "timestamp": "t", "type": "user", "content": QUESTION})
    return {"sessionId": "s", "projectHash": "h", "startTime": "t", "messages": messages}


def _gemini_cli_outside(value: Any) -> Any:
    kept = [one for one in value["messages"] if one["type"] == "info"]
    return {**value, "messages": kept}


def _swe_agent() -> Record:
    history: list[Record] = []
    for message in _openai():
        message = {**message, "agent": "main"}
        if message["role"] == "tool":
            message = {**message, "tool_call_ids": [message.pop("tool_call_id")],
                       "message_type": "observation"}  # fmt: skip
        history.append(message)
    return {"environment": "shop", "trajectory": [{"action": "find", "observation": "..."}],
            "history": history, "info": {"exit_status": "submitted"}}  # fmt: skip


def _openhands() -> list[Record]:
    events: list[Record] = [
        {"id": 0, "source": "agent", "message": PROMPT, "action": "system",
         "args": {"content": PROMPT, "tools": None}},
        {"id": 1, "source": "environment", "observation": "agent_state_changed", "content": "",
         "extras": {"agent_state": "running"}},
    ]  # fmt: skip
    for one in rounds():
        at = one.number * 10
        events += [
            {"id": at, "source": "user", "message": one.asked, "action": "message",
             "args": {"content": one.asked, "image_urls": None}},
            {"id": at + 1, "source": "agent", "message": "Running", "action": "run",
             "args": {"command": "find", "thought": "", **one.arguments},
             "tool_call_metadata": {"function_name": "find", "tool_call_id": one.call}},
            {"id": at + 2, "source": "agent", "cause": at + 1, "observation": "run",
             "content": one.returned, "extras": {"exit_code": 0}},
            {"id": at + 3, "source": "agent", "message": one.answered, "action": "message",
             "args": {"content": one.answered}},
        ]  # fmt: skip
    args = {"content": QUESTION}
    return [*events, {"id": 999, "source": "user", "message": QUESTION, "action": "message",
                      "args": args}]  # fmt: skip


def _openhands_sdk() -> list[Record]:
    def said(role: str, text: str, own: str) -> Record:
        message = {"role": role, "content": [{"type": "text", "text": text}]}
        return {"id": own, "source": "user" if role == "user" else "agent",
                "llm_message": message, "kind": "MessageEvent"}  # fmt: skip

    events: list[Record] = [
        {"id": "p", "source": "agent", "kind": "SystemPromptEvent", "tools": [],
         "system_prompt": {"type": "text", "text": PROMPT}},
        {"id": "q", "source": "environment", "kind": "ConversationStateUpdateEvent", "key": "k"},
    ]  # fmt: skip
    for one in rounds():
        content = [{"type": "text", "text": one.returned}]
        events += [
            said("user", one.asked, f"a{one.number}"),
            {"id": f"b{one.number}", "source": "agent", "kind": "ActionEvent", "thought": [],
             "action": one.arguments, "tool_name": "find", "tool_call_id": one.call,
             "tool_call": {"id": one.call, "name": "find",
                           "arguments": json.dumps(one.arguments)}},
            {"id": f"c{one.number}", "source": "environment", "kind": "ObservationEvent",
             "tool_name": "find", "tool_call_id": one.call, "action_id": f"b{one.number}",
             "observation": {"content": content, "kind": "FindObservation"}},
            said("assistant", one.answered, f"d{one.number}"),
        ]  # fmt: skip
    return [*events, said("user", QUESTION, "z")]


def _chatgpt() -> list[Record]:
    nodes: list[Record] = []
    for one in rounds():
        nodes += [
            {"author": {"role": "user", "name": None}, "recipient": "all",
             "content": {"content_type": "text", "parts": [one.asked]}},
            {"author": {"role": "assistant", "name": None}, "recipient": "find",
             "content": {"content_type": "code", "text": json.dumps(one.arguments)}},
            {"author": {"role": "tool", "name": "find"}, "recipient": "all",
             "content": {"content_type": "execution_output", "text": one.returned}},
            {"author": {"role": "assistant", "name": None}, "recipient": "all",
             "content": {"content_type": "text", "parts": [one.answered]}},
        ]  # fmt: skip
    nodes.append({"author": {"role": "user", "name": None}, "recipient": "all",
                  "content": {"content_type": "text", "parts": [QUESTION]}})  # fmt: skip
    mapping: Record = {"root": {"id": "root", "message": None, "parent": None, "children": ["n0"]}}
    for n, message in enumerate(nodes):
        children = [f"n{n + 1}"] if n + 1 < len(nodes) else []
        mapping[f"n{n}"] = {"id": f"n{n}", "message": {"id": f"n{n}", **message},
                            "children": children,
                            "parent": f"n{n - 1}" if n else "root"}  # fmt: skip
    mapping["n4"]["children"].append("branch")
    mapping["branch"] = {"id": "branch", "parent": "n4", "children": [], "message": {
        "id": "branch", "author": {"role": "assistant"}, "recipient": "all",
        "content": {"content_type": "text", "parts": ["Another answer."]}}}  # fmt: skip
    return [{"title": "Late orders", "create_time": 1.5, "mapping": mapping,
             "current_node": f"n{len(nodes) - 1}", "conversation_id": "c"}]  # fmt: skip


def _chatgpt_outside(value: Any) -> Any:
    branch = value[0]["mapping"]["branch"]
    return [{**value[0], "mapping": branch["message"], "current_node": None}]


def _claude_export() -> list[Record]:
    messages: list[Record] = []
    for one in rounds():
        use = {"type": "tool_use", "name": "find", "input": one.arguments, "start_timestamp": "t"}
        result = {"type": "tool_result", "name": "find", "is_error": False,
                  "content": [{"type": "text", "text": one.returned}]}  # fmt: skip
        text: Record = {"type": "text", "text": one.answered, "citations": []}
        messages += [
            {"uuid": f"a{one.number}", "text": one.asked, "sender": "human", "created_at": "t",
             "content": [{"type": "text", "text": one.asked}], "attachments": [], "files": []},
            {"uuid": f"b{one.number}", "text": one.answered, "sender": "assistant",
             "created_at": "t", "content": [use, result, text], "attachments": [], "files": []},
        ]  # fmt: skip
    messages.append({"uuid": "z", "text": QUESTION, "sender": "human", "created_at": "t",
                     "content": [{"type": "text", "text": QUESTION}], "attachments": [],
                     "files": []})  # fmt: skip
    return [{"uuid": "c", "name": "Late orders", "account": {"uuid": "x"},
             "chat_messages": messages}]  # fmt: skip


def _sharegpt() -> list[Record]:
    turns: list[Record] = []
    for one in rounds():
        call = json.dumps({"name": "find", "arguments": one.arguments})
        turns += [
            {"from": "human", "value": one.asked},
            {"from": "function_call", "value": call},
            {"from": "observation", "value": one.returned},
            {"from": "gpt", "value": one.answered},
        ]
    return [*turns, {"from": "human", "value": QUESTION}]


def _inspect() -> list[Record]:
    messages: list[Record] = []
    for n, message in enumerate(_openai()):
        calls = [{"id": call["id"], "function": "find", "type": "function",
                  "arguments": json.loads(call["function"]["arguments"])}
                 for call in message.get("tool_calls", ())]  # fmt: skip
        made = {"id": f"m{n}", "role": message["role"], "content": message["content"] or ""}
        if calls:
            made["tool_calls"] = calls
        if message["role"] == "tool":
            made |= {"tool_call_id": message["tool_call_id"], "function": "find"}
        messages.append(made)
    return messages


def _otel() -> Record:
    messages: list[Record] = []
    for one in rounds():
        messages += [
            {"role": "user", "parts": [{"type": "text", "content": one.asked}]},
            {"role": "assistant", "parts": [{"type": "tool_call", "id": one.call, "name": "find",
                                             "arguments": one.arguments}]},
            {"role": "tool", "parts": [{"type": "tool_call_response", "id": one.call,
                                        "response": one.returned}]},
            {"role": "assistant", "parts": [{"type": "text", "content": one.answered}]},
        ]  # fmt: skip
    messages.append({"role": "user", "parts": [{"type": "text", "content": QUESTION}]})
    values = {
        "gen_ai.operation.name": "chat",
        "gen_ai.system_instructions": json.dumps([{"type": "text", "content": PROMPT}]),
        "gen_ai.input.messages": json.dumps(messages),
    }
    attributes = [{"key": key, "value": {"stringValue": one}} for key, one in values.items()]
    span = {"traceId": "t", "spanId": "s", "name": "chat gpt", "attributes": attributes}
    scope = {"scope": {"name": "shop"}, "spans": [span]}
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [scope]}]}


_OTEL_PATH = ("resourceSpans", 0, "scopeSpans", 0, "spans", 0, "attributes", 2, "value",
              "stringValue")  # fmt: skip


def _langchain(wrap: Callable[[str, Record], Record]) -> list[Record]:
    names = {"system": "system", "user": "human", "assistant": "ai", "tool": "tool"}
    messages: list[Record] = []
    for message in _openai():
        fields: Record = {"content": message["content"] or "", "additional_kwargs": {}}
        if message["role"] == "tool":
            fields["tool_call_id"] = message["tool_call_id"]
        if "tool_calls" in message:
            fields["tool_calls"] = [
                {"name": "find", "args": json.loads(call["function"]["arguments"]),
                 "id": call["id"], "type": "tool_call"}
                for call in message["tool_calls"]
            ]  # fmt: skip
        messages.append(wrap(names[message["role"]], fields))
    return messages


def _dumped(kind: str, fields: Record) -> Record:
    return {"type": kind, "data": {**fields, "type": kind}}


def _constructed(kind: str, fields: Record) -> Record:
    return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", kind],
            "kwargs": {**fields, "type": kind}}  # fmt: skip


def _flat(kind: str, fields: Record) -> Record:
    return {**fields, "type": kind}


def _llama_index() -> list[Record]:
    messages: list[Record] = []
    for message in _openai():
        blocks: list[Record] = []
        if message["content"]:
            blocks.append({"block_type": "text", "text": message["content"]})
        for call in message.get("tool_calls", ()):
            blocks.append({"block_type": "tool_call", "tool_call_id": call["id"],
                           "tool_name": "find",
                           "tool_kwargs": json.loads(call["function"]["arguments"])})  # fmt: skip
        beside = {key: message[key] for key in ("tool_call_id",) if key in message}
        messages.append({"role": message["role"], "additional_kwargs": beside, "blocks": blocks})
    return messages


def _vercel_ui(*, version: int) -> list[Record]:
    messages: list[Record] = []
    for one in rounds():
        if version == 5:
            part: Record = {"type": "tool-find", "toolCallId": one.call,
                            "state": "output-available", "input": one.arguments,
                            "output": {"log": one.returned}}  # fmt: skip
        else:
            part = {"type": "tool-invocation", "toolInvocation": {
                "state": "result", "toolCallId": one.call, "toolName": "find",
                "args": one.arguments, "result": one.returned}}  # fmt: skip
        content = {} if version == 5 else {"content": one.asked}
        messages += [
            {"id": f"a{one.number}", "role": "user", **content,
             "parts": [{"type": "text", "text": one.asked}]},
            {"id": f"b{one.number}", "role": "assistant",
             **({} if version == 5 else {"content": one.answered}),
             "parts": [{"type": "step-start"}, part, {"type": "step-start"},
                       {"type": "text", "text": one.answered}]},
        ]  # fmt: skip
    content = {} if version == 5 else {"content": QUESTION}
    return [*messages, {"id": "z", "role": "user", **content,
                        "parts": [{"type": "text", "text": QUESTION}]}]  # fmt: skip


def _vercel_model() -> list[Record]:
    messages: list[Record] = [{"role": "system", "content": PROMPT}]
    for one in rounds():
        output = {"type": "text", "value": one.returned}
        messages += [
            {"role": "user", "content": one.asked},
            {"role": "assistant", "content": [{"type": "tool-call", "toolCallId": one.call,
             "toolName": "find", "input": one.arguments}]},
            {"role": "tool", "content": [{"type": "tool-result", "toolCallId": one.call,
             "toolName": "find", "output": output}]},
            {"role": "assistant", "content": [{"type": "text", "text": one.answered}]},
        ]  # fmt: skip
    return [*messages, {"role": "user", "content": QUESTION}]


def _alpaca() -> Record:
    history = [[one.asked, f"{one.answered} {one.returned[:300]}"] for one in rounds()]
    return {"instruction": QUESTION, "input": "", "output": "", "system": PROMPT,
            "history": history, "source": "shop"}  # fmt: skip


def _llama_factory() -> list[Record]:
    messages: list[Record] = []

    def say(role: str, *parts: tuple[str, str]) -> None:
        content = [{"type": kind, "value": value} for kind, value in parts]
        messages.append({"role": role, "content": content, "loss_weight": 0.0})

    say("system", ("text", PROMPT))
    for one in rounds():
        call = json.dumps({"name": "find", "arguments": one.arguments})
        say("user", ("text", one.asked))
        say("assistant", ("reasoning", "I look it up."), ("tool_call", call))
        say("tool", ("text", one.returned))
        say("assistant", ("text", one.answered))
    say("user", ("text", QUESTION))
    return messages


def _turns() -> list[Record]:
    turns: list[Record] = []
    for one in rounds():
        turns += [{"role": "user", "speaker": "Ann", "text": one.asked},
                  {"role": "assistant", "speaker": "Bot", "text": one.answered * 5}]  # fmt: skip
    return [*turns, {"role": "user", "speaker": "Ann", "text": QUESTION}]


def _aider() -> bytes:
    parts = ["\n# aider chat started at 2026-01-01 10:00:00\n\n> aider v0.80.0\n> Model: gpt\n\n"]
    for one in rounds():
        parts.append(f"#### {one.asked}\n\n{one.answered * 4}\n\n> Tokens: 1k sent\n\n")
    parts.append(f"#### {QUESTION}\n")
    return "".join(parts).encode()


def _text() -> bytes:
    parts = [f"User: {one.asked}\n\nAssistant: {one.answered * 4}\n\n" for one in rounds()]
    return f"{''.join(parts)}User: {QUESTION}\n".encode()


def _heads(value: Any) -> Any:
    return value[: value.index("####")]


_OPENAI_BODY = {"model": "gpt-4o", "temperature": 0.5, "tools": [TOOL], "messages": _openai()}
_ANTHROPIC_TOOL: Record = {"name": "find", "description": "Find an order.", "input_schema": {}}
_ANTHROPIC_BODY: Record = {"model": "claude", "max_tokens": 9, "system": PROMPT,
                   "tools": [_ANTHROPIC_TOOL], "messages": _anthropic()}  # fmt: skip
_DECLARED = [{"functionDeclarations": [TOOL["function"]]}]
_GEMINI_BODY = {"systemInstruction": {"parts": [{"text": PROMPT}]}, "tools": _DECLARED,
                "contents": _gemini(), "generationConfig": {"temperature": 0.5}}  # fmt: skip


def _all() -> list[Sample]:
    inspect_log = {"version": 2, "status": "success", "eval": {"task": "shop"},
                   "samples": [{"id": 1, "epoch": 1, "input": "x", "messages": _inspect(),
                                "scores": {"match": 1}}]}  # fmt: skip
    langsmith: Record = {"id": "r", "name": "ChatOpenAI", "run_type": "llm",
                 "inputs": {"messages": [_langchain(_constructed)]},
                 "outputs": {"generations": []}}  # fmt: skip
    return [
        Sample(form="openai", data=_json(_OPENAI_BODY), outside=_without("messages")),
        Sample(form="openai", data=_lines([_OPENAI_BODY]), outside=_without("messages")),
        Sample(form="openai", data=_lines(_openai()), outside=_without(), suffix=".jsonl"),
        Sample(
            form="openai-batch",
            data=_lines([{"custom_id": "1", "method": "POST", "url": "/v1", "body": _OPENAI_BODY}]),
            outside=_without("body", "messages"),
        ),
        Sample(
            form="openai-preference",
            data=_json({"input": {"messages": _openai(), "tools": [TOOL]},
                        "preferred_output": [{"role": "assistant", "content": "A-1"}],
                        "non_preferred_output": [{"role": "assistant", "content": "A-2"}]}),
            outside=_without("input", "messages"),
        ),
        Sample(
            form="openai-responses",
            data=_json({"model": "gpt-4o", "instructions": PROMPT, "input": _responses()}),
            outside=_without("input"),
        ),
        Sample(form="anthropic", data=_json(_ANTHROPIC_BODY), outside=_without("messages")),
        Sample(form="anthropic", data=_json(_anthropic(replies=True)), outside=_without()),
        Sample(
            form="anthropic-batch",
            data=_json({"requests": [{"custom_id": "1", "params": _ANTHROPIC_BODY}]}),
            outside=_without("requests", 0, "params", "messages"),
        ),
        Sample(form="gemini", data=_json(_GEMINI_BODY), outside=_without("contents")),
        Sample(
            form="gemini", data=_json({"history": _gemini(), "model": "x"}),
            outside=_without("history"),
        ),
        Sample(
            form="gemini-batch", data=_lines([{"key": "1", "request": _GEMINI_BODY}]),
            outside=_without("request", "contents"),
        ),
        Sample(
            form="claude-code", data=_lines(_claude_code()), suffix=".jsonl",
            outside=lambda values: [
                {**one, "parentUuid": None} for one in values if not _is_claude_code_message(one)
            ],
        ),
        Sample(
            form="codex", data=_lines(_codex()), suffix=".jsonl",
            outside=_others(lambda one: one["type"] == "response_item"),
        ),
        Sample(
            form="codex", data=_lines(_codex_early()), suffix=".jsonl",
            outside=_others(lambda one: "type" in one),
        ),
        Sample(form="gemini-cli", data=_json(_gemini_cli()), outside=_gemini_cli_outside),
        Sample(
            form="cline", data=_json([{**one, "ts": 1} for one in _anthropic()]),
            outside=_without(),
        ),
        Sample(
            form="swe-agent", data=_json(_swe_agent()), outside=_without("history"),
            suffix=".traj",
        ),
        Sample(
            form="mini-swe-agent",
            data=_json({"info": {"exit_status": "Submitted"}, "messages": _openai(),
                        "trajectory_format": "mini-swe-agent-1"}),
            outside=_without("messages"),
        ),
        Sample(
            form="openhands", data=_json(_openhands()),
            outside=_others(lambda one: one.get("observation") != "agent_state_changed"),
        ),
        Sample(
            form="openhands",
            data=_lines([{"instance_id": "i", "history": _openhands(), "test_result": {}}]),
            outside=_without("history"),
        ),
        Sample(
            form="openhands", data=_json(_openhands_sdk()),
            outside=_others(lambda one: one["kind"] != "ConversationStateUpdateEvent"),
        ),
        Sample(form="chatgpt-export", data=_json(_chatgpt()), outside=_chatgpt_outside),
        Sample(
            form="claude-export", data=_json(_claude_export()), outside=_without(0, "chat_messages")
        ),
        Sample(
            form="sharegpt",
            data=_json([{"id": "x", "system": PROMPT, "tools": json.dumps([TOOL["function"]]),
                         "conversations": _sharegpt()}]),
            outside=_without(0, "conversations"),
        ),
        Sample(
            form="alpaca", data=_json(_alpaca()), outside=_without("history"), has_calls=False
        ),
        Sample(
            form="llama-factory",
            data=_lines([{"messages": _llama_factory(), "tools": json.dumps([TOOL])}]),
            outside=_without("messages"),
        ),
        Sample(
            form="turns", data=_json({"id": "x", "system": PROMPT, "turns": _turns()}),
            outside=_without("turns"), has_calls=False,
        ),
        Sample(
            form="vercel-ui", data=_json({"id": "x", "messages": _vercel_ui(version=5)}),
            outside=_without("messages"),
        ),
        Sample(form="vercel-ui", data=_json(_vercel_ui(version=4)), outside=_without()),
        Sample(
            form="vercel-model", data=_json({"messages": _vercel_model()}),
            outside=_without("messages"),
        ),
        Sample(form="langchain", data=_json(_langchain(_dumped)), outside=_without()),
        Sample(
            form="langchain-constructor", data=_json(_langchain(_constructed)), outside=_without()
        ),
        Sample(
            form="langchain-flat", data=_json({"messages": _langchain(_flat), "next": "model"}),
            outside=_without("messages"),
        ),
        Sample(
            form="langsmith", data=_lines([langsmith]), outside=_without("inputs", "messages", 0)
        ),
        Sample(form="llama-index", data=_json(_llama_index()), outside=_without()),
        Sample(
            form="llama-index-store",
            data=_json({"store": {"user-7": _llama_index()}, "class_name": "SimpleChatStore"}),
            outside=_without("store", "user-7"),
        ),
        Sample(
            form="inspect", data=_json(inspect_log), outside=_without("samples", 0, "messages")
        ),
        Sample(form="otel", data=_json(_otel()), outside=_without(*_OTEL_PATH)),
        Sample(
            form="aider", data=_aider(), outside=_heads, suffix=".md", has_calls=False
        ),
        Sample(
            form="text", data=_text(), outside=lambda value: None, suffix=".txt", has_calls=False
        ),
    ]  # fmt: skip


SAMPLES = _all()
"""At least one file of every form."""
