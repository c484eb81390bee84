"""Passages that the model has already are recognised, whatever form they were sent in."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from muntin import CallableSource, Candidate, ConfigurationError, ContextBuilder, Message
from muntin.passages import given_among, read_given
from muntin.report import REASONS

if TYPE_CHECKING:
    from collections.abc import Callable

PASSAGE = (
    "Parcels to Lund travel on Mondays.\n"
    'The driver takes at most 40 of them, "fragile" ones first; the depot opens at seven.'
)
OTHER = "Letters weigh 80 grams at most and need no form."
SOURCE = CallableSource("rag", lambda query: [Candidate(PASSAGE, 0.9), Candidate(OTHER, 0.5)])


def _block() -> str:
    return ContextBuilder().build_block("parcels?", sources=[SOURCE], budget=500)


FORMS: dict[str, Callable[[], Any]] = {
    "a text": lambda: PASSAGE,
    "a list of texts": lambda: ["Hello.", f"I read: {PASSAGE} So wait."],
    "a generator": lambda: (text for text in ("Hello.", PASSAGE)),
    "a set": lambda: {"Hello.", PASSAGE},
    "a candidate": lambda: Candidate(PASSAGE, 0.1),
    "an assembled block": lambda: [_block()],
    "an assembled context": lambda: ContextBuilder().assemble(
        "parcels?", sources=[SOURCE], budget=500
    ),
    "a function": lambda: lambda: [PASSAGE],
    "a message": lambda: Message(role="assistant", content=f"> {PASSAGE}"),
    "a message dict": lambda: {"role": "system", "content": PASSAGE},
    "a tool result": lambda: [{"role": "tool", "tool_call_id": "1", "content": PASSAGE}],
    "a tool result in JSON": lambda: [
        {
            "role": "tool",
            "tool_call_id": "1",
            "content": json.dumps({"hits": [{"text": PASSAGE, "score": 0.9}]}),
        }
    ],
    "an Anthropic result": lambda: [
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "1",
                    "content": [{"type": "text", "text": PASSAGE}],
                }
            ],
        }
    ],
    "a Gemini content": lambda: [{"role": "user", "parts": [{"text": PASSAGE}]}],
    "other case and spaces": lambda: PASSAGE.upper().replace(" ", "  "),
    "one word of twenty changed": lambda: PASSAGE.replace("driver", "courier"),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_passage_in_any_form_is_not_given_again(form: str) -> None:
    """A passage that is sent twice takes tokens from one that would be new."""
    given = FORMS[form]()
    context = ContextBuilder().assemble("parcels?", sources=[SOURCE], budget=500, given=given)

    decision = context.report.decisions[0]
    assert PASSAGE.splitlines()[0] not in context.text
    assert (decision.kind, decision.reason) == ("dropped", "already_given")
    assert REASONS["already_given"] == "already in the conversation"
    assert form.startswith("an assembled") or OTHER in context.text


NOT_GIVEN: dict[str, Any] = {
    "nothing": (),
    "None": None,
    "an empty text": "",
    "another number": PASSAGE.replace("40", "41"),
    "half of it": PASSAGE.splitlines()[0],
    "its words in another order": " ".join(reversed(PASSAGE.split())),
    "its words spread over a long text": " and then came quite another thing ".join(
        PASSAGE.split(" ")
    ),
    "its halves in two messages": [PASSAGE[: len(PASSAGE) // 2], PASSAGE[len(PASSAGE) // 2 :]],
}


@pytest.mark.parametrize("form", NOT_GIVEN)
def test_what_only_resembles_a_passage_does_not_replace_it(form: str) -> None:
    """A passage that is taken for known and is not would leave the model without the answer."""
    text = ContextBuilder().build_block(
        "parcels?", sources=[SOURCE], budget=500, given=NOT_GIVEN[form]
    )

    assert PASSAGE.splitlines()[0] in text


def test_a_record_is_not_taken_for_the_records_around_it() -> None:
    """Every run of words of a record can occur in others, and it is still a record of its own."""
    records = [
        f"Rule {n}: a parcel of class {n % 5} to zone {n % 7} costs {n % 3 + 40} euros at the depot"
        for n in range(24)
    ]
    shown = "\n".join(records[:13] + records[14:])

    assert [record for record, had in zip(records, given_among(records, [shown]), strict=True)
            if not had] == [records[13]]  # fmt: skip


def test_pinned_passages_are_given_in_any_case() -> None:
    """A pin is a promise to place the passage."""
    source = CallableSource("rag", lambda query: [Candidate(PASSAGE, 0.9, pinned=True)])

    assert "Lund" in ContextBuilder().build_block("?", sources=[source], budget=500, given=PASSAGE)


def test_a_context_of_known_passages_is_empty_without_a_warning() -> None:
    """Nothing is missing then, so the report must not say that no passage fits."""
    source = CallableSource("rag", lambda query: [Candidate(PASSAGE, 0.9)])
    context = ContextBuilder().assemble("?", sources=[source], budget=500, given=PASSAGE)

    assert context.candidates == ()
    assert context.shortfall is None
    assert context.report.notes == ()


WRONG: dict[str, Any] = {
    "a number": 5,
    "bytes": b"parcels",
    "a list with None": [None],
    "a list with a number": ["a", 3.5],
    "an object": object(),
    "a dict without a role": {"a": 1},
    "a function that returns a number": lambda: 7,
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_cannot_be_read_is_refused_by_name(wrong: str) -> None:
    """A conversation that is silently ignored costs its tokens twice."""
    with pytest.raises(ConfigurationError, match="given must be texts, candidates or messages"):
        read_given(WRONG[wrong])


def test_an_async_function_is_refused() -> None:
    """A coroutine that is not awaited holds no messages."""

    async def messages() -> list[str]:
        return [PASSAGE]

    with pytest.raises(ConfigurationError, match="async"):
        read_given(messages)


@pytest.mark.parametrize("size", [100, 400])
def test_boilerplate_in_a_long_conversation_stays_fast(size: int) -> None:
    """Many passages with one footer against many messages with it must not multiply."""
    footer = "This message was sent by the depot of the post office in Lund. "
    passages = [f"{footer * 3} Item {n} is ready." for n in range(size)]
    shown = [f"{footer * 3} Item {n} is late." for n in range(size)]

    before = time.process_time()
    found = given_among(passages, shown)

    assert not any(found)
    assert time.process_time() - before < 0.02 * size
