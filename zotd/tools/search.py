"""A program that `grep` runs if there is no ripgrep: `search.py -s|-i PATTERN < PATHS`.

Reads paths, each ended by a NUL, and prints `path NUL line-number : line` for each matching line, like
`rg --null --line-number`. It imports nothing of zot, so that it starts fast.

A separate process can be killed: a regular expression may run for ever (`(a+)+$`), and Python's `re` would then block all
threads of the daemon.
"""

import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import BinaryIO

SNIFF_BYTES = 8 * 1024
"""A NUL in the first bytes marks a binary file, which is skipped."""

LINE_BYTES = 64 * 1024
"""Longest part of a line that is searched."""

SHOWN_BYTES = 2_000
"""Longest part of a line that is printed."""


def main(arguments: list[str], paths: BinaryIO, out: BinaryIO) -> int:
    """Run the program; `-i` ignores case. Return 0, even without a match, or 2 for an invalid pattern."""
    case, text = arguments
    try:
        pattern = re.compile(text, re.IGNORECASE if case == "-i" else 0)
    except (re.error, OverflowError, RecursionError) as error:
        out.write(f"regex parse error: {error}\n".encode(errors="replace"))
        return 2
    for path in paths.read().split(b"\0"):
        with suppress(OSError, ValueError):  # deleted, unreadable, or not a regular file
            search(path, pattern, out)
    return 0


def search(path: bytes, pattern: re.Pattern[str], out: BinaryIO) -> None:
    """Print the matching lines of one file."""
    with open_regular(path) as file:
        for number, line in matching_lines(file, pattern):
            out.write(b"%b\0%d:%b\n" % (path, number, line[:SHOWN_BYTES]))
            out.flush()  # the reader kills this process once it has enough


def matching_lines(file: BinaryIO, pattern: re.Pattern[str]) -> Iterator[tuple[int, bytes]]:
    """Yield the matching lines of a text file with their numbers."""
    if b"\0" in file.read(SNIFF_BYTES):
        return
    file.seek(0)
    for number, line in enumerate(lines(file), 1):
        if pattern.search(line.decode(errors="replace")):
            yield number, line


def open_regular(path: bytes) -> BinaryIO:
    """Open a regular file without following a symbolic link.

    Raises:
        ValueError: it is not a regular file.
    """
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW), "rb")
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    raise ValueError("not a regular file")


def lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield lines without line ends, cut at `LINE_BYTES`."""
    while line := file.readline(LINE_BYTES):
        yield line.rstrip(b"\r\n")
        # Skips the rest of a long line, so that line numbers stay correct.
        while not line.endswith(b"\n") and line:
            line = file.readline(LINE_BYTES)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], sys.stdin.buffer, sys.stdout.buffer))
