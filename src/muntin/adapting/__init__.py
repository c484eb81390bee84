"""What both adapters need: facts about providers and decisions they share.

It reads refusals and decides how large the next request may be. It imports no framework.
"""

from __future__ import annotations

from muntin.adapting.refusal_texts import WORDINGS, RefusalKind, Wording
from muntin.adapting.refusals import Refusal, Retry, refusal_of, second_try

__all__ = (
    "WORDINGS",
    "Refusal",
    "RefusalKind",
    "Retry",
    "Wording",
    "refusal_of",
    "second_try",
)
