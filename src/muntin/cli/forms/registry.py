"""Every form, in the order in which they are looked for: the most particular first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from muntin.cli.forms.families.coding_agents import CODING_AGENTS
from muntin.cli.forms.families.datasets import ALPACA
from muntin.cli.forms.families.exports import EXPORTS
from muntin.cli.forms.families.openhands import OPENHANDS
from muntin.cli.forms.families.providers import BATCHES, PROVIDERS
from muntin.cli.forms.families.texts import TEXTS
from muntin.cli.forms.families.traces import TRACES
from muntin.cli.forms.form import Form, Place
from muntin.cli.forms.general import CONTAINERS, GENERAL

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("FORMS", "form_named", "form_of", "session_form")

FORMS: tuple[Form, ...] = (
    *CODING_AGENTS,
    OPENHANDS,
    *EXPORTS,
    *TRACES,
    *CONTAINERS,
    *BATCHES,
    ALPACA,
    *GENERAL,
    *PROVIDERS,
    *TEXTS,
)
"""Every form; the first that finds a conversation in a document is its form."""


def form_named(name: str) -> Form | None:
    """Return the form of a name, None for a name there is not."""
    return next((form for form in FORMS if form.name == name), None)


def form_of(document: Any, *, first: Form | None = None) -> tuple[Form, list[Place]] | None:
    """Find the form of a document and where its conversations are; None if there are none.

    Args:
        document: A JSON value, the lines of a session, or a text.
        first: A form to try before the others: that of the document before it.
    """
    for form in (*(() if first is None else (first,)), *FORMS):
        places = form.find(document)
        if places:
            return form, places
    return None


def session_form(lines: Sequence[Any]) -> Form | None:
    """Return the form of a file whose lines are one conversation; None for a record a line.

    Args:
        lines: The first lines of the file.
    """
    values = list(lines)
    for form in FORMS:
        if form.session and form.find(values):
            return form
    first = values[0]
    if not isinstance(first, dict) or form_of(first) is not None:
        return None
    found = form_of([cast("Any", first)])
    return None if found is None else found[0]
