"""What an agent must not forget: goal, plan and progress, what it found, what failed, what is open.

The attributes are plain, so `state.plan = ["look", "fix"]` and `state.key_findings.append("...")`
work. What a string cannot carry is derived when it is read (`snapshot`): a step's id comes from its
text, its status from the names in `completed_steps` and `current_step`. So a mark belongs to a step
and not to its position, and inserting a step moves no mark.

It does not store itself: that is `store`. Nor does it put itself into a conversation: that is
`reinjection`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from muntin.counting import checked_counter
from muntin.prompts import DEFAULT_PROMPTS
from muntin.state.snapshot import Note, Snapshot, Status, Step, resolved, text_id

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from muntin.counting import AnyCounter
    from muntin.prompts import PromptRegistry

__all__ = ("AgentState", "Note", "Status", "Step")


@dataclass(eq=False)
class AgentState:
    """Hold the state of one agent's work.

    All attributes may be assigned and changed in place; strings and values mix freely.

    ```python
    from muntin import AgentState

    state = AgentState()
    state.goal = "Move the archive"
    state.plan = ["list the files", "copy them"]
    state.completed_steps = ["list the files"]
    state.plan.insert(0, "ask for a date")
    print(state.to_context())
    #> ## Current Goal
    #> Move the archive
    #>
    #> ## Plan
    #> [CURRENT] ask for a date
    #> [DONE] list the files
    #> [ ] copy them
    ```
    """

    goal: str = ""
    """What the agent is to achieve, in the words of the request."""
    plan: list[str | Step] = field(default_factory=list[str | Step])
    """The steps in order."""
    completed_steps: list[str] = field(default_factory=list[str])
    """Ids or texts of steps that are done. A name no step has is shown as done before the plan."""
    current_step: str | None = None
    """Id or text of the step being worked on; None, or a step that is done already, means the
    first one that is pending. A name no step has is shown as current after the plan, and then no
    step is."""
    key_findings: list[str | Note] = field(default_factory=list[str | Note])
    """What was found out, oldest first."""
    failed_approaches: list[str | Note] = field(default_factory=list[str | Note])
    """What was tried and must not be tried again, oldest first."""
    open_questions: list[str | Note] = field(default_factory=list[str | Note])
    """What is still to be found out, oldest first."""
    revision: int = 0
    """Number of the save this state was loaded from or last saved as; 0 was never saved. A store
    compares it to see whether another writer saved in between."""

    def snapshot(self) -> Snapshot:
        """Return the state as it is now, with every id and status resolved.

        Raises:
            ConfigurationError: An attribute holds what it cannot hold.
        """
        return resolved(
            goal=self.goal,
            plan=self.plan,
            completed_steps=self.completed_steps,
            current_step=self.current_step,
            key_findings=self.key_findings,
            failed_approaches=self.failed_approaches,
            open_questions=self.open_questions,
            revision=self.revision,
        )

    @classmethod
    def of(cls, snapshot: Snapshot) -> AgentState:
        """Make a state of a snapshot, in strings wherever a string holds all of it."""
        state = cls(
            goal=snapshot.goal,
            key_findings=[note.plain for note in snapshot.findings],
            failed_approaches=[note.plain for note in snapshot.failures],
            open_questions=[note.plain for note in snapshot.questions],
            revision=snapshot.revision,
        )
        state._settle(snapshot)
        return state

    def steps(self) -> tuple[Step, ...]:
        """Return the plan with every id and status; where none is current the first pending is."""
        snapshot = self.snapshot()
        return tuple(
            replace(step, status="current") if at == snapshot.at else step
            for at, step in enumerate(snapshot.steps)
        )

    def mark(self, step: str, status: Status) -> None:
        """Set the status of one step, in place.

        Args:
            step: Its id or its text.
            status: The new status. "current" ends that of the step that had it.

        Raises:
            ConfigurationError: No step has this name, or the status is unknown.

        ```python
        from muntin import AgentState

        state = AgentState(plan=["list the files", "change it"])
        state.mark("list the files", "done")
        print(state.completed_steps, [step.status for step in state.steps()])
        #> ['list the files'] ['done', 'current']
        ```
        """
        self._settle(self.snapshot().marked(step, status))

    def is_empty(self) -> bool:
        """Return whether there is nothing in it to show a model."""
        return self.snapshot().is_empty

    def to_context(
        self,
        max_tokens: int | None = None,
        *,
        counter: AnyCounter = None,
        model: object = None,
        prompts: PromptRegistry = DEFAULT_PROMPTS,
    ) -> str:
        """Write the state as headed sections for a model.

        Empty sections and texts of white space alone are left out. When it must be shortened the
        goal, the current step and what failed stay longest, older notes go before newer ones, and
        marks count those that are missing. No text in it can start a line like a heading or a mark.

        Args:
            max_tokens: Tokens the text may take by `counter`; None writes everything.
            counter: Counts tokens: a function of a text, a model, or the name of a model or an
                encoding. None takes `model`'s counter, else `count_tokens`.
            model: A model or its name, in place of `counter`.
            prompts: The words of headings and marks.

        Raises:
            ConfigurationError: `max_tokens` is below 1, or an attribute holds what it cannot hold.
            ContextWindowExceeded: Not one character fits.
        """
        from muntin.state.render import state_text

        count = checked_counter(counter, model=model)
        return state_text(self.snapshot(), max_tokens, counter=count, prompts=prompts)

    def merged_with(self, other: AgentState) -> AgentState:
        """Return this state with what another writer added.

        Steps, findings, failures and questions are united by id, this state's order first. Where
        both have one, this state's text holds, and the status that is further along. This
        state's goal and current step hold unless it has none. Nothing is removed: what one writer
        deleted and the other still has is there again.

        ```python
        from muntin import AgentState

        mine = AgentState(key_findings=["the seat is free"])
        print(mine.merged_with(AgentState(key_findings=["the fare is basic"])).key_findings)
        #> ['the seat is free', 'the fare is basic']
        ```
        """
        return AgentState.of(self.snapshot().merged_with(other.snapshot()))

    def to_dict(self) -> dict[str, Any]:
        """Return the state as plain JSON values in the format of `state_format`.

        Raises:
            ConfigurationError: An attribute holds something that cannot be saved.
        """
        from muntin.state.codec import to_saved

        return to_saved(self.snapshot())

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> AgentState:
        """Read a state back, strictly.

        Raises:
            StateVersionError: It was written by another version of the format.
            StateCorruptError: A key is missing, unknown or of the wrong type.
        """
        from muntin.state.codec import from_saved

        return cls.of(from_saved(data))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AgentState) and self.snapshot() == other.snapshot()

    __hash__ = None  # pyright: ignore[reportAssignmentType] - mutable, so not hashable

    def _settle(self, snapshot: Snapshot) -> None:
        """Write resolved steps back, in strings wherever a string holds all of it."""
        names = Counter(name for step in snapshot.steps for name in {step.id, step.text})
        self.completed_steps = list(snapshot.completed_elsewhere)
        self.current_step = snapshot.current_elsewhere
        self.plan = []
        for step in snapshot.steps:
            plain = names[step.text] == 1 and step.id == text_id(step.text)
            name = step.text if plain else step.id
            by_name = bool(name) and names[name] == 1 and step.status in ("done", "current")
            if by_name and step.status == "done":
                self.completed_steps.append(name)
            elif by_name:
                self.current_step = name
            kept = replace(step, status="pending") if by_name else step
            self.plan.append(step.text if plain and kept.status == "pending" else kept)
