"""Conversations that are fitted and sent through the clients of providers.

They are LangChain messages; clients that take something else convert them. A conversation with
thinking holds it in the form of the provider it is sent to.
"""

from __future__ import annotations

import base64
import json
import struct
import zlib
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("CONVERSATIONS", "broken", "chat")


def png() -> str:
    """Return a white image of one pixel as base64."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        crc = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", crc)

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"\x00\xff\xff\xff")
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + parts).decode()


PDF = (
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"
    b"2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
    b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"
)
"""A document of one empty page."""


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


def documents(_client: str) -> list[BaseMessage]:
    talk: list[BaseMessage] = [SystemMessage("You read delivery notes.")]
    for at in range(5):
        note: Any = {"type": "file", "base64": base64.b64encode(PDF).decode(),
                     "mime_type": "application/pdf", "filename": f"note-{at}.pdf"}  # fmt: skip
        talk += [HumanMessage([{"type": "text", "text": f"What is in note {at}?"}, note]),
                 AIMessage(prose(at))]  # fmt: skip
    return [*talk, HumanMessage("Which note has the most boxes?")]


def thinking(client: str) -> list[BaseMessage]:
    """Rounds with reasoning in the form in which the client gets it from its provider."""
    talk: list[BaseMessage] = [SystemMessage("You help with parcels.")]
    for at in range(5):
        one = f"t{at:03}00000"
        talk += [HumanMessage(f"Find parcel {at}."), _thought(client, at, one),
                 ToolMessage(prose(at), tool_call_id=one), _thought(client, at + 50)]  # fmt: skip
    one = "t00900000"
    return [*talk, HumanMessage("And parcel 9?"), _thought(client, 9, one),
            ToolMessage(prose(9), tool_call_id=one)]  # fmt: skip


def _thought(client: str, at: int, *ids: str) -> AIMessage:
    calls: Any = [{"name": "look_up", "args": {"parcel": one}, "id": one} for one in ids]
    text, idea = f"Parcel {at} is on its way.", f"I think about parcel {at}. " * 6
    kwargs: dict[str, Any] = {}
    said: Any = {"type": "text", "text": text}
    if "Responses" in client:
        said["id"] = f"msg_{at}"
        block: Any = {"type": "reasoning", "id": f"rs_{at}", "encrypted_content": f"gAAA{at}" * 9,
                      "summary": [{"type": "summary_text", "text": idea}]}  # fmt: skip
        called: Any = [{"type": "function_call", "id": f"fc_{one}", "call_id": one,
                        "name": "look_up", "arguments": json.dumps({"parcel": one})}
                       for one in ids]  # fmt: skip
        return AIMessage([block, said, *called], tool_calls=calls)
    if "genai" in client:
        block = {"type": "thinking", "thinking": idea}
        signature = base64.b64encode(f"signature {at}".encode()).decode()
        kwargs["__gemini_function_call_thought_signatures__"] = dict.fromkeys(ids, signature)
    else:
        block = {"type": "thinking", "thinking": idea, "signature": f"Er{at}" * 9}
    return AIMessage([block, said], tool_calls=calls, additional_kwargs=kwargs)


def system_in_the_middle(_client: str) -> list[BaseMessage]:
    talk: list[BaseMessage] = [SystemMessage("You help with parcels.")]
    for at in range(6):
        talk += [HumanMessage(f"Where is parcel P-{1000 + at}?"), AIMessage(prose(at))]
        if at in (1, 3):
            talk.append(SystemMessage(f"From now on depot {at} is closed."))
    return [*talk, HumanMessage("And P-1003?"), SystemMessage("Answer in one sentence.")]


CONVERSATIONS: dict[str, Callable[[str], list[BaseMessage]]] = {
    "chat": lambda _client: chat(),
    "parallel calls": lambda _client: parallel_calls(),
    "open round": lambda _client: open_round(),
    "pictures": lambda _client: pictures(),
    "documents": documents,
    "thinking": thinking,
    "system in the middle": system_in_the_middle,
    "broken": lambda _client: broken(),
}
"""By name; each takes the name of the client, because providers write thinking differently."""
