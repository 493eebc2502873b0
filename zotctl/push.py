"""`zotctl push`: the browsers that get push messages (`docs/page.md`)."""

import argparse

from zotctl import link, output
from zotctl.commands import Subparsers
from zotd.client.fields import children, text
from zotd.sanitize import one_line

EPILOG = """\
examples:
  zotctl push list
  zotctl push remove d_01JX

A browser subscribes on the page, with "Notify this device". Its subscription ends with its token.
"""


def add(commands: Subparsers) -> None:
    """Register `push` and its actions."""
    parser = commands.add_parser("push", help="list and remove browsers that get push messages", epilog=EPILOG)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="list the browsers", epilog="example: zotctl push list --json")
    listing.set_defaults(run=_list)
    remove = actions.add_parser(
        "remove", help="send no more messages to a browser", epilog="example: zotctl push remove d_01JX"
    )
    remove.add_argument("browser", metavar="ID", help="id of the browser")
    remove.set_defaults(run=_remove)
    for action in (listing, remove):
        action.add_argument("--json", action="store_true", help="print the result as JSON")


def _list(args: argparse.Namespace) -> int:
    with link.connect("zotctl", role="admin") as connection:
        found = children(connection.call("push.list"), "browsers")
    if args.json:
        output.print_json({"v": 1, "browsers": found})
        return 0
    rows = [
        [text(one, "id"), text(one, "name"), text(one, "token"), output.moment(text(one, "created"))] for one in found
    ]
    output.print_table(["ID", "BROWSER", "TOKEN", "SINCE"], rows)
    return 0


def _remove(args: argparse.Namespace) -> int:
    with link.connect("zotctl", role="admin") as connection:
        connection.call("push.remove", browser=args.browser)
    if args.json:
        output.print_json({"v": 1, "browser": args.browser})
    else:
        print(one_line(f"removed {args.browser}: it gets no more push messages"))
    return 0
