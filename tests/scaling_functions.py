"""Functions that worker processes can import, for the tests of batches."""

from __future__ import annotations

import os
import signal


class StubbornError(Exception):
    """An error that pickles and does not load."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} {second}")


def double(number: int) -> int:
    """Return twice a number; some numbers are bad in different ways."""
    if number == 13:
        raise ValueError("unlucky")
    if number == 17:
        raise StubbornError("does not", "load")
    return 2 * number


def killed_by_seven(number: int) -> int:
    """End the whole process at one record, as the kernel does when memory is short."""
    if number == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    return 2 * number


def ends_at_once(number: int) -> object:
    """Return what cannot be sent back for odd numbers."""
    return (lambda: number) if number % 2 else number
