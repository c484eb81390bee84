"""Stores of records: bytes under keys with versions, in memory, in files and in databases.

It decides how a record is read, replaced and removed, and how stores are limited. It does not know
what a record means.
"""

from __future__ import annotations

from muntin.stores.ballots import DocumentRecords, Documents
from muntin.stores.base import RecordStore
from muntin.stores.folder import LOCK_SECONDS, FolderRecords
from muntin.stores.memory import MemoryRecords
from muntin.stores.record import ANY, Entry, Expected, Record, digest_of
from muntin.stores.sql import SqlRecords
from muntin.stores.sqlite import SqliteRecords

__all__ = (
    "ANY",
    "LOCK_SECONDS",
    "DocumentRecords",
    "Documents",
    "Entry",
    "Expected",
    "FolderRecords",
    "MemoryRecords",
    "Record",
    "RecordStore",
    "SqlRecords",
    "SqliteRecords",
    "digest_of",
)
