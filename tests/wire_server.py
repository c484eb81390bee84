"""A server on the loopback address that refuses what providers refuse, for their real clients.

It speaks OpenAI chat (also as Mistral and as a template with alternating roles), OpenAI Responses,
Anthropic messages and Gemini `generateContent`, with and without streaming. It counts tokens with
tiktoken, not with the code under test, and answers an overflow with the provider's own text.
"""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, cast

import tiktoken

from muntin.testing import (
    RequestRefused,
    check_alternating,
    check_anthropic,
    check_gemini,
    check_mistral,
    check_openai_chat,
    check_openai_responses,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

__all__ = ("Received", "WireServer", "answer_to", "serving", "wire_tokens")

_IMAGE = 255
"""Tokens of an image of one tile."""
_OVERFLOWS = {
    "openai": "This model's maximum context length is {limit} tokens. However, you requested "
    "{total} tokens ({prompt} in the messages, {answer} in the completion).",
    "responses": "Your input exceeds the context window of this model. Please adjust your input "
    "and try again.",
    "anthropic": "prompt is too long: {prompt} tokens > {limit} maximum",
    "gemini": "The input token count ({prompt}) exceeds the maximum number of tokens allowed "
    "({limit}).",
    "mistral": "Prompt contains {prompt} tokens and 0 draft tokens, too large for model with "
    "{limit} maximum context length",
    "alternating": "request ({prompt} tokens) exceeds the available context size ({limit} tokens), "
    "try increasing it",
}
_CHECKS: dict[str, Callable[[dict[str, Any]], None]] = {
    "openai": check_openai_chat,
    "responses": check_openai_responses,
    "anthropic": check_anthropic,
    "gemini": lambda body: check_gemini(body, model=str(body.get("model", ""))),
    "mistral": check_mistral,
    "alternating": check_alternating,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """One request as it arrived."""

    provider: str
    """Whose rules were applied."""
    body: dict[str, Any]
    """The JSON body."""
    tokens: int
    """Tokens of the prompt by the server's count."""
    refused: str = ""
    """Text of the refusal; "" if the request was accepted."""


@dataclass(slots=True)
class WireServer:
    """What the server received, and how it answers."""

    window: int = 1_000_000
    """Tokens of the context window."""
    received: list[Received] = field(default_factory=list["Received"])
    """Every request, in order."""
    url: str = ""
    """Address without a path."""
    reply: Callable[[Received], dict[str, Any]] | None = None
    """Writes the answers; `None` answers "OK." to everything."""
    also: Callable[[str, dict[str, Any]], None] | None = None
    """A further check of each request: its provider and its body."""
    run: Callable[[Any], Any] = asyncio.run
    """Runs a coroutine; clients keep connections, so all requests of a server use one loop."""

    @property
    def accepted(self) -> list[Received]:
        """Requests that were answered."""
        return [one for one in self.received if not one.refused]

    def judge(self, provider: str, body: dict[str, Any]) -> Received:
        """Check a request as the provider does."""
        tokens, refused = wire_tokens(body), ""
        try:
            _CHECKS[provider](body)
            if self.also is not None:
                self.also(provider, body)
        except RequestRefused as error:
            refused = error.problem
        answer = 0
        if provider == "openai":
            answer = body.get("max_tokens") or body.get("max_completion_tokens") or 0
        if not refused and tokens + answer > self.window:
            refused = _OVERFLOWS[provider].format(
                limit=self.window, prompt=tokens, answer=answer, total=tokens + answer
            )
        one = Received(provider=provider, body=body, tokens=tokens, refused=refused)
        self.received.append(one)
        return one


_encoding = tiktoken.get_encoding


def wire_tokens(body: dict[str, Any]) -> int:
    """Count the prompt of a request: texts, calls, images, framing, tool schemas.

    A call is counted as JSON with its id, its name and its arguments: the other keys of a call are
    the same in every request and do not reach a model.
    """
    given: Any = body.get("messages") or body.get("contents") or body.get("input") or []
    messages: list[Any] = [{"content": given}] if isinstance(given, str) else given
    system = [body[key] for key in ("system", "instructions", "systemInstruction") if key in body]
    total = 3
    for message in [*system, *messages]:
        total += 4 + sum(
            _IMAGE if text is None else _length(text) for text in _texts(message, is_top=True)
        )
    tools: list[Any] = body.get("tools") or []
    return total + sum(_tool_tokens(tool) for tool in tools)


def _length(text: str) -> int:
    return len(_encoding("o200k_base").encode_ordinary(text))


def _tool_tokens(tool: dict[str, Any]) -> int:
    """Count a tool by the formula in OpenAI's cookbook, other tools as JSON."""
    function = tool.get("function")
    if not isinstance(function, dict):
        return _length(json.dumps(tool))
    about = cast("dict[str, Any]", function)
    total = 7 + 12 + _length(about["name"] + ":" + about.get("description", "").rstrip("."))
    properties: dict[str, Any] = about["parameters"].get("properties", {})
    total += 3 if properties else 0
    for key, held in properties.items():
        total += 3 + _length(f"{key}:{held['type']}:{held.get('description', '').rstrip('.')}")
        if "enum" in held:
            total += -3 + sum(3 + _length(one) for one in held["enum"])
    return total


_SKIPPED = frozenset((
    "role", "type", "id", "status", "detail", "signature", "cache_control", "encrypted_content",
    "thoughtSignature", "mimeType", "media_type", "index", "prefix", "is_error", "phase",
))  # fmt: skip
_ARGUMENTS = ("input", "args")
_MEDIA = ("image", "image_url", "input_image", "document", "file", "input_file")


def _texts(value: Any, *, is_top: bool = False) -> Iterator[str | None]:
    """Yield the texts of a message; `None` for an image or a document."""
    if isinstance(value, str):
        yield value
        return
    if isinstance(value, list):
        for one in cast("list[Any]", value):
            yield from _texts(one)
        return
    if not isinstance(value, dict):
        return
    block = cast("dict[str, Any]", value)
    if block.get("type") in _MEDIA or "inlineData" in block:
        yield None
        return
    function = block.get("function")
    if block.get("type") == "function" and isinstance(function, dict):
        called = cast("dict[str, Any]", function)
        arguments = json.loads(called["arguments"] or "{}")
        call = {"id": block["id"], "name": called["name"], "arguments": arguments}
        yield json.dumps(call, separators=(",", ":"), ensure_ascii=False)
        return
    for key, one in block.items():
        if key in _ARGUMENTS and not is_top and isinstance(one, dict):
            yield json.dumps(one)
        elif key not in _SKIPPED:
            yield from _texts(one)


# --- answers -------------------------------------------------------------------------------------


def _usage(tokens: int) -> dict[str, int]:
    return {"prompt_tokens": tokens, "completion_tokens": 1, "total_tokens": tokens + 1}


def answer_to(one: Received, text: str) -> dict[str, Any]:
    """Return the body of an answer that holds a text."""
    model = one.body.get("model", "m")
    if one.provider == "anthropic":
        return {
            "id": "msg_1", "type": "message", "role": "assistant", "model": model,
            "content": [{"type": "text", "text": text}], "stop_reason": "end_turn",
            "stop_sequence": None, "usage": {"input_tokens": one.tokens, "output_tokens": 1},
        }  # fmt: skip
    if one.provider == "gemini":
        return {
            "candidates": [{"content": {"role": "model", "parts": [{"text": text}]},
                            "finishReason": "STOP", "index": 0}],
            "usageMetadata": {"promptTokenCount": one.tokens, "candidatesTokenCount": 1,
                              "totalTokenCount": one.tokens + 1},
            "modelVersion": str(model),
        }  # fmt: skip
    if one.provider == "responses":
        message: dict[str, Any] = {
            "id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        }  # fmt: skip
        return {
            "id": "resp_1", "object": "response", "created_at": 1, "model": model,
            "status": "completed", "output": [message], "parallel_tool_calls": True,
            "tool_choice": "auto", "tools": [], "error": None, "incomplete_details": None,
            "instructions": None, "metadata": {}, "temperature": 1.0, "top_p": 1.0,
            "usage": {"input_tokens": one.tokens, "output_tokens": 1,
                      "total_tokens": one.tokens + 1,
                      "input_tokens_details": {"cached_tokens": 0},
                      "output_tokens_details": {"reasoning_tokens": 0}},
        }  # fmt: skip
    return {
        "id": "c1", "object": "chat.completion", "created": 1, "model": model,
        "choices": [{"index": 0, "finish_reason": "stop",
                     "message": {"role": "assistant", "content": text}}],
        "usage": _usage(one.tokens),
    }  # fmt: skip


def _stream(one: Received, text: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the events of a streamed answer: name and data."""
    whole = answer_to(one, text)
    if one.provider == "anthropic":
        start: dict[str, Any] = {**whole, "content": [], "stop_reason": None}
        return [
            ("message_start", {"type": "message_start", "message": start}),
            ("content_block_start", {"type": "content_block_start", "index": 0,
                                     "content_block": {"type": "text", "text": ""}}),
            ("content_block_delta", {"type": "content_block_delta", "index": 0,
                                     "delta": {"type": "text_delta", "text": text}}),
            ("content_block_stop", {"type": "content_block_stop", "index": 0}),
            ("message_delta", {"type": "message_delta",
                               "delta": {"stop_reason": "end_turn", "stop_sequence": None},
                               "usage": {"output_tokens": 1}}),
            ("message_stop", {"type": "message_stop"}),
        ]  # fmt: skip
    if one.provider == "gemini":
        return [("", whole)]
    if one.provider == "responses":
        return [("response.completed", {"type": "response.completed", "sequence_number": 1,
                                        "response": whole})]  # fmt: skip
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    first = {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}
    last: dict[str, Any] = {"index": 0, "delta": {}, "finish_reason": "stop"}
    return [("", {**head, "choices": [first]}), ("", {**head, "choices": [last]})]


def _error(one: Received) -> dict[str, Any]:
    if one.provider == "anthropic":
        error = {"type": "invalid_request_error", "message": one.refused}
        return {"type": "error", "error": error}
    if one.provider == "gemini":
        return {"error": {"code": 400, "message": one.refused, "status": "INVALID_ARGUMENT"}}
    return {"error": {"message": one.refused, "type": "invalid_request_error", "code": None}}


def _provider(path: str) -> str:
    """Find whose rules apply by the path of a request."""
    for name in ("mistral", "alternating"):
        if f"/{name}/" in path:
            return name
    if "enerateContent" in path:
        return "gemini"
    if path.endswith("/responses"):
        return "responses"
    return "anthropic" if path.endswith("/messages") else "openai"


@contextmanager
def serving(window: int = 1_000_000) -> Generator[WireServer]:
    """Run a server for the time of a test."""
    state = WireServer(window=window)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            path = self.path.partition("?")[0]
            provider = _provider(path)
            if provider == "gemini":
                body["model"] = path.rpartition("/")[2].partition(":")[0]
            one = state.judge(provider, body)
            is_stream = body.get("stream") or "stream" in path
            if one.refused:
                self._send(400, "application/json", json.dumps(_error(one)))
            elif is_stream:
                lines = [
                    (f"event: {name}\n" if name else "") + f"data: {json.dumps(data)}\n\n"
                    for name, data in _stream(one, "OK.")
                ]
                if provider in ("openai", "mistral", "alternating"):
                    lines.append("data: [DONE]\n\n")
                self._send(200, "text/event-stream", "".join(lines))
            else:
                said = answer_to(one, "OK.") if state.reply is None else state.reply(one)
                self._send(200, "application/json", json.dumps(said))

        def _send(self, status: int, kind: str, text: str) -> None:
            payload = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as in the base class
            """Write nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        with asyncio.Runner() as runner:
            state.run = runner.run
            yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
