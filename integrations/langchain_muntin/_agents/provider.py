"""Ask the provider of a chat model to compact, with the settings of its LangChain class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from muntin.adapting import compaction_settings, limit_of
from muntin.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_core.language_models import BaseChatModel

    from muntin.adapting import Compacting, Limit

__all__ = ("provider_limit", "settings_for")

_FORMS: Mapping[str, Compacting] = {
    "ChatAnthropic": "anthropic",
    "BaseChatOpenAI": "openai",
    "ChatXAI": "openai",
}
_KEPT = ("context_management", "betas")
"""Fields of a model that the settings of a request replace."""


def provider_limit(given: Any) -> Limit | None:
    """Read from which size on the provider compacts; `None` for never.

    Raises:
        ConfigurationError: It is no size, or a number of messages: providers count tokens.
    """
    limit = limit_of(given, "provider_compaction")
    if limit is not None and limit.kind == "messages":
        raise ConfigurationError(
            "provider_compaction must be tokens or a share of the window, because providers count "
            f"tokens, got {given!r:.60}"
        )
    return limit


def settings_for(
    model: BaseChatModel, settings: Mapping[str, Any], tokens: int, budget: int
) -> dict[str, Any]:
    """Return the settings of a request with which the provider compacts.

    Args:
        model: The model.
        settings: Settings of the request.
        tokens: Input tokens from which on the provider compacts.
        budget: Tokens a request may take.

    Raises:
        ConfigurationError: The provider of the model does not compact, or not below the budget.
    """
    names = [one.__name__ for one in type(model).__mro__ if one.__name__ in _FORMS]
    if not names:
        raise ConfigurationError(
            f"provider_compaction needs a model whose provider compacts (ChatAnthropic, "
            f"ChatOpenAI, ChatXAI), got {type(model).__name__}: leave it out, so that "
            f"muntin compacts"
        )
    own = {key: value for key in _KEPT if (value := getattr(model, key, None))}
    return compaction_settings(
        _FORMS[names[0]], tokens, budget=budget, settings={**own, **settings}
    )
