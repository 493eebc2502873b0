"""A program, run by `grep` where there is no ripgrep: `search.py -s|-i PATTERN < PATHS`.

Reads paths, each ended by a NUL, and prints `path NUL line-number : line` for each line that matches, as
`rg --null --line-number` does. It imports nothing of ours and starts in 10 ms.

It is a process of its own because a regular expression can run for ever (`(a+)+$`), and Python's `re` then holds up
every thread: here it can be killed.
"""

import os
import re
import stat
import sys
from collections.abc import Iterator
from io import BufferedReader

SNIFF_BYTES = 8 * 1024
"""A NUL among the first bytes means binary: skipped."""

LINE_BYTES = 64 * 1024
"""How much of a line is searched, and held in memory."""

SHOWN_BYTES = 2_000
"""How much of a line is printed."""


def main(arguments: list[str]) -> int:
    """`-i`: upper and lower case are alike. Exit code 0, also without a match; 2 for a bad pattern."""
    case, text = arguments
    try:
        pattern = re.compile(text, re.IGNORECASE if case == "-i" else 0)
    except (re.error, OverflowError, RecursionError) as error:
        sys.stdout.write(f"regex parse error: {error}\n")
        return 2
    for path in sys.stdin.buffer.read().split(b"\0"):
        try:
            with open_regular(path) as file:
                search(file, path, pattern)
        except (OSError, ValueError):  # gone, not permitted, not a regular file
            continue
    return 0


def search(file: BufferedReader, path: bytes, pattern: re.Pattern[str]) -> None:
    """Print the lines of one file that match."""
    if b"\0" in file.read(SNIFF_BYTES):
        return
    file.seek(0)
    for number, line in enumerate(lines(file), 1):
        if pattern.search(line.decode(errors="replace")):
            sys.stdout.buffer.write(b"%b\0%d:%b\n" % (path, number, line[:SHOWN_BYTES]))
            sys.stdout.buffer.flush()  # the reader stops us as soon as it has enough


def open_regular(path: bytes) -> BufferedReader:
    """A regular file that is no symbolic link.

    Raises:
        ValueError: it is something else.
    """
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW), "rb")
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    raise ValueError("not a regular file")


def lines(file: BufferedReader) -> Iterator[bytes]:
    """Lines without their end; of a line longer than `LINE_BYTES` only the beginning."""
    while line := file.readline(LINE_BYTES):
        yield line.rstrip(b"\r\n")
        while not line.endswith(b"\n") and line:
            line = file.readline(LINE_BYTES)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
