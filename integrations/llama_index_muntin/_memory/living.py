"""Return the memory itself when its saved form is read while it still exists unchanged.

A workflow writes its context to JSON between two runs and reads it back at once. A copy would be
separated from the store, the ledger and every variable that holds the memory. So a saved form
refers to the memory that wrote it. The reference resolves once; later reads create a copy, and so
do reads in another process or after the memory changed.
"""

from __future__ import annotations

import json
import uuid
import weakref
from typing import Any, Self

from llama_index.core.memory.types import BaseMemory
from pydantic import PrivateAttr

__all__ = ("LivingMemory",)

_LIVING = "living"
"""Key of the name in a saved form."""

_names: weakref.WeakValueDictionary[str, LivingMemory] = weakref.WeakValueDictionary()


class LivingMemory(BaseMemory):
    """A memory that its own saved form refers to."""

    _name: str = PrivateAttr(default="")

    def to_dict(self, **kwargs: Any) -> dict[str, Any]:
        """Return the memory in plain JSON types; shared objects are left out.

        The first `from_dict` of it returns this memory itself if it still exists unchanged, so a
        workflow's `Context` that is used again continues with the memory it was given.
        """
        if _names.get(self._name) is not self:  # never named, or a copy of one that was
            self._name = uuid.uuid4().hex
            _names[self._name] = self
        return {**super().to_dict(**{"mode": "json", **kwargs}), _LIVING: self._name}

    @classmethod
    def from_dict(cls, data: dict[str, Any], **kwargs: Any) -> Self:
        """Read what `to_dict` wrote.

        Args:
            data: The saved form.
            kwargs: Settings that take the place of saved ones; with any of them it is a copy.
        """
        name = str(data.get(_LIVING) or "")
        living = None if kwargs else _names.get(name)
        if isinstance(living, cls) and living.to_dict() == data:
            del _names[name]
            return living
        kept = {key: value for key, value in data.items() if key != _LIVING}
        return super().from_dict({**kept, **kwargs})

    def to_json(self, **kwargs: Any) -> str:
        """Return the memory as JSON to keep; reading it makes a copy."""
        saved = self.to_dict(**kwargs)
        del saved[_LIVING]
        return json.dumps(saved)
