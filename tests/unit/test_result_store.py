"""Originals: kept as they were, under ids that mean one text."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from muntin import ConfigurationError, StateError, ToolResultNotFound, ToolResultStore

if TYPE_CHECKING:
    from pathlib import Path

TEXTS = ["", "plain", "\r\n mixed\nends\r", "中文 👩‍👩‍👧", "half \ud83d", "\x00", "x" * 300_000]


@pytest.fixture(params=["memory", "directory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ToolResultStore:
    """Each of the built-in stores."""
    if request.param == "memory":
        return ToolResultStore.in_memory()
    if request.param == "directory":
        return ToolResultStore.directory(tmp_path / "new" / "results")
    return ToolResultStore.sqlite(tmp_path / "new" / "results.db")


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_a_text_comes_back_character_for_character(store: ToolResultStore, text: str) -> None:
    key = store.put(text)
    assert key is not None
    assert store.get(key) == text
    assert store.put(text) == key
    assert key in store


@pytest.mark.parametrize(
    "key", ["tr_" + "0" * 20, "", "../../etc/passwd", "tr_" + "0" * 19 + "/", "tr_%00", "x'; --"]
)
def test_an_unknown_id_is_said_and_reaches_no_path(store: ToolResultStore, key: str) -> None:
    """Ids come from a model: they must not name files or queries."""
    assert key not in store
    with pytest.raises(ToolResultNotFound, match="no tool result has the id"):
        store.get(key)


def test_the_same_text_has_the_same_id_everywhere(tmp_path: Path) -> None:
    stores = (
        ToolResultStore.in_memory(),
        ToolResultStore.directory(tmp_path / "a"),
        ToolResultStore.sqlite(tmp_path / "b.db"),
    )
    assert len({store.put("one text") for store in stores}) == 1


def test_memory_is_bounded_and_forgets_what_was_not_read_for_longest() -> None:
    store = ToolResultStore.in_memory(max_bytes=30)
    first, second = store.put("a" * 10) or "", store.put("b" * 10) or ""
    store.get(first)
    third = store.put("c" * 15) or ""
    assert (first in store, second in store, third in store) == (True, False, True)
    with pytest.raises(ToolResultNotFound, match=r"has made room for newer ones .*30 bytes"):
        store.get(second)
    assert store.put("d" * 31) is None
    with pytest.raises(ConfigurationError, match="max_bytes of at least 1"):
        ToolResultStore.in_memory(max_bytes=0)


def test_many_threads_store_the_same_and_different_texts(store: ToolResultStore) -> None:
    problems: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for turn in range(12):
                text = f"text {turn % 3 + number % 2}" * 500
                assert store.get(store.put(text) or "") == text
        except BaseException as error:  # noqa: BLE001 - shown by the test
            problems.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    for store in (
        ToolResultStore.directory(tmp_path / "file"),
        ToolResultStore.sqlite(tmp_path / "file" / "r.db"),
    ):
        with pytest.raises(StateError, match="cannot"):
            store.put("x")


@pytest.mark.parametrize("odd", [b"bytes", None, 5, ["text"]])
def test_only_text_is_stored(odd: Any) -> None:
    with pytest.raises(ConfigurationError, match=type(odd).__name__):
        ToolResultStore.in_memory().put(odd)
