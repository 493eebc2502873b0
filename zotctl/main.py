"""`zotctl`, but for `ping` and `status`: the parser is built from the list of nouns."""

import argparse
import sys
from collections.abc import Sequence

from zotctl import (
    approvals,
    attach,
    auth,
    backup,
    channel,
    config,
    daemon,
    export,
    ext,
    fork,
    importing,
    log,
    metrics,
    output,
    queue,
    search,
    send,
    sessions,
    tree,
    trust,
    usage,
)
from zotd.client.errors import ClientError
from zotd.client.interrupts import InterruptedBySignal, OutputLostError
from zotd.client.plain import harmless
from zotd.wire.version import VERSION

EXAMPLES = """\
examples:
  zotctl status --json
  zotctl sessions --state running
  zotctl send --session tests "run them again" --wait
  zotctl queue --last
  zotctl continue --last --wait
  zotctl attach --plain --last
  zotctl approvals
  zotctl search flaky test
  zotctl export --session s_01JX… --format markdown -o talk.md
  zotctl usage --since 7d
  zotctl ext install https://git.example.org/ann/weather
  zotctl trust grant .
  zotctl login anthropic
  zotctl backup ~/zot-backup.db

`zotctl ping`, `status` and `stop` never start the daemon (`ping` and `status` do with --autostart); the others do.
"""

NOUNS = (
    *(daemon, metrics, sessions, send, queue, attach, approvals, log),
    *(search, tree, fork, export, importing, usage, ext, trust, auth, config, channel, backup),
)
"""Each has `add(commands)`; in the order of the help."""


def main(argv: Sequence[str]) -> int:
    """Run with `argv` and return the exit code: 0, 1, 2 for bad usage, 130."""
    args = _parser().parse_args(argv)
    if args.no_color:
        output.switch_colour_off()
    try:
        return int(args.run(args))
    except ClientError as error:
        sys.stderr.write(f"zotctl: {harmless(str(error))}\n")  # it may repeat what an extension has said
        return 1
    except (KeyboardInterrupt, InterruptedBySignal):
        return 130
    except (BrokenPipeError, OutputLostError):
        output.forget_stdout()
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="zotctl",
        description="Looks after the daemon and its sessions.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"zotctl {VERSION}")
    parser.add_argument("--no-color", action="store_true", help="also off with NO_COLOR, and outside a terminal")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, summary in [("ping", "does the daemon answer?"), ("status", "the daemon in figures")]:
        commands.add_parser(name, help=summary)  # for the list only: see __main__
    for noun in NOUNS:
        noun.add(commands)
    return parser
