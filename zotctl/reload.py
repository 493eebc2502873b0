"""`zotctl reload`: reloads the daemon's configuration."""

import argparse

from zotctl import link, output
from zotctl.commands import Subparsers
from zotd.client.fields import strings
from zotd.sanitize import one_line


def add(commands: Subparsers) -> None:
    """Register `reload`."""
    parser = commands.add_parser("reload", help="reload config.toml", epilog="example: zotctl reload --json")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=_reload)


def _reload(args: argparse.Namespace) -> int:
    with link.connect("zotctl", start=False, role="admin") as connection:
        found = connection.call("daemon.reload")
    if args.json:
        output.print_json({"v": 1, **found})
        return 0
    applied, restart = strings(found, "applied"), strings(found, "restart")
    print(one_line(f"changed: {', '.join(applied)}" if applied else "no setting has changed"))
    if restart:
        print(one_line(f"takes effect after a restart: {', '.join(restart)}"))
    for warning in strings(found, "warnings"):
        print(one_line(f"warning: {warning}"))
    return 0
