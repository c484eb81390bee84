"""Notice that a server cut a prompt without an error: it reports far fewer tokens than were sent.

Ollama keeps the newest messages that fit its context, a power of two unless it is set otherwise,
and answers as if nothing had happened. Only the reported usage shows it. A report of that kind is
not a ratio of two vocabularies, so nothing else is learned from it.
"""

from __future__ import annotations

from typing import Final

__all__ = ("TruncatedByServer", "truncated_at")

_FAR_BELOW: Final = 0.8
"""Share of the expected tokens below which a report is not explained by another vocabulary."""
_NEAR: Final = (0.9, 1.01)
"""A prompt that was cut fills its context to within these shares."""
_SMALLEST: Final = 2**11
_LARGEST: Final = 2**20


class TruncatedByServer(UserWarning):
    """The server read only the end of a prompt, and answered without an error."""


def truncated_at(expected: float, reported: int) -> int | None:
    """Return the context of a server that cut a prompt; `None` if it read the whole prompt.

    Args:
        expected: Tokens of the request, as far as is known in the provider's count.
        reported: Input tokens that the server reported.

    ```python
    from muntin.adapting import truncated_at

    print(truncated_at(160_689, 16_387), truncated_at(16_400, 16_387), truncated_at(9000, 6000))
    #> 16384 None None
    ```
    """
    if reported >= _FAR_BELOW * expected:
        return None
    size = _SMALLEST
    while size <= _LARGEST:
        if _NEAR[0] * size <= reported <= _NEAR[1] * size:
            return size
        size *= 2
    return None
