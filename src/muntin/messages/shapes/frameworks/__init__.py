"""Shapes of frameworks' messages that need no package of theirs: Pydantic AI, Vercel AI SDK."""

from __future__ import annotations
