"""What is remembered of a message tells apart what would be written differently."""

from __future__ import annotations

import json
import time
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from muntin.runtime.comparing import common_start, remembered

plain = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.0, -0.0, 1.0]) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=6,
)


def _written(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _copy_of(value: Any) -> Any:
    return remembered(value)[0]


def _is_encodable(value: Any) -> bool:
    return remembered(value)[1]


@given(plain, plain)
def test_a_copy_equals_what_is_written_the_same(one: Any, other: Any) -> None:
    copied = _copy_of(one)
    assert copied == one
    assert (copied == other) == (_written(one) == _written(other))


def test_a_copy_does_not_change_with_what_it_was_made_from() -> None:
    message: dict[str, Any] = {"content": [{"text": "a"}], "n": 1}
    copied = _copy_of(message)
    message["content"][0]["text"] = "b"
    assert copied == {"content": [{"text": "a"}], "n": 1}


@given(st.text(), st.lists(st.text(max_size=2), max_size=3))
def test_what_cannot_be_written_is_found_however_deep(text: str, others: list[str]) -> None:
    assert _is_encodable({"a": [*others, {text: text}]})
    assert not _is_encodable({"a": [*others, {"b": f"{text}\ud800"}]})
    assert not _is_encodable({"a": [*others, {f"{text}\udfff": "b"}]})
    assert not _is_encodable({"a": f"{text}\ud800"})
    assert not _is_encodable({f"{text}\udfff": "b"})


@given(st.lists(st.integers(0, 1), max_size=40), st.lists(st.integers(0, 1), max_size=40))
def test_the_common_start_is_what_comparing_one_by_one_finds(
    one: list[int], other: list[int]
) -> None:
    for given_ in (other, one + other, one[:-1]):
        expected = 0
        for a, b in zip(one, given_, strict=False):
            if a != b:
                break
            expected += 1
        assert common_start(one, given_) == expected


def test_lists_that_differ_early_are_told_apart_without_reading_them() -> None:
    """Several long conversations are remembered, and most have only the opening in common."""
    one = list(range(1_000_000))
    other = [0, 1, 3, *one]
    begun = time.perf_counter()
    for _ in range(100):
        assert common_start(one, other) == 2
    assert time.perf_counter() - begun < 0.1
