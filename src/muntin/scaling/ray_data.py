"""Fit and assemble datasets of Ray Data, and apply any function to records on a Ray cluster.

Needs the extra `ray`. Rows are the same bytes that local processes give.
"""

from __future__ import annotations

import json
import logging
from collections import deque
from functools import partial
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from muntin.conversations import NEWEST
from muntin.errors import ConfigurationError, ContextError
from muntin.scaling.processes import Outcome, counted, received, worked
from muntin.scaling.rows import assemble_row, fit_row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from types import ModuleType

    from muntin.config import ContextConfig
    from muntin.conversations import Newest
    from muntin.counting import AnyCounter
    from muntin.scaling.processes import Chunk, Progress

__all__ = ("assemble_dataset", "fit_dataset", "map_records_on_ray", "read_jsonl")

_BATCH = 64
"""Rows a task works on: seconds of work, and a few megabytes."""
_CHUNK = 16
_CHUNKS_PER_PROCESSOR = 3


def fit_dataset(
    dataset: Any,
    *,
    budget: int | None = None,
    window: int | None = None,
    counter: AnyCounter = None,
    repair: bool = False,
    question: str | Newest | None = NEWEST,
    batch_size: int = _BATCH,
) -> Any:
    """Fit the conversations of a Ray dataset; lazily, as its own operations are.

    Args:
        dataset: A `ray.data.Dataset` with the columns that `fit_row` reads.
        budget: As in `fit_row`.
        window: As in `fit_row`.
        counter: As in `fit_row`; one that pickles, a name best of all.
        repair: As in `fit_row`.
        question: As in `fit_row`.
        batch_size: Rows a task works on.

    Returns:
        The dataset with the columns that `fit_row` adds, in no certain order unless the execution
        options of Ray Data preserve it.

    Raises:
        ConfigurationError: It is not a dataset of Ray.
    """
    function = partial(
        fit_row, budget=budget, window=window, counter=counter, repair=repair, question=question
    )
    return _mapped(dataset, function, batch_size)


def assemble_dataset(
    dataset: Any,
    *,
    config: ContextConfig | None = None,
    budget: int | None = None,
    counter: AnyCounter = None,
    batch_size: int = _BATCH,
) -> Any:
    """Assemble the contexts of a Ray dataset; lazily, as its own operations are.

    Args:
        dataset: A `ray.data.Dataset` with the columns that `assemble_row` reads.
        config: As in `assemble_row`.
        budget: As in `assemble_row`.
        counter: As in `assemble_row`; one that pickles, a name best of all.
        batch_size: Rows a task works on.

    Returns:
        The dataset with the columns that `assemble_row` adds.

    Raises:
        ConfigurationError: It is not a dataset of Ray.
    """
    function = partial(assemble_row, config=config, budget=budget, counter=counter)
    return _mapped(dataset, function, batch_size)


def read_jsonl(paths: str | Sequence[str], *, columns: Sequence[str] = ("messages",)) -> Any:
    """Read JSON Lines as a Ray dataset whose values are unchanged.

    Ray's own reader gives every object the keys of all others. Here a column is the text of a
    string, and the JSON text of any other value; it is empty where the line has no such key.

    Args:
        paths: Files or folders, as in `ray.data.read_text`.
        columns: Keys to read.

    Raises:
        ConfigurationError: Ray is not installed.
    """
    text = _ray().data.read_text(paths)
    return text.map_batches(partial(_parsed, columns=tuple(columns)), batch_size=_BATCH)


def map_records_on_ray(
    function: Callable[[Any], Any],
    records: Iterable[Any],
    *,
    address: str | None = None,
    on_progress: Callable[[Progress], object] | None = None,
) -> Iterator[Outcome[Any]]:
    """Apply a function to every record on a Ray cluster; otherwise like `map_records`.

    Args:
        function: As in `map_records`. muntin must be installed on every node.
        records: As in `map_records`.
        address: Of the cluster (`ray://host:10001`, `auto`), or `local` to start Ray on this
            machine. `None` takes the one this process is connected to, or starts one.
        on_progress: As in `map_records`.

    Returns:
        One outcome per record, in order.

    Raises:
        ConfigurationError: Ray is not installed, or the cluster cannot be reached.
    """
    ray = _ray()
    if not ray.is_initialized():
        try:
            own = {"include_dashboard": False} if address in (None, "local") else {}
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **own)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise ConfigurationError(f"cannot reach Ray at {address!r}: {error}") from error
    total = len(cast("Sequence[Any]", records)) if hasattr(records, "__len__") else None
    return counted(_on_cluster(ray, function, records), total, on_progress)


def _on_cluster(
    ray: Any, function: Callable[[Any], Any], records: Iterable[Any]
) -> Iterator[Outcome[Any]]:
    task: Any = ray.remote(worked)
    shared = ray.put(function)
    numbered = enumerate(records)
    most = max(1, int(ray.cluster_resources().get("CPU", 1))) * _CHUNKS_PER_PROCESSOR
    waiting: deque[tuple[Chunk, Any]] = deque()
    try:
        while True:
            while len(waiting) < most and (chunk := list(islice(numbered, _CHUNK))):
                waiting.append((chunk, task.remote(shared, chunk)))
            if not waiting:
                return
            yield from _results(ray, task, shared, *waiting.popleft())
    finally:
        for _, future in waiting:
            ray.cancel(future)


def _results(ray: Any, task: Any, shared: Any, chunk: Chunk, future: Any) -> list[Outcome[Any]]:
    try:
        return received(chunk, ray.get(future))
    except ray.exceptions.RayError as error:
        if len(chunk) > 1:  # one record of it ended the worker; find out which
            parts = [([entry], task.remote(shared, [entry])) for entry in chunk]
            return [one for part in parts for one in _results(ray, task, shared, *part)]
        ended = ContextError(f"the task ended while it worked on this record: {error}")
        return [Outcome(index=chunk[0][0], error=ended)]


def _mapped(dataset: Any, function: Callable[[Any], dict[str, Any]], batch_size: int) -> Any:
    if not hasattr(dataset, "map_batches"):
        raise ConfigurationError(
            f"dataset must be a ray.data.Dataset, got {type(dataset).__name__}: make one with "
            f"ray.data.read_parquet or muntin.scaling.read_jsonl (pip install 'muntin[ray]')"
        )
    return dataset.map_batches(partial(_batch, function=function), batch_size=batch_size)


def _batch(
    batch: Mapping[str, Any], *, function: Callable[[Any], dict[str, Any]]
) -> dict[str, list[Any]]:
    """Apply a function to each row of a batch of columns."""
    names = list(batch)
    rows = [
        function(dict(zip(names, map(_scalar, values), strict=True)))
        for values in zip(*batch.values(), strict=True)
    ]
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}


def _scalar(value: Any) -> Any:
    """Return a number or text of numpy as one of Python, and anything else as it is."""
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", 1) == 0 else value


def _parsed(batch: Mapping[str, Any], *, columns: tuple[str, ...]) -> dict[str, list[str]]:
    rows = [json.loads(line) for line in batch["text"] if line.strip()]
    return {name: [_text(row.get(name)) for row in rows] for name in columns}


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _ray() -> ModuleType:
    try:
        ray = import_module("ray")
        import_module("ray.data")
        import_module("ray.exceptions")
    except ModuleNotFoundError as error:
        raise ConfigurationError("this needs Ray: pip install 'muntin[ray]'") from error
    return ray
