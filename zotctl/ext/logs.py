"""`zotctl ext logs`: what an extension has written to its stderr, and what was noted about it."""

import argparse
import sys

from zotctl import link, output
from zotctl.commands import Commands
from zotctl.ext import scope
from zotd.client.errors import ClientError
from zotd.client.fields import text
from zotd.client.interrupts import Watch
from zotd.client.plain import harmless

SHOWN = 200
"""Lines, unless more or fewer are asked for."""


def add(actions: Commands) -> None:
    """`logs`."""
    parser = actions.add_parser("logs", help="an extension's log", epilog="example: zotctl ext logs weather -f")
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("-f", "--follow", action="store_true", help="go on with what it writes, until Ctrl-C")
    parser.add_argument("-n", "--lines", type=int, default=SHOWN, metavar="N", help=f"at most so many ({SHOWN})")
    scope.add_flags(parser)
    parser.add_argument("--json", action="store_true", help="the path and the text; not with --follow")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    if args.follow and args.json:
        raise ClientError("--follow prints text; leave out --json")
    watch = Watch(sys.stdout.fileno())
    with link.connect("zotctl", watch.wait) as connection, watch:
        wanted = scope.chosen(connection, args)
        page = connection.call("ext.logs", wanted, name=args.name, lines=args.lines, follow=args.follow)
        if args.json:
            output.print_json({"v": 1, **page})
            return 0
        _write(text(page, "text"))
        if args.follow:
            for event in connection.events():
                _write(text(event, "text") if event.get("type") == "ext_log" else "")
    return 0


def _write(words: str) -> None:
    sys.stdout.write(harmless(words))
    sys.stdout.flush()
