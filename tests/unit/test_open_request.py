"""The open request: what is protected, in any language, at any size, with frameworks beside it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from muntin.conversations.approvals import asks_something, is_go_ahead
from muntin.conversations.fit import afit_messages, fit_messages
from muntin.conversations.protect import open_request, protected_set, share_of_open_request
from muntin.counting.message_counts import count_messages
from muntin.counting.tokens import count_tokens
from muntin.errors import ConfigurationError, ContextWindowExceeded
from muntin.messages import pairing_problems, register_framework_messages, units, view
from strategies import SHAPES

if TYPE_CHECKING:
    from conftest import EntryPoint

S = {"role": "system", "content": "You are an office agent."}


def _u(text: str, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": text, **more}


def _a(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def _rounds(count: int, words: int = 60) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for at in range(count):
        function = {"name": "read", "arguments": json.dumps({"path": f"src/part_{at}.py"})}
        messages += [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"r{at}", "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": f"r{at}", "content": f"file {at} " + "word " * words},
        ]
    return messages


def _open(messages: list[Any]) -> list[str]:
    views = [view(message) for message in messages]
    return [views[at].text for at in open_request(views, units(views))]


ASK, DONE = "Write a report on plant 7 and deliver it by 1 March.", "There are three: A-1 to A-3."
OLD = [_u("List the open invoices."), _a(DONE)]
PLAN = _a("I will read the files and then write. Shall I?")

GO_AHEADS = {
    "English": "yes, go ahead",
    "a digit": "1",
    "a letter": "b)",
    "an emoji": "👍",
    "German": "Ja, mach weiter",
    "French": "Oui, vas-y",
    "Spanish": "Sí, adelante por favor",
    "Portuguese": "Sim, pode continuar",
    "Italian": "Va bene, procedi",
    "Dutch": "Ja, ga door",
    "Polish": "Tak, kontynuuj",
    "Turkish": "Evet, devam et",
    "Russian": "Да, продолжай",
    "Greek": "Ναι, συνέχισε",
    "Arabic": "نعم، تابع",
    "Hebrew": "כן, תמשיך",
    "Hindi": "हाँ, आगे बढ़ो",
    "Chinese": "好的，请继续",
    "Japanese": "はい、お願いします",
    "Korean": "네, 계속 진행해 주세요",
    "Thai": "ตกลง ทำต่อเลย",
    "Vietnamese": "Vâng, tiếp tục đi",
    "Indonesian": "Ya, lanjutkan",
}


@pytest.mark.parametrize("text", GO_AHEADS.values(), ids=GO_AHEADS)
@pytest.mark.parametrize("answer", [PLAN, _a("I will read the files and then write the report.")])
def test_a_go_ahead_keeps_the_request_before_it_open(text: str, answer: dict[str, Any]) -> None:
    """An agent that sees "yes" and not what was agreed to does something else."""
    assert is_go_ahead(text)
    assert _open([*OLD, _u(ASK), answer, _u(text), *_rounds(3)]) == [ASK, text]


@pytest.mark.parametrize(
    "text",
    [
        "Delete the branch feature-7.",
        "Ja, aber nur für Werk 7",
        "Where is parcel P-1001?",
        "好的，但是只要七号工厂的报告",
        "yes?",
        "Translate the second chapter",
    ],
)
def test_a_message_with_content_is_no_go_ahead(text: str) -> None:
    """A new order taken for a "yes" would leave the finished one open."""
    assert not is_go_ahead(text)
    assert _open([*OLD, _u(ASK), _a("It is written."), _u(text), *_rounds(1)]) == [text]


QUESTIONS = {
    "a question": "Which plant do you mean?",
    "choices": "Which one?\n1. plant 7\n2. plant 8",
    "an offer": "I can write it in English or in German. Let me know which.",
    "Japanese without a mark": "どの工場ですか。",
    "Chinese": "您指的是哪个工厂吗？",
    "Arabic": "أي مصنع تقصد؟",
    "Greek": "Ποιο εργοστάσιο εννοείτε;".replace(";", "\u037e"),
    "Spanish": "¿Qué planta quiere?",
}


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_an_answer_to_the_assistants_question_belongs_to_the_request(question: str) -> None:
    """A reply like "The one in Lyon" means nothing without the order it completes."""
    assert asks_something(question)
    assert _open([*OLD, _u(ASK), _a(question), _u("The one in Lyon")]) == [ASK, "The one in Lyon"]


@pytest.mark.parametrize(
    "closing",
    [
        "It is done. Anything else?",
        "Erledigt. Kann ich sonst noch etwas tun?",
        "Voilà. Autre chose ?",
    ],
)
def test_a_polite_closing_leaves_nothing_open(closing: str) -> None:
    """Most assistants end so, and the whole chat would count as one open request."""
    assert _open([_u(ASK), _a(closing), _u("List the open invoices.")]) == [
        "List the open invoices."
    ]


def test_messages_in_a_row_belong_together() -> None:
    parts = ["I need the March report for plant 7", "in EUR, not USD", "and send it to Kim"]
    messages = [_u("hello"), _a("Hi."), *(_u(part) for part in parts), *_rounds(2)]
    assert _open(messages) == parts


def test_a_chat_of_answered_questions_has_only_its_newest_one_open() -> None:
    messages = [S]
    for at in range(9):
        messages += [_u(f"Where is parcel P-{at}?"), _a(f"Parcel P-{at} is in depot {at}.")]
    assert _open([*messages, _u("And parcel P-3?")]) == ["And parcel P-3?"]


def test_an_endless_chain_of_messages_keeps_only_the_newest() -> None:
    """A log written in the role of the user is no request, however long it is."""
    assert _open([_u(f"line {at}") for at in range(200)]) == ["line 199"]


FRAMEWORK = {
    "a name": _u("Remember the todo list.", name="reminder"),
    "a name with a prefix": _u("Remember the todo list.", name="todo-reminder"),
    "a tag": _u("<system-reminder>\nThe list is empty.\n</system-reminder>"),
    "two tags": _u("<system-reminder>a</system-reminder>\n<current-date>today</current-date>"),
}


@pytest.mark.parametrize("injected", FRAMEWORK.values(), ids=FRAMEWORK)
def test_a_message_of_a_framework_is_no_request(injected: dict[str, Any]) -> None:
    """A reminder that counts as the newest request pushes the real one out."""
    assert not view(injected).is_user_turn
    assert _open([*OLD, _u(ASK), *_rounds(2), injected]) == [ASK]


def test_a_request_with_a_reminder_in_it_is_a_request() -> None:
    text = f"<system-reminder>The list is empty.</system-reminder>\n{ASK}"
    assert view(_u(text)).is_user_turn
    assert view(_u(f"<b>{ASK}</b>")).is_user_turn
    assert view(_u(ASK, name="alice")).is_user_turn


def test_names_and_tags_can_be_registered() -> None:
    assert view(_u("09:00", name="wall-clock-7")).is_user_turn
    register_framework_messages(names=["Wall-Clock-7"], tags=["editor-view-7"])
    assert not view(_u("09:00", name="wall_clock_7")).is_user_turn
    assert not view(_u("<editor-view-7>a.py</editor-view-7>")).is_user_turn
    for odd in ("reminder", [""], [7]):
        with pytest.raises(ConfigurationError, match="names must"):
            register_framework_messages(names=odd)  # type: ignore[arg-type] # what a program may pass


@pytest.mark.parametrize("approval", ["yes, go ahead", None])
@pytest.mark.parametrize("words", [5, 60, 300])
@pytest.mark.parametrize("share", [0.3, 0.5, 0.7, 0.9])
def test_the_open_request_stays_word_for_word(
    share: float, words: int, approval: str | None, entry_point: EntryPoint
) -> None:
    """The finished request stayed and the running one went, at every size."""
    request = ASK + " word" * words
    approved = [PLAN, _u(approval)] if approval else []
    messages = [S, *OLD, _u(request), *approved, *_rounds(24)]
    budget = int(share * count_messages(messages))
    if count_messages([S, _u(request)]) > budget // 2:
        return
    fitted = entry_point(fit_messages, afit_messages, messages, budget=budget, counter=count_tokens)
    assert _u(request) in fitted.messages
    reasons = {one.index: one.reason for one in fitted.report.decisions}
    assert reasons[messages.index(_u(request))] == "protected"


@pytest.mark.parametrize("shape", SHAPES)
def test_the_open_request_stays_in_every_shape(shape: str, entry_point: EntryPoint) -> None:
    """A rule for one provider's dicts is no rule."""
    from strategies import _Writer  # pyright: ignore[reportPrivateUsage] - its own tests

    write = _Writer(shape)
    write.say("user", "List the open invoices.")
    write.say("assistant", DONE)
    write.say("user", ASK)
    write.say("assistant", "I will read the files first. Shall I?")
    write.say("user", "yes")
    for at in range(20):
        write.answer(write.call("", [f"part {at}"]), [f"file {at} " + "word " * 60])
    messages = write.messages
    for part in (3, 5):
        budget = count_messages(messages) // part
        fitted = entry_point(
            fit_messages, afit_messages, messages, budget=budget, counter=count_tokens
        )
        texts = [view(one).text for one in fitted.messages]
        assert ASK in texts
        assert "yes" in texts


def test_a_request_too_large_for_half_the_space_is_cut_at_both_ends_with_a_mark(
    entry_point: EntryPoint,
) -> None:
    """Dropped in silence, its beginning and its end are lost together."""
    paste = "BEGIN " + "word " * 2_000 + "END"
    messages = [S, _u(paste), PLAN, _u("yes"), *_rounds(20)]
    fitted = entry_point(fit_messages, afit_messages, messages, budget=1_500, counter=count_tokens)
    text = next(one["content"] for one in fitted.messages if "BEGIN" in str(one["content"]))
    assert text.startswith("BEGIN")
    assert text.endswith("END")
    assert "left out" in text
    assert count_tokens(text) > 500
    kinds = {one.index: one.kind for one in fitted.report.decisions}
    assert kinds[1] == "shortened"


def test_at_tiny_budgets_the_newest_message_is_what_stays(entry_point: EntryPoint) -> None:
    """The rest of the open request goes last of all, and what goes is in the report."""
    messages = [S, _u(ASK), PLAN, _u("yes, please"), *_rounds(6)]
    least = count_messages([S, _u("yes, please"), *messages[-2:]])
    for budget in range(least - 40, least + 200, 7):
        try:
            fitted = entry_point(
                fit_messages, afit_messages, messages, budget=budget, counter=count_tokens
            )
        except ContextWindowExceeded:
            assert budget < least
            continue
        assert _u("yes, please") in fitted.messages
        assert count_messages(fitted.messages) <= budget
        assert not pairing_problems([view(one) for one in fitted.messages])
        assert [one.index for one in fitted.report.decisions] == list(range(len(messages)))


def test_the_share_of_the_open_request_never_exceeds_half_the_space_beside_the_newest() -> None:
    messages = [
        _u("first " * 50),
        _a("Which?"),
        _u("second " * 50),
        _a("Which?"),
        _u("third " * 50),
    ]
    views = [view(message) for message in messages]
    protected = protected_set(views, units(views))
    sizes = {at: count_messages([messages[at]]) for at in (0, 2, 4)}
    for space in range(50, 1_000, 10):
        shares = share_of_open_request(protected, sizes, space, least=24)
        assert sum(shares.values()) <= max(space // 2 - sizes[4], 0)
        assert all(share <= sizes[at] for at, share in shares.items())
