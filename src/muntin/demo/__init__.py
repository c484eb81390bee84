"""The main job on real text that every machine has: the command `muntin demo`.

It searches the documentation of installed packages and of the standard library, a small memory and
a recorded tool result, and assembles a context inside a window. It needs no key and no network.
"""

from __future__ import annotations

from muntin.demo.assembly import QUESTION, assemble
from muntin.demo.corpus import Passages

__all__ = ("QUESTION", "Passages", "assemble")
