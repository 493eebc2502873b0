"""Answering a question, whose letters count only when nobody has been typing for half a second."""

import re
import time

PATIENCE_S = 0.7
"""After this time a person presses again."""


def decide(zot, key, then, *, where="screen"):
    """Press `key` until what matches `then` is seen."""
    pressed = 0.0

    def seen():
        nonlocal pressed
        if re.search(then, getattr(zot, where)(), re.MULTILINE):
            return True
        if time.monotonic() - pressed > PATIENCE_S:
            zot.type(key)
            pressed = time.monotonic()
        return False

    zot.until(seen, f"/{then}/")
