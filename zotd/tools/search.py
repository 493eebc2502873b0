"""A program, run by `grep` where there is no ripgrep: `search.py -s|-i PATTERN < PATHS`.

Reads paths, each ended by a NUL, and prints `path NUL line-number : line` for each line that matches, as
`rg --null --line-number` does. It imports nothing of ours, so that it starts fast.

It is a process of its own because a regular expression can run for ever (`(a+)+$`), and Python's `re` then holds up
every thread: here it can be killed.
"""

import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import BinaryIO

SNIFF_BYTES = 8 * 1024
"""A NUL among the first bytes means binary: skipped."""

LINE_BYTES = 64 * 1024
"""How much of a line is searched, and held in memory."""

SHOWN_BYTES = 2_000
"""How much of a line is printed."""


def main(arguments: list[str], paths: BinaryIO, out: BinaryIO) -> int:
    """`-i`: upper and lower case are alike. Exit code 0, also without a match; 2 for a bad pattern."""
    case, text = arguments
    try:
        pattern = re.compile(text, re.IGNORECASE if case == "-i" else 0)
    except (re.error, OverflowError, RecursionError) as error:
        out.write(f"regex parse error: {error}\n".encode(errors="replace"))
        return 2
    for path in paths.read().split(b"\0"):
        with suppress(OSError, ValueError):  # gone, not permitted, not a regular file
            search(path, pattern, out)
    return 0


def search(path: bytes, pattern: re.Pattern[str], out: BinaryIO) -> None:
    """Print the lines of one file that match."""
    with open_regular(path) as file:
        for number, line in matching_lines(file, pattern):
            out.write(b"%b\0%d:%b\n" % (path, number, line[:SHOWN_BYTES]))
            out.flush()  # the reader stops us as soon as it has enough


def matching_lines(file: BinaryIO, pattern: re.Pattern[str]) -> Iterator[tuple[int, bytes]]:
    """Lines of a text file that match, with their number."""
    if b"\0" in file.read(SNIFF_BYTES):
        return
    file.seek(0)
    for number, line in enumerate(lines(file), 1):
        if pattern.search(line.decode(errors="replace")):
            yield number, line


def open_regular(path: bytes) -> BinaryIO:
    """A regular file that is no symbolic link.

    Raises:
        ValueError: it is something else.
    """
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW), "rb")
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    raise ValueError("not a regular file")


def lines(file: BinaryIO) -> Iterator[bytes]:
    """Lines without their end; of a line longer than `LINE_BYTES` only the beginning."""
    while line := file.readline(LINE_BYTES):
        yield line.rstrip(b"\r\n")
        while not line.endswith(b"\n") and line:
            line = file.readline(LINE_BYTES)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], sys.stdin.buffer, sys.stdout.buffer))
