"""`zotctl attach --plain`: a session as text, for pipes and screen readers."""

import argparse
import os
import sys

from zotctl import link
from zotctl.commands import Subparsers
from zotd.client import place
from zotd.client.errors import ClientError
from zotd.client.fields import children, text
from zotd.client.interrupts import Watch
from zotd.client.options import positive
from zotd.client.plain import Plain


def add(commands: Subparsers) -> None:
    """Register `attach`."""
    parser = commands.add_parser(
        "attach", help="follow a session as text", epilog="example: zotctl attach --plain --last"
    )
    link.add_session_flags(parser)
    parser.add_argument("--plain", action="store_true", help="plain text, read-only, until Ctrl-C")
    parser.add_argument(
        "--limit", type=positive, default=50, metavar="N", help="number of earlier messages to show (50)"
    )
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    if not args.plain:
        raise ClientError("attach needs --plain; for an interactive session, run: zot --session ID")
    watch = Watch(sys.stdout.fileno())
    plain = Plain()
    with link.connect("zotctl", watch.wait, can_approve=True) as connection, watch:
        session = text(link.chosen(connection, args), "id")
        snapshot = connection.call("attach", session=session, limit=args.limit, env=place.of(os.environ).variables)
        for message in children(snapshot, "messages"):
            _write(plain.message(message))
        for event in connection.events():
            if event.get("session") == session:
                _write(plain.text(event))
    return 0


def _write(words: str) -> None:
    if words:
        sys.stdout.write(words)
        sys.stdout.flush()
