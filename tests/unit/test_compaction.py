"""Compaction as its users meet it: what comes back, when, and what the outcome says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from chats import Recorder, call, chat, compact, fold, result, said, texts
from muntin.config import CompactionConfig, MuntinConfig
from muntin.conversations.compaction import HistoryCompactor
from muntin.counting.tiktoken_counter import TiktokenCounter
from muntin.counting.tokens import count_tokens
from muntin.errors import ConfigurationError
from muntin.messages.message import Message
from muntin.messages.shapes import view
from muntin.prompts import DEFAULT_PROMPTS, PromptRegistry
from muntin.testing import ScriptedLLM

if TYPE_CHECKING:
    from conftest import EntryPoint

FIRST = DEFAULT_PROMPTS.get("compaction.summary")
MERGE = DEFAULT_PROMPTS.get("compaction.merge")


def reason(compactor: HistoryCompactor) -> str:
    assert compactor.last_outcome is not None
    return compactor.last_outcome.reason


OPENAI_CALL = {
    "id": "c1",
    "type": "function",
    "function": {"name": "look", "arguments": '{"at":"x"}'},
}
REFUND = [
    Message(content="How do I get a refund?", role="user"),
    Message(content="Open Settings then Billing.", role="assistant"),
    Message(content="I did that but I am still stuck.", role="user"),
    Message(content="Let me escalate this for you.", role="assistant"),
]
RECAP = "The user asked how to get a refund and was told to check Settings > Billing."


@pytest.mark.parametrize("counter", [count_tokens, TiktokenCounter()], ids=["rule", "o200k"])
def test_the_documented_example_comes_out_word_for_word(
    entry_point: EntryPoint, counter: Any
) -> None:
    """Users begin with the reference's example; it must do what it says there."""
    llm = ScriptedLLM([RECAP])
    compactor = HistoryCompactor(llm, keep_recent=2, trigger_tokens=10, token_counter=counter)
    compacted = compact(entry_point, compactor, REFUND)
    assert [(message.role, message.content) for message in compacted] == [
        ("system", f"[Recap] {RECAP}"),
        ("user", "I did that but I am still stuck."),
        ("assistant", "Let me escalate this for you."),
    ]
    assert compacted[1] is REFUND[2]
    assert compacted[2] is REFUND[3]


@pytest.mark.parametrize(("trigger", "folds"), [(40, 0), (39, 1)])
def test_a_history_is_compacted_above_the_trigger_and_not_at_it(
    entry_point: EntryPoint, trigger: int, folds: int
) -> None:
    """Content alone is counted: 4 messages of 10 tokens are 40."""
    summarize = Recorder()
    compactor = HistoryCompactor(summarize, keep_recent=2, trigger_tokens=trigger)
    history = chat(4)
    assert (compact(entry_point, compactor, history) is not history) == bool(folds)
    assert summarize.calls == folds


def test_a_history_of_no_more_than_the_recent_messages_is_left_alone(
    entry_point: EntryPoint,
) -> None:
    """With a trigger of 0 there is always too much, but nothing that may be folded."""
    compactor = HistoryCompactor(Recorder(), keep_recent=4, trigger_tokens=0)
    history = chat(4)
    assert compact(entry_point, compactor, history) is history
    assert reason(compactor) == "nothing_to_fold"


def test_an_empty_history_is_left_alone(entry_point: EntryPoint) -> None:
    compactor = HistoryCompactor(Recorder(), trigger_tokens=0)
    history: list[Message] = []
    assert compact(entry_point, compactor, history) is history


def test_a_growing_history_is_merged_into_the_recap_there_is(entry_point: EntryPoint) -> None:
    """The summariser gets the old recap and what is new, never the whole chat again."""
    summarize = Recorder("SUM1", "SUM2", "SUM3")
    compactor = HistoryCompactor(summarize, keep_recent=2, trigger_tokens=20)
    for size in (4, 6, 8):
        compact(entry_point, compactor, chat(size))
    filled = [str(said(number).content) for number in range(8)]
    assert summarize.texts == [
        f"user: {filled[0]}\nassistant: {filled[1]}",
        f"SUM1\nuser: {filled[2]}\nassistant: {filled[3]}",
        f"SUM2\nuser: {filled[4]}\nassistant: {filled[5]}",
    ]
    assert summarize.instructions == [FIRST, MERGE, MERGE]


def test_the_same_history_again_costs_nothing(entry_point: EntryPoint) -> None:
    """A retry of the same request pays no model and gets the same bytes."""
    summarize = Recorder("SUM1", "SUM2")
    compactor = HistoryCompactor(summarize, keep_recent=2, trigger_tokens=25)
    first, second, third = (compact(entry_point, compactor, chat(4)) for _ in range(3))
    assert first == second == third
    assert summarize.calls == 1


def test_forty_messages_one_by_one_cost_a_call_now_and_then(entry_point: EntryPoint) -> None:
    """Once over the trigger, the tail grows back to it before a model is asked again."""
    summarize = Recorder("SUM")
    compactor = HistoryCompactor(summarize, keep_recent=4, trigger_tokens=100)
    calls_at: list[int] = []
    for size in range(1, 41):
        before = summarize.calls
        compact(entry_point, compactor, chat(size))
        calls_at += [size] if summarize.calls > before else []
    assert calls_at == [11, 17, 23, 29, 35]


@pytest.mark.parametrize("reply", ["", None, "   ", "\n\t\n", "[Recap] ", "[Recap]"])
def test_a_blank_summary_changes_nothing(entry_point: EntryPoint, reply: str | None) -> None:
    """White space in place of forty messages would be forty messages lost."""
    compactor = HistoryCompactor(Recorder(reply), keep_recent=2, trigger_tokens=30)
    history = chat(4)
    assert compact(entry_point, compactor, history) is history
    assert reason(compactor) == "summary_empty"


@pytest.mark.parametrize("text", ["x", "中", "é", "👩‍👩‍👧‍👦", "word "])
@pytest.mark.parametrize("cap", [1000, 40])
def test_the_cap_on_a_recap_is_exact_and_includes_the_prefix(
    text: str, cap: int, counter: Any
) -> None:
    """The recap is sent with every later request: an overshoot is paid for ever."""
    reply = text
    while counter(reply) < 1.3 * cap:  # over the cap, as models are, and not hopelessly so
        reply += reply[: max(len(text), len(reply) // 4 // len(text) * len(text))]
    # What is folded is larger than the reply, so that the reply is no growth but too long.
    history = [Message(reply * 3 + str(number), "user") for number in range(4)]
    compactor = HistoryCompactor(
        Recorder(reply),
        keep_recent=1,
        trigger_tokens=cap,
        max_summary_tokens=cap,
        token_counter=counter,
        max_input_tokens=100_000_000,
    )
    compacted = compactor.compact(history)
    assert str(compacted[0].content).startswith("[Recap] ")
    assert cap * 0.85 - 20 <= counter(compacted[0].content) <= cap
    assert str(compacted[0].content).removesuffix("\n[End of recap]").endswith("…")
    assert compactor.last_outcome is not None
    assert compactor.last_outcome.shortened


def test_a_recap_that_would_grow_the_history_is_refused(entry_point: EntryPoint) -> None:
    """A 900-token recap of two short messages is worse than the messages."""
    compactor = HistoryCompactor(Recorder("x" * 3_600), keep_recent=2, trigger_tokens=30)
    history = chat(4)
    assert compact(entry_point, compactor, history) is history
    assert reason(compactor) == "summary_grew"


def test_without_a_model_the_text_is_extracted(entry_point: EntryPoint) -> None:
    """Everything works without a key and without a network."""
    history = [
        Message(f"Order {number} ships on day {number}. " + "Well, you know. " * 30, "user")
        for number in range(20)
    ]
    compactor = HistoryCompactor(keep_recent=2, trigger_tokens=500, max_summary_tokens=200)
    compacted = compact(entry_point, compactor, history)
    assert len(compacted) == 3
    assert "Order 3 ships on day 3." in str(compacted[0].content)
    assert count_tokens(str(compacted[0].content)) <= 200


def test_a_summariser_given_for_one_call_is_used_for_it(entry_point: EntryPoint) -> None:
    """An application routes summaries through its own channel without a second compactor."""
    own, given = Recorder("OWN"), Recorder("GIVEN")
    compactor = HistoryCompactor(own, keep_recent=2, trigger_tokens=30)
    compacted = compact(entry_point, compactor, chat(4), given)
    assert compacted[0].content == "[Recap] GIVEN"
    assert (own.calls, given.calls) == (0, 1)


def test_own_prompts_are_used_word_for_word(entry_point: EntryPoint) -> None:
    """A prompt with braces in it is not a template, and never fails hours later."""
    summarize = Recorder("SUM1", "SUM2")
    prompts = PromptRegistry().with_overrides(
        {"compaction.merge": "Merge!", "compaction.recap_prefix": "Previously: "}
    )
    compactor = HistoryCompactor(
        summarize,
        keep_recent=2,
        trigger_tokens=20,
        summary_prompt='Return {"recap": ...}',
        prompts=prompts,
    )
    compact(entry_point, compactor, chat(4))
    compacted = compact(entry_point, compactor, chat(6))
    assert summarize.instructions == ['Return {"recap": ...}', "Merge!"]
    assert compacted[0].content == "Previously: SUM2"


def test_the_recap_may_be_said_by_the_user(entry_point: EntryPoint) -> None:
    """Some providers take no system message but the first."""
    compactor = HistoryCompactor(Recorder(), keep_recent=2, trigger_tokens=30, recap_role="user")
    assert compact(entry_point, compactor, chat(4))[0].role == "user"


def test_the_recap_stands_right_behind_the_leading_system_messages(entry_point: EntryPoint) -> None:
    """A system message in mid-list is refused by providers, so the recap never makes one."""
    pinned = Message("Never share the code.", "user", pinned=True)
    history = [Message("You help.", "system"), Message("Be brief.", "system"), *chat(3), pinned]
    history += chat(4, start=3)
    compactor = HistoryCompactor(Recorder(), keep_recent=2, trigger_tokens=30)
    compacted = compact(entry_point, compactor, history)
    assert texts(compacted) == [
        "You help",
        "Be brief",
        "[Recap] SUM",
        "Never share the code",
        "m005",
        "m006",
    ]


def test_messages_come_back_in_the_shape_they_came_in(entry_point: EntryPoint) -> None:
    """Dicts in, dicts out: the list goes straight to the provider's client."""
    history = [{"role": m.role, "content": m.content} for m in chat(6)]
    compactor = HistoryCompactor(Recorder(), keep_recent=2, trigger_tokens=30)
    compacted = compact(entry_point, compactor, history)
    assert compacted == [{"role": "system", "content": "[Recap] SUM"}, *history[4:]]
    assert compacted[1] is history[4]


SHAPES: dict[str, tuple[list[Any], list[Any]]] = {
    "chat completions": (
        [
            {"role": "user", "content": "Look it up, please. " * 4},
            {"role": "assistant", "content": None, "tool_calls": [OPENAI_CALL]},
            {"role": "tool", "tool_call_id": "c1", "content": "A door. " * 9},
        ],
        [{"role": "assistant", "content": "It is a door."}, {"role": "user", "content": "Thanks."}],
    ),
    "anthropic": (
        [
            {"role": "user", "content": [{"type": "text", "text": "Look it up, please. " * 4}]},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "c1", "name": "look", "input": {"at": "x"}}],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c1", "content": "A door. " * 9}
                ],
            },
        ],
        [{"role": "assistant", "content": "It is a door."}, {"role": "user", "content": "Thanks."}],
    ),
    "responses": (
        [
            {"type": "message", "role": "user", "content": "Look it up, please. " * 4},
            {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"at":"x"}'},
            {"type": "function_call_output", "call_id": "c1", "output": "A door. " * 9},
        ],
        [
            {"type": "message", "role": "assistant", "content": "It is a door."},
            {"type": "message", "role": "user", "content": "Thanks."},
        ],
    ),
}


@pytest.mark.parametrize("shape", sorted(SHAPES))
def test_every_providers_messages_are_folded_alike(shape: str, entry_point: EntryPoint) -> None:
    """The tool round is recognised, named and folded as one, whatever the wire looks like."""
    old, new = SHAPES[shape]
    summarize = Recorder("They looked.")
    compactor = HistoryCompactor(summarize, keep_recent=2, trigger_tokens=30)
    compacted = compact(entry_point, compactor, [*old, *new])
    assert compacted[1:] == new
    assert view(compacted[0]).text == "[Recap] They looked."
    assert compact(entry_point, compactor, compacted) is compacted
    assert summarize.texts == [
        f"user: {('Look it up, please. ' * 4).strip()}\n"
        'assistant: [called look with {"at":"x"}]\n'
        f"tool (look): {('A door. ' * 9).strip()}"
    ]


def test_the_outcome_says_what_was_done(entry_point: EntryPoint) -> None:
    """A report can show sizes, coverage and cost without counting again."""
    history = [Message("m0" + "." * 38, "user", id="first"), *chat(5, start=1)]
    compactor = HistoryCompactor(Recorder("SUM"), keep_recent=2, trigger_tokens=30)
    compacted = compact(entry_point, compactor, history)
    outcome = compactor.last_outcome
    assert outcome is not None
    assert outcome.reason == "compacted"
    assert outcome.tokens_before == 60
    assert outcome.tokens_after == sum(count_tokens(str(m.content)) for m in compacted) == 23
    assert outcome.saved == 37
    assert (outcome.covered, outcome.model_calls, outcome.effective) == (4, 1, True)
    assert (len(outcome.folded), outcome.folded[0]) == (4, "first")


def test_the_account_travels_with_the_messages(entry_point: EntryPoint) -> None:
    """Where calls overlap, the last outcome may be somebody else's."""
    compactor = HistoryCompactor(Recorder(), keep_recent=2, trigger_tokens=30)
    done = fold(entry_point, compactor, chat(6))
    assert done.outcome.reason == "compacted"
    assert len(done.messages) == 3
    untouched = chat(2)
    assert fold(entry_point, compactor, untouched).messages is untouched


def test_inputs_are_not_changed(entry_point: EntryPoint) -> None:
    """The caller's list is its store; compaction is what is sent."""
    history = [{"role": m.role, "content": m.content} for m in chat(8)]
    copy = [dict(message) for message in history]
    compact(entry_point, HistoryCompactor(Recorder(), keep_recent=2, trigger_tokens=30), history)
    assert history == copy


def test_a_configuration_makes_the_same_compactor(entry_point: EntryPoint) -> None:
    part = CompactionConfig(keep_recent=2, trigger_tokens=30, max_summary_tokens=50)
    for config in (part, MuntinConfig(compaction=part)):
        summarize = Recorder("word " * 200)
        compactor = HistoryCompactor.from_config(summarize, config, recap_role="user")
        compacted = compact(entry_point, compactor, chat(4, tokens=200))
        assert [count_tokens(str(m.content)) for m in compacted] == [50, 200, 200]


@pytest.mark.parametrize(
    "knobs",
    [
        {"keep_recent": 0},
        {"keep_recent": True},
        {"keep_recent": 2.0},
        {"trigger_tokens": -1},
        {"max_summary_tokens": 0},
        {"min_gain_tokens": 0},
        {"max_input_tokens": 10},
        {"max_conversations": 0},
        {"timeout": 0},
        {"recap_role": "tool"},
        {"llm": 7},
        {"llm": "gpt"},
    ],
)
def test_a_setting_out_of_range_is_refused_when_it_is_set(knobs: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        HistoryCompactor(**knobs)


def test_a_message_nobody_can_read_is_an_error_and_not_a_loss(entry_point: EntryPoint) -> None:
    compactor = HistoryCompactor(Recorder(), trigger_tokens=0)
    with pytest.raises(ConfigurationError, match="no shape"):
        compact(entry_point, compactor, [object()])


def test_a_tool_result_after_its_call_is_a_history_like_any_other(entry_point: EntryPoint) -> None:
    history = [said(0), call("a"), result("a"), said(1), *chat(4, start=2)]
    compactor = HistoryCompactor(Recorder(), keep_recent=2, trigger_tokens=30)
    assert texts(compact(entry_point, compactor, history)) == ["[Recap] SUM", "m004", "m005"]
