"""How the plain chat is left."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from zotd.client.interrupts import InterruptedBySignal


class LeaveChat(Exception):  # noqa: N818  (not an error: the user wants to go)
    """The chat is over."""


@contextmanager
def leaving_on_signals() -> Iterator[None]:
    """At the prompt Ctrl-C leaves, and so do the other signals."""
    try:
        yield
    except InterruptedBySignal as interruption:
        sys.stdout.write("\n")
        raise LeaveChat from interruption
