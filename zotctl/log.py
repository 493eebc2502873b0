"""`zotctl log`: prints the recorded events of a session."""

import argparse
import sys

from zotctl import link
from zotctl.commands import Subparsers
from zotd.client.blocking import Connection
from zotd.client.errors import ClientError
from zotd.client.fields import text
from zotd.client.interrupts import Watch
from zotd.client.plain import Plain
from zotd.sanitize import json_line


def add(commands: Subparsers) -> None:
    """Register `log`."""
    parser = commands.add_parser(
        "log", help="print a session's recorded events", epilog="example: zotctl log --last --after 120 --follow --json"
    )
    link.add_session_flags(parser)
    parser.add_argument("--after", type=int, default=0, metavar="SEQ", help="only events after this number")
    parser.add_argument("--follow", action="store_true", help="keep printing new events until Ctrl-C")
    parser.add_argument("--json", action="store_true", help="print each event as a line of JSON")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    watch = Watch(sys.stdout.fileno())
    with link.connect("zotctl", watch.wait) as connection, watch:
        session = text(link.chosen(connection, args), "id")
        _attach(connection, session, args.after)
        plain = Plain()
        for line, event in connection.lines():
            if event.get("session") != session:
                continue
            if event.get("type") == "replay_complete" and not args.follow:
                return 0
            _write(json_line(line.decode()) + "\n" if args.json else plain.text(event))
    return 0


def _attach(connection: Connection, session: str, after: int) -> None:
    cursor = {"epoch": connection.call("daemon.status").get("epoch"), "seq": after}
    snapshot = connection.call("attach", session=session, after=cursor, limit=1)
    if snapshot.get("mode") != "resumed":
        raise ClientError(f"cannot show the events after {after}: {text(snapshot, 'reason') or 'expired'}")


def _write(words: str) -> None:
    if words:
        sys.stdout.write(words)
        sys.stdout.flush()
