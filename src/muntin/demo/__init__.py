"""The main job on real text that every machine has: `python -m muntin.demo`.

It asks a question of three sources, the documentation of installed packages and of the standard
library, a small memory, and a recorded tool result, and assembles what deserves a place inside a
window. No key, no network.
"""

from __future__ import annotations

__all__ = ("QUESTION",)

QUESTION = "How do I read a large CSV file row by row without loading it all into memory?"
"""What is asked where nobody asks anything else."""
