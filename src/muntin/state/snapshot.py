"""One state of an agent's work as a value: every step and note with its id, every status resolved.

An `AgentState` is what an agent writes into; a `Snapshot` is its content at one moment. Saving,
merging and writing for a model all work on snapshots, so that names, texts and marks are made
sense of in one place only: here.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Literal, cast

from muntin.errors import ConfigurationError
from muntin.text import clean_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ("STATUSES", "Note", "Snapshot", "Status", "Step", "resolved", "text_id")

Status = Literal["pending", "current", "done", "failed", "skipped"]
"""Status of a step."""

STATUSES: tuple[Status, ...] = ("pending", "current", "skipped", "failed", "done")
"""From the least to the furthest: where two writers disagree, the later one of these is true."""


@dataclass(frozen=True, slots=True)
class Step:
    """Hold one step of a plan."""

    text: str
    """What is to be done."""
    status: Status = "pending"
    """Its status. A pending step may still be done or current by name, see `AgentState`."""
    id: str = ""
    """Name that stays when the text changes; empty derives it from the text."""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Note:
    """Hold one finding, one failed approach or one question."""

    text: str
    """What was found, tried or asked."""
    id: str = ""
    """Name by which two writers' notes are merged; empty derives it from the text."""

    def __str__(self) -> str:
        return self.text

    @property
    def plain(self) -> str | Note:
        """The text alone where the id follows from it."""
        return self.text if self.id == text_id(self.text) else self


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Hold a state with everything resolved that names and texts leave open."""

    goal: str = ""
    """What is to be achieved."""
    steps: tuple[Step, ...] = ()
    """The plan, with ids and statuses; at most one is current, and only if it was marked so."""
    completed_elsewhere: tuple[str, ...] = ()
    """Names that are done and that no step has."""
    current_elsewhere: str | None = None
    """The current step's name when no step has it; None otherwise."""
    findings: tuple[Note, ...] = ()
    """What was found out, oldest first, each id once."""
    failures: tuple[Note, ...] = ()
    """What must not be tried again, oldest first, each id once."""
    questions: tuple[Note, ...] = ()
    """What is open, oldest first, each id once."""
    revision: int = 0
    """Number of the save this goes back to; 0 for none."""

    @property
    def at(self) -> int | None:
        """Place of the step to work on: the current one, else the first that is pending.

        A step without words is never the first that is pending: a plan cut at its line breaks has
        such steps, and there is nothing to do for them.
        """
        states = [step.status for step in self.steps]
        if "current" in states:
            return states.index("current")
        if self.current_elsewhere:
            return None
        open_steps = (
            at
            for at, step in enumerate(self.steps)
            if step.status == "pending" and step.text.strip()
        )
        return next(open_steps, None)

    @property
    def _current(self) -> str:
        """Id of the step that was marked as current, or its name where no step has it."""
        at = next((step.id for step in self.steps if step.status == "current"), "")
        return at or self.current_elsewhere or ""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show a model: white space alone counts as nothing."""
        notes = chain(self.steps, self.findings, self.failures, self.questions)
        names = (self.goal, *self.completed_elsewhere, self.current_elsewhere or "")
        return not any(text.strip() for text in chain(names, (note.text for note in notes)))

    def merged_with(self, other: Snapshot) -> Snapshot:
        """Unite two snapshots by id; where they differ, this one's text and order hold."""
        theirs = {step.id: step for step in other.steps}
        mine = {step.id for step in self.steps}
        steps = [
            replace(step, status=_further(step, theirs.get(step.id, step))) for step in self.steps
        ]
        steps += [step for step in other.steps if step.id not in mine]
        current = self._current or other._current
        # What is elsewhere for one of them may be a step of the other.
        completed = [*self.completed_elsewhere, *other.completed_elsewhere]
        steps, done_elsewhere, current_elsewhere = _by_name(steps, completed, current)
        return Snapshot(
            goal=self.goal or other.goal,
            steps=steps,
            completed_elsewhere=done_elsewhere,
            current_elsewhere=current_elsewhere,
            findings=_united("findings", self.findings, other.findings),
            failures=_united("failures", self.failures, other.failures),
            questions=_united("questions", self.questions, other.questions),
            revision=max(self.revision, other.revision),
        )

    def marked(self, name: str, status: Status) -> Snapshot:
        """Return a copy in which the step of this id or text has a status.

        Raises:
            ConfigurationError: No step has this name, or the status is unknown.
        """
        if status not in STATUSES:
            raise ConfigurationError(f"a step is one of {', '.join(STATUSES)}; not {status!r}")
        at = next((at for at, step in enumerate(self.steps) if name in (step.id, step.text)), None)
        if at is None:
            known = "; ".join(f"{step.id} {step.text[:40]!r}" for step in self.steps)
            raise ConfigurationError(f"no step is called {name!r}. There are: {known or 'none'}")
        steps = list(self.steps)
        steps[at] = replace(steps[at], status=status)
        current = self.current_elsewhere
        if status == "current":
            current = None
            steps = list(_with_current(steps, [steps[at].id]))
        return replace(self, steps=tuple(steps), current_elsewhere=current)


def text_id(text: str) -> str:
    """Derive the id of a step or note from its text: 48 bits of its SHA-256."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def resolved(
    *,
    goal: str,
    plan: list[str | Step],
    completed_steps: list[str],
    current_step: str | None,
    key_findings: list[str | Note],
    failed_approaches: list[str | Note],
    open_questions: list[str | Note],
    revision: int,
) -> Snapshot:
    """Make sense of the attributes of an `AgentState`.

    Raises:
        ConfigurationError: One of them holds what it cannot hold.
    """
    completed = [clean_text(name) for name in _strings("completed_steps", completed_steps)]
    current = clean_text(_text("current_step", current_step or ""))
    steps, done_elsewhere, current_elsewhere = _by_name(_steps(plan), completed, current)
    return Snapshot(
        goal=clean_text(_text("goal", goal)),
        steps=steps,
        completed_elsewhere=done_elsewhere,
        current_elsewhere=current_elsewhere,
        findings=_united("key_findings", key_findings),
        failures=_united("failed_approaches", failed_approaches),
        questions=_united("open_questions", open_questions),
        revision=revision,
    )


def _by_name(
    steps: Sequence[Step], completed: Sequence[str], current: str
) -> tuple[tuple[Step, ...], tuple[str, ...], str | None]:
    """Give steps the statuses that names give them; return the names that no step has, too.

    A step that is current by its own status cedes to one that is by name, in the plan or not.
    """
    left = Counter(completed)
    done = [replace(step, status="done") if _take(left, step) else step for step in steps]
    known = {name for step in steps for name in (step.id, step.text)}
    elsewhere = tuple(name for name in dict.fromkeys(completed) if name not in known)
    named = [step for step in done if current and current in (step.id, step.text)]
    first = [step.id for step in named if step.status in ("pending", "current")]
    first += [step.id for step in done if step.status == "current"]
    if current and current not in known and current not in elsewhere:
        return _with_current(done, []), elsewhere, current
    return _with_current(done, first), elsewhere, None


def _steps(plan: object) -> list[Step]:
    """Give every step an id: its own, or one derived from its text, made unique by a number."""
    values: list[Step] = []
    for step in _listed("plan", plan):
        if not isinstance(step, (str, Step)):
            raise ConfigurationError(f"a plan holds strings or Steps, not {step!r:.60}")
        text = clean_text(_text("the text of a step", step if isinstance(step, str) else step.text))
        given = step if isinstance(step, Step) else Step(text)
        if given.status not in STATUSES:
            raise ConfigurationError(
                f"a step is one of {', '.join(STATUSES)}; not {given.status!r}"
            )
        values.append(replace(given, text=text))
    given_ids = {step.id for step in values}
    used: Counter[str] = Counter()
    taken: set[str] = set()
    steps: list[Step] = []
    for step in values:
        key = unique = step.id or text_id(step.text)
        # An id that was given belongs to the first step that gives it.
        while unique in taken or (unique in given_ids and unique != step.id):
            used[key] += 1
            unique = f"{key}-{used[key] + 1}"
        taken.add(unique)
        steps.append(replace(step, id=unique))
    return steps


def _united(name: str, *lists: Iterable[object]) -> tuple[Note, ...]:
    """Give every note its id, and keep the first of each id."""
    found: dict[str, Note] = {}
    for notes in lists:
        for note in _listed(name, notes):
            if not isinstance(note, (str, Note)):
                raise ConfigurationError(f"{name} holds strings or Notes, not {note!r:.60}")
            text = clean_text(str(note))
            key = (note.id if isinstance(note, Note) else "") or text_id(text)
            found.setdefault(key, Note(text, key))
    return tuple(found.values())


def _with_current(steps: list[Step], preferred: list[str]) -> tuple[Step, ...]:
    """Let the first preferred step that is still open be current, and no other."""
    by_id = {step.id: step for step in steps}
    chosen = next((key for key in preferred if by_id[key].status in ("pending", "current")), None)
    return tuple(
        replace(step, status="current" if step.id == chosen else "pending")
        if step.status == "current" or step.id == chosen
        else step
        for step in steps
    )


def _further(mine: Step, theirs: Step) -> Status:
    later = STATUSES.index(mine.status) < STATUSES.index(theirs.status)
    return theirs.status if later else mine.status


def _take(names: Counter[str], step: Step) -> bool:
    """Use up one mention of a step; return whether there was one."""
    for name in (step.id, step.text):
        if names[name] > 0:
            names[name] -= 1
            return True
    return False


def _listed(name: str, values: object) -> Iterable[object]:
    """Refuse a string where a list of strings is meant: it would become its letters."""
    if isinstance(values, (list, tuple)):
        return cast("Iterable[object]", values)
    raise ConfigurationError(f"{name} must be a list, not {type(values).__name__} ({values!r:.60})")


def _strings(name: str, values: object) -> list[str]:
    return [_text(f"a name in {name}", value) for value in _listed(name, values)]


def _text(name: str, value: object) -> str:
    if isinstance(value, str):
        return value
    raise ConfigurationError(f"{name} must be a string, not {type(value).__name__} ({value!r:.60})")
