"""The report: show it, write it, compare it, price it, try another budget.

The figures are an `Account`; each method calls the module for its job. It counts no tokens and
fetches nothing: `what_if` runs the replay that the builder attached.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from muntin.errors import ConfigurationError
from muntin.report.account import Account
from muntin.report.cache_rules import CacheRules, rules_of
from muntin.report.diff import diff_reports
from muntin.report.text import terminal_width, to_text
from muntin.report.values import Cost
from muntin.report.wire import check_parts, fields_of, to_dict, to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from muntin.report.diff import ReportDiff
    from muntin.report.wire import ReportDict

__all__ = ("AssemblyReport",)


@dataclass(frozen=True, slots=True, kw_only=True)
class AssemblyReport(Account):
    """Where every token of one context went, and why everything else stayed out.

    `str(report)` is a table for a terminal, a notebook shows a bar of the window and a sortable
    table, `to_html` writes one self-contained page, `to_dict` and `to_json` are the documented wire
    format.

    Raises:
        ReportError: The figures contradict each other, with the two that do.

    ```python
    from muntin.report import AssemblyReport, Decision, SourceReport

    kept = Decision(index=0, source="rag", kind="kept", reason="placed", tokens=30, kept_tokens=30)
    report = AssemblyReport(
        kind="context", budget=100, reserve=25, used=52, counter="count_tokens", exact=False,
        fixed={"system": 12, "question": 7},
        sources=(SourceReport.of("rag", [kept], used=30, quota=81),),
        decisions=(kept,),
    )
    print(report.structure, report.idle, report.whole)
    #> 3 48 125
    ```
    """

    replay: Callable[[int], AssemblyReport] | None = field(default=None, repr=False, compare=False)
    """Does the same again within another budget and without fetching, for `what_if`; None when
    unavailable. Never on the wire, and not part of equality."""

    def cost(
        self,
        *,
        input_per_million: float,
        output_per_million: float = 0.0,
        cached_per_million: float | None = None,
        previous: AssemblyReport | None = None,
        cache: str | CacheRules | None = None,
    ) -> Cost:
        """Estimate what this call costs from prices per million tokens.

        Args:
            input_per_million: Price of a million tokens read.
            output_per_million: Price of a million tokens written; the whole reserve is charged.
            cached_per_million: Price of a million tokens read from a prompt cache; None charges
                them like any other.
            previous: The report of the call before; the prefix both share counts as cached. None
                means nothing is cached.
            cache: Name of a model, or the rules of its prompt cache: they give the price of cached
                tokens where `cached_per_million` does not, a prefix below the provider's minimum
                is not cached, and what is written to the cache costs what the provider charges for
                that. `None` counts every shared prefix.

        Raises:
            ConfigurationError: A price is negative or not a number, or the prompt cache of the
                model is not known.

        ```python
        from muntin.report import AssemblyReport

        report = AssemblyReport(kind="context", budget=9_000, reserve=1_000, used=8_000,
                                counter="o200k_base", exact=True, fixed={"system": 8_000})
        print(f"{report.cost(input_per_million=2.5, output_per_million=10).total:.3f}")
        #> 0.030
        ```
        """
        rules = None if cache is None else rules_of(cache)
        usual = input_per_million if rules is None else rules.read * input_per_million
        cached_price = usual if cached_per_million is None else cached_per_million
        for name, price in (
            ("input_per_million", input_per_million),
            ("output_per_million", output_per_million),
            ("cached_per_million", cached_price),
        ):
            if not (math.isfinite(price) and price >= 0):
                raise ConfigurationError(f"{name} is {price}: give a price of 0 or more")
        shared = 0 if previous is None else self.diff(previous).stable_prefix_tokens
        cached = min(shared, self.used)
        charged: float = self.used - cached
        if rules is not None:
            cached = rules.cached(cached)
            charged = rules.price(self.used, shared=cached) - cached * rules.read
        return Cost(
            input=charged * input_per_million / 1e6,
            cached=cached * cached_price / 1e6,
            output=self.reserve * output_per_million / 1e6,
        )

    def what_if(self, *, max_tokens: int) -> AssemblyReport:
        """Do the same again within another budget, without fetching anything.

        Args:
            max_tokens: The budget to try, in the sense of the call that made this report.

        Raises:
            ConfigurationError: This report was read from the wire or made by hand, so what it was
                made of is gone.
        """
        if self.replay is None:
            raise ConfigurationError(
                "what_if needs the candidates, and this report no longer has them (it was read "
                "from its written form, or made by hand): call it on the report of a fresh build"
            )
        return self.replay(max_tokens)

    def diff(
        self, previous: AssemblyReport, *, counter: Callable[[str], int] | None = None
    ) -> ReportDiff:
        """Compare with the report of an earlier call: what came in, what went out, what stayed.

        Args:
            previous: The earlier report.
            counter: Counts the shared prefix to the character, where both reports still hold their
                texts; None counts whole pieces only, which never promises too much.
        """
        return diff_reports(previous, self, counter=counter)

    def to_dict(self) -> ReportDict:
        """Write the report as plain data of the format `muntin.report/1`."""
        return to_dict(self)

    def to_json(self, *, indent: int | None = None) -> str:
        """Write the report as JSON of the format `muntin.report/1`."""
        return to_json(self, indent=indent)

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> AssemblyReport:
        """Read a report back from `to_dict`, or from the JSON of `to_json`.

        Raises:
            ReportError: Another version, a missing or unknown field, or contradictory figures.
        """
        report = cls(**fields_of(data))
        check_parts(data, report)
        return report

    def to_html(
        self,
        path: str | Path | None = None,
        *,
        previous: AssemblyReport | None = None,
        what_if: Iterable[int] = (),
        texts: bool = False,
    ) -> str:
        """Write one self-contained page: no network, dark and light.

        Args:
            path: Where to write it, whole or not at all; None only returns it.
            previous: An earlier report to show side by side; None shows this one alone.
            what_if: Budgets to compute beforehand for the slider of the page.
            texts: Write the whole passages and messages into the page, so that its search covers
                them and a click shows them; by default it holds previews of 120 characters.
        """
        from muntin.report.html import to_html

        alternatives = [self.what_if(max_tokens=budget) for budget in what_if]
        return to_html(self, path, previous=previous, alternatives=alternatives, texts=texts)

    def to_text(self, width: int | None = None) -> str:
        """Write the report as lines for a terminal; `str(report)` is this.

        Args:
            width: Cells of the widest line, at least 40; None takes the width of the terminal, at
                most 100, and 100 where the output is not a terminal.
        """
        return to_text(self, terminal_width() if width is None else width)

    def to_dataframe(self) -> Any:
        """Return the decisions as a pandas `DataFrame`, one row for each candidate or message.

        The columns are the fields of `Decision` on the wire; `attrs` holds used, budget and idle
        tokens and the name of the counter.

        Raises:
            ConfigurationError: pandas is not installed.
        """
        try:
            import pandas as pd  # pyright: ignore[reportMissingImports, reportMissingModuleSource]
        except ModuleNotFoundError as error:
            raise ConfigurationError(
                "to_dataframe needs pandas: pip install pandas, or use to_dict()['decisions']"
            ) from error
        written = self.to_dict()
        frame: Any = pd.DataFrame(written["decisions"])  # pyright: ignore[reportUnknownMemberType]
        frame.attrs.update({name: getattr(self, name) for name in ("used", "budget", "idle")})
        frame.attrs["counter"] = self.counter
        return frame

    def _repr_html_(self) -> str:
        """Show the bar and a sortable table in a notebook."""
        from muntin.report.html import to_fragment

        return to_fragment(self)

    def __str__(self) -> str:
        return self.to_text()

    def __copy__(self) -> AssemblyReport:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> AssemblyReport:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        """Travel in the wire format: the replay and the texts stay behind."""
        return (AssemblyReport.from_dict, (self.to_dict(),))
