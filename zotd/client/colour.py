"""Colours on a terminal. Uses only a small part of the standard library."""

import os
from collections.abc import Mapping

BOLD = "1"
RED = "31"
GREEN = "32"
YELLOW = "33"
CYAN = "36"


def is_wanted(descriptor: int, env: Mapping[str, str]) -> bool:
    """Return whether output to the stream may have colours: it is a terminal, and colours are not disabled.

    See no-color.org. The caller has to handle a flag `--no-color`.
    """
    return not env.get("NO_COLOR") and env.get("TERM") != "dumb" and os.isatty(descriptor)


def painted(words: str, colour: str) -> str:
    """Return `words` in a colour, followed by a reset."""
    return f"\x1b[{colour}m{words}\x1b[0m"
