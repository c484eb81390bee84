"""Exact token counts by tiktoken: lazily loaded, offline where it can be, safe on any text.

Text is counted as `encode_ordinary` encodes it, so text that spells a special token is plain text.
Long texts are counted in windows that end where every tiktoken pattern ends a piece anyway (before
a space, after a line break, or where a sign follows a letter or digit), so the count stays exact
while memory stays constant. Only an unbroken run longer than a window is cut inside: that bounds
the time such runs cost tiktoken, and the count is then off by about a token per window.
It does not know models: `counter_for` does.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from muntin.errors import ConfigurationError, TokenizerUnavailable
from muntin.runtime import in_thread
from muntin.text import clean_text

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    import tiktoken

__all__ = ("TiktokenCounter",)

WINDOW: Final = 16_384
"""Characters encoded together; also the longest unbroken run that is counted exactly."""

_LAST_BORDERS = 512
"""Characters at the end of a window searched for a border before the whole window is."""

_BORDER = re.compile(
    r"(?<=[^\W_])(?=[\s\x00-&(-/:-@\[-`{-\xa9\xab-\xb1\xbb\xbf\u2010-\u206f\u2190-\u245f"
    r"\u2500-\u2775\u2794-\u2bff\u3001-\u3003\u3008-\u3020\uff01-\uff0f\uff1a-\uff20])"
    r"|(?<=\S)(?=[ \t\x0b\x0c\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000])"
    r"|(?<=\S\n)(?=[^\s/])|(?<=[\r\n])(?= \S)|(?<=\S\s)(?= \S)"
)
"""Between a letter or digit and a sign but the apostrophe, as in "it's"; before white space that
breaks no line; after the line break before a line with text; before the last space of
white space that a word follows. Marks, and letters younger than this Python, count as neither."""

_LOAD_SECONDS = 20.0
"""How long a download may take before the vocabulary counts as unavailable."""

_CACHE_VARIABLES = ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR")
_URL = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"

_lock = threading.Lock()
_loaded: dict[str, tiktoken.Encoding] = {}
_problems: dict[tuple[str, str | None], str] = {}
"""Why an encoding could not be loaded, by its name and the place that was named for it."""


class TiktokenCounter:
    """Counts tokens exactly, as tiktoken encodes ordinary text.

    The vocabulary is loaded at the first count and shared by all counters of the encoding. Where
    llama-index-core is installed its copy is used, unless `TIKTOKEN_CACHE_DIR` names another
    place; otherwise tiktoken downloads it once. Counters are safe to share between threads, and
    can be pickled and copied.

    ```python
    from muntin import TiktokenCounter

    counter = TiktokenCounter("o200k_base")
    print(counter("hello world"), counter("<|endoftext|>"), counter.exact)
    #> 2 7 True
    ```
    """

    __slots__ = ("encoding",)

    encoding: str
    """Name of the encoding, as tiktoken knows it."""

    def __init__(self, encoding: str = "o200k_base") -> None:
        """Name an encoding; nothing is loaded yet.

        Raises:
            ConfigurationError: tiktoken knows no encoding of this name.
        """
        import tiktoken

        known = tiktoken.list_encoding_names()
        if encoding not in known:
            raise ConfigurationError(
                f"unknown encoding {encoding!r}: tiktoken {tiktoken.__version__} has "
                f"{', '.join(sorted(known))}; for a model's name use counter_for"
            )
        self.encoding = encoding

    @property
    def name(self) -> str:
        """Name of the counter, for reports."""
        return f"tiktoken:{self.encoding}"

    @property
    def exact(self) -> bool:
        """Always True: this is the count the encoding gives."""
        return True

    def __call__(self, text: str | None) -> int:
        """Count the tokens of a text.

        Args:
            text: Any text; None and the empty text are 0. Lone surrogates count as U+FFFD.

        Raises:
            TokenizerUnavailable: The vocabulary could not be loaded; it is tried only once.
        """
        if not text:
            return 0
        encode = _encoding(self.encoding).encode_ordinary
        text = clean_text(text)
        if len(text) <= WINDOW:
            return len(encode(text))
        return sum(len(encode(window)) for window in _windows(text))

    def load(self) -> None:
        """Load the vocabulary now, so that the first count is quick or the failure early.

        Raises:
            TokenizerUnavailable: The vocabulary could not be loaded.
        """
        _encoding(self.encoding)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TiktokenCounter) and other.encoding == self.encoding

    def __hash__(self) -> int:
        return hash((TiktokenCounter, self.encoding))

    def __reduce__(self) -> tuple[object, ...]:
        return (TiktokenCounter, (self.encoding,))

    def __repr__(self) -> str:
        return f"TiktokenCounter({self.encoding!r})"


def _windows(text: str) -> Iterator[str]:
    """Split a long text where no pattern matches across, or inside a run longer than a window."""
    start = 0
    while len(text) - start > WINDOW:
        end = start + WINDOW
        border = _last_border(text, end - _LAST_BORDERS, end) or _last_border(text, start + 1, end)
        yield text[start : border or end]
        start = border or end
    yield text[start:]


def _last_border(text: str, start: int, end: int) -> int:
    """Find the last border between two positions; 0 when there is none."""
    last = 0
    for match in _BORDER.finditer(text, start, end + 1):
        if match.start() <= end:
            last = match.start()
    return last


def _encoding(name: str) -> tiktoken.Encoding:
    """Load an encoding, once; a failure is remembered until another place is named for it."""
    if name in _loaded:
        return _loaded[name]
    with _lock:
        if name not in _loaded:
            place = next((os.environ[key] for key in _CACHE_VARIABLES if key in os.environ), None)
            if (name, place) in _problems:
                raise TokenizerUnavailable(name, _problems[name, place])
            try:
                _loaded[name] = _load(name, place)
            except Exception as error:
                problem = _problem(error)
                _problems[name, place] = problem
                raise TokenizerUnavailable(name, problem) from error
        return _loaded[name]


def _load(name: str, place: str | None) -> tiktoken.Encoding:
    """Load an encoding from the set directory, else from the bundle, else as tiktoken does."""
    import tiktoken

    bundle = None if place is not None else _bundled_vocabulary(name)
    if bundle is None:
        return _load_within(name, _LOAD_SECONDS)
    with _cache_directory(bundle):
        return tiktoken.get_encoding(name)


def _load_within(name: str, seconds: float) -> tiktoken.Encoding:
    """Let tiktoken load with a timeout in seconds; by itself it waits for the network forever."""
    import tiktoken

    loading = in_thread(lambda: tiktoken.get_encoding(name), name=f"load {name}")
    try:
        return loading.result(seconds)
    except TimeoutError:
        if loading.done():  # it is the network's own
            raise
        raise TimeoutError(f"no answer within {seconds:.0f} s") from None


def _problem(error: Exception) -> str:
    """Return briefly why a vocabulary could not be loaded.

    Its errors carry the request, and the response where there was one.
    """
    url = getattr(getattr(error, "request", None), "url", None)
    if not isinstance(url, str):
        return f"{type(error).__name__}: {str(error)[:200]}"
    host = url.split("/")[2] if url.count("/") > 2 else url
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status is not None:
        return f"{host} answered {status}"
    return f"{host} cannot be reached ({type(error).__name__})"


def _bundled_vocabulary(name: str) -> Path | None:
    """Find the vocabulary that llama-index-core carries, without importing it."""
    spec = importlib.util.find_spec("llama_index")
    file = hashlib.sha1(_URL.format(_vocabulary_of(name)).encode(), usedforsecurity=False)
    for root in (spec and spec.submodule_search_locations) or ():
        folder = Path(root, "core", "_static", "tiktoken_cache")
        if (folder / file.hexdigest()).is_file():
            return folder
    return None


def _vocabulary_of(name: str) -> str:
    """Name the file an encoding is read from: o200k_harmony only adds special tokens."""
    return {"o200k_harmony": "o200k_base", "p50k_edit": "p50k_base"}.get(name, name)


@contextmanager
def _cache_directory(folder: Path) -> Generator[None]:
    """Set tiktoken's cache directory while it loads; tiktoken has no argument for it."""
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
    try:
        yield
    finally:
        del os.environ["TIKTOKEN_CACHE_DIR"]
