"""The first step of the startup: keys that are typed meanwhile are neither echoed nor lost.

Imports nothing but `termios`: the other modules take 200 ms, and users go on typing after Enter.
"""

import termios
from collections.abc import Callable

KEYBOARD = 0

INPUT, LOCAL = 0, 3
"""Indices in the result of `tcgetattr`."""


def cbreak(fd: int = KEYBOARD) -> Callable[[], None]:
    """Switch off echo and line editing, and return a function that restores the terminal.

    Enter then sends a carriage return, as prompt_toolkit expects. Ctrl-C still interrupts. If `fd` is not a terminal, both
    functions do nothing. Restoring discards unread input: the shell would take a late answer of the terminal for a command.
    It may be called twice, and after the terminal is gone.
    """
    try:
        before = termios.tcgetattr(fd)
        quiet = termios.tcgetattr(fd)  # a second list, since it is changed below and `before` must stay as it is
        quiet[INPUT] &= ~(termios.ICRNL | termios.INLCR | termios.IGNCR)
        quiet[LOCAL] &= ~(termios.ECHO | termios.ICANON)
        termios.tcsetattr(fd, termios.TCSANOW, quiet)
    except termios.error:
        return lambda: None

    def restore() -> None:
        try:
            termios.tcsetattr(fd, termios.TCSAFLUSH, before)
        except termios.error:
            return

    return restore
