"""`zotctl ext validate`: the command line. The work is in `zotctl.ext.validation`, which is slow to load."""

import argparse
from importlib import import_module

from zotctl.commands import Commands

EPILOG = """\
examples:
  zotctl ext validate weather
  zotctl ext validate weather --call
  zotctl ext validate weather --call weather --args '{"city": "Berlin"}'
  zotctl ext validate .zot/extensions        the Python modules in .zot/extensions/tools

The extension is started several times, questioned, and told to end. Its tools and commands are not run without --call,
for they may do real work. The exit code is 1 when a rule is broken.
"""


def add(actions: Commands) -> None:
    """`validate`."""
    parser = actions.add_parser("validate", help="check an extension against the protocol", epilog=EPILOG)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("path", metavar="DIR", help="of an extension, or one that holds tools/NAME.py")
    parser.add_argument(
        "--call",
        nargs="?",
        const="",
        metavar="TOOL",
        help="call this tool, which must not fail; without TOOL all tools and commands, with senseless arguments",
    )
    parser.add_argument("--args", metavar="JSON", help="for the tool of --call ({})")
    parser.add_argument("--json", action="store_true")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    return int(import_module("zotctl.ext.validation").run(args))
