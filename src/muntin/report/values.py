"""The values of a report: a decision, a source, an event, a piece of the result.

Plain frozen values, made by the builder and by `fit_messages` and read by everything that shows
them. Written to the wire they hold previews and digests, not the texts, so a report can be kept and
sent where the documents may not go.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING

from muntin.report.reasons import Reason
from muntin.text import grapheme_start

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from muntin.report.reasons import DecisionKind, PartGroup

__all__ = ("Cost", "Decision", "Event", "Part", "Piece", "SourceReport", "preview_of")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What happened to one candidate or message, and why.

    ```python
    from muntin.report import Decision

    one = Decision(
        index=3, source="rag", kind="dropped", reason="near_duplicate", tokens=41,
        nearest="rag:0", similarity=0.97, preview="Paris is the capital of France.",
    )
    print(one.kind, one.reason, one.kept_tokens)
    #> dropped near_duplicate 0
    ```
    """

    index: int
    """Position among what its source offered, from 0; in a conversation, among the messages."""
    source: str
    """Name of the source; in a conversation, the role of the message."""
    kind: DecisionKind
    """What happened to it."""
    reason: Reason
    """Why; each reason belongs to certain kinds only, which is checked."""
    tokens: int
    """Tokens of it as it was offered."""
    kept_tokens: int = 0
    """Tokens of it word for word in the result: `tokens` when kept, less when shortened, 0 when
    dropped or summarised (what a summary takes is in `AssemblyReport.written`)."""
    id: str = ""
    """Its id; "" when it has none."""
    score: float | None = None
    """Relevance it came with; None when unknown."""
    mmr_score: float | None = None
    """Marginal relevance at the moment it was picked or passed over; None when not computed."""
    nearest: str | None = None
    """The kept one it resembles most, or that it is linked with (`named_in_chosen`,
    `names_chosen`): its id, else `source:index`; None when there is none."""
    similarity: float | None = None
    """How much it resembles `nearest`, from -1 to 1; None when none was compared."""
    preview: str = ""
    """Its beginning on one line, at most 120 characters; see `preview_of`."""
    text: str | None = field(default=None, repr=False, compare=False)
    """Its whole text while the report of a fresh build holds it; None after it was written and
    read back. Never on the wire; `to_html(texts=True)` shows it."""

    @property
    def label(self) -> str:
        """Name it as other decisions do in `nearest`: its id, else `source:index`."""
        return self.id or f"{self.source}:{self.index}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceReport:
    """The account of one source: what it offered, what became of it, what it was granted and used.

    The counts are those of its decisions; `SourceReport.of` takes them from there.
    """

    name: str
    """Name of the source; in a conversation, a role."""
    offered: int
    """Candidates (messages) it offered."""
    placed: int
    """Of them, how many are in the result word for word."""
    shortened: int = 0
    """Of them, how many are in the result cut."""
    summarised: int = 0
    """Of them, how many live on in a recap or digest."""
    dropped: Mapping[Reason, int] = field(default_factory=dict[Reason, int], hash=False)
    """Of them, how many are not in the result, by reason; reasons that did not occur are absent."""
    quota: int | None = None
    """Tokens its ratio granted; `None` if there are no quotas, as in a conversation."""
    lent: int = 0
    """Tokens of its quota that went to other sources."""
    borrowed: int = 0
    """Tokens it got beyond its quota."""
    used: int = 0
    """Tokens of its items in the result, counted before joining."""

    @classmethod
    def of(
        cls,
        name: str,
        decisions: Iterable[Decision],
        *,
        used: int,
        quota: int | None = None,
        lent: int = 0,
        borrowed: int = 0,
    ) -> SourceReport:
        """Make the account of one source out of its own decisions.

        Args:
            name: Name of the source.
            decisions: The decisions of this source only.
            used: Tokens of its items in the result.
            quota: Tokens its ratio granted; `None` if there are no quotas.
            lent: Tokens of its quota that went to others.
            borrowed: Tokens it got beyond its quota.

        ```python
        from muntin.report import Decision, SourceReport

        row = SourceReport.of(
            "rag",
            [
                Decision(index=0, source="rag", kind="kept", reason="placed",
                         tokens=30, kept_tokens=30),
                Decision(index=1, source="rag", kind="dropped", reason="over_quota", tokens=90),
            ],
            used=30, quota=80,
        )
        print(row.offered, row.placed, row.dropped)
        #> 2 1 {'over_quota': 1}
        ```
        """
        kinds: Counter[DecisionKind] = Counter()
        dropped: Counter[Reason] = Counter()
        for decision in decisions:
            kinds[decision.kind] += 1
            if decision.kind == "dropped":
                dropped[decision.reason] += 1
        return cls(
            name=name,
            offered=kinds.total(),
            placed=kinds["kept"],
            shortened=kinds["shortened"],
            summarised=kinds["summarised"],
            dropped=dict(sorted(dropped.items())),
            quota=quota,
            lent=lent,
            borrowed=borrowed,
            used=used,
        )

    @property
    def duplicates(self) -> int:
        """Count the dropped duplicates of kept items."""
        return self.dropped.get("exact_duplicate", 0) + self.dropped.get("near_duplicate", 0)

    @property
    def dropped_total(self) -> int:
        """Count the dropped ones, whatever the reason."""
        return sum(self.dropped.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened to the whole, in the order it happened: a compaction, a digest."""

    what: str
    """A single word: compaction, digest, reduction, re-injection, recall, repair, borrowing ..."""
    before: int
    """Tokens of the whole before it."""
    after: int
    """Tokens of the whole after it."""
    covered: int = 0
    """Messages or candidates it touched."""
    detail: str = ""
    """One sentence for the reader; `""` if the kind needs no explanation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One stretch of the result, in its order, known by a digest: what a later report compares.

    Prompt caches reuse a prefix until its first changed token, so two reports are compared piece by
    piece. The pieces of a context, joined, are its text (each carries its own heading or blank
    line); the pieces of a conversation are its tools and messages.
    """

    label: str
    """What it is, for the reader: `system`, `memory 3`, `12 user` ..."""
    digest: str
    """Digest of its text; equal digests are equal text."""
    characters: int
    """Characters of its text."""
    tokens: int
    """Tokens of its text, counted alone."""
    text: str | None = field(default=None, repr=False, compare=False)
    """Its text, to find the first changed character; None in a report read from the wire."""

    @classmethod
    def of(cls, label: str, text: str, tokens: int) -> Piece:
        """Make a piece of a text with known tokens."""
        digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
        return cls(label=label, digest=digest, characters=len(text), tokens=tokens, text=text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of the window as the bar shows it."""

    name: str
    """What it is called: `system`, a source, `structure`, `idle`, `reserve` ..."""
    group: PartGroup
    """What it belongs to."""
    tokens: int
    """Its tokens; `structure` may be negative. Over all parts they sum to the window exactly."""
    width: int
    """Tokens it is drawn with, never negative; over all parts these sum to the window exactly too.
    Differs from `tokens` only when `structure` is negative: the tokens saved by merging are then
    taken off the parts that were counted alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one call is expected to cost, in the currency the prices were given in."""

    input: float
    """Tokens read at full price."""
    cached: float
    """Tokens read from a prompt cache."""
    output: float
    """Tokens written, if the whole reserve is written: the upper bound."""

    @property
    def total(self) -> float:
        """Add up the three."""
        return self.input + self.cached + self.output


def preview_of(text: str, *, limit: int = 120) -> str:
    r"""Show the beginning of a text on one line, at most `limit` characters.

    White space of any kind becomes one space; what is cut is marked by `…`; lone surrogates become
    U+FFFD, so that a preview can always be written.

    ```python
    from muntin.report import preview_of

    print(preview_of("Paris\n  is the capital of France.", limit=20))
    #> Paris is the capita…
    ```
    """
    head = text[: limit * 4]
    line = " ".join(head.split()).encode("utf-8", "replace").decode("utf-8")
    if len(line) <= limit and len(head) == len(text):
        return line
    return line[: grapheme_start(line, limit - 1)].rstrip() + "…"
