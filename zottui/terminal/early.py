"""The first thing that the program does: keys that are typed while it starts are neither echoed nor lost.

Nothing but `termios` is imported here: the modules of the client take 200 ms, and a person who has typed `zottui` and
Enter goes on typing.
"""

import termios
from collections.abc import Callable

KEYBOARD = 0

INPUT, LOCAL = 0, 3
"""Places in what `tcgetattr` returns."""


def cbreak(fd: int = KEYBOARD) -> Callable[[], None]:
    """Turn off echo and the editing of lines, and return what puts the terminal back as it was.

    Enter is a carriage return from now on, as prompt_toolkit wants to have it. Ctrl-C still interrupts. If `fd` is no
    terminal, nothing happens, then and now. Putting it back throws away what has not been read: the shell would take a late
    answer of the terminal for a command. It may be done twice, and when the terminal is gone.
    """
    try:
        before = termios.tcgetattr(fd)
        quiet = termios.tcgetattr(fd)
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
