"""Remember decisions and ratios of threads in the store, outside of the state.

What a middleware keeps in the state of an agent is shown by `stream_mode="values"` and is written
into every checkpoint. Decisions are found by the messages that they cover, so they need no place in
the state: a record per thread keeps the newest ones for other processes.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, cast

from langchain_core.runnables.config import ensure_config

from langchain_muntin._agents.stored import packed, unpacked
from muntin.errors import StateError
from muntin.stores import ANY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from muntin.adapting import Saved
    from muntin.tool_results import ToolResultStore

__all__ = ("Remembered", "ThreadRecords", "place_of_run", "thread_of_run")

_VERSION = 1
_DECISIONS = 4
"""Decisions kept per thread: a thread that was forked or went back finds an older one."""
_PLACES = 1000
"""Threads whose record is kept in memory as it was read last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What a record holds."""

    decisions: tuple[Saved, ...] = ()
    """Decisions, the newest last."""
    ratios: Mapping[str, float] = field(default_factory=dict[str, float])
    """What usage taught about each model."""

    @property
    def newest(self) -> Saved | None:
        """The newest decision; `None` if there is none."""
        return self.decisions[-1] if self.decisions else None


class ThreadRecords:
    """Keep what is remembered of each thread. Safe between threads of the process.

    Args:
        store: Keeps the records.
        name: Name of the middleware; several in one agent have records of their own.
    """

    def __init__(self, store: ToolResultStore, name: str) -> None:
        self.store = store
        self.name = name
        self._read: OrderedDict[str, tuple[str, Remembered]] = OrderedDict()
        self._lock = threading.Lock()

    def load(self, place: str) -> Remembered:
        """Return what is remembered of a place; nothing where there is no thread."""
        if not place:
            return Remembered()
        try:
            record = self.store.records.get(self._key(place))
        except StateError:  # without it the same decision is made again
            record = None
        if record is None:
            return Remembered()
        with self._lock:
            known = self._read.get(place)
        if known is not None and known[0] == record.version:
            return known[1]
        remembered = self._written(record.body)
        self._keep(place, record.version, remembered)
        return remembered

    def save(self, place: str, before: Remembered, saved: Saved | None, ratios: Any) -> None:
        """Write a record if it has changed.

        Args:
            place: The thread and the agent in it.
            before: What `load` returned.
            saved: The decision that holds; `None` if none does.
            ratios: What usage taught about each model.
        """
        is_new = saved is not None and not any(saved is one for one in before.decisions)
        if not place or not (is_new or ratios != before.ratios):
            return
        decisions = before.decisions if saved is None or not is_new else (*before.decisions, saved)
        now = Remembered(decisions=decisions[-_DECISIONS:], ratios=ratios)
        body = json.dumps(
            {
                "version": _VERSION,
                "decisions": [packed(one, self.store) for one in now.decisions],
                "ratios": ratios,
            }
        )
        try:
            version = self.store.records.put(self._key(place), body.encode(), expected=ANY)
        except StateError:  # a full disk: this process still finds it by the messages it covers
            return
        self._keep(place, version, now)

    def _key(self, place: str) -> str:
        name = json.dumps([self.name, place]).encode()
        return f"thread_{blake2b(name, digest_size=16).hexdigest()}"

    def _keep(self, place: str, version: str, remembered: Remembered) -> None:
        with self._lock:
            self._read[place] = (version, remembered)
            self._read.move_to_end(place)
            while len(self._read) > _PLACES:
                self._read.popitem(last=False)

    def _written(self, body: bytes) -> Remembered:
        """Read a record; nothing if it is not what `save` writes."""
        try:
            match json.loads(body):
                case {"version": int(version), "decisions": list(), "ratios": dict()} as data if (
                    version == _VERSION
                ):
                    read = cast("dict[str, Any]", data)
                case _:
                    return Remembered()
        except ValueError:
            return Remembered()
        found = (unpacked(one, self.store) for one in read["decisions"])
        return Remembered(
            decisions=tuple(one for one in found if one is not None), ratios=read["ratios"]
        )


def thread_of_run() -> str:
    """Return the thread of the current run; `""` if there is none."""
    configurable: Any = ensure_config().get("configurable") or {}
    return str(configurable.get("thread_id") or "")


def place_of_run() -> str:
    """Return the thread of the current run and the agent in its graph; `""` without a thread."""
    thread = thread_of_run()
    if not thread:
        return ""
    configurable: Any = ensure_config().get("configurable") or {}
    namespace = str(configurable.get("checkpoint_ns") or "")
    # `parent:task|agent:task|node:task`: the names without the tasks and without the node.
    agents = [part.partition(":")[0] for part in namespace.split("|")[:-1]]
    return "|".join([thread, *agents])
