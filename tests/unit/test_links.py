"""Names of passages, links between them, and what a report says about both."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from muntin import Candidate, ContextBuilder, ContextConfig, select
from muntin.passages.selecting.links import Links
from muntin.passages.selecting.names import names_of, phrase
from muntin.passages.sources import Gathered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muntin.passages.assembled import AssembledContext

FILM = Candidate("Doctor Strange is a 2016 film directed by Scott Derrickson.", 0.9, id="film")
NOISE = [
    Candidate(f"Report {n} lists harvest figures of region {n} in great detail.", 0.8, id=f"n{n}")
    for n in range(6)
]
PERSON = Candidate("Scott Derrickson (born 1966) lives in Los Angeles.", 0.2, id="person")


def assembled(
    question: str, found: Sequence[Candidate], budget: int, **options: float
) -> AssembledContext:
    builder = ContextBuilder(ContextConfig(min_chunk_tokens=1, **options))  # pyright: ignore[reportArgumentType] - options of any field
    return builder.assemble_block(
        question, Gathered(candidates={"rag": tuple(found)}), budget=budget
    )


def test_the_second_passage_of_a_two_step_answer_is_placed() -> None:
    """The passage with the answer shares no word with the question and was never placed."""
    found = [FILM, *NOISE, PERSON]
    question = "Where does the director of Doctor Strange live?"
    context = assembled(question, found, 60)
    assert {"film", "person"} <= {one.id for one in context.candidates}
    reasons = {one.id: (one.reason, one.nearest) for one in context.report.decisions}
    assert reasons["film"] == ("named_in_question", None)
    assert reasons["person"] == ("named_in_chosen", "film")


def test_links_and_coverage_can_be_switched_off() -> None:
    """Callers with a reranker they trust must be able to keep its order."""
    context = assembled(
        "Where does the director of Doctor Strange live?",
        [FILM, *NOISE, PERSON],
        60,
        link_weight=0.0,
        coverage_weight=0.0,
    )
    assert "person" not in {one.id for one in context.candidates}
    assert {one.reason for one in context.report.decisions if one.kind == "kept"} == {"placed"}


def test_chains_of_three_passages_are_followed() -> None:
    found = [
        Candidate("Doctor Strange is a film directed by Scott Derrickson.", 0.9, id="a"),
        *NOISE,
        Candidate("Scott Derrickson was born in Denver.", 0.4, id="b"),
        Candidate("Denver is the capital of Colorado.", 0.4, id="c"),
    ]
    context = assembled("In which state was the director of Doctor Strange born?", found, 70)
    assert [one.id for one in context.candidates][:3] == ["a", "b", "c"]


def test_a_passage_that_mentions_a_chosen_one_is_raised() -> None:
    found = [
        Candidate("Scott Derrickson is a director.", 0.9, id="person"),
        *(Candidate(one.content, 0.3, id=one.id) for one in NOISE),
        Candidate("The film was directed by Scott Derrickson.", 0.25, id="film"),
    ]
    context = assembled("Who is it?", found, 30)
    reasons = {one.id: (one.reason, one.nearest) for one in context.report.decisions}
    assert reasons["film"] == ("names_chosen", "person")


def test_words_of_the_question_that_nothing_covers_raise_a_passage() -> None:
    found = [
        Candidate("travel expenses: hotel rates by city and by season", 1.0, id="a"),
        Candidate("travel expenses: hotel rates by country", 0.9, id="b"),
        Candidate("receipts are kept for ten years", 0.7, id="c"),
    ]
    context = assembled("how long are receipts for hotel expenses kept?", found, 35)
    assert [one.id for one in context.candidates] == ["a", "c"]
    decided = {one.id: one.reason for one in context.report.decisions}
    assert decided["c"] == "covers_question"


@pytest.mark.parametrize(
    ("content", "metadata", "name"),
    [
        ("Ada Lovelace\nShe wrote the first program.", {}, "Ada Lovelace"),
        ("# Ada Lovelace (1815-1852)\n\nShe wrote it.", {}, "Ada Lovelace"),
        ("Ada Lovelace was a mathematician.", {}, "Ada Lovelace"),
        ("The Analytical Engine (1837) was a design.", {}, "Analytical Engine"),
        ("no title here", {"title": "Travel policy"}, "travel policies"),
        ("no title here", {"source": "s3://bucket/docs/travel_policy.md"}, "Travel Policy"),
        ("no title here", {"Header 2": "Per diem"}, "per diem"),
        ("Handbook | Travel - Meals abroad\nCapped at 80.", {}, "meals abroad"),
        ("import re\n\ndef parse_header(line):\n    return line", {}, "parse_header"),
        ("x = 1\nclass WireReader(Base):\n    pass", {}, "WireReader"),
        ('{"order_id": "W2378156", "status": "sent"}', {}, "W2378156"),
        ("Der Blaue Reiter war eine Gruppe von Malern.", {}, "Blauen Reiters"),
        ("李白是唐代的詩人。", {}, "李白"),
        ("Москва это столица России.", {}, "Москве"),
    ],
)
def test_a_passage_is_found_by_what_it_is_called(
    content: str, metadata: dict[str, str], name: str
) -> None:
    """Titles, headings, files, definitions, ids and subjects, in any inflection and script."""
    asked = phrase(f"what about {name}, please?" if name.isascii() else f"{name} ?")
    assert any(found in asked for found in names_of(Candidate(content, metadata=metadata)))


@pytest.mark.parametrize(
    "content",
    [
        "Introduction\nThis is the first chapter.",
        "README\n\nInstall it.",
        "Home\nWelcome.",
        "It is a film.",
        "They were late.",
        "the committee is small",
        "2016\nMany things happened.",
        "",
        "\n\n",
    ],
)
def test_generic_titles_and_pronouns_are_not_names(content: str) -> None:
    """Every "Introduction" would be linked with every text that has an introduction."""
    assert names_of(Candidate(content)) == ()


def test_a_name_that_most_texts_mention_weighs_less_than_a_rare_one() -> None:
    """A common name points to no passage: "France" in every text would raise one of them."""
    common = [Candidate(f"{n} towns of France", id=str(n)) for n in range(40)]
    pool = [*common, Candidate("France is a country."), Candidate("Vosges is a range.")]
    links = Links(pool, "the Vosges of France", link_weight=0.6, coverage_weight=0.0)
    assert links.bonus[-1] == pytest.approx(0.6)
    assert 0 < links.bonus[-2] < 0.2


def test_select_without_weights_ignores_the_question() -> None:
    found = [FILM, *NOISE, PERSON]
    assert select(found, question="Scott Derrickson").indices == select(found).indices


def test_the_reference_configuration_has_no_bonus() -> None:
    """`reference()` promises the formula as published."""
    config = ContextConfig.reference()
    assert (config.link_weight, config.coverage_weight) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("question", "first"), [("what is the fee for a late return?", 0), ("class 17, what fee?", 17)]
)
def test_templated_records_keep_their_order_of_relevance(question: str, first: int) -> None:
    """Twenty-four rules of one form share nine words of ten, and none repeats another."""
    rules = [
        Candidate(
            f"Rule {n}: the fee for a late return of class {n} is {n * 3} euros a day.",
            1 - n / 50,
            id=str(n),
        )
        for n in range(24)
    ]
    placed = [int(one.id) for one in assembled(question, rules, 240).candidates]
    assert placed[0] == first
    assert len(placed) >= 10
    assert placed[1:] == sorted(placed[1:])
