"""Ask a provider to compact a conversation itself, in the form that its requests take.

The provider summarises at a threshold of input tokens and returns the summary with its answer. The
summary has to be sent back; what is before it is neither sent nor counted from then on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, cast

from muntin.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ("Compacting", "compaction_settings")

Compacting = Literal["anthropic", "openai"]
"""Form of the setting; xAI takes the one of OpenAI."""

_EDIT: Final = "compact_20260112"
_BETA: Final = "compact-2026-01-12"
_LEAST: Final = 50_000
"""Smallest threshold that Anthropic accepts, in tokens."""


def compaction_settings(
    form: Compacting,
    tokens: int,
    *,
    budget: int | None = None,
    settings: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the settings of a request with which the provider compacts at a threshold.

    Args:
        form: Form of the setting.
        tokens: Input tokens from which on the provider compacts.
        budget: Tokens a request may take; `None` if unknown.
        settings: Settings that the request has already. Not changed; a compaction in them stays.

    Raises:
        ConfigurationError: The provider accepts no threshold as small as the budget.

    ```python
    from muntin.adapting import compaction_settings

    print(compaction_settings("openai", 100_000))
    #> {'context_management': [{'type': 'compaction', 'compact_threshold': 100000}]}
    ```
    """
    given = dict(settings or {})
    if form == "openai":
        rules = [*_rules(given.get("context_management"))]
        if not any("compact" in str(rule.get("type")) for rule in rules):
            rules.append({"type": "compaction", "compact_threshold": tokens})
        return {**given, "context_management": rules}
    if budget is not None and budget < _LEAST:
        raise ConfigurationError(
            f"provider_compaction: Anthropic compacts from {_LEAST} tokens on, and a request may "
            f"take {budget}: leave it out, so that muntin compacts"
        )
    managed = dict(cast("Mapping[str, Any]", given.get("context_management") or {}))
    edits = [*_rules(managed.get("edits"))]
    if not any("compact" in str(edit.get("type")) for edit in edits):
        trigger = {"type": "input_tokens", "value": max(tokens, _LEAST)}
        edits.append({"type": _EDIT, "trigger": trigger})
    betas = [str(beta) for beta in cast("Sequence[Any]", given.get("betas") or ())]
    return {
        **given,
        "context_management": {**managed, "edits": edits},
        "betas": betas if _BETA in betas else [*betas, _BETA],
    }


def _rules(value: Any) -> list[dict[str, Any]]:
    return list(cast("Sequence[dict[str, Any]]", value)) if isinstance(value, (list, tuple)) else []
