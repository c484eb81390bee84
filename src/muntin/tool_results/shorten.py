"""Shorten a tool result to a number of tokens, with a marker that names the stored original.

Deterministic first: the text is parted by its kind (`text_excerpts`, `json_excerpts`), and the
largest excerpt that fits is found by bisection, *counted as it will be sent*, marker included. JSON
stays JSON, so its marker is the first key of an object or the first element of an array; any other
text carries it in the first line. The original goes to a `ToolResultStore` under an id the marker
names.

A summariser is optional; what it reads is bounded, and whatever it does wrong, the deterministic
text takes its place. It is not decided here which results of a conversation are shortened.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

from muntin.counting import checked_counter, checked_tokens, truncate_to_tokens
from muntin.errors import ContextWindowExceeded
from muntin.prompts import DEFAULT_PROMPTS
from muntin.runtime import (
    SummaryRequest,
    arguments_of,
    arun,
    bare_summary,
    fault_of,
    longest_text,
    run,
    size_of,
    window_of,
)
from muntin.text import clean_text
from muntin.tool_results.json_excerpts import JsonExcerpt, to_json
from muntin.tool_results.markers import (
    Original,
    bare_json,
    marked_json,
    marked_text,
    marker,
    original_of,
)
from muntin.tool_results.text_excerpts import LinesExcerpt, Marks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from muntin.counting import AnyCounter, TokenCounter
    from muntin.prompts import PromptRegistry
    from muntin.runtime import AnySummarizer, Flow
    from muntin.tool_results.store import ToolResultStore

__all__ = (
    "ShortenedResult",
    "atruncate_tool_result",
    "shorten_tool_result",
    "truncate_batch",
    "truncate_tool_result",
)

_SUMMARY_INPUT = 8
"""Times `max_tokens` that a summariser gets to read, as far as its window allows."""
_JUDGED_CHARACTERS = 1_000_000
"""Characters of a result up to which a summary is compared with all of it."""
_UNKNOWN_WINDOW = 16_000
_WINDOW_SHARE = 0.9
"""Share of a window that a request takes: counters differ, and messages are framed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortenedResult:
    """What became of one tool result."""

    text: str
    """What to send. The given object itself where nothing had to change."""
    tokens: int
    """Tokens of `text`, marker included."""
    original_tokens: int
    """Tokens of the original; of the first original where it had been shortened before."""
    result_id: str | None = None
    """Where the original is stored; None where it is not, or where nothing was shortened."""
    problem: str = ""
    """Why a summary that was asked for was not used; empty where all went well."""

    @property
    def shortened(self) -> bool:
        """Whether `text` is less than the original."""
        return self.tokens < self.original_tokens


@dataclass(frozen=True, eq=False)
class ShortenRequest:
    """The arguments of `truncate_tool_result`, which describes them."""

    result: str
    max_tokens: int = 1000
    _: KW_ONLY
    counter: AnyCounter = None
    model: object = None
    store: ToolResultStore | None = None
    summarizer: AnySummarizer | None = None
    name: str = ""
    prompts: PromptRegistry | None = None

    def __post_init__(self) -> None:
        _ = self.limit, self.count

    @cached_property
    def limit(self) -> int:
        """Tokens the text may take."""
        return checked_tokens(self.max_tokens, "max_tokens")

    @cached_property
    def count(self) -> TokenCounter:
        """The counter of texts."""
        return checked_counter(self.counter, model=self.model)

    @property
    def words(self) -> PromptRegistry:
        """The words of markers and instructions."""
        return self.prompts or DEFAULT_PROMPTS


@arguments_of(ShortenRequest)
def truncate_tool_result(  # noqa: D417 - the fields of the request are its arguments
    request: ShortenRequest,
) -> str:
    r"""Shorten a tool result to a number of tokens, marker included.

    What fits comes back as the same object. A result that was shortened before keeps the id and
    size of its original and is not stored again.

    Args:
        result: What the tool returned. Lone surrogates are replaced.
        max_tokens: Tokens the text may take by `counter`, 1 or more.
        counter: Counts tokens: a function of a text, a model, or the name of a model or an
            encoding. None takes `model`'s counter, else `count_tokens`.
        model: A model or its name, in place of `counter`.
        store: Keeps the original, to be read with `read_tool_result`. None keeps it nowhere, and
            the marker reports it.
        summarizer: Anything `flow.summarizer_of` takes. It reads an excerpt of at most eight times
            `max_tokens`; an empty, failing or overlong summary is replaced by the excerpt. None
            shortens without a model, and then valid JSON stays valid JSON.
        name: The tool, for the summariser and for errors.
        prompts: The words of markers; None takes the built-in English ones.

    Raises:
        ConfigurationError: `max_tokens` is below 1.
        ContextWindowExceeded: By this counter not even a mark of one character fits.

    Warns:
        UserWarning: The original cannot be stored; the marker reports it.

    ```python
    from muntin import ToolResultStore, truncate_tool_result

    log = "\n".join(f"step {n}: ok" for n in range(500)) + "\nValueError: no such flight"
    print(truncate_tool_result(log, 36, store=ToolResultStore.in_memory()))
    #> [Shortened: 1,604 tokens, 6,416 characters. id=tr_613c995b6492c5f2d68a]
    #> step 0: ok
    #> step 1: ok
    #> [… 498 lines omitted …]
    #> ValueError: no such flight
    ```
    """
    return run(_shortening(request), request.summarizer or _unasked).text


@arguments_of(ShortenRequest)
async def atruncate_tool_result(request: ShortenRequest) -> str:
    """Shorten a tool result as `truncate_tool_result` does, without blocking on the summariser."""
    flow, size = _shortening(request), size_of(request.result)
    return (await arun(flow, request.summarizer or _unasked, size=size)).text


@arguments_of(ShortenRequest)
def shorten_tool_result(request: ShortenRequest) -> ShortenedResult:
    """Shorten a tool result as `truncate_tool_result` does, and return the outcome."""
    return run(_shortening(request), request.summarizer or _unasked)


def truncate_batch(
    results: Sequence[str],
    max_tokens: int,
    *,
    counter: AnyCounter = None,
    model: object = None,
    store: ToolResultStore | None = None,
    name: str = "",
    prompts: PromptRegistry = DEFAULT_PROMPTS,
) -> list[str]:
    """Shorten the results of parallel calls to a number of tokens together.

    The tokens are shared max-min fairly: small results stay whole, large ones share the rest, and
    what one of them leaves over goes to the larger ones.

    Args:
        results: What the calls returned, in their order.
        max_tokens: Tokens of all texts, each counted alone and summed.
        counter: As in `truncate_tool_result`.
        model: As in `truncate_tool_result`.
        store: As in `truncate_tool_result`.
        name: As in `truncate_tool_result`.
        prompts: The words of markers.

    Returns:
        One text per result, in the same order.

    Raises:
        ConfigurationError: `max_tokens` is below 1.
        ContextWindowExceeded: There is not even space for a mark of one character each.

    Warns:
        UserWarning: As in `truncate_tool_result`.

    ```python
    from muntin.tool_results import truncate_batch

    texts = truncate_batch(["ok", "a b c " * 400, "x y z " * 900], 130)
    print([len(text) for text in texts])
    #> [2, 255, 260]
    ```
    """
    max_tokens = checked_tokens(max_tokens, "max_tokens")
    counter = checked_counter(counter, model=model)
    sizes = [counter(clean_text(result)) for result in results]
    if sum(sizes) <= max_tokens:
        return [clean_text(result) for result in results]
    shortened = list(results)
    left = max_tokens
    for rank, at in enumerate(sorted(range(len(results)), key=sizes.__getitem__)):
        share = left // (len(results) - rank)
        if share < 1:
            raise ContextWindowExceeded(
                f"a mark for each of {len(results)} shortened results",
                needed=len(results) * counter("…"),
                available=max_tokens,
            )
        shortened[at] = truncate_tool_result(
            results[at], share, counter=counter, store=store, name=name, prompts=prompts
        )
        left -= counter(shortened[at])
    return shortened


def _unasked(text: str, instruction: str) -> str:  # pragma: no cover - a flow that never asks
    raise NotImplementedError


def _shortening(request: ShortenRequest) -> Flow[ShortenedResult]:
    """Choose the text in place of a result; ask for a summary if a summariser is given."""
    max_tokens, counter, prompts = request.limit, request.count, request.words
    text = clean_text(request.result)
    size = counter(text)
    if size <= max_tokens:
        return ShortenedResult(text=text, tokens=size, original_tokens=size)
    original = original_of(request.result, text, size, request.store, prompts)
    problem = ""
    if request.summarizer is not None:
        asked = _summary_request(original, request, request.summarizer)
        summary, problem = yield from _judged(asked, original.body, counter)
        line = marker("marker_summary", original, prompts)
        recap = f"{line}\n{summary}"
        if summary and counter(recap) <= max_tokens:
            return _outcome(recap, original, counter)
        problem = problem or "the summary is too long"
    shown = _excerpt(original, max_tokens, counter, prompts)
    if shown is None:
        raise ContextWindowExceeded(
            f"a shortened result of the tool {request.name or 'in question'}",
            needed=counter("…"),
            available=max_tokens,
        )
    return _outcome(shown, original, counter, problem)


def _judged(request: SummaryRequest, body: str, counter: TokenCounter) -> Flow[tuple[str, str]]:
    """Ask for a summary; return it, or an empty text and what was wrong with it."""
    # The model reads an excerpt; what is elsewhere in the result is not invented either.
    source = body if len(body) <= _JUDGED_CHARACTERS else request.text
    try:
        summary = bare_summary((yield request))
    except Exception as error:  # noqa: BLE001 - however it fails, the excerpt takes its place
        return "", f"the summary failed: {type(error).__name__}: {error}"
    fault = fault_of(summary, source, asked=request.max_tokens, counter=counter)
    if fault == "summary_empty":
        return "", "the summary is empty (summary_empty)"
    return ("", f"the summary was refused ({fault})") if fault else (summary, "")


def _outcome(
    text: str, original: Original, counter: TokenCounter, problem: str = ""
) -> ShortenedResult:
    return ShortenedResult(
        text=text,
        tokens=counter(text),
        original_tokens=original.tokens,
        result_id=original.result_id,
        problem=problem,
    )


def _summary_request(
    original: Original, request: ShortenRequest, summarizer: AnySummarizer
) -> SummaryRequest:
    """Write a request that fits the summariser's window, instruction and answer included."""
    max_tokens, counter, prompts = request.limit, request.count, request.words
    window, output = window_of(summarizer, otherwise=_UNKNOWN_WINDOW)
    room = max(1, max_tokens - counter(marker("marker_summary", original, prompts)))
    room = min(room, max(1, window // 3))
    instruction = prompts.render("tool_result.extract", name=request.name or "?", max_tokens=room)
    answer = max(room, min(output or 0, window // 2))
    most = int(_WINDOW_SHARE * window) - answer - counter(instruction)
    most = max(1, min(_SUMMARY_INPUT * max_tokens, most))
    body = original.body
    if counter(body) > most:
        body = _excerpt(original, most, counter, prompts) or ""
    return SummaryRequest(text=body, instruction=instruction, max_tokens=room)


def _excerpt(
    original: Original, max_tokens: int, counter: TokenCounter, prompts: PromptRegistry
) -> str | None:
    """Find the largest text that fits, from the most to the least detailed form."""
    marks = Marks(prompts, again=original.again)
    full = marker("marker", original, prompts)
    brief = marker("marker_brief", original, prompts)
    # A long marker is worth at most half of what there is.
    lines = (full, brief) if 2 * counter(full) <= max_tokens else (brief,)
    if original.result_id:
        # The id of the original is worth more than the few words that would fit instead.
        lines += (marker("marker_least", original, prompts),)
    forms: list[Callable[[int], str]]
    if original.is_json:
        shown = JsonExcerpt(original.value, marks)
        forms = [marked_json(shown, original.value, line) for line in lines]
        if original.result_id:
            forms += [partial(_only, bare_json(original.value, lines[-1]))]
        forms += [shown, partial(_emptied, original.value), _bare_mark]
    else:
        excerpt = LinesExcerpt(marks.without_base64(original.body), marks)
        forms = [marked_text(excerpt, line) for line in lines]
        if original.result_id:
            forms += [partial(_only, lines[-1])]
        forms += [partial(_both_ends, original.body, max_tokens, counter)]
    length = len(original.body)
    for form in forms:
        found = _largest(form, length, max_tokens, counter)
        if found:
            return found
    return None


def _only(line: str, _room: int) -> str:
    """Show the marker alone."""
    return line


def _emptied(value: object, _room: int) -> str:
    """Show nothing but the kind of a JSON value; a number or a truth shown so would be another."""
    if isinstance(value, str):
        return '""'
    if isinstance(value, (dict, list)):
        return "{}" if isinstance(value, dict) else "[]"
    return to_json("…")


def _bare_mark(_room: int) -> str:
    """Show that something was left out, where there is no space for more."""
    return "…"


def _both_ends(text: str, max_tokens: int, counter: TokenCounter, _room: int) -> str:
    """Show what fits of both ends, when there is no space for a marker."""
    return truncate_to_tokens(text, max_tokens, counter, keep="ends") or "…"


def _largest(
    form: Callable[[int], str], length: int, max_tokens: int, counter: TokenCounter
) -> str | None:
    """Find the largest size whose text fits; `None` if not even size 0 fits."""

    def write(room: int) -> str:
        # Escapes in JSON may have hidden halves of surrogate pairs until now.
        return clean_text(form(room))

    if counter(write(0)) > max_tokens:
        return None
    return longest_text(
        write,
        max_tokens,
        counter,
        low=0,
        high=length,
        start=min(length, 4 * max_tokens),
        tolerance=1 / 64,
    )
