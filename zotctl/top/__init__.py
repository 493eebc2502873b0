"""`zotctl top`: a live view of sessions, model output rates, cost, clients and the load of extensions."""

import argparse
import sys

from zotctl.commands import Subparsers

EPILOG = """\
examples:
  zotctl top
  zotctl top --delay 5
  zotctl top --once
  zotctl top --json | jq .tokens_per_s

Press q to quit. TOK/S is the output rate over the last five updates; for a reply in progress it is an estimate. CPU and
memory of an extension include all processes that it started; they are not available with --host. Does not start the
daemon.
"""

DELAY_S = 1.0
SHORTEST_DELAY_S = 0.2
"""An update takes 15 ms: it queries the daemon and all processes of the machine."""
LONGEST_DELAY_S = 3600.0
"""Longer delays are typing errors rather than intended."""


def add(commands: Subparsers) -> None:
    """Register `top`."""
    parser = commands.add_parser("top", help="show sessions and extensions, updated live", epilog=EPILOG)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add_flags(parser)
    parser.set_defaults(run=_run)


def add_flags(parser: argparse.ArgumentParser, delay_s: float = DELAY_S) -> None:
    """Add the flags of a live view. `delay_s`: the default delay."""
    help_text = f"seconds between updates ({delay_s:g})"
    parser.add_argument("-d", "--delay", type=_delay, default=delay_s, metavar="S", help=help_text)
    parser.add_argument("--once", action="store_true", help="print once and exit, as without a terminal")
    parser.add_argument("--json", action="store_true", help="print a line of JSON for each update")


def _delay(word: str) -> float:
    try:
        seconds = float(word)
    except ValueError:
        raise argparse.ArgumentTypeError(f'"{word}" is not a number of seconds') from None
    if not SHORTEST_DELAY_S <= seconds <= LONGEST_DELAY_S:
        raise argparse.ArgumentTypeError(f"must be between {SHORTEST_DELAY_S:g} and {LONGEST_DELAY_S:g} seconds")
    return seconds


def _run(args: argparse.Namespace) -> int:
    from zotctl.top import live, one_daemon  # noqa: PLC0415  (psutil takes 37 ms to import)

    if is_live(args):
        return live.watch(one_daemon.VIEW, args.delay)
    return live.print_looks(one_daemon.VIEW, args.delay, as_json=args.json, once=args.once)


def is_live(args: argparse.Namespace) -> bool:
    """Return whether the view is to be redrawn on a terminal, instead of being printed."""
    return not args.json and not args.once and sys.stdin.isatty() and sys.stdout.isatty()
