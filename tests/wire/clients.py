# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false
"""The client packages of providers: how a conversation is fitted for each, and how it is sent.

Conversations for a LangChain model are fitted by `compact_messages`, those for the packages of the
providers and for LlamaIndex by `fit_messages`, in the form that the package takes.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from langchain_muntin import compact_messages
from muntin import count_messages, counter_for, fit_messages
from muntin.errors import ContextWindowExceeded
from muntin.messages import arrange_roles, role_rules
from wire.conversations import CONVERSATIONS
from wire_server import WireServer, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ("CLIENTS", "HOWS", "TOOL", "Client", "Outcomes", "budgets_of", "outcomes")

BUDGETS = 24
KEY = "not-a-key"
THINKING = {"type": "enabled", "budget_tokens": 1024}
HOWS = ("invoke", "ainvoke", "stream")
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "look_up",
        "description": "Return where a parcel is.",
        "parameters": {
            "type": "object",
            "properties": {
                "parcel": {"type": "string", "description": "Number of the parcel."},
                "depot": {"type": "string", "enum": ["north", "south"]},
            },
            "required": ["parcel"],
        },
    },
}
"""A tool as OpenAI's chat completions take it."""


class Client(NamedTuple):
    """A client package."""

    convert: Callable[[list[BaseMessage]], list[Any]]
    """Write LangChain messages in the form of the package."""
    fit: Callable[[WireServer, list[Any], int], Sequence[Any]]
    """Fit the messages of the package into a budget."""
    send: Callable[[WireServer, Sequence[Any], str, Sequence[Any]], Any]
    """Send messages: the way is one of `HOWS`; the last argument are tools
    as OpenAI takes them."""


# --- LangChain -----------------------------------------------------------------------------------


def _langchain(make_new: Callable[[WireServer, Sequence[Any]], Any]) -> Client:
    made: dict[tuple[str, bool], Any] = {}

    def make(server: WireServer, messages: Sequence[Any]) -> Any:
        key = (server.url, _thinks(messages))
        if key not in made:  # a client takes longer to make than to use
            made.clear()
            made[key] = make_new(server, messages)
        return made[key]

    def fit(server: WireServer, messages: list[Any], budget: int) -> Sequence[Any]:
        return compact_messages(messages, model=make(server, messages), max_tokens=budget)

    def send(server: WireServer, messages: Sequence[Any], how: str, tools: Sequence[Any]) -> Any:
        model = make(server, messages)
        model = model.bind_tools(tools) if tools else model
        if how == "ainvoke":
            return server.run(model.ainvoke(list(messages)))
        return list(model.stream(messages)) if how == "stream" else model.invoke(list(messages))

    return Client(convert=list, fit=fit, send=send)


def _thinks(messages: Sequence[Any]) -> bool:
    return "'thinking'" in str([getattr(message, "content", "") for message in messages])


def _openai(server: WireServer, *, path: str = "v1", model: str = "gpt-4o", **more: Any) -> Any:
    module = pytest.importorskip("langchain_openai")
    return module.ChatOpenAI(
        model=model, base_url=f"{server.url}/{path}", api_key=KEY, max_retries=0, **more
    )


def _anthropic(server: WireServer, messages: Sequence[Any]) -> Any:
    module = pytest.importorskip("langchain_anthropic")
    more: Any = (
        {"thinking": {"type": "enabled", "budget_tokens": 1024}} if _thinks(messages) else {}
    )
    return module.ChatAnthropic(
        model="claude-sonnet-4-5", base_url=server.url, api_key=KEY, max_retries=0,
        max_tokens=2000, **more,
    )  # fmt: skip


def _gemini(server: WireServer, _messages: Sequence[Any]) -> Any:
    module = pytest.importorskip("langchain_google_genai")
    return module.ChatGoogleGenerativeAI(
        model="gemini-3.1-pro", google_api_key=KEY, base_url=server.url, max_retries=1,
        vertexai=False,
    )  # fmt: skip


def _mistral(server: WireServer, _messages: Sequence[Any]) -> Any:
    module = pytest.importorskip("langchain_mistralai")
    return module.ChatMistralAI(
        model="mistral-large-latest", base_url=f"{server.url}/mistral/v1", api_key=KEY,
        max_retries=0,
    )  # fmt: skip


# --- the packages of providers -------------------------------------------------------------------


def _fitted(_server: WireServer, messages: list[Any], budget: int) -> Sequence[Any]:
    return fit_messages(
        messages, budget=budget, counter=counter_for("gpt-4o"), repair=True
    ).messages


def _openai_dicts(messages: list[BaseMessage]) -> list[Any]:
    """Write messages for chat completions; thinking as servers that speak this form write it."""
    from langchain_core.messages import convert_to_openai_messages

    out: list[Any] = []
    for message in messages:
        blocks = message.content if isinstance(message.content, list) else []
        ideas = [b["thinking"] for b in blocks if isinstance(b, dict) and b["type"] == "thinking"]
        rest = [b for b in blocks if not (isinstance(b, dict) and b["type"] == "thinking")]
        plain = message.model_copy(update={"content": rest}) if ideas else message
        made: Any = convert_to_openai_messages([plain])[0]
        out.append({**made, "reasoning_content": ideas[0]} if ideas else made)
    return out


def _send_openai(
    server: WireServer, messages: Sequence[Any], how: str, tools: Sequence[Any]
) -> Any:
    package = pytest.importorskip("openai")
    given: Any = {"model": "gpt-4o", "messages": list(messages), "stream": how == "stream"}
    given |= {"tools": tools} if tools else {}
    settings: Any = {"base_url": f"{server.url}/v1", "api_key": KEY, "max_retries": 0}
    if how == "ainvoke":

        async def ask() -> Any:
            async with package.AsyncOpenAI(**settings) as client:
                return await client.chat.completions.create(**given)

        return server.run(ask())
    with package.OpenAI(**settings) as client:
        made = client.chat.completions.create(**given)
        return list(made) if how == "stream" else made


def _anthropic_dicts(messages: list[BaseMessage]) -> list[Any]:
    """Write messages as Anthropic's API takes them, except that system messages stay in place."""
    out: list[Any] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            result = {"type": "tool_result", "tool_use_id": message.tool_call_id,
                      "content": message.content}  # fmt: skip
            if out and out[-1].get("results"):
                out[-1]["content"].append(result)
            else:
                out.append({"role": "user", "content": [result], "results": True})
            continue
        role = {"human": "user", "ai": "assistant"}.get(message.type, message.type)
        content: Any = message.content
        if isinstance(content, list):
            content = [_anthropic_block(block) for block in content]
        if isinstance(message, AIMessage) and message.tool_calls:
            before = content if isinstance(content, list) else [{"type": "text", "text": content}]
            content = [b for b in before if b.get("text") != ""] + [
                {"type": "tool_use", "id": c["id"], "name": c["name"], "input": c["args"]}
                for c in message.tool_calls
            ]
        out.append({"role": role, "content": content})
    return [{"role": one["role"], "content": one["content"]} for one in out]


def _anthropic_block(block: Any) -> Any:
    kind = block["type"]
    if kind not in ("image", "file"):
        return block
    source = {"type": "base64", "media_type": block["mime_type"], "data": block["base64"]}
    return {"type": "image" if kind == "image" else "document", "source": source}


def _fit_anthropic(server: WireServer, messages: list[Any], budget: int) -> Sequence[Any]:
    system = role_rules("claude-sonnet-4-5").system
    return arrange_roles(_fitted(server, messages, budget), system=system)


def _send_anthropic(
    server: WireServer, messages: Sequence[Any], how: str, tools: Sequence[Any]
) -> Any:
    package = pytest.importorskip("anthropic")
    lead = next((at for at, one in enumerate(messages) if one["role"] != "system"), 0)
    given: Any = {"model": "claude-sonnet-4-5", "max_tokens": 2000, "messages": messages[lead:]}
    if lead:
        given["system"] = "\n\n".join(one["content"] for one in messages[:lead])
    if "'thinking'" in str(messages):
        given["thinking"] = THINKING
    for tool in tools:
        function = tool["function"]
        given["tools"] = [{"name": function["name"], "description": function["description"],
                           "input_schema": function["parameters"]}]  # fmt: skip
    settings: Any = {"base_url": server.url, "api_key": KEY, "max_retries": 0}
    if how == "ainvoke":

        async def ask() -> Any:
            async with package.AsyncAnthropic(**settings) as client:
                return await client.messages.create(**given)

        return server.run(ask())
    with package.Anthropic(**settings) as client:
        made = client.messages.create(**given, stream=how == "stream")
        return list(made) if how == "stream" else made


# --- LlamaIndex ----------------------------------------------------------------------------------


def _llama_messages(messages: list[BaseMessage]) -> list[Any]:
    pytest.importorskip("llama_index.llms.openai")
    from langchain_core.messages import convert_to_openai_messages
    from llama_index.core.base.llms.types import ChatMessage, DocumentBlock, ImageBlock, TextBlock

    out: list[Any] = []
    for message in messages:
        role = {"human": "user", "ai": "assistant"}.get(message.type, message.type)
        kwargs: dict[str, Any] = {}
        if isinstance(message, AIMessage) and message.tool_calls:
            plain = message.model_copy(update={"content": ""})
            wire: Any = convert_to_openai_messages([plain])[0]
            kwargs["tool_calls"] = wire["tool_calls"]
        if isinstance(message, ToolMessage):
            kwargs["tool_call_id"] = message.tool_call_id
        blocks: list[Any] = [TextBlock(text=message.text)]
        held: list[Any] = message.content if isinstance(message.content, list) else []
        for block in held:
            kind = block["type"] if isinstance(block, dict) else ""
            if kind == "image":
                data = base64.b64decode(block["base64"])
                blocks.append(ImageBlock(image=data, image_mimetype="image/png"))
            elif kind == "file":
                data = base64.b64decode(block["base64"])
                blocks.append(DocumentBlock(data=data, document_mimetype="application/pdf",
                                            title=block["filename"]))  # fmt: skip
        out.append(ChatMessage(role=role, blocks=blocks, additional_kwargs=kwargs))
    return out


def _send_llama(server: WireServer, messages: Sequence[Any], how: str, tools: Sequence[Any]) -> Any:
    llms = pytest.importorskip("llama_index.llms.openai")
    model = llms.OpenAI(model="gpt-4o", api_base=f"{server.url}/v1", api_key=KEY, max_retries=0)
    more: Any = {"tools": tools} if tools else {}
    if how == "ainvoke":
        return server.run(model.achat(messages, **more))
    if how == "stream":
        return list(model.stream_chat(messages, **more))
    return model.chat(messages, **more)


CLIENTS: dict[str, Client] = {
    "langchain-openai chat": _langchain(lambda server, _: _openai(server)),
    "langchain-openai Responses": _langchain(
        lambda server, _: _openai(server, use_responses_api=True)
    ),
    "langchain-openai, strict alternation": _langchain(
        lambda server, _: _openai(server, path="alternating/v1", model="mistral-7b-instruct")
    ),
    "langchain-anthropic": _langchain(_anthropic),
    "langchain-google-genai": _langchain(_gemini),
    "langchain-mistralai": _langchain(_mistral),
    "openai": Client(convert=_openai_dicts, fit=_fitted, send=_send_openai),
    "anthropic": Client(convert=_anthropic_dicts, fit=_fit_anthropic, send=_send_anthropic),
    "llama-index-llms-openai": Client(convert=_llama_messages, fit=_fitted, send=_send_llama),
}
"""By name."""


class Outcomes(NamedTuple):
    """What became of a conversation at several budgets."""

    accepted: int
    errors: int
    """Budgets that are smaller than what must be kept: a typed error, and nothing is sent."""
    refused: list[str]
    """Texts of the server."""


def budgets_of(messages: list[BaseMessage]) -> list[int]:
    """Return budgets from a twentieth of a conversation to more than the whole."""
    whole = count_messages(messages, counter=counter_for("gpt-4o"))
    return [max(30, int(whole * (at + 1) / (BUDGETS - 4))) for at in range(BUDGETS)]


def outcomes(client: str, conversation: str, chosen: Sequence[int] = range(BUDGETS)) -> Outcomes:
    """Fit and send a conversation at the chosen of its budgets."""
    talk = CONVERSATIONS[conversation](client)
    budgets = budgets_of(talk)
    package = CLIENTS[client]
    messages = package.convert(talk)
    errors = 0
    with serving() as server:
        for at in chosen:
            try:
                fitted = package.fit(server, messages, budgets[at])
            except ContextWindowExceeded:
                errors += 1
                continue
            try:
                package.send(server, fitted, HOWS[at % len(HOWS)], ())
            except Exception:
                if not server.received[-1:] or not server.received[-1].refused:
                    raise
    return Outcomes(
        accepted=len(server.accepted),
        errors=errors,
        refused=[one.refused for one in server.received if one.refused],
    )
