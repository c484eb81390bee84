"""What each part of a request costs: text of a message, media, tool schemas, and their sum."""

from __future__ import annotations
