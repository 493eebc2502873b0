"""`zotctl ext`: what authors and users of extensions do with them (`docs/extensions.md`)."""

from zotctl.commands import Commands
from zotctl.ext import new, validate

ACTIONS = (new, validate)
"""Each has `add(actions)`; in the order of the help."""


def add(commands: Commands) -> None:
    """`ext` and its actions."""
    parser = commands.add_parser(
        "ext", help="extensions: make, check", epilog="example: zotctl ext new weather --lang py"
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    for action in ACTIONS:
        action.add(actions)
