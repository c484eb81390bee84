"""Which models accept reasoning only behind an unchanged prefix, and whose reasoning they read.

The families and versions are those that the providers document. A name that is in no family is
taken for a model that checks: a request without old reasoning is accepted everywhere, one with
reasoning in a wrong place is not.
"""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

__all__ = ("Rule", "binds", "checks_prefix", "reads")

Rule = Literal["signed", "items"]
"""How a provider keeps reasoning: blocks with a signature (Anthropic, also on Bedrock and Vertex),
or items with an id (OpenAI Responses)."""

_CLAUDE: Final = re.compile(r"claude-(?P<family>[a-z]+)-(?P<major>\d)(?:[-.](?P<minor>\d))?(?!\d)")
_OLD_CLAUDE: Final = re.compile(r"claude-(?:[23]|instant|v\d)")
_GPT: Final = re.compile(r"\bgpt-(?P<major>\d+)(?:\.(?P<minor>\d+))?")
_OLD_OPENAI: Final = re.compile(r"\bo\d(?:-|$)|codex-mini")
_OTHERS: Final = re.compile(r"gemini|gemma|llama|mistral|qwen|deepseek|kimi|glm|minimax|grok")
_SIGNED_FROM: Final = {"fable": (5, 1), "mythos": (5, 1)}
"""First version of a family that checks the prefix; other families of Claude since 5.5."""
_SIGNED: Final = (5, 5)
_ITEMS: Final = (6, 2)
_READ_BY_ALL: Final = ("haiku", (5, 5))
_READS: Final = {("fable", (5, 1)): {("opus", (5, 0)), ("opus", (5, 5))}}
"""Other models whose thinking a model reads."""


class _Claude(NamedTuple):
    family: str
    version: tuple[int, int]


def binds(rule: Rule, model: str | None) -> bool:
    """Return whether a model accepts reasoning only behind the prefix it was written behind.

    Args:
        rule: How the reasoning is kept.
        model: Name of the model, with or without provider, region and date; `None` if unknown.

    ```python
    from muntin.messages import binds

    print(binds("signed", "claude-opus-5-5"), binds("signed", "us.anthropic.claude-opus-4-8-v1:0"))
    #> True False
    print(binds("items", "gpt-6.2-sol"), binds("items", "o4-mini"), binds("items", None))
    #> True False True
    ```
    """
    if not model:
        return True
    name = model.lower()
    if rule == "items":
        version = _gpt(name)
        return version >= _ITEMS if version is not None else _OLD_OPENAI.search(name) is None
    claude = _claude(name)
    if claude is not None:
        return claude.version >= _SIGNED_FROM.get(claude.family, _SIGNED)
    foreign = _OLD_CLAUDE.search(name) or _OTHERS.search(name) or _gpt(name)
    return not foreign


def checks_prefix(model: str | None) -> bool:
    """Return whether a model is known to check the prefix of reasoning; False for unknown names.

    ```python
    from muntin.messages import checks_prefix

    print(checks_prefix("claude-opus-5-5"), checks_prefix("gpt-5.5"), checks_prefix("my-alias"))
    #> True False False
    ```
    """
    name = (model or "").lower()
    rule: Rule = "signed" if _claude(name) is not None else "items"
    known = _claude(name) is not None or _gpt(name) is not None
    return known and binds(rule, name)


def reads(model: str | None, written_by: str | None) -> bool:
    """Return whether a model can use reasoning that another model wrote.

    Args:
        model: Name of the model that is asked; `None` if unknown.
        written_by: Name of the model that wrote the reasoning; `None` if unknown.

    Returns:
        False only if both are known, one of them checks, and the provider would drop it.

    ```python
    from muntin.messages import reads

    print(reads("claude-opus-5-5", "claude-sonnet-5-5"), reads("claude-fable-5-1", "claude-opus-5"))
    #> False True
    print(reads("gpt-6.1", "gpt-6.2-sol"), reads("gpt-6.2-sol", "gpt-6.2-astra"))
    #> False True
    ```
    """
    if not model or not written_by:
        return True
    asked, wrote = _claude(model.lower()), _claude(written_by.lower())
    if asked is not None and wrote is not None:
        if asked == wrote or wrote == _READ_BY_ALL or wrote in _READS.get(asked, ()):
            return True
        return not (binds("signed", model) or binds("signed", written_by))
    newer, older = _gpt(written_by.lower()), _gpt(model.lower())
    if newer is not None and older is not None:
        return newer <= older or newer < _ITEMS
    return True


def _claude(name: str) -> _Claude | None:
    found = _CLAUDE.search(name)
    if found is None:
        return None
    return _Claude(found["family"], (int(found["major"]), int(found["minor"] or 0)))


def _gpt(name: str) -> tuple[int, int] | None:
    found = _GPT.search(name)
    return None if found is None else (int(found["major"]), int(found["minor"] or 0))
