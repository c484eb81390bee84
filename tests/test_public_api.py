"""The public list is the promise: sorted, complete, importable, documented."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from types import ModuleType
from typing import cast

import pytest

import muntin
from muntin import errors

# What users and the reference documents type. A name may join; none of these may leave.
PROMISED = {name for name in errors.__all__ if name[0].isupper()} | {
    "AgentState",
    "AnchoredCounter",
    "AssembledContext",
    "AssemblyReport",
    "CallableSource",
    "Candidate",
    "CompactionConfig",
    "ContextBudget",
    "ContextBuilder",
    "ContextConfig",
    "ContextRetriever",
    "ContextSource",
    "ExtractiveSummarizer",
    "FittedMessages",
    "HistoryCompactor",
    "Layout",
    "Message",
    "MuntinConfig",
    "NEWEST",
    "PromptRegistry",
    "REDUCERS",
    "ReducerConfig",
    "RetrievalResult",
    "Scope",
    "Selection",
    "StateStore",
    "TiktokenCounter",
    "TokenCounter",
    "ToolResultStore",
    "Window",
    "WindowBudget",
    "WindowBudgetConfig",
    "afit_messages",
    "count_message",
    "count_messages",
    "count_tokens",
    "counter_for",
    "estimate_tokens",
    "fit_messages",
    "mmr_select",
    "read_tool_result",
    "reduce_agent",
    "reduce_plan",
    "reduce_reflection",
    "reinject",
    "repair",
    "resolve_window",
    "select",
    "tokens_of",
    "truncate_to_tokens",
    "truncate_tool_result",
}

SCRIPTS = frozenset({"muntin.__main__"})
"""Modules that are run, not imported from."""

PUBLIC: tuple[str, ...] = tuple(getattr(muntin, "__all__", ()))


def _modules() -> list[str]:
    found = pkgutil.walk_packages(muntin.__path__, "muntin.")
    return sorted(
        module.name
        for module in found
        if not any(part.startswith("_") for part in module.name.split("."))
    )


def test_every_promised_name_is_exported() -> None:
    """An example typed from the documents must not meet an ImportError."""
    missing = PROMISED - set(PUBLIC)

    assert sorted(missing) == []


def test_the_public_list_is_sorted_and_without_repeats() -> None:
    """Two people who add a name at once must meet in a merge, not in a release."""
    assert list(PUBLIC) == sorted(set(PUBLIC), key=_place)


def _place(name: str) -> tuple[int, str]:
    # Constants, then classes, then functions: the order that the formatter keeps.
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_exported_name_can_be_imported(name: str) -> None:
    """A stale export breaks `from muntin import *` for everybody."""
    assert getattr(muntin, name, None) is not None


def test_nothing_public_is_left_off_the_list() -> None:
    """What `dir(muntin)` shows is what users will use, so it has to be meant."""
    visible = {
        name
        for name in dir(muntin)
        if not name.startswith("_") and not isinstance(getattr(muntin, name), ModuleType)
    }

    assert sorted(visible - set(PUBLIC) - {"annotations", "TYPE_CHECKING"}) == []


@pytest.mark.parametrize("name", sorted(PROMISED - {"REDUCERS", "TokenCounter"}))
def test_every_promised_name_explains_itself(name: str) -> None:
    """`help(name)` is the first documentation anybody opens."""
    documented: object = getattr(muntin, name)

    assert inspect.getdoc(documented)


def test_the_old_name_of_a_candidate_is_the_same_class() -> None:
    """Code written for the reference documents constructs `RetrievalResult`."""
    assert muntin.RetrievalResult is muntin.Candidate


def _only_holds_modules(module: ModuleType) -> bool:
    """Return whether a folder only groups modules and has nothing of its own to export."""
    own = {name for name in vars(module) if not name.startswith("__")} - {"annotations"}
    return all(isinstance(getattr(module, name), ModuleType) for name in own)


@pytest.mark.parametrize("name", _modules())
def test_every_module_lists_what_it_offers(name: str) -> None:
    """A module without `__all__` exports its imports; one with a stale entry breaks `import *`."""
    module = importlib.import_module(name)
    exported = cast("tuple[str, ...]", getattr(module, "__all__", ()))

    assert module.__doc__
    assert exported or name in SCRIPTS or _only_holds_modules(module)
    assert isinstance(exported, tuple)
    assert [entry for entry in exported if not hasattr(module, entry)] == []
