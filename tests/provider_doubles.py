"""Answers in the place of providers, below their real clients: nothing leaves the process.

The clients of OpenAI and Ollama, and with them ChatOpenAI and LlamaIndex's OpenAI, send requests
through httpx. Its transports are replaced by `answer`, which checks the body and returns a reply in
the provider's form, so examples can name the classes that users write.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx

from muntin.testing.wire import check_openai_chat

if TYPE_CHECKING:
    import pytest

__all__ = ("REPLY", "answer", "install")

REPLY = "Ten days."
"""What every model says."""


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the transports of httpx and set a key that is not one."""
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-key")

    def sync(_transport: httpx.HTTPTransport, request: httpx.Request) -> httpx.Response:
        return answer(request)

    async def later(_transport: httpx.AsyncHTTPTransport, request: httpx.Request) -> httpx.Response:
        await request.aread()
        return answer(request)

    monkeypatch.setattr(httpx.HTTPTransport, "handle_request", sync)
    monkeypatch.setattr(httpx.AsyncHTTPTransport, "handle_async_request", later)


def answer(request: httpx.Request) -> httpx.Response:
    """Return the reply of a chat model to a request, after a strict look at its body."""
    body: dict[str, Any] = json.loads(request.content)
    if request.url.path.endswith("/chat/completions"):
        check_openai_chat(body)
        return _response(request, _completion(body))
    if request.url.path.endswith("/embeddings"):
        return _response(request, _embeddings(body))
    if request.url.path == "/api/chat":
        reply = {"model": body["model"], "message": {"role": "assistant", "content": REPLY}}
        return _response(request, {**reply, "done": True})
    raise AssertionError(f"an example called {request.url}: no double answers there")


def _response(request: httpx.Request, body: dict[str, Any]) -> httpx.Response:
    return httpx.Response(200, json=body, request=request)


def _completion(body: dict[str, Any]) -> dict[str, Any]:
    assert not body.get("stream"), "the double does not stream"
    message = {"role": "assistant", "content": REPLY}
    usage = {"prompt_tokens": 100, "completion_tokens": 3, "total_tokens": 103}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": body["model"],
        "choices": [choice],
        "usage": usage,
    }


def _embeddings(body: dict[str, Any]) -> dict[str, Any]:
    given: Any = body["input"]
    texts: list[Any] = [given] if isinstance(given, str) else list(given)
    rows = [
        {"object": "embedding", "index": at, "embedding": [1.0, float(len(str(text)) % 7), 0.5]}
        for at, text in enumerate(texts)
    ]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return {"object": "list", "data": rows, "model": body["model"], "usage": usage}
