"""`zotctl doctor`: the command line. `zotctl.doctor.runner` does the work; it loads slowly."""

import argparse
import os
from importlib import import_module

from zotctl.commands import Subparsers

EPILOG = """\
Exit code 1 if a problem is found. Takes at most 3 s, changes nothing and does not start the daemon.
docs/troubleshooting.md describes the findings.

example: zotctl doctor --json | jq -r '.findings[].next'
"""


def add(commands: Subparsers) -> None:
    """Register `doctor`."""
    parser = commands.add_parser("doctor", help="find problems of this installation", epilog=EPILOG)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    return int(import_module("zotctl.doctor.runner").run(os.environ, as_json=args.json))
