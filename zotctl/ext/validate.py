"""`zotctl ext validate`: the command line. `zotctl.ext.validation` does the work; it loads slowly."""

import argparse
from importlib import import_module

from zotctl.commands import Subparsers

EPILOG = """\
examples:
  zotctl ext validate weather
  zotctl ext validate weather --call
  zotctl ext validate weather --call weather --args '{"city": "Berlin"}'
  zotctl ext validate .zot/extensions        the Python modules in .zot/extensions/tools

Starts the extension several times, queries it and stops it. Its tools and commands may have side effects, so they run
only with --call. Exit code 1 if a rule is broken.
"""


def add(actions: Subparsers) -> None:
    """Register `validate`."""
    parser = actions.add_parser("validate", help="check an extension against the protocol", epilog=EPILOG)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("path", metavar="DIR", help="directory of an extension, or one that contains tools/NAME.py")
    parser.add_argument(
        "--call",
        nargs="?",
        const="",
        metavar="TOOL",
        help="call this tool, which must succeed; without TOOL, call all tools and commands with meaningless arguments",
    )
    parser.add_argument("--args", metavar="JSON", help="arguments of the tool of --call (default: {})")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    return int(import_module("zotctl.ext.validation").run(args))
