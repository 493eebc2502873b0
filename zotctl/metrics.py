"""`zotctl metrics`: prints the daemon's gauges and counters."""

import argparse

from zotctl import link, output
from zotctl.commands import Subparsers
from zotd.sanitize import one_line

EPILOG = """\
examples:
  zotctl metrics
  zotctl metrics --json | jq .rss_bytes

Values from `connections` on are counted since the daemon started. Does not start the daemon.
"""


def add(commands: Subparsers) -> None:
    """Register `metrics`."""
    parser = commands.add_parser("metrics", help="show the daemon's metrics", epilog=EPILOG)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    with link.connect("zotctl", start=False) as connection:
        found = connection.call("daemon.metrics")
    if args.json:
        output.print_json(found)
        return 0
    for name, value in found.items():
        if name != "v":
            print(one_line(f"{name:12} {'unknown' if value is None else value}"))
    return 0
