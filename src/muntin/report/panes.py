"""Decides how the window and its sources are drawn on the page.

Everything here depends on the budget alone, so the page can hold it once per budget of its slider.
The drawn widths are the report's own parts: the bar adds up to the window because the figures do.
"""

from __future__ import annotations

from collections import Counter
from html import escape
from typing import TYPE_CHECKING

from muntin.report.columns import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from muntin.report.account import Account
    from muntin.report.values import Part, SourceReport

__all__ = ("NOUNS", "bar", "counted", "escaped", "head", "percent", "signed", "view", "words")

NOUNS = {"context": ("candidate", "candidates"), "conversation": ("message", "messages")}
"""What a report of each kind decides on: one, several."""
_INKS = 8
"""Colours with patterns in `page.css`; the ninth source starts again."""
_GLYPH = (
    '<svg viewBox="0 0 20 20" aria-hidden="true"><rect x="2" y="2" width="16" height="16" rx="1"/>'
    '<path d="M8 2v16M8 9h10"/></svg>'
)


def escaped(text: str) -> str:
    """Make free text safe for any place in the markup."""
    return escape(visible(text), quote=True)


def counted(report: Account, number: int) -> str:
    """Return a number with the noun of the report in the right form."""
    one, several = NOUNS[report.kind]
    return f"{number:,} {one if number == 1 else several}"


def head(report: Account, *, page: bool) -> str:
    """Write the title, the question and a summary of two sentences."""
    button = '<button type="button" class="mtn-button mtn-theme mtn-live">Dark</button>'
    title = report.question or ("Context" if report.kind == "context" else "Conversation")
    window = "unknown" if report.window is None else f"{report.window:,}"
    return (
        f'<header class="mtn-head">{_GLYPH}<span><strong>muntin</strong> {report.kind} report'
        f"</span>{button if page else ''}</header>"
        f'<h1 dir="auto">{escaped(title)}</h1>'
        f'<p class="mtn-terms">Window {window}, budget {report.budget:,}, reserve '
        f"{report.reserve:,}. Counted by {escaped(report.counter)} "
        f"({'exact' if report.exact else 'estimate'}).</p>"
    )


def view(report: Account) -> str:
    """Draw everything that depends on the budget: the sentence, the window, the sources."""
    return _lead(report) + _window(report) + _sources(report)


def _lead(report: Account) -> str:
    idle = f"<b>{report.idle:,}</b> stayed idle" if report.idle else "none stayed idle"
    are = "token is" if report.budget == 1 else "tokens are"
    first = f"<b>{report.used:,}</b> of {report.budget:,} {are} used, {idle}."
    if not report.decisions:
        return f'<p class="mtn-lead">{first}</p>'
    kinds = Counter(one.kind for one in report.decisions)
    tails = [f"{kinds['shortened']:,} shortened"] * bool(kinds["shortened"])
    tails += [f"{kinds['summarised']:,} summarised"] * bool(kinds["summarised"])
    tails += [f"{kinds['dropped']:,} left out"]
    return (
        f'<p class="mtn-lead">{first} Of {counted(report, len(report.decisions))}, '
        f"<b>{kinds['kept']:,}</b> {'is' if kinds['kept'] == 1 else 'are'} in word for word, "
        f"{', '.join(tails)}.</p>"
    )


def _window(report: Account) -> str:
    return (
        f'<section class="mtn-window" aria-label="The window">{bar(report, report.whole)}'
        f'{_scale(report)}<ul class="mtn-legend">{_legend(report)}</ul></section>'
    )


def bar(report: Account, scale: int, *, small: bool = False) -> str:
    """Draw the window on a scale in tokens; a window below the scale leaves the end blank."""
    spoken = ", ".join(f"{part.name} {part.tokens:,}" for part in report.parts)
    panes = "".join(
        f'<div class="mtn-pane" {look} data-tokens="{part.tokens}" data-width="{part.width}" '
        f'style="flex-grow:{part.width}" title="{escaped(part.name)}: {part.tokens:,} tokens">'
        f"<span><bdi>{escaped(part.name)}</bdi></span><span>{part.tokens:,}</span></div>"
        for part, look in zip(report.parts, _looks(report.parts), strict=True)
        if part.width
    )
    label = f"Window of {report.whole:,} tokens: {spoken}"
    return (
        f'<div class="mtn-bar{" mtn-small" if small else ""}" role="img" '
        f'data-whole="{report.whole}" aria-label="{escaped(label)}" '
        f'style="width:{percent(report.whole, scale)}">{panes}</div>'
    )


def _looks(parts: Sequence[Part]) -> list[str]:
    """Give each part its colour and pattern: by position within its group, so they never clash."""
    seen: Counter[str] = Counter()
    looks: list[str] = []
    for place, part in enumerate(parts):
        ink = f' data-ink="{seen[part.group] % _INKS}"' if part.group == "source" else ""
        odd = f' data-odd="{seen[part.group] % 2}"'
        seen[part.group] += 1
        looks.append(f'data-part="{place}" data-group="{part.group}"{ink}{odd}')
    return looks


def _scale(report: Account) -> str:
    """Mark where the used part, the budget and the window end."""
    marks = [(report.budget, f"budget {report.budget:,}")]
    if report.whole > report.budget:
        marks.append((report.whole, f"{report.whole:,}"))
    if report.used <= 0.8 * report.budget:
        marks.insert(0, (report.used, f"used {report.used:,}"))
    spans = "".join(
        f'<span class="mtn-end" style="left:{percent(place, report.whole)}">{text}</span>'
        for place, text in marks
        if place >= 0.12 * report.whole and (place == report.whole or place < 0.9 * report.whole)
    )
    return f'<div class="mtn-scale" aria-hidden="true">{spans}</div>'


def _legend(report: Account) -> str:
    return "".join(
        f'<li data-part="{place}"><span class="mtn-swatch" {look.partition(" ")[2]}></span>'
        f'<span class="mtn-name" title="{escaped(part.name)}">{escaped(part.name)}</span>'
        f'<span>{signed(part.tokens)}</span><span class="mtn-share">'
        f"{_share(part.tokens, report.whole)}</span></li>"
        for place, (part, look) in enumerate(zip(report.parts, _looks(report.parts), strict=True))
    )


def signed(tokens: int) -> str:
    """Write a number of tokens that may be negative, with a minus sign and not a hyphen."""
    return f"{tokens:,}".replace("-", "−")


def _share(part: int, whole: int) -> str:
    # Adding 0.0 turns the minus zero of a tiny negative structure into a plain zero.
    return f"{round(100 * part / max(1, whole), 1) + 0.0:.1f} %"


def percent(part: int, whole: int) -> str:
    """Write a share as a CSS length."""
    return f"{100 * part / max(1, whole):.3f}%"


def _sources(report: Account) -> str:
    if not report.sources:
        return ""
    context = report.kind == "context"
    quotas = any(source.quota is not None for source in report.sources)
    names = [*("Offered", "Kept", "Shortened"), *([] if context else ["Summarised"]), "Dropped"]
    names += [*(["Doubles", "Quota", "Lent", "Borrowed"] if quotas else []), "Used"]
    scale = max(1, *((source.quota or 0) + source.borrowed for source in report.sources),
                *(source.used for source in report.sources))  # fmt: skip
    rows = "".join(
        _source_row(source, place, names, scale) for place, source in enumerate(report.sources)
    )
    columns = "".join(f'<th role="columnheader" scope="col">{name}</th>' for name in names)
    return (
        f"<section><h2>{'Sources' if context else 'Roles'}</h2>"
        f'<p class="mtn-aside">{_aside(quotas=quotas)}</p>'
        f'<table class="mtn-sources" role="table"><thead role="rowgroup"><tr role="row">'
        f'<th role="columnheader" scope="col">{"Source" if context else "Role"}</th>{columns}'
        f'<th role="columnheader" scope="col" class="mtn-grant">{"Grant" if quotas else "Share"}'
        f'</th></tr></thead><tbody role="rowgroup">{rows}</tbody></table></section>'
    )


def _aside(*, quotas: bool) -> str:
    if not quotas:
        return "What each role offered, what became of it, and the tokens it takes now."
    return (
        "An outline is the quota; its hatched end was lent, a dashed end was borrowed; "
        "the colour is what was used."
    )


def _source_row(source: SourceReport, place: int, names: Iterable[str], scale: int) -> str:
    figures = {
        "Offered": source.offered,
        "Kept": source.placed,
        "Shortened": source.shortened,
        "Summarised": source.summarised,
        "Dropped": source.dropped_total,
        "Doubles": source.duplicates,
        "Quota": source.quota,
        "Lent": source.lent,
        "Borrowed": source.borrowed,
        "Used": source.used,
    }
    cells = "".join(_figure(source, name, figures[name]) for name in names)
    ink = f'data-group="source" data-ink="{place % _INKS}"'
    return (
        f'<tr role="row"><th role="rowheader" scope="row"><span class="mtn-swatch" {ink}></span>'
        f'{escaped(source.name)}</th>{cells}<td role="cell" class="mtn-grant">'
        f"{_track(source, ink, scale)}</td></tr>"
    )


def _figure(source: SourceReport, name: str, figure: int | None) -> str:
    text = "–" if figure is None else f"{figure:,}"
    quiet = "" if figure else ' class="mtn-zero"'
    title = ""
    if name == "Dropped" and figure:
        why = (f"{words(reason)} {times:,}" for reason, times in source.dropped.items())
        title = f' title="{escaped(", ".join(why))}"'
    return f'<td role="cell" data-label="{name}"{quiet}{title}>{text}</td>'


def _track(source: SourceReport, ink: str, scale: int) -> str:
    quota = source.quota or 0
    own = max(0, quota - source.lent)
    spans = (
        ("mtn-quota", "", 0, own),
        ("mtn-lent", "", own, source.lent),
        ("mtn-borrowed", "", own, source.borrowed),
        ("mtn-used", f" {ink}", 0, source.used),
    )
    drawn = "".join(
        f'<i class="{name}"{look} style="left:{percent(start, scale)};'
        f'width:{percent(size, scale)}"></i>'
        for name, look, start, size in spans
        if size
    )
    return f'<span class="mtn-track" aria-hidden="true">{drawn}</span>'


def words(reason: str) -> str:
    """Write a word of the closed sets as a reader would."""
    return reason.replace("_", " ")
