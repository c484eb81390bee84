"""Decides what changed between two reports: what came in, what went out, how far the prefix held.

A prompt cache reuses a prompt up to its first changed token, so the length of the shared prefix is
money. It is found piece by piece from digests, and to the character where both reports still hold
their texts. Whole equal pieces only are counted unless a counter is given: a lower bound, never a
promise the cache does not keep.

Candidates are matched by source and id, else by source and preview; repeats pair up in order. It
does not compare scores: the same passage with another score is the same passage.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from muntin.report.cache_rules import CacheRules, rules_of
from muntin.report.columns import cut, table, visible
from muntin.runtime import common_start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from muntin.report.account import Account
    from muntin.report.reasons import PartGroup
    from muntin.report.values import Decision, Piece

__all__ = ("Change", "PartChange", "ReportDiff", "diff_reports")


_WIDTH = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One candidate or message that entered, left or changed in the result."""

    before: Decision | None
    """What was decided in the earlier report; None when it was not offered."""
    after: Decision | None
    """What was decided in the later report; None when it was not offered."""

    @property
    def one(self) -> Decision:
        """Give the newest decision there is about it."""
        found = self.after or self.before
        assert found is not None, "a change has a side"
        return found

    @property
    def tokens(self) -> int:
        """Tokens it takes more (less, when negative) than before."""
        after = self.after.kept_tokens if self.after else 0
        return after - (self.before.kept_tokens if self.before else 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartChange:
    """One part of the window before and after."""

    name: str
    """Name of the part."""
    group: PartGroup
    """What the part belongs to."""
    before: int
    """Its tokens in the earlier report; 0 when it was not there."""
    after: int
    """Its tokens in the later report; 0 when it is not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportDiff:
    """What changed from one report to the next; `str` of it is a table for a terminal."""

    used_before: int
    """Tokens the earlier result took."""
    used_after: int
    """Tokens the later result takes."""
    came_in: tuple[Change, ...]
    """What is in the later result and was not in the earlier one."""
    went_out: tuple[Change, ...]
    """What was in the earlier result and is not in the later one; `after` holds the reason, if it
    was offered."""
    resized: tuple[Change, ...]
    """What is in both, with another number of tokens."""
    parts: tuple[PartChange, ...]
    """Each part of the window before and after, changed or not, in the order of the later one."""
    stable_prefix_tokens: int
    """Tokens at the beginning of the later result that a prompt cache can reuse; 0 when nothing is
    shared or a report did not record its pieces."""
    stable_prefix_characters: int
    """Characters of that prefix."""
    first_changed: str | None
    """Label of the first piece that differs; None when nothing does or pieces are missing."""

    def cached_tokens(self, model: str | CacheRules) -> int:
        """Return the tokens of the stable prefix that the cache of a model can serve.

        A prefix below the provider's minimum is not cached, so it is worth nothing.

        Args:
            model: Name of a model, or the rules of its cache.

        Raises:
            ConfigurationError: The rules of the model are not known.
        """
        return rules_of(model).cached(self.stable_prefix_tokens)

    @property
    def first_changed_token(self) -> int | None:
        """Index of the first token that cannot be reused; None when nothing differs."""
        return None if self.first_changed is None else self.stable_prefix_tokens

    @property
    def first_changed_character(self) -> int | None:
        """Index of the first character that differs; None when nothing differs."""
        return None if self.first_changed is None else self.stable_prefix_characters

    @property
    def unchanged(self) -> bool:
        """Whether the account is the same: nothing came, went, or changed its size."""
        moved = self.came_in or self.went_out or self.resized or self.first_changed is not None
        return not moved and all(part.before == part.after for part in self.parts)

    def __str__(self) -> str:
        return "\n".join(cut(visible(line), _WIDTH) for line in _lines(self))


def diff_reports(
    previous: Account, report: Account, *, counter: Callable[[str], int] | None = None
) -> ReportDiff:
    """Compare two reports; `AssemblyReport.diff` is this.

    Args:
        previous: The earlier one.
        report: The later one.
        counter: Counts the shared prefix to the character where the texts are at hand; None counts
            whole equal pieces.
    """
    changes = list(_pairs(previous.decisions, report.decisions))
    tokens, characters, first = _prefix(previous.pieces, report.pieces, counter)
    return ReportDiff(
        used_before=previous.used,
        used_after=report.used,
        came_in=tuple(c for c in changes if _inside(c.after) and not _inside(c.before)),
        went_out=tuple(c for c in changes if _inside(c.before) and not _inside(c.after)),
        resized=tuple(c for c in changes if _inside(c.before) and _inside(c.after) and c.tokens),
        parts=tuple(_part_changes(previous, report)),
        stable_prefix_tokens=min(tokens, report.used),
        stable_prefix_characters=characters,
        first_changed=first,
    )


def _inside(decision: Decision | None) -> bool:
    return decision is not None and decision.kind in ("kept", "shortened")


def _pairs(before: Sequence[Decision], after: Sequence[Decision]) -> Iterator[Change]:
    waiting: defaultdict[tuple[str, str], list[Decision]] = defaultdict(list)
    for one in reversed(before):
        waiting[_key(one)].append(one)
    for one in after:
        same = waiting[_key(one)]
        yield Change(before=same.pop() if same else None, after=one)
    for left in waiting.values():
        for one in reversed(left):
            yield Change(before=one, after=None)


def _key(decision: Decision) -> tuple[str, str]:
    return (decision.source, decision.id or f"\n{decision.preview}")


def _part_changes(previous: Account, report: Account) -> Iterator[PartChange]:
    before: dict[tuple[PartGroup, str], int]
    after: dict[tuple[PartGroup, str], int]
    before = {(part.group, part.name): part.tokens for part in previous.parts}
    after = {(part.group, part.name): part.tokens for part in report.parts}
    for key in {**after, **before}:
        group, name = key
        yield PartChange(name=name, group=group, before=before.get(key, 0), after=after.get(key, 0))


def _prefix(
    before: Sequence[Piece], after: Sequence[Piece], counter: Callable[[str], int] | None
) -> tuple[int, int, str | None]:
    """Find the shared beginning: its tokens, its characters, the label of the first difference."""
    if not before or not after:
        return 0, 0, None
    same = 0
    while same < min(len(before), len(after)) and before[same].digest == after[same].digest:
        same += 1
    tokens = sum(piece.tokens for piece in after[:same])
    characters = sum(piece.characters for piece in after[:same])
    if same == len(before) == len(after):
        return tokens, characters, None
    if same == len(after):
        return tokens, characters, before[same].label
    if same == len(before):
        return tokens, characters, after[same].label
    old, new = before[same].text, after[same].text
    shared = 0 if old is None or new is None else common_start(old, new)
    if shared and new is not None and counter is not None:
        # The whole pieces keep the figures they were counted with; only the rest is counted now.
        tokens += counter(new[:shared])
    return tokens, characters + shared, after[same].label


def _lines(diff: ReportDiff) -> Iterator[str]:
    if diff.unchanged:
        yield f"nothing changed: {diff.used_after:,} tokens used"
        return
    yield (
        f"{diff.used_before:,} -> {diff.used_after:,} tokens used "
        f"({diff.used_after - diff.used_before:+,})"
    )
    if diff.first_changed is not None:
        yield (
            f"stable prefix: {diff.stable_prefix_tokens:,} tokens, "
            f"{diff.stable_prefix_characters:,} characters; first change in {diff.first_changed}"
        )
    moved = [part for part in diff.parts if part.before != part.after]
    if moved:
        yield ""
        rows = [["part", "before", "after", "change"]]
        rows += [
            [part.name, f"{part.before:,}", f"{part.after:,}", f"{part.after - part.before:+,}"]
            for part in moved
        ]
        yield from table(rows, first_width=26)
    for title, changes in (
        ("in", diff.came_in),
        ("out", diff.went_out),
        ("size", diff.resized),
    ):
        if changes:
            yield ""
            yield from (_change_line(title, change) for change in changes)


def _change_line(title: str, change: Change) -> str:
    one = change.one
    why = ""
    if title == "out":
        why = f"  {change.after.reason}" if change.after else "  not offered"
    return f"{title:<5}{change.tokens:+,}  {one.label}{why}  {one.preview}".rstrip()
