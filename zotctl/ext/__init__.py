"""`zotctl ext`: commands for users and authors of extensions (`docs/extensions.md`)."""

from zotctl.commands import Subparsers
from zotctl.ext import install, listing, logs, new, record, reload, replay, tap, validate

ACTIONS = (listing, install, reload, logs, tap, record, replay, new, validate)
"""Modules with `add(actions)`, in the order of the help."""


def add(commands: Subparsers) -> None:
    """Register `ext` and its actions."""
    parser = commands.add_parser(
        "ext",
        help="manage extensions: list, install, reload, watch, record, create, check, test",
        epilog="example: zotctl ext list --all",
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    for action in ACTIONS:
        action.add(actions)
