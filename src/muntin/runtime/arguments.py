"""State the parameters of entry points that do the same job once, as the fields of a dataclass."""

from __future__ import annotations

import inspect
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("arguments_of",)

P = ParamSpec("P")
RequestT = TypeVar("RequestT")
ReturnT = TypeVar("ReturnT")


def arguments_of(
    request: Callable[P, RequestT],
) -> Callable[[Callable[[RequestT], ReturnT]], Callable[P, ReturnT]]:
    """Call a function of a request with the fields of the request as arguments.

    A sync and an async entry point share one list of parameters this way. Type checkers,
    `inspect.signature` and `help` show the fields with their defaults.

    Args:
        request: A dataclass; its fields become the parameters.

    ```python
    from dataclasses import KW_ONLY, dataclass

    from muntin.runtime import arguments_of

    @dataclass(frozen=True)
    class Repeat:
        text: str
        _: KW_ONLY
        times: int = 2

    @arguments_of(Repeat)
    def repeated(request: Repeat) -> str:
        return request.text * request.times

    print(repeated("ab"), repeated("ab", times=3))
    #> abab ababab
    ```
    """
    parameters = inspect.signature(request).parameters

    def decorate(function: Callable[[RequestT], ReturnT]) -> Callable[P, ReturnT]:
        own = inspect.signature(function)
        signature = own.replace(parameters=list(parameters.values()))

        def made(*args: P.args, **given: P.kwargs) -> RequestT:
            try:
                return request(*args, **given)
            except TypeError:
                try:
                    signature.bind(*args, **given)
                except TypeError as error:
                    raise TypeError(f"{function.__name__}() {error}") from None
                raise

        if inspect.iscoroutinefunction(function):

            @wraps(function)
            async def awaited(*args: P.args, **given: P.kwargs) -> Any:
                return await cast("Any", function)(made(*args, **given))

            entry = cast("Callable[P, ReturnT]", awaited)
        else:

            @wraps(function)
            def called(*args: P.args, **given: P.kwargs) -> ReturnT:
                return function(made(*args, **given))

            entry = called
        shown: Any = entry
        shown.__signature__ = signature
        shown.__annotations__ = {name: one.annotation for name, one in parameters.items()}
        shown.__annotations__["return"] = own.return_annotation
        return entry

    return decorate
