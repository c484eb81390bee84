"""Documents, notes and tool results: read them in passages and rank the passages for a question."""
