from __future__ import annotations

import copy
import json
import math
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
import tiktoken

from muntin.counting import counters
from muntin.counting import tiktoken_counter as exact
from muntin.counting.anchored import AnchoredCounter
from muntin.counting.counters import (
    CounterWarning,
    EstimateCounter,
    NamedCounter,
    counter_for,
    counter_name,
    is_exact,
)
from muntin.counting.estimate import estimate_tokens
from muntin.counting.tiktoken_counter import TiktokenCounter
from muntin.counting.tokens import count_tokens
from muntin.errors import ConfigurationError


@pytest.fixture(autouse=True)
def _nobody_warned(monkeypatch: pytest.MonkeyPatch) -> None:
    warned: set[str] = set()
    monkeypatch.setattr(counters, "_warned", warned)


@pytest.mark.parametrize(
    ("model", "encoding"),
    [
        ("gpt-4o", "o200k_base"),
        ("gpt-4o-mini-2024-07-18", "o200k_base"),
        ("gpt-5", "o200k_base"),
        ("o3-mini", "o200k_base"),
        ("gpt-4", "cl100k_base"),
        ("gpt-35-turbo", "cl100k_base"),
        ("text-embedding-3-small", "cl100k_base"),
        ("ft:gpt-4o:org::id", "o200k_base"),
        ("openai:gpt-4o", "o200k_base"),
        ("openai/gpt-4.1", "o200k_base"),
        ("azure/gpt-4-turbo", "cl100k_base"),
        ("o200k_base", "o200k_base"),
        ("cl100k_base", "cl100k_base"),
        (SimpleNamespace(model_name="gpt-4o"), "o200k_base"),
        (SimpleNamespace(model="gpt-4"), "cl100k_base"),
        (SimpleNamespace(metadata=SimpleNamespace(model_name="gpt-4o")), "o200k_base"),
        (SimpleNamespace(bound=SimpleNamespace(model_name="gpt-4o")), "o200k_base"),
    ],
)
def test_a_model_with_a_known_vocabulary_is_counted_exactly(model: object, encoding: str) -> None:
    """An estimate where the exact count was to be had wastes or overruns the window."""
    counter = counter_for(model)

    assert counter == TiktokenCounter(encoding)
    assert counter.exact


@pytest.mark.parametrize(
    "model",
    [
        "claude-sonnet-4-5",
        "gemini-2.5-pro",
        "anthropic:claude-opus-4",
        "my-own-model",
        "",
        SimpleNamespace(model="claude-3-haiku"),
        SimpleNamespace(invoke=print),
    ],
)
def test_an_unknown_model_is_estimated_with_one_warning(model: object) -> None:
    """A resolver that raises for a new model name breaks every user on its release day."""
    with pytest.warns(CounterWarning, match="estimated"):
        counter = counter_for(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = counter_for(model)

    assert counter == again
    assert (counter.name, counter.exact) == ("estimate:o200k_base+20%", False)
    text = "The parcel left the depot at nine. " * 20
    assert counter(text) == math.ceil(1.2 * estimate_tokens(text))


def test_no_model_is_estimated_in_silence() -> None:
    """Nothing was asked for, so nothing is missing."""
    assert counter_for(None) == EstimateCounter()


def test_a_model_whose_metadata_fails_is_estimated() -> None:
    """LlamaIndex raises from the property for a model it does not know."""

    class Failing:
        @property
        def metadata(self) -> object:
            raise ValueError("unknown model")

    with pytest.warns(CounterWarning, match="Failing"):
        assert not counter_for(Failing()).exact


def test_a_callable_keeps_its_name_and_claims_nothing() -> None:
    """A number never travels without its counter."""
    counter = counter_for(len)

    assert (counter.name, counter.exact, counter("abc")) == ("len", False, 3)


def test_a_callable_that_says_it_is_exact_is_believed() -> None:
    """Counters over the tokenizers of other makers."""

    class Mine:
        exact = True

        def __call__(self, text: str) -> int:
            return len(text)

    counter = counter_for(Mine())

    assert (counter.name, counter.exact) == ("Mine", True)


def test_a_counter_with_a_name_comes_back_itself() -> None:
    """Wrapping it again would hide its type from whoever asks."""
    counter = TiktokenCounter()

    assert counter_for(counter) is counter
    assert isinstance(counter, NamedCounter)


@pytest.mark.parametrize("wrong", [3.5, 4, b"gpt-4o", ["gpt-4o"], object(), TiktokenCounter])
def test_what_is_no_model_at_all_is_refused(wrong: object) -> None:
    """A window given in the model's place would otherwise count with an estimate."""
    with pytest.raises(ConfigurationError, match="counter_for takes"):
        counter_for(wrong)


def test_a_vocabulary_that_cannot_be_had_falls_back_with_one_warning(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    """Offline on a fresh machine everything has to work, and say that it estimates."""

    def offline(name: str) -> tiktoken.Encoding:
        raise OSError(f"no network for {name}")

    monkeypatch.setattr(exact, "_loaded", {})
    monkeypatch.setattr(exact, "_problems", {})
    monkeypatch.setattr(tiktoken, "get_encoding", offline)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    with pytest.warns(CounterWarning, match="TIKTOKEN_CACHE_DIR") as seen:
        found = [counter_for("gpt-4") for _ in range(2)]

    assert len(seen) == 1
    assert found == [EstimateCounter("cl100k_base")] * 2


def test_names_and_exactness_of_any_counter() -> None:
    """Reports state both beside every number."""
    assert counter_name(count_tokens) == "count_tokens"
    assert counter_name(TiktokenCounter()) == "tiktoken:o200k_base"
    assert counter_name(SimpleNamespace()) == "SimpleNamespace"
    assert [is_exact(TiktokenCounter()), is_exact(len)] == [True, False]


def test_the_first_pair_sets_the_ratio() -> None:
    """After one reported usage the local scale is the provider's."""
    counter = AnchoredCounter(count_tokens)
    assert counter.ratio == 1

    assert counter.observe(1_000, 1_300) == pytest.approx(1.3)
    assert counter("a" * 400) == 130
    assert counter("a") == 2, "rounded up, never under-counted"
    assert (counter.name, counter.exact) == ("anchored:count_tokens", False)


def test_the_same_pair_again_changes_nothing() -> None:
    """Pairs are on the base counter's scale: a ratio applied to itself would run away."""
    counter = AnchoredCounter(count_tokens)
    for _ in range(20):
        counter.observe(500, 1_000)

    assert counter.ratio == pytest.approx(2)


@pytest.mark.parametrize(("reported", "ratio"), [(10**9, 4.0), (1, 0.5)])
def test_the_ratio_is_clamped(reported: int, ratio: float) -> None:
    """One wrong report (cached tokens left out, another model's usage) must not empty a window."""
    counter = AnchoredCounter(count_tokens)

    assert counter.observe(1_000, reported) == ratio


def test_an_outlier_fades() -> None:
    """The ratio follows the provider, not one strange call."""
    counter = AnchoredCounter(count_tokens)
    counter.observe(1_000, 4_000)
    for _ in range(20):
        counter.observe(1_000, 1_200)

    assert counter.ratio == pytest.approx(1.2, abs=0.01)


@pytest.mark.parametrize(("estimated", "reported"), [(0, 5), (5, 0), (0, 0)])
def test_a_zero_teaches_nothing(estimated: int, reported: int) -> None:
    """Providers that do not report usage report zero."""
    assert AnchoredCounter().observe(estimated, reported) == 1


@pytest.mark.parametrize(("estimated", "reported"), [(-1, 5), (5, -1), (float("nan"), 5)])
def test_a_senseless_pair_is_refused(estimated: int, reported: int) -> None:
    """It comes from a subtraction that went wrong."""
    with pytest.raises(ConfigurationError, match="two token counts"):
        AnchoredCounter().observe(estimated, reported)


def test_models_do_not_share_a_ratio() -> None:
    """One model's scale applied to another cuts everything, or nothing."""
    first = AnchoredCounter(count_tokens, model="a")
    second = first.for_model("b")
    first.observe(100, 200)
    second.observe(100, 110)

    assert (first.ratio, second.ratio) == (2, 1.1)
    assert first.for_model("b").ratio == 1.1


def test_what_was_learned_can_be_saved() -> None:
    """A conversation resumed tomorrow should not overrun its first window again."""
    counter = AnchoredCounter(count_tokens, model="a")
    counter.observe(100, 150)
    saved = json.loads(json.dumps(counter.to_dict()))

    assert AnchoredCounter.from_dict(saved).ratio == 1.5
    assert pickle.loads(pickle.dumps(counter)).ratio == 1.5
    assert copy.deepcopy(counter).ratio == 1.5


@pytest.mark.parametrize(
    ("saved", "message"),
    [
        ({"counter": "len", "sums": {}}, "the scales differ"),
        ({"counter": "count_tokens"}, "not what to_dict gives"),
        ({"counter": "count_tokens", "sums": {"a": [1]}}, "not what to_dict gives"),
    ],
)
def test_what_was_learned_on_another_scale_is_refused(
    saved: dict[str, object], message: str
) -> None:
    """A ratio belongs to its base counter."""
    with pytest.raises(ConfigurationError, match=message):
        AnchoredCounter.from_dict(saved)


def test_threads_lose_no_observation() -> None:
    """Parallel branches of a graph report at the same time."""
    counter = AnchoredCounter(count_tokens)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(counter.observe, [100] * 200, [150] * 200))

    assert counter.ratio == pytest.approx(1.5)
