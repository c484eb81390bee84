"""Rows of batches: the same bytes from one process and many, and a bad row says why."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

from muntin import ContextBuilder, ContextConfig, estimate_tokens, fit_messages
from muntin.passages import Candidate, GivenSource
from muntin.scaling import (
    Progress,
    assemble_row,
    assemble_rows,
    fit_dataset,
    fit_row,
    fit_rows,
    map_records,
)

CONFIG = ContextConfig(max_tokens=600)


def chat(number: int) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": "Be brief."}]
    for turn in range(10):
        messages.append({"role": "user", "content": f"Where is order A-{number}{turn}? " * 4})
        messages.append({"role": "assistant", "content": f"Order A-{number}{turn} left. " * 9})
    return [*messages, {"role": "user", "content": "And the first one?"}]


def rows() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [{"id": n, "messages": chat(n)} for n in range(12)]
    found[3]["messages"] = json.dumps(chat(3))
    found[5]["messages"] = [{"role": "user", "content": "x" * 50_000}, {"role": "user"}]
    found[7]["messages"] = "{not json"
    found[9] = {"id": 9}
    return found


def test_two_processes_give_the_bytes_of_one() -> None:
    """A result that depends on how many machines there were cannot be reproduced."""
    one = list(fit_rows(rows(), budget=400, workers=1))
    two = list(fit_rows(iter(rows()), budget=400, workers=2))
    assert json.dumps(one) == json.dumps(two)
    assert [row["id"] for row in one] == list(range(12))
    direct = fit_messages(chat(0), budget=400)
    assert json.loads(one[0]["messages"]) == direct.messages
    assert one[0]["tokens"] == direct.report.used
    assert one[0]["report"] == direct.report.to_json()


def test_a_bad_row_says_why_and_keeps_its_columns() -> None:
    """Who runs a million conversations must find the three that failed, and why."""
    seen: list[Progress] = []
    found = list(fit_rows(rows(), budget=400, workers=2, on_progress=seen.append))
    failed = {row["id"]: row["error"] for row in found if row["error"]}
    assert set(failed) >= {7, 9}
    assert "JSONDecodeError" in failed[7]
    assert "has no 'messages'" in failed[9]
    assert all(row["messages"] == "" and row["tokens"] == 0 for row in found if row["error"])
    assert seen[-1].total == 12


def test_contexts_are_assembled_from_passages_of_every_form() -> None:
    passages: Any = ["The proxy listens on 8443.", {"content": "The archive moved.", "score": 0.4}]
    forms: list[Any] = [passages, {"rag": passages}, json.dumps(passages)]
    questions = [{"question": "Which port?", "passages": form} for form in forms]
    one = list(assemble_rows(questions, config=CONFIG, workers=1))
    assert json.dumps([row["text"] for row in one]) == json.dumps([one[0]["text"]] * 3)
    assert one == list(assemble_rows(questions, config=CONFIG, workers=2))
    sources = [
        GivenSource(
            "rag",
            [Candidate(passages[0], source="rag"), Candidate("The archive moved.", 0.4, "rag")],
        )
    ]
    assert one[0]["text"] == ContextBuilder(CONFIG).assemble("Which port?", sources=sources).text


@pytest.mark.parametrize("passages", [None, 5, [5], [{"score": 1}], "[", {"rag": None}])
def test_passages_that_cannot_be_read_are_an_error_of_their_row(passages: Any) -> None:
    row = assemble_row({"question": "q", "passages": passages}, config=CONFIG)
    assert row["error"]
    assert row["text"] == ""


def test_a_counter_can_be_named_and_is_used() -> None:
    row = {"messages": chat(1)}
    named = fit_row(row, budget=300, counter="gpt-4o")
    assert named["error"] == ""
    assert json.loads(named["report"])
    other = fit_row(row, budget=300, counter=estimate_tokens)
    assert named["tokens"] != fit_row(row, budget=300)["tokens"] or other["messages"]


def test_fitted_values_and_contexts_pickle() -> None:
    """Workers on other machines send their results back."""
    fitted = fit_messages(chat(1), budget=300)
    again = pickle.loads(pickle.dumps(fitted))
    assert again.messages == fitted.messages
    assert (again.changed, again.turn_open) == (fitted.changed, fitted.turn_open)
    assert again.report.to_json() == fitted.report.to_json()
    assert pickle.loads(pickle.dumps(again)).report.used == fitted.report.used
    (outcome,) = map_records(_fit, [chat(2)], workers=2)
    assert outcome.error is None
    assert outcome.value is not None
    assert outcome.value.messages == fit_messages(chat(2), budget=300).messages


def _fit(messages: list[Any]) -> Any:
    return fit_messages(messages, budget=300)


def test_what_is_no_dataset_is_refused() -> None:
    with pytest.raises(ValueError, match="dataset must be a ray"):
        fit_dataset([{"messages": []}])
