"""Draw a claim as an SVG with bars, once for light and once for dark pages. Nothing is loaded."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.claims import Claim, Series

__all__ = ("THEMES", "chart", "shown")

THEMES = {
    "light": {
        "paper": "#ffffff",
        "ink": "#1c2329",
        "quiet": "#5b6670",
        "line": "#d9dfe3",
        "ours": ("#0b6e83", "#12a0bd"),
        "theirs": ("#8b959d", "#b3bbc1", "#6d767d"),
    },
    "dark": {
        "paper": "#12181d",
        "ink": "#e8edf0",
        "quiet": "#9aa7b0",
        "line": "#2c363e",
        "ours": ("#35b5d1", "#7fd6e8"),
        "theirs": ("#77828b", "#56616a", "#98a3ac"),
    },
}
_WIDTH, _LEFT, _RIGHT = 760, 190, 70
_BAR, _GAP, _BLOCK = 15, 3, 14


def shown(value: float | None) -> str:
    """Return a number as the tables and charts show it."""
    if value is None:
        return "–"
    if isinstance(value, int) or (value == int(value) and abs(value) > 1):
        return f"{value:,.0f}"
    return f"{value:.3f}" if abs(value) < 10 else f"{value:,.1f}"


def chart(claim: Claim, series: Sequence[Series], theme: str) -> str:
    """Return the chart of a claim; its title and description carry the same numbers as text."""
    colours = THEMES[theme]
    top = 24 * -(-len(series) // 2) + 16
    block = len(series) * (_BAR + _GAP) + _BLOCK
    height = top + block * len(claim.cases)
    known = [abs(value) for one in series for value in one.values if value is not None]
    scale = (_WIDTH - _LEFT - _RIGHT) / (max(known, default=1) or 1)
    fills = _fills(series, theme)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="13">',
        f"<title>{escape(claim.title)}</title>",
        f"<desc>{escape(_described(claim, series))}</desc>",
        f'<rect width="{_WIDTH}" height="{height}" fill="{colours["paper"]}"/>',
    ]
    for at, one in enumerate(series):
        x, y = 8 + (at % 2) * (_WIDTH // 2), 8 + (at // 2) * 24
        parts.append(f'<rect x="{x}" y="{y}" width="12" height="12" fill="{fills[at]}"/>')
        weight = ' font-weight="600"' if one.is_ours else ""
        parts.append(_text(x + 18, y + 11, one.name, str(colours["ink"]), weight))
    for row, case in enumerate(claim.cases):
        y = top + row * block
        middle = y + len(series) * (_BAR + _GAP) / 2 + 3
        parts.append(_text(_LEFT - 10, middle, case, str(colours["quiet"]), ' text-anchor="end"'))
        for at, one in enumerate(series):
            value, bar = one.values[row], y + at * (_BAR + _GAP)
            length = max(1.0, abs(value) * scale) if value is not None else 0
            parts.append(
                f'<rect x="{_LEFT}" y="{bar}" width="{length:.1f}" height="{_BAR}" '
                f'fill="{fills[at]}"/>'
            )
            parts.append(_text(_LEFT + length + 6, bar + 12, shown(value), str(colours["ink"])))
    parts.append(
        f'<path d="M{_LEFT} {top - 4}V{height - 4}" stroke="{colours["line"]}" fill="none"/>'
    )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _fills(series: Sequence[Series], theme: str) -> list[str]:
    used = {True: 0, False: 0}
    fills: list[str] = []
    for one in series:
        palette = THEMES[theme]["ours" if one.is_ours else "theirs"]
        fills.append(palette[used[one.is_ours] % len(palette)])
        used[one.is_ours] += 1
    return fills


def _described(claim: Claim, series: Sequence[Series]) -> str:
    pieces = [
        f"{one.name}: "
        + ", ".join(
            f"{case} {shown(value)}" for case, value in zip(claim.cases, one.values, strict=True)
        )
        for one in series
    ]
    return f"In {claim.unit}. " + "; ".join(pieces)


def _text(x: float, y: float, text: str, fill: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{fill}"{more}>{escape(text)}</text>'
