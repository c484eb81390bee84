from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
import tiktoken

from muntin.counting import tiktoken_counter as exact
from muntin.counting.tiktoken_counter import WINDOW, TiktokenCounter
from muntin.errors import ConfigurationError, TokenizerUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ENCODINGS = ("o200k_base", "cl100k_base")


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("text", ["<|endoftext|>", "a <|endoftext|> <|im_start|> b"])
def test_the_text_of_a_special_token_is_plain_text(text: str, encoding: str) -> None:
    """Text that spells a special token raises in other counters and kills the run."""
    plain = tiktoken.get_encoding(encoding).encode_ordinary(text)

    assert TiktokenCounter(encoding)(text) == len(plain) > 1


def test_counts_are_not_additive() -> None:
    """The reason why the joined text is counted in the end."""
    counter = TiktokenCounter("o200k_base")

    assert (counter("  "), counter("123"), counter("  123")) == (1, 1, 3)


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize(
    "unit",
    [
        "The quick brown fox's tail doesn't move.\n\n  And 1234567 (more) → so.\n",
        '{"key": "value", "n": [1, 2.5e-7, null]},',
        "def f(x):\n        return x**2  # ok\r\n",
        "中文，混合 text。",
        "\x1f end",
        "\x80 \u0301 —",
        "\x85 end",
        "人人生而自由。在尊嚴上→平等！",
        "x'll y's 'quoted' don't",
        "👩‍👩‍👧 ok\t\t\tgo",
        "कि\n",
        "cafe\u0301\n\n end",
        "\U0001342f\n end",  # a letter younger than the Unicode of Python 3.11
        "\u20ac\n/\t end",
    ],
)
def test_a_long_text_counts_as_if_it_were_encoded_whole(unit: str, encoding: str) -> None:
    """Windows must not change the count of a text that has borders."""
    text = unit * (3 * WINDOW // len(unit))
    whole = tiktoken.get_encoding(encoding).encode_ordinary(text)

    assert TiktokenCounter(encoding)(text) == len(whole)


@pytest.mark.parametrize(
    "make",
    [
        lambda: " " * 1_000_000 + "x",
        lambda: "a" * 400_000,
        lambda: "^" * 1_000_000,
        lambda: "_" * 50_000,
        lambda: "\n" * 500_000,
        lambda: "\u0301" * 200_000,
        lambda: "中" * 500_000,
    ],
)
def test_a_long_run_neither_panics_nor_hangs(make: Callable[[], str]) -> None:
    """A million blanks and a letter make tiktoken panic, past every `except Exception`."""
    counter, text = TiktokenCounter(), make()
    counter.load()
    begun = time.process_time()

    assert 0 < counter(text) <= len(text.encode())
    assert time.process_time() - begun < 5


@pytest.mark.slow
@pytest.mark.parametrize(
    "make", [lambda: "a" * 2_000_000, lambda: "ab c," * 2_000_000, lambda: "x;" * 5_000_000]
)
def test_ten_megabytes_in_one_line_are_counted(make: Callable[[], str]) -> None:
    """Tool results of this size exist."""
    begun = time.process_time()

    assert TiktokenCounter()(make()) > 0
    assert time.process_time() - begun < 30


@pytest.mark.parametrize("text", ["\ud800", "ok \udfff tail", "\ud83d\ude00", "a\ud800" * 20_000])
def test_lone_surrogates_are_counted(text: str) -> None:
    """They are legal in a str, and no encoder takes them."""
    assert TiktokenCounter()(text) == TiktokenCounter()(
        text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    )


@pytest.mark.parametrize("text", ["", None])
def test_nothing_is_nothing(text: str | None) -> None:
    """And it needs no vocabulary."""
    assert TiktokenCounter()(text) == 0


def test_an_unknown_encoding_is_refused_with_those_there_are() -> None:
    """The most common mistake is a model's name."""
    with pytest.raises(ConfigurationError, match=r"'gpt-4o'.*o200k_base.*counter_for"):
        TiktokenCounter("gpt-4o")


def test_a_counter_survives_pickling_and_copying() -> None:
    """Configurations that hold one are sent to other processes."""
    counter = TiktokenCounter("cl100k_base")
    for twin in (pickle.loads(pickle.dumps(counter)), copy.deepcopy(counter)):
        assert twin == counter
        assert hash(twin) == hash(counter)
        assert twin("hello world") == 2
    assert repr(counter) == "TiktokenCounter('cl100k_base')"
    assert (counter.name, counter.exact) == ("tiktoken:cl100k_base", True)


@pytest.fixture
def _nothing_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "_loaded", {})
    monkeypatch.setattr(exact, "_problems", {})


@pytest.mark.usefixtures("_nothing_loaded")
def test_a_failed_load_is_remembered_until_another_place_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Offline, a retry at every message adds minutes to every turn."""
    tries: list[str] = []

    def offline(name: str) -> tiktoken.Encoding:
        tries.append(name)
        raise OSError("the network is down")

    monkeypatch.setattr(tiktoken, "get_encoding", offline)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    for _ in range(3):
        with pytest.raises(TokenizerUnavailable, match=r"network is down.*TIKTOKEN_CACHE_DIR"):
            TiktokenCounter()("text")
    assert tries == ["o200k_base"]

    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "other"))
    with pytest.raises(TokenizerUnavailable):
        TiktokenCounter()("text")
    assert len(tries) == 2


class _RefusedError(OSError):
    """What requests raises: it carries the request, and the response where there was one."""

    def __init__(self, url: str, status: int | None = None) -> None:
        super().__init__("Max retries exceeded with url: " * 9)
        self.request = SimpleNamespace(url=url)
        self.response = None if status is None else SimpleNamespace(status_code=status)


@pytest.mark.usefixtures("_nothing_loaded")
@pytest.mark.parametrize(
    ("status", "said"),
    [(None, "vocabularies.example cannot be reached (_RefusedError)"),
     (403, "vocabularies.example answered 403")],
    ids=["no network", "a proxy that refuses"],
)  # fmt: skip
def test_a_failed_download_is_told_in_a_few_words(
    status: int | None, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It is the first line a user without network reads; requests would fill the screen."""

    def offline(name: str) -> tiktoken.Encoding:
        raise _RefusedError(f"https://vocabularies.example/{name}.tiktoken", status)

    monkeypatch.setattr(tiktoken, "get_encoding", offline)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    with pytest.raises(TokenizerUnavailable) as caught:
        TiktokenCounter()("text")
    assert str(caught.value).startswith(f"no vocabulary for 'o200k_base': {said}. Set TIKTOKEN")


@pytest.mark.usefixtures("_nothing_loaded")
def test_a_hanging_download_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Tiktoken waits for the network without end."""
    release = threading.Event()

    def hanging(name: str) -> tiktoken.Encoding:
        release.wait(20)
        raise OSError(name)

    monkeypatch.setattr(tiktoken, "get_encoding", hanging)
    monkeypatch.setattr(exact, "_LOAD_SECONDS", 0.05)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    with pytest.raises(TokenizerUnavailable, match="no answer within"):
        TiktokenCounter()("text")
    release.set()


@pytest.mark.usefixtures("_nothing_loaded")
def test_threads_share_one_load(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight workers that start together must not read the vocabulary eight times."""
    load = tiktoken.get_encoding
    tries: list[str] = []

    def slow(name: str) -> tiktoken.Encoding:
        tries.append(name)
        time.sleep(0.05)
        return load(name)

    monkeypatch.setattr(tiktoken, "get_encoding", slow)
    with ThreadPoolExecutor(8) as pool:
        counts = list(pool.map(TiktokenCounter(), ["hello world"] * 8))

    assert counts == [2] * 8
    assert len(tries) == 1


def test_the_bundled_vocabulary_is_found_without_importing_its_package() -> None:
    """Importing llama-index costs seconds, and a changed environment would leak to children."""
    pytest.importorskip("llama_index.core")
    code = (
        "import os, sys\n"
        "from muntin.counting.tiktoken_counter import TiktokenCounter\n"
        "print(TiktokenCounter()('hello world'), 'llama_index' in sys.modules,"
        " 'TIKTOKEN_CACHE_DIR' in os.environ)"
    )
    places = ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR")
    clean = {key: value for key, value in os.environ.items() if key not in places}
    done = subprocess.run(
        [sys.executable, "-c", code], env=clean, capture_output=True, text=True, check=True
    )

    assert done.stdout.split() == ["2", "False", "False"]
