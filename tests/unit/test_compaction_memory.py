"""What a compactor remembers: cheap, calm, bounded, saved and loaded, never mixed up."""

from __future__ import annotations

import copy
import json
from collections import UserDict
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel

from chats import Recorder, call, chat, compact, result, said, texts
from muntin.conversations.compaction import HistoryCompactor
from muntin.counting.anchored import AnchoredCounter
from muntin.counting.framing import FRAMING_TOKENS
from muntin.counting.message_counts import count_message
from muntin.counting.tokens import count_tokens
from muntin.errors import StateCorruptError, StateVersionError
from muntin.messages.message import Message

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import EntryPoint


def rebuilt(history: list[Message]) -> list[Message]:
    """The same conversation in new objects, as a database gives it on every request."""
    return copy.deepcopy(history)


def as_dicts(history: list[Message]) -> list[dict[str, Any]]:
    return [message.to_dict() for message in history]


def test_a_long_chat_compacted_on_every_message_costs_few_calls() -> None:
    """One call per message is what made compaction dearer than sending everything."""
    summarize = Recorder("They talk." * 4)
    compactor = HistoryCompactor(summarize)
    history: list[Message] = []
    sizes: list[int] = []
    for number in range(2_000):
        history.append(said(number, tokens=50))
        out = compactor.compact(history)
        sizes.append(sum(count_tokens(str(message.content)) for message in out))
        assert out[-1] is history[-1]
    assert summarize.calls <= 110
    assert max(sizes) <= 2_000
    assert sum(len(text) for text in summarize.texts) < 3 * 2_000 * 200


@pytest.mark.parametrize("form", [list, rebuilt, as_dicts], ids=["objects", "rebuilt", "dicts"])
def test_only_new_messages_are_counted(form: Callable[[list[Message]], list[Any]]) -> None:
    """A turn costs its own messages, in a chat of any length."""
    counted: list[str] = []

    def counter(text: str) -> int:
        counted.append(text)
        return count_tokens(text)

    compactor = HistoryCompactor(Recorder(), trigger_tokens=200, token_counter=counter)
    history = chat(400)
    compactor.compact(form(history))
    for number in range(400, 420):
        history.append(said(number))
        counted.clear()
        compactor.compact(form(history))
        of_messages = [text for text in counted if text.startswith("m")]
        assert set(of_messages) <= {str(message.content) for message in history[-25:]}


def test_a_counter_that_learns_is_asked_again() -> None:
    """A usage anchor finds that text is dearer than thought: the trigger must fire at that."""
    counter = AnchoredCounter(count_tokens)
    compactor = HistoryCompactor(
        Recorder(), keep_recent=2, trigger_tokens=150, token_counter=counter
    )
    history = chat(10)
    assert compactor.compact(history) is history
    for _ in range(40):
        counter.observe(100, 200)
    assert compactor.compact(history) is not history


def test_objects_and_rebuilt_histories_mean_the_same_conversation(entry_point: EntryPoint) -> None:
    """Messages are known by what they say, whoever made the objects."""
    summarize = Recorder("SUM1", "SUM2")
    compactor = HistoryCompactor(summarize, keep_recent=2, trigger_tokens=60)
    history = chat(10)
    first = compact(entry_point, compactor, history)
    assert compact(entry_point, compactor, rebuilt(history)) == first
    identified = [replace(m, id=str(at), metadata={"seen": True}) for at, m in enumerate(history)]
    assert texts(compact(entry_point, compactor, identified)) == texts(first)
    assert summarize.calls == 1


def test_an_edited_message_is_noticed_even_in_place() -> None:
    """A recap of what somebody has since taken back is wrong."""
    summarize = Recorder("SUM1", "SUM2")
    compactor = HistoryCompactor(summarize, keep_recent=2, trigger_tokens=60)
    history = as_dicts(chat(10))
    compactor.compact(history)
    history[1]["content"] = "I never said that.".ljust(40)
    compactor.compact(history)
    assert summarize.calls == 2
    assert summarize.texts[1].startswith("user: m000")
    assert "I never said that." in summarize.texts[1]


class _Function(BaseModel):
    name: str
    arguments: str


class _Call(BaseModel):
    """A call as a client library builds it up while it streams."""

    id: str
    function: _Function


@pytest.mark.parametrize("at", [1, 9])
@pytest.mark.parametrize("kind", ["model", "mapping"])
def test_an_object_inside_a_message_that_changed_in_place_is_noticed(kind: str, at: int) -> None:
    """Compared with itself it is always the same; its size and its recap would be those of once."""
    summarize = Recorder("SUM1", "SUM2")
    compactor = HistoryCompactor(summarize, keep_recent=2, trigger_tokens=60)
    asked = _Call(id="c1", function=_Function(name="look", arguments='{"at": "x"}'))
    block: UserDict[str, Any] = UserDict(type="text", text="Half a sentence".ljust(40))
    history = as_dicts(chat(10))
    if kind == "model":
        history[at]["tool_calls"] = [asked]
        history.insert(at + 1, result("c1").to_dict())
    else:
        history[at]["content"] = [block]
    compactor.compact(history)
    asked.function.arguments = '{"at": "the rest of it"}'
    block["text"] += "and the rest of it."
    out = compactor.compact(history)
    assert summarize.calls == (2 if at == 1 else 1)
    assert ("the rest of it" in summarize.texts[-1]) == (at == 1)
    assert compactor.last_outcome is not None
    fresh = sum(count_message(message) - FRAMING_TOKENS for message in out)
    assert compactor.last_outcome.tokens_after == fresh


def test_an_edit_in_the_tail_does_not_cost_a_recap() -> None:
    """Regenerating the last answer is the commonest edit of all."""
    summarize = Recorder("SUM1", "SUM2")
    compactor = HistoryCompactor(summarize, keep_recent=2, trigger_tokens=60)
    history = chat(10)
    compactor.compact(history)
    regenerated = [*history[:-1], Message("Another answer.", "assistant")]
    assert texts(compactor.compact(regenerated)) == ["[Recap] SUM1", "m008", "Another answer"]
    assert summarize.calls == 1


def test_a_branch_keeps_the_recap_of_its_trunk() -> None:
    """Going back and asking differently costs neither the whole history nor the other branch."""
    summarize = Recorder("TRUNK", "LEFT", "RIGHT")
    compactor = HistoryCompactor(summarize, keep_recent=2, trigger_tokens=100)
    trunk = chat(12)
    compactor.compact(trunk)
    left = [*trunk, *chat(12, start=100)]
    right = [*trunk, *chat(12, start=200)]
    assert compactor.compact(left)[0].content == "[Recap] LEFT"
    assert compactor.compact(right)[0].content == "[Recap] RIGHT"
    assert summarize.texts[2].startswith("TRUNK\nuser: m010")
    assert compactor.compact(left)[0].content == "[Recap] LEFT"
    assert compactor.compact(right)[0].content == "[Recap] RIGHT"
    assert summarize.calls == 3


@pytest.mark.parametrize("conversations", [33, 200])
def test_many_conversations_do_not_push_each_other_out(conversations: int) -> None:
    """One compactor serves a server; what it forgets is paid for again with whole histories."""
    summarize = Recorder("SUM")
    compactor = HistoryCompactor(summarize, keep_recent=2, trigger_tokens=60)
    opening = [Message("Hello!", "user"), Message("Hello, how can I help?", "assistant")]
    histories = [
        [*opening, *chat(10, start=1_000 * number)] for number in range(1, conversations + 1)
    ]
    for history in histories:
        compactor.compact(history)
    assert summarize.calls == conversations
    for _ in range(3):
        for history in histories:
            history.append(Message("ok", "user"))
            assert compactor.compact(history)[0].content == "[Recap] SUM"
    assert summarize.calls == conversations


def test_what_is_remembered_is_bounded_and_the_newest_stays() -> None:
    """A server that runs for a month keeps its memory."""
    compactor = HistoryCompactor(Recorder(), keep_recent=2, trigger_tokens=60, max_conversations=5)
    for number in range(50):
        compactor.compact(chat(10, start=1_000 * number))
    assert len(compactor.state()["recaps"]) == 5
    assert compactor.state(chat(10, start=49_000))["recaps"]
    assert not compactor.state(chat(10, start=1_000))["recaps"]


def test_the_compacted_list_fed_back_is_not_summarised_again(entry_point: EntryPoint) -> None:
    """Those who store what comes out get the same as those who store everything."""
    summarize = Recorder("SUM1", "SUM2")
    compactor = HistoryCompactor(summarize, keep_recent=2, trigger_tokens=60)
    stored = compact(entry_point, compactor, chat(10))
    assert compact(entry_point, compactor, stored) is stored
    for number in range(10, 14):
        stored = compact(entry_point, compactor, [*stored, said(number)])
    assert summarize.calls == 2
    assert summarize.texts[1].startswith("SUM1\nuser: m008")
    assert texts(stored)[0] == "[Recap] SUM2"


@pytest.mark.parametrize("role", ["system", "user", "assistant"])
def test_a_stored_recap_is_recognised_after_a_restart(role: Any, entry_point: EntryPoint) -> None:
    """As plain dicts from a store it is still one recap, folded once, by the merge prompt."""
    first = HistoryCompactor(Recorder("SUM1"), keep_recent=2, trigger_tokens=60, recap_role=role)
    stored = as_dicts(compact(entry_point, first, chat(10)))
    summarize = Recorder("SUM2")
    second = HistoryCompactor(summarize, keep_recent=2, trigger_tokens=60, recap_role=role)
    second.load(first.state())
    longer = [*stored, *as_dicts(chat(8, start=10))]
    out = compact(entry_point, second, longer)
    assert [message["content"].rstrip(".") for message in out] == ["[Recap] SUM2", "m016", "m017"]
    assert summarize.texts[0].startswith("SUM1\n")


def test_saved_recaps_serve_another_process(entry_point: EntryPoint) -> None:
    """A restart, or the next worker, must not pay for every conversation again."""
    first, second = Recorder("SUM1"), Recorder("SUM2")
    old = HistoryCompactor(first, keep_recent=2, trigger_tokens=60)
    history = chat(10)
    before = compact(entry_point, old, history)
    new = HistoryCompactor(second, keep_recent=2, trigger_tokens=60)
    new.load(json.loads(json.dumps(old.state(history))))
    assert compact(entry_point, new, rebuilt(history)) == before
    assert second.calls == 0
    assert new.state() == old.state()


def test_the_saved_form_is_what_the_version_says() -> None:
    """Files written today are read by later versions; a change of form needs a new number."""
    compactor = HistoryCompactor(Recorder("SUM1"), keep_recent=2, trigger_tokens=60)
    history = [*chat(3), Message("Keep me.", "user", pinned=True), *chat(7, start=3)]
    compactor.compact(history)
    assert compactor.state() == {
        "schema": "muntin.recaps/1",
        "recaps": [
            {
                "digest": "9a4872c4c038485c2eac622cc7f1291b",
                "covered": 9,
                "held": [3],
                "text": "SUM1",
            }
        ],
    }


GOOD = {"digest": "ab", "covered": 4, "held": [1], "text": "SUM"}


@pytest.mark.parametrize(
    ("state", "error"),
    [
        ({}, StateCorruptError),
        ({"schema": "muntin.recaps/2", "recaps": []}, StateVersionError),
        ({"schema": "else", "recaps": []}, StateCorruptError),
        ({"schema": "muntin.recaps/1"}, StateCorruptError),
        ({"schema": "muntin.recaps/1", "recaps": {}}, StateCorruptError),
        *[
            ({"schema": "muntin.recaps/1", "recaps": [GOOD, bad]}, StateCorruptError)
            for bad in (
                None,
                "SUM",
                {},
                {**GOOD, "more": 1},
                {**GOOD, "digest": "zz"},
                {**GOOD, "digest": ""},
                {**GOOD, "covered": 0},
                {**GOOD, "covered": "4"},
                {**GOOD, "covered": True, "held": []},
                {**GOOD, "held": [4]},
                {**GOOD, "held": ["1"]},
                {**GOOD, "held": 1},
                {**GOOD, "text": " "},
                {**GOOD, "text": None},
            )
        ],
    ],
)
def test_a_broken_state_is_refused_whole(state: dict[str, Any], error: type[Exception]) -> None:
    """Half a state would bring back some conversations without their past."""
    compactor = HistoryCompactor(Recorder())
    with pytest.raises(error):
        compactor.load(state)
    assert compactor.state()["recaps"] == []


def test_requests_share_their_beginning_until_a_new_recap_is_made() -> None:
    """A provider's prompt cache holds as long as the bytes before the end stay the same."""
    compactor = HistoryCompactor(Recorder(*(f"SUM{n}" for n in range(99))), trigger_tokens=500)
    history = [Message("You help.", "system")]
    requests: list[str] = []
    remade: list[bool] = []
    for turn in range(200):
        history.append(said(2 * turn, tokens=20))
        out = compactor.compact(history)
        assert compactor.last_outcome is not None
        remade.append(compactor.last_outcome.reason == "compacted")
        requests.append("\n".join(json.dumps(message.to_dict()) for message in out))
        history.append(said(2 * turn + 1, tokens=20))
    for (before, after), new_recap in zip(pairwise(requests), remade[1:], strict=True):
        assert new_recap or after.startswith(before)
        assert after.startswith('{"role": "system", "content": "You help."}\n')
    assert 10 < sum(remade) < 25


def test_a_summary_of_nothing_new_never_replaces_the_old_one(entry_point: EntryPoint) -> None:
    """With nothing to fold there is nothing to ask, and the recap there is stays."""
    summarize = Recorder("SUM1", "")
    compactor = HistoryCompactor(summarize, keep_recent=6, trigger_tokens=10)
    history = chat(10)
    first = compact(entry_point, compactor, history)
    for _ in range(3):
        assert compact(entry_point, compactor, history) == first
    assert summarize.calls == 1
    assert compactor.last_outcome is not None
    assert compactor.last_outcome.reason == "nothing_to_fold"


def test_a_history_that_got_shorter_is_taken_as_it_is(entry_point: EntryPoint) -> None:
    """The user deleted most of the chat: no recap of the deleted part comes back."""
    compactor = HistoryCompactor(Recorder("SUM1"), keep_recent=2, trigger_tokens=60)
    compact(entry_point, compactor, chat(30))
    short = chat(5)
    assert compact(entry_point, compactor, short) is short


def test_recaps_that_were_continued_are_forgotten_before_other_conversations() -> None:
    """One talkative conversation must not push the quiet ones out of a small memory."""
    summarize = Recorder("SUM")
    compactor = HistoryCompactor(summarize, keep_recent=2, trigger_tokens=60, max_conversations=4)
    quiet = [chat(10, start=1_000 * number) for number in (1, 2, 3)]
    for history in quiet:
        compactor.compact(history)
    for size in range(10, 100):
        compactor.compact(chat(size))
    before = summarize.calls
    for history in quiet:
        assert compactor.compact(history)[0].content == "[Recap] SUM"
    assert summarize.calls == before


def answered_run() -> tuple[list[Message], list[Message]]:
    """A long question with rounds of parallel calls; and the same, answered, with another one."""
    run = [said(0, tokens=60)]
    for step in range(3):
        ids = [f"c{step}-{number}" for number in range(4)]
        run += [call(*ids), *(result(name) for name in ids)]
    return run, [*run, said(1), said(2)]


def test_folding_what_was_held_leaves_a_recap_of_all_it_tells(entry_point: EntryPoint) -> None:
    """A recap filed under the one message it took last was never found, and was paid for again."""
    summarize = Recorder("SUM1", "SUM2", "NEVER")
    compactor = HistoryCompactor(summarize, trigger_tokens=100, max_conversations=1)
    run, answered = answered_run()
    assert compact(entry_point, compactor, run)[1] is run[0]
    first = compact(entry_point, compactor, answered)
    assert texts(first)[0] == "[Recap] SUM2"
    assert first[1:] == answered[11:]
    for _ in range(3):
        assert compact(entry_point, compactor, answered) == first
    assert summarize.calls == 2
    recap = compactor.state(answered)["recaps"][0]
    assert (recap["covered"], recap["held"]) == (11, [])


def test_a_recap_never_reaches_a_conversation_that_only_opens_alike(
    entry_point: EntryPoint,
) -> None:
    """What another customer was told is nothing to put into this one's mouth."""
    compactor = HistoryCompactor(Recorder("SUM"), trigger_tokens=100)
    run, answered = answered_run()
    compact(entry_point, compactor, run)
    compact(entry_point, compactor, answered)
    other = [run[0], *chat(7, start=21, tokens=20)]
    summarize = Recorder("OTHER")
    out = compact(entry_point, compactor, other, summarize)
    assert out[0].content == "[Recap] OTHER"
    assert summarize.texts[0].startswith("user: m000")
