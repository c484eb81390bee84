"""Draw the pictures of the notebooks, readable on light and dark pages.

A notebook does not know the theme of the page that shows it. So backgrounds are transparent, and
all colours have a middle tone: a contrast of at least 3 with white and with the dark themes of
GitHub, JupyterLab and VS Code. Needs matplotlib (extra `notebooks`).
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false
# matplotlib has parts without types.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
from matplotlib.colors import LinearSegmentedColormap
from matplotlib_inline.backend_inline import set_matplotlib_formats

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

    from muntin import AssemblyReport

__all__ = (
    "AMBER",
    "BLUE",
    "GREEN",
    "GREY",
    "INK",
    "RED",
    "SHADES",
    "canvas",
    "ending",
    "headline",
    "windows",
)

INK, GREY = "#748290", "#8593a1"
BLUE, AMBER, GREEN, RED, VIOLET = "#3d83b5", "#bb7d1a", "#3f8f66", "#cb5d58", "#8a74b6"
SHADES = LinearSegmentedColormap.from_list("muntin", [f"{BLUE}00", BLUE])
"""From transparent to blue, for tables of numbers from 0 to 1."""

_FAINT = f"{GREY}30"
_PALE = {"idle": f"{GREY}1c", "reserve": _FAINT, "other": _FAINT, "structure": f"{GREY}70"}
_FIXED = {"system": "#56677a", "question": "#6b7d90", "tools": "#7d8fa2", "reply": "#8fa0b2"}
_SOURCES = (BLUE, AMBER, GREEN, VIOLET, RED)

set_matplotlib_formats("retina")
plt.rcParams.update(
    {
        "figure.dpi": 110,
        "figure.facecolor": "none",
        "axes.facecolor": "none",
        "savefig.facecolor": "none",
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
        "grid.color": _FAINT,
        # Two tones: where all tick labels are light, or all dark, notebooks put a background of
        # the other kind behind the picture.
        "xtick.color": "#738190",
        "ytick.color": "#778593",
        "legend.frameon": False,
        "lines.linewidth": 2,
        "hatch.linewidth": 0.6,
    }
)


def canvas(width: float = 9.0, height: float = 3.6, columns: int = 1) -> list[Axes]:
    """Return empty axes, side by side, with faint horizontal lines."""
    _, axes = plt.subplots(1, columns, figsize=(width, height), layout="constrained", squeeze=False)
    for one in axes[0]:
        one.grid(axis="y")
        one.yaxis.set_major_formatter("{x:,.0f}")
    return list(axes[0])


def headline(axes: Axes, title: str, *, x: str = "", y: str = "") -> None:
    """Set the title and the names of the axes."""
    axes.set_title(title)
    axes.set(xlabel=x, ylabel=y)


def ending(
    axes: Axes, line: tuple[Sequence[float], Sequence[float]], text: str, color: str
) -> None:
    """Draw a line with its name at its end, in place of a legend."""
    xs, ys = line
    axes.plot(xs, ys, color=color)
    axes.annotate(
        text, (xs[-1], ys[-1]), (6, 0), textcoords="offset points", va="center", color=color
    )


def windows(reports: Mapping[str, AssemblyReport], title: str) -> None:
    """Draw windows as bars of their parts, on one scale in tokens."""
    _, axes = plt.subplots(figsize=(9.0, 1.3 + 0.62 * len(reports)), layout="constrained")
    inks = dict(_FIXED)
    whole = max(sum(part.width for part in report.parts) for report in reports.values())
    named: dict[str, Any] = {}
    for row, report in enumerate(reports.values()):
        left = 0
        for part in report.parts:
            if part.group in {"source", "written"}:
                inks.setdefault(part.name, _SOURCES[(len(inks) - len(_FIXED)) % len(_SOURCES)])
            color = inks.get(part.name, _PALE.get(part.group, GREY))
            bar = axes.barh(row, part.width - whole / 500, 0.62, left, color=color)
            if part.group == "reserve":
                bar.patches[0].set(hatch="////", edgecolor=f"{GREY}90", linewidth=0)
            named.setdefault(part.name, bar)
            if part.width > whole * 0.045:
                axes.text(
                    left + part.width / 2, row, f"{part.tokens:,}", ha="center", va="center",
                    color="white" if part.name in inks else INK, fontsize=9, fontweight="bold",
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
