"""Tool results: shortened with a marker, stored whole, read back in pieces.

It decides what is shown of a result that is too large and where the original is kept.
"""

from __future__ import annotations

from muntin.tool_results.reader import ReadTool, read_tool, read_tool_result
from muntin.tool_results.shorten import (
    ShortenedResult,
    atruncate_tool_result,
    shorten_tool_result,
    truncate_batch,
    truncate_tool_result,
)
from muntin.tool_results.store import RESULT_ID, ToolResultStore

__all__ = (
    "RESULT_ID",
    "ReadTool",
    "ShortenedResult",
    "ToolResultStore",
    "atruncate_tool_result",
    "read_tool",
    "read_tool_result",
    "shorten_tool_result",
    "truncate_batch",
    "truncate_tool_result",
)
