"""Every heading and instruction the library writes, under a key, in one registry.

A prompt is a template: `{name}` stands for a value given at render time. Substitution happens in
one pass, so braces inside a value or elsewhere in a template stay as they are, and a question
that reads `{query}` is safe. An override may change every word but must keep every variable.

English and Chinese packs are built in; `PromptRegistry.register_language` adds more.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from muntin.errors import PromptError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("CHINESE", "DEFAULT_PROMPTS", "ENGLISH", "PromptRegistry")

ENGLISH: dict[str, str] = {
    "context.section.memory": "[Memory]",
    "context.section.rag": "[Knowledge]",
    "context.section.history": "[Conversation history]",
    "context.section.tool": "[Tool results]",
    "context.question": "[Current question]",
}
"""The built-in texts, in English."""

CHINESE: dict[str, str] = {
    "context.section.memory": "[记忆]",
    "context.section.rag": "[知识]",
    "context.section.history": "[对话历史]",
    "context.section.tool": "[工具结果]",
    "context.question": "[当前问题]",
}
"""The same texts in Chinese; a key that is missing here falls back to English."""

_VARIABLE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SECTION = "context.section."


class PromptRegistry:
    """Hold the texts the library writes, and let a project replace them.

    ```python
    from muntin import PromptRegistry

    prompts = PromptRegistry().with_overrides({"context.section.rag": "[Handbook]"})
    print(prompts.section_heading("rag"), prompts.section_heading("tickets"))
    #> [Handbook] [tickets]
    ```
    """

    _languages: dict[str, dict[str, str]] = {"en": ENGLISH, "zh": CHINESE}  # noqa: RUF012 - the one shared table

    def __init__(self, language: str = "en") -> None:
        if language not in self._languages:
            known = ", ".join(sorted(self._languages))
            raise PromptError(f"no prompts in language {language!r}: there are {known}")
        self._texts: dict[str, str] = {**ENGLISH, **self._languages[language]}
        self._variables = {key: _variables(text) for key, text in self._texts.items()}

    @classmethod
    def register_language(cls, language: str, texts: Mapping[str, str]) -> None:
        """Add a language pack; keys it lacks fall back to English.

        Raises:
            PromptError: A key is unknown, or a text loses a variable of the English one.
        """
        pack = PromptRegistry()
        pack.override(texts)
        cls._languages[language] = dict(texts)

    def keys(self) -> tuple[str, ...]:
        """List the known keys, sorted."""
        return tuple(sorted(self._texts))

    def get(self, key: str) -> str:
        """Return a template as it is.

        Raises:
            PromptError: The key is unknown.
        """
        self._check_known(key)
        return self._texts[key]

    def render(self, key: str, **values: object) -> str:
        """Fill a template's variables; values are inserted as they are and not expanded again.

        Raises:
            PromptError: The key is unknown or a variable got no value.
        """
        text = self.get(key)
        missing = self._variables[key] - values.keys()
        if missing:
            raise PromptError(f"prompt {key!r} needs {', '.join(sorted(missing))}")
        known = self._variables[key]
        return _VARIABLE.sub(
            lambda match: str(values[match[1]]) if match[1] in known else match[0], text
        )

    def section_heading(self, name: str) -> str:
        """Return the heading of a source's section, `[name]` for a source without its own."""
        return self._texts.get(_SECTION + name, f"[{name}]")

    def as_dict(self) -> dict[str, str]:
        """Return all templates by key."""
        return dict(self._texts)

    def copy(self) -> PromptRegistry:
        """Return an independent copy."""
        twin = PromptRegistry()
        twin._texts = dict(self._texts)
        twin._variables = dict(self._variables)
        return twin

    def register(self, key: str, text: str) -> None:
        """Add a new key, for instance the heading of a custom source.

        Raises:
            PromptError: The key exists already; replace a text with `override`.
        """
        if key in self._texts:
            raise PromptError(f"prompt {key!r} exists already: use override() to replace its text")
        self._texts[key] = text
        self._variables[key] = _variables(text)

    def override(self, texts: Mapping[str, str]) -> None:
        """Replace texts in place, all or none.

        Raises:
            PromptError: A key is unknown, or a text loses a variable its key must carry.
        """
        for key, text in texts.items():
            self._check_known(key)
            lost = self._variables[key] - _variables(text)
            if lost:
                names = ", ".join(f"{{{name}}}" for name in sorted(lost))
                raise PromptError(f"the override of prompt {key!r} loses {names}: keep it")
        self._texts.update(texts)

    def with_overrides(self, texts: Mapping[str, str]) -> PromptRegistry:
        """Return a copy with texts replaced; section headings may be new.

        Raises:
            PromptError: As in `override`.
        """
        twin = self.copy()
        for key in texts.keys() - twin._texts.keys():
            if key.startswith(_SECTION):
                twin.register(key, texts[key])
        twin.override(texts)
        return twin

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PromptRegistry) and self._texts == other._texts

    __hash__ = None  # pyright: ignore[reportAssignmentType] - mutable, so not hashable

    def _check_known(self, key: str) -> None:
        if key not in self._texts:
            near = [known for known in self.keys() if known.split(".")[0] == key.split(".")[0]]
            hint = f"; near it: {', '.join(near)}" if near else ""
            raise PromptError(f"no prompt has the key {key!r}{hint}")


def _variables(text: str) -> frozenset[str]:
    return frozenset(_VARIABLE.findall(text))


DEFAULT_PROMPTS = PromptRegistry()
"""The registry that is used where none is given."""
