"""Read `--docs` of `assemble` for the question, and report what was read."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from muntin.cli.documents.find import find_documents
from muntin.cli.documents.search import Search
from muntin.cli.failures import SOURCE_FAILED, Failure
from muntin.cli.terminal.output import many, note, progress

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ("facts_of", "searched", "tell_of")


def searched(
    paths: Sequence[Path], question: str, include: Sequence[str], exclude: Sequence[str]
) -> Search:
    """Read the documents under paths for a question, with a bar on a terminal.

    Raises:
        Failure: A path is not there, or nothing under all of them can be read.
    """
    documents, skipped = find_documents(paths, include=include, exclude=exclude)
    search = Search(question)
    search.skipped += skipped
    with progress("reading documents", sum(one.size for one in documents)) as advance:
        search.read(documents, advance)
    if not search.files:
        why = f", {len(search.skipped)} skipped: {_reasons(search)}" if search.skipped else ""
        named = " ".join(map(str, paths))
        raise Failure(f"nothing to read in {named}{why}: name other --docs", code=SOURCE_FAILED)
    return search


def tell_of(search: Search | None, found: int) -> None:
    """Note on stderr what was searched, what was skipped, and that nothing was found."""
    if search is None:
        return
    if search.skipped:
        examples = ", ".join(str(path) for path, _ in search.skipped[:3])
        more = ", ..." if len(search.skipped) > 3 else ""
        note(f"skipped {many(len(search.skipped), 'file')} ({_reasons(search)}): {examples}{more}")
    note(f"searched {many(search.passages, 'passage')} of {many(search.files, 'file')}")
    if not found:
        note("no passage shares a word with the question: ask in the words of the documents")


def _reasons(search: Search) -> str:
    times = Counter(reason for _, reason in search.skipped)
    return ", ".join(f"{count:,} {reason}" for reason, count in times.most_common())


def facts_of(search: Search | None) -> dict[str, object]:
    """Return what was searched, for `--json`."""
    if search is None:
        return {}
    return {
        "searched": {"files": search.files, "passages": search.passages},
        "skipped": [{"path": str(path), "reason": reason} for path, reason in search.skipped],
    }
