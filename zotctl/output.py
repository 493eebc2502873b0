"""What the command line tools print, and where: results on standard output, everything else on standard error."""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Timer

from zotd.client import colour
from zotd.client.table import table
from zotd.sanitize import harmless, json_line

PROGRESS_AFTER_S = 1.0
"""What takes less is not worth a line."""

_colour_wanted = True


def switch_colour_off() -> None:
    """`--no-color` was given."""
    global _colour_wanted  # noqa: PLW0603  (one setting of the whole program)
    _colour_wanted = False


def has_colours() -> bool:
    """Whether standard output is a terminal that may have colours."""
    return _colour_wanted and colour.is_wanted(sys.stdout.fileno(), os.environ)


def painted(words: str, hue: str) -> str:
    """`words` in one of the colours of `zotd.client.colour`, where there may be colours."""
    return colour.painted(words, hue) if has_colours() else words


def print_json(value: object) -> None:
    """One JSON value on one line."""
    print(json_line(json.dumps(value, ensure_ascii=False, separators=(",", ":"))))


def print_text(text: str) -> None:
    """What a model, a command or a session says, with one newline at its end.

    On a terminal it is made harmless. A pipe gets every character: the program behind it wants what was said, and knows
    what it does with it. Half of a surrogate pair, which UTF-8 has not, becomes a question mark.
    """
    shown = harmless(text) if sys.stdout.isatty() else text
    sys.stdout.flush()
    sys.stdout.buffer.write(shown.encode(errors="replace") + (b"" if shown.endswith("\n") else b"\n"))
    sys.stdout.buffer.flush()


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table with a bold head; only the head if there are no rows. Cells may contain any text."""
    first, *others = table([head, *rows])
    print(painted(first, colour.BOLD))
    for line in others:
        print(line)


def moment(time: str) -> str:
    """A time as the daemon writes it, to the minute, for a table; UTC, as there."""
    return time[:16].replace("T", " ")


@contextmanager
def progress(doing: str) -> Iterator[None]:
    """Say what is being done, when it takes more than a second and somebody watches."""
    if not sys.stderr.isatty():
        yield
        return
    timer = Timer(PROGRESS_AFTER_S, lambda: sys.stderr.write(f"{doing} …\n"))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def lost(program: str, error: OSError) -> int:
    """Say in one sentence why `error` ends `program`, most often because standard output cannot be written; the exit code.

    A pipe that nobody reads any more is no reason for a sentence: `zotctl sessions | head -1`.
    """
    forget_stdout()
    if not isinstance(error, BrokenPipeError):
        what = error.filename or "standard output"
        sys.stderr.write(f"{program}: {harmless(str(what))}: {(error.strerror or str(error)).lower()}\n")
    return 1


def forget_stdout() -> None:
    """Nobody reads standard output: let the interpreter's last flush go nowhere instead of complaining."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
