"""Files are replaced whole, with the permissions a user expects of them."""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from muntin import StateStore
from muntin.runtime.files import keep_copy, replace_file, replacing, write_file
from report_samples import context_report

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    Writer = Callable[[Path], object]

_WRITERS: dict[str, Writer] = {
    "replace_file": lambda path: replace_file(path, b"new"),
    "write_file": lambda path: write_file(path, b"new"),
    "report.to_html": lambda path: context_report().to_html(path),
}
WRITERS = pytest.mark.parametrize("write", _WRITERS.values(), ids=_WRITERS)


@contextmanager
def umask(mask: int) -> Generator[None]:
    """Let new files of this process have only what `mask` leaves."""
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mask", [0o022, 0o027, 0o077])
@WRITERS
def test_a_new_file_gets_what_open_would_give_it(mask: int, write: Writer, tmp_path: Path) -> None:
    """A report only its writer can read cannot be served, nor shared state be read by a group."""
    with umask(mask):
        (tmp_path / "plain").open("w").close()
        write(tmp_path / "new")

    assert mode_of(tmp_path / "new") == mode_of(tmp_path / "plain")


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
@WRITERS
def test_a_file_that_is_replaced_keeps_its_permissions(
    mode: int, write: Writer, tmp_path: Path
) -> None:
    """What a user made private must not be public after the next save."""
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(mode)
    with umask(0o022):
        write(path)

    assert mode_of(path) == mode
    assert path.read_text() != "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_private_file_is_private_before_its_new_content_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Permissions that come after the content leave a moment in which anybody can read it."""
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o600)
    seen: list[int] = []

    def look(handle: int) -> None:
        seen.append(stat.S_IMODE(os.fstat(handle).st_mode))

    monkeypatch.setattr(os, "fsync", look)
    with umask(0o022):
        replace_file(path, b"new")

    assert seen[0] == 0o600


def test_copies_where_no_links_are_known_are_as_private_as_the_original(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backup anybody can read gives away the state its owner had protected."""

    def fails(*names: object) -> None:
        raise OSError("no links here")

    monkeypatch.setattr(os, "link", fails)
    state, backup = tmp_path / "state.json", tmp_path / "state.json.bak"
    state.write_text("secret")
    state.chmod(0o600)
    with umask(0o022):
        keep_copy(state, backup)

    assert (backup.read_text(), mode_of(backup)) == ("secret", 0o600)


def test_a_new_name_can_take_the_permissions_of_another_file(tmp_path: Path) -> None:
    """A state restored from its private backup is private again."""
    backup = tmp_path / "backup"
    backup.write_text("secret")
    backup.chmod(0o600)
    with umask(0o022):
        replace_file(tmp_path / "state", backup.read_bytes(), like=backup)

    assert mode_of(tmp_path / "state") == 0o600


def test_saved_state_is_readable_for_those_the_process_lets_read(tmp_path: Path) -> None:
    """PLAN.md is for people; a colleague on the same machine is one."""
    with umask(0o022):
        StateStore.directory(tmp_path).update(lambda state: setattr(state, "goal", "ship"))

    assert {mode_of(path) for path in tmp_path.iterdir()} == {0o644}


@WRITERS
def test_a_full_disk_leaves_the_old_file_and_nothing_else(
    write: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a page opens in a browser and looks whole."""

    def fails(handle: int) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "file"
    path.write_text("old")
    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(OSError, match="No space left"):
        write(path)

    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@WRITERS
def test_a_missing_folder_is_told_by_the_name_that_was_given(write: Writer, tmp_path: Path) -> None:
    """The name of a temporary file says nothing to who reads the error."""
    path = tmp_path / "missing" / "file"
    with pytest.raises(FileNotFoundError) as caught:
        write(path)

    assert caught.value.filename == str(path)


def test_several_files_are_replaced_together_or_not_at_all(tmp_path: Path) -> None:
    """A plan of today beside a state of yesterday would mislead whoever resumes."""
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("old")
    with pytest.raises(RuntimeError), replacing({one: b"new", two: b"new"}):
        raise RuntimeError("the block failed")

    assert one.read_text() == "old"
    assert not two.exists()


def test_a_link_keeps_pointing_where_it_did(tmp_path: Path) -> None:
    """`report.html -> runs/today.html` is how people publish the newest."""
    link, target = tmp_path / "report.html", tmp_path / "today.html"
    target.write_text("old")
    link.symlink_to(target)
    write_file(link, b"new")

    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_what_is_no_regular_file_is_written_through() -> None:
    """Replacing /dev/null by a file would fill the disk of a whole machine."""
    null = Path(os.devnull)
    write_file(null, b"anything")

    assert not null.is_file()
