"""Shapes of the providers' own dicts: OpenAI chat and Responses, Anthropic, Gemini."""

from __future__ import annotations
