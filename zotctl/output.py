"""What the command line tools print, and where: results on standard output, everything else on standard error."""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Timer

from zotd.client import colour
from zotd.client.plain import harmless

PROGRESS_AFTER_S = 1.0
"""What takes less is not worth a line."""

_ESCAPED = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A))}
"""DEL, C1 and changes of direction: what `harmless` leaves out. In JSON they can only stand inside a string."""

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
    print(harmless_json(json.dumps(value, ensure_ascii=False, separators=(",", ":"))))


def harmless_json(line: str) -> str:
    """The same JSON, which cannot steer a terminal: JSON escapes only the first 32 control characters by itself."""
    return line.translate(_ESCAPED)


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns as wide as they have to be, the last one without an end; nothing but the head when there is no row.

    Cells may come from anybody: each is made `one_line`.
    """
    lines = [list(map(one_line, row)) for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    widths[-1] = 0
    for number, row in enumerate(lines):
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        print(line if number else painted(line, colour.BOLD))


def one_line(words: str) -> str:
    """`words` that cannot steer a terminal and do not begin another line."""
    return harmless(words).replace("\n", " ").replace("\t", " ")


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


def forget_stdout() -> None:
    """Nobody reads standard output: let the interpreter's last flush go nowhere instead of complaining."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
