"""How commands read and write single files: `-` is a pipe, `.gz` is unpacked, writing is atomic.

A file is replaced whole or not at all, so Ctrl-C and a full disk leave the old one. What is no
regular file (a pipe, `/dev/null`) is written through, never replaced.
"""

from __future__ import annotations

import gzip
import shutil
import sys
import zlib
from contextlib import ExitStack, contextmanager
from io import BufferedReader
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Any, cast

from muntin.cli.failures import FAILED, SOURCE_FAILED, USAGE, Failure
from muntin.cli.terminal.output import note, safe
from muntin.runtime import write_file, writing

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path
    from typing import BinaryIO

__all__ = (
    "is_pipe",
    "name_of",
    "opened",
    "output_to",
    "read_bytes",
    "read_text",
    "reading_errors",
    "write_bytes",
)

_GZIP = b"\x1f\x8b"
_HELD = 16 << 20
"""Bytes of a result for a pipe that are kept in memory; more go to a temporary file."""


def is_pipe(path: Path) -> bool:
    """Return whether a path means stdin or stdout."""
    return str(path) == "-"


def name_of(path: Path) -> str:
    """Return the name of a file for a message; `-` is stdin."""
    return "stdin" if is_pipe(path) else str(path)


def read_bytes(path: Path) -> bytes:
    """Read a file, or stdin for `-`; gzip is unpacked.

    Raises:
        Failure: It is a folder, is not there, or cannot be read.
    """
    if is_pipe(path):
        if sys.stdin.isatty():
            note("reading from the keyboard; end with Ctrl-D, or stop with Ctrl-C")
        data = sys.stdin.buffer.read()
    else:
        try:
            data = path.read_bytes()
        except IsADirectoryError:
            raise Failure(f"{path} is a folder: name a file in it") from None
        except FileNotFoundError:
            raise Failure(f"{path} is not there: check the name", code=SOURCE_FAILED) from None
        except OSError as error:
            raise Failure(f"cannot read {path}: {error.strerror}", code=SOURCE_FAILED) from None
    if not data.startswith(_GZIP):
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise Failure(
            f"{name_of(path)} is damaged gzip data: {error}", code=SOURCE_FAILED
        ) from None


def read_text(path: Path) -> str:
    """Read a UTF-8 file, or stdin for `-`.

    Raises:
        Failure: It cannot be read, or is not UTF-8.
    """
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Failure(
            f"{name_of(path)} is not UTF-8 (byte {error.start}): convert it first, for instance "
            f"with iconv"
        ) from None


def write_bytes(path: Path, data: bytes) -> None:
    """Give a file new content in one step; `-` is stdout, `.gz` is packed.

    Raises:
        Failure: It could not be written; the file is as it was.
    """
    if is_pipe(path):
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    if path.suffix == ".gz":
        data = gzip.compress(data, mtime=0)
    try:
        write_file(path, data)
    except FileNotFoundError:
        raise Failure(f"cannot write {path}: make its folder first", code=USAGE) from None
    except OSError as error:
        raise Failure(
            f"cannot write {path}: {error.strerror}; it is as it was", code=FAILED
        ) from None


@contextmanager
def opened(path: Path) -> Generator[BufferedReader]:
    """Open a file, or stdin for `-`, for reading piece by piece; gzip is unpacked.

    Raises:
        Failure: It is a folder, is not there, or cannot be read.
    """
    with ExitStack() as stack:
        # Not around `yield`: what goes wrong in the block may be about another file.
        with reading_errors(path):
            if is_pipe(path):
                if sys.stdin.isatty():
                    note("reading from the keyboard; end with Ctrl-D, or stop with Ctrl-C")
                file: Any = sys.stdin.buffer
            else:
                file = stack.enter_context(path.open("rb"))
            if not hasattr(file, "peek"):  # stdin of a test is no buffered reader
                file = BufferedReader(file)
            if file.peek(2)[:2] == _GZIP:
                unpacked = stack.enter_context(gzip.GzipFile(fileobj=file))
                file = BufferedReader(cast("Any", unpacked))
        yield file


@contextmanager
def reading_errors(path: Path) -> Generator[None]:
    """Turn what can go wrong while a file is read into a `Failure` that names it."""
    try:
        yield
    except IsADirectoryError:
        raise Failure(f"{path} is a folder: name a file in it") from None
    except FileNotFoundError:
        raise Failure(f"{path} is not there: check the name", code=SOURCE_FAILED) from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise Failure(
            f"{name_of(path)} is damaged gzip data: {error}", code=SOURCE_FAILED
        ) from None
    except OSError as error:
        raise Failure(f"cannot read {path}: {error.strerror}", code=SOURCE_FAILED) from None


@contextmanager
def output_to(path: Path) -> Generator[BinaryIO]:
    """Write a file piece by piece; `-` is stdout, `.gz` is packed.

    The result appears when the block ends: should it raise, a file is as it was, and a pipe got
    nothing.

    Raises:
        Failure: It could not be written.
    """
    try:
        if is_pipe(path) or (path.exists() and not path.is_file()):
            with SpooledTemporaryFile(max_size=_HELD) as held:
                yield cast("BinaryIO", held)
                held.seek(0)
                _copy(held, path)
            return
        with ExitStack() as stack:
            file = stack.enter_context(writing(path))
            if path.suffix == ".gz":
                packed = gzip.GzipFile(fileobj=file, mode="wb", mtime=0, filename="")
                file = cast("BinaryIO", stack.enter_context(packed))
            yield file
    except FileNotFoundError:
        raise Failure(f"cannot write {path}: make its folder first", code=USAGE) from None
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Failure(
            f"cannot write {path}: {error.strerror}; it is as it was", code=FAILED
        ) from None


def _copy(held: Any, path: Path) -> None:
    if not is_pipe(path):
        with path.open("wb") as file:
            shutil.copyfileobj(held, file)
        return
    sys.stdout.flush()
    if sys.stdout.isatty():
        sys.stdout.buffer.writelines(safe(line.decode()).encode() for line in held)
    else:
        shutil.copyfileobj(held, sys.stdout.buffer)
    sys.stdout.buffer.flush()
