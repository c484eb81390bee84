"""Half a character is repaired wherever in a message it stands, and then all is settled."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from pydantic import BaseModel

from muntin.conversations.encodable import cleaned
from muntin.conversations.fit import fit_messages
from muntin.messages.message import Message, ToolCall

HALF = "half \ud83d"


class _Block(BaseModel):
    type: str = "text"
    text: str


def _function(arguments: str) -> dict[str, Any]:
    return {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}


BROKEN: list[Any] = [
    {"role": "user", "content": HALF},
    {"role": "user", "content": "x", "name": HALF},
    {"role": "user", "content": ({"type": "text", "text": HALF},)},
    {"role": "user", "content": [{"type": "text", "text": "x", HALF: 1}]},
    {"role": "assistant", "content": None, "tool_calls": [_function(HALF)]},
    {"role": "user", "content": [_Block(text=HALF)]},
    Message(HALF, "user"),
    Message("x", "user", id=HALF),
    Message("x", "user", name=HALF),
    Message("", "assistant", tool_calls=(ToolCall("c", "f", HALF),)),
    Message(({"type": "text", "text": HALF},), "user"),
]


def _is_encodable(message: Any) -> bool:
    said = dataclasses.asdict(message) if isinstance(message, Message) else message
    return "\\ud83d" not in ascii(said)


@pytest.mark.filterwarnings("ignore:content block of unknown type")
@pytest.mark.parametrize("message", BROKEN, ids=ascii)
def test_half_a_character_is_repaired_once(message: Any) -> None:
    """A request that cannot be written cannot be sent, and a repair that repeats never settles."""
    before = ascii(message)
    fitted = fit_messages([message, {"role": "user", "content": "ok"}], budget=1_000)
    assert fitted.changed
    assert _is_encodable(fitted.messages[0])
    assert type(fitted.messages[0]) is type(message)
    assert fitted.messages[1] == {"role": "user", "content": "ok"}
    assert ascii(message) == before
    assert not fit_messages(fitted.messages, budget=1_000).changed


def test_what_can_be_written_stays_the_same_object() -> None:
    for message in ({"role": "user", "content": [{"text": "été 🎉"}]}, Message("été 🎉", "user")):
        assert cleaned(message) is message


def test_an_object_that_cannot_be_copied_is_left_as_it_is() -> None:
    """Nobody can say how; a fit that says it changed something would never come to rest."""

    class Odd:
        text = HALF

    message = {"role": "user", "content": "x", "extra": Odd()}
    assert cleaned(message) is message
