"""`zotctl share`: writes a session to one HTML file that can be given to others."""

import argparse
import os
import re
import sys
from collections.abc import Iterator

from zotctl import link, output
from zotctl.commands import Subparsers
from zotd.client.atomic_write import write_atomically
from zotd.client.blocking import Connection
from zotd.client.choosing import find, newest
from zotd.client.errors import ClientError
from zotd.client.fields import number, text
from zotd.client.interrupts import Watch
from zotd.sanitize import one_line

EPILOG = """\
examples:
  zotctl share tests
  zotctl share --last --output talk.html --redact 'ACME-\\d+' --redact example.com
  zotctl share tests --from 41 --to 97

The file needs no server, loads nothing and has no scripts. Secrets are masked as in logs, and your home directory
becomes ~. Tell apart what masking cannot know: read the file before you give it away. zotctl log --json shows the
number (seq) of every event; #m41 behind the file's name leads to the message 41.
"""


def add(commands: Subparsers) -> None:
    """Register `share`."""
    parser = commands.add_parser("share", help="write a session to an HTML file for others", epilog=EPILOG)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("session", metavar="SESSION", nargs="?", help="session ID or name")
    parser.add_argument("--last", action="store_true", help="the most recently used session")
    parser.add_argument("-o", "--output", metavar="FILE", help="write to FILE (default: SESSION.html), replacing it")
    parser.add_argument(
        "--redact",
        metavar="PATTERN",
        action="append",
        default=[],
        help="also mask what matches this regular expression; may be repeated",
    )
    parser.add_argument("--from", dest="start", type=int, metavar="SEQ", help="first message (default: the first one)")
    parser.add_argument("--to", dest="end", type=int, metavar="SEQ", help="last message (default: the newest)")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    # Loaded for this command only: the event types take longer than the other commands altogether.
    from zotctl.share.page import SharedPage  # noqa: PLC0415
    from zotctl.share.redaction import Redaction  # noqa: PLC0415

    if (args.session is None) != args.last:
        raise ClientError("name one session, or use --last")
    redaction = Redaction(os.environ, patterns=[_pattern(one) for one in args.redact])
    with Watch() as watch, link.connect("zotctl", watch.wait) as connection:
        session = newest(connection) if args.last else find(connection, args.session)
        key = text(session, "id")
        with output.progress("exporting"):
            lines = "".join(_pages(connection, key)).split("\n")
        page = SharedPage(redaction, start=args.start or 0, end=args.end)
        html = page.html(lines)
        path = args.output or f"{key}.html"
        try:
            with write_atomically(path) as file:
                file.write(html)
        except OSError as error:
            raise ClientError(f"cannot write {path}: {error.strerror}") from error
    sys.stdout.write(one_line(f"{path}: {page.messages} messages; {redaction.told()}") + "\n")
    sys.stdout.write("read it before you give it away: masking knows only what looks like a secret\n")
    return 0


def _pattern(text: str) -> re.Pattern[str]:
    try:
        found = re.compile(text)
    except re.error as error:
        raise ClientError(f"--redact {text}: {error}") from error
    if found.match(""):
        raise ClientError(f"--redact {text}: matches an empty text")
    return found


def _pages(connection: Connection, session: str) -> Iterator[str]:
    after = 0
    while True:
        page = connection.call("session.export", session=session, format="jsonl", after=after)
        yield text(page, "text")
        if page.get("next") is None:
            return
        after = number(page, "next")
