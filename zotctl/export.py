"""`zotctl export`: writes a session to a file, complete as JSON lines or readable as Markdown."""

import argparse
import sys
import time
from collections.abc import Iterator

from zotctl import link
from zotctl.commands import Subparsers
from zotd.client import humanize
from zotd.client.atomic_write import write_atomically
from zotd.client.blocking import Connection
from zotd.client.errors import ClientError
from zotd.client.fields import number, text
from zotd.client.interrupts import Watch
from zotd.sanitize import harmless, json_line, one_line

PROGRESS_S = 1.0
"""Seconds between two progress messages."""

EPILOG = """\
examples:
  zotctl export --last --format markdown -o talk.md
  zotctl export --session tests | jq -r 'select(.type == "user_message") | .content[].text'

The jsonl format holds the complete session; zotctl import reads it. FILE is written atomically with mode 0600.
"""


def add(commands: Subparsers) -> None:
    """Register `export`."""
    parser = commands.add_parser("export", help="export a session to a file", epilog=EPILOG)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    link.add_session_flags(parser)
    parser.add_argument(
        "--format", choices=["jsonl", "markdown"], default="jsonl", help="format of the file (default: jsonl)"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write to FILE instead of standard output, replacing it")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    # `Watch` turns signals into exceptions, so that an incomplete file is removed.
    with Watch() as watch, link.connect("zotctl", watch.wait) as connection:
        pages = _told(_pages(connection, text(link.chosen(connection, args), "id"), args.format))
        if args.output is not None:
            _save(pages, args.output)
        elif sys.stdout.isatty():
            tame = json_line if args.format == "jsonl" else harmless
            sys.stdout.writelines(map(tame, pages))
        else:
            sys.stdout.writelines(pages)
    return 0


def _pages(connection: Connection, session: str, form: str) -> Iterator[str]:
    after = 0
    while True:
        page = connection.call("session.export", session=session, format=form, after=after)
        yield text(page, "text")
        if page.get("next") is None:
            return
        after = number(page, "next")


def _told(pages: Iterator[str]) -> Iterator[str]:
    """Yield the pages; on a terminal also print the progress to standard error."""
    size, next_s, told = 0, time.monotonic() + PROGRESS_S, False
    for page in pages:
        yield page
        size += len(page)
        if sys.stderr.isatty() and time.monotonic() >= next_s:
            sys.stderr.write("\r" + one_line(f"exporting … {humanize.size(size)}  "))
            next_s, told = time.monotonic() + PROGRESS_S, True
    if told:
        sys.stderr.write("\n")


def _save(pages: Iterator[str], path: str) -> None:
    try:
        with write_atomically(path) as file:
            file.writelines(pages)
    except OSError as error:
        raise ClientError(f"cannot write {path}: {error.strerror}") from error
