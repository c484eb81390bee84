"""How commands read and write single files: `-` is a pipe, `.gz` is unpacked, writing is atomic.

A file is replaced whole or not at all, so Ctrl-C and a full disk leave the old one. What is no
regular file (a pipe, `/dev/null`) is written through, never replaced.
"""

from __future__ import annotations

import gzip
import sys
import zlib
from typing import TYPE_CHECKING

from muntin.cli.failures import FAILED, SOURCE_FAILED, USAGE, Failure
from muntin.cli.terminal.output import note
from muntin.runtime import write_file

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ("is_pipe", "name_of", "read_bytes", "read_text", "write_bytes")

_GZIP = b"\x1f\x8b"


def is_pipe(path: Path) -> bool:
    """Whether a path stands for stdin or stdout."""
    return str(path) == "-"


def name_of(path: Path) -> str:
    """Name a file that is read, for people: nobody has a file called `-`."""
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
