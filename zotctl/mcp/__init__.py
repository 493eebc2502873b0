"""`zotctl mcp`: manages MCP servers (`docs/mcp.md`)."""

from zotctl.commands import Subparsers
from zotctl.mcp import editing, listing, login, logs, trial

ACTIONS = (listing, editing, trial, login, logs)
"""Modules with `add(actions)`, in the order of the help."""


def add(commands: Subparsers) -> None:
    """Register `mcp` and its actions."""
    parser = commands.add_parser(
        "mcp",
        help="manage MCP servers: list, add, remove, test, log in",
        epilog="example: zotctl mcp add files -- npx -y @modelcontextprotocol/server-filesystem .",
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    for action in ACTIONS:
        action.add(actions)
