"""Limit the size of tool results in a conversation, and the access to their originals."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from muntin.counting import checked_tokens, count_tokens
from muntin.errors import ConfigurationError
from muntin.messages import view
from muntin.prompts import DEFAULT_PROMPTS
from muntin.tool_results import RESULT_ID, read_tool, truncate_tool_result

if TYPE_CHECKING:
    from collections.abc import Iterable

    from muntin.counting import TokenCounter
    from muntin.prompts import PromptRegistry
    from muntin.tool_results import ReadTool, ToolResultStore

__all__ = ("ResultCap", "ToolRule", "named_ids", "reading_tool", "rules_of")

_SHARE = 0.25
"""Share of the budget one result may take."""
_UNKNOWN = 4000
"""Tokens one result may take while no budget is known."""
_READ_TOKENS = 2000
"""Tokens one answer of the reading tool may take."""
_ID = re.compile(RESULT_ID)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRule:
    """Rules for the results of one tool.

    ```python
    from muntin.adapting import ToolRule

    rules = {"search": ToolRule(max_tokens=800), "read_policy": ToolRule(keep=True)}
    print(rules["search"].max_tokens, rules["read_policy"].keep)
    #> 800 True
    ```
    """

    max_tokens: int | None = None
    """Tokens one result may take when it comes in; `None` takes the cap of all tools."""
    keep: bool = False
    """Whether results stay word for word: neither capped when they come in nor cut later."""
    first: bool = False
    """Whether results go first: where a request is too large, the old ones are shortened to a line
    before anything else is cut."""

    def __post_init__(self) -> None:
        if self.keep and self.first:
            raise ConfigurationError("a ToolRule has keep=True or first=True, got both")
        if self.max_tokens is not None:
            checked_tokens(self.max_tokens, "ToolRule.max_tokens")
        if self.keep and self.max_tokens is not None:
            raise ConfigurationError("a ToolRule has max_tokens or keep=True, got both")


def rules_of(given: Any) -> Mapping[str, ToolRule]:
    """Read rules by tool name.

    Raises:
        ConfigurationError: It is not a mapping of names to `ToolRule` objects.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ConfigurationError(
            f"tool_rules must be a mapping of tool name to ToolRule, got {type(given).__name__}"
        )
    rules: dict[str, ToolRule] = {}
    for name, rule in given.items():  # pyright: ignore[reportUnknownVariableType] - checked here
        if not isinstance(name, str) or not isinstance(rule, ToolRule):
            raise ConfigurationError(
                f"tool_rules must map tool names to ToolRule objects, got {name!r:.40}: "
                f"{rule!r:.60}"
            )
        rules[name] = rule
    return rules


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultCap:
    """Limit the size of tool results; larger ones are shortened."""

    store: ToolResultStore
    """Keeps the originals."""
    max_tokens: int | None = None
    """Tokens one result may take; `None` takes a quarter of the budget."""
    rules: Mapping[str, ToolRule] = field(default_factory=dict[str, ToolRule])
    """Rules by tool name."""
    prompts: PromptRegistry | None = None
    """Texts of markers; `None` takes the built-in ones."""
    budget: int | None = None
    """The budget used before the first model call sets one."""

    def tokens_for(self, name: str, budget: int | None = None) -> int | None:
        """Return the tokens one result of a tool may take; `None` for no cap.

        Args:
            name: Name of the tool.
            budget: Tokens of a request; `None` before any was sent.
        """
        rule = self.rules.get(name, ToolRule())
        if rule.keep:
            return None
        cap = rule.max_tokens or self.max_tokens
        known = budget or self.budget
        return cap or (_UNKNOWN if known is None else max(int(_SHARE * known), 1))

    def shortened(
        self, text: str, *, name: str, budget: int | None, counter: TokenCounter = count_tokens
    ) -> str:
        """Return a result that is short enough; the same object if it was.

        Args:
            text: The result.
            name: Name of the tool.
            budget: Tokens of a request; `None` before any was sent.
            counter: Counts tokens.
        """
        cap = self.tokens_for(name, budget)
        if cap is None:
            return text
        return truncate_tool_result(
            text,
            cap,
            counter=counter,
            store=self.store,
            name=name,
            prompts=self.prompts or DEFAULT_PROMPTS,
        )


def reading_tool(
    store: ToolResultStore,
    max_result_tokens: int | None = None,
    *,
    counter: TokenCounter = count_tokens,
    prompts: PromptRegistry | None = None,
) -> ReadTool:
    """Make the tool that reads originals of shortened results, for any framework to register.

    Args:
        store: Where the originals are kept.
        max_result_tokens: The cap of tool results; answers stay below it. `None` for the default.
        counter: Counts tokens.
        prompts: Texts of the description; `None` takes the built-in ones.
    """
    tokens = _READ_TOKENS if max_result_tokens is None else min(_READ_TOKENS, max_result_tokens)
    return read_tool(store, max_tokens=tokens, counter=counter, prompts=prompts or DEFAULT_PROMPTS)


def named_ids(messages: Iterable[Any]) -> frozenset[str]:
    """Return the ids of stored results that occur in messages.

    A conversation may read only these, and no result of another conversation.
    """
    found: set[str] = set()
    for message in messages:
        seen = view(message)
        texts = (seen.text, *(result.text for result in seen.results))
        found.update(one for text in texts for one in _ID.findall(text))
    return frozenset(found)
