"""Give a saved form back as the memory that wrote it, while that one lives and says the same.

A workflow writes its context to JSON between two runs and reads it back at once. A memory that came
back as a copy would have parted from its store and its ledger, and from whoever holds the memory.
So a saved form names the memory that wrote it. The name is good once: whoever reads the same form
again means a copy, and so does whoever reads it in another process, or after the memory changed.
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
    """A memory that outlives its saved form."""

    _name: str = PrivateAttr(default="")

    def to_dict(self, **kwargs: Any) -> dict[str, Any]:
        """Return the memory in plain JSON types; shared objects are left out.

        Who reads it first with `from_dict` gets this very memory, if it still lives and says the
        same: a workflow's `Context` that is used again goes on with the memory it was given.
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
