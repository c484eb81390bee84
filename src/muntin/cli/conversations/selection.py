"""Which files a list of files, folders and patterns means, and where their results go."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from muntin.cli.failures import Failure
from muntin.cli.terminal.files import is_pipe

__all__ = ("ChosenFile", "conversation_files", "is_one_file")

_SUFFIXES = frozenset({".json", ".jsonl", ".ndjson", ".traj", ".txt", ".md"})
"""Endings of files that a folder is searched for, also with `.gz` after them."""
_HIDDEN = frozenset({".aider.chat.history.md"})
"""Hidden files that hold conversations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenFile:
    """Hold one file that is meant."""

    path: Path
    """Where it is."""
    inside: Path
    """Where its result goes in a folder of results."""
    was_named: bool
    """Whether it was named or matched a pattern; else it was found in a folder."""


def is_one_file(paths: Sequence[Path]) -> bool:
    """Return whether the paths mean one file or stdin, without a folder or pattern among them."""
    return len(paths) == 1 and (
        is_pipe(paths[0]) or (not paths[0].is_dir() and not _is_pattern(paths[0]))
    )


def _is_pattern(path: Path) -> bool:
    return glob.has_magic(str(path)) and not path.exists()


def _matches(pattern: Path) -> list[str]:
    return glob.glob(str(pattern), recursive=True)  # noqa: PTH207 - `Path.glob` is relative


def conversation_files(paths: Sequence[Path]) -> tuple[list[ChosenFile], list[Path]]:
    """Find the files that are meant, each once, in order.

    Returns:
        The files, and the paths that are not there.

    Raises:
        Failure: stdin is one of several, or two files would have their results in one place.
    """
    found: dict[Path, ChosenFile] = {}
    missing: list[Path] = []
    for path in paths:
        if is_pipe(path):
            raise Failure("stdin cannot be one of several files: give it alone")
        if path.is_dir():
            for file in _in_folder(path):
                one = ChosenFile(path=file, inside=file.relative_to(path), was_named=False)
                found.setdefault(file.resolve(), one)
            continue
        matches = [path]
        if _is_pattern(path):
            matches = [Path(one) for one in sorted(_matches(path))]
            matches = [one for one in matches if one.is_file()]
            if not matches:
                missing.append(path)
        for one in matches:
            chosen = ChosenFile(path=one, inside=Path(one.name), was_named=True)
            found.setdefault(one.resolve(), chosen)
    targets: dict[Path, Path] = {}
    for one in found.values():
        other = targets.setdefault(one.inside, one.path)
        if other != one.path:
            raise Failure(
                f"{other} and {one.path} would both be written to {one.inside}: name the folder "
                f"above them instead"
            )
    return list(found.values()), missing


def _in_folder(root: Path) -> list[Path]:
    files: list[Path] = []
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        files += (Path(folder) / name for name in sorted(names) if _is_wanted(name))
    return files


def _is_wanted(name: str) -> bool:
    if name.startswith("."):
        return name in _HIDDEN
    plain = name.removesuffix(".gz")
    return Path(plain).suffix.lower() in _SUFFIXES
