"""Entry points that share one list of parameters: the fields of a request."""

from __future__ import annotations

import inspect
from dataclasses import KW_ONLY, dataclass

import pytest

from muntin import afit_messages, fit_messages
from muntin.runtime import arguments_of
from muntin.tool_results import atruncate_tool_result, truncate_tool_result

PAIRS = [(fit_messages, afit_messages), (truncate_tool_result, atruncate_tool_result)]


@dataclass(frozen=True)
class Repeat:
    text: str
    _: KW_ONLY
    times: int = 2

    def __post_init__(self) -> None:
        if self.times < 0:
            raise TypeError("times is negative")


@arguments_of(Repeat)
def repeated(request: Repeat) -> str:
    """Repeat a text."""
    return request.text * request.times


@arguments_of(Repeat)
async def arepeated(request: Repeat) -> str:
    return request.text * request.times


def test_fields_are_taken_by_position_and_by_name() -> None:
    """A caller must not see that the parameters stand in a class."""
    assert repeated("a") == "aa"
    assert repeated(text="a", times=3) == "aaa"


async def test_an_async_function_stays_one() -> None:
    """Frameworks ask `iscoroutinefunction` whether they have to await."""
    assert inspect.iscoroutinefunction(arepeated)
    assert await arepeated("a", times=1) == "a"


def test_signature_and_help_show_the_fields() -> None:
    """Editors read the parameters and their defaults from the signature."""
    assert str(inspect.signature(repeated)) == "(text: 'str', *, times: 'int' = 2) -> 'str'"
    assert repeated.__doc__ == "Repeat a text."


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"text": "a", "tims": 1}, r"repeated\(\) got an unexpected keyword argument 'tims'"),
        ({}, r"repeated\(\) missing a required argument: 'text'"),
        ({"text": "a", "times": -1}, "times is negative"),
    ],
)
def test_errors_name_the_function_that_was_called(given: dict[str, object], message: str) -> None:
    """A misspelt keyword must not be reported for a class the caller never used."""
    with pytest.raises(TypeError, match=message):
        repeated(**given)  # pyright: ignore[reportArgumentType] - wrong on purpose


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair[0].__name__)
def test_sync_and_async_entry_points_take_the_same(pair: tuple[object, object]) -> None:
    """A parameter of one that the other lacks is a twin that was forgotten."""
    one, other = (inspect.signature(call).parameters for call in pair)  # pyright: ignore[reportArgumentType] - functions
    assert one == other
