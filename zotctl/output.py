"""Output of the command line tools: results on standard output, everything else on standard error."""

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
"""Seconds before a progress message appears."""

_colour_wanted = True


def switch_colour_off() -> None:
    """Disable colours for the rest of the program (`--no-color`)."""
    global _colour_wanted  # noqa: PLW0603  (a process-wide setting)
    _colour_wanted = False


def has_colours(descriptor: int | None = None) -> bool:
    """Return whether `descriptor`, by default standard output, is a terminal and colours are wanted."""
    return _colour_wanted and colour.is_wanted(sys.stdout.fileno() if descriptor is None else descriptor, os.environ)


def painted(words: str, hue: str) -> str:
    """Return `words` in a colour of `zotd.client.colour`, or unchanged if colours are off."""
    return colour.painted(words, hue) if has_colours() else words


def print_json(value: object) -> None:
    """Print a JSON value on one line."""
    print(json_line(json.dumps(value, ensure_ascii=False, separators=(",", ":"))))


def print_text(text: str) -> None:
    """Print text of a model, command or session, ending with one newline.

    On a terminal control characters are made visible; a pipe gets the text unchanged. Lone surrogates, which UTF-8
    cannot encode, become question marks.
    """
    shown = harmless(text) if sys.stdout.isatty() else text
    sys.stdout.flush()
    sys.stdout.buffer.write(shown.encode(errors="replace") + (b"" if shown.endswith("\n") else b"\n"))
    sys.stdout.buffer.flush()


def print_lines(lines: Sequence[str]) -> None:
    """Print lines of our own making, which may contain colours."""
    for line in lines:
        print(line)


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table with a bold head; only the head if there are no rows. Cells may contain any text."""
    first, *others = table([head, *rows])
    print(painted(first, colour.BOLD))
    for line in others:
        print(line)


def without_empty(
    head: Sequence[str], rows: Sequence[Sequence[str]], *columns: str
) -> tuple[list[str], list[list[str]]]:
    """Return a table without those of the named columns in which no row has anything."""
    empty = {head.index(name) for name in columns if not any(row[head.index(name)] for row in rows)}
    kept = [place for place in range(len(head)) if place not in empty]
    return [head[place] for place in kept], [[row[place] for place in kept] for row in rows]


def moment(time: str) -> str:
    """Shorten a timestamp of the daemon to minutes; stays in UTC."""
    return time[:16].replace("T", " ")


@contextmanager
def progress(doing: str) -> Iterator[None]:
    """Print `doing` if the block takes longer than `PROGRESS_AFTER_S` and standard error is a terminal."""
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
    """Report an `OSError` that ends the program, usually while writing standard output; return the exit code.

    A closed pipe is not reported, as in `zotctl sessions | head -1`.
    """
    forget_stdout()
    if not isinstance(error, BrokenPipeError):
        what = error.filename or "standard output"
        sys.stderr.write(f"{program}: {harmless(str(what))}: {(error.strerror or str(error)).lower()}\n")
    return 1


def forget_stdout() -> None:
    """Redirect standard output to /dev/null, so that the flush at exit does not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
