"""Show the fields of a request as the parameters of the functions that take them.

`muntin.runtime.arguments_of` gives a function the fields of a dataclass as arguments. The API
reference reads the source, so this extension of griffe does the same to what it read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import griffe

if TYPE_CHECKING:
    from griffe import Alias, Class, Function, Module

__all__ = ("ShowArguments",)

_DECORATOR = "arguments_of("


class ShowArguments(griffe.Extension):
    """Replace the request parameter of decorated functions by the fields of its class."""

    def on_package(self, *, pkg: Module, **_more: Any) -> None:
        """Replace them in a package that was read."""
        for function in _functions(pkg):
            _show(function)


def _functions(module: Module) -> list[Function]:
    found = [one for one in module.functions.values() if not one.is_alias]
    for inner in module.modules.values():
        if not inner.is_alias:
            found += _functions(inner)
    return found


def _show(function: Function) -> None:
    made = [one for one in function.decorators if str(one.value).startswith(_DECORATOR)]
    if not made:
        return
    request = function.module[str(made[0].value)[len(_DECORATOR) : -1]]
    function.parameters = griffe.Parameters(*_fields(request))


def _fields(request: Class | Alias) -> list[griffe.Parameter]:
    kind, found = griffe.ParameterKind.positional_or_keyword, list[griffe.Parameter]()
    for name, field in request.attributes.items():
        if str(field.annotation) == "KW_ONLY":
            kind = griffe.ParameterKind.keyword_only
        elif "instance-attribute" in field.labels and "property" not in field.labels:
            found.append(
                griffe.Parameter(name, annotation=field.annotation, kind=kind, default=field.value)
            )
    return found
