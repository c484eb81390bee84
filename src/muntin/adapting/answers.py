"""Read from an answer what the provider did to its request without an error.

An answer may end because the window was full: Anthropic and Bedrock answer with the stop reason
`model_context_window_exceeded`, Mistral with `model_length`, and Ollama with `length` and an empty
text. Anthropic's context editing removes tool results and thinking from a request, so that its
reported input is less than what was sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from muntin.adapting.refusals import Refusal

__all__ = ("is_edited_request", "overflow_of_answer")

_FULL: Final = frozenset({"model_context_window_exceeded", "model_length"})
_IF_EMPTY: Final = frozenset({"length"})
_KEYS: Final = ("stop_reason", "stopReason", "finish_reason", "done_reason")


def overflow_of_answer(metadata: Mapping[str, Any], text: str) -> Refusal | None:
    """Return the refusal that an answer amounts to; `None` for an answer that is complete.

    Args:
        metadata: What the provider reported with the answer.
        text: The text of the answer, with the calls in any form; "" for an empty answer.

    ```python
    from muntin.adapting import overflow_of_answer

    print(overflow_of_answer({"stop_reason": "model_context_window_exceeded"}, "It is").kind)
    #> window
    print(overflow_of_answer({"stop_reason": "end_turn"}, "It is here."))
    #> None
    ```
    """
    reasons = {str(metadata[key]) for key in _KEYS if metadata.get(key)}
    if reasons & _FULL or (not text.strip() and reasons & _IF_EMPTY):
        return Refusal(kind="window")
    return None


def is_edited_request(metadata: Mapping[str, Any]) -> bool:
    """Return whether the provider edited the request, so that its usage is not about what was sent.

    Args:
        metadata: What the provider reported with the answer.
    """
    management: object = metadata.get("context_management")
    if not isinstance(management, Mapping):
        return False
    return bool(cast("Mapping[str, Any]", management).get("applied_edits"))
