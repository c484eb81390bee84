# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# Functions given to LangChain's runnables have parameters that only the chain knows.
"""A model is never asked with a context that is empty without a word."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("langchain_core")

from langchain_muntin import ContextAssembler
from muntin import ContextWindowExceeded

if TYPE_CHECKING:
    from conftest import EntryPoint


def _by_words(text: str) -> int:
    return 3 * len(text.split())


def assembled(entry_point: EntryPoint, passages: Any, **more: Any) -> Any:
    """Assemble in a budget that leaves next to nothing for passages."""
    made = ContextAssembler(
        budget=60, counter=_by_words, sources={"rag": lambda q: passages},
        **more,
    )  # fmt: skip
    return entry_point(made.invoke, made.ainvoke, "a b c d e f g h i j k l m n?")


def test_passages_that_do_not_fit_are_said_to_be_left_out(entry_point: EntryPoint) -> None:
    """The answer came from the model's memory, and nobody knew."""
    with pytest.warns(UserWarning, match="no passage fits"):
        prompt = assembled(entry_point, ["word"])

    assert prompt.documents == []
    assert any("no passage fits" in note for note in prompt.report.notes)
    assert "<" in prompt._repr_html_()  # pyright: ignore[reportPrivateUsage] - the protocol of notebooks
    with pytest.raises(ContextWindowExceeded, match="shortest passage"):
        assembled(entry_point, ["word"], strict=True)


def test_a_search_that_found_nothing_is_no_warning(entry_point: EntryPoint) -> None:
    """A warning at every empty search would be switched off."""
    assert assembled(entry_point, []).documents == []
    assert assembled(entry_point, ["  "], strict=True).documents == []
