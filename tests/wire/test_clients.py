# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false
"""What leaves an adapter is accepted by the provider, sent through the real client packages.

The quick form takes a few budgets for each client and conversation, the slow form all of them.
"""

from __future__ import annotations

import base64
import gc
import struct
import zlib
from collections.abc import Callable, Generator
from typing import Any, NamedTuple

import pytest

pytest.importorskip("langchain_core")

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_muntin import compact_messages
from muntin import count_messages, counter_for
from muntin.adapting import refusal_of
from muntin.errors import ContextWindowExceeded
from wire_server import WireServer, serving

pytestmark = [
    pytest.mark.allow_hosts(["127.0.0.1"]),
    pytest.mark.filterwarnings("ignore::muntin.counting.counters.CounterWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

BUDGETS = 24
QUICK = (4, 17)
KEY = "not-a-key"


# --- conversations -------------------------------------------------------------------------------


def png() -> str:
    """Return a white image of one pixel as base64."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        crc = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", crc)

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"\x00\xff\xff\xff")
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + parts).decode()


def prose(at: int, sentences: int = 4) -> str:
    return " ".join(
        f"Parcel P-{1000 + at} reached depot {at + part} with {3 * at + part} boxes on board."
        for part in range(sentences)
    )


def calling(*ids: str, text: str = "") -> AIMessage:
    calls: Any = [{"name": "look_up", "args": {"parcel": one}, "id": one} for one in ids]
    return AIMessage(text, tool_calls=calls)


def results(*ids: str) -> list[BaseMessage]:
    return [ToolMessage(f"{one}: {prose(at)}", tool_call_id=one) for at, one in enumerate(ids)]


def chat(turns: int = 8) -> list[BaseMessage]:
    talk: list[BaseMessage] = [SystemMessage("You help with parcels.")]
    for at in range(turns):
        talk += [HumanMessage(f"Where is parcel P-{1000 + at}?"), AIMessage(prose(at))]
    return [*talk, HumanMessage("And where is parcel P-1003 now?")]


def parallel_calls() -> list[BaseMessage]:
    talk: list[BaseMessage] = [SystemMessage("You help with parcels."), HumanMessage("Find them.")]
    for at in range(5):
        ids = [f"c{at:03}{part:05}" for part in range(3)]
        talk += [calling(*ids, text="I look."), *results(*ids)]
    return [*talk, AIMessage("All found."), HumanMessage("Which one is the heaviest?")]


def open_round() -> list[BaseMessage]:
    return [*parallel_calls(), calling("d00000001", "d00000002"),
            *results("d00000001", "d00000002")]  # fmt: skip


def pictures() -> list[BaseMessage]:
    talk: list[BaseMessage] = []
    image: Any = {"type": "image", "base64": png(), "mime_type": "image/png"}
    for at in range(5):
        talk += [HumanMessage([{"type": "text", "text": f"What is on photo {at}?"}, image]),
                 AIMessage(prose(at))]  # fmt: skip
    return [*talk, HumanMessage("Which photo shows the most?")]


def broken() -> list[BaseMessage]:
    """A thread with everything a crash or a cancelled run leaves behind."""
    raw = [{"id": "x00000001", "type": "function",
            "function": {"name": "look_up", "arguments": "{}"}}]  # fmt: skip
    emptied = AIMessage("I looked.", additional_kwargs={"tool_calls": raw})
    emptied = emptied.model_copy(update={"tool_calls": [], "invalid_tool_calls": []})
    return [
        SystemMessage("You help with parcels."),
        ToolMessage("lost", tool_call_id="gone00001"),
        HumanMessage(prose(1)), AIMessage(""), HumanMessage(""),
        AIMessage([{"type": "text", "text": ""}]),
        HumanMessage("Look."), calling("a00000001", "a00000002"), *results("a00000001"),
        HumanMessage(prose(2)), emptied, HumanMessage(prose(3)),
        calling("b00000001"), HumanMessage("Never mind."), *results("b00000001"),
        AIMessage(prose(4)), HumanMessage("And now?"),
    ]  # fmt: skip


CONVERSATIONS: dict[str, Callable[[], list[BaseMessage]]] = {
    "chat": chat,
    "parallel calls": parallel_calls,
    "open round": open_round,
    "pictures": pictures,
    "broken": broken,
}

# --- clients -------------------------------------------------------------------------------------

Send = Callable[[WireServer, list[BaseMessage], str], Any]
"""Send messages: `how` is "invoke", "ainvoke" or "stream"."""


def _langchain(make: Callable[[WireServer], Any]) -> Send:
    def send(server: WireServer, messages: list[BaseMessage], how: str) -> Any:
        model = make(server)
        if how == "ainvoke":
            return server.run(model.ainvoke(messages))
        return list(model.stream(messages)) if how == "stream" else model.invoke(messages)

    return send


def openai_chat(server: WireServer) -> Any:
    module = pytest.importorskip("langchain_openai")
    return module.ChatOpenAI(
        model="gpt-4o", base_url=f"{server.url}/v1", api_key=KEY, max_retries=0
    )


def openai_responses(server: WireServer) -> Any:
    module = pytest.importorskip("langchain_openai")
    return module.ChatOpenAI(
        model="gpt-4o", base_url=f"{server.url}/v1", api_key=KEY, max_retries=0,
        use_responses_api=True,
    )  # fmt: skip


def anthropic(server: WireServer) -> Any:
    module = pytest.importorskip("langchain_anthropic")
    return module.ChatAnthropic(
        model="claude-sonnet-4-5", base_url=server.url, api_key=KEY, max_retries=0, max_tokens=500
    )


def gemini(server: WireServer) -> Any:
    module = pytest.importorskip("langchain_google_genai")
    return module.ChatGoogleGenerativeAI(
        model="gemini-3.1-pro", google_api_key=KEY, base_url=server.url, max_retries=1,
        vertexai=False,
    )  # fmt: skip


def mistral(server: WireServer) -> Any:
    module = pytest.importorskip("langchain_mistralai")
    return module.ChatMistralAI(
        model="mistral-large-latest", base_url=f"{server.url}/mistral/v1", api_key=KEY,
        max_retries=0,
    )  # fmt: skip


def openai_package(server: WireServer, messages: list[BaseMessage], how: str) -> Any:
    """Send the dicts of the chat completions API with OpenAI's own package."""
    package = pytest.importorskip("openai")
    from langchain_core.messages import convert_to_openai_messages

    dicts: Any = convert_to_openai_messages(messages)
    if how == "ainvoke":

        async def ask() -> Any:
            async with package.AsyncOpenAI(
                base_url=f"{server.url}/v1", api_key=KEY, max_retries=0
            ) as client:
                return await client.chat.completions.create(model="gpt-4o", messages=dicts)

        return server.run(ask())
    with package.OpenAI(base_url=f"{server.url}/v1", api_key=KEY, max_retries=0) as client:
        made = client.chat.completions.create(
            model="gpt-4o", messages=dicts, stream=how == "stream"
        )
        return list(made) if how == "stream" else made


def llama_index_openai(server: WireServer, messages: list[BaseMessage], how: str) -> Any:
    """Send chat messages of LlamaIndex with its OpenAI model."""
    llms = pytest.importorskip("llama_index.llms.openai")
    from llama_index.core.base.llms.types import ChatMessage, ImageBlock, TextBlock

    sent: list[Any] = []
    for message in messages:
        role = {"human": "user", "ai": "assistant"}.get(message.type, message.type)
        kwargs: dict[str, Any] = {}
        if isinstance(message, AIMessage) and message.tool_calls:
            from langchain_core.messages import convert_to_openai_messages

            wire: Any = convert_to_openai_messages([message])[0]
            kwargs["tool_calls"] = wire["tool_calls"]
        if isinstance(message, ToolMessage):
            kwargs["tool_call_id"] = message.tool_call_id
        blocks: list[Any] = [TextBlock(text=message.text)]
        if isinstance(message.content, list):
            blocks += [
                ImageBlock(image=base64.b64decode(block["base64"]), image_mimetype="image/png")
                for block in message.content
                if isinstance(block, dict) and block.get("type") == "image"
            ]
        sent.append(ChatMessage(role=role, blocks=blocks, additional_kwargs=kwargs))
    model = llms.OpenAI(model="gpt-4o", api_base=f"{server.url}/v1", api_key=KEY, max_retries=0)
    if how == "ainvoke":
        return server.run(model.achat(sent))
    return list(model.stream_chat(sent)) if how == "stream" else model.chat(sent)


CLIENTS: dict[str, Send] = {
    "langchain-openai chat": _langchain(openai_chat),
    "langchain-openai Responses": _langchain(openai_responses),
    "langchain-anthropic": _langchain(anthropic),
    "langchain-google-genai": _langchain(gemini),
    "langchain-mistralai": _langchain(mistral),
    "openai": openai_package,
    "llama-index-llms-openai": llama_index_openai,
}
MODELS = {"langchain-anthropic": "claude-sonnet-4-5", "langchain-google-genai": "gemini-3.1-pro",
          "langchain-mistralai": "mistral-large-latest"}  # fmt: skip
HOWS = ("invoke", "ainvoke", "stream")


class Outcomes(NamedTuple):
    """What became of a conversation at several budgets."""

    accepted: int
    errors: int
    """Budgets that are smaller than what must be kept: a typed error, and nothing is sent."""
    refused: list[str]
    """Texts of the server."""
    largest: float
    """Largest quotient of the server's count and the budget."""


@pytest.fixture(autouse=True)
def _closed() -> Generator[None]:
    """Collect the clients while their warnings about open connections are still ignored."""
    yield
    gc.collect()


def budgets_of(messages: list[BaseMessage]) -> list[int]:
    whole = count_messages(messages, counter=counter_for("gpt-4o"))
    return [max(30, int(whole * (at + 1) / (BUDGETS - 4))) for at in range(BUDGETS)]


def outcomes(client: str, conversation: str, budgets: list[int]) -> Outcomes:
    """Fit and send a conversation at each budget."""
    messages = CONVERSATIONS[conversation]()
    counter = MODELS.get(client, "gpt-4o")
    errors, sent = 0, list[int]()
    with serving() as server:
        for at, budget in enumerate(budgets):
            try:
                fitted = compact_messages(messages, max_tokens=budget, counter=counter)
            except ContextWindowExceeded:
                errors += 1
                continue
            CLIENTS[client](server, fitted, HOWS[at % len(HOWS)])
            sent.append(budget)
    return Outcomes(
        accepted=len(server.accepted),
        errors=errors,
        refused=[one.refused for one in server.received if one.refused],
        largest=max(
            (one.tokens / budget for one, budget in zip(server.accepted, sent, strict=True)),
            default=0.0,
        ),
    )


def check(client: str, conversation: str, budgets: list[int]) -> None:
    found = outcomes(client, conversation, budgets)

    assert found.refused == []
    assert found.accepted + found.errors == len(budgets)
    assert found.accepted


@pytest.mark.parametrize("conversation", CONVERSATIONS)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_fitted_conversation_is_accepted(client: str, conversation: str) -> None:
    """A request that the provider refuses ends the run, and the thread stays dead."""
    budgets = budgets_of(CONVERSATIONS[conversation]())
    check(client, conversation, [budgets[at] for at in QUICK])


@pytest.mark.slow
@pytest.mark.parametrize("conversation", CONVERSATIONS)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_conversation_is_accepted_at_every_budget(client: str, conversation: str) -> None:
    """What is accepted at one size may be broken at the next."""
    check(client, conversation, budgets_of(CONVERSATIONS[conversation]()))


@pytest.mark.parametrize("client", CLIENTS)
def test_the_same_conversation_is_refused_as_it_is(client: str) -> None:
    """A server that accepts everything would make the other tests worthless."""
    with serving() as server, pytest.raises(Exception, match=r".") as caught:
        CLIENTS[client](server, broken(), "invoke")

    if server.received:  # some packages refuse it themselves
        assert server.received[-1].refused
        said = refusal_of(caught.value)
        assert said is None or not said.is_overflow


@pytest.mark.parametrize("client", CLIENTS)
def test_an_overflow_is_read_through_every_client(client: str) -> None:
    """Each package wraps the provider's text in an error class of its own."""
    with serving(window=300) as server, pytest.raises(Exception, match=r".") as caught:
        CLIENTS[client](server, chat(), "invoke")

    assert server.received[-1].refused
    said = refusal_of(caught.value)
    assert said is not None
    assert said.is_overflow
    if client != "langchain-openai Responses":
        assert (said.limit, said.requested) == (300, server.received[-1].tokens)


def test_only_the_loopback_address_is_reached() -> None:
    """A test that reaches a provider fails on every machine without a network."""
    import socket

    from pytest_socket import SocketConnectBlockedError

    with pytest.warns(UserWarning, match="allowed"), pytest.raises(SocketConnectBlockedError):
        socket.create_connection(("192.0.2.1", 80), timeout=1)


@pytest.mark.parametrize("client", ["langchain-openai chat", "openai", "llama-index-llms-openai"])
@pytest.mark.parametrize("conversation", ["chat", "pictures"])
def test_our_count_is_the_count_of_the_server(client: str, conversation: str) -> None:
    """A count below the provider's overruns the window, one above it wastes it."""
    messages = CONVERSATIONS[conversation]()
    with serving() as server:
        CLIENTS[client](server, messages, "invoke")

    ours = count_messages(messages, counter=counter_for("gpt-4o"))
    assert server.accepted[0].tokens == pytest.approx(ours, rel=0.01)
