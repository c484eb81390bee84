"""Draw every picture of the notebooks in one manner."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib.pyplot as plt

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes

    from muntin import AssemblyReport

__all__ = (
    "AMBER",
    "BLUE",
    "GREEN",
    "GREY",
    "INK",
    "RED",
    "canvas",
    "ending",
    "headline",
    "windows",
)

INK, GREY = "#24303c", "#9aa5b1"
BLUE, AMBER, GREEN, RED, VIOLET = "#2f6f9f", "#d9932f", "#4f8f6b", "#b5484b", "#7c6a9c"
_PALE = {"idle": "#eef1f4", "reserve": "#dfe4e9", "other": "#dfe4e9", "structure": "#c3cbd3"}
_FIXED = {"system": INK, "question": "#5b6b7b", "tools": "#78889a", "framing": "#95a3b1"}
_SOURCES = (BLUE, AMBER, GREEN, VIOLET, RED)

plt.rcParams.update(
    {
        "figure.dpi": 110,
        "savefig.bbox": "tight",
        "font.family": "DejaVu Sans",
        "font.size": 10,
        "text.color": INK,
        "axes.edgecolor": GREY,
        "axes.labelcolor": INK,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlelocation": "left",
        "axes.titlesize": 12,
        "axes.titleweight": "bold",
        "axes.titlepad": 12,
        "axes.axisbelow": True,
        "grid.color": "#e6eaee",
        "xtick.color": INK,
        "ytick.color": INK,
        "legend.frameon": False,
        "lines.linewidth": 2,
        "hatch.linewidth": 0.6,
    }
)


def canvas(width: float = 9.0, height: float = 3.6, columns: int = 1) -> list[Axes]:
    """Return empty axes, side by side, with quiet horizontal rules."""
    _, axes = plt.subplots(1, columns, figsize=(width, height), layout="constrained", squeeze=False)
    for one in axes[0]:
        one.grid(axis="y")
        one.yaxis.set_major_formatter("{x:,.0f}")
    return list(axes[0])


def headline(axes: Axes, title: str, *, x: str = "", y: str = "") -> None:
    """Say what the picture says, and what its axes are."""
    axes.set_title(title)
    axes.set(xlabel=x, ylabel=y)


def ending(axes: Axes, line: tuple[list[int], list[float]], text: str, color: str) -> None:
    """Draw a line and write its name at its end, so that nobody has to look up a legend."""
    xs, ys = line
    axes.plot(xs, ys, color=color)
    axes.annotate(
        text, (xs[-1], ys[-1]), (6, 0), textcoords="offset points", va="center", color=color
    )


def windows(reports: Mapping[str, AssemblyReport], title: str) -> None:
    """Draw windows as bars of their parts; equal lengths are equal tokens."""
    _, axes = plt.subplots(figsize=(9.0, 1.3 + 0.62 * len(reports)), layout="constrained")
    inks = dict(_FIXED)
    whole = max(sum(part.width for part in report.parts) for report in reports.values())
    named: dict[str, object] = {}
    for row, report in enumerate(reports.values()):
        left = 0
        for part in report.parts:
            if part.group in {"source", "written"}:
                inks.setdefault(part.name, _SOURCES[(len(inks) - len(_FIXED)) % len(_SOURCES)])
            color = inks.get(part.name, _PALE.get(part.group, GREY))
            hatch = "////" if part.group == "reserve" else ""
            edge = "#b9c2cb" if hatch else "white"
            bar = axes.barh(
                row, part.width, 0.62, left, color=color, edgecolor=edge, lw=1, hatch=hatch
            )
            named.setdefault(part.name, bar)
            if part.width > whole * 0.045:
                light = "white" if part.name in inks else INK
                axes.text(
                    left + part.width / 2, row, f"{part.tokens:,}", color=light, ha="center",
                    va="center", fontsize=9,
                )  # fmt: skip
            left += part.width
    axes.set_yticks(range(len(reports)), list(reports))
    axes.invert_yaxis()
    axes.tick_params(left=False)
    axes.spines[["left"]].set_visible(False)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    headline(axes, title, x="tokens")
    axes.figure.legend(
        list(named.values()), list(named), loc="outside lower center", ncols=8, fontsize=9
    )
