"""What is read as a fact, and what names it."""

from __future__ import annotations

import pytest

from muntin.text.facts import Fact, facts_of, is_settling, kind_of, values_in


def labelled(text: str) -> list[str]:
    return [f"{fact.label}: {fact.value}" for fact in facts_of(text)]


@pytest.mark.parametrize(
    ("token", "kind"),
    [
        ("4XGCCM", "id"),
        ("#W3730488", "id"),
        ("mia.kim@example.com", "id"),
        ("/srv/out.csv", "id"),
        ("src/app/main.py", "id"),
        ("reproduce_issue.py", "id"),
        ("MAX_RETRIES", "id"),
        ("3.0.0rc4", "id"),
        ("2024-05-19", "date"),
        ("2024-05-08T10:31:36", "date"),
        ("$956", "number"),
        ("77.15", "number"),
        ("12%", "number"),
        ("total_seconds", "name"),
        ("self.query", "name"),
        ("HttpError", "name"),
        ("refund/reorder", "word"),
        ("budget", None),
        ("etc", None),
        ("A", None),
    ],
)
def test_a_value_is_what_a_reader_could_not_guess(token: str, kind: str | None) -> None:
    """Prose taken for values floods the digest; values taken for prose are lost."""
    assert kind_of(token) == kind


def test_json_keys_name_their_values() -> None:
    """A bare list of ids is of no use to the next call."""
    text = (
        '{"order_id": "#W1", "ok": true, "note": null, "items": [{"item_id": "77", "price": 3.5}]}'
    )
    assert labelled(text) == ["order_id: #W1", "ok: true", "item_id: 77", "price: 3.5"]


def test_a_vague_key_takes_the_name_above_it() -> None:
    """`id: 12C` says nothing, `seat id: 12C` does."""
    assert labelled('{"seat": {"id": "12C"}}') == ["seat id: 12C"]


def test_ids_used_as_keys_are_facts_of_their_own_record() -> None:
    """APIs return objects keyed by id; the key is the very thing the next call needs."""
    text = '{"methods": {"card_11": {"brand": "visa"}, "card_22": {"brand": "amex"}}}'
    found = list(facts_of(text))
    assert [fact.value for fact in found] == ["card_11", "visa", "card_22", "amex"]
    assert [fact.head for fact in found] == ["card_11", "card_11", "card_22", "card_22"]
    assert found[0].record != found[2].record


def test_json_with_text_after_it_is_read_as_both() -> None:
    """Models write a JSON object and go on in prose."""
    assert labelled('{"id": "A-17"}\nSee also ticket B-29.') == ["id: A-17", "ticket: B-29"]


@pytest.mark.parametrize("text", ['{"a": ', "[" * 100_000, "{]", '{"a": 1e999999}', "{'a': 'B-7'}"])
def test_broken_json_is_read_as_prose(text: str) -> None:
    """A cut result must never take the whole fit down."""
    list(facts_of(text))


def test_keys_of_broken_json_are_not_values() -> None:
    """Otherwise a cut object yields nothing but its keys."""
    assert labelled('{"order_to_modify": "#W77", ') == ["modify: #W77"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Your order #W37 of 2024-05-19", ["order: #W37", "order: 2024-05-19"]),
        ("user id is mia_kim_4397.", ["user: mia_kim_4397"]),
        ("Reservation ID: 4XGCCM", ["Reservation ID: 4XGCCM"]),
        ("path=/srv/a/b.txt", ["path: /srv/a/b.txt"]),
        ("port:8080 is open", ["port: 8080"]),
        ("訂單編號為W37，截止日期2024-05-19。", ["訂單編號為: W37", "截止日期: 2024-05-19"]),
        ("ราคา 4500 บาท", ["ราคา: 4500"]),
        ("the crate, at 4500", ["crate: 4500"]),
        ("日crate 4500", ["日crate: 4500"]),
        ("crate" + " " * 50 + "4500", [": 4500"]),
    ],
)
def test_the_nearest_words_name_a_value(text: str, expected: list[str]) -> None:
    """The next call must know which id is which."""
    found = labelled(text)
    assert found == expected


def test_a_long_json_string_is_read_like_prose() -> None:
    """Tool results carry logs inside JSON."""
    text = (
        '{"log": "started at 2024-05-19 and wrote the file /srv/out/report.csv with 17 rows in it"}'
    )
    assert labelled(text) == [
        "started: 2024-05-19",
        "file: /srv/out/report.csv",
        "csv: 17",
    ]


def test_blank_strings_are_no_facts() -> None:
    """A label with nothing behind it costs tokens and says nothing."""
    assert labelled('{"a": "\\r", "b": " ", "c": "", "d": null}') == []


def test_facts_are_values() -> None:
    """They are compared and hashed by content."""
    one = Fact(label="a", value="b", kind="id", record=1, head="")
    assert one == Fact(label="a", value="b", kind="id", record=1, head="")
    assert list(values_in('say "W37", (see /a/b).')) == ["say", "W37", "see", "/a/b"]


@pytest.mark.parametrize(
    ("sentence", "settles"),
    [
        ("We decided to ship on Monday.", True),
        ("Never push to main.", True),
        ("因此必须先备份。", True),
        ("ต้องส่งก่อนวันศุกร์", True),
        ("The weather is nice.", False),
        ("The problem WAS the cable.", True),
        ("The problem remains.", False),
        ("Whatever mustard costs.", False),
    ],
)
def test_decisions_and_rules_are_known_by_their_words(sentence: str, settles: object) -> None:
    """What was settled must survive, in more than one language."""
    assert is_settling(sentence) is settles


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("It costs $1,023 today.", ["$1,023"]),
        ("There are 1,234,567 rows.", ["1,234,567"]),
        ("It costs 1,023.50 now.", ["1,023.50"]),
        ("Take 12, 13 and 14.", ["12", "13", "14"]),
        ("See 77,1234 there.", ["77", "1234"]),
    ],
)
def test_groups_of_three_digits_are_one_number(text: str, values: list[str]) -> None:
    """Half of an amount is another amount."""
    assert [fact.value for fact in facts_of(text)] == values
