"""One vocabulary for the keywords of adapters: aliases and unknown names.

The names are `budget` (tokens of the input), `window` (tokens of the whole window), `reserve`
(tokens kept for the answer), `division`, `config`, `counter` or `model`, `store`, `summarizer` and
`question`. Earlier names are accepted as aliases. Every other name is refused, with the nearest
known one.
"""

from __future__ import annotations

from difflib import get_close_matches
from numbers import Integral
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from muntin.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pydantic import BaseModel

__all__ = ("construct", "refuse_unknown", "renamed")


def renamed(owner: str, given: Mapping[str, Any], aliases: Mapping[str, str]) -> dict[str, Any]:
    """Return keyword arguments with every alias replaced by the argument's name.

    Args:
        owner: Name of the class or function, for errors.
        given: The keyword arguments.
        aliases: The accepted name of each alias.

    Raises:
        ConfigurationError: An alias and its name are both given.
    """
    found: dict[str, Any] = {}
    for name, value in given.items():
        target = aliases.get(name, name)
        if target in found or (target != name and target in given):
            raise ConfigurationError(
                f"{owner} got {target!r} and its alias {name!r}: give one of them"
            )
        found[target] = value
    return found


def refuse_unknown(owner: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse keyword arguments that an entry point does not have.

    Raises:
        ConfigurationError: Names the first unknown keyword and the nearest known one.
    """
    names = list(known)
    for name in given:
        if name in names:
            continue
        near = get_close_matches(name, names, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(sorted(names))}"
        raise ConfigurationError(f"{owner} has no argument {name!r}: {hint}")


def construct(
    init: Callable[..., None],
    owner: type[BaseModel],
    fields: Mapping[str, Any],
    aliases: Mapping[str, str],
) -> None:
    """Construct a pydantic object of an adapter with the errors of this library.

    Args:
        init: The `__init__` of the base class, bound to the object.
        owner: Class of the object.
        fields: The keyword arguments.
        aliases: The accepted name of each alias; one that is a field itself is left alone.

    Raises:
        ConfigurationError: A keyword is unknown, given twice, or of the wrong type or range.
    """
    known = owner.model_fields
    own = {name: target for name, target in aliases.items() if name not in known}
    named = renamed(owner.__name__, fields, own)
    refuse_unknown(owner.__name__, named, known)
    try:
        init(**{name: _plain(value) for name, value in named.items()})
    except ValidationError as error:
        raise ConfigurationError(f"{owner.__name__}: {_said(error)}") from None


def _plain(value: Any) -> Any:
    """Return an `int` for an integer of numpy."""
    is_other = isinstance(value, Integral) and not isinstance(value, (bool, int))
    return int(value) if is_other else value


def _said(error: ValidationError) -> str:
    said: list[str] = []
    for detail in error.errors(include_url=False, include_context=False):
        where = ".".join(str(part) for part in detail["loc"])
        text = str(detail["msg"]).removeprefix("Value error, ")
        said.append(f"{where}: {text[:1].lower()}{text[1:]}, got {detail.get('input')!r:.80}")
    return "; ".join(said)
