"""Tests on the real data, which is too large to commit: they skip where it is not."""

from __future__ import annotations

import pytest
from benchmarks._data import SHARED, data_path, json_lines

__all__ = ("SHARED", "data_path", "json_lines", "needs_data")

needs_data = pytest.mark.skipif(
    not (SHARED / "data").is_dir(),
    reason="the real data is not here: set MUNTIN_SHARED to the folder that holds data/",
)
"""Decorator for tests on real data."""
