"""Replace a file whole or not at all, and lock it against a second writer.

A process can be killed, and a disk can fill, between any two bytes. So bytes are written to a
temporary file in the folder of the target, forced to the disk and renamed in one step: a reader
gets the old bytes or the new ones. The lock belongs to the open file, not to its existence, so a
killed process leaves no stale lock.

A file that is replaced keeps its permissions; a new one gets those that `open` would give it.

It raises plain `OSError`s; callers translate them.
"""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path
    from typing import IO, BinaryIO

__all__ = (
    "discard_leftovers",
    "exclusive",
    "keep_copy",
    "replace_file",
    "replacing",
    "write_file",
    "writing",
)

_SUFFIX = ".tmp"
_POLL_SECONDS = 0.005
"""Pause between two attempts to take a lock."""


def write_file(path: Path, data: bytes) -> None:
    """Write a file as `open(path, "wb")` would, but whole or not at all.

    A link keeps pointing where it did. What is not a regular file (a pipe, `/dev/null`) cannot be
    replaced and is written through.

    Args:
        path: The file; its folder must exist.
        data: All of its content.

    Raises:
        OSError: The content could not be written; a regular file is as it was.
    """
    target = path.resolve()
    if target.exists() and not target.is_file():
        target.write_bytes(data)
    else:
        replace_file(target, data)


@contextmanager
def writing(path: Path) -> Generator[BinaryIO]:
    """Give a regular file new content piece by piece; it takes effect when the block ends.

    Should the block raise, the file is as it was. A link keeps pointing where it did.

    Args:
        path: The file; its folder must exist. It must be a regular file or not exist.

    Raises:
        OSError: The content could not be written; the file is as it was.
    """
    target = path.resolve()
    name, file = _new_beside(target)
    try:
        with file:
            mode = _mode_of(target)
            if mode is not None:
                with suppress(PermissionError):  # some file systems know no permissions
                    name.chmod(mode)
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, target)  # noqa: PTH105 - the one call that is atomic on every system
    finally:
        name.unlink(missing_ok=True)
    _sync_folder(target.parent)


def replace_file(path: Path, data: bytes, *, like: Path | None = None) -> None:
    """Give a file new content in one step.

    Args:
        path: The file; its folder must exist.
        data: All of the new content.
        like: A file whose permissions `path` gets if it is new; `None` gives it those of any new
            file of this process.

    Raises:
        OSError: The content could not be written; the file is as it was.
    """
    with _replacing({path: data}, like):
        pass


def replacing(contents: Mapping[Path, bytes]) -> AbstractContextManager[None]:
    """Write new contents for several files of one folder; rename them into place at the end.

    All that usually fails, a full disk above all, fails before the `with` block runs. Should it
    raise, nothing is replaced.

    Args:
        contents: All of the new content of each file, in the order they are to be replaced.

    Raises:
        OSError: Some content could not be written; every file is as it was.
    """
    return _replacing(contents, None)


@contextmanager
def _replacing(contents: Mapping[Path, bytes], like: Path | None) -> Generator[None]:
    written: dict[Path, Path] = {}
    try:
        for path, data in contents.items():
            written[_written(path, data, like)] = path
        yield
        for name, path in written.items():
            os.replace(name, path)  # noqa: PTH105 - the one call that is atomic on every system
    finally:
        for name in written:
            name.unlink(missing_ok=True)
    for folder in {path.parent for path in contents}:
        _sync_folder(folder)


def discard_leftovers(path: Path) -> None:
    """Remove temporary files that killed writers left. The caller must hold the folder's lock."""
    for name in path.parent.glob(f".{path.name}.*{_SUFFIX}"):
        with suppress(FileNotFoundError):
            name.unlink()


def keep_copy(path: Path, copy: Path) -> None:
    """Give the present content of a file a second name, replacing what had it.

    The caller holds the lock of the folder. It costs no write where the file system knows hard
    links: `replace_file` never writes into an existing file, so the second name keeps what was.

    Raises:
        OSError: The copy could not be made; what was there before is still there.
    """
    link = copy.with_name(f".{copy.name}.{os.getpid()}{_SUFFIX}")
    try:
        with suppress(FileNotFoundError):
            link.unlink()  # left by a killed process of the same number
        os.link(path, link)
    except OSError:
        replace_file(copy, path.read_bytes(), like=path)
        return
    os.replace(link, copy)  # noqa: PTH105 - the one call that is atomic on every system


@contextmanager
def exclusive(path: Path, *, timeout: float) -> Generator[None]:
    """Hold a lock between threads and processes for the length of a `with` block.

    Args:
        path: The lock file. It is made when missing and never removed, and so is a second one
            next to it, `*.queue`.
        timeout: Seconds to wait for another holder.

    Raises:
        TimeoutError: Another writer held the lock for the whole timeout.
        OSError: The lock file cannot be opened.
    """
    import time

    until = time.monotonic() + timeout
    queue = path.with_name(f"{path.name}.queue")
    with path.open("ab") as file:
        # One writer waits for the lock, the others for its queue, so that a busy writer, which has
        # to queue again, cannot starve the others.
        with queue.open("ab") as place:
            _wait(place, path, until, timeout)
            try:
                _wait(file, path, until, timeout)
            finally:
                _unlock(place)
        try:
            yield
        finally:
            _unlock(file)


def _wait(file: IO[bytes], path: Path, until: float, timeout: float) -> None:
    import time

    while not _try_lock(file):
        if time.monotonic() >= until:
            raise TimeoutError(f"{path} has been locked by another writer for {timeout:g} s")
        time.sleep(_POLL_SECONDS)


def _written(path: Path, data: bytes, like: Path | None) -> Path:
    """Write a file under a new unique name, force it to the disk, and return the name."""
    name, file = _new_beside(path)
    try:
        with file:
            mode = _mode_of(path)
            if mode is None and like is not None:
                mode = _mode_of(like)
            if mode is not None:  # before the content: what is private is so from its first byte
                with suppress(PermissionError):  # some file systems know no permissions
                    name.chmod(mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        name.unlink()
        raise
    return name


def _new_beside(path: Path) -> tuple[Path, BinaryIO]:
    """Create a file in the folder of another, with the permissions of any new file.

    `tempfile` would make it private, and the umask cannot be asked for without changing it, for
    all threads, for a moment.
    """
    name = path.with_name(f".{path.name}.{os.urandom(6).hex()}{_SUFFIX}")
    try:
        return name, name.open("xb")
    except OSError as error:
        error.filename = str(path)  # the name the caller knows
        raise


def _mode_of(path: Path) -> int | None:
    """Return the permissions of a file; None where there is none."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return None


def _sync_folder(folder: Path) -> None:
    """Force the new name to the disk, too, where the system lets a folder be opened."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


if os.name == "nt":  # pragma: no cover - exercised on Windows only
    import msvcrt

    def _try_lock(file: IO[bytes]) -> bool:
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock(file: IO[bytes]) -> None:
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try_lock(file: IO[bytes]) -> bool:
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(file: IO[bytes]) -> None:
        fcntl.flock(file.fileno(), fcntl.LOCK_UN)
