"""`zotctl fleet top`: a live view of the daemons of a database, and of the batches that they work through."""

import argparse

from zotctl import top

EPILOG = """\
examples:
  zotctl fleet top
  zotctl fleet top --delay 30
  zotctl fleet top --once
  zotctl fleet top --json | jq .batches

Press q to quit. LEASE is the time until the lease of a daemon expires unless it is renewed, PROMPTS the prompts of batches
that it runs. Does not start the daemon.
"""

DELAY_S = 5.0
"""An update counts all sessions of the database, which takes the server 256 ms with 1,000,000 of them."""


def add(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the action."""
    parser = actions.add_parser("top", help="show the daemons and the batches, updated live", epilog=EPILOG)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    top.add_flags(parser, DELAY_S)
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    from zotctl.top import fleet, live  # noqa: PLC0415  (psutil takes 37 ms to import)

    if top.is_live(args):
        return live.watch(fleet.VIEW, args.delay)
    return live.print_looks(fleet.VIEW, args.delay, as_json=args.json, once=args.once)
