"""Records as files of one folder: each is there whole or not at all."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from muntin.errors import ConfigurationError, StateConflictError, StateError
from muntin.runtime import discard_leftovers, exclusive, replace_file, replacing
from muntin.stores.base import RecordStore
from muntin.stores.record import ANY, Entry, Expected, Record, check_key, digest_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from os import PathLike

__all__ = ("FolderRecords",)

LOCK_SECONDS = 10.0
_UNSAFE = re.compile(r'[%/\\:*?"<>|]|^\.|[. ]$')
_MOST_NAME_BYTES = 240
"""Most file systems take 255; a temporary name needs the rest."""


class FolderRecords(RecordStore):
    """Keep each record in a file of a folder, which is made when missing.

    A file holds the content and nothing else, so people can read it; its version is its hash. Files
    are replaced in one step, so a reader and a killed writer leave an old or a new one. Writes that
    name a version hold a lock of the folder, between threads and processes.

    Args:
        path: The folder.
        suffix: Added to each key to make a file name.
        lock_timeout: Seconds to wait for another writer.
        max_bytes: Bytes of all contents, see `RecordStore`.
        max_age: Seconds after its last write at which a record is gone.
        clock: Returns seconds since the epoch; the file system's clock gives the times of writing.

    Raises:
        ConfigurationError: The path holds a NUL or a lone surrogate, or a limit is not above 0.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        suffix: str = "",
        lock_timeout: float = LOCK_SECONDS,
        max_bytes: int | None = None,
        max_age: float | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(max_bytes=max_bytes, max_age=max_age, clock=clock)
        self.path = checked_path(path)
        self.name = str(self.path)
        self._suffix = suffix
        self._lock_timeout = lock_timeout

    def read(self, key: str) -> Record | None:
        """Return the record of a key; see `RecordStore.read`."""
        file = self._file(key)
        try:
            with file.open("rb") as opened:
                body = opened.read()
                stored_at = file.stat().st_mtime
        except FileNotFoundError:
            return None
        return Record(body=body, version=digest_of(body), stored_at=stored_at)

    def write(self, key: str, body: bytes, expected: Expected, also: Mapping[str, bytes]) -> str:
        """Store a record; see `RecordStore.write`."""
        file = self._file(key)
        self.path.mkdir(parents=True, exist_ok=True)
        if expected is ANY and not also:
            replace_file(file, body)
            return digest_of(body)
        contents = {file: body, **{self._file(name): one for name, one in also.items()}}
        with exclusive(self.path / ".lock", timeout=self._lock_timeout):
            for path in contents:
                discard_leftovers(path)
            held = self.read(key)
            if expected is not ANY and expected != (held.version if held else None):
                raise StateConflictError(f"another writer changed {key!r} in {self.name}")
            with replacing(contents):
                pass
        return digest_of(body)

    def remove(self, key: str) -> bool:
        """Remove a record; see `RecordStore.remove`."""
        try:
            self._file(key).unlink()
        except FileNotFoundError:
            return False
        return True

    def listing(self) -> list[Entry]:
        """List the records; see `RecordStore.listing`."""
        found: list[Entry] = []
        try:
            files = list(self.path.iterdir())
        except FileNotFoundError:
            return []
        for file in files:
            if file.name.startswith(".") or not file.name.endswith(self._suffix):
                continue
            try:
                status = file.stat()
            except FileNotFoundError:
                continue  # removed by another process since the folder was listed
            key = unquote(file.name.removesuffix(self._suffix))
            found.append(Entry(key=key, size=status.st_size, stored_at=status.st_mtime))
        return sorted(found, key=lambda entry: entry.stored_at)

    def _file(self, key: str) -> Path:
        check_key(key)
        name = _UNSAFE.sub(lambda found: f"%{ord(found[0]):02X}", key) + self._suffix
        if len(name.encode("utf-8")) > _MOST_NAME_BYTES:
            raise StateError(f"the key {key!r} is too long for a file name: use a hash of it")
        return self.path / name


def checked_path(path: str | PathLike[str]) -> Path:
    """Return a path that the operating system can hold.

    Raises:
        ConfigurationError: It holds a NUL or a lone surrogate.
    """
    text = str(Path(path))
    try:
        os.fsencode(text)  # takes the surrogates that stand for bytes of a name, and no others
    except UnicodeEncodeError:
        raise ConfigurationError(
            f"a path must be valid Unicode, got {text!r} with a lone surrogate"
        ) from None
    if "\0" in text:
        raise ConfigurationError(f"a path must not hold NUL characters, got {text!r}")
    return Path(path)
