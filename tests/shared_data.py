"""Tests on the real data of `benchmarks/data`, which a source distribution does not contain."""

from __future__ import annotations

import pytest
from benchmarks._data import DATA, data_path, has_data, json_lines

__all__ = ("DATA", "data_path", "json_lines", "needs_data")

needs_data = pytest.mark.skipif(
    not has_data(),
    reason="benchmarks/data is not here: take it from a clone, or set MUNTIN_DATA to a copy",
)
"""Decorator for tests on real data."""
