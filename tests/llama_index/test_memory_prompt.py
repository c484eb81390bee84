"""Only leading system messages are the prompt, and broken conversations are mended when read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core.base.llms.types import ChatMessage, MessageRole

from llama_doubles import EXACT, calling, memory_of, recap_of, result, said, sentence, size, talk
from llama_index_muntin.testing import StrictLLM
from muntin.messages import pairing_problems, view
from muntin.testing import check_request

if TYPE_CHECKING:
    from conftest import EntryPoint

pytestmark = pytest.mark.usefixtures("own_loop")


@pytest.mark.parametrize("role", ["system", "developer"])
@pytest.mark.parametrize("model", [True, False])
def test_a_system_note_after_each_turn_is_no_prompt(
    role: str,
    model: bool,  # noqa: FBT001 - parametrised
    entry_point: EntryPoint,
) -> None:
    """Pinned for ever and moved to the front, such notes filled the limit until reads failed."""
    memory = memory_of(1000, summarizer=recap_of() if model else None)
    entry_point.call(memory, "put", said("system", "You are a clerk."))
    sent: Any = []
    for at in range(51):
        entry_point.call(
            memory, "put_messages", [said("user", sentence(at)), said("assistant", "Noted.")]
        )
        entry_point.call(memory, "put", said(role, f"The user is idle since {at} minutes."))
        sent = entry_point.call(memory, "get")
        assert size(sent) <= 1000
        assert sent[0].content == "You are a clerk."

    contents = [message.content for message in sent]
    assert sum("idle since" in str(content) for content in contents) < 40
    assert contents.index(sentence(50)) < contents.index("The user is idle since 50 minutes.")
    assert contents[1] is not None
    assert "idle" not in contents[1].splitlines()[0][:12]


def test_every_leading_system_message_is_the_prompt(entry_point: EntryPoint) -> None:
    """A prompt of several messages must not lose its second half to a fold."""
    memory = memory_of(500, summarizer=recap_of())
    prompt = [said("system", "You are a clerk."), said("system", "Answer in verse.")]
    entry_point.call(memory, "put_messages", [*prompt, *talk(60)])
    sent: Any = entry_point.call(memory, "get")

    assert sent[:2] == prompt
    assert "[Recap]" in str(sent[2].content)


BROKEN: dict[str, list[ChatMessage]] = {
    "cancelled": [said("user", "Look."), calling("c1")],
    "half answered": [
        said("user", "Look."),
        ChatMessage(
            role=MessageRole.ASSISTANT,
            blocks=[*calling("c1").blocks, *calling("c2").blocks],
            additional_kwargs={},
        ),
        result("c1", "fine"),
        said("user", "And?"),
    ],
    "orphan": [result("gone", "late"), said("user", "Hello?"), said("assistant", "Yes?")],
    "empty": [said("user", "Hello?"), ChatMessage(role="assistant", blocks=[])],
    "copied call": [
        said("user", "Look."),
        calling("c1", form="openai"),
        said("user", "Never mind."),
        said("assistant", "All right."),
    ],
}


@pytest.mark.parametrize("kind", sorted(BROKEN))
@pytest.mark.parametrize("limit", [2000, 150])
def test_a_broken_conversation_is_mended_and_reported(
    kind: str, limit: int, entry_point: EntryPoint
) -> None:
    """A timeout that was stored once made every later request fail."""
    broken = BROKEN[kind]
    memory = memory_of(limit)
    entry_point.call(memory, "put_messages", [*broken, said("user", "Still there?")])
    if limit < 1000:
        entry_point.call(memory, "put_messages", [*talk(6), said("user", "Still there?")])
    sent: Any = entry_point.call(memory, "get")

    assert not pairing_problems([view(message) for message in sent])
    check_request(sent, window=4000, counter=EXACT)
    assert memory.get_all()[: len(broken)] == broken
    report = memory.last_report
    assert report is not None
    if kind in ("cancelled", "half answered", "copied call") and limit > 1000:
        assert report.written["repair"] > 0
    if kind == "orphan" and limit > 1000:
        assert next(one.reason for one in report.decisions) == "orphaned"


def test_a_call_in_flight_is_not_mended(entry_point: EntryPoint) -> None:
    """A person may still have to approve it; the answer would come to a call that is closed."""
    memory = memory_of(500)
    entry_point.call(memory, "put_messages", [said("user", "Pay."), calling("c1")])

    assert entry_point.call(memory, "get") == [said("user", "Pay."), calling("c1")]


def test_what_a_memory_sends_a_strict_model_takes(entry_point: EntryPoint) -> None:
    """The mock refuses what providers refuse."""
    llm = StrictLLM(lambda _: "Yes.", window=4000)
    for broken in BROKEN.values():
        memory = memory_of(600)
        entry_point.call(memory, "put_messages", [*broken, said("user", "Still there?")])
        sent: Any = entry_point.call(memory, "get")
        assert llm.chat(sent).message.content == "Yes."
