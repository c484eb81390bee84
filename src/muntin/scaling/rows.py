"""Fit and assemble rows of a table: one row in, the same row with results and report out.

Conversations, passages and reports are JSON text in a row, because columnar formats (Parquet,
Arrow) would add empty keys to messages of different shapes. A row that fails keeps its columns, and
`error` holds the reason.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping, Sized
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, cast

from muntin.conversations import NEWEST, fit_messages
from muntin.counting import MessageCounts, checked_counter, estimate_tokens
from muntin.errors import ConfigurationError, ContextError
from muntin.passages import Candidate, ContextBuilder, GivenSource
from muntin.scaling.processes import map_records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from muntin.config import ContextConfig
    from muntin.conversations import Newest
    from muntin.counting import AnyCounter, TokenCounter
    from muntin.scaling.processes import Outcome, Progress

__all__ = ("assemble_row", "assemble_rows", "fit_row", "fit_rows")

_TEXT_NAMES = ("content", "text", "page_content")


def fit_row(
    row: Mapping[str, Any],
    *,
    budget: int | None = None,
    window: int | None = None,
    counter: AnyCounter = None,
    repair: bool = False,
    question: str | Newest | None = NEWEST,
) -> dict[str, Any]:
    """Fit the conversation of a row.

    Args:
        row: `messages` holds a list of messages or its JSON text; `tools` and `question` may be
            there. Other columns are kept.
        budget: Tokens the request may take, as in `fit_messages`.
        window: Instead of a budget: tokens of the model's window.
        counter: A counter of text, or the name of a model. `None` takes `estimate_tokens`.
        repair: Whether to mend broken pairs of calls and results first.
        question: As in `fit_messages`, for a row without a question of its own.

    Returns:
        The row with `messages` (JSON text), `tokens`, `changed`, `report` (JSON text) and `error`,
        which is empty where all went well; where it is not, the others are empty.

    ```python
    from muntin.scaling import fit_row

    row = fit_row({"id": 7, "messages": [{"role": "user", "content": "hello"}]}, budget=100)
    print(row["id"], row["messages"], row["tokens"], repr(row["error"]))
    #> 7 [{"role":"user","content":"hello"}] 9 ''
    ```
    """
    kept = {**row, "messages": "", "tokens": 0, "changed": False, "report": "", "error": ""}
    try:
        count = estimate_tokens if counter is None else _counter(counter)
        fitted = fit_messages(
            cast("list[Any]", _json_of(row, "messages")),
            budget=budget,
            window=window,
            tools=_json_of(row, "tools", missing=[]),
            question=row.get("question") or question,
            counter=count,
            counts=MessageCounts(count),
            repair=repair,
        )
        report = fitted.report
        kept["messages"] = _to_json(fitted.messages)
    except (ContextError, ValueError, TypeError) as error:
        return {**kept, "error": _said(error)}
    kept |= {"tokens": report.used, "changed": fitted.changed, "report": report.to_json()}
    return kept


def assemble_row(
    row: Mapping[str, Any],
    *,
    config: ContextConfig | None = None,
    budget: int | None = None,
    counter: AnyCounter = None,
) -> dict[str, Any]:
    """Assemble the context of a row.

    Args:
        row: `question` is a text; `passages` a list, or a mapping of source to list, or the JSON
            text of either. A passage is a text, or a mapping with `content`, and perhaps `score`,
            `id` and `metadata`. `system_prompt` may be there. Other columns are kept.
        config: As in `ContextBuilder`.
        budget: Tokens the text may take; `None` takes those of the config.
        counter: A counter of text, or the name of a model. `None` takes `count_tokens`.

    Returns:
        The row with `text`, `tokens`, `report` (JSON text) and `error`, which is empty where all
        went well; where it is not, the others are empty.

    ```python
    from muntin import ContextConfig
    from muntin.scaling import assemble_row

    row = assemble_row(
        {"question": "Which port?", "passages": ["The proxy listens on 8443."]},
        config=ContextConfig(max_tokens=1000),
    )
    print(row["text"].splitlines()[1], row["tokens"])
    #> - The proxy listens on 8443. 18
    ```
    """
    kept = {**row, "text": "", "tokens": 0, "report": "", "error": ""}
    try:
        builder = ContextBuilder(config, token_counter=_counter(counter))
        context = builder.assemble(
            str(row.get("question", "")),
            sources=_sources(_json_of(row, "passages")),
            system_prompt=str(row.get("system_prompt") or ""),
            budget=budget,
        )
    except (ContextError, ValueError, TypeError) as error:
        return {**kept, "error": _said(error)}
    kept |= {
        "text": context.text,
        "tokens": context.report.used,
        "report": context.report.to_json(),
    }
    return kept


def fit_rows(
    rows: Iterable[Mapping[str, Any]],
    *,
    budget: int | None = None,
    window: int | None = None,
    counter: AnyCounter = None,
    repair: bool = False,
    question: str | Newest | None = NEWEST,
    workers: int | None = None,
    on_progress: Callable[[Progress], object] | None = None,
) -> Iterator[dict[str, Any]]:
    """Fit the conversations of many rows in local processes, in their order; see `fit_row`.

    Args:
        rows: Any iterable, read as it is needed.
        budget: As in `fit_row`.
        window: As in `fit_row`.
        counter: As in `fit_row`; with several workers one that pickles.
        repair: As in `fit_row`.
        question: As in `fit_row`.
        workers: Processes; see `map_records`.
        on_progress: Called after each row; see `map_records`.

    Raises:
        ConfigurationError: As in `map_records`. A row that fails raises nothing.
    """
    function = partial(
        fit_row, budget=budget, window=window, counter=counter, repair=repair, question=question
    )
    return _all_rows(function, rows, workers, on_progress)


def assemble_rows(
    rows: Iterable[Mapping[str, Any]],
    *,
    config: ContextConfig | None = None,
    budget: int | None = None,
    counter: AnyCounter = None,
    workers: int | None = None,
    on_progress: Callable[[Progress], object] | None = None,
) -> Iterator[dict[str, Any]]:
    """Assemble the contexts of many rows in local processes, in their order; see `assemble_row`.

    Args:
        rows: Any iterable, read as it is needed.
        config: As in `assemble_row`.
        budget: As in `assemble_row`.
        counter: As in `assemble_row`; with several workers one that pickles.
        workers: Processes; see `map_records`.
        on_progress: Called after each row; see `map_records`.

    Raises:
        ConfigurationError: As in `map_records`. A row that fails raises nothing.
    """
    function = partial(assemble_row, config=config, budget=budget, counter=counter)
    return _all_rows(function, rows, workers, on_progress)


def _all_rows(
    function: Callable[[Mapping[str, Any]], dict[str, Any]],
    rows: Iterable[Mapping[str, Any]],
    workers: int | None,
    on_progress: Callable[[Progress], object] | None,
) -> Iterator[dict[str, Any]]:
    noted = _NotedSized(rows) if isinstance(rows, Sized) else _Noted(rows)
    outcomes = map_records(function, noted, workers=workers, on_progress=on_progress)
    return (_row_of(outcome, noted.pending.popleft()) for outcome in outcomes)


class _Noted:
    """Iterate over rows and remember those whose outcome is still to come."""

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self.rows = rows
        self.pending: deque[Mapping[str, Any]] = deque()

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        for row in self.rows:
            self.pending.append(row)
            yield row


class _NotedSized(_Noted):
    """The same for rows whose number is known."""

    def __len__(self) -> int:
        return len(cast("Sized", self.rows))


def _row_of(outcome: Outcome[dict[str, Any]], row: Mapping[str, Any]) -> dict[str, Any]:
    if outcome.value is not None:
        return outcome.value
    return {**row, "error": "" if outcome.error is None else _said(outcome.error)}


@lru_cache(maxsize=8)
def _named_counter(name: str) -> TokenCounter:
    return checked_counter(name)


def _counter(counter: AnyCounter) -> TokenCounter:
    """Return a counter; one that is named is made once per process."""
    return _named_counter(counter) if isinstance(counter, str) else checked_counter(counter)


def _json_of(row: Mapping[str, Any], column: str, *, missing: Any = None) -> Any:
    """Return a column that holds JSON values or their text."""
    value = row.get(column)
    if value is None or (isinstance(value, str) and not value):
        if missing is None:
            raise ConfigurationError(f"the row has no {column!r}: it has {sorted(row)}")
        return missing
    return json.loads(value) if isinstance(value, str) else _plain(value)


def _plain(value: Any) -> Any:
    """Return a nested value of an Arrow column as it was: lists, and no keys that others have."""
    if isinstance(value, Mapping):
        entries = cast("Mapping[str, Any]", value).items()
        return {key: _plain(one) for key, one in entries}
    if hasattr(value, "tolist"):
        return _without_none(value.tolist())
    if isinstance(value, list):
        return [_plain(one) for one in cast("list[Any]", value)]
    return value


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        entries = cast("dict[str, Any]", value).items()
        return {key: _without_none(_plain(one)) for key, one in entries if one is not None}
    if isinstance(value, list):
        return [_without_none(_plain(one)) for one in cast("list[Any]", value)]
    return value


def _sources(passages: Any) -> list[GivenSource]:
    by_source: Mapping[str, Any] = {"rag": passages}
    if isinstance(passages, Mapping):
        by_source = cast("Mapping[str, Any]", passages)
    return [
        GivenSource(name, [_candidate(one, name) for one in offered])
        for name, offered in by_source.items()
    ]


def _candidate(passage: Any, source: str) -> Candidate:
    if isinstance(passage, str):
        return Candidate(passage, source=source)
    if not isinstance(passage, Mapping):
        raise ConfigurationError(
            f"a passage must be a text or a mapping with 'content', got {type(passage).__name__}"
        )
    entry = cast("Mapping[str, Any]", passage)
    content = next((entry[name] for name in _TEXT_NAMES if name in entry), None)
    if content is None:
        raise ConfigurationError(f"a passage needs 'content', got the keys {sorted(entry)}")
    return Candidate(
        content,
        entry.get("score"),
        source,
        id=str(entry.get("id") or ""),
        metadata=entry.get("metadata") or {},
    )


def _to_json(messages: Any) -> str:
    return json.dumps(messages, ensure_ascii=False, separators=(",", ":"))


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
