"""Colours on a terminal. The standard library only, and of it next to nothing."""

import os
from collections.abc import Mapping

BOLD = "1"
RED = "31"
GREEN = "32"
YELLOW = "33"
CYAN = "36"


def is_wanted(descriptor: int, env: Mapping[str, str]) -> bool:
    """Whether what is written there may have colours: it is a terminal, and nobody has switched them off.

    See no-color.org; a flag `--no-color` is for the caller to look at.
    """
    return not env.get("NO_COLOR") and env.get("TERM") != "dumb" and os.isatty(descriptor)


def painted(words: str, colour: str) -> str:
    """`words` in one of the colours above; nothing stays switched on behind them."""
    return f"\x1b[{colour}m{words}\x1b[0m"
