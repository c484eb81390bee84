"""How full the window is: an account of the newest request of every thread.

An account is cheap to make: the report and the parts are computed when they are first read.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from muntin.conversations import fit_messages
from muntin.messages import in_flight, leading_system, newest_user, units

if TYPE_CHECKING:
    from collections.abc import Mapping

    from muntin.adapting.requests.facts import Outgoing, RequestFacts
    from muntin.counting import Measured
    from muntin.report import AssemblyReport

__all__ = ("Accounts", "RequestAccount")

_THREADS = 1000


@dataclass(frozen=True, kw_only=True)
class RequestAccount:
    """The account of one request."""

    facts: RequestFacts
    """What was known of the request: model, budget, window, reserve, tools."""
    outgoing: Outgoing
    """What was sent."""
    thread: str = ""
    """Thread of the conversation; `""` where there is none."""

    @property
    def used(self) -> int:
        """Tokens of the request."""
        return self.outgoing.tokens

    @property
    def budget(self) -> int:
        """Tokens it could take."""
        return max(self.facts.budget, self.used)

    @property
    def full(self) -> float:
        """Share of the budget that is used, in [0, 1]."""
        return self.used / self.budget

    @cached_property
    def parts(self) -> Mapping[str, int]:
        """Tokens by what they are spent on; they add up to `used`."""
        sizes: dict[str, int] = {"tools": self.facts.tool_tokens} if self.facts.tool_tokens else {}
        for one in self._measured:
            name = _part_of(one)
            sizes[name] = sizes.get(name, 0) + one.tokens
        sizes["reply framing"] = self.used - sum(sizes.values())
        return sizes

    @cached_property
    def reducible(self) -> int:
        """Tokens that a compaction could free at most: all but what must stay."""
        views = [one.view for one in self._measured]
        stays = set(range(leading_system(views)))
        asked = newest_user(views)
        running = in_flight(views, units(views))
        stays |= set() if asked is None else {asked}
        stays |= set() if running is None else set(running.indices)
        stays |= {at for at, view in enumerate(views) if view.pinned}
        return sum(one.tokens for at, one in enumerate(self._measured) if at not in stays)

    @cached_property
    def report(self) -> AssemblyReport:
        """The report of the request: of the decision that was made, else of what was sent."""
        made = self.outgoing.report
        if made is None:
            fitted = fit_messages(
                self.outgoing.messages,
                budget=self.budget,
                tools=self.facts.tools,
                counts=self.facts.counts,
            )
            made = replace(fitted.report, notes=(*self.outgoing.notes, *fitted.report.notes))
        window, reserve = self.facts.window, self.facts.reserve
        if window is not None and made.budget + reserve > window:
            window = made.budget + reserve
        return replace(made, window=window, reserve=reserve)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain data, for events and streams."""
        return {
            "thread": self.thread,
            "model": self.facts.name,
            "used": self.used,
            "budget": self.budget,
            "window": self.facts.window,
            "reserve": self.facts.reserve,
            "full": round(self.full, 4),
            "reducible": self.reducible,
            "parts": dict(self.parts),
            "messages": len(self.outgoing.messages),
            "compacted": self.outgoing.fitted is not None,
            "notes": list(self.outgoing.notes),
            "replaced_by_provider": self.outgoing.replaced,
        }

    def line(self) -> str:
        """Return one line that states how full the window is."""
        return (
            f"Context window: {self.used:,} of {self.budget:,} tokens used "
            f"({round(100 * self.full)} %)."
        )

    def __str__(self) -> str:
        return self.line()

    def _repr_html_(self) -> str:
        """Show the report in a notebook."""
        return self.report._repr_html_()  # pyright: ignore[reportPrivateUsage] - the protocol of notebooks

    @cached_property
    def _measured(self) -> list[Measured]:
        return self.facts.counts.measure_all(self.outgoing.messages)


class Accounts:
    """Keep the newest account of every thread; the oldest threads are removed first."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, RequestAccount] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, account: RequestAccount) -> None:
        """Keep an account in place of an earlier one of its thread."""
        with self._lock:
            self._known[account.thread] = account
            self._known.move_to_end(account.thread)
            while len(self._known) > _THREADS:
                self._known.popitem(last=False)

    def get(self, thread: str) -> RequestAccount | None:
        """Return the newest account of a thread; `None` before its first request."""
        with self._lock:
            return self._known.get(thread)

    def only(self) -> RequestAccount | None:
        """Return the account if there is exactly one thread; `None` otherwise."""
        with self._lock:
            return next(iter(self._known.values())) if len(self._known) == 1 else None

    def __getstate__(self) -> dict[str, Any]:
        return {}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__()


def _part_of(one: Measured) -> str:
    view = one.view
    if view.results:
        return "tool results"
    if view.injected and view.role == "user":
        return "notes"
    return view.role
