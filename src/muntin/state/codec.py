"""The saved form of an agent's state: a documented JSON object with a version of its own.

```text
{"schema_version": 1, "revision": 3, "goal": "...",
 "plan": [{"id": "...", "text": "...", "status": "pending|current|done|failed|skipped"}],
 "completed_steps": [names no step has], "current_step": name no step has, or null,
 "key_findings": [{"id": "...", "text": "..."}], "failed_approaches": [...],
 "open_questions": [...]}
```

Reading is strict: an unknown key, a missing one or a wrong type is refused, so that a state is
whole or not there. A file without a version whose plan and notes are plain strings (the attributes
written out as they are) is read as version 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from muntin.errors import StateCorruptError, StateVersionError
from muntin.state.snapshot import Note, Snapshot, Status, Step, resolved

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("SCHEMA_VERSION", "from_saved", "to_saved")

SCHEMA_VERSION = 1
_ModelT = TypeVar("_ModelT", bound=BaseModel)
_STRICT = ConfigDict(extra="forbid", strict=True)


class SavedStep(BaseModel):
    """One step of the plan."""

    model_config = _STRICT
    id: str = Field(min_length=1)
    text: str
    status: Status


class SavedNote(BaseModel):
    """One finding, failure or question."""

    model_config = _STRICT
    id: str = Field(min_length=1)
    text: str


class SavedState(BaseModel):
    """The whole of version 1."""

    model_config = _STRICT
    schema_version: int
    revision: int = Field(ge=0)
    goal: str
    plan: list[SavedStep]
    completed_steps: list[str]
    current_step: str | None
    key_findings: list[SavedNote]
    failed_approaches: list[SavedNote]
    open_questions: list[SavedNote]


class PlainState(BaseModel):
    """Version 0: the attributes of a plain object."""

    model_config = _STRICT
    goal: str
    plan: list[str]
    completed_steps: list[str]
    current_step: str | None
    key_findings: list[str]
    failed_approaches: list[str]
    open_questions: list[str]


def to_saved(snapshot: Snapshot) -> dict[str, Any]:
    """Return a snapshot as plain JSON values."""
    return {
        "schema_version": SCHEMA_VERSION,
        "revision": snapshot.revision,
        "goal": snapshot.goal,
        "plan": [
            {"id": step.id, "text": step.text, "status": step.status} for step in snapshot.steps
        ],
        "completed_steps": list(snapshot.completed_elsewhere),
        "current_step": snapshot.current_elsewhere,
        "key_findings": _saved_notes(snapshot.findings),
        "failed_approaches": _saved_notes(snapshot.failures),
        "open_questions": _saved_notes(snapshot.questions),
    }


def from_saved(data: Mapping[str, Any]) -> Snapshot:
    """Read a snapshot back, strictly.

    Raises:
        StateVersionError: It was written by another version of the format.
        StateCorruptError: A key is missing, unknown or of the wrong type.
    """
    if not isinstance(cast("object", data), dict):
        raise StateCorruptError(f"a saved state is a JSON object, not a {type(data).__name__}")
    if "schema_version" not in data:
        return resolved(**_checked(PlainState, data).model_dump(), revision=0)
    version: object = data["schema_version"]
    if version != SCHEMA_VERSION or version is True:
        raise StateVersionError(
            f"the state has schema_version {version!r}, this version of muntin reads "
            f"{SCHEMA_VERSION}: upgrade muntin, or save the state again with the one that wrote it"
        )
    saved = _checked(SavedState, data)
    return Snapshot(
        goal=saved.goal,
        steps=tuple(Step(step.text, step.status, step.id) for step in saved.plan),
        completed_elsewhere=tuple(saved.completed_steps),
        current_elsewhere=saved.current_step,
        findings=_notes(saved.key_findings),
        failures=_notes(saved.failed_approaches),
        questions=_notes(saved.open_questions),
        revision=saved.revision,
    )


def _saved_notes(notes: tuple[Note, ...]) -> list[dict[str, str]]:
    return [{"id": note.id, "text": note.text} for note in notes]


def _notes(saved: list[SavedNote]) -> tuple[Note, ...]:
    return tuple(Note(note.text, note.id) for note in saved)


def _checked(model: type[_ModelT], data: Mapping[str, Any]) -> _ModelT:
    try:
        return model.model_validate(data)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, detail['loc']))}: {detail['msg'].lower()}"
            for detail in error.errors(include_url=False)[:5]
        )
        raise StateCorruptError(f"the saved state is not what it should be: {problems}") from None
