"""`zotctl top`: sessions, their models' speed and cost, clients, and what extensions take, while it happens."""

import argparse
import sys

from zotctl.commands import Commands

EPILOG = """\
examples:
  zotctl top
  zotctl top --delay 5
  zotctl top --once
  zotctl top --json | jq .tokens_per_s

q leaves. TOK/S counts what models write, over the last five looks; of a reply that is being written it is an estimate.
CPU and memory of an extension are those of all processes that it has started; those of another machine (--host) cannot
be seen from here. Does not start the daemon.
"""

DELAY_S = 1.0
SHORTEST_DELAY_S = 0.2
"""A look asks the daemon for its lists and the kernel for every process of the machine: 15 ms."""
LONGEST_DELAY_S = 3600.0
"""Nobody looks more rarely at something live; what is meant by more is a slip of the keyboard."""


def add(commands: Commands) -> None:
    """`top`."""
    parser = commands.add_parser("top", help="sessions and extensions, live", epilog=EPILOG)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "-d", "--delay", type=_delay, default=DELAY_S, metavar="S", help="seconds between two looks (1)"
    )
    parser.add_argument("--once", action="store_true", help="one look and leave, as without a terminal")
    parser.add_argument("--json", action="store_true", help="a line of JSON for each look")
    parser.set_defaults(run=_run)


def _delay(word: str) -> float:
    try:
        seconds = float(word)
    except ValueError:
        raise argparse.ArgumentTypeError(f'"{word}" is no number of seconds') from None
    if not SHORTEST_DELAY_S <= seconds <= LONGEST_DELAY_S:
        raise argparse.ArgumentTypeError(f"must be between {SHORTEST_DELAY_S:g} and {LONGEST_DELAY_S:g} seconds")
    return seconds


def _run(args: argparse.Namespace) -> int:
    from zotctl.top import live  # noqa: PLC0415  (psutil: 37 ms that no other command has to pay)

    if args.json or args.once or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return live.print_looks(args.delay, as_json=args.json, once=args.once)
    return live.watch(args.delay)
