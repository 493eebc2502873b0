"""Ends the plain chat by an exception, also on signals."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from zotd.client.interrupts import InterruptedBySignal


class LeaveChat(Exception):  # noqa: N818  (not an error: the user wants to go)
    """Raised to end the chat; the session continues in the daemon."""


@contextmanager
def leaving_on_signals() -> Iterator[None]:
    """Turn Ctrl-C and other signals into `LeaveChat`, for the time at the prompt."""
    try:
        yield
    except InterruptedBySignal as interruption:
        sys.stdout.write("\n")
        raise LeaveChat from interruption
