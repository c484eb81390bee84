"""A conversation under compaction, step by step, against the simplest model of what must be there.

The model is the list of all messages ever said. After every step, what compaction returns must be
that list, less exactly the messages a successful summary was given, plus at most one recap.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from chats import call, result
from muntin.conversations.compaction import Compaction, HistoryCompactor
from muntin.counting.tokens import count_tokens
from muntin.messages.message import Message
from muntin.messages.shapes import view
from muntin.messages.turns import pairing_problems

TRIGGER = 120
KEEP = 3

FAILURES: dict[str, Any] = {
    "raises": OSError("down"),
    "blank": "  ",
    "none": None,
    "echo": lambda text: text,  # pyright: ignore[reportUnknownLambdaType] - of tests
    "endless": "and so on " * 5_000,
}


class Conversation(RuleBasedStateMachine):
    """Append, compact, fail, reload, append in flight, go back: nothing is ever lost."""

    @initialize(system=st.booleans(), fed_back=st.booleans(), asynchronous=st.booleans())
    def begin(self, *, system: bool, fed_back: bool, asynchronous: bool) -> None:
        self.count = 0
        self.summaries = 0
        self.asked = 0
        self.pinned_late = False
        self.said: list[Message] = [Message("Rules.", "system")] if system else []
        self.stored = list(self.said)
        self.fed_back = fed_back
        self.asynchronous = asynchronous
        self.covered: set[str] = set()
        self.meanwhile: list[Message] = []
        self.compactor = self.new_compactor()

    def new_compactor(self) -> HistoryCompactor:
        return HistoryCompactor(self.summarize, keep_recent=KEEP, trigger_tokens=TRIGGER)

    # --- what happens ---

    def summarize(self, text: str, instruction: str) -> Any:
        self.asked += 1
        if self.meanwhile:
            self.say(*self.meanwhile)
            self.meanwhile = []
        reply = self.reply(text)
        if isinstance(reply, Exception):
            raise reply
        return reply

    def reply(self, text: str) -> Any:
        if self.failure is not None:
            failure = FAILURES[self.failure]
            return failure(text) if callable(failure) else failure
        self.summaries += 1
        self.given = text
        return f"Summary {self.summaries}."

    failure: str | None = None
    given: str = ""

    def say(self, *messages: Message) -> None:
        self.said += messages
        self.stored += messages

    def message(self, role: Any = "user", size: int = 40, **more: Any) -> Message:
        self.count += 1
        return Message(f"[{self.count:04d}]".ljust(size, "."), role, **more)

    @rule(turns=st.integers(1, 4), size=st.sampled_from([8, 40, 200]))
    def talk(self, turns: int, size: int) -> None:
        for _ in range(turns):
            self.say(self.message("user", size), self.message("assistant", size))

    @rule(calls=st.integers(1, 3), pinned=st.booleans(), late=st.booleans())
    def use_tools(self, *, calls: int, pinned: bool, late: bool) -> None:
        ids = [f"call-{self.count}-{number}" for number in range(calls)]
        self.count += 1
        answers = [result(name, f"[{self.count:04d}-{name}]".ljust(60, ".")) for name in ids]
        asked = call(*ids, text=f"[{self.count:04d}-asks]")
        between = [self.message("user")] if late else []
        self.say(asked, *answers[:-1], *between, answers[-1])
        if pinned:
            self.say(self.message("user", pinned=True))

    @rule(failure=st.sampled_from([None, *FAILURES]), grows=st.integers(0, 3))
    def compact(self, failure: str | None, grows: int) -> None:
        self.failure = failure
        self.meanwhile = [self.message() for _ in range(grows)]
        before = [message.to_dict() for message in self.stored]
        history = self.stored
        done = self.fold(history)
        self.meanwhile = []
        assert [m.to_dict() for m in history[: len(before)]] == before, "the input was changed"
        self.check(list(done.messages), done.outcome)
        if not grows:
            self.failure, asked = None, self.asked
            assert list(self.fold(history).messages) == list(done.messages), "read differently"
            assert self.asked == asked, "the same history was paid for twice"
        if self.fed_back:
            self.stored = list(done.messages)

    def fold(self, history: list[Message]) -> Compaction:
        if self.asynchronous:
            return asyncio.run(self.compactor.afold(history))
        return self.compactor.fold(history)

    def check(self, out: list[Message], outcome: Any) -> None:
        recaps = [m for m in out if str(m.content).startswith("[Recap]")]
        assert len(recaps) <= 1
        if recaps:
            assert recaps[0].content == f"[Recap] Summary {self.summaries}."
        if outcome.reason == "compacted":
            self.covered |= {
                mark(m) for m in self.said if mark(m) in self.given or mark(m) in self.covered
            }
        kept = [m for m in out if m not in recaps]
        there = {mark(m) for m in kept}
        for one in self.said:
            assert mark(one) in there or mark(one) in self.covered, f"lost: {one}"
            twice = mark(one) in there and mark(one) in self.covered
            assert not twice or self.pinned_late, f"twice: {one}"
            assert not one.pinned or one in kept, f"unpinned: {one}"
        order = {mark(m): at for at, m in enumerate(self.said)}
        places = [order[mark(m)] for m in kept]
        assert places == sorted(places)
        assert pairing_problems([view(m) for m in out]) == ()
        users = [m for m in self.said if m.role == "user"]
        assert not users or users[-1] in out
        assert out[-min(KEEP, len(self.said)) :] == self.said[-min(KEEP, len(self.said)) :]
        assert outcome.tokens_after <= outcome.tokens_before + (len(recaps) and 12)
        assert sum(count_tokens(str(m.content)) for m in recaps) <= 1000

    # --- what may happen besides ---

    @rule()
    def restart(self) -> None:
        state = json.loads(json.dumps(self.compactor.state()))
        self.compactor = self.new_compactor()
        self.compactor.load(state)

    @rule()
    def read_from_a_database(self) -> None:
        self.stored = [
            Message(
                m.content,
                m.role,
                tool_calls=m.tool_calls,
                tool_call_id=m.tool_call_id,
                pinned=m.pinned,
                metadata=dict(m.metadata),
            )
            for m in self.stored
        ]

    @precondition(lambda self: not self.fed_back and len(self.said) > 1)
    @rule(place=st.integers(0, 30))
    def pin_later(self, place: int) -> None:
        at = place % len(self.said)
        self.said[at] = replace(self.said[at], pinned=True)
        self.stored = list(self.said)
        self.pinned_late = True

    @precondition(lambda self: not self.fed_back and len(self.said) > 6 and not self.covered)
    @rule()
    def take_back(self) -> None:
        while self.said and (
            len(self.said) > 4
            or self.said[-1].role in ("tool", "assistant")
            or pairing_problems([view(message) for message in self.said])
        ):
            self.said.pop()
        self.stored = list(self.said)

    @invariant()
    def remembers_little(self) -> None:
        if hasattr(self, "compactor"):
            assert len(self.compactor.state()["recaps"]) <= self.summaries


def mark(message: Message) -> str:
    """The number in a message's text, or the ids it calls: what a transcript shows of it."""
    return str(message.content).partition("]")[0]


Conversation.TestCase.settings = settings(stateful_step_count=25)
TestConversation = Conversation.TestCase
